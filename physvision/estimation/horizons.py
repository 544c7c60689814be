"""A motion fitted over a horizon that grows, so that the search never loses the phase.

Over many periods the cost of a wrong frequency has valleys that lead elsewhere. Over the first period it has one; what
is found there tells the phase over the next stretch well enough to go on.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation.gauss_newton import Optimum, gauss_newton
from physvision.estimation.residual import MotionResidual


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
    """Fit up to each of the horizons, each from what was found up to the one before.

    Args:
        problem: what is fitted.
        horizons: seconds, growing; all samples follow as the last.
        start: one or more; where the unknowns begin if not given.
        keep: so many of the starts, the best ones, go on after each horizon; all if not given.
        iterations: at most so many at each horizon but the last, which has three times as many.
        robust: whether outliers are held down.
        tolerance: of the last fit; see `gauss_newton`.

    Returns:
        the last fit; its course is that of all horizons where no start was dropped, its own otherwise.
    """
    z = problem.unknowns.start() if start is None else start
    course = [z[None]]
    for horizon in horizons:
        if horizon >= float(problem.times[-1]):
            break
        found = gauss_newton(problem.until(horizon), z, iterations=iterations, robust=robust, tolerance=1e-4)
        z = found.z
        course.append(found.course[1:])
        if keep is not None and len(z) > keep:
            z = z[found.cost.argsort()[:keep]]
            course = [z[None]]
    found = gauss_newton(problem, z, iterations=3 * iterations, robust=robust, tolerance=tolerance)
    return Optimum(found.z, found.cost, found.converged, torch.cat([*course, found.course[1:]]))


def doubling(first: float, last: float) -> list[float]:
    """Horizons from the first on, each twice the one before, below the last."""
    horizons = []
    while first < last:
        horizons.append(first)
        first *= 2
    return horizons
