"""An engine with some of its properties learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from physvision.core import InputError, State, Trajectory
from physvision.physics.engine import Engine

Leaves = Callable[..., Mapping[str, Tensor]]


class Positive(nn.Module):
    """Parametrises a positive tensor by its logarithm: a step of descent changes it by a share of itself."""

    def forward(self, logarithm: Tensor) -> Tensor:
        """The positive value."""
        return logarithm.exp()

    def right_inverse(self, value: Tensor) -> Tensor:
        """The logarithm that `forward` makes `value` of."""
        if not bool((value > 0).all()):
            raise InputError(f"a positive physical parameter must start above zero, got {value.tolist()}")
        return value.log()


class PhysicsLayer(Engine):
    """An Engine some of whose properties follow from learned physical parameters.

    The engine itself is fixed; on each call the parameters are turned into leaves of its properties, through which
    the gradient flows back. What the engine can do beyond the contract (`energy`, `poses` …) is reached through
    `layer.engine` with `layer.properties`.
    """

    def __init__(
        self,
        engine: Engine,
        learned: Mapping[str, Sequence[float] | float],
        leaves: Leaves | None = None,
        positive: Sequence[str] | None = None,
    ) -> None:
        """Learn parameters of `engine`.

        Args:
            engine: what simulates.
            learned: first guess of each physical parameter, SI units.
            leaves: called with the parameters by name, returns leaves of the engine's properties, e.g.
                `articulated.chain_properties`. If not given, the parameters are leaves themselves.
            positive: names of the parameters that stay above zero; all of them if not given.
        """
        super().__init__()
        self.engine, self.leaves = engine, leaves
        self.nq, self.nv, self.nu, self.dt = engine.nq, engine.nv, engine.nu, engine.dt
        positive = list(learned) if positive is None else list(positive)
        if not learned or set(positive) - set(learned):
            raise InputError(f"positive: expected names among those learned, {', '.join(learned)}, got {positive}")
        self.learned = nn.Module()
        for name, value in learned.items():
            self.learned.register_parameter(name, nn.Parameter(torch.tensor(value, dtype=torch.get_default_dtype())))
            if name in positive:
                parametrize.register_parametrization(self.learned, name, Positive())
        self._names = tuple(learned)

    @property
    def parameters_now(self) -> dict[str, Tensor]:
        """The physical parameters, SI units, with their gradients' graph."""
        return {name: getattr(self.learned, name) for name in self._names}

    @property
    def learned_leaves(self) -> Mapping[str, Tensor]:
        """The leaves of the engine's properties that follow from the parameters."""
        return self.parameters_now if self.leaves is None else self.leaves(**self.parameters_now)

    @property
    def properties(self) -> Any:
        """The engine's properties with the learned ones in place."""
        own = self.engine.properties
        return type(own)(**{**vars(own), **self.learned_leaves})

    def initial_state(self, batch: int = 1) -> State:
        """That of the engine."""
        return self.engine.initial_state(batch)

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Any | Mapping[str, Tensor] | None = None,
        truncate: int | None = None,
    ) -> Trajectory:
        """Simulate with the learned properties; those given override them."""
        if properties is None:
            properties = self.learned_leaves
        elif isinstance(properties, Mapping):
            properties = {**self.learned_leaves, **properties}
        trajectory = self.engine.rollout(state, steps, controls, properties, truncate)
        self.status = self.engine.status
        return trajectory

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """That of the engine."""
        return self.engine.integrate(q, dv)

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """That of the engine."""
        return self.engine.difference(q0, q1)

    def extra_repr(self) -> str:
        """What `print(layer)` says."""
        return ", ".join(f"{name}={value.detach().tolist()}" for name, value in self.parameters_now.items())
