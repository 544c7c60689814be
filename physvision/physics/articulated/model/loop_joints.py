"""Loop joints: equality constraints between two bodies that close kinematic loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physvision.core import ModelError, Placed, Sphere
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.settings import SETTINGS


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
