"""Accelerations without constraints: gravity, controls, motors, damping, springs of joints and between bodies.

With inverse masses W = (1/m, 1/m, 1/(m k²)), k the radius of gyration, a body's acceleration is
    a = (g, 0) + W u − c v + W (springs and motors),
so damping c is a rate (1/s) and acts alike on what is heavy and on what is light.
"""

import warp as wp

from . import scalar, vec2
from .data import WANTED, Parts, Workspace
from .geometry import add_property, cross, perp, place, turn

# How much of its time constant a spring or damper may move in one flow.
SLOWEST = wp.constant(wp.float64(0.5))


@wp.func
def weigh(s: Parts, t: Workspace):
    """Set the inverse masses of all bodies; zero where a body does not move."""
    for body in range(s.bodies + 1):
        slot = wp.int32(-1)
        if body < s.bodies:
            slot = s.slot[body]
        for k in range(3):
            t.weight[3 * body + k] = scalar(0.0)
        if slot >= 0 and s.driven[wp.min(body, s.bodies - 1)] == 0:
            inverse = scalar(1.0) / t.theta[s.mass + slot]
            gyration = t.theta[s.gyration + slot]
            t.weight[3 * body] = inverse
            t.weight[3 * body + 1] = inverse
            t.weight[3 * body + 2] = inverse / (gyration * gyration)


@wp.func
def weight_adjoint(s: Parts, t: Workspace, body: wp.int32, linear: scalar, angular: scalar):
    """Carry the cotangents of a body's inverse mass and inverse inertia to its mass and radius of gyration."""
    slot = s.slot[body]
    inverse = t.weight[3 * body]
    turning = t.weight[3 * body + 2]
    mass_bar = -(linear * inverse + angular * turning) * inverse
    add_property(t, s.mass + slot, mass_bar)
    add_property(t, s.gyration + slot, scalar(-2.0) * angular * turning / t.theta[s.gyration + slot])


@wp.func
def motor_torque(s: Parts, t: Workspace, joint: wp.int32):
    """The torque of a joint's motor on its first body; zero without a motor."""
    torque = scalar(0.0)
    if s.motor[joint] >= 0:
        torque = t.control[3 * s.moving + s.motor[joint]]
    return torque


@wp.func
def joint_torque(s: Parts, t: Workspace, q: wp.array(dtype=scalar), v: wp.array(dtype=scalar), joint: wp.int32):
    """The torque of a joint's motor, spring and damper on its first body."""
    a = 3 * s.joint_bodies[joint, 0] + 2
    b = 3 * s.joint_bodies[joint, 1] + 2
    torque = motor_torque(s, t, joint)
    torque -= t.theta[s.joint_stiffness + joint] * (q[a] - q[b] - t.theta[s.joint_angle + joint])
    return torque - t.theta[s.joint_damping + joint] * (v[a] - v[b])


@wp.func
def spring_frame(s: Parts, t: Workspace, q: wp.array(dtype=scalar), spring: wp.int32):
    """The two arms of a spring and the line from its second end to its first."""
    a = s.spring_bodies[spring, 0]
    b = s.spring_bodies[spring, 1]
    at = s.spring_anchors + 4 * spring
    arm_a = turn(q[3 * a + 2], vec2(t.theta[at], t.theta[at + 1]))
    arm_b = turn(q[3 * b + 2], vec2(t.theta[at + 2], t.theta[at + 3]))
    return arm_a, arm_b, place(q, a) + arm_a - place(q, b) - arm_b


@wp.func
def point_speed(v: wp.array(dtype=scalar), body: wp.int32, arm: vec2):
    """The velocity of the point of a body at `arm` from its frame."""
    return place(v, body) + v[3 * body + 2] * perp(arm)


@wp.func
def push(t: Workspace, a: wp.array(dtype=scalar), body: wp.int32, force: vec2, torque: scalar):
    """Add a force and a torque, divided by the masses, to accelerations."""
    a[3 * body] = a[3 * body] + t.weight[3 * body] * force[0]
    a[3 * body + 1] = a[3 * body + 1] + t.weight[3 * body + 1] * force[1]
    a[3 * body + 2] = a[3 * body + 2] + t.weight[3 * body + 2] * torque


@wp.func
def accelerate(s: Parts, t: Workspace, q: wp.array(dtype=scalar), v: wp.array(dtype=scalar), a: wp.array(dtype=scalar)):
    """Set `a` to the accelerations at (q, v)."""
    clear_to = 3 * (s.bodies + 1)
    for k in range(clear_to):
        a[k] = scalar(0.0)
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0 and s.driven[body] == 0:
            damping = t.theta[s.velocity_decay + slot]
            for k in range(3):
                i = 3 * body + k
                a[i] = t.weight[i] * t.control[3 * slot + k] - damping * v[i]
            a[3 * body] = a[3 * body] + t.theta[s.gravity]
            a[3 * body + 1] = a[3 * body + 1] + t.theta[s.gravity + 1]
    for joint in range(s.joints):
        torque = joint_torque(s, t, q, v, joint)
        i = 3 * s.joint_bodies[joint, 0] + 2
        j = 3 * s.joint_bodies[joint, 1] + 2
        a[i] = a[i] + t.weight[i] * torque
        a[j] = a[j] - t.weight[j] * torque
    for spring in range(s.springs):
        arm_a, arm_b, line = spring_frame(s, t, q, spring)
        first = s.spring_bodies[spring, 0]
        second = s.spring_bodies[spring, 1]
        length = wp.sqrt(wp.dot(line, line))
        n = line / wp.max(length, scalar(1.0e-12))
        rate = wp.dot(n, point_speed(v, first, arm_a) - point_speed(v, second, arm_b))
        pull = t.theta[s.spring_stiffness + spring] * (length - t.theta[s.spring_length + spring])
        force = -(pull + t.theta[s.spring_damping + spring] * rate) * n
        push(t, a, first, force, cross(arm_a, force))
        push(t, a, second, -force, -cross(arm_b, force))


@wp.func
def stable_rate(stiffness: scalar, damping: scalar, weight: scalar):
    """How fast a spring swings, or a damper stops, what has this inverse mass."""
    return wp.max(wp.sqrt(stiffness * weight), damping * weight)


@wp.func
def longest_flow(s: Parts, t: Workspace):
    """The longest flow for which springs and damping, which act by their forces at its ends, are stable and right."""
    rate = scalar(0.0)
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0:
            rate = wp.max(rate, t.theta[s.velocity_decay + slot])
    for joint in range(s.joints):
        weight = t.weight[3 * s.joint_bodies[joint, 0] + 2] + t.weight[3 * s.joint_bodies[joint, 1] + 2]
        stiffness = t.theta[s.joint_stiffness + joint]
        rate = wp.max(rate, stable_rate(stiffness, t.theta[s.joint_damping + joint], weight))
    for spring in range(s.springs):
        weight = scalar(0.0)
        for side in range(2):
            body = s.spring_bodies[spring, side]
            at = s.spring_anchors + 4 * spring + 2 * side
            arm = vec2(t.theta[at], t.theta[at + 1])
            weight += t.weight[3 * body] + wp.dot(arm, arm) * t.weight[3 * body + 2]
        stiffness = t.theta[s.spring_stiffness + spring]
        rate = wp.max(rate, stable_rate(stiffness, t.theta[s.spring_damping + spring], weight))
    return s.dt * SLOWEST / wp.max(s.dt * rate, SLOWEST)


@wp.func
def joint_torque_adjoint(
    s: Parts,
    t: Workspace,
    q: wp.array(dtype=scalar),
    v: wp.array(dtype=scalar),
    joint: wp.int32,
    bar: scalar,
    q_bar: wp.array(dtype=scalar),
    v_bar: wp.array(dtype=scalar),
):
    """Carry the cotangent of a joint's torque to pose, velocity, properties and control."""
    a = 3 * s.joint_bodies[joint, 0] + 2
    b = 3 * s.joint_bodies[joint, 1] + 2
    stiffness = t.theta[s.joint_stiffness + joint]
    damping = t.theta[s.joint_damping + joint]
    q_bar[a] = q_bar[a] - stiffness * bar
    q_bar[b] = q_bar[b] + stiffness * bar
    v_bar[a] = v_bar[a] - damping * bar
    v_bar[b] = v_bar[b] + damping * bar
    add_property(t, s.joint_angle + joint, stiffness * bar)
    add_property(t, s.joint_stiffness + joint, -bar * (q[a] - q[b] - t.theta[s.joint_angle + joint]))
    add_property(t, s.joint_damping + joint, -bar * (v[a] - v[b]))
    if s.motor[joint] >= 0:
        at = 3 * s.moving + s.motor[joint]
        t.control_bar[at] = t.control_bar[at] + t.keep[WANTED] * bar


@wp.func
def spring_end_adjoint(
    s: Parts,
    t: Workspace,
    q: wp.array(dtype=scalar),
    spring: wp.int32,
    side: wp.int32,
    arm: vec2,
    arm_bar: vec2,
    line_bar: vec2,
    q_bar: wp.array(dtype=scalar),
):
    """Carry the cotangents of one end of a spring to its body's pose and to the anchor."""
    body = s.spring_bodies[spring, side]
    q_bar[3 * body] = q_bar[3 * body] + line_bar[0]
    q_bar[3 * body + 1] = q_bar[3 * body + 1] + line_bar[1]
    total = arm_bar + line_bar
    q_bar[3 * body + 2] = q_bar[3 * body + 2] + wp.dot(total, perp(arm))
    own = turn(-q[3 * body + 2], total)
    at = s.spring_anchors + 4 * spring + 2 * side
    add_property(t, at, own[0])
    add_property(t, at + 1, own[1])


@wp.func
def spring_adjoint(
    s: Parts,
    t: Workspace,
    q: wp.array(dtype=scalar),
    v: wp.array(dtype=scalar),
    spring: wp.int32,
    a_bar: wp.array(dtype=scalar),
    q_bar: wp.array(dtype=scalar),
    v_bar: wp.array(dtype=scalar),
):
    """Carry the cotangent of the accelerations through one spring.

    F = −σ n with tension σ = k (ℓ − L) + d n·u, u the relative velocity of the ends; n = line/ℓ, so that
    dn = (du_perp)/ℓ and dℓ = n·dline. Returned to each arm through torque = arm × F and u = v + ω perp(arm).
    """
    arm_a, arm_b, line = spring_frame(s, t, q, spring)
    first = s.spring_bodies[spring, 0]
    second = s.spring_bodies[spring, 1]
    length = wp.max(wp.sqrt(wp.dot(line, line)), scalar(1.0e-12))
    n = line / length
    u = point_speed(v, first, arm_a) - point_speed(v, second, arm_b)
    stiffness = t.theta[s.spring_stiffness + spring]
    damping = t.theta[s.spring_damping + spring]
    stretch = length - t.theta[s.spring_length + spring]
    tension = stiffness * stretch + damping * wp.dot(n, u)
    force = -tension * n
    wa = t.weight[3 * first]
    wb = t.weight[3 * second]
    za = wa * place(a_bar, first)
    zb = wb * place(a_bar, second)
    ta = t.weight[3 * first + 2] * a_bar[3 * first + 2]
    tb = t.weight[3 * second + 2] * a_bar[3 * second + 2]
    force_bar = za - zb + ta * perp(arm_a) - tb * perp(arm_b)
    if wa > scalar(0.0):
        weight_adjoint(s, t, first, wp.dot(place(a_bar, first), force), a_bar[3 * first + 2] * cross(arm_a, force))
    if wb > scalar(0.0):
        weight_adjoint(s, t, second, -wp.dot(place(a_bar, second), force), -a_bar[3 * second + 2] * cross(arm_b, force))
    tension_bar = -wp.dot(n, force_bar)
    n_bar = -tension * force_bar + tension_bar * damping * u
    u_bar = tension_bar * damping * n
    line_bar = tension_bar * stiffness * n + (n_bar - wp.dot(n, n_bar) * n) / length
    add_property(t, s.spring_stiffness + spring, tension_bar * stretch)
    add_property(t, s.spring_length + spring, -tension_bar * stiffness)
    add_property(t, s.spring_damping + spring, tension_bar * wp.dot(n, u))
    arm_a_bar = -ta * perp(force) - v[3 * first + 2] * perp(u_bar)
    arm_b_bar = tb * perp(force) + v[3 * second + 2] * perp(u_bar)
    spring_end_adjoint(s, t, q, spring, 0, arm_a, arm_a_bar, line_bar, q_bar)
    spring_end_adjoint(s, t, q, spring, 1, arm_b, arm_b_bar, -line_bar, q_bar)
    for k in range(2):
        v_bar[3 * first + k] = v_bar[3 * first + k] + u_bar[k]
        v_bar[3 * second + k] = v_bar[3 * second + k] - u_bar[k]
    v_bar[3 * first + 2] = v_bar[3 * first + 2] + wp.dot(u_bar, perp(arm_a))
    v_bar[3 * second + 2] = v_bar[3 * second + 2] - wp.dot(u_bar, perp(arm_b))


@wp.func
def accelerate_adjoint(
    s: Parts,
    t: Workspace,
    q: wp.array(dtype=scalar),
    v: wp.array(dtype=scalar),
    a_bar: wp.array(dtype=scalar),
    q_bar: wp.array(dtype=scalar),
    v_bar: wp.array(dtype=scalar),
):
    """Carry the cotangent of the accelerations at (q, v) to pose, velocity, properties and control."""
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0 and s.driven[body] == 0:
            i = 3 * body
            damping = t.theta[s.velocity_decay + slot]
            damping_bar = scalar(0.0)
            for k in range(3):
                v_bar[i + k] = v_bar[i + k] - damping * a_bar[i + k]
                damping_bar -= a_bar[i + k] * v[i + k]
                at = 3 * slot + k
                t.control_bar[at] = t.control_bar[at] + t.keep[WANTED] * t.weight[i + k] * a_bar[i + k]
            add_property(t, s.velocity_decay + slot, damping_bar)
            add_property(t, s.gravity, a_bar[i])
            add_property(t, s.gravity + 1, a_bar[i + 1])
            linear = a_bar[i] * t.control[3 * slot] + a_bar[i + 1] * t.control[3 * slot + 1]
            weight_adjoint(s, t, body, linear, a_bar[i + 2] * t.control[3 * slot + 2])
    for joint in range(s.joints):
        first = s.joint_bodies[joint, 0]
        second = s.joint_bodies[joint, 1]
        torque = joint_torque(s, t, q, v, joint)
        i = 3 * first + 2
        j = 3 * second + 2
        bar = t.weight[i] * a_bar[i] - t.weight[j] * a_bar[j]
        if t.weight[i] > scalar(0.0):
            weight_adjoint(s, t, first, scalar(0.0), a_bar[i] * torque)
        if t.weight[j] > scalar(0.0):
            weight_adjoint(s, t, second, scalar(0.0), -a_bar[j] * torque)
        joint_torque_adjoint(s, t, q, v, joint, bar, q_bar, v_bar)
    for spring in range(s.springs):
        spring_adjoint(s, t, q, v, spring, a_bar, q_bar, v_bar)
