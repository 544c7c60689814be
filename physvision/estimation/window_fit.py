"""Motions of an engine that are closest to many short windows of observations, with unknowns that all windows share.

Each window w has its own initial state x_w, since errors of a long motion grow, exponentially where it is chaotic; all
windows share unknowns z such as restitution or gravity, with a Gaussian prior. The most likely ones minimize

    Σ_w Σ_k ρ((y_wk − ŷ_k(x_w, z)) / σ) + ½ |z|²,

with z in prior standard deviations, and ρ quadratic up to a limit and linear beyond. The normal equations have an
arrow's shape: with J_w = (X_w, Z_w) the derivatives of the weighted residuals r_w, A_w = X_wᵀ X_w and B_w = X_wᵀ Z_w,
the states are eliminated one window at a time,

    S = 1 + Σ_w (Z_wᵀ Z_w − B_wᵀ A_w⁻¹ B_w),      dz = −S⁻¹ (z + Σ_w (Z_wᵀ r_w − B_wᵀ A_w⁻¹ X_wᵀ r_w)),
    dx_w = −A_w⁻¹ (X_wᵀ r_w + B_w dz),

and at the minimum S⁻¹ is the covariance of z, A_w⁻¹ + K_w S⁻¹ K_wᵀ that of x_w, where K_w = −A_w⁻¹ B_w. Derivatives are
finite differences: an engine has no forward mode, but simulates all perturbed windows at once. They are those of the
motion with its impacts, whose times move with the unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from physvision.core import Coordinates, State
from physvision.physics.engine import Engine

Leaves = Callable[[Tensor], Mapping[str, Tensor]]


@dataclass(frozen=True)
class WindowFitSettings:
    """Tuning numbers of fits to windows.

    Attributes:
        outlier: Residual, in standard deviations, from which its cost grows linearly. Raising it trusts outliers more.
        step: Step of finite differences, in the unknowns' own scales.
        damping: Initial damping, relative to the diagonal. Raising it makes first steps more careful.
        velocity_scale: Change of a velocity that is as large as a change of a position by one, 1/s.
    """

    outlier: float = 3.0
    step: float = 1e-4
    damping: float = 1e-2
    velocity_scale: float = 10.0


@dataclass(frozen=True)
class WindowEstimate:
    """States of windows and shared unknowns at a minimum.

    Attributes:
        x: Initial positions and velocities of the observed coordinates of each window.
        z: Shared unknowns, in prior standard deviations.
        cost: Cost of each window, without the prior.
        residuals: Predicted less observed positions in standard deviations; zero where nothing is observed.
        motion: Positions and velocities of all coordinates in all frames of each window.
        motion_jacobian: Derivative of the observed coordinates' positions and velocities with respect to x and z.
        state_covariance: Covariance of x at fixed z.
        gain: Derivative of x with respect to z at the minimum, K_w above.
        covariance: Covariance of z.
    """

    x: Float[Tensor, "windows unknowns"]
    z: Float[Tensor, " shared"]
    cost: Float[Tensor, " windows"]
    residuals: Float[Tensor, "windows times numbers"]
    motion: tuple[Tensor, Tensor]
    motion_jacobian: Float[Tensor, "windows times phase columns"]
    state_covariance: Float[Tensor, "windows unknowns unknowns"]
    gain: Float[Tensor, "windows unknowns shared"]
    covariance: Float[Tensor, "shared shared"]

    def joint_covariance(self) -> Float[Tensor, "windows columns columns"]:
        """Covariance of each window's state and the shared unknowns together."""
        cross = self.gain @ self.covariance
        states = self.state_covariance + cross @ self.gain.mT
        shared = self.covariance.expand(len(states), -1, -1)
        return torch.cat([torch.cat([states, cross], 2), torch.cat([cross.mT, shared], 2)], 1)


@dataclass(frozen=True)
class WindowProblem:
    """Windows of observations of an engine's motion.

    Attributes:
        engine: Engine, one step a frame.
        leaves: Function from shared unknowns, one row a world, to leaves of the engine's properties.
        observed: Positions of the coordinates that are observed, NaN where they are not.
        std: Standard deviations of these positions.
        coordinates: Indices of these coordinates among the engine's; all others stay at zero.
        space: Meaning of the observed positions; differences of angles are taken the shorter way around.
        low: Smallest values of the shared unknowns.
        high: Largest values of the shared unknowns.
        settings: Tuning numbers.
    """

    engine: Engine
    leaves: Leaves
    observed: Float[Tensor, "windows times numbers"]
    std: Float[Tensor, "windows times numbers"]
    coordinates: tuple[int, ...]
    space: Coordinates
    low: Float[Tensor, " shared"]
    high: Float[Tensor, " shared"]
    settings: WindowFitSettings = WindowFitSettings()

    def select(self, rows: Tensor) -> WindowProblem:
        """Keep some of the windows."""
        return replace(self, observed=self.observed[rows], std=self.std[rows])

    def rollout(self, x: Tensor, z: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Simulate worlds from initial states, with shared unknowns for each; positions and velocities."""
        count = len(self.coordinates)
        q, v = (x.new_zeros(len(x), self.engine.nq) for _ in range(2))
        q[:, self.coordinates], v[:, self.coordinates] = x[:, :count], x[:, count:]
        path = self.engine.rollout(State(q, v), steps, properties=self.leaves(z))
        return path.q.nan_to_num(1e6), path.v.nan_to_num(1e6)

    def residuals(self, q: Tensor) -> Tensor:
        """Weighted differences of simulated positions (…, windows, times, nq) from the observed ones."""
        error = self.space.unwind(q[..., self.coordinates] - self.observed.nan_to_num(0.0))
        return torch.where(self.observed.isfinite(), error / self.std, 0.0)

    def cost(self, residuals: Tensor) -> Tensor:
        """Cost of each window: half of squares, linear beyond the limit."""
        size, limit = residuals.abs(), self.settings.outlier
        return torch.where(size <= limit, 0.5 * size.square(), limit * size - 0.5 * limit**2).sum((-2, -1))

    def weights(self, residuals: Tensor) -> Tensor:
        """Factors of residuals whose squares are those of the cost's second-order approximation."""
        return (self.settings.outlier / residuals.abs().clamp_min(self.settings.outlier)).sqrt()

    def costs_of(self, x: Float[Tensor, "candidates windows unknowns"], z: Tensor) -> Tensor:
        """Cost of each window from several initial states."""
        worlds = x.flatten(0, 1)
        q = self.rollout(worlds, z.expand(len(worlds), -1), self.observed.shape[1] - 1)[0]
        return self.cost(self.residuals(q.unflatten(0, x.shape[:2])))

    def linearize(self, x: Tensor, z: Tensor, shared: bool) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor, Tensor]:
        """Motion, weighted residuals, and the Jacobians of residuals and of the motion, with respect to x, then z."""
        windows, unknowns = x.shape
        scale = x.new_ones(unknowns)
        scale[unknowns // 2 :] = self.settings.velocity_scale
        # At an upper bound the difference is taken downwards.
        sign = torch.where(z + self.settings.step > self.high, -1.0, 1.0)
        steps = self.settings.step * torch.cat([scale, sign] if shared else [scale])
        offsets = torch.cat([x.new_zeros(1, len(steps)), steps.diag()])
        worlds = x + offsets[:, None, :unknowns]
        values = (z + offsets[:, unknowns:] if shared else z.expand(len(offsets), -1))[:, None].expand(-1, windows, -1)
        q, v = self.rollout(worlds.flatten(0, 1), values.flatten(0, 1), self.observed.shape[1] - 1)
        q, v = (part.unflatten(0, (-1, windows)) for part in (q, v))
        residuals = self.residuals(q)
        weight = self.weights(residuals[0])
        phase = torch.cat([q[..., self.coordinates], v[..., self.coordinates]], -1)
        jacobian, motion_jacobian = (
            ((part[1:] - part[0]).movedim(0, -1) / steps).nan_to_num(0.0) for part in (weight * residuals, phase)
        )
        return (q[0], v[0]), residuals[0], jacobian.flatten(1, 2), motion_jacobian

    def fit(self, x: Tensor, z: Tensor, iterations: int, covariance: Tensor | None = None) -> WindowEstimate:
        """Improve states, and the shared unknowns where their `covariance` is not given.

        Args:
            x: First guesses of the windows' states.
            z: First guess of the shared unknowns, or their values.
            iterations: Number of Levenberg–Marquardt steps.
            covariance: Covariance of the shared unknowns that other windows have determined; z then stays.
        """
        is_joint = covariance is None
        damping = x.new_full((1 if is_joint else len(x), 1), self.settings.damping)
        current = self.linearize(x, z, is_joint)
        cost = self.cost(current[1])
        for _ in range(iterations):
            trial_x, trial_z = self._step(x, z, current, damping, is_joint)
            trial = self.linearize(trial_x, trial_z, is_joint)
            trial_cost = self.cost(trial[1])
            if is_joint:
                prior = 0.5 * (trial_z.square().sum() - z.square().sum())
                improved = (trial_cost.sum() + prior < cost.sum())[None]
                z = trial_z if bool(improved) else z
            else:
                improved = trial_cost < cost
            cost_decrease = float((cost - trial_cost)[improved.expand_as(cost)].sum())
            current = _select_trial(improved, trial, current)
            x, cost = torch.where(improved[:, None], trial_x, x), torch.where(improved, trial_cost, cost)
            damping = torch.where(improved[:, None], 0.1 * damping, 10.0 * damping).clamp(1e-8, 1e8)
            if bool(improved.any()) and cost_decrease < 1e-4 * float(cost.sum()):
                break
        return self._estimate(x, z, cost, covariance)

    def _step(self, x: Tensor, z: Tensor, current: tuple, damping: Tensor, is_joint: bool) -> tuple[Tensor, Tensor]:
        """Damped step of the states and, jointly, of the shared unknowns."""
        weighted = (self.weights(current[1]) * current[1]).flatten(1)
        jacobian, unknowns = current[2], x.shape[1]
        normal, gradient = jacobian.mT @ jacobian, (jacobian.mT @ weighted[..., None])[..., 0]
        normal = normal + torch.diag_embed(damping * normal.diagonal(dim1=1, dim2=2) + 1e-9)
        inner = torch.linalg.inv_ex(normal[:, :unknowns, :unknowns]).inverse
        change_z = torch.zeros_like(z)
        state_gradient = gradient[:, :unknowns]
        if is_joint:
            cross = normal[:, :unknowns, unknowns:]
            schur = torch.eye(len(z)).to(z) + (normal[:, unknowns:, unknowns:] - cross.mT @ inner @ cross).sum(0)
            shared_gradient = z + (gradient[:, unknowns:] - (cross.mT @ inner @ state_gradient[..., None])[..., 0]).sum(
                0
            )
            change_z = -torch.linalg.solve_ex(schur, shared_gradient).result.nan_to_num(0.0).clamp(-1.0, 1.0)
            change_z = (z + change_z).clamp(self.low, self.high) - z
            state_gradient = state_gradient + cross @ change_z
        change = -(inner @ state_gradient[..., None])[..., 0]
        return x + torch.where(change.isfinite().all(1, True), change, 0.0), z + change_z

    def _estimate(self, x: Tensor, z: Tensor, cost: Tensor, covariance: Tensor | None) -> WindowEstimate:
        # Shared unknowns that are certain need no derivatives.
        is_certain = covariance is not None and not bool(covariance.any())
        motion, residuals, jacobian, motion_jacobian = self.linearize(x, z, not is_certain)
        unknowns = x.shape[1]
        if is_certain:
            jacobian, motion_jacobian = (pad(part, (0, len(z))) for part in (jacobian, motion_jacobian))
        normal = jacobian.mT @ jacobian + 1e-9 * torch.eye(jacobian.shape[-1]).to(x)
        inner = torch.linalg.pinv(normal[:, :unknowns, :unknowns], hermitian=True)
        cross = normal[:, :unknowns, unknowns:]
        gain = -inner @ cross
        schur = torch.eye(len(z)).to(z) + (normal[:, unknowns:, unknowns:] + cross.mT @ gain).sum(0)
        shared = torch.linalg.inv(schur) if covariance is None else covariance
        return WindowEstimate(x, z, cost, residuals, motion, motion_jacobian, inner, gain, shared)


def _select_trial(improved: Tensor, trial: tuple, current: tuple) -> tuple:
    """Select a trial's linearization for the windows that it improved, and the current one for the others."""
    motion = tuple(_rows(improved, new, old) for new, old in zip(trial[0], current[0], strict=True))
    return (motion, *(_rows(improved, new, old) for new, old in zip(trial[1:], current[1:], strict=True)))


def _rows(improved: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return torch.where(improved.reshape(-1, *(1,) * (new.dim() - 1)), new, old)
