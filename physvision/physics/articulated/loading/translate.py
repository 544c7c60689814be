"""From a compiled MuJoCo model to bodies, joints, actuators and shapes."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Collection, Sequence

import mujoco
import numpy as np
import torch

from physvision.core import State
from physvision.physics.articulated.loading.geometry import geoms_of, matrix, placed
from physvision.physics.articulated.loading.names import disabled, named
from physvision.physics.articulated.loading.strings import TwoSites, knot, sites_of
from physvision.physics.articulated.loading.transmissions import driven_joints, feedback, is_row, transmissions
from physvision.physics.articulated.loading.unsupported import actuator_obstacle, switched_off
from physvision.physics.articulated.model.actuators import Activation
from physvision.physics.articulated.model.kinematic_tree import Body, Joint
from physvision.physics.articulated.model.transmissions import Transmission
from physvision.physics.articulated.tree_engine import Actuators

_JOINTS = {
    mujoco.mjtJoint.mjJNT_FREE: ("free", 7, 6),
    mujoco.mjtJoint.mjJNT_BALL: ("ball", 4, 3),
    mujoco.mjtJoint.mjJNT_SLIDE: ("prismatic", 1, 1),
    mujoco.mjtJoint.mjJNT_HINGE: ("revolute", 1, 1),
}
_DISABLE = mujoco.mjtDisableBit


def gravity(model: mujoco.MjModel) -> tuple[float, float, float]:
    """m/s²."""
    off = disabled(model, _DISABLE.mjDSBL_GRAVITY)
    x, y, z = (0.0 if off else float(value) for value in model.opt.gravity)
    return x, y, z


def bodies(
    model: mujoco.MjModel,
    touching: Collection[int] = (),
    limits: bool = False,
    rubs: bool = False,
    hanging: Sequence[TwoSites] = (),
) -> list[Body]:
    """All bodies but the world, in MuJoCo's order; those without a name get one that no other has.

    With limits of joints where `limits`, with their dry friction where `rubs`.
    """
    names = [model.body(number).name for number in range(model.nbody)]
    taken = set(names)
    for number, name in enumerate(names):
        if not name:
            names[number] = f"body {number}"
            while names[number] in taken:
                names[number] += " (without a name)"
            taken.add(names[number])
    return [_body(model, number, names, touching, limits, rubs, hanging) for number in range(1, model.nbody)]


def _body(
    model: mujoco.MjModel,
    number: int,
    names: list[str],
    touching: Collection[int],
    limits: bool,
    rubs: bool,
    hanging: Sequence[TwoSites],
) -> Body:
    first = int(model.body_jntadr[number])
    joints = [_joint(model, first + k, limits, rubs) for k in range(int(model.body_jntnum[number]))]
    free = bool(joints) and joints[0].kind == "free"
    parent = int(model.body_parentid[number])
    axes = matrix(model.body_iquat[number])
    return Body(
        name=names[number],
        parent=None if parent == 0 else names[parent],
        joints=joints,
        mass=float(model.body_mass[number]),
        center_of_mass=model.body_ipos[number].copy(),
        inertia=axes @ np.diag(model.body_inertia[number]) @ axes.T,
        # A free body's position is its pose in the world already.
        position=np.zeros(3) if free else model.body_pos[number].copy(),
        orientation=np.array([1.0, 0, 0, 0]) if free else model.body_quat[number].copy(),
        shapes=[placed(model, geom) for geom in geoms_of(model, number, touching)]
        + [knot(model, site) for site in sites_of(model, list(hanging), number)],
    )


def _joint(model: mujoco.MjModel, number: int, limits: bool, rubs: bool) -> Joint:
    kind, nq, nv = _JOINTS[mujoco.mjtJoint(int(model.jnt_type[number]))]
    q, v = int(model.jnt_qposadr[number]), int(model.jnt_dofadr[number])
    stiffness = 0.0 if disabled(model, _DISABLE.mjDSBL_SPRING) else float(model.jnt_stiffness[number])
    damping = 0.0 if disabled(model, _DISABLE.mjDSBL_DAMPER) else float(model.dof_damping[v])
    reference = model.qpos_spring[q : q + nq].copy()
    zero = float(model.qpos0[q]) if nv == 1 else 0.0
    if nv == 1:
        stiffness, reference, damping = _with_servos(model, number, stiffness, reference, damping)
    return Joint(
        kind=kind,
        axis=model.jnt_axis[number].copy(),
        anchor=model.jnt_pos[number].copy() if kind != "free" else np.zeros(3),
        damping=damping,
        armature=float(model.dof_armature[v]),
        friction_loss=float(model.dof_frictionloss[v]) if rubs else 0.0,
        stiffness=stiffness,
        spring_reference=reference,
        zero=zero,
        start=model.qpos0[q : q + nq].copy(),
        limits=_limits(model, number) if limits and kind != "free" and model.jnt_limited[number] else None,
        name=model.joint(number).name,
    )


def _limits(model: mujoco.MjModel, joint: int) -> tuple[float, float]:
    """A joint's range; of a ball joint MuJoCo takes the larger number for the largest angle."""
    low, high = (float(each) for each in model.jnt_range[joint])
    is_ball = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_BALL.value
    return (-np.inf, max(low, high)) if is_ball else (low, high)


def _with_servos(
    model: mujoco.MjModel, joint: int, stiffness: float, reference: np.ndarray, damping: float
) -> tuple[float, np.ndarray, float]:
    """Springs and dampers of a joint with those that its position and velocity servos amount to.

    A servo with gear g pulls with g (b₀ + b₁ g q + b₂ g q̇), b₁ and b₂ not above zero.
    """
    for k in usable_actuators(model):
        if not switched_off(model, k) and not is_row(model, k) and joint in (driven_joints(model, k) or ()):
            gear = float(model.actuator_gear[model.actuator_outadr[k], 0])
            constant, servo, drag = feedback(model, k)
            pull = stiffness * reference + gear * constant
            stiffness, damping = stiffness + servo * gear**2, damping + drag * gear**2
            reference = pull / stiffness if stiffness else reference
    return stiffness, reference, damping


def usable_actuators(model: mujoco.MjModel) -> list[int]:
    """Those that are forces linear in control, position and velocity, also those that are switched off."""
    if disabled(model, _DISABLE.mjDSBL_ACTUATION):
        return []
    return [k for k in range(model.nactuator) if actuator_obstacle(model, k) is None]


def rows(model: mujoco.MjModel) -> list[int]:
    """The actuators that are bounded rows."""
    return [k for k in usable_actuators(model) if not switched_off(model, k) and is_row(model, k)]


def transmissions_of(
    model: mujoco.MjModel, bodies: list[Body], ignore: Collection[str], speed: float
) -> list[Transmission]:
    """All bounded rows; those of actuators come first, which ask for no more than this speed."""
    names = [
        joint.name or (f"{body.name}.{order}" if len(body.joints) > 1 else body.name)
        for body in bodies
        for order, joint in enumerate(body.joints)
    ]
    return transmissions(model, names, rows(model), ignore, speed)


def activations(model: mujoco.MjModel, transmissions: int) -> list[Activation]:
    """The actuators with dynamics of their own, in their order, and what they push."""
    pulling, found = {k: t for t, k in enumerate(rows(model))}, []
    for k in usable_actuators(model):
        if late(model, k):
            push = np.zeros(model.nv + transmissions)
            if not switched_off(model, k):
                _push(model, k, pulling, push)
            adds_up = model.actuator_dyntype[k] == mujoco.mjtDyn.mjDYN_INTEGRATOR.value
            time = np.inf if adds_up else float(model.actuator_dynprm[k, 0])
            found.append(Activation(named(model, "actuator", k), time, push))
    return found


def late(model: mujoco.MjModel, k: int) -> bool:
    """Whether actuator k has an activation."""
    return bool(model.actuator_dyntype[k] != mujoco.mjtDyn.mjDYN_NONE.value)


def _push(model: mujoco.MjModel, k: int, pulling: dict[int, int], columns: np.ndarray) -> None:
    """Add the force on velocities, or the pull on its transmission, that a unit of actuator k's signal gives."""
    scale = float(model.actuator_gainprm[k, 0])
    if k in pulling:
        columns[model.nv + pulling[k]] += scale
        return
    for joint, share in (driven_joints(model, k) or {}).items():
        columns[model.jnt_dofadr[joint]] += scale * share


def actuators(
    model: mujoco.MjModel, transmissions: int = 0, activations: Sequence[Activation] = ()
) -> Actuators | None:
    """How the file's actuators turn controls into forces; None where it has none: a control is then a force."""
    usable = usable_actuators(model)
    if not usable:
        return None
    pulling = {k: t for t, k in enumerate(rows(model))}
    wheels = {each.name: (column, each.gain) for column, each in enumerate(activations)}
    direct, through = np.zeros((len(usable), model.nv + transmissions)), np.zeros((len(usable), len(wheels)))
    low, high = np.full(len(usable), -np.inf), np.full(len(usable), np.inf)
    for row, k in enumerate(usable):
        if switched_off(model, k):
            continue
        scale, driven = float(model.actuator_gainprm[k, 0]), driven_joints(model, k) or {}
        if late(model, k):
            column, torque = wheels[named(model, "actuator", k)]
            through[row, column] = torque
        else:
            _push(model, k, pulling, direct[row])
        control = int(model.actuator_ctrladr[k])
        if model.actuator_ctrllimited[control] and not disabled(model, _DISABLE.mjDSBL_CLAMPCTRL):
            low[row], high[row] = model.actuator_ctrlrange[control]
        if k not in pulling and not late(model, k):
            # Without feedback a limit of the force is one of the control.
            if model.actuator_forcelimited[k]:
                low[row], high[row] = _narrowed(low[row], high[row], model.actuator_forcerange[k], scale)
            for joint, share in driven.items():
                if model.jnt_actfrclimited[joint]:
                    low[row], high[row] = _narrowed(low[row], high[row], model.jnt_actfrcrange[joint], scale * share)
    gain = np.concatenate([direct[:, : model.nv], through, direct[:, model.nv :]], 1)
    return Actuators(gain, low, high, tuple(named(model, "actuator", k) for k in usable))


def _narrowed(low: float, high: float, forces: np.ndarray, scale: float) -> tuple[float, float]:
    """The controls of a range that give forces, scale times as large, of another range; what is beyond is clamped."""
    if scale == 0:
        return low, high
    least, most = sorted((float(forces[0]) / scale, float(forces[1]) / scale))
    return float(np.clip(low, least, most)), float(np.clip(high, least, most))


def keyframes(model: mujoco.MjModel) -> dict[str, State]:
    """The file's keyframes by name (or number): states of one world."""
    addresses = [int(model.actuator_actadr[k]) for k in usable_actuators(model) if late(model, k)]
    still = np.zeros(len(addresses))

    def state(k: int) -> State:
        q, v = (model.key_qpos[k], still), (model.key_qvel[k], model.key_act[k][addresses])
        return State(*(torch.tensor(np.concatenate(parts))[None] for parts in (q, v)))

    return {named(model, "key", k): state(k) for k in range(model.nkey)}


def sites(model: mujoco.MjModel) -> dict[str, tuple[int, tuple[float, ...]]]:
    """The named sites of bodies: the body's row, and the place in its frame, m."""
    found = {}
    for k in range(model.nsite):
        body, name = int(model.site_bodyid[k]), model.site(k).name
        if body and name:
            found[name] = (body - 1, tuple(float(value) for value in model.site_pos[k]))
    return found
