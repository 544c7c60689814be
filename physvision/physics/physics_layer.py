"""An engine with some of its properties learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import InputError, State, Trajectory
from physvision.physics.engine import Engine, Overrides
from physvision.physics.feedback import Bounds, FeedbackPolicy
from physvision.physics.properties import Properties
from physvision.physics.wrapper import EngineWrapper

Leaves = Callable[..., Mapping[str, Tensor]]


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
            positive: names of the parameters that stay above zero, being learned by their logarithms: a step of
                descent changes them by a share of themselves. All of them if not given.
        """
        super().__init__(engine)
        self.leaves = leaves
        self._positive = frozenset(learned if positive is None else positive)
        if not learned or self._positive - set(learned):
            raise InputError(f"positive: expected names among those learned, {', '.join(learned)}, got {positive}")
        self.learned = nn.ParameterDict()
        for name, value in learned.items():
            guess = torch.tensor(value, dtype=torch.get_default_dtype())
            if name in self._positive and not bool((guess > 0).all()):
                raise InputError(f"{name}: a positive physical parameter must start above zero, got {value}")
            self.learned[name] = nn.Parameter(guess.log() if name in self._positive else guess)

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
        return {name: kept.exp() if name in self._positive else kept for name, kept in self.learned.items()}

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

    def _simulate(
        self, state: State, steps: int, controls: Tensor | None, properties: Overrides, truncate: int | None
    ) -> Trajectory:
        return super()._simulate(state, steps, controls, self.checked(properties, state.batch), truncate)

    def _pushed(self, state: State, force: Tensor, control: Tensor | None, properties: Overrides) -> Trajectory:
        return super()._pushed(state, force, control, self.checked(properties, state.batch))

    def linearize(
        self,
        state: State | Trajectory,
        control: Float[Tensor, "batch *steps nu"] | None = None,
        properties: Overrides = None,
    ) -> tuple[Float[Tensor, "batch *steps twice_nv twice_nv"], Float[Tensor, "batch *steps twice_nv nu"]]:
        """Derivatives of a step of the engine inside, with the learned properties."""
        return self.engine.linearize(state, control, self._known(properties, state.batch))

    def _rollout_feedback(
        self,
        start: State,
        policy: FeedbackPolicy,
        bounds: Bounds,
        change: Tensor,
        step_sizes: Tensor,
        properties: Overrides,
    ) -> tuple[Trajectory, Tensor]:
        known = self._known(properties, start.batch)
        return self.engine._rollout_feedback(start, policy, bounds, change, step_sizes, known)

    @torch.no_grad()
    def _known(self, properties: Overrides, batch: int) -> Properties:
        return self.checked(properties, batch)

    def extra_repr(self) -> str:
        """What `print(layer)` says."""
        return ", ".join(f"{name}={value.detach().tolist()}" for name, value in self._own_values.items())
