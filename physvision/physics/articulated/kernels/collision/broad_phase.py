"""Broad phase: lower bounds of separations, and bounds of how far shapes can move in a flight, to skip most pairs.

All pairs of features of two shapes are a group, for which the bounding spheres of the shapes are compared. Of many
groups most are far: those that are near are listed, and the list holds until shapes may have moved as far as it
reaches.
"""

import warp as wp

from ..precision import convex_pairs, scalar, vec3
from ..spatial.vectors import column
from ..structs import FREE, PRISMATIC, Contact, System, Tree, Workspace
from .closest_points import CONVEX
from .contact_primitives import elementwise_product
from .settings import COLLISION
from .support_shapes import convex_shape, hull_table, separation_along

# Kinds of groups.
SPHERES = wp.constant(0)
PLANE = wp.constant(1)  # the second shape is a plane
ALWAYS = wp.constant(2)  # no lower bound is known

UNIT_LENGTH_TOLERANCE = wp.constant(scalar(COLLISION.cached_normal_tolerance))


@wp.func
def update_bounding_radii(contact: Contact, s: System, world: int):
    """Compute the radii of spheres that contain the shapes."""
    for shape in range(s.model.shapes.count):
        extent = elementwise_product(s.model.shapes.bounding_scale[shape], s.model.shapes.size[world, shape])
        contact.detection.bounding_radius[world, shape] = wp.length(extent)


@wp.func
def min_separation(contact: Contact, s: System, world: int, group: int):
    """Return a lower bound of the separations of a group at the current poses of the shapes."""
    pair = s.model.groups.start[group]
    a = s.model.pairs.first[pair]
    b = s.model.pairs.second[pair]
    offset = contact.detection.shape_origin[world, a] - contact.detection.shape_origin[world, b]
    bound = scalar(-1.0e30)
    if s.model.groups.kind[group] == PLANE:
        bound = wp.dot(column(contact.detection.shape_rotation[world, b], 2), offset)
        bound -= contact.detection.bounding_radius[world, a] + s.model.pairs.margin[pair]
    elif s.model.groups.kind[group] == SPHERES:
        bound = (
            wp.length(offset)
            - contact.detection.bounding_radius[world, a]
            - contact.detection.bounding_radius[world, b]
            - s.model.pairs.margin[pair]
        )
    return bound


@wp.func
def separation_along_cached_normal(contact: Contact, s: System, world: int, pair: int):
    """Return the separation of two convex shapes along the cached normal, a lower bound at any poses."""
    bound = scalar(-1.0e30)
    normal = contact.detection.cached_normal[world, pair]
    if wp.abs(wp.length_sq(normal) - scalar(1.0)) < UNIT_LENGTH_TOLERANCE:
        a = convex_shape(contact, s, world, s.model.pairs.first[pair])
        b = convex_shape(contact, s, world, s.model.pairs.second[pair])
        bound = separation_along(a, b, hull_table(s.model), normal) - s.model.pairs.margin[pair]
    return bound


@wp.func
def bounded_separation(contact: Contact, s: System, world: int, group: int, threshold: scalar):
    """Return a lower bound of the separations of a group, a better one if the first is not above `threshold`."""
    bound = min_separation(contact, s, world, group)
    if wp.static(convex_pairs):
        pair = s.model.groups.start[group]
        if bound <= threshold and s.model.pairs.kind[pair] == CONVEX:
            bound = wp.max(bound, separation_along_cached_normal(contact, s, world, pair))
    return bound


@wp.func
def list_near_groups(contact: Contact, s: System, world: int, threshold: scalar, max_distance: scalar):
    """List the groups that may be as close as `max_distance`; separations below `threshold` are there already."""
    near = wp.int32(s.model.groups.count)
    for backwards in range(s.model.groups.count):
        group = s.model.groups.count - 1 - backwards
        bound = bounded_separation(contact, s, world, group, max_distance)
        # NaN is near.
        if not (bound > max_distance):
            near = group
            if bound > threshold:
                contact.detection.group_separation[world, group] = bound
        contact.detection.near_group[world, group] = near
    contact.detection.near_slack[world] = max_distance


@wp.func
def next_near_group(contact: Contact, s: System, world: int, group: int):
    """Return the first group from `group` on that is near, or their number if there is none."""
    near = wp.int32(group)
    if group < s.model.groups.count:
        near = contact.detection.near_group[world, group]
    return near


@wp.func
def next_candidate(contact: Contact, s: System, world: int, pair: int, threshold: scalar):
    """Return the first candidate from `pair` on whose group may be as close as `threshold`, after the first one.

    Updates group separations.
    """
    candidate = wp.int32(pair)
    is_searching = bool(True)
    while is_searching:
        is_searching = bool(False)
        if candidate < s.model.pairs.count:
            group = wp.int32(s.model.pairs.group[candidate])
            if candidate == s.model.groups.start[group]:
                group = next_near_group(contact, s, world, group)
                candidate = s.model.groups.start[group]
                if group < s.model.groups.count:
                    bound = bounded_separation(contact, s, world, group, threshold)
                    contact.detection.group_separation[world, group] = bound
                    if bound > threshold:
                        candidate = s.model.groups.start[group + 1]
                        is_searching = bool(True)
    return candidate


@wp.func
def first_candidate(contact: Contact, s: System, world: int, threshold: scalar):
    """Return the first candidate whose group may be as close as `threshold`, of groups that are listed anew."""
    list_near_groups(contact, s, world, threshold, threshold)
    return next_candidate(contact, s, world, 0, threshold)


@wp.func
def first_listed_candidate(contact: Contact, s: System, world: int, threshold: scalar):
    """Do as `first_candidate`, by the old list as long as it holds: poses have changed by flights alone."""
    if not (contact.detection.near_slack[world] >= threshold):
        list_near_groups(contact, s, world, threshold, threshold)
    return next_candidate(contact, s, world, 0, threshold)


@wp.func
def length_bound(a: vec3):
    """Return an upper bound of a vector's length without a square root, at most √3 times too large."""
    return wp.abs(a[0]) + wp.abs(a[1]) + wp.abs(a[2])


@wp.func
def update_link_displacements(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, t: scalar
):
    """Compute for every link an upper bound of the displacement of its shapes in a flight of time t.

    Returns the largest. A point that rotates about a joint is no farther from it than the sum of the lengths on the way
    outward.
    """
    for i in range(tree.links):
        contact.detection.link_extent[world, i] = scalar(0.0)
    for shape in range(s.model.shapes.count):
        i = s.model.shapes.link[shape]
        if i >= 0:
            distance = (
                length_bound(s.model.shapes.offset[world, shape]) + contact.detection.bounding_radius[world, shape]
            )
            contact.detection.link_extent[world, i] = wp.max(contact.detection.link_extent[world, i], distance)
    for i in range(tree.links - 1, -1, -1):
        parent = tree.parent[i]
        if parent >= 0:
            distance = contact.detection.link_extent[world, i] + length_bound(work.offset[world, i])
            contact.detection.link_extent[world, parent] = wp.max(
                contact.detection.link_extent[world, parent], distance
            )
    largest = scalar(0.0)
    for i in range(tree.links):
        start = tree.first_velocity[i]
        total = scalar(0.0)
        if tree.parent[i] >= 0:
            total = contact.detection.link_displacement[world, tree.parent[i]]
        for d in range(start, tree.first_velocity[i + 1]):
            displacement = t * (wp.abs(work.v[world, row, d]) + t * wp.abs(work.a[world, row, d]))
            if tree.joint[i] != PRISMATIC and (tree.joint[i] != FREE or d >= start + 3):
                displacement = displacement * contact.detection.link_extent[world, i]
            total += displacement
        contact.detection.link_displacement[world, i] = total
        largest = wp.max(largest, total)
    return largest


@wp.func
def max_approach(tree: Tree, contact: Contact, s: System, world: int, pair: int):
    """Return an upper bound of the change of separation of a pair; joints that carry both shapes do not change it."""
    total = scalar(0.0)
    i = s.model.shapes.link[s.model.pairs.first[pair]]
    if i >= 0:
        total += contact.detection.link_displacement[world, i]
    j = s.model.shapes.link[s.model.pairs.second[pair]]
    if j >= 0:
        total += contact.detection.link_displacement[world, j]
    while i != j:
        if i > j:
            i = tree.parent[i]
        else:
            j = tree.parent[j]
    if i >= 0:
        total -= scalar(2.0) * contact.detection.link_displacement[world, i]
    return total
