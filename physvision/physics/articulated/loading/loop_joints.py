"""Equality constraints of a MuJoCo model between points (`connect`) or frames (`weld`) of bodies."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from physvision.physics.articulated.loading.geometry import pose_tuple
from physvision.physics.articulated.loading.names import object_name
from physvision.physics.articulated.loading.transmissions import active_equalities, is_loop
from physvision.physics.articulated.model.mechanism import LoopJoint

_WELD, _SITE = mujoco.mjtEq.mjEQ_WELD, mujoco.mjtObj.mjOBJ_SITE
_UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])  # quaternion of no rotation


def loop_joints(model: mujoco.MjModel, body_names: Sequence[str]) -> list[LoopJoint]:
    """All constraints that are active from the start, given the names of all bodies but the world."""
    return [_loop_joint(model, e, ["", *body_names]) for e in active_equalities(model) if is_loop(model, e)]


def _loop_joint(model: mujoco.MjModel, e: int, names: Sequence[str]) -> LoopJoint:
    bodies = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
    weld = model.eq_type[e] == _WELD.value
    if model.eq_objtype[e] == _SITE.value:
        poses = [pose_tuple(model.site_pos[site], model.site_quat[site]) for site in bodies]
        bodies = [int(model.site_bodyid[site]) for site in bodies]
    elif weld:
        # The point in the second body, then in the first, and the second's orientation in the first.
        first = pose_tuple(model.eq_data[e, 3:6], model.eq_data[e, 6:10])
        poses = [first, pose_tuple(model.eq_data[e, :3], _UPRIGHT)]
    else:
        poses = [pose_tuple(model.eq_data[e, start : start + 3], _UPRIGHT) for start in (0, 3)]
    first, second = (names[body] or None for body in bodies)
    name, scale = object_name(model, "equality", e), float(model.eq_data[e, 10]) if weld else 1.0
    return LoopJoint(first, second, *poses, weld=bool(weld), name=name, torque_scale=scale)
