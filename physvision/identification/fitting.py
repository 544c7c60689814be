"""Fit a motion model to tracks, with the uncertainty of its unknowns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import DerivativeError, PhysvisionError
from physvision.estimation import (
    MotionResidual,
    SampledState,
    Unknowns,
    fit_with_continuation,
    gauss_newton,
    geometric_horizons,
    horizon_continuation,
)
from physvision.estimation.residual import Linearization
from physvision.estimation.uncertainty import Uncertainty, uncertainty
from physvision.identification.initial_guesses import MAD_TO_STD
from physvision.identification.model import Evidence, MotionModel, UnsuitableError

_MEDIAN_LENGTH = math.sqrt(2 * math.log(2))  # of a vector of two standard normal numbers


@dataclass(frozen=True)
class Fit:
    """Fit of one motion model to the evidence.

    Attributes:
        evidence: Tracks and camera that were fitted.
        model: Motion model.
        problem: Residuals that were minimized.
        z: Unconstrained numbers at the minimum.
        uncertainty: Uncertainty of z.
        noise: Robust standard deviation of the residuals of a coordinate, pixels.
        training_starts: Function that returns the searches before any of the held-out samples was fitted, (starts,
            unknowns); most fits are never asked to predict, and some would have to search for it.
        linearization: Residuals and Jacobian at z.
    """

    evidence: Evidence
    model: MotionModel
    problem: MotionResidual
    z: Float[Tensor, " unknowns"]
    uncertainty: Uncertainty
    noise: float
    training_starts: Callable[[], Float[Tensor, "starts unknowns"]]
    linearization: Linearization

    @property
    def values(self) -> dict[str, Tensor]:
        """Values of the unknowns at the minimum, with a batch of one."""
        return self.problem.unknowns.values(self.z[None])

    @property
    def start_time(self) -> float:
        """Time of the clip at which the motion starts, s."""
        return float(self.evidence.times[self.model.first])

    @property
    def errors(self) -> Float[np.ndarray, "samples numbers"]:
        """Distances of the observed coordinates from the fit, in the unit of positions; NaN where not observed."""
        errors = self.linearization[0][0] / torch.as_tensor(self.problem.weight)
        return torch.where(torch.isfinite(self.problem.observed), errors, torch.nan).detach().numpy()

    @property
    def object_noises(self) -> list[float]:
        """Robust standard deviation of the errors of a coordinate of each object."""
        return [object_noise(errors) for errors in np.split(self.errors, len(self.evidence.tracks), axis=1)]

    @property
    def span(self) -> tuple[float, float]:
        """Times of the first and the last sample that were used, s."""
        window = slice(self.model.first, self.model.end)
        used = torch.isfinite(self.evidence.observed[window]).any(1)
        return self.start_time, float(self.evidence.times[window][used][-1])

    @property
    def holdout_start(self) -> int:
        """First held-out sample, counted from the start of the motion."""
        return 2 * len(self.problem.times) // 3

    @cached_property
    def without_holdout(self) -> Fit:
        """Fit to the samples before the held-out ones; a search, made once."""
        problem = self.problem.truncate(float(self.problem.times[self.holdout_start - 1]))
        optimum = gauss_newton(problem, self.training_starts(), robust=True, tolerance=1e-6, patience=3)
        return replace(self, problem=problem, z=optimum.best_z, linearization=optimum.best_linearization)

    @cached_property
    def other_camera(self) -> Fit | None:
        """Fit of the same model with the other prior of the camera; a search, made once.

        None if the picture is unknown, or the search diverges.
        """
        view = self.evidence.view
        if not (view.has_camera and view.has_picture):
            return None
        try:
            return refit(replace(self.evidence, view=replace(view, arbitrary=not view.arbitrary)), self.model, self)
        except PhysvisionError:
            return None

    def positions(self, times: Float[Tensor, " samples"]) -> Float[Tensor, "samples numbers"]:
        """Return the fitted positions at times of the clip, pixels; NaN before the motion and long after the samples.

        Each object's position is that at the time at which its image row is read.
        """
        settings, view = self.evidence.settings.fit, self.evidence.view
        positions = torch.full((len(times), self.problem.observed.shape[1]), torch.nan, dtype=torch.float64)
        elapsed = times.double() - self.start_time
        valid = (elapsed >= 0) & (elapsed <= settings.max_extrapolation * self.problem.times[-1])
        unique, inverse = elapsed[valid].unique(return_inverse=True)
        if len(unique):
            empty = torch.full((len(unique), positions.shape[1]), torch.nan, dtype=torch.float64)
            problem = replace(self.problem, times=unique, observed=empty, delay=None, weight=1.0)
            for _ in range(settings.readout_iterations if self.problem.delay else 0):
                rows = view.image_rows(problem.predictions(self.z[None]).detach()[0])
                problem = replace(problem, delay=partial(view.readout_delay, rows))
            positions[valid] = problem.predictions(self.z[None]).detach()[0][inverse]
        return positions


def build_problem(evidence: Evidence, model: MotionModel) -> MotionResidual:
    """Return the residuals of a model: observed coordinates against predicted ones."""
    window = slice(model.first, model.end)
    view = evidence.view
    observed = evidence.observed[window]
    track_sigmas = np.stack([track.sigma[window] for track in evidence.tracks], 1)
    sigma = torch.from_numpy(track_sigmas.repeat(2, 1)).double()
    typical = sigma[torch.isfinite(sigma)].median()
    weight = 1 / sigma.clamp(min=float(evidence.settings.fit.min_sigma_ratio * typical))
    rows = view.image_rows(observed)
    # The roll is an unknown of the motion, since most kinds do not depend on it, but its prior is that of the view.
    unknowns = [
        view.roll_unknown() if unknown.name == "roll" and unknown.std is not None else unknown
        for unknown in model.unknowns
    ]

    def observe(sampled: SampledState) -> Tensor:
        positions = model.observe(sampled)
        return torch.cat([view.project(position, sampled.values) for position in positions.split(2, 1)], 1)

    return MotionResidual(
        model.engine,
        Unknowns([*unknowns, *view.unknowns(evidence.dt)]),
        model.setup,
        evidence.times[window] - evidence.times[model.first],
        observed,
        observe,
        weight,
        delay=partial(view.readout_delay, rows) if view.has_camera else None,
    )


def fit_model(evidence: Evidence, model: MotionModel) -> Fit:
    """Fit a model from its starts.

    The samples before the holdout are fitted first and for themselves, so that they can predict the holdout.

    Raises:
        UnsuitableError: The search has diverged.
    """
    problem = build_problem(evidence, model)
    settings = evidence.settings.fit
    max_candidates = settings.max_candidates
    start = problem.unknowns.unconstrain(model.starts)
    duration = float(problem.times[-1])
    horizons = [] if model.horizon is None else geometric_horizons(model.horizon, duration)
    training_end = settings.training_fraction * duration
    training_horizons = [horizon for horizon in horizons if horizon <= training_end]
    training = problem.truncate(training_end)
    candidates = horizon_continuation(training, training_horizons, start, max_candidates=max_candidates)
    if training_horizons:
        shortened = problem.truncate(training_horizons[-1])
        with torch.no_grad():
            _check_noise(evidence, _noise(shortened, shortened.residual(candidates[:1])))
    horizon = [training_end] if training_horizons else []
    candidates = horizon_continuation(problem, horizon, candidates, max_candidates=max_candidates)
    # A coarse tolerance suffices: the minimum is refined below.
    optimum = fit_with_continuation(
        problem, horizons[len(training_horizons) :], candidates, max_candidates=max_candidates, tolerance=1e-5
    )
    _check_noise(evidence, _noise(problem, optimum.best_linearization[0]))
    return _refine(evidence, model, problem, (optimum.best_z, optimum.best_linearization), lambda: candidates)


def _check_noise(evidence: Evidence, noise: float) -> None:
    """Refuse a fit that neither a longer search nor another camera brings near the track.

    Raises:
        UnsuitableError: The fit is of another law than the motion.
    """
    if noise > evidence.settings.selection.max_relaxed_ratio * max_noise(evidence):
        raise UnsuitableError(f"its best fit has a residual of {noise:.2g} {evidence.unit}")


def max_noise(evidence: Evidence) -> float:
    """Return the noise about a fit below which it is acceptable, in the unit of positions.

    Noisy tracks allow for more than exact ones, but for no more than a part of the objects' size: a law that misses an
    object by as much does not tell where it is.
    """
    settings = evidence.settings.selection
    sigma = max(float(np.median(track.sigma[track.observed])) for track in evidence.tracks)
    noisy = min(settings.max_error_ratio * sigma, settings.max_noisy_error * evidence.extent)
    radii = [track.radius for track in evidence.tracks if track.radius is not None]
    if radii:
        noisy = min(noisy, settings.max_error_size * max(radii))
    return max(settings.max_error * evidence.extent, noisy)


def _noise(problem: MotionResidual, residuals: Tensor) -> float:
    """Return the robust standard deviation of the weighted residuals of one search, in the unit of positions."""
    errors = (residuals[0] / torch.as_tensor(problem.weight))[torch.isfinite(problem.observed)]
    return float(MAD_TO_STD * errors.abs().median())


def object_noise(errors: Float[np.ndarray, "samples 2"]) -> float:
    """Return the robust standard deviation of a coordinate by the lengths of errors, NaN where not observed."""
    return float(np.nanmedian(np.linalg.norm(errors, axis=1))) / _MEDIAN_LENGTH


def refit(evidence: Evidence, model: MotionModel, fit: Fit) -> Fit:
    """Fit a model with more unknowns from the minimum of another.

    Raises:
        UnsuitableError: The search has diverged.
    """
    problem = build_problem(evidence, model)

    def transfer(z: Tensor) -> Tensor:
        return problem.unknowns.unconstrain(fit.problem.unknowns.values(z))

    optimum = gauss_newton(problem, transfer(fit.z[None]), robust=True, tolerance=evidence.settings.fit.tolerance)
    minimum = optimum.best_z, optimum.best_linearization
    return _refine(evidence, model, problem, minimum, lambda: transfer(fit.without_holdout.z[None]))


def _refine(
    evidence: Evidence,
    model: MotionModel,
    problem: MotionResidual,
    minimum: tuple[Tensor, Linearization],
    training_starts: Callable[[], Tensor],
) -> Fit:
    """Refine a minimum with the noise that its residuals show instead of the assumed one, and estimate its uncertainty.

    Raises:
        UnsuitableError: The search has diverged to where the motion has no derivative.
    """
    z, linearization = minimum
    try:
        estimate = uncertainty(problem, z, robust=True, linearization=linearization)
        # The tracker's noise was assumed so far; now the size and the autocorrelation of the residuals are known.
        inflation = math.sqrt((1 + estimate.autocorrelation) / (1 - estimate.autocorrelation))
        noise_ratio = max(estimate.residual_std * inflation, 1.0)
        problem = replace(problem, weight=problem.weight / noise_ratio)
        linearization = linearization[0] / noise_ratio, linearization[1] / noise_ratio
        tolerance = evidence.settings.fit.tolerance
        optimum = gauss_newton(problem, z[None], robust=True, tolerance=tolerance, linearization=linearization)
        z, linearization = optimum.best_z, optimum.best_linearization
        estimate = uncertainty(problem, z, robust=True, linearization=linearization)
    except DerivativeError as error:
        raise UnsuitableError("the search diverged: no motion of this kind comes near the track") from error
    noise = _noise(problem, linearization[0])
    return Fit(evidence, model, problem, z, estimate, noise, training_starts, linearization)
