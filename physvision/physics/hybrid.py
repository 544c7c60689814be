"""An engine and a learned residual."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, State, Status, Trajectory
from physvision.physics.engine import Engine, Overrides
from physvision.physics.stepped import stepped
from physvision.physics.wrapper import EngineWrapper


class Hybrid(EngineWrapper):
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

    @property
    def status(self) -> Status | None:
        """How the last rollout went, the residual included."""
        return self._status

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Overrides = None,
        truncate: int | None = None,
    ) -> Trajectory:
        """Simulate `steps` steps, each the engine's, moved by how far the residual leaves uniform motion."""
        self._check_state(state)
        self._check_controls(state, steps, controls)
        known = None if properties is None else self.checked(properties, state.batch)

        def advance(state: State, control: Tensor | None) -> tuple[State, Status | None]:
            controls = None if control is None else control.unsqueeze(1)
            run = self.engine.rollout(state, 1, controls, known)
            after, other = run.final, self.residual.step(state)
            straight = self.residual.integrate(state.q, self.dt * state.v)
            aside = self.residual.difference(straight, other.q)
            return State(self.engine.integrate(after.q, aside), after.v + other.v - state.v), run.status

        trajectory = stepped(advance, state, steps, controls, truncate, self.dt)
        assert trajectory.status is not None
        self._report(trajectory.status)
        return trajectory
