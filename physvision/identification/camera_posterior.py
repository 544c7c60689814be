"""Focal length, tilt, lens distortion and rolling shutter of the camera, as far as the motion shows them.

The camera turns by θ, towards the direction m in the picture, from the normal of the plane; f is the focal length in
pixels and w the picture's width. With scale, roll and shift taken out, which are unknowns of the motion, and the lens
centered on the picture, a point p of the plane, in pixels from the center, is imaged at

    q (1 + K |q|²/(w/2)²),  q = (p + F p)/(1 + κ·p/(w/2)),  F = [[a, b], [b, −a]],
    κ = 2τρ m,  (a, b) = −τ² (cos 2φ, sin 2φ),  τ = tan(θ/2),  ρ = w/(2f),  k₁ = K/ρ²,

and its row y is read at the time readout · y/height. This is exact: the plane's rotation is I − (1 − cos θ) m mᵀ in the
picture and sin θ m in depth, divided by its mean scale (1 + cos θ)/2. The fit has (κ, a, b, K, readout), which are
linear where they are small. What a motion says about them follows from what its law leaves free:

- Pendulum: angles follow from times, so that the arc is a protractor. Scale, roll, shift, amplitude and phase take the
  powers of the angle up to the first in x and the second in y; a swing over some ten degrees fixes κ and K by the third
  and fourth powers, (a, b) only by the shape of a wide arc. The period is that of the frames, whatever the lens does.
- Spring: lines stay lines under every homography, so that a bow is K, if the line misses the center. Along it, κ is a
  cosine of twice the frequency, K one of three times; rows read late are a sine of twice the frequency.
- Throw or fall: positions are p₀ + v t + g t²/2 with p₀, v and g unknown, so that every affine map is absorbed. The
  acceleration points down, which shows the roll, but (a, b) never show, and bias angle and speed (if g is known)
  unnoticed. κ and K are of third order, as drag is.
- Two objects share the camera: distances between them that stay are a checkerboard. Only (a, b) and κ together give f.

What does not show stays at its prior, and is a part of every interval. There are two priors, of a careful person and
of an arbitrary camera. Both fits are compared by their evidences, in Laplace's approximation: with Λ the information of
the data and P that of the prior, with standard deviations σ, an arbitrary camera costs

    log Z = … + Σ log σ_careful/σ_arbitrary + ½ log det (Λ + P_careful) − ½ log det (Λ + P_arbitrary).

Samples of a parameter are drawn from both, by their probabilities. Since (a, b) and κ are not independent, samples of
an arbitrary camera are weighted: with ρ from its prior, (a, b) follows, and the weight is its likelihood given the
others. The priors of κ and K are replaced by those of θ and k₁ likewise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.estimation.autocorrelation import MixturePosterior, mixture_posterior
from physvision.estimation.unknowns import Unknowns, Values
from physvision.identification.fitting import Fit

_MAX_SQUARE = 9.0  # squared deviation, of three standard deviations, up to which a prior is replaced
_PRIORS = ("roll", "keystone", "foreshortening", "distortion")


@dataclass(frozen=True)
class CameraFits:
    """Fit of the best model and, if a camera took the picture, its fit with the other prior of the camera.

    Attributes:
        fits: Fits of one model.
        probabilities: Probability of the prior of each.
    """

    fits: tuple[Fit, ...]
    probabilities: tuple[float, ...]

    @property
    def arbitrary(self) -> Fit | None:
        """Fit with an arbitrary camera; None without one."""
        return next((fit for fit in self.fits if fit.evidence.view.arbitrary), None)


def arbitrary_camera_cost(fit: Fit) -> float:
    """Return twice the logarithm of the odds for a careful camera that the priors alone give; zero for such a fit."""
    view = fit.evidence.view
    if not (view.arbitrary and view.has_picture):
        return 0.0
    careful = Unknowns(replace(view, arbitrary=False).unknowns(fit.evidence.dt))
    careful_std = {unknown.name: unknown.std for unknown in careful} | {"roll": view.settings.careful.roll}
    indices, differences, log_ratio = [], [], 0.0
    derivatives = fit.problem.unknowns.derivatives(fit.z)
    for unknown, part in fit.problem.unknowns.parts(torch.arange(len(fit.z))):
        if unknown.name in _PRIORS and unknown.std is not None:
            std = careful_std[unknown.name] or unknown.std
            log_ratio += unknown.size * math.log(unknown.std / std)
            indices += part.tolist()
            differences.append(derivatives[part].square() * (std**-2 - unknown.std**-2))
    root = torch.cat(differences).sqrt()
    covariance = fit.uncertainty.covariance[indices][:, indices]
    eigenvalues = torch.linalg.eigvalsh(root[:, None] * covariance * root).clamp(min=0.0)
    probability = view.settings.arbitrary_probability
    return 2 * (log_ratio + math.log(1 / probability - 1)) - float(torch.log1p(eigenvalues).sum())


def sample_posterior(fit: Fit, posterior: MixturePosterior, count: int) -> Float[Tensor, "samples unknowns"]:
    """Draw deviations of a fit's z from its minimum; of an arbitrary camera only those that are possible."""
    view = fit.evidence.view
    if not (view.arbitrary and view.has_picture):
        return posterior.sample(count)
    return _condition(fit, posterior, count)[0]


def sample_camera(fit: Fit, count: int) -> dict[str, Float[np.ndarray, " samples"]]:
    """Draw samples of an arbitrary camera: tilt and roll (rad), focal length (px), k1, distortion and readout (s)."""
    posterior = mixture_posterior(fit.problem, fit.z, linearization=fit.linearization)
    deviations, half_fields = _condition(fit, posterior, count)
    return _camera_values(fit, fit.problem.unknowns.values(fit.z + deviations), half_fields)


def sample_camera_prior(fit: Fit, count: int) -> dict[str, Float[np.ndarray, " samples"]]:
    """Draw samples of the same values from the prior of an arbitrary camera."""
    view, generator = fit.evidence.view, torch.Generator().manual_seed(5)
    values = {}
    for unknown in fit.problem.unknowns:
        if unknown.name in ("roll", "distortion", "readout") and unknown.std is not None:
            start = torch.as_tensor(unknown.start, dtype=torch.float64)
            noise = torch.randn(count, *unknown.shape, generator=generator, dtype=torch.float64)
            values[unknown.name] = start + unknown.std * noise
    half_fields = _sample_half_fields(fit, count)
    tilt = view.settings.tilt_std * torch.randn(count, 2, generator=generator, dtype=torch.float64)
    values["keystone"] = 2 * torch.tan(tilt.norm(dim=1, keepdim=True) / 2) * half_fields[:, None] * _directions(tilt)
    if "distortion" in values:
        k1 = view.settings.k1_std * torch.randn(count, generator=generator, dtype=torch.float64)
        values["distortion"] = k1 * half_fields.square()
    return _camera_values(fit, values, half_fields)


def _directions(vectors: Float[Tensor, "samples 2"]) -> Float[Tensor, "samples 2"]:
    return vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-12)


def _camera_values(fit: Fit, values: Values, half_fields: Tensor) -> dict[str, Float[np.ndarray, " samples"]]:
    tilt = 2 * torch.atan(values["keystone"].norm(dim=1) / (2 * half_fields))
    samples = {"tilt": tilt, "readout": values["readout"]}
    if fit.evidence.view.calibration is None:
        samples["focal_length"] = fit.evidence.view.width / 2 / half_fields
    if "distortion" in values:
        samples |= {"k1": values["distortion"] / half_fields.square(), "distortion": values["distortion"]}
    if "roll" in values:
        samples["roll"] = values["roll"]
    return {name: sample.detach().numpy() for name, sample in samples.items()}


def _condition(fit: Fit, posterior: MixturePosterior, count: int) -> tuple[Tensor, Tensor]:
    """Return samples in which keystone and foreshortening are those of one tilt, and the half field of each."""
    unknowns, settings = fit.problem.unknowns, fit.evidence.view.settings
    deviations = posterior.sample(count * settings.proposals)
    parts = {unknown.name: part.tolist() for unknown, part in unknowns.parts(torch.arange(len(fit.z)))}
    rows = parts["foreshortening"]
    others = [index for index in range(len(fit.z)) if index not in rows]
    half_fields = _sample_half_fields(fit, len(deviations))
    keystone = unknowns.values(fit.z + deviations)["keystone"]
    tau = keystone.norm(dim=1) / (2 * half_fields)
    direction = 2 * torch.atan2(keystone[:, 1], keystone[:, 0])
    foreshortening = -tau.square()[:, None] * torch.stack([direction.cos(), direction.sin()], 1)
    covariance = posterior.covariance
    scale = covariance.diagonal().clamp(min=1e-300).sqrt()
    correlation = covariance / scale[:, None] / scale
    inner = correlation[others][:, others] + 1e-9 * torch.eye(len(others), dtype=scale.dtype)
    gain = torch.linalg.solve(inner, correlation[others][:, rows]).mT
    conditional_correlation = correlation[rows][:, rows] - gain @ correlation[others][:, rows]
    step = next(unknown.scale for unknown in unknowns if unknown.name == "foreshortening")
    row_scale = step * scale[rows]
    mean = step * fit.z[rows] + row_scale * ((deviations / scale)[:, others] @ gain.mT)
    conditional = mean, row_scale[:, None] * conditional_correlation * row_scale
    log_weight = _log_likelihood(foreshortening, conditional, settings.arbitrary.foreshortening)
    # The Gaussian priors of the fit, of what is linear, are replaced by those of the tilt and of k1, as densities of
    # keystone and distortion; far out they stay, where Student's tails would be taken for what the data say.
    squared_tilt = (2 * tau.atan() / settings.tilt_std).square()
    squared_keystone = (keystone / settings.arbitrary.keystone).square().sum(1).clamp(max=_MAX_SQUARE)
    log_weight = log_weight + (squared_keystone - squared_tilt) / 2 - 2 * half_fields.log()
    if "distortion" in parts:
        distortion = unknowns.values(fit.z + deviations)["distortion"]
        squared_k1 = (distortion / half_fields.square() / settings.k1_std).square()
        squared_distortion = (distortion / settings.arbitrary.distortion).square().clamp(max=_MAX_SQUARE)
        log_weight = log_weight + (squared_distortion - squared_k1) / 2 - 2 * half_fields.log()
    weights = torch.exp(log_weight - log_weight.max())
    deviations[:, rows] = foreshortening / step - fit.z[rows]
    selection = _resample(weights, count)
    return deviations[selection], half_fields[selection]


def _log_likelihood(
    values: Float[Tensor, "samples 2"], conditional: tuple[Tensor, Tensor], prior_std: float
) -> Float[Tensor, " samples"]:
    """Return the data's log-likelihood of values, from a conditional posterior that has a Gaussian prior about zero.

    Args:
        values: Values of each sample.
        conditional: Mean of each sample, (samples, 2), and covariance, (2, 2), of the posterior.
        prior_std: Standard deviation of the prior.
    """
    mean, covariance = conditional
    precision, vectors = torch.linalg.eigh(torch.linalg.inv(covariance))
    data = precision - prior_std**-2
    # Where the data say next to nothing, the difference is rounding, or the posterior's own approximation.
    data, precision = (torch.where(data > 0.01 * precision, part, 0.0) for part in (data, precision))
    values, mean = values @ vectors, mean @ vectors
    return (precision * mean * (values - mean / 2) - data * values.square() / 2).sum(1)


def _sample_half_fields(fit: Fit, count: int) -> Float[Tensor, " samples"]:
    """Draw half the picture's width over the focal length: the calibrated one, or from its prior."""
    view, settings = fit.evidence.view, fit.evidence.view.settings
    calibration = view.calibration
    if calibration is not None:
        return torch.full((count,), view.width / 2 / calibration.focal[0], dtype=torch.float64)
    (mean, std), (low, high) = settings.half_field, settings.half_field_range
    uniform = torch.rand(count, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    tails = torch.special.ndtr(torch.tensor([(low - mean) / std, (high - mean) / std], dtype=torch.float64))
    return mean + std * torch.special.ndtri(tails[0] + (tails[1] - tails[0]) * uniform)


def _resample(weights: Float[Tensor, " proposals"], count: int) -> Int[Tensor, " samples"]:
    """Return indices of `count` samples, each in proportion to its weight, by systematic resampling."""
    cumulative = weights.cumsum(0) / weights.sum()
    positions = (torch.arange(count, dtype=weights.dtype) + 0.5) / count
    indices = torch.searchsorted(cumulative, positions).clamp(max=len(weights) - 1)
    return indices[torch.randperm(len(indices), generator=torch.Generator().manual_seed(4))]
