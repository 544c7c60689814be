"""Limits of joints and of tendons as contacts with one direction; they follow the pairs of features.

There are two for each joint: the separation of a lower limit is q − lower, that of an upper one upper − q; its only
velocity is that of the joint. Behind them, limits of tendons, whose length is a combination of joint positions
(`dynamics/transmissions.py`), have their displacement as separation.

The position of a ball joint is the angle θ = 2 atan2(|x|, w) of its quaternion (w, x), and its direction the axis u = x
/ |x|, along which its angular velocity changes θ. A rotation φ of the joint moves the axis by ½ cot(θ/2) (φ − u u·φ) +
½ u × φ.
"""

import warp as wp

from ..dynamics.joints import read3, read4
from ..dynamics.transmissions import write_transmission_jacobian
from ..precision import Array3d, scalar, vec3
from ..structs import BALL, Contact, Model, System, Tree, Workspace
from .contact_primitives import MIN_LENGTH, WeightedForces


@wp.func
def length_index(model: Model, pair: int):
    """Return which limit of a tendon's length candidate `pair` is, negative for the limit of a joint."""
    return pair - model.pairs.count - 2 * model.limits.count


@wp.func
def limit_sign(model: Model, pair: int):
    """Return 1 for a lower limit, −1 for an upper one."""
    return scalar(1 - 2 * ((pair - model.pairs.count) % 2))


@wp.func
def limit_joint_link(model: Model, pair: int):
    """Return the link whose joint has the limit."""
    return model.limits.link[(pair - model.pairs.count) / 2]


@wp.func
def limit_separation(contact: Contact, s: System, world: int, pair: int):
    """Return the distance of the joint from its limit at the current pose."""
    length = length_index(s.model, pair)
    if length >= 0:
        return contact.detection.length_displacement[world, length]
    limit = (pair - s.model.pairs.count) / 2
    position = contact.detection.limit_position[world, limit]
    gap = position - s.model.limits.lower[world, limit]
    if limit_sign(s.model, pair) < scalar(0.0):
        gap = s.model.limits.upper[world, limit] - position
    return gap


@wp.func
def update_limit_positions(tree: Tree, contact: Contact, s: System, world: int, q: Array3d, row: int):
    """Compute positions and axes of the joints with limits at q[row]."""
    z = scalar(0.0)
    for limit in range(s.model.limits.count):
        i = s.model.limits.link[limit]
        p = tree.first_position[i]
        contact.detection.limit_axis[world, limit] = vec3(scalar(1.0), z, z)
        contact.detection.limit_position[world, limit] = q[world, row, p]
        if tree.joint[i] == BALL:
            quaternion = read4(q, world, row, p)
            if quaternion[0] < z:
                quaternion = -quaternion
            axis = vec3(quaternion[1], quaternion[2], quaternion[3])
            sine = wp.length(axis)
            contact.detection.limit_axis[world, limit] = axis / wp.max(sine, MIN_LENGTH)
            contact.detection.limit_position[world, limit] = scalar(2.0) * wp.atan2(sine, quaternion[0])
    for length in range(s.model.lengths.count):
        transmission = s.model.lengths.row[length]
        displacement = -s.model.transmissions.reference[world, transmission]
        for k in range(s.model.transmissions.start[transmission], s.model.transmissions.start[transmission + 1]):
            displacement += s.model.transmissions.coefficient[k] * q[world, row, s.model.transmissions.position[k]]
        contact.detection.length_displacement[world, length] = displacement


@wp.func
def write_limit_jacobian(tree: Tree, contact: Contact, s: System, world: int, slot: int, pair: int):
    """Write the Jacobian of contact `slot`: the joint velocity along its first direction, zero along the tangents."""
    z = scalar(0.0)
    if length_index(s.model, pair) >= 0:
        write_transmission_jacobian(tree, contact, s, world, slot, s.model.lengths.row[length_index(s.model, pair)])
        return
    i = limit_joint_link(s.model, pair)
    direction = limit_sign(s.model, pair) * contact.detection.limit_axis[world, (pair - s.model.pairs.count) / 2]
    num_links = wp.int32(0)
    while i >= 0:
        # Links that carry the joint do not change its position, but they respond to its impulse.
        start = tree.first_velocity[i]
        for d in range(start, tree.first_velocity[i + 1]):
            along = z
            if num_links == 0:
                along = direction[d - start]
            contact.blocks.jacobian[world, slot, d] = vec3(along, z, z)
        contact.blocks.path[world, slot, num_links] = i
        num_links += 1
        i = tree.parent[i]
    contact.blocks.path_length[world, slot] = num_links


@wp.func
def max_limit_approach(tree: Tree, work: Workspace, s: System, world: int, row: int, pair: int, t: scalar):
    """Return an upper bound of the change of the separation in a flight of time t."""
    total = scalar(0.0)
    length = length_index(s.model, pair)
    if length >= 0:
        transmission = s.model.lengths.row[length]
        for k in range(s.model.transmissions.start[transmission], s.model.transmissions.start[transmission + 1]):
            d = s.model.transmissions.velocity[k]
            speed = wp.abs(work.v[world, row, d]) + t * wp.abs(work.a[world, row, d])
            total += t * wp.abs(s.model.transmissions.coefficient[k]) * speed
        return total
    i = limit_joint_link(s.model, pair)
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        total += t * (wp.abs(work.v[world, row, d]) + t * wp.abs(work.a[world, row, d]))
    return total


@wp.func
def limit_separation_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    row: int,
    pair: int,
    bar: scalar,
    positions_only: int,
):
    """Add `bar` times the derivative of the separation to q_bar[row] and, unless `positions_only`, to limits."""
    length = length_index(s.model, pair)
    if length >= 0:
        transmission = s.model.lengths.row[length]
        for k in range(s.model.transmissions.start[transmission], s.model.transmissions.start[transmission + 1]):
            d = s.model.transmissions.velocity[k]
            work.q_bar[world, row, d] = work.q_bar[world, row, d] + s.model.transmissions.coefficient[k] * bar
        if s.contact_gradients.is_requested != 0 and positions_only == 0:
            s.contact_gradients.transmissions.reference[world, transmission] = (
                s.contact_gradients.transmissions.reference[world, transmission] - bar
            )
        return
    sign = limit_sign(s.model, pair)
    i = limit_joint_link(s.model, pair)
    start = tree.first_velocity[i]
    axis = contact.detection.limit_axis[world, (pair - s.model.pairs.count) / 2]
    for d in range(start, tree.first_velocity[i + 1]):
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + sign * bar * axis[d - start]
    if s.contact_gradients.is_requested != 0 and positions_only == 0:
        limit = (pair - s.model.pairs.count) / 2
        if sign > scalar(0.0):
            s.contact_gradients.limits.lower[world, limit] = s.contact_gradients.limits.lower[world, limit] - bar
        else:
            s.contact_gradients.limits.upper[world, limit] = s.contact_gradients.limits.upper[world, limit] + bar


@wp.func
def limit_power_backward(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, pair: int, w: WeightedForces
):
    """Add the derivative of Σ forces · (velocity of the limit) to q_bar[row]: only the axis of a ball joint moves."""
    if length_index(s.model, pair) >= 0:
        return
    i = limit_joint_link(s.model, pair)
    if tree.joint[i] == BALL:
        limit = (pair - s.model.pairs.count) / 2
        axis = contact.detection.limit_axis[world, limit]
        half = scalar(0.5) * contact.detection.limit_position[world, limit]
        start = tree.first_velocity[i]
        x = w.forces[0, 0] * read3(work.step_velocity, world, w.row_after, start)
        x = x + w.forces[1, 0] * read3(work.step_velocity, world, w.row_virtual, start)
        x = x + w.forces[2, 0] * read3(work.step_velocity, world, w.row_before, start)
        half_angle_cotangent = wp.cos(half) / wp.max(wp.sin(half), MIN_LENGTH)
        bar = half_angle_cotangent * (x - wp.dot(x, axis) * axis) + wp.cross(x, axis)
        bar = scalar(0.5) * limit_sign(s.model, pair) * bar
        for k in range(3):
            work.q_bar[world, row, start + k] = work.q_bar[world, row, start + k] + bar[k]
