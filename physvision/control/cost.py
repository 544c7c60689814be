"""Cost functions of controllers: sums of squared residuals of states and controls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from physvision.core import InputError, State, Trajectory
from physvision.physics import Engine

Features = Callable[[State], Tensor]


class Residuals(NamedTuple):
    """Residuals r about a trajectory, with their Jacobians J.

    The cost is Σ weights · r² over all steps and at the end, plus control_weight · |control|². Columns of a Jacobian
    are (δq, δv, δu), or (δq, δv) alone if no residual depends on the control, as at the end. The cost's second
    derivatives are those of 2 Jᵀ weights J alone (Gauss–Newton).

    Attributes:
        running: Residuals of each step, (batch, steps, residuals).
        running_jacobian: Jacobians of each step, (batch, steps, residuals, columns).
        final: Residuals of the final state, (batch, residuals).
        final_jacobian: Jacobian of the final state, (batch, residuals, columns).
        weights: Weights of the squared residuals of each step, (residuals).
        final_weights: Weights of the squared residuals of the final state, (residuals).
        control_weight: Weight of the squared controls.
    """

    running: Tensor
    running_jacobian: Tensor
    final: Tensor
    final_jacobian: Tensor
    weights: Tensor
    final_weights: Tensor
    control_weight: float = 0.0


class Objective(ABC):
    """Base class of cost functions that are sums of squares."""

    @abstractmethod
    def value(self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Float[Tensor, " batch"]:
        """Return the cost of each world; infinite if its simulation failed."""

    @abstractmethod
    def residuals(self, engine: Engine, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Residuals:
        """Return the residuals about a trajectory with their Jacobians."""


@dataclass(frozen=True)
class Cost(Objective):
    """Sum over all steps of |running|², and |final|² of the final state, for any residual functions.

    Attributes:
        running: Residuals (n, residuals) of n steps, from their initial states, controls (n, nu) and indices (n).
        final: Residuals (n, residuals) of n final states; None for none.
    """

    running: Callable[[State, Tensor, Tensor], Tensor]
    final: Callable[[State], Tensor] | None = None

    @override
    def value(self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Float[Tensor, " batch"]:
        steps = torch.arange(trajectory.steps, device=controls.device).repeat(trajectory.batch)
        running = self.running(trajectory[:-1].flatten(), controls.flatten(0, 1), steps)
        total = running.reshape(trajectory.batch, -1).square().sum(1)
        if self.final is not None:
            total = total + self.final(trajectory.final).square().sum(-1)
        return _nan_to_inf(total)

    @override
    def residuals(self, engine: Engine, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Residuals:
        batch, steps = trajectory.batch, trajectory.steps
        starts, indices = trajectory[:-1].flatten(), torch.arange(steps, device=controls.device).repeat(batch)
        count = self.running(trajectory.state(0), controls[:, 0], indices[::steps]).shape[1]
        repeated = indices.repeat_interleave(count)
        rows = _residual_jacobian(
            engine, lambda state, u: self.running(state, u, repeated), count, starts, controls.flatten(0, 1)
        )
        running, jacobian = (value.unflatten(0, (batch, steps)) for value in rows)
        end, final_residuals = trajectory.final, self.final
        if final_residuals is None:
            final = running.new_zeros(batch, 0), running.new_zeros(batch, 0, 2 * engine.nv)
        else:
            count = final_residuals(end).shape[1]
            final = _residual_jacobian(engine, lambda state, _: final_residuals(state), count, end)
        weights, final_weights = (running.new_ones(value.shape[-1]) for value in (running, final[0]))
        return Residuals(running, jacobian, *final, weights, final_weights)


@dataclass(frozen=True)
class Goal(Objective):
    """Cost of features that differ from a target: Σ weights · (features − target)² + control_weight · |control|².

    Attributes:
        features: Features (n, features) of n states.
        target: Target value of each feature.
        weights: Weight of each squared difference at the start of a step, at least 0.
        control_weight: Weight of the squared controls, at least 0.
        final_weights: Weight of each squared difference at the end; `weights` if None.
    """

    features: Features
    target: Float[Tensor, " features"]
    weights: Float[Tensor, " features"]
    control_weight: float
    final_weights: Float[Tensor, " features"] | None = None

    def __post_init__(self) -> None:
        weights = {"weights": self.weights, "final_weights": self.final_weights}
        for name, value in (weights | {"control_weight": torch.tensor(self.control_weight)}).items():
            if value is not None and not bool((value >= 0).all()):
                raise InputError(f"{name}: expected no weight below zero, got {value.tolist()}")

    @override
    def value(self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Float[Tensor, " batch"]:
        squares = self._differences(self.features(trajectory.flatten()), trajectory).square()
        weights, final_weights = self._weights(squares)
        # Without matrix products, whose threads would wait for each other.
        total = (squares[:, :-1] * weights).sum((1, 2)) + (squares[:, -1] * final_weights).sum(1)
        return _nan_to_inf(total + self.control_weight * controls.square().sum((1, 2)))

    @override
    def residuals(self, engine: Engine, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Residuals:
        states, count = trajectory.flatten(), len(self.target)
        features, jacobian = _residual_jacobian(engine, lambda state, _: self.features(state), count, states)
        r, jacobian = self._differences(features, trajectory), jacobian.unflatten(0, (trajectory.batch, -1))
        weights = self._weights(r)
        return Residuals(r[:, :-1], jacobian[:, :-1], r[:, -1], jacobian[:, -1], *weights, self.control_weight)

    def _differences(self, features: Tensor, trajectory: Trajectory) -> Tensor:
        """Return the features of all states less the target, (batch, steps + 1, features)."""
        return (features - self.target.to(features)).unflatten(0, (trajectory.batch, -1))

    def _weights(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights of each step and of the end, in the type of a tensor."""
        weights = self.weights.to(like)
        return weights, weights if self.final_weights is None else self.final_weights.to(like)


def _nan_to_inf(value: Tensor) -> Tensor:
    """Replace values that are not finite by infinity."""
    return value.nan_to_num(torch.inf, torch.inf, torch.inf)


def _residual_jacobian(
    engine: Engine, function: Callable[[State, Tensor], Tensor], count: int, state: State, control: Tensor | None = None
) -> tuple[Float[Tensor, "n residuals"], Float[Tensor, "n residuals displacements"]]:
    """Return residuals and their Jacobians to displacements of position, to velocity and, if given, to the control.

    Each state is repeated once for each residual, so that one call and one backward pass give all rows.
    """
    inputs = (state.q, state.v, state.v[:, :0] if control is None else control)
    q, v, u = (value.unsqueeze(1).expand(-1, count, -1).flatten(0, 1) for value in inputs)
    dq = torch.zeros_like(v)
    leaves = [dq, v] if control is None else [dq, v, u]
    for leaf in leaves:
        leaf.requires_grad_()
    with torch.enable_grad():
        residuals = function(State(engine.integrate(q, dq), v), u)
        selection = _repeated_identity(len(state.q), count, residuals.dtype, residuals.device)
        rows = torch.autograd.grad(residuals, leaves, selection, allow_unused=True, materialize_grads=True)
    return residuals.detach()[::count], torch.cat(rows, -1).unflatten(0, (-1, count))


@lru_cache(maxsize=16)
def _repeated_identity(n: int, count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the identity matrix of a size, n times one below the other."""
    return torch.eye(count, dtype=dtype, device=device).repeat(n, 1)
