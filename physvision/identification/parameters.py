"""Physical parameters with intervals, from a fit and known values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtr, ndtri
from torch import Tensor

from physvision.estimation.autocorrelation import MixturePosterior, mixture_posterior
from physvision.identification.camera_posterior import CameraFits, sample_posterior
from physvision.identification.fitting import Fit
from physvision.identification.model import Evidence
from physvision.identification.settings import ParameterSettings
from physvision.identification.units import si_unit

Bounds = tuple[float, float]
_POSITIVE: Bounds = (0.0, math.inf)
_MAX_TAIL = 37.0  # standard deviations beyond which a normal tail underflows


@dataclass(frozen=True)
class Parameter:
    """One physical parameter of an identified motion.

    Attributes:
        value: Estimate in SI units; None if not identifiable.
        unit: SI unit.
        interval_68: Interval that contains the value with a probability of 68 %.
        interval_95: Interval that contains the value with a probability of 95 %.
        identifiable: If true, the clip and the known values determine the parameter.
        reason: Reason why it is not identifiable.
        meaning: Definition where the name leaves it open, such as which mass a ratio is relative to.
        budget: Standard uncertainties by their source: known values such as the scale, tracking (white noise of the
            positions), and model (autocorrelated errors, and priors such as those of the camera). Their squares add up
            to that of half the 68 % interval.
    """

    value: float | None
    unit: str
    interval_68: tuple[float, float] | None = None
    interval_95: tuple[float, float] | None = None
    identifiable: bool = True
    reason: str = ""
    meaning: str = ""
    budget: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Propagation:
    """Parameters of a fit with the linear effects of what they depend on.

    Attributes:
        values: Parameters, or the reasons why they are not identifiable.
        estimates: Estimates of the identifiable ones.
        samples: Joint samples of the identifiable ones in random order: those within the bounds, and all samples
            projected onto the bounds.
        posterior: Posterior of z.
        z_derivatives: Derivatives of the identifiable ones with respect to z.
        known_errors: Effect on them of one standard deviation of each known value.
    """

    values: dict[str, Tensor | str]
    estimates: Float[np.ndarray, " parameters"]
    samples: tuple[Float[np.ndarray, "feasible parameters"], Float[np.ndarray, "draws parameters"]]
    posterior: MixturePosterior
    z_derivatives: Float[Tensor, "parameters unknowns"]
    known_errors: Float[Tensor, "parameters known_values"]


def estimate_parameters(fit: Fit, cameras: CameraFits | None = None) -> dict[str, Parameter]:
    """Estimate all physical parameters of a fit, by propagating posterior samples and the known values' errors.

    Among them is the scale of the picture, "scale", where other known values determine it.

    Args:
        fit: Fit of the motion, whose values are the estimates.
        cameras: Fits with each prior of the camera, from which samples are drawn by their probabilities; that fit alone
            if not given.
    """
    cameras = CameraFits((fit,), (1.0,)) if cameras is None else cameras
    settings = fit.evidence.settings.parameters
    result = _propagate(fit, settings)
    rivals = [_propagate(rival, settings) for rival in cameras.fits[1:]]
    samples, projected = _pool((result, *rivals), cameras.probabilities)
    identifiable = _identifiable(result)
    parameters = {}
    for name, value in result.values.items():
        unit = fit.model.units.get(name, si_unit(name))
        if isinstance(value, str):
            parameters[name] = Parameter(None, unit, identifiable=False, reason=value)
        else:
            index = identifiable.index(name)
            estimate = float(result.estimates[index])
            draws = samples[:, index], projected[:, index]
            parameter = _estimate(_bounds(name, fit), estimate, draws, unit, settings)
            budget = _budget(parameter, result.posterior, result.z_derivatives[index], result.known_errors[index])
            parameters[name] = replace(parameter, meaning=fit.model.meanings.get(name, ""), budget=budget)
    return parameters


def _pool(
    parts: Sequence[_Propagation], probabilities: Sequence[float]
) -> tuple[Float[np.ndarray, "feasible parameters"], Float[np.ndarray, "draws parameters"]]:
    """Pool samples of several fits, of each as many as its probability demands.

    Under another camera, other parameters may be identifiable than under the first; such samples are left out.
    """
    names = _identifiable(parts[0])
    is_comparable = [_identifiable(part) == names for part in parts]
    weights = np.where(is_comparable, probabilities, 0.0) if sum(is_comparable) > 1 else np.eye(len(parts))[0]
    weights = weights / weights.sum()

    def pool(index: int) -> np.ndarray:
        samples = [part.samples[index] for part in parts]
        return np.concatenate([part[: round(w * len(part))] for part, w in zip(samples, weights, strict=True) if w])

    return pool(0), pool(1)


def _identifiable(result: _Propagation) -> list[str]:
    return [name for name, value in result.values.items() if isinstance(value, Tensor)]


def _bounds(name: str, fit: Fit) -> Bounds:
    if name == "scale":
        return _POSITIVE
    return fit.model.bounds.get(name, fit.evidence.settings.parameters.bounds.get(name, (-math.inf, math.inf)))


def linearize_parameters(fit: Fit) -> tuple[dict[str, Tensor | str], Tensor, Tensor]:
    """Return the parameters at a fit's minimum, and the derivatives of the identifiable ones.

    Returns:
        Parameters, or the reasons why they are not identifiable; derivatives with respect to z, (parameters, unknowns);
        and effects of one standard deviation of each known value, (parameters, known values).
    """
    evidence = fit.evidence
    names = list(evidence.known_values)
    known_values = torch.tensor([evidence.known_values[name].value for name in names], dtype=torch.float64)
    known_std = torch.tensor([known_value_std(name, evidence) for name in names], dtype=torch.float64)
    unknowns = fit.problem.unknowns

    def evaluate(z: Tensor, known_values: Tensor) -> dict[str, Tensor | str]:
        arguments = unknowns.values(z[None]), dict(zip(names, known_values, strict=True))
        scale = None if "scale" in names else fit.model.scale(*arguments)
        return ({} if scale is None else {"scale": scale}) | dict(fit.model.parameters(*arguments))

    values = evaluate(fit.z, known_values)
    identifiable = [name for name, value in values.items() if isinstance(value, Tensor)]

    def vector(z: Tensor, known_values: Tensor) -> Tensor:
        parameters = evaluate(z, known_values)
        # A leading zero, since without a scale some motions have no identifiable parameter.
        scalars = (torch.as_tensor(parameters[name]).reshape(()) for name in identifiable)
        return torch.stack([z.new_zeros(()), *scalars])

    z_derivatives, known_derivatives = (
        part.detach()[1:] for part in torch.autograd.functional.jacobian(vector, (fit.z, known_values))
    )
    return values, z_derivatives, known_derivatives * known_std


def _propagate(fit: Fit, settings: ParameterSettings) -> _Propagation:
    """Evaluate a fit's parameters at its minimum, and propagate samples of the posterior and of the known values."""
    values, z_derivatives, known_errors = linearize_parameters(fit)
    identifiable = [name for name, value in values.items() if isinstance(value, Tensor)]
    generator = torch.Generator().manual_seed(1)
    posterior = mixture_posterior(fit.problem, fit.z, linearization=fit.linearization)
    deviations = sample_posterior(fit, posterior, settings.draws) @ z_derivatives.T
    noise = torch.randn(settings.draws, known_errors.shape[1], generator=generator, dtype=torch.float64)
    deviations += noise @ known_errors.T
    estimates = np.array([float(torch.as_tensor(values[name])) for name in identifiable])
    limits = [_bounds(name, fit) for name in identifiable]
    samples = _feasible_samples(limits, estimates, deviations.numpy(), settings)
    projected = _projected_samples(limits, estimates, deviations.numpy())
    return _Propagation(values, estimates, (samples, projected), posterior, z_derivatives, known_errors)


def _budget(
    parameter: Parameter, posterior: MixturePosterior, z_derivatives: Tensor, known_errors: Tensor
) -> dict[str, float]:
    """Return the standard uncertainty of a parameter by its source; bounds reduce all sources alike."""
    if parameter.interval_68 is None:
        return {}
    # Where thousands of frames leave next to none, rounding may make it negative.
    variance, white_variance = (
        max(float(z_derivatives @ covariance @ z_derivatives), 0.0)
        for covariance in (posterior.covariance, posterior.white_covariance)
    )
    variances = {
        "known_values": float(known_errors.square().sum()),
        "tracking": white_variance,
        "model": max(variance - white_variance, 0.0),
    }
    half_width = (parameter.interval_68[1] - parameter.interval_68[0]) / 2
    factor = half_width / math.sqrt(max(sum(variances.values()), 1e-300))
    return {source: factor * math.sqrt(variance) for source, variance in variances.items()}


def known_value_std(name: str, evidence: Evidence) -> float:
    """Return the standard deviation of a known value when it is compared with the picture.

    A scale is never quite that of the plane of motion, and a disc's observed size depends on where blur and compression
    place its edge.
    """
    known_value, track, settings = evidence.known_values[name], evidence.tracks[0], evidence.settings.parameters
    min_error = {"scale": settings.min_scale_error, "radius": settings.min_radius_error}.get(name, 0.0)
    if name == "radius" and track.radius:
        edge_std = max(settings.edge_std, float(np.median(track.sigma[track.observed])))
        min_error = max(min_error, edge_std / track.radius)
    return max(known_value.std, min_error * known_value.value)


def _feasible_samples(
    bounds: list[Bounds],
    estimates: Float[np.ndarray, " parameters"],
    deviations: Float[np.ndarray, "draws parameters"],
    settings: ParameterSettings,
) -> Float[np.ndarray, "samples parameters"]:
    """Return joint samples of all parameters, without those below a lower bound.

    Damping and drag, for example, have similar effects: where a search makes one of them negative, the other comes out
    too large, and the bound of the one informs the other. Where hardly any sample is feasible, the truncated
    distribution is sampled. Positive parameters vary in their logarithm.
    """
    lower = _lower_limits(bounds) - estimates
    feasible = (deviations >= lower).all(1)
    if feasible.sum() >= settings.min_feasible_draws:
        deviations = deviations[feasible]
    else:
        deviations = _sample_truncated(deviations, lower, settings.truncation_sweeps)
    return _add_deviations(bounds, estimates, deviations)


def _projected_samples(
    bounds: list[Bounds],
    estimates: Float[np.ndarray, " parameters"],
    deviations: Float[np.ndarray, "draws parameters"],
) -> Float[np.ndarray, "draws parameters"]:
    """Return joint samples of all parameters, each moved to the likeliest point at or above the lower bounds.

    A parameter may lie exactly at its bound: a pendulum may have no drag at all. Where damping and drag are hardly
    distinguished, the truncated posterior is flat from the one bound to the other, and its intervals leave out both
    ends. These samples have the probability with which the search may come out beyond a bound at the bound instead.

    With the covariance C of the bounded parameters, the nearest feasible point of a sample x in the metric C⁻¹ has some
    of them, A, at their bounds, and the others follow by regression; it is the one set for which both the multipliers
    C_AA⁻¹ (lower_A − x_A) and the distances of the others from their bounds are not negative.
    """
    lower = _lower_limits(bounds) - estimates
    bounded = np.flatnonzero(np.isfinite(lower) & (deviations.std(0) > 0))
    covariance = np.atleast_2d(np.cov(deviations.T))
    result = np.maximum(deviations, lower)
    remaining = np.ones(len(deviations), bool)
    for size in range(len(bounded) + 1):
        for active in map(list, combinations(bounded, size)):
            inner = covariance[np.ix_(active, active)]
            inner = inner + 1e-9 * np.diag(inner.diagonal())
            samples = deviations[remaining]
            multipliers = np.linalg.solve(inner, (lower[active] - samples[:, active]).T).T
            projected = samples + multipliers @ covariance[active]
            projected[:, active] = lower[active]
            optimal = (multipliers >= 0).all(1) & (projected[:, bounded] >= lower[bounded]).all(1)
            indices = np.flatnonzero(remaining)[optimal]
            result[indices] = projected[optimal]
            remaining[indices] = False
    return _add_deviations(bounds, estimates, result)


def _lower_limits(bounds: list[Bounds]) -> Float[np.ndarray, " parameters"]:
    """Return the lower bounds of the parameters; positive ones have none, since they vary in their logarithm."""
    return np.array([-np.inf if bound == _POSITIVE else bound[0] for bound in bounds])


def _add_deviations(
    bounds: list[Bounds],
    estimates: Float[np.ndarray, " parameters"],
    deviations: Float[np.ndarray, "draws parameters"],
) -> Float[np.ndarray, "draws parameters"]:
    """Return the estimates plus deviations; positive parameters vary in their logarithm."""
    logarithmic = np.array([bound == _POSITIVE for bound in bounds], bool) & (estimates > 0)
    relative = (deviations / np.where(logarithmic, estimates, 1.0)).clip(-50, 50)
    return np.where(logarithmic, estimates * np.exp(relative), estimates + deviations)


def _sample_truncated(
    deviations: Float[np.ndarray, "draws parameters"], lower: Float[np.ndarray, " parameters"], sweeps: int
) -> Float[np.ndarray, "draws parameters"]:
    """Sample the normal distribution of the deviations above lower bounds, where hardly any of them lies.

    Gibbs sampling of the bounded parameters, one after another given the others; parameters without a bound follow by
    their regression on the bounded ones.
    """
    spread = deviations.std(0)
    bounded = np.flatnonzero(np.isfinite(lower) & (spread > 0))
    if not len(bounded):
        return np.maximum(deviations, lower)
    random = np.random.default_rng(2)
    covariance = np.atleast_2d(np.cov(deviations.T))
    inner = covariance[np.ix_(bounded, bounded)]
    inner = inner + 1e-9 * np.diag(inner.diagonal())
    precision = np.linalg.inv(inner)
    means, start = deviations.mean(0)[bounded], deviations[:, bounded]
    samples = np.maximum(start, lower[bounded])
    for _ in range(sweeps):
        for index in range(len(bounded)):
            offset = (samples - means) @ precision[index] - precision[index, index] * (samples[:, index] - means[index])
            mean, std = means[index] - offset / precision[index, index], precision[index, index] ** -0.5
            tail = ndtr(-np.minimum((lower[bounded[index]] - mean) / std, _MAX_TAIL))
            quantile = tail * random.uniform(1e-12, 1, len(samples))
            samples[:, index] = np.maximum(mean - std * ndtri(quantile), lower[bounded[index]])
    projected = deviations + (samples - start) @ np.linalg.solve(inner, covariance[bounded])
    projected[:, bounded] = samples
    return np.maximum(projected, lower)


def _estimate(
    bounds: Bounds,
    value: float,
    draws: tuple[Float[np.ndarray, " feasible"], Float[np.ndarray, " draws"]],
    unit: str,
    settings: ParameterSettings,
) -> Parameter:
    """Return a parameter with its intervals, or the reason why it is not identifiable.

    Args:
        bounds: Physical bounds.
        value: Estimate, perhaps beyond a bound.
        draws: Samples of the truncated posterior, and samples moved to the bounds; an interval holds those of both.
        unit: SI unit.
        settings: Numbers of parameter intervals.
    """
    samples, projected = draws
    intervals = []
    for level in (0.68, 0.95):
        low, high = _interval(bounds, samples, level, settings.interval_starts)
        central = np.quantile(projected, [0.5 - level / 2, 0.5 + level / 2])
        intervals.append((min(low, float(central[0])), max(high, float(central[1]))))
    interval_68, interval_95 = intervals
    low, high = interval_95
    if bounds == _POSITIVE and not (value > 0 and high / max(low, 1e-300) < settings.max_ratio):
        return Parameter(None, unit, identifiable=False, reason="the motion hardly depends on it")
    width = min(high, bounds[1]) - max(low, bounds[0])
    if math.isfinite(bounds[1]) and width > settings.max_range_fraction * (bounds[1] - bounds[0]):
        return Parameter(None, unit, identifiable=False, reason="the clip does not halve its possible range")
    estimate = value if low <= value <= high else float(np.median(samples))
    return Parameter(estimate, unit, interval_68, interval_95)


def _interval(bounds: Bounds, samples: Float[np.ndarray, " draws"], level: float, starts: int) -> tuple[float, float]:
    """Return an interval that contains a fraction `level` of the samples.

    The interval is central unless the parameter is bounded: zero drag, for example, may be the likeliest value, but
    would lie below every central interval. For bounded parameters it is the shortest one, and begins at the bound if
    the samples are densest there.
    """
    if not math.isfinite(bounds[1]):
        low, high = np.quantile(samples, [0.5 - level / 2, 0.5 + level / 2]).tolist()
        return low, high
    tails = np.linspace(0.0, 1 - level, starts)
    lows, highs = np.quantile(samples, tails), np.quantile(samples, tails + level)
    shortest = int((highs - lows).argmin())
    return float(lows[shortest]) if shortest else bounds[0], float(highs[shortest])
