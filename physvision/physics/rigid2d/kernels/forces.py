"""Free accelerations: gravity, controls, motors, damping, joint springs and springs between bodies.

With inverse masses W = (1/m, 1/m, 1/(m k²)), k the radius of gyration, a body's acceleration is
    a = (g, 0) + W u − c v + W (springs and motors),
so that damping c is a rate (1/s), independent of the mass.
"""

import warp as wp

from physvision.physics.lcp.kernels.problem import clear

from .data import Data, Model
from .geometry import add_property_cotangent, cross, perp, position, rotate
from .precision import Array1d, scalar, vec2


@wp.func
def set_inverse_masses(m: Model, d: Data):
    """Set the inverse masses of all bodies; zero where a body keeps its velocity."""
    for body in range(m.bodies + 1):
        slot = wp.int32(-1)
        if body < m.bodies:
            slot = m.state_index[body]
        for k in range(3):
            d.lcp.inverse_mass[3 * body + k] = scalar(0.0)
        if slot >= 0 and m.is_kinematic[wp.min(body, m.bodies - 1)] == 0:
            inverse = scalar(1.0) / d.theta[m.mass + slot]
            gyration = d.theta[m.gyration + slot]
            d.lcp.inverse_mass[3 * body] = inverse
            d.lcp.inverse_mass[3 * body + 1] = inverse
            d.lcp.inverse_mass[3 * body + 2] = inverse / (gyration * gyration)


@wp.func
def inverse_mass_adjoint(m: Model, d: Data, body: int, linear: scalar, angular: scalar):
    """Carry the cotangents of inverse mass and inverse inertia to mass and radius of gyration."""
    slot = m.state_index[body]
    inverse = d.lcp.inverse_mass[3 * body]
    inverse_inertia = d.lcp.inverse_mass[3 * body + 2]
    mass_bar = -(linear * inverse + angular * inverse_inertia) * inverse
    add_property_cotangent(d, m.mass + slot, mass_bar)
    add_property_cotangent(d, m.gyration + slot, scalar(-2.0) * angular * inverse_inertia / d.theta[m.gyration + slot])


@wp.func
def motor_torque(m: Model, d: Data, joint: int):
    """Return the torque of a joint's motor on its first body; zero without a motor."""
    torque = scalar(0.0)
    if m.motor[joint] >= 0:
        torque = d.control[3 * m.num_moving_bodies + m.motor[joint]]
    return torque


@wp.func
def joint_torque(m: Model, d: Data, q: Array1d, v: Array1d, joint: int):
    """Return the torque of a joint's motor, spring and damper on its first body."""
    a = 3 * m.joint_bodies[joint, 0] + 2
    b = 3 * m.joint_bodies[joint, 1] + 2
    torque = motor_torque(m, d, joint)
    torque -= d.theta[m.joint_stiffness + joint] * (q[a] - q[b] - d.theta[m.joint_angle + joint])
    return torque - d.theta[m.joint_damping + joint] * (v[a] - v[b])


@wp.func
def spring_frame(m: Model, d: Data, q: Array1d, spring: int):
    """Return the two arms of a spring and the line from its second end to its first."""
    a = m.spring_bodies[spring, 0]
    b = m.spring_bodies[spring, 1]
    entry = m.spring_anchors + 4 * spring
    arm_a = rotate(q[3 * a + 2], vec2(d.theta[entry], d.theta[entry + 1]))
    arm_b = rotate(q[3 * b + 2], vec2(d.theta[entry + 2], d.theta[entry + 3]))
    return arm_a, arm_b, position(q, a) + arm_a - position(q, b) - arm_b


@wp.func
def point_velocity(v: Array1d, body: int, arm: vec2):
    """Return the velocity of the point of a body at `arm` from its frame."""
    return position(v, body) + v[3 * body + 2] * perp(arm)


@wp.func
def add_wrench(d: Data, a: Array1d, body: int, force: vec2, torque: scalar):
    """Add a force and a torque, times the inverse masses, to accelerations."""
    a[3 * body] = a[3 * body] + d.lcp.inverse_mass[3 * body] * force[0]
    a[3 * body + 1] = a[3 * body + 1] + d.lcp.inverse_mass[3 * body + 1] * force[1]
    a[3 * body + 2] = a[3 * body + 2] + d.lcp.inverse_mass[3 * body + 2] * torque


@wp.func
def free_acceleration(m: Model, d: Data, q: Array1d, v: Array1d, a: Array1d):
    """Set `a` to the accelerations at (q, v) without constraints."""
    clear(a, 3 * (m.bodies + 1))
    for body in range(m.bodies):
        slot = m.state_index[body]
        if slot >= 0 and m.is_kinematic[body] == 0:
            damping = d.theta[m.velocity_decay + slot]
            for k in range(3):
                i = 3 * body + k
                a[i] = d.lcp.inverse_mass[i] * d.control[3 * slot + k] - damping * v[i]
            a[3 * body] = a[3 * body] + d.theta[m.gravity]
            a[3 * body + 1] = a[3 * body + 1] + d.theta[m.gravity + 1]
    for joint in range(m.joints):
        torque = joint_torque(m, d, q, v, joint)
        i = 3 * m.joint_bodies[joint, 0] + 2
        j = 3 * m.joint_bodies[joint, 1] + 2
        a[i] = a[i] + d.lcp.inverse_mass[i] * torque
        a[j] = a[j] - d.lcp.inverse_mass[j] * torque
    for spring in range(m.springs):
        arm_a, arm_b, line = spring_frame(m, d, q, spring)
        first = m.spring_bodies[spring, 0]
        second = m.spring_bodies[spring, 1]
        length = wp.sqrt(wp.dot(line, line))
        n = line / wp.max(length, scalar(1.0e-12))
        rate = wp.dot(n, point_velocity(v, first, arm_a) - point_velocity(v, second, arm_b))
        elastic_force = d.theta[m.spring_stiffness + spring] * (length - d.theta[m.spring_length + spring])
        force = -(elastic_force + d.theta[m.spring_damping + spring] * rate) * n
        add_wrench(d, a, first, force, cross(arm_a, force))
        add_wrench(d, a, second, -force, -cross(arm_b, force))


@wp.func
def stability_rate(stiffness: scalar, damping: scalar, weight: scalar):
    """Return the rate of oscillation or decay of a spring and damper on this inverse mass."""
    return wp.max(wp.sqrt(stiffness * weight), damping * weight)


@wp.func
def max_stable_duration(m: Model, d: Data):
    """Return the longest stable duration of a smooth step, in which springs and dampers act by forces at its ends."""
    rate = scalar(0.0)
    for body in range(m.bodies):
        slot = m.state_index[body]
        if slot >= 0:
            rate = wp.max(rate, d.theta[m.velocity_decay + slot])
    for joint in range(m.joints):
        weight = (
            d.lcp.inverse_mass[3 * m.joint_bodies[joint, 0] + 2] + d.lcp.inverse_mass[3 * m.joint_bodies[joint, 1] + 2]
        )
        stiffness = d.theta[m.joint_stiffness + joint]
        rate = wp.max(rate, stability_rate(stiffness, d.theta[m.joint_damping + joint], weight))
    for spring in range(m.springs):
        weight = scalar(0.0)
        for side in range(2):
            body = m.spring_bodies[spring, side]
            entry = m.spring_anchors + 4 * spring + 2 * side
            arm = vec2(d.theta[entry], d.theta[entry + 1])
            weight += d.lcp.inverse_mass[3 * body] + wp.dot(arm, arm) * d.lcp.inverse_mass[3 * body + 2]
        stiffness = d.theta[m.spring_stiffness + spring]
        rate = wp.max(rate, stability_rate(stiffness, d.theta[m.spring_damping + spring], weight))
    return m.dt * m.settings.time_constant_fraction / wp.max(m.dt * rate, m.settings.time_constant_fraction)


@wp.func
def joint_torque_adjoint(
    m: Model, d: Data, q: Array1d, v: Array1d, joint: int, bar: scalar, q_bar: Array1d, v_bar: Array1d
):
    """Carry the cotangent of a joint's torque to pose, velocity, properties and control."""
    a = 3 * m.joint_bodies[joint, 0] + 2
    b = 3 * m.joint_bodies[joint, 1] + 2
    stiffness = d.theta[m.joint_stiffness + joint]
    damping = d.theta[m.joint_damping + joint]
    q_bar[a] = q_bar[a] - stiffness * bar
    q_bar[b] = q_bar[b] + stiffness * bar
    v_bar[a] = v_bar[a] - damping * bar
    v_bar[b] = v_bar[b] + damping * bar
    add_property_cotangent(d, m.joint_angle + joint, stiffness * bar)
    add_property_cotangent(d, m.joint_stiffness + joint, -bar * (q[a] - q[b] - d.theta[m.joint_angle + joint]))
    add_property_cotangent(d, m.joint_damping + joint, -bar * (v[a] - v[b]))
    if m.motor[joint] >= 0:
        entry = 3 * m.num_moving_bodies + m.motor[joint]
        d.control_bar[entry] = d.control_bar[entry] + d.property_mask * bar


@wp.func
def spring_end_adjoint(
    m: Model, d: Data, q: Array1d, spring: int, side: int, arm: vec2, arm_bar: vec2, line_bar: vec2, q_bar: Array1d
):
    """Carry the cotangents of one end of a spring to its body's pose and to the anchor."""
    body = m.spring_bodies[spring, side]
    q_bar[3 * body] = q_bar[3 * body] + line_bar[0]
    q_bar[3 * body + 1] = q_bar[3 * body + 1] + line_bar[1]
    total = arm_bar + line_bar
    q_bar[3 * body + 2] = q_bar[3 * body + 2] + wp.dot(total, perp(arm))
    local = rotate(-q[3 * body + 2], total)
    entry = m.spring_anchors + 4 * spring + 2 * side
    add_property_cotangent(d, entry, local[0])
    add_property_cotangent(d, entry + 1, local[1])


@wp.func
def spring_adjoint(
    m: Model, d: Data, q: Array1d, v: Array1d, spring: int, a_bar: Array1d, q_bar: Array1d, v_bar: Array1d
):
    """Carry the cotangent of the accelerations through one spring.

    F = −σ n with tension σ = k (ℓ − L) + d n·u, u the relative velocity of the ends; n = line/ℓ, so that
    dn = (du_perp)/ℓ and dℓ = n·dline. Returned to each arm through torque = arm × F and u = v + ω perp(arm).
    """
    arm_a, arm_b, line = spring_frame(m, d, q, spring)
    first = m.spring_bodies[spring, 0]
    second = m.spring_bodies[spring, 1]
    length = wp.max(wp.sqrt(wp.dot(line, line)), scalar(1.0e-12))
    n = line / length
    u = point_velocity(v, first, arm_a) - point_velocity(v, second, arm_b)
    stiffness = d.theta[m.spring_stiffness + spring]
    damping = d.theta[m.spring_damping + spring]
    stretch = length - d.theta[m.spring_length + spring]
    tension = stiffness * stretch + damping * wp.dot(n, u)
    force = -tension * n
    inverse_mass_a = d.lcp.inverse_mass[3 * first]
    inverse_mass_b = d.lcp.inverse_mass[3 * second]
    linear_a = inverse_mass_a * position(a_bar, first)
    linear_b = inverse_mass_b * position(a_bar, second)
    angular_a = d.lcp.inverse_mass[3 * first + 2] * a_bar[3 * first + 2]
    angular_b = d.lcp.inverse_mass[3 * second + 2] * a_bar[3 * second + 2]
    force_bar = linear_a - linear_b + angular_a * perp(arm_a) - angular_b * perp(arm_b)
    if inverse_mass_a > scalar(0.0):
        inverse_mass_adjoint(
            m, d, first, wp.dot(position(a_bar, first), force), a_bar[3 * first + 2] * cross(arm_a, force)
        )
    if inverse_mass_b > scalar(0.0):
        inverse_mass_adjoint(
            m, d, second, -wp.dot(position(a_bar, second), force), -a_bar[3 * second + 2] * cross(arm_b, force)
        )
    tension_bar = -wp.dot(n, force_bar)
    n_bar = -tension * force_bar + tension_bar * damping * u
    u_bar = tension_bar * damping * n
    line_bar = tension_bar * stiffness * n + (n_bar - wp.dot(n, n_bar) * n) / length
    add_property_cotangent(d, m.spring_stiffness + spring, tension_bar * stretch)
    add_property_cotangent(d, m.spring_length + spring, -tension_bar * stiffness)
    add_property_cotangent(d, m.spring_damping + spring, tension_bar * wp.dot(n, u))
    arm_a_bar = -angular_a * perp(force) - v[3 * first + 2] * perp(u_bar)
    arm_b_bar = angular_b * perp(force) + v[3 * second + 2] * perp(u_bar)
    spring_end_adjoint(m, d, q, spring, 0, arm_a, arm_a_bar, line_bar, q_bar)
    spring_end_adjoint(m, d, q, spring, 1, arm_b, arm_b_bar, -line_bar, q_bar)
    for k in range(2):
        v_bar[3 * first + k] = v_bar[3 * first + k] + u_bar[k]
        v_bar[3 * second + k] = v_bar[3 * second + k] - u_bar[k]
    v_bar[3 * first + 2] = v_bar[3 * first + 2] + wp.dot(u_bar, perp(arm_a))
    v_bar[3 * second + 2] = v_bar[3 * second + 2] - wp.dot(u_bar, perp(arm_b))


@wp.func
def free_acceleration_adjoint(
    m: Model, d: Data, q: Array1d, v: Array1d, a_bar: Array1d, q_bar: Array1d, v_bar: Array1d
):
    """Carry the cotangent of the accelerations at (q, v) to pose, velocity, properties and control."""
    for body in range(m.bodies):
        slot = m.state_index[body]
        if slot >= 0 and m.is_kinematic[body] == 0:
            i = 3 * body
            damping = d.theta[m.velocity_decay + slot]
            damping_bar = scalar(0.0)
            for k in range(3):
                v_bar[i + k] = v_bar[i + k] - damping * a_bar[i + k]
                damping_bar -= a_bar[i + k] * v[i + k]
                entry = 3 * slot + k
                d.control_bar[entry] = d.control_bar[entry] + d.property_mask * d.lcp.inverse_mass[i + k] * a_bar[i + k]
            add_property_cotangent(d, m.velocity_decay + slot, damping_bar)
            add_property_cotangent(d, m.gravity, a_bar[i])
            add_property_cotangent(d, m.gravity + 1, a_bar[i + 1])
            linear = a_bar[i] * d.control[3 * slot] + a_bar[i + 1] * d.control[3 * slot + 1]
            inverse_mass_adjoint(m, d, body, linear, a_bar[i + 2] * d.control[3 * slot + 2])
    for joint in range(m.joints):
        first = m.joint_bodies[joint, 0]
        second = m.joint_bodies[joint, 1]
        torque = joint_torque(m, d, q, v, joint)
        i = 3 * first + 2
        j = 3 * second + 2
        bar = d.lcp.inverse_mass[i] * a_bar[i] - d.lcp.inverse_mass[j] * a_bar[j]
        if d.lcp.inverse_mass[i] > scalar(0.0):
            inverse_mass_adjoint(m, d, first, scalar(0.0), a_bar[i] * torque)
        if d.lcp.inverse_mass[j] > scalar(0.0):
            inverse_mass_adjoint(m, d, second, scalar(0.0), -a_bar[j] * torque)
        joint_torque_adjoint(m, d, q, v, joint, bar, q_bar, v_bar)
    for spring in range(m.springs):
        spring_adjoint(m, d, q, v, spring, a_bar, q_bar, v_bar)
