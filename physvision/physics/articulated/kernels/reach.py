"""How far shapes can get in a flight, so that pairs that stay apart need no search for an event."""

import warp as wp

from . import scalar
from .stops import stop_reach
from .tree import FREE, PRISMATIC, ContactMemory, Contacts, Tree, Workspace


@wp.func
def find_reach(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int, t: scalar):
    """Of each link a bound on how far any point of its shapes moves in a flight of time t.

    What turns about a joint is no farther from it than the sum of the lengths on the way outward.
    """
    for i in range(tree.links):
        memory.extent[world, i] = scalar(0.0)
    for shape in range(contacts.shapes):
        i = contacts.shape_link[shape]
        if i >= 0:
            size = contacts.shape_size[world, shape]
            far = wp.length(contacts.shape_offset[world, shape]) + size[0] + size[1] + size[2]
            memory.extent[world, i] = wp.max(memory.extent[world, i], far)
    for backwards in range(tree.links):
        i = tree.links - 1 - backwards
        parent = tree.parent[i]
        if parent >= 0:
            far = memory.extent[world, i] + wp.length(work.offset[world, i])
            memory.extent[world, parent] = wp.max(memory.extent[world, parent], far)
    for i in range(tree.links):
        start = tree.first_velocity[i]
        total = scalar(0.0)
        if tree.parent[i] >= 0:
            total = memory.reach[world, tree.parent[i]]
        for d in range(start, tree.first_velocity[i + 1]):
            moved = t * (wp.abs(work.v[world, row, d]) + t * wp.abs(work.a[world, row, d]))
            if tree.joint[i] != PRISMATIC and (tree.joint[i] != FREE or d >= start + 3):
                moved = moved * memory.extent[world, i]
            total += moved
        memory.reach[world, i] = total


@wp.func
def reach_of(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    row: int,
    pair: int,
    t: scalar,
):
    """By how much the gap of a candidate can change at most."""
    if pair >= contacts.pairs:
        return stop_reach(tree, work, contacts, world, row, pair, t)
    total = scalar(0.0)
    i = contacts.shape_link[contacts.first[pair]]
    if i >= 0:
        total += memory.reach[world, i]
    i = contacts.shape_link[contacts.second[pair]]
    if i >= 0:
        total += memory.reach[world, i]
    return total
