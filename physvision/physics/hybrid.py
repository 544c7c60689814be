"""Hybrid of an engine and a learned force."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import State, Status, Trajectory, UnsupportedError
from physvision.physics.engine import Engine, Overrides
from physvision.physics.properties import Properties
from physvision.physics.stepped import SteppedEngine
from physvision.physics.wrapper import EngineWrapper


class Hybrid(SteppedEngine, EngineWrapper):
    """An engine with a learned force for unmodeled effects: q̈ = FD(q, v, τ + g(q, v, u)).

    The force acts before the engine solves for contacts and joints, which therefore stay satisfied. With a force that
    is initialized to zero, training starts at the engine; a penalty on `forces` in the loss keeps the force small
    where the engine explains the data.
    """

    def __init__(self, engine: Engine, force: nn.Module) -> None:
        """Add a force to an engine.

        Args:
            engine: Physics engine; it receives the controls and the properties.
            force: Network from a state and its control, or None, to a generalized force, (batch, nv), e.g.
                `LearnedForce` or `PassiveForce` of `physvision.models`.
        """
        super().__init__(engine)
        if not engine.takes_forces:
            raise UnsupportedError(
                f"engine: a {type(engine).__name__} takes no generalized force, so none can be learned"
            )
        self.force = force

    def forces(
        self, trajectory: Trajectory, controls: Float[Tensor, "batch steps nu"] | None = None
    ) -> Float[Tensor, "batch steps nv"]:
        """Learned force in each step of a trajectory, N m and N."""
        forces = self.force(trajectory[:-1].flatten(), None if controls is None else controls.flatten(0, 1))
        return forces.unflatten(0, (trajectory.batch, trajectory.steps))

    def _advance(
        self, state: State, control: Tensor | None, properties: Properties | None
    ) -> tuple[State, Status | None]:
        run = self.engine._step_with_force(state, self.force(state, control), control, properties)
        return run.final, run.status

    def _step_with_force(
        self, state: State, force: Tensor, control: Tensor | None, properties: Overrides
    ) -> Trajectory:
        return self.engine._step_with_force(state, force + self.force(state, control), control, properties)
