"""Features of a MuJoCo model that the articulated engine does not simulate."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import mujoco
import numpy as np

from physvision.physics.articulated.loading.contacts import unsupported_contacts
from physvision.physics.articulated.loading.names import (
    YIELDING,
    is_disabled,
    join_names,
    nonzero_rows,
    object_name,
)
from physvision.physics.articulated.loading.transmissions import (
    active_equalities,
    driven_joints,
    equality_obstacle,
    feedback,
    is_transmission,
    tendon_obstacle,
)

# Features that `ignore` leaves out, by name; docs/articulated.md has this table.
IGNORABLE = {
    "contact": "all contact of shapes, and what of it cannot be simulated",
    "pair": "pairs of shapes between which contact is not supported",
    "rotational_friction": "torsional and rolling friction; sliding friction stays",
    "surface": "adhesion and surfaces that move by themselves",
    "limit": "limits of joints",
    "equality": "equality constraints, all of them",
    "tendon": "tendons, all of them",
    "actuator": "the actuators that are rejected (not linear, delayed, or of no joint or fixed tendon); others stay",
    "fluid": "all forces of the fluid",
    "gravity_compensation": "compensation of gravity",
    "friction_loss": "dry friction of joints and tendons",
    "nonlinear": "polynomial terms of springs and dampers of joints",
    "plasticity": "springs of joints that yield",
    "flex": "flexible bodies",
    "sleep": "sleeping of bodies",
    "plugin": "plug-ins",
}
_DISABLE = mujoco.mjtDisableBit
_SCALAR_JOINTS = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
_OTHER_TARGETS = {
    mujoco.mjtTrn.mjTRN_BODY: "exerts adhesion on the contacts of a body",
    mujoco.mjtTrn.mjTRN_SITE: "acts on a site, not on a joint or a fixed tendon",
    mujoco.mjtTrn.mjTRN_SLIDERCRANK: "drives a slider-crank",
    mujoco.mjtTrn.mjTRN_TENDON: "drives a spatial tendon",
}
_LINEAR_DYNAMICS = (mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT, mujoco.mjtDyn.mjDYN_INTEGRATOR)


def unsupported_features(model: mujoco.MjModel) -> dict[str, str]:
    """Unsupported features with an effect, each with its occurrences; none in a model without velocities."""
    if model.nv == 0:
        return {}
    has_gravity = not is_disabled(model, _DISABLE.mjDSBL_GRAVITY) and np.any(model.opt.gravity)
    features = {
        **unsupported_contacts(model),
        "equality": _rejected(model, "equality", ((e, equality_obstacle(model, e)) for e in active_equalities(model))),
        "tendon": _rejected(model, "tendon", ((t, tendon_obstacle(model, t)) for t in range(model.ntendon))),
        "actuator": _rejected(model, "actuator", enumerate(actuator_obstacles(model))),
        "fluid": _unsupported_fluid(model),
        "gravity_compensation": _nonzero_names(model, "body", model.body_gravcomp) if has_gravity else "",
        "nonlinear": _nonlinear_joints(model),
        "plasticity": _nonzero_names(model, "joint", model.jnt_springyield) if YIELDING else "",
        "flex": _names(model, "flex", range(model.nflex)),
        "sleep": "sleeping is enabled" if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP.value else "",
        "plugin": f"{model.nplugin} plugins" if model.nplugin else "",
    }
    return {feature: occurrences for feature, occurrences in features.items() if occurrences}


def _rejected(model: mujoco.MjModel, kind: str, obstacles: Iterable[tuple[int, str | None]]) -> str:
    """Names of the objects of a kind that cannot be simulated, with the reasons."""
    return join_names(f"{object_name(model, kind, k)} ({reason})" for k, reason in obstacles if reason)


def _names(model: mujoco.MjModel, kind: str, numbers: Iterable[int]) -> str:
    return join_names(object_name(model, kind, k) for k in numbers)


def _nonzero_names(model: mujoco.MjModel, kind: str, values: np.ndarray) -> str:
    return _names(model, kind, np.flatnonzero(nonzero_rows(values)).tolist())


def is_actuator_disabled(model: mujoco.MjModel, k: int) -> bool:
    """If true, actuator k exerts no force because all actuators or its group are disabled."""
    group = int(model.actuator_group[k])
    return is_disabled(model, _DISABLE.mjDSBL_ACTUATION) or (
        0 <= group < 31 and bool(int(model.opt.disableactuator) & (1 << group))
    )


def actuator_obstacles(model: mujoco.MjModel) -> list[str | None]:
    """Reason for each actuator why its force is not linear in control, position and velocity; None if it is."""
    drive_counts = Counter(joint for k in range(model.nactuator) for joint in driven_joints(model, k) or ())
    return [_actuator_obstacle(model, k, drive_counts) for k in range(model.nactuator)]


def _actuator_obstacle(model: mujoco.MjModel, k: int, drive_counts: Mapping[int, int]) -> str | None:
    """Reason for actuator k, given the number of actuators that drive each joint."""
    if is_actuator_disabled(model, k):
        return None
    joints = driven_joints(model, k)
    if joints is None:
        kind = mujoco.mjtTrn(int(model.actuator_trntype[k]))
        return f"it {_OTHER_TARGETS.get(kind, 'does not drive a joint or a fixed tendon')}"
    if any(mujoco.mjtJoint(int(model.jnt_type[joint])) not in _SCALAR_JOINTS for joint in joints):
        return "it drives a ball or free joint"
    if (reason := _state_obstacle(model, k)) is not None:
        return reason
    if model.actuator_gaintype[k] != mujoco.mjtGain.mjGAIN_FIXED.value:
        return "its gain is not constant"
    if model.actuator_biastype[k] == mujoco.mjtBias.mjBIAS_AFFINE.value:
        constant, stiffness, damping = feedback(model, k)
        if constant != 0 and stiffness == 0:
            return "it has a constant force without a control"
        if stiffness < 0 or damping < 0:
            return "its feedback is positive"
    elif model.actuator_biastype[k] != mujoco.mjtBias.mjBIAS_NONE.value:
        return "its bias is not affine"
    if _shares_force_limit(model, k, drive_counts):
        return "its force is limited together with that of another actuator"
    if model.actuator_ctrlnum[k] != 1:
        return "it has more than one control"
    if model.actuator_delay[k] or model.actuator_history[k].any():
        return "its control is delayed"
    if model.actuator_damping[k] or model.actuator_dampingpoly[k].any() or model.actuator_armature[k]:
        return "it has damping or inertia of its own"
    return None


def _state_obstacle(model: mujoco.MjModel, k: int) -> str | None:
    """Reason why the inner state of actuator k does not follow its control linearly; None if it does."""
    kind = mujoco.mjtDyn(int(model.actuator_dyntype[k]))
    if kind == mujoco.mjtDyn.mjDYN_NONE:
        return None
    if kind not in _LINEAR_DYNAMICS or model.actuator_actnum[k] != 1:
        return "its activation is not linear in its control"
    integrates = kind == mujoco.mjtDyn.mjDYN_INTEGRATOR
    if not integrates and not model.actuator_dynprm[k, 0] > 0:
        return "its activation has no time constant"
    if model.actuator_actlimited[k]:
        servo = "it is a servo of integrated velocity (intvelocity): " if integrates and feedback(model, k)[1] else ""
        return f"{servo}its activation has limits (actrange)"
    if model.actuator_actearly[k]:
        return "its activation acts a step early (actearly)"
    limited = model.actuator_forcelimited[k] or any(model.jnt_actfrclimited[j] for j in driven_joints(model, k) or ())
    return "its force is limited, and follows its activation" if limited and not is_transmission(model, k) else None


def _shares_force_limit(model: mujoco.MjModel, k: int, drive_counts: Mapping[int, int]) -> bool:
    """If true, a limit of the force on a joint applies to actuator k and others together."""
    joints = driven_joints(model, k) or {}
    shared = len(joints) > 1 or any(drive_counts[joint] > 1 for joint in joints)
    return shared and any(model.jnt_actfrclimited[joint] for joint in joints)


def _unsupported_fluid(model: mujoco.MjModel) -> str:
    """Fluid forces beyond the drag of boxes in a fluid at rest."""
    if not (model.opt.density or model.opt.viscosity):
        return ""
    bodies = (int(model.geom_bodyid[geom]) for geom in np.flatnonzero(model.geom_fluid[:, 0]))
    return _names(model, "body", bodies) or ("wind" if np.any(model.opt.wind) else "")


def _nonlinear_joints(model: mujoco.MjModel) -> str:
    springs = np.flatnonzero(nonzero_rows(model.jnt_stiffnesspoly))
    dampers = np.flatnonzero(nonzero_rows(model.dof_dampingpoly))
    return _names(model, "joint", sorted({*springs.tolist(), *model.dof_jntid[dampers].tolist()}))
