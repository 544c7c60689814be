"""What of a MuJoCo model pulls along combinations of joints: limited servos, fixed tendons, equalities of joints."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator

import mujoco
import numpy as np

from physvision.physics.articulated.loading.names import any_in_row, disabled, listed, named
from physvision.physics.articulated.loading.strings import is_string
from physvision.physics.articulated.model.transmissions import Transmission

_Shares = Callable[[dict[int, float]], dict[str, float]]  # from joints' numbers to their names
_DISABLE = mujoco.mjtDisableBit
_ON_JOINTS = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
CONNECTIONS = (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)
_SCALAR_EQUALITIES = (mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_TENDON)


def driven_joints(model: mujoco.MjModel, k: int) -> dict[int, float] | None:
    """The joints that actuator k drives, with the force on each for a unit of its own; None for other transmissions."""
    number, kind = int(model.actuator_trnid[k, 0]), mujoco.mjtTrn(int(model.actuator_trntype[k]))
    gear = float(model.actuator_gear[model.actuator_outadr[k], 0])
    if kind in _ON_JOINTS:
        return {number: gear}
    joints = tendon_joints(model, number) if kind == mujoco.mjtTrn.mjTRN_TENDON else None
    return None if joints is None else {joint: gear * share for joint, share in joints.items()}


def tendon_joints(model: mujoco.MjModel, tendon: int) -> dict[int, float] | None:
    """The joints of a fixed tendon, with their coefficients; None of a spatial one."""
    first = int(model.tendon_adr[tendon])
    wraps = range(first, first + int(model.tendon_num[tendon]))
    if any(model.wrap_type[w] != mujoco.mjtWrap.mjWRAP_JOINT.value for w in wraps):
        return None
    found: dict[int, float] = {}
    for w in wraps:
        joint = int(model.wrap_objid[w])
        found[joint] = found.get(joint, 0.0) + float(model.wrap_prm[w])
    return {joint: share for joint, share in found.items() if share}


def feedback(model: mujoco.MjModel, k: int) -> tuple[float, float, float]:
    """Constant, stiffness and damping of actuator k, beside what its control pulls."""
    if model.actuator_biastype[k] != mujoco.mjtBias.mjBIAS_AFFINE.value:
        return 0.0, 0.0, 0.0
    constant, position, velocity = (float(value) for value in model.actuator_biasprm[k, :3])
    return constant, -position, -velocity


def is_row(model: mujoco.MjModel, k: int) -> bool:
    """Whether actuator k is simulated as a bounded row: it feeds back and has a largest force, or drives a tendon."""
    _, stiffness, damping = feedback(model, k)
    driven = driven_joints(model, k)
    if driven is None or not (stiffness or damping):
        return False
    limited = bool(model.actuator_forcelimited[k]) or any(model.jnt_actfrclimited[joint] for joint in driven)
    return bool(limited or model.actuator_trntype[k] == mujoco.mjtTrn.mjTRN_TENDON.value)


def force_limits(model: mujoco.MjModel, k: int) -> tuple[float, float]:
    """Least and greatest force of actuator k itself, those of the joint that it alone drives included."""
    low, high = (
        (float(f) for f in model.actuator_forcerange[k]) if model.actuator_forcelimited[k] else (-math.inf, math.inf)
    )
    for joint, share in (driven_joints(model, k) or {}).items():
        if model.jnt_actfrclimited[joint] and share:
            one, other = sorted(float(f) / share for f in model.jnt_actfrcrange[joint])
            low, high = max(low, one), min(high, other)
    return low, high


def transmissions(
    model: mujoco.MjModel, joint_names: list[str], rows: Collection[int], ignore: Collection[str], speed: float
) -> list[Transmission]:
    """The bounded rows of actuators, in their order, then those of tendons and of equalities."""

    def shares(joints: dict[int, float]) -> dict[str, float]:
        return {joint_names[joint]: share for joint, share in joints.items()}

    found = []
    for k in rows:
        constant, stiffness, damping = feedback(model, k)
        found.append(
            Transmission(
                shares(driven_joints(model, k) or {}),
                stiffness=stiffness,
                damping=damping,
                rest=constant / stiffness if stiffness else 0.0,
                limits=force_limits(model, k),
                name=named(model, "actuator", k),
                speed=speed if stiffness and damping else math.inf,
            )
        )
    if "tendon" not in ignore:
        found += [each for t in range(model.ntendon) for each in _tendon(model, t, shares)]
    if "equality" not in ignore:
        found += [
            _tie(model, e, shares)
            for e in active_equalities(model)
            if equality_obstacle(model, e) is None and mujoco.mjtEq(int(model.eq_type[e])) in _SCALAR_EQUALITIES
        ]
    return found


def _tendon(model: mujoco.MjModel, t: int, shares: _Shares) -> Iterator[Transmission]:
    """Spring and damper of a fixed tendon, and its dry friction."""
    joints, name = tendon_joints(model, t), named(model, "tendon", t)
    if not joints or tendon_obstacle(model, t) is not None:
        return
    stiffness = 0.0 if disabled(model, _DISABLE.mjDSBL_SPRING) else float(model.tendon_stiffness[t])
    damping = 0.0 if disabled(model, _DISABLE.mjDSBL_DAMPER) else float(model.tendon_damping[t])
    if stiffness or damping:
        rest = float(model.tendon_lengthspring[t, 0])
        yield Transmission(shares(joints), stiffness=stiffness, damping=damping, rest=rest, name=name)
    loss = float(model.tendon_frictionloss[t])
    if loss and not (disabled(model, _DISABLE.mjDSBL_FRICTIONLOSS) or disabled(model, _DISABLE.mjDSBL_CONSTRAINT)):
        yield Transmission(shares(joints), "friction", limits=(-loss, loss), name=name)


def tendon_obstacle(model: mujoco.MjModel, t: int) -> str | None:
    """Why what tendon t does of itself cannot be simulated."""
    acts = (
        "limited",
        "stiffness",
        "damping",
        "frictionloss",
        "armature",
        "stiffnesspoly",
        "dampingpoly",
        "springyield",
    )
    doing = {name for name in acts if np.any(getattr(model, f"tendon_{name}")[t])}
    if doing and tendon_joints(model, t) is None:
        return None if is_string(model, t) else "it is spatial"
    if doing & {"stiffnesspoly", "dampingpoly", "springyield"}:
        return "its spring or damper is not linear"
    if doing & {"limited", "armature"}:
        return "its length is limited, or it has inertia"
    if "stiffness" in doing and model.tendon_lengthspring[t, 0] != model.tendon_lengthspring[t, 1]:
        return "its spring is slack over a range"
    return None


def active_equalities(model: mujoco.MjModel) -> list[int]:
    """Those that hold from the start."""
    if disabled(model, _DISABLE.mjDSBL_EQUALITY) or disabled(model, _DISABLE.mjDSBL_CONSTRAINT):
        return []
    return np.flatnonzero(model.eq_active0).tolist()


def equality_obstacle(model: mujoco.MjModel, e: int) -> str | None:
    """Why an equality is no linear tie between joints."""
    kind = mujoco.mjtEq(int(model.eq_type[e]))
    if kind in CONNECTIONS:
        return None
    if kind not in _SCALAR_EQUALITIES:
        return "it is of soft bodies"
    if any(_lengths(model, e, int(number)) is None for number in _sides(model, e)):
        return "its tendon is spatial"
    if any_in_row(model.eq_data[e : e + 1, 2:5])[0] and len(_sides(model, e)) > 1:
        return "its polynomial is not linear"
    return None


def _sides(model: mujoco.MjModel, e: int) -> list[int]:
    return [int(number) for number in (model.eq_obj1id[e], model.eq_obj2id[e]) if number >= 0]


def _lengths(model: mujoco.MjModel, e: int, number: int) -> tuple[dict[int, float], float] | None:
    """A joint, or the joints of a tendon, with their coefficients, and what they come to in the reference position."""
    if model.eq_type[e] == mujoco.mjtEq.mjEQ_JOINT.value:
        return {number: 1.0}, float(model.qpos0[model.jnt_qposadr[number]])
    joints = tendon_joints(model, number)
    return None if joints is None else (joints, float(model.tendon_length0[number]))


def _tie(model: mujoco.MjModel, e: int, shares: _Shares) -> Transmission:
    """First = c₀ + c₁ · second, both from the reference position."""
    constant, slope = (float(value) for value in model.eq_data[e, :2])
    sides = _sides(model, e)
    total, rest = {}, constant
    for number, factor in zip(sides, (1.0, -slope), strict=False):
        joints, reference = _lengths(model, e, number) or ({}, 0.0)
        rest += factor * reference
        for joint, share in joints.items():
            total[joint] = total.get(joint, 0.0) + factor * share
    return Transmission(
        shares({joint: share for joint, share in total.items() if share}),
        "tie",
        rest=rest,
        name=named(model, "equality", e),
    )


def equalities_refused(model: mujoco.MjModel) -> str:
    """The equalities that cannot be simulated, by name."""
    found = ((e, equality_obstacle(model, e)) for e in active_equalities(model))
    return listed(f"{named(model, 'equality', e)} ({reason})" for e, reason in found if reason is not None)


def tendons_refused(model: mujoco.MjModel) -> str:
    """The tendons that cannot be simulated, by name."""
    found = ((t, tendon_obstacle(model, t)) for t in range(model.ntendon))
    return listed(f"{named(model, 'tendon', t)} ({reason})" for t, reason in found if reason is not None)
