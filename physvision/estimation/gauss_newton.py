"""Nonlinear least squares: Gauss–Newton with Levenberg–Marquardt damping, for many starts at once.

Each start has its own damping and accepts only steps that decrease its cost. Outliers are downweighted by
1 / (1 + (r / c s)²), with r a sample's residual and s the residual scale: the cost is then Cauchy's,
c² s² / 2 · log(1 + (r / c s)²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.estimation.residual import Linearization, Residual
from physvision.estimation.settings import DEFAULT_SETTINGS, EstimationSettings

Residuals = Float[Tensor, "starts samples numbers"]
_NORMAL_MEDIAN = 0.6745  # median of |x| for a standard normal x


@dataclass(frozen=True)
class Optimum:
    """Result of a multi-start search.

    Attributes:
        z: Unconstrained numbers at the end of each search, (starts, unknowns).
        cost: Half the sum of squares, priors included; robust costs share one residual scale, (starts,).
        converged: True where the last step decreased the cost by less than the tolerance, (starts,).
        history: z after each iteration, the start first, (iterations + 1, starts, unknowns).
        linearization: Residuals and Jacobian at z.
    """

    z: Float[Tensor, "starts unknowns"]
    cost: Float[Tensor, " starts"]
    converged: Bool[Tensor, " starts"]
    history: Float[Tensor, "iterations starts unknowns"]
    linearization: Linearization

    @property
    def best_start(self) -> int:
        """Index of the start with the smallest final cost."""
        return int(self.cost.nan_to_num(nan=math.inf).argmin())

    @property
    def best_z(self) -> Float[Tensor, " unknowns"]:
        """Unconstrained numbers of the start with the smallest final cost."""
        return self.z[self.best_start]

    @property
    def best_linearization(self) -> Linearization:
        """Residuals and Jacobian of the start with the smallest final cost, as a batch of one."""
        row = slice(self.best_start, self.best_start + 1)
        return self.linearization[0][row], self.linearization[1][row]


def gauss_newton(
    problem: Residual,
    start: Float[Tensor, "starts unknowns"] | None = None,
    *,
    max_iterations: int = 50,
    tolerance: float = 1e-10,
    robust: bool = False,
    damping: float = 1e-3,
    patience: int | None = None,
    linearization: Linearization | None = None,
    settings: EstimationSettings = DEFAULT_SETTINGS,
) -> Optimum:
    """Minimize the sum of squared residuals from one or more starts.

    Args:
        problem: Residuals to minimize.
        start: Initial unconstrained numbers; the unknowns' own starts if not given.
        max_iterations: Maximum number of iterations.
        tolerance: Relative decrease of the cost below which a search has converged.
        robust: If true, outliers are downweighted by Cauchy's loss.
        damping: Initial damping, relative to the diagonal of the normal matrix; 0 for undamped Gauss–Newton steps as
            long as they decrease the cost.
        patience: Iterations after which the search stops once its best start has converged; it stops at once if only
            noise is left there. None waits for all starts.
        linearization: Residuals and Jacobian at the start, if already computed.
        settings: Tuning numbers of the solver.
    """
    z = problem.unknowns.start() if start is None else start.detach().clone()
    damping_level = torch.full((len(z),), float(damping), dtype=z.dtype, device=z.device)
    converged = torch.zeros(len(z), dtype=torch.bool, device=z.device)
    history = [z]
    residuals, jacobian = problem.linearize(z) if linearization is None else linearization
    scale = residual_scale(residuals) if robust else None
    cost = _cost(problem, z, residuals, scale, settings)
    iterations_since_convergence = 0
    for _ in range(max_iterations):
        if scale is not None:
            scale = residual_scale(residuals)
            cost = _cost(problem, z, residuals, scale, settings)
        trial = z + _damped_step(problem, z, (residuals, jacobian), scale, damping_level, settings)
        with torch.no_grad():
            trial_cost = _cost(problem, trial, problem.residual(trial), scale, settings)
        is_small_decrease = (trial_cost <= cost) & ((cost - trial_cost).abs() <= tolerance * cost)
        converged = converged | is_small_decrease | (cost <= 1e-28 * max(1, residuals[0].numel()))
        accepted = (trial_cost < cost) & ~converged
        rejected_damping = (settings.damping_factor * damping_level).clamp(min=settings.min_rejected_damping)
        damping_level = torch.where(accepted, damping_level / settings.damping_factor, rejected_damping)
        converged = converged | (damping_level > settings.max_damping)
        z = torch.where(accepted[:, None], trial, z)
        history.append(z)
        best_start = int(torch.where(accepted, trial_cost, cost).argmin())
        if bool(converged.all()):
            break
        iterations_since_convergence = iterations_since_convergence + 1 if bool(converged[best_start]) else 0
        # Residuals are in standard deviations of the expected noise, which alone has a cost of half a unit a residual;
        # a cost of less than one unit a residual leaves nothing that another start could explain.
        exceeds_noise = float(cost[best_start]) > float((residuals[best_start] != 0).sum())
        if patience is not None and iterations_since_convergence > (patience if exceeds_noise else 0):
            break
        if bool(accepted.any()):
            residuals, jacobian = problem.linearize(z)
            cost = _cost(problem, z, residuals, scale, settings)
    if scale is not None:
        # Each search has its own residual scale; a comparison of their costs needs a shared one.
        cost = _cost(problem, z, residuals, scale.min().expand(len(z)), settings)
    return Optimum(z, cost, converged & torch.isfinite(cost), torch.stack(history), (residuals, jacobian))


def residual_scale(residuals: Residuals) -> Float[Tensor, " starts"]:
    """Estimate the standard deviation of residuals from the median length of a sample's residual."""
    lengths = residuals.square().mean(-1).sqrt().flatten(1)
    observed = torch.where(lengths == 0, torch.nan, lengths)
    # Median length of a vector of n standard normal numbers, divided by √n.
    n = residuals.shape[-1]
    median = _NORMAL_MEDIAN if n == 1 else math.sqrt(max(n - 2 / 3, 0.5) / n)
    return (observed.nanmedian(1).values / median).nan_to_num(nan=0.0).clamp(min=1e-12)


def robust_weights(
    residuals: Residuals, scale: Tensor | None, settings: EstimationSettings = DEFAULT_SETTINGS
) -> Float[Tensor, "starts samples"]:
    """Return Cauchy's weight of each sample; one where `scale` is None."""
    if scale is None:
        return residuals.new_ones(residuals.shape[:2])
    squared_ratio = residuals.square().mean(-1) / (settings.cauchy_scale * scale[:, None]).square()
    return 1 / (1 + squared_ratio)


def _cost(
    problem: Residual, z: Tensor, residuals: Tensor, scale: Tensor | None, settings: EstimationSettings
) -> Float[Tensor, " starts"]:
    square = residuals.square()
    if scale is None:
        total = square.sum((1, 2)) / 2
    else:
        squared_scale = (settings.cauchy_scale * scale[:, None]).square()
        total = (residuals.shape[-1] * squared_scale / 2 * torch.log1p(square.mean(-1) / squared_scale)).sum(1)
    total = total + problem.unknowns.prior_residuals(z)[0].square().sum(1) / 2
    return torch.where(torch.isfinite(total), total, torch.inf)


def _damped_step(
    problem: Residual,
    z: Tensor,
    linearization: Linearization,
    scale: Tensor | None,
    damping: Tensor,
    settings: EstimationSettings,
) -> Tensor:
    """Return the Levenberg–Marquardt step; zero where numbers are not finite."""
    gradient, matrix = normal_equations(problem, z, linearization, scale, settings)
    diagonal = matrix.diagonal(dim1=1, dim2=2)
    floor = 1e-12 * diagonal.amax(1, keepdim=True).clamp(min=1e-300)
    matrix = matrix + torch.diag_embed(damping[:, None] * diagonal + floor)
    step = -torch.linalg.solve_ex(matrix, gradient.unsqueeze(-1)).result.squeeze(-1)
    step = torch.where(torch.isfinite(step).all(1, keepdim=True), step, 0.0)
    # Clamped one by one: an unknown at its bound, where its derivative vanishes, must not shorten the others' steps.
    return step.clamp(-settings.max_step, settings.max_step)


def normal_equations(
    problem: Residual,
    z: Tensor,
    linearization: Linearization,
    scale: Tensor | None = None,
    settings: EstimationSettings = DEFAULT_SETTINGS,
) -> tuple[Tensor, Tensor]:
    """Return the gradient Jᵀ W r and the normal matrix Jᵀ W J, priors included."""
    residuals, jacobian = linearization
    weight = robust_weights(residuals, scale, settings)[..., None, None]
    weighted = (weight * jacobian).flatten(1, 2)
    gradient = (weighted.mT @ residuals.flatten(1).unsqueeze(-1)).squeeze(-1)
    matrix = weighted.mT @ jacobian.flatten(1, 2)
    prior, derivative = problem.unknowns.prior_residuals(z)
    return gradient + prior * derivative, matrix + torch.diag_embed(derivative.square())
