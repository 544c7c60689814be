"""A tree of bodies as people describe it, and as the kernels see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from physvision.core import ModelError, Placed

# Kinds of joints: (number in the kernels, numbers in a position, numbers in a velocity).
KINDS = {"revolute": (1, 1, 1), "prismatic": (2, 1, 1), "ball": (3, 4, 3), "free": (4, 7, 6)}

Vector = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Joint:
    """What lets a body move against its parent.

    Attributes:
        kind: "revolute", "prismatic", "ball" or "free".
        axis: of a revolute or prismatic joint, in the body's frame; its length does not matter.
        anchor: the point that a revolute or ball joint turns about, in the body's frame, m.
        damping: N m s/rad or N s/m, the same along each of its axes.
        armature: inertia of the drive, kg m² or kg, added to each axis.
        friction_loss: Coulomb friction, N m or N, smooth near standstill.
        stiffness: of the joint's spring, N m/rad or N/m.
        servo: whether the spring is taken at the end of the step, as drag is: together they are a servo that holds a
            revolute or prismatic joint at `spring_reference`, stable however stiff it is. It takes some energy, less
            the shorter the step. Runge–Kutta steps take it at the start.
        spring_reference: the position at which the spring is at rest; None for `start`.
        zero: the position of a revolute or prismatic joint at which the body is where its description puts it.
        limits: lowest and highest position of a revolute or prismatic joint; of a ball joint minus infinity and the
            largest angle by which it may be turned; None without.
        start: the position in the initial state; None for `zero` (ball, free: no turn, no shift).
        name: for messages.
    """

    kind: str = "revolute"
    axis: Vector = (0.0, 0.0, 1.0)
    anchor: Vector = (0.0, 0.0, 0.0)
    damping: float = 0.0
    armature: float = 0.0
    friction_loss: float = 0.0
    stiffness: float = 0.0
    servo: bool = False
    spring_reference: Vector | None = None
    zero: float = 0.0
    start: Vector | None = None
    limits: tuple[float, float] | None = None
    name: str = ""


@dataclass(frozen=True)
class Body:
    """A rigid body.

    Attributes:
        name: unlike every other body's.
        parent: name of the body that carries it; None for the world.
        joints: what lets it move, the one nearest the parent first; without any it is part of its parent.
        mass: kg.
        center_of_mass: in the body's frame, m.
        inertia: about the centre of mass, 3×3 in the body's axes (or its diagonal), kg m².
        position: of the body's frame in its parent's, m.
        orientation: of the body's frame in its parent's, unit quaternion (w, x, y, z).
        shapes: what it looks like; `body` of each is filled in.
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


@dataclass(frozen=True)
class Model:
    """The tree as the kernels see it: links, each with the joint that moves it, numbered from the root outwards.

    A body without a joint is part of the link that carries it, or of the world. A body with several joints is a chain
    of links of which the last has its mass. A link's frame has its origin at the joint's anchor and its z along the
    axis; the body's frame is the link's frame behind a constant pose.
    """

    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    kind: np.ndarray  # (links,)
    parent: np.ndarray  # (links,), −1 for the world
    first_position: np.ndarray  # (links + 1,)
    first_velocity: np.ndarray  # (links + 1,)
    placed_body: np.ndarray  # (links,) body whose placement leads to the link; −1 within a chain
    frame_rotation: np.ndarray  # (links, 3, 3) link frame in the body's frame
    frame_offset: np.ndarray  # (links, 3)
    zero_rotation: np.ndarray  # (links, 3, 3) link frame at q = 0 in the body's frame
    zero_offset: np.ndarray  # (links, 3)
    body_link: np.ndarray  # (bodies,) link that the body is part of, −1 for the world
    body_parent: np.ndarray  # (bodies,) −1 for the world
    fixed: np.ndarray  # (bodies,) whether it has no joint of its own
    axes: np.ndarray  # (nv, 6) motion subspace, angular first
    start: np.ndarray  # (nq,)
    limited: np.ndarray  # (links,) whether the joint has limits
    servo: np.ndarray  # (nv,) the link whose spring a servo holds, −1 where there is none
    quaternions: np.ndarray  # where the quaternions start in a position
    # Velocities that push others, as activations do: (pairs,) each; a target beyond nv is a row of the contact problem.
    coupling_source: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    coupling_target: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    coupling_gain: np.ndarray = field(default_factory=lambda: np.zeros(0))
    drag_axes: np.ndarray | None = None  # (bodies, 3, 3) of the boxes that a medium drags, in the bodies; None without

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.kind)

    @property
    def bodies(self) -> int:
        """Number of bodies."""
        return len(self.body_names)

    @property
    def root(self) -> np.ndarray:
        """Of each link the first one of its tree, (links,)."""
        found = np.arange(self.links)
        for link, parent in enumerate(self.parent):
            found[link] = link if parent < 0 else found[parent]
        return found

    @property
    def nq(self) -> int:
        """Numbers in a position."""
        return int(self.first_position[-1])

    @property
    def nv(self) -> int:
        """Numbers in a velocity."""
        return int(self.first_velocity[-1])


def sorted_bodies(bodies: Sequence[Body]) -> list[Body]:
    """Parents before children, otherwise in the order given."""
    by_name: dict[str, Body] = {}
    for body in bodies:
        if body.name in by_name:
            raise ModelError(f"two bodies are called {body.name!r}; give each a name of its own")
        by_name[body.name] = body
    done: dict[str, Body] = {}
    for body in bodies:
        path: list[str] = []
        current: Body | None = body
        while current is not None and current.name not in done:
            if current.name in path:
                cycle = " → ".join([*path[path.index(current.name) :], current.name])
                raise ModelError(f"the bodies form a cycle, not a tree: {cycle}")
            path.append(current.name)
            if current.parent is None:
                break
            if current.parent not in by_name:
                raise ModelError(f"body {current.name!r} hangs on {current.parent!r}, which does not exist")
            current = by_name[current.parent]
        for name in reversed(path):
            done[name] = by_name[name]
    return list(done.values())


def compile_model(bodies: Sequence[Body]) -> Model:
    """The links of `bodies`, which must be sorted parents first."""
    number = {body.name: row for row, body in enumerate(bodies)}
    body_parent = [-1 if body.parent is None else number[body.parent] for body in bodies]
    body_link: list[int] = []
    kinds: list[str] = []
    parents: list[int] = []
    placed: list[int] = []
    joints: list[Joint] = []
    names: list[str] = []
    start: list[np.ndarray] = [np.zeros(0)]
    for row, body in enumerate(bodies):
        link = -1 if body.parent is None else body_link[body_parent[row]]
        for order, joint in enumerate(body.joints):
            _check_joint(body, joint)
            kinds.append(joint.kind)
            parents.append(link)
            placed.append(row if order == 0 else -1)
            joints.append(joint)
            names.append(joint.name or (f"{body.name}.{order}" if len(body.joints) > 1 else body.name))
            start.append(_start(body, joint))
            link = len(kinds) - 1
        body_link.append(link)
    numbers = np.array([KINDS[kind] for kind in kinds], int).reshape(-1, 3)
    first_position = np.concatenate([[0], numbers[:, 1].cumsum()]).astype(np.int32)
    rotations, offsets, zero_rotations, zero_offsets = (
        np.array([_frames(joint)[k] for joint in joints]).reshape(-1, *shape)
        for k, shape in enumerate([(3, 3), (3,), (3, 3), (3,)])
    )
    return Model(
        body_names=tuple(body.name for body in bodies),
        joint_names=tuple(names),
        kind=numbers[:, 0].astype(np.int32),
        parent=np.array(parents, np.int32),
        first_position=first_position,
        first_velocity=np.concatenate([[0], numbers[:, 2].cumsum()]).astype(np.int32),
        placed_body=np.array(placed, np.int32),
        frame_rotation=rotations,
        frame_offset=offsets,
        zero_rotation=zero_rotations,
        zero_offset=zero_offsets,
        body_link=np.array(body_link, np.int32),
        body_parent=np.array(body_parent, np.int32),
        fixed=np.array([not body.joints for body in bodies], bool),
        axes=np.concatenate([np.zeros((0, 6)), *(_axes(kind) for kind in kinds)]),
        start=np.concatenate(start),
        servo=np.repeat(
            np.array([link if joint.servo else -1 for link, joint in enumerate(joints)], np.int32), numbers[:, 2]
        ),
        limited=np.array([joint.limits is not None for joint in joints], bool),
        quaternions=np.array(
            [first_position[k + 1] - 4 for k, kind in enumerate(kinds) if kind in ("ball", "free")], int
        ),
    )


def _check_joint(body: Body, joint: Joint) -> None:
    if joint.kind not in KINDS:
        raise ModelError(f"body {body.name!r}: no joint of kind {joint.kind!r}; there are {', '.join(KINDS)}")
    if joint.kind == "free" and (len(body.joints) > 1 or body.parent is not None):
        raise ModelError(f"body {body.name!r}: a free joint must be its only joint, and the world its parent")
    if joint.limits is not None and joint.kind == "free":
        raise ModelError(f"body {body.name!r}: a free joint cannot have limits")
    if joint.limits is not None and joint.kind == "ball" and joint.limits[0] != -np.inf:
        raise ModelError(f"body {body.name!r}: a ball joint has limits (-inf, largest angle), got {joint.limits}")
    if joint.servo and joint.kind not in ("revolute", "prismatic"):
        raise ModelError(f"body {body.name!r}: a {joint.kind} joint has no servo; revolute and prismatic ones may")
    if joint.kind in ("revolute", "prismatic") and not np.linalg.norm(np.asarray(joint.axis, float)) > 0:
        raise ModelError(f"body {body.name!r}: joint axis {tuple(joint.axis)} has no direction")


def _frames(joint: Joint) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rotation and offset of the link's frame in the body's, where the joint is in use and where its number is 0."""
    if joint.kind not in ("revolute", "prismatic"):
        offset = np.asarray(joint.anchor, float) if joint.kind == "ball" else np.zeros(3)
        return np.eye(3), offset, np.eye(3), offset
    z = np.asarray(joint.axis, float) / np.linalg.norm(np.asarray(joint.axis, float))
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z], 1)
    offset = np.asarray(joint.anchor, float)
    if joint.kind == "prismatic":
        return rotation, offset, rotation, offset - joint.zero * z
    c, s = np.cos(joint.zero), np.sin(joint.zero)
    back = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    return rotation, offset, rotation @ back, offset


def _start(body: Body, joint: Joint) -> np.ndarray:
    identity = {"ball": [1, 0, 0, 0], "free": [0, 0, 0, 1, 0, 0, 0]}.get(joint.kind, [joint.zero])
    start = np.asarray(identity if joint.start is None else joint.start, float).reshape(-1)
    if start.shape != (len(identity),):
        raise ModelError(
            f"body {body.name!r}: start has {start.size} numbers, a {joint.kind} joint needs {len(identity)}"
        )
    return start


def _axes(kind: str) -> np.ndarray:
    z_turn, z_shift = [0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]
    turns, shifts = np.eye(6)[:3], np.eye(6)[3:]
    columns = {"revolute": [z_turn], "prismatic": [z_shift], "ball": turns, "free": np.concatenate([shifts, turns])}
    return np.asarray(columns[kind], float)
