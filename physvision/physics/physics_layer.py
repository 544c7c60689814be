"""An engine with some of its properties learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from physvision.core import InputError, State, Trajectory
from physvision.physics.engine import Engine, Overrides
from physvision.physics.properties import Properties
from physvision.physics.wrapper import EngineWrapper

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


class PhysicsLayer(EngineWrapper):
    """An engine some of whose properties follow from learned physical parameters.

    The engine itself is fixed; on each call the parameters are turned into leaves of its properties, through which
    the gradient flows back.
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
        super().__init__(engine)
        self.leaves = leaves
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
    def learned_values(self) -> dict[str, Tensor]:
        """The physical parameters as they are now, SI units, with their gradients' graph; the engine's inside too."""
        return {**self.engine.learned_values, **self._own_values}

    def physical_parameters(self) -> Iterator[nn.Parameter]:
        """What an optimiser moves for `learned_values`."""
        yield from self.engine.physical_parameters()
        yield from self.learned.parameters()

    @property
    def _own_values(self) -> dict[str, Tensor]:
        return {name: getattr(self.learned, name) for name in self._names}

    @property
    def learned_leaves(self) -> Mapping[str, Tensor]:
        """The leaves of the engine's properties that follow from the parameters."""
        return self._own_values if self.leaves is None else self.leaves(**self._own_values)

    @property
    def properties(self) -> Properties:
        """The properties of the engine inside with the learned ones in place."""
        return self.engine.checked(self.learned_leaves)

    def checked(
        self, properties: Overrides, batch: int | None = None, device: torch.device | None = None
    ) -> Properties:
        """The learned properties with these in place, checked once."""
        if not isinstance(properties, Properties):
            properties = {**self.learned_leaves, **(properties or {})}
        return self.engine.checked(properties, batch, device)

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Overrides = None,
        truncate: int | None = None,
    ) -> Trajectory:
        """Simulate with the learned properties; those given override them."""
        return self.engine.rollout(state, steps, controls, self.checked(properties, state.batch), truncate)

    def extra_repr(self) -> str:
        """What `print(layer)` says."""
        return ", ".join(f"{name}={value.detach().tolist()}" for name, value in self._own_values.items())
