"""Complete description of a mechanism with its loop joints and fluid, which the compiler turns into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from physvision.core import ModelError, Placed, Sphere
from physvision.physics.articulated.model.actuators import Actuators, ActuatorState
from physvision.physics.articulated.model.bodies import Body
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.model.transmissions import Transmission
from physvision.physics.articulated.settings import SETTINGS

EARTH_GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class LoopJoint:
    """A ball joint between points of two bodies, or a weld between two frames, beside the tree.

    Attributes:
        first: Name of the first body; None for the world.
        second: Name of the second body; None for the world.
        first_pose: Joint frame in the first body, 4×4, m; its last column is the joint's point.
        second_pose: Joint frame in the second body, 4×4, m.
        weld: If true, the orientations of the frames are constrained too.
        name: Name for messages.
        torque_scale: Weight of a weld's rotations relative to its translations in compliant contact, m.
    """

    first: str | None
    second: str | None
    first_pose: Sequence[Sequence[float]] | np.ndarray
    second_pose: Sequence[Sequence[float]] | np.ndarray
    weld: bool = False
    name: str = ""
    torque_scale: float = 1.0


def loop_joint_markers(tree: KinematicTree, loop_joints: Sequence[LoopJoint]) -> list[Placed]:
    """Markers at both ends of each loop joint, which collide with nothing."""
    markers = []
    for joint in loop_joints:
        if joint.first == joint.second:
            raise ModelError(f"loop joint {joint.name!r}: expected two bodies, got {joint.first!r} twice")
        for body, pose in ((joint.first, joint.first_pose), (joint.second, joint.second_pose)):
            if body is not None and body not in tree.body_names:
                raise ModelError(f"loop joint {joint.name!r}: there is no body {body!r}")
            frame = np.asarray(pose, float)
            if frame.shape != (4, 4):
                raise ModelError(f"loop joint {joint.name!r}: expected a 4×4 pose, got shape {frame.shape}")
            row = None if body is None else tree.body_names.index(body)
            marker = Sphere(SETTINGS.marker_radius)
            markers.append(Placed(marker, row, tuple(map(tuple, frame.tolist())), name=joint.name))
    return markers


@dataclass(frozen=True)
class Fluid:
    """A fluid at rest around the bodies, with the drag of MuJoCo's inertia-box model.

    Attributes:
        density: Density, kg/m³.
        viscosity: Dynamic viscosity, Pa s.
    """

    density: float = 0.0
    viscosity: float = 0.0

    def __post_init__(self) -> None:
        if not (self.density >= 0 and self.viscosity >= 0):
            raise ModelError(f"fluid: density and viscosity must be at least zero, got {self}")


def inertia_boxes(bodies: Sequence[Body], axes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Boxes with the mass and inertia of each body: sizes (bodies, 3), m, and axes (bodies, 3, 3).

    The axes are principal axes; given ones decide between equal moments. The box of a massless body has no size.
    """
    sizes, rotations = np.zeros((len(bodies), 3)), np.tile(np.eye(3), (len(bodies), 1, 1))
    for row, body in enumerate(bodies):
        inertia = np.asarray(body.inertia, float)
        inertia = np.diag(inertia) if inertia.shape == (3,) else (inertia + inertia.T) / 2
        rotation = np.linalg.eigh(inertia)[1] if axes is None else axes[row]
        moments = np.diag(rotation.T @ inertia @ rotation)
        if body.mass > 0:
            squares = 6 * (moments.sum() - 2 * moments) / body.mass
            sizes[row] = np.sqrt(np.maximum(squares, 0.0))
        rotations[row] = rotation * np.sign(np.linalg.det(rotation))
    return sizes, rotations


def drag_coefficients(size: Tensor, fluid: Tensor) -> dict[str, Tensor]:
    """Viscous and quadratic drag coefficients of boxes, for forces and moments along their axes.

    Viscous drag is that of a sphere whose diameter d is the mean size: 3 π η d v and π η d³ ω. Quadratic drag along x
    is that of the face, ½ ρ b c |v| v, and of its rotation, ρ a (b⁴ + c⁴) |ω| ω / 64.

    Args:
        size: Sizes (a, b, c) of the boxes, (..., bodies, 3), m.
        fluid: Density and viscosity, (..., 2).
    """
    density, viscosity = fluid[..., None, 0:1], fluid[..., None, 1:2]
    mean = size.mean(-1, keepdim=True)
    a, b = size.roll(-1, -1), size.roll(-2, -1)
    shape = torch.broadcast_shapes(mean.shape, size.shape)
    return {
        "viscous_force": (3 * torch.pi * viscosity * mean).expand(shape),
        "viscous_moment": (torch.pi * viscosity * mean**3).expand(shape),
        "dynamic_force": density * a * b / 2,
        "dynamic_moment": density * size * (a**4 + b**4) / 64,
    }


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
