"""Nonlinear least squares: Gauss–Newton with Levenberg's and Marquardt's damping, many starts at once.

Each start has a damping of its own and takes only steps that make its cost smaller. Outliers are held down by weights
1 / (1 + (r / c s)²) with r a sample's residual and s their usual size: the cost is then Cauchy's,
c² s² / 2 · log(1 + (r / c s)²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.estimation.residual import Linear, Residual

_CAUCHY = 2.385  # 95 % as good as least squares where there are no outliers
_LARGEST_STEP = 2.0  # in z, where one is a sensible step


@dataclass(frozen=True)
class Optimum:
    """Where a search led, for each start.

    Attributes:
        z: the numbers found, (starts, unknowns).
        cost: half the sum of squares, outliers held down from the same size on, what was known beforehand included,
            (starts,).
        converged: whether no step made it smaller any more by a share of the tolerance, (starts,).
        course: z after each iteration, the start first, (iterations + 1, starts, unknowns).
        linear: the residuals at z, and their derivatives.
    """

    z: Float[Tensor, "starts unknowns"]
    cost: Float[Tensor, " starts"]
    converged: Bool[Tensor, " starts"]
    course: Float[Tensor, "iterations starts unknowns"]
    linear: Linear

    @property
    def best(self) -> int:
        """The start that led to the smallest cost."""
        return int(self.cost.nan_to_num(nan=math.inf).argmin())


def gauss_newton(
    problem: Residual,
    start: Float[Tensor, "starts unknowns"] | None = None,
    *,
    iterations: int = 50,
    tolerance: float = 1e-10,
    robust: bool = False,
    damping: float = 1e-3,
    held: Bool[Tensor, " unknowns"] | None = None,
    patience: int | None = None,
    linear: Linear | None = None,
) -> Optimum:
    """Make the residuals small.

    Args:
        problem: what they are.
        start: where to begin; where the unknowns begin if not given.
        iterations: at most so many.
        tolerance: where the next step would make the cost fall by a smaller share of itself a search has converged.
        robust: whether outliers are held down.
        damping: at first, a share of each diagonal element; 0 for Gauss–Newton's steps as long as they succeed.
        held: unknowns that stay as they are.
        patience: so many iterations after the best of all starts has converged the others are given up, at once if it
            leaves no more than noise; None for never.
        linear: the residuals where it begins, and their derivatives, if they are known already.
    """
    z = problem.unknowns.start() if start is None else start.detach().clone()
    moving = torch.ones(z.shape[1], dtype=torch.bool) if held is None else ~held
    level = torch.full((len(z),), float(damping), dtype=z.dtype, device=z.device)
    converged = torch.zeros(len(z), dtype=torch.bool, device=z.device)
    course = [z]
    missed, slopes = problem.linearize(z) if linear is None else linear
    scale = residual_size(missed) if robust else None
    cost = _cost(problem, z, missed, scale)
    waited = 0
    for _ in range(iterations):
        if scale is not None:
            scale = residual_size(missed)
            cost = _cost(problem, z, missed, scale)
        step = _step(problem, z, missed, slopes, scale, level, moving)
        trial = z + step
        with torch.no_grad():
            trial_cost = _cost(problem, trial, problem.residual(trial), scale)
        small = (cost - trial_cost).abs() <= tolerance * cost
        converged = converged | (small & (trial_cost <= cost)) | (cost <= 1e-28 * max(1, missed[0].numel()))
        better = (trial_cost < cost) & ~converged
        level = torch.where(better, level / 10, (10 * level).clamp(min=1e-6))
        # No direction leads down any more: the minimum is reached as far as rounding lets it.
        converged = converged | (level > 1e10)
        z = torch.where(better[:, None], trial, z)
        course.append(z)
        best = int(torch.where(better, trial_cost, cost).argmin())
        waited = waited + 1 if bool(converged[best]) else 0
        # Weights are one over what is expected of the noise: half of each square is what it leaves.
        noisy = float(cost[best]) > float((missed[best] != 0).sum())
        if bool(converged.all()) or (patience is not None and waited > (patience if noisy else 0)):
            break
        if bool(better.any()):
            missed, slopes = problem.linearize(z)
            cost = _cost(problem, z, missed, scale)
    if scale is not None:
        # Each search has its own idea of what an outlier is; to be compared they need one.
        cost = _cost(problem, z, missed, scale.min().expand(len(z)))
    return Optimum(z, cost, converged & torch.isfinite(cost), torch.stack(course), (missed, slopes))


def residual_size(missed: Float[Tensor, "starts samples numbers"]) -> Float[Tensor, " starts"]:
    """The usual size of a sample's residual a number: from the median, which outliers do not move."""
    sizes = missed.square().mean(-1).sqrt().flatten(1)
    seen = torch.where(sizes == 0, torch.nan, sizes)
    # The median length of a vector of n normal numbers, each of deviation one, over √n.
    n = missed.shape[-1]
    usual = 0.6745 if n == 1 else math.sqrt(max(n - 2 / 3, 0.5) / n)
    return (seen.nanmedian(1).values / usual).nan_to_num(nan=0.0).clamp(min=1e-12)


def robust_weights(missed: Float[Tensor, "starts samples numbers"], scale: Tensor | None) -> Tensor:
    """How much each sample counts, (starts, samples): one, less for outliers."""
    if scale is None:
        return missed.new_ones(missed.shape[:2])
    share = missed.square().mean(-1) / (_CAUCHY * scale[:, None]).square()
    return 1 / (1 + share)


def _cost(problem: Residual, z: Tensor, missed: Tensor, scale: Tensor | None) -> Tensor:
    square = missed.square()
    if scale is None:
        total = square.sum((1, 2)) / 2
    else:
        unit = (_CAUCHY * scale[:, None]).square()
        total = (missed.shape[-1] * unit / 2 * torch.log1p(square.mean(-1) / unit)).sum(1)
    total = total + problem.unknowns.known(z)[0].square().sum(1) / 2
    return torch.where(torch.isfinite(total), total, torch.inf)


def _step(
    problem: Residual, z: Tensor, missed: Tensor, slopes: Tensor, scale: Tensor | None, level: Tensor, moving: Tensor
) -> Tensor:
    """The damped step; none for unknowns that are held, nor where numbers are not finite."""
    gradient, matrix = normal_equations(problem, z, missed, slopes, scale)
    gradient = torch.where(moving, gradient, 0.0)
    matrix = torch.where(moving[:, None] & moving, matrix, 0.0)
    diagonal = matrix.diagonal(dim1=1, dim2=2)
    floor = 1e-12 * diagonal.amax(1, keepdim=True).clamp(min=1e-300)
    matrix = matrix + torch.diag_embed(level[:, None] * diagonal + floor + (~moving).to(z))
    step = -torch.linalg.solve_ex(matrix, gradient.unsqueeze(-1)).result.squeeze(-1)
    step = torch.where(torch.isfinite(step).all(1, keepdim=True), step, 0.0)
    # One by one: an unknown that runs into its bound, where it has no slope any more, must not hold the others back.
    return step.clamp(-_LARGEST_STEP, _LARGEST_STEP)


def normal_equations(
    problem: Residual, z: Tensor, missed: Tensor, slopes: Tensor, scale: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Jᵀ W r and Jᵀ W J, what was known beforehand included."""
    weight = robust_weights(missed, scale)[..., None, None]
    flat = (weight * slopes).flatten(1, 2)
    gradient = (flat.mT @ missed.flatten(1).unsqueeze(-1)).squeeze(-1)
    matrix = flat.mT @ slopes.flatten(1, 2)
    known, slope = problem.unknowns.known(z)
    return gradient + known * slope, matrix + torch.diag_embed(slope.square())
