"""Stops of joints: contacts with one direction, the joint's own. They follow the pairs of shapes, two for each limit.

The gap of a lower stop is q − low, that of an upper one high − q; its only velocity is that of the joint.

The position of a ball joint is the angle θ = 2 atan2(|x|, w) of its quaternion (w, x), and its direction the axis
u = x / |x|, along which its angular velocity changes θ. With a turn φ of the joint the axis moves by
½ cot(θ/2) (φ − u u·φ) + ½ u × φ.
"""

import warp as wp

from physvision.physics.articulated.kernels.dynamics.joints import read3, read4
from physvision.physics.articulated.kernels.precision import mat33, scalar, vec3
from physvision.physics.articulated.kernels.structs import (
    BALL,
    ContactGradients,
    ContactMemory,
    Contacts,
    Tree,
    Workspace,
)

from .contact_primitives import LEAST


@wp.func
def stop_sign(contacts: Contacts, pair: int):
    """1 for a lower stop, −1 for an upper one."""
    return scalar(1 - 2 * ((pair - contacts.pairs) % 2))


@wp.func
def stop_link(contacts: Contacts, pair: int):
    return contacts.limit_link[(pair - contacts.pairs) / 2]


@wp.func
def stop_gap(contacts: Contacts, memory: ContactMemory, world: int, pair: int):
    """How far the joint is from its stop, where links were placed last."""
    limit = (pair - contacts.pairs) / 2
    position = memory.limit_position[world, limit]
    gap = position - contacts.limit_low[world, limit]
    if stop_sign(contacts, pair) < scalar(0.0):
        gap = contacts.limit_high[world, limit] - position
    return gap


@wp.func
def place_stops(
    tree: Tree, contacts: Contacts, memory: ContactMemory, world: int, q: wp.array3d(dtype=scalar), row: int
):
    z = scalar(0.0)
    for limit in range(contacts.limits):
        i = contacts.limit_link[limit]
        p = tree.first_position[i]
        memory.limit_axis[world, limit] = vec3(scalar(1.0), z, z)
        memory.limit_position[world, limit] = q[world, row, p]
        if tree.joint[i] == BALL:
            turn = read4(q, world, row, p)
            if turn[0] < z:
                turn = -turn
            axis = vec3(turn[1], turn[2], turn[3])
            sine = wp.length(axis)
            memory.limit_axis[world, limit] = axis / wp.max(sine, LEAST)
            memory.limit_position[world, limit] = scalar(2.0) * wp.atan2(sine, turn[0])


@wp.func
def write_stop_jacobian(tree: Tree, contacts: Contacts, memory: ContactMemory, world: int, slot: int, pair: int):
    """Of contact `slot`: the velocity of the joint along its first direction, nothing along the tangents."""
    z = scalar(0.0)
    i = stop_link(contacts, pair)
    direction = stop_sign(contacts, pair) * memory.limit_axis[world, (pair - contacts.pairs) / 2]
    length = wp.int32(0)
    while i >= 0:
        # The links that carry the joint do not move it, but take their part in the response to its impulse.
        start = tree.first_velocity[i]
        for d in range(start, tree.first_velocity[i + 1]):
            along = z
            if length == 0:
                along = direction[d - start]
            memory.jacobian[world, slot, d] = vec3(along, z, z)
        memory.path[world, slot, length] = i
        length += 1
        i = tree.parent[i]
    memory.path_length[world, slot] = length


@wp.func
def stop_reach(tree: Tree, work: Workspace, contacts: Contacts, world: int, row: int, pair: int, t: scalar):
    """By how much the gap can change in a flight of time t."""
    i = stop_link(contacts, pair)
    total = scalar(0.0)
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        total += t * (wp.abs(work.v[world, row, d]) + t * wp.abs(work.a[world, row, d]))
    return total


@wp.func
def stop_gap_backward(
    tree: Tree,
    contacts: Contacts,
    work: Workspace,
    touch: ContactGradients,
    memory: ContactMemory,
    world: int,
    row: int,
    pair: int,
    bar: scalar,
    positions_only: int,
):
    """q_bar[row] and, unless `positions_only`, the gradients to the limits += bar times the gap's derivative."""
    sign = stop_sign(contacts, pair)
    i = stop_link(contacts, pair)
    start = tree.first_velocity[i]
    axis = memory.limit_axis[world, (pair - contacts.pairs) / 2]
    for d in range(start, tree.first_velocity[i + 1]):
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + sign * bar * axis[d - start]
    if touch.wanted != 0 and positions_only == 0:
        limit = (pair - contacts.pairs) / 2
        if sign > scalar(0.0):
            touch.limit_low[world, limit] = touch.limit_low[world, limit] - bar
        else:
            touch.limit_high[world, limit] = touch.limit_high[world, limit] + bar


@wp.func
def stop_work_backward(
    tree: Tree,
    contacts: Contacts,
    work: Workspace,
    memory: ContactMemory,
    world: int,
    row: int,
    pair: int,
    after: int,
    virtual: int,
    before: int,
    along: mat33,
):
    """q_bar[row] += the derivative of Σ along · (the stop's velocity): only the axis of a ball joint moves."""
    i = stop_link(contacts, pair)
    if tree.joint[i] == BALL:
        limit = (pair - contacts.pairs) / 2
        axis = memory.limit_axis[world, limit]
        half = scalar(0.5) * memory.limit_position[world, limit]
        start = tree.first_velocity[i]
        x = along[0, 0] * read3(work.rate, world, after, start)
        x = x + along[1, 0] * read3(work.rate, world, virtual, start)
        x = x + along[2, 0] * read3(work.rate, world, before, start)
        cotangent = wp.cos(half) / wp.max(wp.sin(half), LEAST)
        bar = cotangent * (x - wp.dot(x, axis) * axis) + wp.cross(x, axis)
        bar = scalar(0.5) * stop_sign(contacts, pair) * bar
        for k in range(3):
            work.q_bar[world, row, start + k] = work.q_bar[world, row, start + k] + bar[k]
