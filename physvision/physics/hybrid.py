"""An engine and a learned force."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import State, Status, Trajectory, UnsupportedError
from physvision.physics.engine import Engine, Overrides
from physvision.physics.properties import Properties
from physvision.physics.stepped import SteppedEngine
from physvision.physics.wrapper import EngineWrapper


class Hybrid(SteppedEngine, EngineWrapper):
    """An engine with a learned force for what it does not know of: q̈ = FD(q, v, τ + g(q, v, u)).

    The force acts before the engine solves for contact and joints, so these hold as ever. Training starts at the engine
    where the force starts at zero; a weight on `forces` in the loss leaves to physics what physics can explain.
    """

    def __init__(self, engine: Engine, force: nn.Module) -> None:
        """Add a force to an engine.

        Args:
            engine: the physics; it takes the controls and the properties.
            force: called with a state and its control, or None, it returns a generalised force, (batch, nv), e.g.
                `LearnedForce` or `PassiveForce` of `physvision.models`.
        """
        super().__init__(engine)
        if not engine.takes_forces:
            raise UnsupportedError(
                f"engine: a {type(engine).__name__} takes no generalised force, so none can be learned"
            )
        self.force = force

    def forces(
        self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"] | None = None
    ) -> Float[Tensor, "batch steps nv"]:
        """What the learned force adds in each step of a trajectory, N m and N."""
        before = State(trajectory.q[:, :-1].flatten(0, 1), trajectory.v[:, :-1].flatten(0, 1))
        found = self.force(before, None if controls is None else controls.flatten(0, 1))
        return found.unflatten(0, (trajectory.batch, trajectory.steps))

    def _advance(
        self, state: State, control: Tensor | None, properties: Properties | None
    ) -> tuple[State, Status | None]:
        run = self.engine._pushed(state, self.force(state, control), control, properties)
        return run.final, run.status

    def _pushed(self, state: State, force: Tensor, control: Tensor | None, properties: Overrides) -> Trajectory:
        return self.engine._pushed(state, force + self.force(state, control), control, properties)
