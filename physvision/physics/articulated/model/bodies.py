"""Rigid bodies and the joints between them, as users describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from physvision.core import ModelError, Placed


class JointKind(NamedTuple):
    """Code of a kind of joint in the kernels, and its numbers of positions and velocities."""

    code: int
    nq: int
    nv: int


JOINT_KINDS = {
    "revolute": JointKind(1, 1, 1),
    "prismatic": JointKind(2, 1, 1),
    "ball": JointKind(3, 4, 3),
    "free": JointKind(4, 7, 6),
}

Vector = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Joint:
    """A joint between a body and its parent.

    Attributes:
        kind: Kind of joint: "revolute", "prismatic", "ball" or "free".
        axis: Axis of a revolute or prismatic joint, in the body's frame; normalized on entry.
        anchor: Center of rotation of a revolute or ball joint, in the body's frame, m.
        damping: Viscous damping of each axis, N m s/rad or N s/m.
        armature: Rotor inertia added to each axis, kg m² or kg.
        friction_loss: Dry friction of each axis, N m or N. It is smoothed near zero velocity, except with
            contact="event", where it is a constraint.
        stiffness: Stiffness of the joint's spring, N m/rad or N/m.
        implicit_spring: If true, the spring of a revolute or prismatic joint is integrated implicitly, as damping is.
            Spring and damper then act as a servo at `spring_reference` that is stable at any stiffness and loses
            energy in proportion to the step. Runge–Kutta steps always take it explicitly.
        spring_reference: Position at which the spring is at rest; None for `initial_position`.
        reference_position: Position of a revolute or prismatic joint in the pose that the body's description gives
            (MuJoCo's `ref`).
        limits: Lower and upper limit of the position of a revolute or prismatic joint; of a ball joint minus infinity
            and the largest rotation angle; None for no limits.
        initial_position: Position in the initial state; None for `reference_position` (identity for ball and free).
        name: Name for messages and transmissions.
    """

    kind: str = "revolute"
    axis: Vector = (0.0, 0.0, 1.0)
    anchor: Vector = (0.0, 0.0, 0.0)
    damping: float = 0.0
    armature: float = 0.0
    friction_loss: float = 0.0
    stiffness: float = 0.0
    implicit_spring: bool = False
    spring_reference: Vector | None = None
    reference_position: float = 0.0
    initial_position: Vector | None = None
    limits: tuple[float, float] | None = None
    name: str = ""


@dataclass(frozen=True)
class Body:
    """A rigid body of a kinematic tree.

    Attributes:
        name: Unique name of the body.
        parent: Name of the parent body; None for the world.
        joints: Joints to the parent, the one closest to the parent first; a body without joints is fixed to it.
        mass: Mass, kg.
        center_of_mass: Center of mass in the body's frame, m.
        inertia: Inertia about the center of mass, 3×3 in the body's axes or its diagonal, kg m².
        position: Origin of the body's frame in its parent's, m.
        orientation: Orientation of the body's frame in its parent's, unit quaternion (w, x, y, z).
        shapes: Collision and visual shapes; their `body` is filled in by the engine.
    """

    name: str
    parent: str | None = None
    joints: Sequence[Joint] = ()
    mass: float = 1.0
    center_of_mass: Vector = (0.0, 0.0, 0.0)
    inertia: Vector = (1.0, 1.0, 1.0)
    position: Vector = (0.0, 0.0, 0.0)
    orientation: Vector = (1.0, 0.0, 0.0, 0.0)
    shapes: Sequence[Placed] = field(default=(), repr=False)

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints; one without a name has the body's, with its number where there are several."""
        default = [self.name] if len(self.joints) == 1 else [f"{self.name}.{k}" for k in range(len(self.joints))]
        return [joint.name or name for joint, name in zip(self.joints, default, strict=True)]


def sort_bodies(bodies: Sequence[Body]) -> list[Body]:
    """Sort bodies topologically, parents before children, otherwise in the given order."""
    by_name: dict[str, Body] = {}
    for body in bodies:
        if body.name in by_name:
            raise ModelError(f"two bodies are called {body.name!r}; give each body a unique name")
        by_name[body.name] = body
    ordered: dict[str, Body] = {}
    for body in bodies:
        path: list[str] = []
        current: Body | None = body
        while current is not None and current.name not in ordered:
            if current.name in path:
                cycle = " → ".join([*path[path.index(current.name) :], current.name])
                raise ModelError(f"the bodies form a cycle, not a tree: {cycle}")
            path.append(current.name)
            if current.parent is None:
                break
            if current.parent not in by_name:
                raise ModelError(f"body {current.name!r} has the parent {current.parent!r}, which does not exist")
            current = by_name[current.parent]
        for name in reversed(path):
            ordered[name] = by_name[name]
    return list(ordered.values())


def body_shapes(bodies: Sequence[Body]) -> list[Placed]:
    """Shapes of all bodies, each with the row of its body and a name."""
    return [
        Placed(shape.shape, row, shape.pose, shape.color, shape.name or body.name)
        for row, body in enumerate(bodies)
        for shape in body.shapes
    ]
