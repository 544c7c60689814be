"""Stops of joints: contacts with one direction, the joint's own. They follow the pairs of shapes, two for each limit.

The gap of a lower stop is q − low, that of an upper one high − q; its only velocity is that of the joint.
"""

import warp as wp

from . import scalar
from .spatial import vec3
from .tree import ContactGradients, ContactMemory, Contacts, Tree, Workspace


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
    for limit in range(contacts.limits):
        p = tree.first_position[contacts.limit_link[limit]]
        memory.limit_position[world, limit] = q[world, row, p]


@wp.func
def write_stop_jacobian(tree: Tree, contacts: Contacts, memory: ContactMemory, world: int, slot: int, pair: int):
    """Of contact `slot`: the velocity of the joint along its first direction, nothing along the tangents."""
    z = scalar(0.0)
    i = stop_link(contacts, pair)
    sign = stop_sign(contacts, pair)
    length = wp.int32(0)
    while i >= 0:
        # The links that carry the joint do not move it, but take their part in the response to its impulse.
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            memory.jacobian[world, slot, d] = vec3(sign, z, z)
        memory.path[world, slot, length] = i
        length += 1
        sign = z
        i = tree.parent[i]
    memory.path_length[world, slot] = length


@wp.func
def stop_reach(tree: Tree, work: Workspace, contacts: Contacts, world: int, row: int, pair: int, t: scalar):
    """By how much the gap can change in a flight of time t."""
    d = tree.first_velocity[stop_link(contacts, pair)]
    return t * (wp.abs(work.v[world, row, d]) + t * wp.abs(work.a[world, row, d]))


@wp.func
def stop_gap_backward(
    tree: Tree,
    contacts: Contacts,
    work: Workspace,
    touch: ContactGradients,
    world: int,
    row: int,
    pair: int,
    bar: scalar,
    positions_only: int,
):
    """q_bar[row] and, unless `positions_only`, the gradients to the limits += bar times the gap's derivative."""
    sign = stop_sign(contacts, pair)
    d = tree.first_velocity[stop_link(contacts, pair)]
    work.q_bar[world, row, d] = work.q_bar[world, row, d] + sign * bar
    if touch.wanted != 0 and positions_only == 0:
        limit = (pair - contacts.pairs) / 2
        if sign > scalar(0.0):
            touch.limit_low[world, limit] = touch.limit_low[world, limit] - bar
        else:
            touch.limit_high[world, limit] = touch.limit_high[world, limit] + bar
