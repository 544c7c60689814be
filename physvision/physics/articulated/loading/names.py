"""Names and flags of a MuJoCo model, for messages and decisions."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np

_OBJECTS = {
    kind: getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    for kind in ("body", "joint", "actuator", "tendon", "equality", "flex", "key")
}
ON_JOINTS = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
_MAX_LISTED = 6
# Springs that yield, which MuJoCo knows from 4 on: the end of the names of a model's arrays.
YIELDING = ("springyield",) if hasattr(mujoco.MjModel, "jnt_springyield") else ()


def object_name(model: mujoco.MjModel, kind: str, k: int) -> str:
    """Name of the k-th body, joint, actuator …, or its number; unnamed actuators get that of their joint if free."""
    name = mujoco.mj_id2name(model, _OBJECTS[kind], int(k))
    return name or (_name_of_joint(model, k) if kind == "actuator" else "") or f"{kind} {k}"


def _name_of_joint(model: mujoco.MjModel, k: int) -> str:
    """Name of the joint that actuator k drives; empty if another actuator has this name, or may have it as well."""
    on_joint = np.isin(model.actuator_trntype, ON_JOINTS)
    if not on_joint[k]:
        return ""
    name = mujoco.mj_id2name(model, _OBJECTS["joint"], int(model.actuator_trnid[k, 0])) or ""
    rivals = np.flatnonzero(on_joint & (model.actuator_trnid[:, 0] == model.actuator_trnid[k, 0])).tolist()
    unnamed = [rival for rival in rivals if not mujoco.mj_id2name(model, _OBJECTS["actuator"], rival)]
    return name if len(unnamed) == 1 and mujoco.mj_name2id(model, _OBJECTS["actuator"], name) < 0 else ""


def is_disabled(model: mujoco.MjModel, *bits: mujoco.mjtDisableBit) -> bool:
    """If true, the model's options disable one of these features."""
    return any(model.opt.disableflags & bit.value for bit in bits)


def join_names(names: Iterable[str]) -> str:
    """Join names by commas, with a count in place of all but the first few."""
    names = list(names)
    rest = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def nonzero_rows(values: np.ndarray) -> np.ndarray:
    """Mask of the rows with a number other than zero."""
    rows = np.asarray(values, bool).reshape(len(values), max(1, int(np.prod(values.shape[1:]))))
    return np.logical_or.reduce(rows, axis=1)
