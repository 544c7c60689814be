"""Actuators that follow their control late: activations as the speeds of wheels beside the bodies.

An activation a with a′ = (control − a) / τ, or a′ = control, is the speed of a wheel on its own axis, with inertia J,
drag J / τ (none), and a torque of J / τ (J) times the control. So it is part of the state, at the end of `q` (its
integral) and of `v`, is stepped as all motion is, and has the gradients of all motion. J is so small that the wheels'
energy and momentum are none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from physvision.physics.articulated.model.kinematic_tree import Body, Joint

INERTIA = 1e-9  # kg m²


@dataclass(frozen=True)
class Activation:
    """An activation and what it pushes.

    Attributes:
        name: of its actuator.
        time: τ, s; infinite where it adds up its control.
        push: force on each velocity of the bodies, then pull on each transmission, for an activation of one.
    """

    name: str
    time: float
    push: np.ndarray

    @property
    def gain(self) -> float:
        """Torque on the wheel for a control of one."""
        return INERTIA if math.isinf(self.time) else INERTIA / self.time


def wheel(activation: Activation) -> Body:
    """The wheel whose speed is the activation. It turns about its centre of mass, so weight does not turn it."""
    damping = 0.0 if math.isinf(activation.time) else INERTIA / activation.time
    name = f"activation of {activation.name}"
    joint = Joint("revolute", damping=damping, name=name)
    return Body(name, None, [joint], mass=INERTIA, inertia=(INERTIA,) * 3)
