"""Horizon continuation: fit a growing part of a motion, so that the search does not lose the phase.

Over many periods the cost of a wrong frequency has local minima. Over the first period it has one minimum, and the fit
there predicts the phase well enough to continue over the next stretch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation.gauss_newton import Optimum, gauss_newton
from physvision.estimation.motion_residual import MotionResidual
from physvision.estimation.settings import DEFAULT_SETTINGS


def fit_with_continuation(
    problem: MotionResidual,
    horizons: Sequence[float],
    start: Float[Tensor, "starts unknowns"] | None = None,
    *,
    max_candidates: int | None = None,
    robust: bool = True,
    tolerance: float = 1e-8,
) -> Optimum:
    """Fit all samples after continuation over the given horizons.

    Args:
        problem: Residuals of the whole motion.
        horizons: Ends of the intermediate fits, ascending, s; the last fit has all samples.
        start: Initial unconstrained numbers; the unknowns' own starts if not given.
        max_candidates: Number of searches that continue after each horizon; see `horizon_continuation`.
        robust: If true, outliers are downweighted.
        tolerance: Relative decrease of the cost at which the last fit has converged.
    """
    z = horizon_continuation(problem, horizons, start, max_candidates=max_candidates, robust=robust)
    patience = None if max_candidates is None else DEFAULT_SETTINGS.patience
    return gauss_newton(
        problem, z, max_iterations=3 * DEFAULT_SETTINGS.continuation_iterations, robust=robust, tolerance=tolerance,
        patience=patience,
    )  # fmt: skip


def horizon_continuation(
    problem: MotionResidual,
    horizons: Sequence[float],
    start: Float[Tensor, "starts unknowns"] | None = None,
    *,
    max_candidates: int | None = None,
    robust: bool = True,
) -> Float[Tensor, "candidates unknowns"]:
    """Continue starts up to the last horizon that lies within the samples.

    A horizon is skipped if the current fit predicts the next one well enough to be fitted from there; then only the
    best search continues.

    Args:
        problem: Residuals of the whole motion.
        horizons: Ends of the fits, ascending, s.
        start: Initial unconstrained numbers; the unknowns' own starts if not given.
        max_candidates: Number of searches that continue after each horizon, best first, duplicates removed; None keeps
            all.
        robust: If true, outliers are downweighted.
    """
    z = problem.unknowns.start() if start is None else start
    span = float(problem.times[-1])
    ends = [*(horizon for horizon in horizons if horizon < span), span]
    for index, (horizon, next_horizon) in enumerate(pairwise(ends)):
        if index and _predicts(problem.truncate(next_horizon), z[:1]):
            z = z if max_candidates is None else z[:1]
            continue
        optimum = gauss_newton(
            problem.truncate(horizon), z, max_iterations=DEFAULT_SETTINGS.continuation_iterations, robust=robust,
            tolerance=DEFAULT_SETTINGS.continuation_tolerance,
            patience=None if max_candidates is None else DEFAULT_SETTINGS.patience,
        )  # fmt: skip
        z = optimum.z if max_candidates is None else _distinct_candidates(optimum, max_candidates)
    return z


def _predicts(problem: MotionResidual, z: Float[Tensor, "1 unknowns"]) -> bool:
    """Return whether the motion at z comes close to every observation."""
    error = (problem.predictions(z).detach() - problem.observed).flatten(0, -2)
    observed = problem.observed.flatten(0, -2)
    columns = [column[torch.isfinite(column)] for column in observed.unbind(1)]
    extent = math.hypot(*(float(column.max() - column.min()) for column in columns if len(column)))
    return bool((error[torch.isfinite(observed)].abs() < DEFAULT_SETTINGS.prediction_tolerance * extent).all())


def _distinct_candidates(optimum: Optimum, max_candidates: int) -> Float[Tensor, "candidates unknowns"]:
    """Return the best searches, best first, without duplicates and without those that have lost the phase."""
    candidates: list[Tensor] = []
    for row in optimum.cost.argsort().tolist():
        if candidates and float(optimum.cost[row]) > DEFAULT_SETTINGS.max_cost_ratio * float(optimum.cost.min()):
            break
        distances = (float((optimum.z[row] - candidate).abs().max()) for candidate in candidates)
        if all(distance > DEFAULT_SETTINGS.duplicate_distance for distance in distances):
            candidates.append(optimum.z[row])
        if len(candidates) == max_candidates:
            break
    return torch.stack(candidates)


def geometric_horizons(first: float, last: float) -> list[float]:
    """Return horizons from `first` to below `last` with a constant ratio of at most `max_horizon_ratio`."""
    if not first < last:
        return []
    count = math.ceil(math.log(last / first) / math.log(DEFAULT_SETTINGS.max_horizon_ratio))
    return [first * (last / first) ** (k / count) for k in range(count)]
