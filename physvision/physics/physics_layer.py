"""An engine with some of its properties learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import InputError, State, Trajectory
from physvision.physics.engine import Engine, Overrides
from physvision.physics.feedback import FeedbackSearch
from physvision.physics.properties import Properties
from physvision.physics.wrapper import EngineWrapper

Leaves = Callable[..., Mapping[str, Tensor]]


class PhysicsLayer(EngineWrapper):
    """An engine with properties that are computed from learned physical parameters.

    The engine itself is fixed; each call computes leaves of its properties from the parameters, through which the
    gradient flows back.
    """

    def __init__(
        self,
        engine: Engine,
        learned: Mapping[str, Tensor | Sequence[float] | float],
        leaves: Leaves | None = None,
        positive: Sequence[str] | None = None,
    ) -> None:
        """Learn physical parameters of an engine.

        Args:
            engine: Engine that simulates.
            learned: Initial value of each physical parameter, SI units.
            leaves: Function from the parameters by name to leaves of the engine's properties, e.g.
                `articulated.chain_properties`; None if the parameters are leaves themselves.
            positive: Names of the parameters that stay positive, because their logarithms are learned: a gradient step
                changes them by a fraction of themselves. None for all of them.
        """
        super().__init__(engine)
        self.leaves = leaves
        self._positive = frozenset(learned if positive is None else positive)
        if not learned or self._positive - set(learned):
            raise InputError(f"positive: expected names among those learned, {', '.join(learned)}, got {positive}")
        self.learned = nn.ParameterDict()
        for name, value in learned.items():
            initial = torch.as_tensor(value).detach().to(torch.get_default_dtype(), copy=True)
            if name in self._positive and not bool((initial > 0).all()):
                raise InputError(f"{name}: expected an initial value above zero of a positive parameter, got {value}")
            self.learned[name] = nn.Parameter(initial.log() if name in self._positive else initial)

    @property
    def learned_values(self) -> dict[str, Tensor]:
        """Current values of the physical parameters, SI units, those of the inner engine included."""
        return {**self.engine.learned_values, **self._own_values}

    def physical_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters behind `learned_values`, for an optimizer."""
        yield from self.engine.physical_parameters()
        yield from self.learned.parameters()

    @property
    def _own_values(self) -> dict[str, Tensor]:
        positive = self._positive
        return {name: value.exp() if name in positive else value for name, value in self.learned.items()}

    @property
    def learned_leaves(self) -> Mapping[str, Tensor]:
        """Leaves of the engine's properties that are computed from the parameters."""
        return self._own_values if self.leaves is None else self.leaves(**self._own_values)

    @property
    def properties(self) -> Properties:
        """Properties of the inner engine with the learned leaves."""
        return self.engine.checked(self.learned_leaves)

    def checked(
        self, properties: Overrides, batch: int | None = None, device: torch.device | None = None
    ) -> Properties:
        """Check properties with the learned leaves once."""
        if not isinstance(properties, Properties):
            properties = {**self.learned_leaves, **(properties or {})}
        return self.engine.checked(properties, batch, device)

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        return super()._simulate(state, steps, controls, self.checked(properties, state.batch), truncate)

    def _step_with_force(
        self, state: State, force: Tensor, control: Tensor | None, properties: Overrides
    ) -> Trajectory:
        return super()._step_with_force(state, force, control, self.checked(properties, state.batch))

    def linearize(
        self,
        state: State | Trajectory,
        control: Float[Tensor, "batch *steps nu"] | None = None,
        properties: Overrides = None,
    ) -> tuple[Float[Tensor, "batch *steps twice_nv twice_nv"], Float[Tensor, "batch *steps twice_nv nu"]]:
        """Derivatives of a step of the inner engine with the learned properties."""
        return self.engine.linearize(state, control, self._known(properties, state.batch))

    def _rollout_feedback(
        self, start: State, search: FeedbackSearch, properties: Overrides
    ) -> tuple[Trajectory, Tensor]:
        return self.engine._rollout_feedback(start, search, self._known(properties, start.batch))

    @torch.no_grad()
    def _known(self, properties: Overrides, batch: int) -> Properties:
        return self.checked(properties, batch)

    def extra_repr(self) -> str:
        """Values of the parameters, for `print(layer)`."""
        return ", ".join(f"{name}={value.detach().tolist()}" for name, value in self._own_values.items())
