"""What a controller makes small: sums of squares of what states and controls should not be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

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
    """Residuals of each step, (batch, steps, r), and of the end, (batch, r), and their derivatives.

    A Jacobian's last dimension is (δq, δv, δu); at the end (δq, δv). The second derivatives of the cost are taken for
    those of 2 JᵀJ alone (Gauss–Newton).
    """

    running: Tensor
    running_jacobian: Tensor
    final: Tensor
    final_jacobian: Tensor


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
        if self.final is None:
            return Residuals(running, jacobian, running.new_zeros(batch, 0), running.new_zeros(batch, 0, 2 * engine.nv))
        ends, last = self.final, trajectory.final
        final = _differentiated(engine, lambda state, _: ends(state), ends(last).shape[1], last)
        return Residuals(running, jacobian, *final)


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
    _kept: dict[Any, tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, each in (("weights", self.weights), ("final", self.final), ("effort", torch.tensor(self.effort))):
            if each is not None and not bool((each >= 0).all()):
                raise InputError(f"{name}: expected nothing below zero, got {each.tolist()}")

    @override
    def value(self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Float[Tensor, " batch"]:
        wanted, roots, _ = self._constants(trajectory, controls)
        missed = (self.features(trajectory.flatten()) - wanted).unflatten(0, (trajectory.batch, -1)) * roots
        return _finite(missed.square().sum((1, 2)) + self.effort * controls.square().sum((1, 2)))

    @override
    def residuals(self, engine: Engine, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"]) -> Residuals:
        wanted, roots, whole = self._constants(trajectory, controls)
        sizes, n, count = (trajectory.batch, -1), 2 * engine.nv, len(wanted)
        found, slopes = _differentiated(engine, lambda state, _: self.features(state), count, trajectory.flatten())
        missed = (found - wanted).unflatten(0, sizes) * roots
        slopes = slopes.unflatten(0, sizes) * roots.unsqueeze(-1)
        jacobian = whole.clone()
        jacobian[:, :, :count, :n] = slopes[:, :-1]
        running = torch.cat([missed[:, :-1], controls * self.effort**0.5], 2)
        return Residuals(running, jacobian, missed[:, -1], slopes[:, -1])

    def _constants(self, trajectory: Trajectory, controls: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is wanted, roots of the weights of each state, and the Jacobian without the features' part."""
        n, nu = 2 * trajectory.v.shape[2], controls.shape[2]
        key = (trajectory.batch, trajectory.steps, n, nu, controls.dtype, controls.device)
        if key not in self._kept:
            if len(self._kept) > _KEPT_SIZES:
                self._kept.clear()
            weights, final = self.weights.to(controls), (self.weights if self.final is None else self.final)
            roots = torch.stack([weights] * trajectory.steps + [final.to(controls)]).sqrt()
            whole = controls.new_zeros(trajectory.batch, trajectory.steps, len(weights) + nu, n + nu)
            whole[..., len(weights) :, n:] = self.effort**0.5 * torch.eye(nu)
            self._kept[key] = self.wanted.to(controls), roots, whole
        return self._kept[key]


_KEPT_SIZES = 8


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
