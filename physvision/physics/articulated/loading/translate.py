"""Translation of a compiled MuJoCo model to bodies, joints, actuators and keyframes."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import mujoco
import numpy as np
import torch

from physvision.core import State
from physvision.physics.articulated.loading.geometry import body_geoms, matrix, placed_geom
from physvision.physics.articulated.loading.names import is_disabled, object_name
from physvision.physics.articulated.loading.tendons import SiteTendon, site_marker, tendon_sites
from physvision.physics.articulated.loading.transmissions import (
    FileTransmission,
    ServoSettings,
    driven_joints,
    feedback,
    is_transmission,
    transmissions,
)
from physvision.physics.articulated.loading.unsupported import actuator_obstacles, is_actuator_disabled
from physvision.physics.articulated.model.actuators import Actuators, ActuatorState
from physvision.physics.articulated.model.bodies import JOINT_KINDS, Body, Joint

_JOINTS = {
    mujoco.mjtJoint.mjJNT_FREE: "free",
    mujoco.mjtJoint.mjJNT_BALL: "ball",
    mujoco.mjtJoint.mjJNT_SLIDE: "prismatic",
    mujoco.mjtJoint.mjJNT_HINGE: "revolute",
}
_DISABLE = mujoco.mjtDisableBit
_MIN_TIME_CONSTANT = 1e-15  # s, mjMINVAL
_MAX_TIME_RATIO = 40.0  # of a step to a time constant, beyond which a state reaches its control to rounding


class _Features(NamedTuple):
    """Features of a model that bodies are translated with.

    Attributes:
        colliding: Geoms that may collide.
        limits: If true, joints have limits.
        friction: If true, joints have dry friction.
        tendons: Tendons between sites, whose ends are drawn.
        servos: Actuators of each joint that are simulated as springs and dampers.
    """

    colliding: Collection[int]
    limits: bool
    friction: bool
    tendons: Sequence[SiteTendon]
    servos: Mapping[int, Sequence[int]]


def gravity(model: mujoco.MjModel) -> tuple[float, float, float]:
    """Gravity in the world's axes, m/s²."""
    disabled = is_disabled(model, _DISABLE.mjDSBL_GRAVITY)
    x, y, z = (0.0 if disabled else float(value) for value in model.opt.gravity)
    return x, y, z


def bodies(
    model: mujoco.MjModel,
    colliding: Collection[int] = (),
    limits: bool = False,
    friction: bool = False,
    tendons: Sequence[SiteTendon] = (),
) -> list[Body]:
    """All bodies but the world, in MuJoCo's order, with unique names for those without one.

    Args:
        model: Model of the file.
        colliding: Geoms that may collide.
        limits: If true, joints have limits.
        friction: If true, joints have dry friction.
        tendons: Tendons between sites, whose ends are drawn.
    """
    names = [model.body(number).name for number in range(model.nbody)]
    unique = set(names)
    for number, name in enumerate(names):
        if not name:
            names[number] = f"body {number}"
            while names[number] in unique:
                names[number] += " (without a name)"
            unique.add(names[number])
    features = _Features(colliding, limits, friction, tendons, _servos(model))
    return [_body(model, number, names, features) for number in range(1, model.nbody)]


def _body(model: mujoco.MjModel, number: int, names: list[str], features: _Features) -> Body:
    first = int(model.body_jntadr[number])
    joints = [_joint(model, first + k, features) for k in range(int(model.body_jntnum[number]))]
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
        # The position of a free joint is its pose in the world.
        position=np.zeros(3) if free else model.body_pos[number].copy(),
        orientation=np.array([1.0, 0, 0, 0]) if free else model.body_quat[number].copy(),
        shapes=[placed_geom(model, geom) for geom in body_geoms(model, number, features.colliding)]
        + [site_marker(model, site) for site in tendon_sites(model, features.tendons, number)],
    )


def _joint(model: mujoco.MjModel, number: int, features: _Features) -> Joint:
    kind = _JOINTS[mujoco.mjtJoint(int(model.jnt_type[number]))]
    _, nq, nv = JOINT_KINDS[kind]
    q, v = int(model.jnt_qposadr[number]), int(model.jnt_dofadr[number])
    stiffness = 0.0 if is_disabled(model, _DISABLE.mjDSBL_SPRING) else float(model.jnt_stiffness[number])
    damping = 0.0 if is_disabled(model, _DISABLE.mjDSBL_DAMPER) else float(model.dof_damping[v])
    spring_reference = model.qpos_spring[q : q + nq].copy()
    if nv == 1:
        servos = features.servos.get(number, ())
        stiffness, spring_reference, damping = _add_servos(model, servos, stiffness, spring_reference, damping)
    limited = features.limits and kind != "free" and model.jnt_limited[number]
    return Joint(
        kind=kind,
        axis=model.jnt_axis[number].copy(),
        anchor=model.jnt_pos[number].copy() if kind != "free" else np.zeros(3),
        damping=damping,
        armature=float(model.dof_armature[v]),
        friction_loss=float(model.dof_frictionloss[v]) if features.friction else 0.0,
        stiffness=stiffness,
        spring_reference=spring_reference,
        reference_position=float(model.qpos0[q]) if nv == 1 else 0.0,
        initial_position=model.qpos0[q : q + nq].copy(),
        limits=_limits(model, number) if limited else None,
        name=model.joint(number).name,
    )


def _limits(model: mujoco.MjModel, joint: int) -> tuple[float, float]:
    """Range of a joint; for a ball joint MuJoCo takes the larger number as the largest angle."""
    low, high = (float(limit) for limit in model.jnt_range[joint])
    is_ball = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_BALL.value
    return (-np.inf, max(low, high)) if is_ball else (low, high)


def _servos(model: mujoco.MjModel) -> dict[int, list[int]]:
    """Actuators of each joint that are not simulated as transmissions."""
    servos: dict[int, list[int]] = {}
    for k in usable_actuators(model):
        if not is_actuator_disabled(model, k) and not is_transmission(model, k):
            for joint in driven_joints(model, k) or ():
                servos.setdefault(joint, []).append(k)
    return servos


def _add_servos(
    model: mujoco.MjModel, servos: Sequence[int], stiffness: float, reference: np.ndarray, damping: float
) -> tuple[float, np.ndarray, float]:
    """Add the springs and dampers of a joint's position and velocity servos to its own.

    A servo with gear g exerts g (b₀ + b₁ g q + b₂ g q̇), b₁ and b₂ not above zero.
    """
    for k in servos:
        gear = float(model.actuator_gear[model.actuator_outadr[k], 0])
        constant, servo_stiffness, servo_damping = feedback(model, k)
        force = stiffness * reference + gear * constant
        stiffness, damping = stiffness + servo_stiffness * gear * gear, damping + servo_damping * gear * gear
        reference = force / stiffness if stiffness else reference
    return stiffness, reference, damping


def usable_actuators(model: mujoco.MjModel) -> list[int]:
    """Actuators whose force is linear in control, position and velocity, including those that are switched off."""
    if is_disabled(model, _DISABLE.mjDSBL_ACTUATION):
        return []
    return [k for k, obstacle in enumerate(actuator_obstacles(model)) if obstacle is None]


def transmission_actuators(model: mujoco.MjModel) -> list[int]:
    """Actuators that are simulated as transmissions."""
    return [k for k in usable_actuators(model) if not is_actuator_disabled(model, k) and is_transmission(model, k)]


def all_transmissions(
    model: mujoco.MjModel, bodies: list[Body], ignore: Collection[str], servos: ServoSettings, limits: bool
) -> list[FileTransmission]:
    """Transmissions of actuators, with these settings of servos, then those of tendons and equalities."""
    names = [name for body in bodies for name in body.joint_names]
    return transmissions(model, names, transmission_actuators(model), ignore, servos, limits)


def actuator_states(model: mujoco.MjModel, transmissions: int, step: float | None) -> list[ActuatorState]:
    """Inner states of actuators, in their order.

    Args:
        model: Model of the file.
        transmissions: Number of transmissions.
        step: Length of a semi-implicit Euler step, s; None for Runge–Kutta steps.
    """
    rows, states = {k: row for row, k in enumerate(transmission_actuators(model))}, []
    for k in usable_actuators(model):
        if has_state(model, k):
            force = np.zeros(model.nv + transmissions)
            if not is_actuator_disabled(model, k):
                _add_force(model, k, rows, force)
            states.append(ActuatorState(object_name(model, "actuator", k), _time_constant(model, k, step), force))
    return states


def _time_constant(model: mujoco.MjModel, k: int, step: float | None) -> float:
    """Time constant of the state of actuator k, s, that of the damping of a rotor.

    Semi-implicit Euler steps dampen at their end, and reduce the distance of a state to its control by h/(τ + h). For
    MuJoCo's reductions, h/T by `filter` and 1 − exp(−h/T) by `filterexact`, τ is T − h and h/(exp(h/T) − 1). The
    latter is taken of a `filter` that is no slower than a step, too, which would overshoot.
    """
    if model.actuator_dyntype[k] == mujoco.mjtDyn.mjDYN_INTEGRATOR.value:
        return math.inf
    time_constant = max(float(model.actuator_dynprm[k, 0]), _MIN_TIME_CONSTANT)
    if step is None:
        return time_constant
    if model.actuator_dyntype[k] == mujoco.mjtDyn.mjDYN_FILTER.value and time_constant > step:
        return time_constant - step
    return step / math.expm1(min(step / time_constant, _MAX_TIME_RATIO))


def has_state(model: mujoco.MjModel, k: int) -> bool:
    """If true, actuator k has an inner state (activation)."""
    return bool(model.actuator_dyntype[k] != mujoco.mjtDyn.mjDYN_NONE.value)


def _add_force(model: mujoco.MjModel, k: int, rows: dict[int, int], columns: np.ndarray) -> None:
    """Add the force of actuator k per unit of its signal on velocities, or on its transmission."""
    gain = float(model.actuator_gainprm[k, 0])
    if k in rows:
        columns[model.nv + rows[k]] += gain
        return
    for joint, coefficient in (driven_joints(model, k) or {}).items():
        columns[model.jnt_dofadr[joint]] += gain * coefficient


def actuators(model: mujoco.MjModel, transmissions: int = 0, states: Sequence[ActuatorState] = ()) -> Actuators | None:
    """Map from the controls of the file's actuators to forces; None without actuators: a control is then a force."""
    usable = usable_actuators(model)
    if not usable:
        return None
    rows = {k: row for row, k in enumerate(transmission_actuators(model))}
    columns = {state.name: column for column, state in enumerate(states)}
    direct, to_states = np.zeros((len(usable), model.nv + transmissions)), np.zeros((len(usable), len(states)))
    low, high = np.full(len(usable), -np.inf), np.full(len(usable), np.inf)
    for row, k in enumerate(usable):
        if is_actuator_disabled(model, k):
            continue
        if has_state(model, k):
            column = columns[object_name(model, "actuator", k)]
            to_states[row, column] = states[column].gain
        else:
            _add_force(model, k, rows, direct[row])
        low[row], high[row] = _control_range(model, k, clamps_force=k not in rows and not has_state(model, k))
    gain = np.concatenate([direct[:, : model.nv], to_states, direct[:, model.nv :]], 1)
    return Actuators(gain, low, high, tuple(object_name(model, "actuator", k) for k in usable))


def _control_range(model: mujoco.MjModel, k: int, clamps_force: bool) -> tuple[float, float]:
    """Range of the control of actuator k; without feedback limits of its force are limits of the control."""
    low, high = -np.inf, np.inf
    control = int(model.actuator_ctrladr[k])
    if model.actuator_ctrllimited[control] and not is_disabled(model, _DISABLE.mjDSBL_CLAMPCTRL):
        low, high = model.actuator_ctrlrange[control]
    if clamps_force:
        gain = float(model.actuator_gainprm[k, 0])
        if model.actuator_forcelimited[k]:
            low, high = _clamp_range(low, high, model.actuator_forcerange[k], gain)
        for joint, coefficient in (driven_joints(model, k) or {}).items():
            if model.jnt_actfrclimited[joint]:
                low, high = _clamp_range(low, high, model.jnt_actfrcrange[joint], gain * coefficient)
    return low, high


def _clamp_range(low: float, high: float, forces: np.ndarray, gain: float) -> tuple[float, float]:
    """Clamp a range of controls to those whose forces are within another range."""
    if gain == 0:
        return low, high
    lower, upper = sorted((float(forces[0]) / gain, float(forces[1]) / gain))
    return float(np.clip(low, lower, upper)), float(np.clip(high, lower, upper))


def keyframes(model: mujoco.MjModel) -> dict[str, State]:
    """Keyframes of the file by name (or number), as states of one world."""
    addresses = [int(model.actuator_actadr[k]) for k in usable_actuators(model) if has_state(model, k)]
    rest = np.zeros(len(addresses))

    def state(k: int) -> State:
        q, v = (model.key_qpos[k], rest), (model.key_qvel[k], model.key_act[k][addresses])
        return State(*(torch.tensor(np.concatenate(parts))[None] for parts in (q, v)))

    return {object_name(model, "key", k): state(k) for k in range(model.nkey)}


def sites(model: mujoco.MjModel) -> dict[str, tuple[int, tuple[float, ...]]]:
    """Named sites of bodies: row of the body, and position in its frame, m."""
    named = {}
    for k in range(model.nsite):
        body, name = int(model.site_bodyid[k]), model.site(k).name
        if body and name:
            named[name] = (body - 1, tuple(float(value) for value in model.site_pos[k]))
    return named
