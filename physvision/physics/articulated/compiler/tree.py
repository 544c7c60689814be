"""Compilation of bodies and joints to the arrays of a kinematic tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from physvision.core import ModelError
from physvision.physics.articulated.model.bodies import JOINT_KINDS, Body, Joint
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.settings import SETTINGS

_SCALAR_JOINTS = ("revolute", "prismatic")


def compile_tree(bodies: Sequence[Body]) -> KinematicTree:
    """Compile bodies, which must be sorted parents first."""
    number = {body.name: row for row, body in enumerate(bodies)}
    body_parent = [-1 if body.parent is None else number[body.parent] for body in bodies]
    body_link: list[int] = []
    parents: list[int] = []
    placed: list[int] = []
    joints: list[Joint] = []
    initial: list[np.ndarray] = [np.zeros(0)]
    for row, body in enumerate(bodies):
        link = -1 if body.parent is None else body_link[body_parent[row]]
        for order, joint in enumerate(body.joints):
            _check_joint(body, joint)
            parents.append(link)
            placed.append(row if order == 0 else -1)
            joints.append(joint)
            initial.append(_initial_position(body, joint))
            link = len(joints) - 1
        body_link.append(link)
    kinds = [joint.kind for joint in joints]
    numbers = np.array([JOINT_KINDS[kind] for kind in kinds], int).reshape(-1, 3)
    first_position = np.concatenate([[0], numbers[:, 1].cumsum()]).astype(np.int32)
    frames = [_frames(joint) for joint in joints]
    rotations, offsets, zero_rotations, zero_offsets = (
        np.array([frame[k] for frame in frames]).reshape(-1, *shape)
        for k, shape in enumerate([(3, 3), (3,), (3, 3), (3,)])
    )
    spring_link = np.array([link if joint.implicit_spring else -1 for link, joint in enumerate(joints)], np.int32)
    quaternions = [first_position[k + 1] - 4 for k, kind in enumerate(kinds) if kind in ("ball", "free")]
    return KinematicTree(
        body_names=tuple(body.name for body in bodies),
        joint_names=tuple(name for body in bodies for name in body.joint_names),
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
        motion_subspace=np.concatenate([np.zeros((0, 6)), *map(_motion_subspace, kinds)]),
        initial_q=np.concatenate(initial),
        spring_link=np.repeat(spring_link, numbers[:, 2]),
        limited=np.array([joint.limits is not None for joint in joints], bool),
        beyond_limits=np.array(list(map(_beyond_limits, joints, initial[1:])), bool).reshape(-1, 2),
        quaternions=np.array(quaternions, int),
    )


def _beyond_limits(joint: Joint, position: np.ndarray) -> tuple[bool, bool]:
    """True if the initial position of a joint is beyond its lower limit, and beyond its upper one."""
    if joint.limits is None:
        return False, False
    value = position[0] if len(position) == 1 else 2 * np.arctan2(np.linalg.norm(position[1:]), position[0])
    lower, upper = joint.limits
    tolerance = SETTINGS.max_initial_penetration
    return bool(value < lower - tolerance), bool(value > upper + tolerance)


def _check_joint(body: Body, joint: Joint) -> None:
    prefix = f"body {body.name!r}"
    if joint.kind not in JOINT_KINDS:
        raise ModelError(f"{prefix}: expected a joint kind among {', '.join(JOINT_KINDS)}, got {joint.kind!r}")
    if joint.kind == "free" and (len(body.joints) > 1 or body.parent is not None):
        raise ModelError(f"{prefix}: a free joint must be its only joint, and the world its parent")
    if joint.limits is not None and joint.kind == "free":
        raise ModelError(f"{prefix}: a free joint cannot have limits, got {joint.limits}")
    if joint.limits is not None and joint.kind == "ball" and joint.limits[0] != -np.inf:
        raise ModelError(f"{prefix}: expected limits (-inf, largest angle) of a ball joint, got {joint.limits}")
    if joint.implicit_spring and joint.kind not in _SCALAR_JOINTS:
        raise ModelError(f"{prefix}: implicit_spring needs a revolute or prismatic joint, got {joint.kind!r}")
    if joint.kind in _SCALAR_JOINTS and not np.linalg.norm(np.asarray(joint.axis, float)) > 0:
        raise ModelError(f"{prefix}: expected a joint axis other than zero, got {tuple(joint.axis)}")


def _frames(joint: Joint) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rotation and offset of the link's frame in the body's, in use and at position zero."""
    if joint.kind not in _SCALAR_JOINTS:
        offset = np.asarray(joint.anchor, float) if joint.kind == "ball" else np.zeros(3)
        return np.eye(3), offset, np.eye(3), offset
    z = np.asarray(joint.axis, float) / np.linalg.norm(np.asarray(joint.axis, float))
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z], 1)
    offset = np.asarray(joint.anchor, float)
    if joint.kind == "prismatic":
        return rotation, offset, rotation, offset - joint.reference_position * z
    c, s = np.cos(joint.reference_position), np.sin(joint.reference_position)
    inverse = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    return rotation, offset, rotation @ inverse, offset


def _initial_position(body: Body, joint: Joint) -> np.ndarray:
    default = {"ball": [1, 0, 0, 0], "free": [0, 0, 0, 1, 0, 0, 0]}.get(joint.kind, [joint.reference_position])
    position = np.asarray(default if joint.initial_position is None else joint.initial_position, float).reshape(-1)
    if position.shape != (len(default),):
        raise ModelError(
            f"body {body.name!r}: expected an initial_position of {len(default)} numbers for a {joint.kind} joint, "
            f"got {position.size}"
        )
    return position


def _motion_subspace(kind: str) -> np.ndarray:
    rotations, translations = np.eye(6)[:3], np.eye(6)[3:]
    columns = {
        "revolute": rotations[2:],
        "prismatic": translations[2:],
        "ball": rotations,
        "free": np.concatenate([translations, rotations]),
    }
    return columns[kind]
