"""An engine and a learned residual."""

from __future__ import annotations

from torch import Tensor

from physvision.core import InputError, State, Status
from physvision.physics.engine import Engine
from physvision.physics.properties import Properties
from physvision.physics.stepped import SteppedEngine
from physvision.physics.wrapper import EngineWrapper


class Hybrid(SteppedEngine, EngineWrapper):
    """An engine and a learned residual: what the network adds to the velocity, physics does not explain."""

    def __init__(self, engine: Engine, residual: Engine) -> None:
        """Add what `residual` says of a step to what `engine` says.

        Args:
            engine: the physics; it takes the controls and the properties.
            residual: an engine whose deviation from uniform motion is added, e.g. `MlpEngine`.
        """
        super().__init__(engine)
        if (engine.nq, engine.nv, engine.dt) != (residual.nq, residual.nv, residual.dt):
            raise InputError(
                f"residual: expected nq, nv, dt = {(engine.nq, engine.nv, engine.dt)} as engine has, "
                f"got {(residual.nq, residual.nv, residual.dt)}"
            )
        self.residual = residual

    def _advance(
        self, state: State, control: Tensor | None, properties: Properties | None
    ) -> tuple[State, Status | None]:
        controls = None if control is None else control.unsqueeze(1)
        run = self.engine._simulate(state, 1, controls, properties, None)
        after, other = run.final, self.residual.step(state)
        straight = self.residual.integrate(state.q, self.dt * state.v)
        aside = self.residual.difference(straight, other.q)
        return State(self.engine.integrate(after.q, aside), after.v + other.v - state.v), run.status
