"""Motors that drive joints to angles, with a largest speed and a largest torque."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from physvision.core import State
from physvision.physics.articulated import Articulation


@dataclass(frozen=True)
class Servo:
    """One motor at each velocity of a tree that is fixed to the world.

    A motor wants the speed ω = gain · (target − angle), within ±`speed`, at the end of the step. Its torque is the one
    that inverse dynamics asks for so that all motors get what they want, within ±`torque`: where a motor is at its
    limit, the others do not make up for it before the next step.

    Attributes:
        gain: 1/s; below one over the step.
        speed: rad/s.
        torque: N m.
    """

    gain: float
    speed: float
    torque: float

    def __call__(
        self, engine: Articulation, state: State, target: Float[Tensor, "batch nv"]
    ) -> Float[Tensor, "batch nv"]:
        """The torques that are held over the step."""
        wanted = (self.gain * (target - state.q)).clamp(-self.speed, self.speed)
        force = engine.inverse_dynamics(state, (wanted - state.v) / engine.dt)
        return force.clamp(-self.torque, self.torque)
