"""A motion fitted over a horizon that grows, so that the search never loses the phase.

Over many periods the cost of a wrong frequency has valleys that lead elsewhere. Over the first period it has one; what
is found there tells the phase over the next stretch well enough to go on.
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

_ALIKE = 0.05  # in z, where one is a sensible step: nearer starts lead to the same place
_BEHIND = 10.0  # times the smallest cost: such a search has lost the phase
_NEAR = 1e-2  # share of the cost: nearer need no search come that goes on to the next horizon
_CLOSE = 0.05  # of the extent of what is seen: a tenth of a radian of a swing
_PATIENCE = 3  # iterations for which other starts are waited for


def fit_growing(
    problem: MotionResidual,
    horizons: Sequence[float],
    start: Float[Tensor, "starts unknowns"] | None = None,
    *,
    keep: int | None = None,
    iterations: int = 20,
    robust: bool = True,
    tolerance: float = 1e-8,
) -> Optimum:
    """Fit up to each of the horizons, each from what was found up to the one before, and then all samples.

    Args:
        problem: what is fitted.
        horizons: seconds, growing; all samples follow as the last.
        start: one or more; where the unknowns begin if not given.
        keep: see `grown`.
        iterations: at most so many at each horizon but the last, which has three times as many.
        robust: whether outliers are held down.
        tolerance: of the last fit; see `gauss_newton`.
    """
    z = grown(problem, horizons, start, keep=keep, iterations=iterations, robust=robust)
    patience = None if keep is None else _PATIENCE
    return gauss_newton(problem, z, iterations=3 * iterations, robust=robust, tolerance=tolerance, patience=patience)


def grown(
    problem: MotionResidual,
    horizons: Sequence[float],
    start: Float[Tensor, "starts unknowns"] | None = None,
    *,
    keep: int | None = None,
    iterations: int = 20,
    robust: bool = True,
) -> Float[Tensor, "kept unknowns"]:
    """Where starts lead up to the last of the horizons; those beyond the samples count for nothing.

    A horizon is left out if what was found predicts the next one well enough to be fitted from there: no other start
    leads to anything else then.

    Args:
        problem: what is fitted.
        horizons: seconds, growing.
        start: one or more; where the unknowns begin if not given.
        keep: so many of the starts, the best ones, go on after each horizon, those that meet as one; all if not given.
        iterations: at most so many at each horizon.
        robust: whether outliers are held down.
    """
    z = problem.unknowns.start() if start is None else start
    span = float(problem.times[-1])
    ends = [*(horizon for horizon in horizons if horizon < span), span]
    for number, (horizon, further) in enumerate(pairwise(ends)):
        if number and _foreseen(problem.until(further), z[:1]):
            z = z if keep is None else z[:1]
            continue
        part = problem.until(horizon)
        patience = None if keep is None else _PATIENCE
        found = gauss_newton(part, z, iterations=iterations, robust=robust, tolerance=_NEAR, patience=patience)
        z = found.z if keep is None else _best(found, keep)
    return z


def _foreseen(problem: MotionResidual, z: Float[Tensor, "one unknowns"]) -> bool:
    """Whether a motion leads close to all that is seen."""
    off = (problem.predicted(z).detach() - problem.seen).flatten(0, -2)
    seen = problem.seen.flatten(0, -2)
    whole = [column[torch.isfinite(column)] for column in seen.unbind(1)]
    extent = math.hypot(*(float(column.max() - column.min()) for column in whole if len(column)))
    missed = off[torch.isfinite(seen)]
    return bool((missed.abs() < _CLOSE * extent).all())


def _best(found: Optimum, keep: int) -> Float[Tensor, "kept unknowns"]:
    """The best of several searches, the best first, no two of them at the same place, none that lags far behind."""
    kept: list[Tensor] = []
    for row in found.cost.argsort().tolist():
        if kept and float(found.cost[row]) > _BEHIND * float(found.cost.min()):
            break
        if all(float((found.z[row] - other).abs().max()) > _ALIKE for other in kept):
            kept.append(found.z[row])
        if len(kept) == keep:
            break
    return torch.stack(kept)


def doubling(first: float, last: float) -> list[float]:
    """Horizons from the first on up to below the last, all by the same factor apart, which is at most 2.2."""
    if not first < last:
        return []
    count = math.ceil(math.log(last / first) / math.log(2.2))
    return [first * (last / first) ** (k / count) for k in range(count)]
