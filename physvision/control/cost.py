"""What a controller makes small: sums of squares of what states and controls should not be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.core import InputError, State, Trajectory
from physvision.physics import Engine

Running = Callable[[State, Tensor, Tensor], Tensor]
Final = Callable[[State], Tensor]


@dataclass(frozen=True)
class Cost:
    """The sum over all steps of |running|², and |final|² of the last state.

    Attributes:
        running: residuals (n, r) of n steps: of the states at their start, the controls (n, nu) held over them, and
            their numbers (n), counted from 0. `goal` makes a usual one.
        final: residuals (n, r) of n last states; none if not given.
    """

    running: Running
    final: Final | None = None

    def value(self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Float[Tensor, " batch"]:
        """The cost of each world; infinite where it failed."""
        states, steps = _starts(trajectory), _numbers(trajectory)
        total = (
            self.running(states, controls.flatten(0, 1), steps)
            .square()
            .sum(-1)
            .unflatten(0, (-1, trajectory.steps))
            .sum(1)
        )
        if self.final is not None:
            total = total + self.final(trajectory.final).square().sum(-1)
        return total.nan_to_num(torch.inf, torch.inf, torch.inf)

    def expanded(self, engine: Engine, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Expanded:
        """Derivatives of the cost about a trajectory, second ones without those of the residuals (Gauss–Newton)."""
        batch, steps = trajectory.batch, trajectory.steps
        numbers = _numbers(trajectory)
        residual, jacobian = _differentiated(
            engine, _starts(trajectory), controls.flatten(0, 1), lambda state, u: self.running(state, u, numbers)
        )
        gradient, hessian = _gauss_newton(residual, jacobian)
        last = trajectory.final
        if self.final is None:
            n = 2 * engine.nv
            final_x, final_xx = gradient.new_zeros(batch, n), gradient.new_zeros(batch, n, n)
        else:
            ends = self.final
            residual, jacobian = _differentiated(engine, last, controls[:, -1], lambda state, _: ends(state))
            final_x, final_xx = _gauss_newton(residual, jacobian[..., : 2 * engine.nv])
        return Expanded(gradient.unflatten(0, (batch, steps)), hessian.unflatten(0, (batch, steps)), final_x, final_xx)


@dataclass(frozen=True)
class Expanded:
    """A cost's derivatives to (δq, δv, δu) of each step, (batch, steps, …), and to (δq, δv) of the end, (batch, …)."""

    gradient: Tensor
    hessian: Tensor
    final_gradient: Tensor
    final_hessian: Tensor


def goal(
    features: Callable[[State], Tensor],
    wanted: Float[Tensor, " features"],
    weights: Float[Tensor, " features"],
    effort: float,
) -> Running:
    """Residuals whose squares sum to Σ weights · (features − wanted)² + effort · |control|².

    Args:
        features: of states: (n, features).
        wanted: what they should be.
        weights: of each square, at least 0.
        effort: weight of the squares of the controls, at least 0.
    """
    if bool((weights < 0).any()) or effort < 0:
        raise InputError(f"weights and effort: expected none below zero, got {weights.tolist()} and {effort}")

    def residuals(
        state: State, control: Float[Tensor, "n nu"], step: Int[Tensor, " n"]
    ) -> Float[Tensor, "n residuals"]:
        missed = (features(state) - wanted.to(state.q)) * weights.to(state.q).sqrt()
        return torch.cat([missed, control * effort**0.5], 1)

    return residuals


def _starts(trajectory: Trajectory) -> State:
    return State(trajectory.q[:, :-1].flatten(0, 1), trajectory.v[:, :-1].flatten(0, 1))


def _numbers(trajectory: Trajectory) -> Int[Tensor, " n"]:
    return torch.arange(trajectory.steps, device=trajectory.q.device).repeat(trajectory.batch)


def _differentiated(
    engine: Engine, state: State, control: Tensor, function: Callable[[State, Tensor], Tensor]
) -> tuple[Float[Tensor, "n residuals"], Float[Tensor, "n residuals displacements"]]:
    """Residuals, and their derivatives to displacements of position, to velocity and to the control."""
    dq = state.v.new_zeros(state.v.shape, requires_grad=True)
    v, u = state.v.detach().requires_grad_(), control.detach().requires_grad_()
    with torch.enable_grad():
        residual = function(State(engine.integrate(state.q.detach(), dq), v), u)
        count = residual.shape[1]
        picked = torch.eye(count, dtype=residual.dtype, device=residual.device)[:, None].expand(-1, len(residual), -1)
        rows = torch.autograd.grad(residual, (dq, v, u), picked, is_grads_batched=True, allow_unused=True)
    filled = [
        each.new_zeros(count, *each.shape) if row is None else row for row, each in zip(rows, (dq, v, u), strict=True)
    ]
    return residual.detach(), torch.cat(filled, -1).movedim(0, 1)


def _gauss_newton(residual: Tensor, jacobian: Tensor) -> tuple[Tensor, Tensor]:
    doubled = 2.0 * jacobian.mT
    return (doubled @ residual[..., None])[..., 0], doubled @ jacobian
