"""The equalities of a MuJoCo model that hold points or frames of bodies together."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from physvision.physics.articulated.loading.geometry import matrix
from physvision.physics.articulated.loading.names import named
from physvision.physics.articulated.loading.transmissions import CONNECTIONS, active_equalities
from physvision.physics.articulated.model.loop_joints import Connection

_WELD, _SITE = mujoco.mjtEq.mjEQ_WELD, mujoco.mjtObj.mjOBJ_SITE


def connections(model: mujoco.MjModel, body_names: Sequence[str]) -> list[Connection]:
    """All that hold from the start, by the names of the bodies behind the world."""
    return [
        _connection(model, e, ["", *body_names])
        for e in active_equalities(model)
        if mujoco.mjtEq(int(model.eq_type[e])) in CONNECTIONS
    ]


def _connection(model: mujoco.MjModel, e: int, names: Sequence[str]) -> Connection:
    ends = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
    weld = model.eq_type[e] == _WELD.value
    if model.eq_objtype[e] == _SITE.value:
        poses = [_pose(model.site_pos[site], matrix(model.site_quat[site])) for site in ends]
        ends = [int(model.site_bodyid[site]) for site in ends]
    elif weld:
        # The point in the second body, then in the first, and how the second is turned in the first.
        first = _pose(model.eq_data[e, 3:6], matrix(model.eq_data[e, 6:10]))
        poses = [first, _pose(model.eq_data[e, :3], np.eye(3))]
    else:
        poses = [_pose(model.eq_data[e, :3], np.eye(3)), _pose(model.eq_data[e, 3:6], np.eye(3))]
    first, second = (names[end] or None for end in ends)
    return Connection(first, second, *poses, weld=bool(weld), name=named(model, "equality", e))


def _pose(point: np.ndarray, turn: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn, point
    return pose
