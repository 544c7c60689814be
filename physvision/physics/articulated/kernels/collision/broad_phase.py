"""How far shapes are apart at least, and how far they can get in a flight, so that most pairs need no closer look.

All pairs of features of the same two shapes are a group, for which balls about the shapes are compared.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import convex_pairs, scalar, vec3
from physvision.physics.articulated.kernels.structs import FREE, PRISMATIC, ContactMemory, Contacts, Tree, Workspace

from .closest_points import CONVEX
from .contact_primitives import axis_of, scaled
from .support_shapes import apart_along, hulls_of, solid_of

# Kinds of groups.
BALLS = wp.constant(0)
PLANE = wp.constant(1)  # the second shape is a plane
ALWAYS = wp.constant(2)  # nothing is known beforehand

UNIT = wp.constant(scalar(1.0e-6))  # by which the square of a normal's length may be off; before the first it is any


@wp.func
def find_bounds(contacts: Contacts, memory: ContactMemory, world: int):
    """Balls that hold the shapes."""
    for shape in range(contacts.shapes):
        reach = scaled(contacts.shape_reach[shape], contacts.shape_size[world, shape])
        memory.shape_bound[world, shape] = wp.length(reach)


@wp.func
def least_gap(contacts: Contacts, memory: ContactMemory, world: int, group: int):
    """What the gaps of a group cannot be below, where shapes were placed last."""
    pair = contacts.group_start[group]
    a = contacts.first[pair]
    b = contacts.second[pair]
    away = memory.shape_origin[world, a] - memory.shape_origin[world, b]
    least = scalar(-1.0e30)
    if contacts.group_kind[group] == PLANE:
        least = wp.dot(axis_of(memory.shape_turn[world, b], 2), away)
        least -= memory.shape_bound[world, a] + contacts.margin[pair]
    elif contacts.group_kind[group] == BALLS:
        least = wp.length(away) - memory.shape_bound[world, a] - memory.shape_bound[world, b] - contacts.margin[pair]
    return least


@wp.func
def gap_along_way(contacts: Contacts, memory: ContactMemory, world: int, pair: int):
    """How far two convex shapes are apart along the normal that was found last, be it elsewhere: the gap is no less."""
    least = scalar(-1.0e30)
    normal = memory.way[world, pair]
    if wp.abs(wp.length_sq(normal) - scalar(1.0)) < UNIT:
        a = solid_of(contacts, memory, world, contacts.first[pair])
        b = solid_of(contacts, memory, world, contacts.second[pair])
        least = apart_along(a, b, hulls_of(contacts), normal) - contacts.margin[pair]
    return least


@wp.func
def first_near(contacts: Contacts, memory: ContactMemory, world: int, pair: int, enough: scalar):
    """The first candidate from `pair` on that is not part of a group which is farther apart; notes what groups are."""
    found = wp.int32(pair)
    looking = bool(True)
    while looking:
        looking = bool(False)
        if found < contacts.pairs:
            group = contacts.group[found]
            if found == contacts.group_start[group]:
                least = least_gap(contacts, memory, world, group)
                if wp.static(convex_pairs):
                    if least <= enough and contacts.kind[found] == CONVEX:
                        least = wp.max(least, gap_along_way(contacts, memory, world, found))
                memory.group_gap[world, group] = least
                if least > enough:
                    found = contacts.group_start[group + 1]
                    looking = bool(True)
    return found


@wp.func
def at_most(a: vec3):
    """A bound on a length, without a root: at most √3 times as long."""
    return wp.abs(a[0]) + wp.abs(a[1]) + wp.abs(a[2])


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
            far = at_most(contacts.shape_offset[world, shape]) + memory.shape_bound[world, shape]
            memory.extent[world, i] = wp.max(memory.extent[world, i], far)
    for i in range(tree.links - 1, -1, -1):
        parent = tree.parent[i]
        if parent >= 0:
            far = memory.extent[world, i] + at_most(work.offset[world, i])
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
def reach_of(tree: Tree, contacts: Contacts, memory: ContactMemory, world: int, pair: int):
    """By how much the gap of a pair can change at most; joints that carry both shapes do not change it."""
    total = scalar(0.0)
    i = contacts.shape_link[contacts.first[pair]]
    if i >= 0:
        total += memory.reach[world, i]
    j = contacts.shape_link[contacts.second[pair]]
    if j >= 0:
        total += memory.reach[world, j]
    while i != j:
        if i > j:
            i = tree.parent[i]
        else:
            j = tree.parent[j]
    if i >= 0:
        total -= scalar(2.0) * memory.reach[world, i]
    return total
