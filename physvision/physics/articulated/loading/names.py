"""Names and switches of a MuJoCo model, for messages and decisions."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np

_OBJECTS = {
    kind: getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    for kind in ("body", "joint", "actuator", "tendon", "equality", "flex", "key")
}


def named(model: mujoco.MjModel, kind: str, k: int) -> str:
    """The name of the k-th body, joint, actuator …, or its number."""
    return mujoco.mj_id2name(model, _OBJECTS[kind], int(k)) or f"{kind} {k}"


def disabled(model: mujoco.MjModel, bit: mujoco.mjtDisableBit) -> bool:
    """Whether the model's options switch this off."""
    return bool(model.opt.disableflags & bit.value)


def listed(names: Iterable[str]) -> str:
    """The first names of many, in a row."""
    found = list(names)
    return ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")


def any_in_row(values: np.ndarray) -> np.ndarray:
    """Whether each row has a number other than zero."""
    rows = np.asarray(values, bool).reshape(len(values), max(1, int(np.prod(values.shape[1:]))))
    return np.logical_or.reduce(rows, axis=1)
