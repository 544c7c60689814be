"""What a controller makes small: sums of squares of what states and controls should not be."""

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

Running = Callable[[State, Tensor, Tensor], Tensor]
Final = Callable[[State], Tensor]
Features = Callable[[State], Tensor]


class Residuals(NamedTuple):
    """Residuals r of each step, (batch, steps, r), and of the end, (batch, r), and their derivatives J.

    The cost is Σ weights · r² over all steps, the same of the end, and effort · |control|². A Jacobian's last dimension
    is (δq, δv, δu), or (δq, δv) alone where nothing depends on the control, as at the end. The second derivatives of
    the cost are taken for those of 2 Jᵀ weights J alone (Gauss–Newton).
    """

    running: Tensor
    running_jacobian: Tensor
    final: Tensor
    final_jacobian: Tensor
    weights: Tensor
    final_weights: Tensor
    effort: float = 0.0


class Objective(ABC):
    """A sum of squares of what states and controls should not be, which a controller makes small."""

    @abstractmethod
    def value(self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Float[Tensor, " batch"]:
        """The cost of each world; infinite where it failed."""

    @abstractmethod
    def residuals(self, engine: Engine, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Residuals:
        """What is squared, and its derivatives."""


@dataclass(frozen=True)
class Cost(Objective):
    """The sum over all steps of |running|², and |final|² of the last state.

    Attributes:
        running: residuals (n, r) of n steps: of the states at their start, the controls (n, nu) held over them, and
            their numbers (n), counted from 0.
        final: residuals (n, r) of n last states; none if not given.
    """

    running: Running
    final: Final | None = None

    @override
    def value(self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Float[Tensor, " batch"]:
        steps = torch.arange(trajectory.steps, device=controls.device).repeat(trajectory.batch)
        running = self.running(_starts(trajectory), controls.flatten(0, 1), steps)
        total = running.reshape(trajectory.batch, -1).square().sum(1)
        if self.final is not None:
            total = total + self.final(trajectory.final).square().sum(-1)
        return _finite(total)

    @override
    def residuals(self, engine: Engine, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Residuals:
        batch, steps = trajectory.batch, trajectory.steps
        starts, numbers = _starts(trajectory), torch.arange(steps, device=controls.device).repeat(batch)
        count = self.running(trajectory.state(0), controls[:, 0], numbers[::steps]).shape[1]
        repeated = numbers.repeat_interleave(count)
        found = _differentiated(
            engine, lambda state, u: self.running(state, u, repeated), count, starts, controls.flatten(0, 1)
        )
        running, jacobian = (each.unflatten(0, (batch, steps)) for each in found)
        last, ends = trajectory.final, self.final
        if ends is None:
            final = running.new_zeros(batch, 0), running.new_zeros(batch, 0, 2 * engine.nv)
        else:
            final = _differentiated(engine, lambda state, _: ends(state), ends(last).shape[1], last)
        even, at_end = (running.new_ones(each.shape[-1]) for each in (running, final[0]))
        return Residuals(running, jacobian, *final, even, at_end)


@dataclass(frozen=True)
class Goal(Objective):
    """Features of the states should have given values: Σ weights · (features − wanted)² + effort · |control|².

    Attributes:
        features: of n states: (n, features).
        wanted: what they should be.
        weights: of each square, at least 0, for the states that steps start from.
        effort: weight of the squares of the controls, at least 0.
        final: weights for the last state; as for the others if not given.
    """

    features: Features
    wanted: Float[Tensor, " features"]
    weights: Float[Tensor, " features"]
    effort: float
    final: Float[Tensor, " features"] | None = None

    def __post_init__(self) -> None:
        for name, each in (("weights", self.weights), ("final", self.final), ("effort", torch.tensor(self.effort))):
            if each is not None and not bool((each >= 0).all()):
                raise InputError(f"{name}: expected nothing below zero, got {each.tolist()}")

    @override
    def value(self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Float[Tensor, " batch"]:
        squares = self._missed(self.features(trajectory.flatten()), trajectory).square()
        weights, final = self._weights(squares)
        # Not by matrix products, whose threads would wait for each other.
        total = (squares[:, :-1] * weights).sum((1, 2)) + (squares[:, -1] * final).sum(1)
        return _finite(total + self.effort * controls.square().sum((1, 2)))

    @override
    def residuals(self, engine: Engine, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Residuals:
        states, count = trajectory.flatten(), len(self.wanted)
        found, slopes = _differentiated(engine, lambda state, _: self.features(state), count, states)
        missed, slopes = self._missed(found, trajectory), slopes.unflatten(0, (trajectory.batch, -1))
        weights = self._weights(missed)
        return Residuals(missed[:, :-1], slopes[:, :-1], missed[:, -1], slopes[:, -1], *weights, self.effort)

    def _missed(self, features: Tensor, trajectory: Trajectory) -> Tensor:
        """By how much the features of all states are off, (batch, steps + 1, features)."""
        return (features - self.wanted.to(features)).unflatten(0, (trajectory.batch, -1))

    def _weights(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Of the squares of each step, and of the end."""
        weights = self.weights.to(like)
        return weights, weights if self.final is None else self.final.to(like)


def _starts(trajectory: Trajectory) -> State:
    return State(trajectory.q[:, :-1].flatten(0, 1), trajectory.v[:, :-1].flatten(0, 1))


def _finite(value: Tensor) -> Tensor:
    """Infinite where it is no number."""
    return value.nan_to_num(torch.inf, torch.inf, torch.inf)


def _differentiated(
    engine: Engine,
    function: Callable[[State, Tensor], Tensor],
    count: int,
    state: State,
    control: Tensor | None = None,
) -> tuple[Float[Tensor, "n residuals"], Float[Tensor, "n residuals displacements"]]:
    """So many residuals, and their derivatives to displacements of position, to velocity and to the control, if given.

    Each state is repeated once for each residual, so one call and one backward pass give all rows.
    """
    given = (state.q, state.v, state.v[:, :0] if control is None else control)
    q, v, u = (each.unsqueeze(1).expand(-1, count, -1).flatten(0, 1) for each in given)
    dq = torch.zeros_like(v)
    leaves = [dq, v] if control is None else [dq, v, u]
    for leaf in leaves:
        leaf.requires_grad_()
    with torch.enable_grad():
        found = function(State(engine.integrate(q, dq), v), u)
        picked = _picked(len(state.q), count, found.dtype, found.device)
        slopes = torch.autograd.grad(found, leaves, picked, allow_unused=True, materialize_grads=True)
    return found.detach()[::count], torch.cat(slopes, -1).unflatten(0, (-1, count))


@lru_cache(maxsize=16)
def _picked(n: int, count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Which residual each of the repeated states is differentiated for."""
    return torch.eye(count, dtype=dtype, device=device).repeat(n, 1)
