"""Forces of a MuJoCo model along combinations of joints: servos, fixed tendons and joint equalities."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np

from physvision.physics.articulated.loading.names import (
    ON_JOINTS,
    YIELDING,
    is_disabled,
    nonzero_rows,
    object_name,
)
from physvision.physics.articulated.loading.tendons import is_site_tendon
from physvision.physics.articulated.model.transmissions import Transmission

_Rename = Callable[[dict[int, float]], dict[str, float]]  # from numbers of joints to their names
_DISABLE = mujoco.mjtDisableBit
LOOP_EQUALITIES = (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)
_SCALAR_EQUALITIES = (mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_TENDON)
_NONLINEAR = ("stiffnesspoly", "dampingpoly", *YIELDING)
_TENDON_EFFECTS = ("limited", "stiffness", "damping", "frictionloss", "armature", *_NONLINEAR)


def driven_joints(model: mujoco.MjModel, k: int) -> dict[int, float] | None:
    """Joints that actuator k drives, with the force on each per unit of its force; None if it drives none."""
    number, kind = int(model.actuator_trnid[k, 0]), mujoco.mjtTrn(int(model.actuator_trntype[k]))
    gear = float(model.actuator_gear[model.actuator_outadr[k], 0])
    if kind in ON_JOINTS:
        return {number: gear}
    joints = tendon_joints(model, number) if kind == mujoco.mjtTrn.mjTRN_TENDON else None
    return None if joints is None else {joint: gear * coefficient for joint, coefficient in joints.items()}


def tendon_joints(model: mujoco.MjModel, tendon: int) -> dict[int, float] | None:
    """Joints of a fixed tendon with their coefficients; None for a spatial tendon."""
    first = int(model.tendon_adr[tendon])
    wraps = range(first, first + int(model.tendon_num[tendon]))
    if any(model.wrap_type[w] != mujoco.mjtWrap.mjWRAP_JOINT.value for w in wraps):
        return None
    joints: dict[int, float] = {}
    for w in wraps:
        joint = int(model.wrap_objid[w])
        joints[joint] = joints.get(joint, 0.0) + float(model.wrap_prm[w])
    return {joint: coefficient for joint, coefficient in joints.items() if coefficient}


def feedback(model: mujoco.MjModel, k: int) -> tuple[float, float, float]:
    """Constant force, stiffness and damping of actuator k."""
    if model.actuator_biastype[k] != mujoco.mjtBias.mjBIAS_AFFINE.value:
        return 0.0, 0.0, 0.0
    constant, position, velocity = (float(value) for value in model.actuator_biasprm[k, :3])
    return constant, -position, -velocity


def is_transmission(model: mujoco.MjModel, k: int) -> bool:
    """If true, actuator k is simulated as a transmission: it has feedback, and a limited force or a tendon."""
    _, stiffness, damping = feedback(model, k)
    joints = driven_joints(model, k)
    if joints is None or not (stiffness or damping):
        return False
    limited = bool(model.actuator_forcelimited[k]) or any(model.jnt_actfrclimited[joint] for joint in joints)
    return bool(limited or model.actuator_trntype[k] == mujoco.mjtTrn.mjTRN_TENDON.value)


def force_range(model: mujoco.MjModel, k: int) -> tuple[float, float]:
    """Lower and upper limit of the force of actuator k, including those of the joint that it alone drives."""
    low, high = -math.inf, math.inf
    if model.actuator_forcelimited[k]:
        low, high = (float(force) for force in model.actuator_forcerange[k])
    for joint, coefficient in (driven_joints(model, k) or {}).items():
        if model.jnt_actfrclimited[joint] and coefficient:
            lower, upper = sorted(float(force) / coefficient for force in model.jnt_actfrcrange[joint])
            low, high = max(low, lower), min(high, upper)
    return low, high


@dataclass(frozen=True)
class ServoSettings:
    """Settings of a file's servos, actuators with feedback and a limited force, which model files do not have.

    Attributes:
        max_speed: Largest commanded speed of position servos with a damper (`kv`), rad/s or m/s.
        smooth: If true, forces approach limits on both sides of zero smoothly, so that gradients do not vanish there
            (`Transmission`). Near its limits a force is smaller than MuJoCo's: by 29 % where that reaches one.
    """

    max_speed: float = math.inf
    smooth: bool = False


DEFAULT_SERVOS = ServoSettings()


class FileTransmission(NamedTuple):
    """A transmission with its element of the model file.

    Attributes:
        transmission: Transmission.
        kind: Kind of the element: "actuator", "spring", "friction" or "limit" of a tendon, or "equality".
        number: Number of the actuator, tendon or equality constraint.
    """

    transmission: Transmission
    kind: str
    number: int


def transmissions(
    model: mujoco.MjModel,
    joint_names: list[str],
    actuators: Collection[int],
    ignore: Collection[str],
    servos: ServoSettings,
    limits: bool,
) -> list[FileTransmission]:
    """Transmissions of actuators, in their order, then those of tendons and of equalities."""

    def rename(joints: dict[int, float]) -> dict[str, float]:
        return {joint_names[joint]: coefficient for joint, coefficient in joints.items()}

    result = []
    for k in actuators:
        constant, stiffness, damping = feedback(model, k)
        low, high = force_range(model, k)
        servo = Transmission(
            rename(driven_joints(model, k) or {}),
            stiffness=stiffness,
            damping=damping,
            rest_position=constant / stiffness if stiffness else 0.0,
            force_range=(low, high),
            name=object_name(model, "actuator", k),
            max_speed=servos.max_speed if stiffness and damping else math.inf,
            smooth=servos.smooth and low < 0 < high,
        )
        result.append(FileTransmission(servo, "actuator", k))
    if "tendon" not in ignore:
        result += [row for t in range(model.ntendon) for row in _fixed_tendon(model, t, rename, limits)]
    if "equality" not in ignore:
        result += [
            FileTransmission(_joint_equality(model, e, rename), "equality", e)
            for e in active_equalities(model)
            if equality_obstacle(model, e) is None and mujoco.mjtEq(int(model.eq_type[e])) in _SCALAR_EQUALITIES
        ]
    return result


def _fixed_tendon(model: mujoco.MjModel, t: int, rename: _Rename, limits: bool) -> Iterator[FileTransmission]:
    """Spring and damper of a fixed tendon, its dry friction and its limits."""
    joints, name = tendon_joints(model, t), object_name(model, "tendon", t)
    if not joints or tendon_obstacle(model, t) is not None:
        return
    stiffness = 0.0 if is_disabled(model, _DISABLE.mjDSBL_SPRING) else float(model.tendon_stiffness[t])
    damping = 0.0 if is_disabled(model, _DISABLE.mjDSBL_DAMPER) else float(model.tendon_damping[t])
    if stiffness or damping:
        rest = float(model.tendon_lengthspring[t, 0])
        spring = Transmission(rename(joints), stiffness=stiffness, damping=damping, rest_position=rest, name=name)
        yield FileTransmission(spring, "spring", t)
    loss = float(model.tendon_frictionloss[t])
    if loss and not is_disabled(model, _DISABLE.mjDSBL_FRICTIONLOSS, _DISABLE.mjDSBL_CONSTRAINT):
        friction = Transmission(rename(joints), "friction", force_range=(-loss, loss), name=name)
        yield FileTransmission(friction, "friction", t)
    if limits and model.tendon_limited[t]:
        low, high = (float(length) for length in model.tendon_range[t])
        opposite = {joint: -coefficient for joint, coefficient in joints.items()}
        for terms, rest in ((joints, low), (opposite, -high)):
            limit = Transmission(rename(terms), "limit", rest_position=rest, force_range=(0.0, math.inf), name=name)
            yield FileTransmission(limit, "limit", t)


def tendon_obstacle(model: mujoco.MjModel, t: int) -> str | None:
    """Reason why tendon t cannot be simulated; None if it can."""
    effects = {name for name in _TENDON_EFFECTS if np.any(getattr(model, f"tendon_{name}")[t])}
    if effects and tendon_joints(model, t) is None:
        return None if is_site_tendon(model, t) else "it is spatial"
    if effects & set(_NONLINEAR):
        return "its spring or damper is not linear"
    if "armature" in effects:
        return "it has inertia"
    if "stiffness" in effects and model.tendon_lengthspring[t, 0] != model.tendon_lengthspring[t, 1]:
        return "its spring has a dead band"
    return None


def active_equalities(model: mujoco.MjModel) -> list[int]:
    """Equality constraints that are active from the start."""
    if is_disabled(model, _DISABLE.mjDSBL_EQUALITY, _DISABLE.mjDSBL_CONSTRAINT):
        return []
    return np.flatnonzero(model.eq_active0).tolist()


def is_loop(model: mujoco.MjModel, e: int) -> bool:
    """If true, equality constraint e is one between bodies."""
    return mujoco.mjtEq(int(model.eq_type[e])) in LOOP_EQUALITIES


def equality_obstacle(model: mujoco.MjModel, e: int) -> str | None:
    """Reason why equality constraint e cannot be simulated; None if it can."""
    kind = mujoco.mjtEq(int(model.eq_type[e]))
    if kind in LOOP_EQUALITIES:
        return None
    if kind not in _SCALAR_EQUALITIES:
        return "it is of a flex"
    if any(_length(model, e, int(number)) is None for number in _sides(model, e)):
        return "its tendon is spatial"
    if nonzero_rows(model.eq_data[e : e + 1, 2:5])[0] and len(_sides(model, e)) > 1:
        return "its polynomial is not linear"
    return None


def _sides(model: mujoco.MjModel, e: int) -> list[int]:
    return [int(number) for number in (model.eq_obj1id[e], model.eq_obj2id[e]) if number >= 0]


def _length(model: mujoco.MjModel, e: int, number: int) -> tuple[dict[int, float], float] | None:
    """Joints of a side of an equality with their coefficients, and its length in the reference position."""
    if model.eq_type[e] == mujoco.mjtEq.mjEQ_JOINT.value:
        return {number: 1.0}, float(model.qpos0[model.jnt_qposadr[number]])
    joints = tendon_joints(model, number)
    return None if joints is None else (joints, float(model.tendon_length0[number]))


def _joint_equality(model: mujoco.MjModel, e: int, rename: _Rename) -> Transmission:
    """Constraint first = c₀ + c₁ · second, both relative to the reference position."""
    constant, slope = (float(value) for value in model.eq_data[e, :2])
    coefficients, rest = {}, constant
    for number, factor in zip(_sides(model, e), (1.0, -slope), strict=False):
        joints, reference = _length(model, e, number) or ({}, 0.0)
        rest += factor * reference
        for joint, coefficient in joints.items():
            coefficients[joint] = coefficients.get(joint, 0.0) + factor * coefficient
    nonzero = {joint: coefficient for joint, coefficient in coefficients.items() if coefficient}
    return Transmission(rename(nonzero), "equality", rest_position=rest, name=object_name(model, "equality", e))
