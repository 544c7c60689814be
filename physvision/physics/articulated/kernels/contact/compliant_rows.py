"""Blocks of convex contact that are no candidates: dry friction, servos, joint and loop constraints.

Their laws and symbols are those of `convex_contact`. Row t of the transmissions and equality constraint e have the
parameters number `candidates + t` and `candidates + transmissions + e`. With the displacement p of a transmission
(`dynamics/transmissions.py`):

    DRY_FRICTION     BOUNDED by the friction, impedance at zero error, no stiffness of the reference (k = 0);
    JOINT_EQUALITY   BOUNDED without bounds, error p;
    SERVO            BOUNDED, f = S(x), D = h S′(x) c for damping c that acts at the end of the step, with x =
                     clamp(g − k p, ±w c) − c u and S the smooth saturation, or S(x) = x.

A loop constraint is a SPRING with the error e = p_a − p_b, and for a weld another one with MuJoCo's error of
orientations: for E = B* ⊗ A, of the frames' quaternions, and ω of the frames,

    e = σ vec(E),    u = G (ω_a − ω_b),    G y = σ/2 (E_w Bᵀy + Bᵀy × vec(E)).

Both have the impedance at |e| over all their rows. As in MuJoCo their acceleration α = J a + J̇ v is the true one:

    α = a_a − a_b of the points,    α = G (ω̇_a − ω̇_b + ω_a × ω_b) − σ/4 |ω_a − ω_b|² vec(E).
"""

import warp as wp

from ..dynamics.kinematics import link_or_world
from ..dynamics.transmissions import (
    JOINT_EQUALITY,
    LENGTH_LIMIT,
    SERVO,
    UNLIMITED,
    limit_demand,
    servo_demand,
    servo_force,
    transmission_displacement,
    write_transmission_jacobian,
)
from ..precision import mat33, scalar, vec3, vec4
from ..spatial.vectors import zero3
from ..structs import Contact, System, Tree, Workspace
from .convex_contact import BOUNDED_FORCE, SPRING, impedance, impedance_stiffness
from .convex_solver import scale_half_jacobian
from .delassus import contact_velocity, write_half_jacobian
from .equality import equality_error, write_equality_jacobian


@wp.func
def finish_block(tree: Tree, work: Workspace, contact: Contact, world: int, slot: int):
    """Compute the half Jacobian of a block whose Jacobian is written."""
    write_half_jacobian(tree, work, contact, world, slot)
    scale_half_jacobian(tree, work, contact, world, slot)


@wp.func
def add_transmission_rows(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    row: int,
    count: int,
    drag_interval: scalar,
):
    """Add the rows of transmissions behind `count` blocks; returns the number of blocks."""
    slot = wp.int32(count)
    for t in range(s.model.transmissions.count):
        kind = s.model.transmissions.kind[t]
        error = scalar(0.0)
        if kind == JOINT_EQUALITY:
            error = transmission_displacement(work, s, world, row, t)
        if kind != LENGTH_LIMIT:
            write_transmission_jacobian(tree, contact, s, world, slot, t)
            velocity = contact_velocity(tree, contact, world, slot, work.v, row)
            lag = -contact_velocity(tree, contact, world, slot, work.a, row)
            contact.blocks.law[world, slot] = BOUNDED_FORCE
            contact.convex.companion[world, slot] = -1
            contact.blocks.pair[world, slot] = s.model.candidates + t
            contact.blocks.friction[world, slot] = scalar(0.0)
            contact.blocks.lower[world, slot] = s.model.transmissions.min_force[world, t]
            contact.blocks.upper[world, slot] = s.model.transmissions.max_force[world, t]
            contact.convex.free_force[world, slot] = scalar(0.0)
            if kind == SERVO:
                demand = limit_demand(s, world, t, servo_demand(tree, work, s, world, step, row, t))
                force, slope = servo_force(s, world, t, demand, velocity[0])
                contact.convex.free_force[world, slot] = force
                contact.convex.edge_stiffness[world, slot] = (
                    drag_interval * slope * s.model.transmissions.damping[world, t]
                )
            else:
                parameters = s.model.candidates + t
                reference = s.model.convex.reference[parameters]
                impedances = s.model.convex.impedance[parameters]
                ratio, _slope = impedance(reference, impedances, s.model.convex.curve[parameters], error)
                contact.convex.edge_stiffness[world, slot] = impedance_stiffness(ratio, impedances[2])
                lag = lag - reference[1] * velocity
                lag[0] = lag[0] - reference[0] * ratio * error
                if kind == JOINT_EQUALITY:
                    contact.blocks.lower[world, slot] = scalar(-UNLIMITED)
                    contact.blocks.upper[world, slot] = scalar(UNLIMITED)
            contact.convex.lag[world, slot] = lag
            finish_block(tree, work, contact, world, slot)
            slot += 1
    return slot


@wp.func
def matrix_quaternion(m: mat33):
    """Return a unit quaternion of a rotation matrix, from its largest component."""
    unit = scalar(1.0)
    w = unit + m[0, 0] + m[1, 1] + m[2, 2]
    x = unit + m[0, 0] - m[1, 1] - m[2, 2]
    y = unit - m[0, 0] + m[1, 1] - m[2, 2]
    z = unit - m[0, 0] - m[1, 1] + m[2, 2]
    result = vec4(w, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1])
    largest = w
    if x > largest:
        largest = x
        result = vec4(m[2, 1] - m[1, 2], x, m[0, 1] + m[1, 0], m[0, 2] + m[2, 0])
    if y > largest:
        largest = y
        result = vec4(m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], y, m[1, 2] + m[2, 1])
    if z > largest:
        result = vec4(m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], z)
    return wp.normalize(result)


@wp.func
def weld_quaternion(contact: Contact, s: System, world: int, t: int):
    """Return E = B* ⊗ A of the frames of equality constraint t."""
    first = contact.detection.shape_rotation[world, s.model.equalities.first[t]]
    second = contact.detection.shape_rotation[world, s.model.equalities.second[t]]
    return matrix_quaternion(wp.transpose(second) * first)


@wp.func
def weld_rate(contact: Contact, s: System, world: int, t: int, quaternion: vec4):
    """Return the matrix G from the relative angular velocity of the frames to the rate of the error."""
    x = quaternion[1]
    y = quaternion[2]
    w = quaternion[3]
    # y × vec(E) = −[vec(E)]× y
    local = mat33(quaternion[0], w, -y, -w, quaternion[0], x, y, -x, quaternion[0])
    second = contact.detection.shape_rotation[world, s.model.equalities.second[t]]
    return (scalar(0.5) * s.model.equalities.torque_scale[t]) * (local * wp.transpose(second))


@wp.func
def point_acceleration(work: Workspace, contact: Contact, s: System, world: int, shape: int, gravity: vec3):
    """Return the acceleration of the origin of a shape after `propagate_accelerations`; that of the world is −gravity.

    The spatial acceleration a of a link is about its origin: with the velocity u of the point it is a(p) + ω × u(p).
    """
    i = s.model.shapes.link[shape]
    acceleration = -gravity
    if i >= 0:
        arm = contact.detection.shape_origin[world, shape] - contact.detection.link_origin[world, i]
        angular = work.angular_velocity[world, i]
        velocity = work.linear_velocity[world, i] + wp.cross(angular, arm)
        acceleration = work.linear_acceleration[world, i] + wp.cross(work.angular_acceleration[world, i], arm)
        acceleration = acceleration + wp.cross(angular, velocity)
    return acceleration


@wp.func
def weld_rotation(work: Workspace, s: System, world: int, t: int):
    """Return ω_a, ω_b and ω̇_a − ω̇_b + ω_a × ω_b of the frames of equality constraint t."""
    first = s.model.shapes.link[s.model.equalities.first[t]]
    second = s.model.shapes.link[s.model.equalities.second[t]]
    first_velocity = link_or_world(work.angular_velocity, world, first)
    second_velocity = link_or_world(work.angular_velocity, world, second)
    acceleration = link_or_world(work.angular_acceleration, world, first)
    acceleration = acceleration - link_or_world(work.angular_acceleration, world, second)
    return first_velocity, second_velocity, acceleration + wp.cross(first_velocity, second_velocity)


@wp.func
def loop_errors(contact: Contact, s: System, world: int, t: int):
    """Return the errors of positions and of orientations, zero for a connection, and their common length."""
    distance = equality_error(contact, s, world, t, 0)
    orientation = zero3()
    if s.model.equalities.is_weld[t] != 0:
        quaternion = weld_quaternion(contact, s, world, t)
        orientation = s.model.equalities.torque_scale[t] * vec3(quaternion[1], quaternion[2], quaternion[3])
    return distance, orientation, wp.sqrt(wp.length_sq(distance) + wp.length_sq(orientation))


@wp.func
def add_loop_rows(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, count: int):
    """Add the blocks of loop constraints behind `count` blocks; returns the number of blocks.

    Accelerations of links are those without constraints.
    """
    slot = wp.int32(count)
    for t in range(s.model.equalities.count):
        parameters = s.model.candidates + s.model.transmissions.count + t
        reference = s.model.convex.reference[parameters]
        impedances = s.model.convex.impedance[parameters]
        curve = s.model.convex.curve[parameters]
        distance, orientation, size = loop_errors(contact, s, world, t)
        ratio, _slope = impedance(reference, impedances, curve, size)
        gravity = tree.gravity[world]
        acceleration = point_acceleration(work, contact, s, world, s.model.equalities.first[t], gravity)
        acceleration = acceleration - point_acceleration(work, contact, s, world, s.model.equalities.second[t], gravity)
        for part in range(1 + s.model.equalities.is_weld[t]):
            write_equality_jacobian(tree, contact, s, world, slot, t, part)
            error = distance
            mobility = impedances[2]
            if part == 1:
                error = orientation
                mobility = curve[2]
                rate = weld_rate(contact, s, world, t, weld_quaternion(contact, s, world, t))
                first, second, change = weld_rotation(work, s, world, t)
                acceleration = rate * change - (scalar(0.25) * wp.length_sq(first - second)) * orientation
                for k in range(contact.blocks.path_length[world, slot]):
                    i = contact.blocks.path[world, slot, k]
                    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                        contact.blocks.jacobian[world, slot, d] = rate * contact.blocks.jacobian[world, slot, d]
            contact.blocks.law[world, slot] = SPRING
            contact.convex.companion[world, slot] = -1
            contact.blocks.pair[world, slot] = s.model.candidates + s.model.transmissions.count + 2 * t + part
            contact.blocks.friction[world, slot] = scalar(0.0)
            contact.convex.edge_stiffness[world, slot] = impedance_stiffness(ratio, mobility)
            lag = -acceleration - reference[1] * contact_velocity(tree, contact, world, slot, work.v, row)
            contact.convex.lag[world, slot] = lag - (reference[0] * ratio) * error
            finish_block(tree, work, contact, world, slot)
            slot += 1
    return slot
