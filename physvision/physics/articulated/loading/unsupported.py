"""What a MuJoCo model may hold that the articulated engine does not simulate, found and named."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np

from physvision.physics.articulated.loading.contacts import contact_findings
from physvision.physics.articulated.loading.names import any_in_row, disabled, listed, named
from physvision.physics.articulated.loading.transmissions import (
    driven_joints,
    equalities_refused,
    feedback,
    is_row,
    tendons_refused,
)

IGNORABLE = (
    "contact",
    "pair",
    "turning_friction",
    "surface",
    "limit",
    "equality",
    "tendon",
    "actuator",
    "fluid",
    "gravity_compensation",
    "friction_loss",
    "nonlinear",
    "plasticity",
    "flex",
    "sleep",
    "plugin",
)
_DISABLE = mujoco.mjtDisableBit
_ONE_NUMBER = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


def findings(model: mujoco.MjModel) -> dict[str, str]:
    """Kind: what of it there is; only what has an effect, which is nothing where nothing moves."""
    if model.nv == 0:
        return {}
    falls = not disabled(model, _DISABLE.mjDSBL_GRAVITY) and np.any(model.opt.gravity)
    found = {
        **contact_findings(model),
        "equality": equalities_refused(model),
        "tendon": tendons_refused(model),
        "actuator": listed(
            f"{named(model, 'actuator', k)} ({reason})"
            for k in range(model.nactuator)
            if (reason := actuator_obstacle(model, k)) is not None
        ),
        "fluid": _fluid(model),
        "gravity_compensation": _of(model, "body", model.body_gravcomp) if falls else "",
        "nonlinear": _nonlinear(model),
        "plasticity": _of(model, "joint", model.jnt_springyield),
        "flex": listed(named(model, "flex", k) for k in range(model.nflex)),
        "sleep": "bodies may fall asleep" if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP.value else "",
        "plugin": f"{model.nplugin} plugins" if model.nplugin else "",
    }
    return {kind: what for kind, what in found.items() if what}


def _of(model: mujoco.MjModel, kind: str, *values: np.ndarray) -> str:
    """Names of those with a number other than zero; a second array is that of the numbers that the first points to."""
    numbers = values[0] if len(values) == 1 else values[1][values[0]]
    return listed(named(model, kind, k) for k in np.flatnonzero(any_in_row(numbers)).tolist())


def switched_off(model: mujoco.MjModel, k: int) -> bool:
    """Whether actuator k never pushes: all are switched off, or its group is."""
    group = int(model.actuator_group[k])
    return disabled(model, _DISABLE.mjDSBL_ACTUATION) or (
        0 <= group < 31 and bool(int(model.opt.disableactuator) & (1 << group))
    )


def actuator_obstacle(model: mujoco.MjModel, k: int) -> str | None:
    """Why actuator k is not a force that is linear in its control, a joint's position and its velocity."""
    if switched_off(model, k):
        return None
    driven = driven_joints(model, k)
    if driven is None:
        return "it does not drive a joint or a fixed tendon"
    if any(mujoco.mjtJoint(int(model.jnt_type[joint])) not in _ONE_NUMBER for joint in driven):
        return "it drives a ball or free joint"
    if (reason := _activation_obstacle(model, k)) is not None:
        return reason
    if model.actuator_gaintype[k] != mujoco.mjtGain.mjGAIN_FIXED.value:
        return "its gain is not constant"
    if model.actuator_biastype[k] == mujoco.mjtBias.mjBIAS_AFFINE.value:
        constant, stiffness, damping = feedback(model, k)
        if constant != 0 and stiffness == 0:
            return "it pushes without being told to"
        if stiffness < 0 or damping < 0:
            return "its feedback is positive"
    elif model.actuator_biastype[k] != mujoco.mjtBias.mjBIAS_NONE.value:
        return "its bias is not affine"
    if _limited_together(model, k):
        return "its force is limited together with that of another actuator"
    if model.actuator_ctrlnum[k] != 1:
        return "it has more than one control"
    if model.actuator_delay[k] or model.actuator_history[k].any():
        return "its control is delayed"
    if model.actuator_damping[k] or model.actuator_dampingpoly[k].any() or model.actuator_armature[k]:
        return "it has damping or inertia of its own"
    return None


_LINEAR_DYNAMICS = (mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT, mujoco.mjtDyn.mjDYN_INTEGRATOR)


def _activation_obstacle(model: mujoco.MjModel, k: int) -> str | None:
    """Why the activation of actuator k does not follow its control linearly."""
    kind = mujoco.mjtDyn(int(model.actuator_dyntype[k]))
    if kind == mujoco.mjtDyn.mjDYN_NONE:
        return None
    if kind not in _LINEAR_DYNAMICS or model.actuator_actnum[k] != 1:
        return "its activation is not linear in its control"
    if kind != mujoco.mjtDyn.mjDYN_INTEGRATOR and not model.actuator_dynprm[k, 0] > 0:
        return "its activation has no time constant"
    if model.actuator_actlimited[k] or model.actuator_actearly[k]:
        return "its activation is limited, or taken early"
    limited = model.actuator_forcelimited[k] or any(model.jnt_actfrclimited[j] for j in driven_joints(model, k) or ())
    return "its force is limited, and follows its activation" if limited and not is_row(model, k) else None


def _limited_together(model: mujoco.MjModel, k: int) -> bool:
    """Whether a limit of the force on a joint holds for actuator k and others together."""
    driven = set(driven_joints(model, k) or ())
    others = (set(driven_joints(model, other) or ()) for other in range(model.nactuator) if other != k)
    shared = len(driven) > 1 or any(driven & each for each in others)
    return shared and any(model.jnt_actfrclimited[joint] for joint in driven)


def _fluid(model: mujoco.MjModel) -> str:
    """What of a medium is beyond the drag of boxes at rest."""
    if not (model.opt.density or model.opt.viscosity):
        return ""
    shaped = listed(named(model, "body", int(model.geom_bodyid[k])) for k in np.flatnonzero(model.geom_fluid[:, 0]))
    return shaped or ("wind" if np.any(model.opt.wind) else "")


def limits_hold(model: mujoco.MjModel) -> bool:
    """Whether the limits of joints have an effect."""
    return not disabled(model, _DISABLE.mjDSBL_LIMIT) and not disabled(model, _DISABLE.mjDSBL_CONSTRAINT)


def friction_holds(model: mujoco.MjModel) -> bool:
    """Whether the dry friction of joints has an effect."""
    return not disabled(model, _DISABLE.mjDSBL_FRICTIONLOSS) and not disabled(model, _DISABLE.mjDSBL_CONSTRAINT)


def _nonlinear(model: mujoco.MjModel) -> str:
    springs = np.flatnonzero(any_in_row(model.jnt_stiffnesspoly))
    dampers = np.flatnonzero(any_in_row(model.dof_dampingpoly))
    return listed(named(model, "joint", j) for j in sorted({*springs.tolist(), *model.dof_jntid[dampers].tolist()}))
