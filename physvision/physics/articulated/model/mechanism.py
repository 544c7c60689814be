"""Complete description of a mechanism, which the compiler turns into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physvision.core import Placed
from physvision.physics.articulated.model.actuators import Actuators, ActuatorState
from physvision.physics.articulated.model.bodies import Body
from physvision.physics.articulated.model.fluid import Fluid
from physvision.physics.articulated.model.loop_joints import LoopJoint
from physvision.physics.articulated.model.transmissions import Transmission

EARTH_GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class Mechanism:
    """Bodies in the world, and whatever acts on them except contacts.

    Attributes:
        bodies: Bodies of the trees, in any order.
        gravity: Gravity in the world's axes, m/s².
        static_shapes: Shapes that are fixed to the world.
        actuators: Map from controls to forces; None for one generalized force per velocity and transmission.
        transmissions: Servos, dry friction and equality constraints along combinations of joints.
        actuator_states: Inner states of actuators.
        loop_joints: Equality constraints that close kinematic loops.
        fluid: Fluid around the bodies; None for no drag.
        drag_axes: Principal axes of the bodies, (bodies, 3, 3), for the fluid; None to compute them.
    """

    bodies: Sequence[Body]
    gravity: Sequence[float] = EARTH_GRAVITY
    static_shapes: Sequence[Placed] = ()
    actuators: Actuators | None = None
    transmissions: Sequence[Transmission] = ()
    actuator_states: Sequence[ActuatorState] = ()
    loop_joints: Sequence[LoopJoint] = ()
    fluid: Fluid | None = None
    drag_axes: np.ndarray | None = None
