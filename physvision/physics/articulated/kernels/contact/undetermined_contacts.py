"""Contacts of flat sides at which the motion has no derivative.

Corners of a side that strike at the same time strike one after the other once the side is tilted however little, and
that may end in another motion. A flat side touches at more points than hold it, so that their normal impulses are
undetermined. Where it slides while it spins, these points slide along different directions, and how strong the friction
along each direction is, is undetermined too.
"""

import warp as wp

from ..collision.contact_primitives import ContactPrimitive
from ..collision.narrow_phase import pair_primitive
from ..collision.settings import COLLISION
from ..precision import pyramidal, scalar, vec3
from ..spatial.vectors import transpose_product, zero3
from ..structs import CONTACT, OPEN, Contact, System
from .active_set import MODE_TOLERANCE, max_abs
from .settings import SOLVER

SAME_HEIGHT = wp.constant(scalar(COLLISION.same_height))
MAX_DETERMINED = wp.constant(3)  # points of a flat side whose normal impulses are determined
PARALLEL_TOLERANCE = wp.constant(scalar(SOLVER.parallel_tolerance))


@wp.func(inline=True)
def is_within_flat_sides(contact: Contact, s: System, world: int, pair: int, primitive: ContactPrimitive):
    """Return True if the closest points of a pair are any of its flat sides, and four corners of these are as close.

    Where they are within the sides depends on rounding.
    """
    result = bool(False)
    if primitive.is_flat != 0:
        group = s.model.pairs.group[pair]
        start = s.model.groups.start[group]
        if pair == start and s.model.groups.start[group + 1] - start > 4:
            result = bool(True)
            for corner in range(start + 1, start + 5):
                height = pair_primitive(contact, s, world, corner).separation - primitive.separation
                if wp.abs(height) > SAME_HEIGHT:
                    result = bool(False)
    return result


@wp.func
def is_approaching(contact: Contact, s: System, world: int, c: int):
    """Return True if block c is a contact that strikes in an impact."""
    is_contact = contact.blocks.law[world, c] == CONTACT
    return is_contact and contact.blocks.initial_velocity[world, c][0] < -s.model.restitution_threshold


@wp.func
def has_simultaneous_impacts(contact: Contact, s: System, world: int, count: int):
    """Return True if two contacts of an island strike in the same impact."""
    result = bool(False)
    for c in range(count):
        if is_approaching(contact, s, world, c):
            for k in range(c):
                if contact.solver.island[world, k] == contact.solver.island[world, c]:
                    if is_approaching(contact, s, world, k):
                        result = bool(True)
    return result


@wp.func
def friction_group(contact: Contact, s: System, world: int, c: int):
    """Return the pair of shapes of a closed contact with friction, if more points than hold it may touch; else -1."""
    group = wp.int32(-1)
    pair = contact.blocks.pair[world, c]
    if contact.blocks.law[world, c] == CONTACT and pair < s.model.pairs.count:
        shapes = s.model.pairs.group[pair]
        if s.model.groups.start[shapes + 1] - s.model.groups.start[shapes] > MAX_DETERMINED:
            if contact.blocks.friction[world, c] > scalar(0.0) and contact.solver.mode[world, c] != OPEN:
                group = shapes
    return group


@wp.func
def free_speed(contact: Contact, world: int, c: int, count: int):
    """Return the largest velocity of the island of block c without impulses, which its rounding is in proportion to."""
    speed = scalar(0.0)
    for k in range(count):
        if contact.solver.island[world, k] == contact.solver.island[world, c]:
            speed = wp.max(speed, max_abs(contact.blocks.free_velocity[world, k]))
    return speed


@wp.func
def has_undetermined_friction(contact: Contact, s: System, world: int, count: int):
    """Return True if a flat side slides on more points than hold it, along directions that differ.

    Contacts of a pair of shapes follow each other. What stands still up to rounding does not slide.
    """
    result = bool(False)
    group = wp.int32(-1)
    points = wp.int32(0)
    is_turning = bool(False)
    first_normal = zero3()
    first_velocity = zero3()
    for c in range(count):
        contact_group = friction_group(contact, s, world, c)
        if contact_group >= 0:
            frame = contact.blocks.frame[world, c]
            normal = vec3(frame[0, 0], frame[0, 1], frame[0, 2])
            velocity = contact.solver.velocity[world, c]
            along = transpose_product(frame, vec3(scalar(0.0), velocity[1], velocity[2]))
            if contact_group != group:
                group = contact_group
                points = 0
                is_turning = bool(False)
                first_normal = normal
                first_velocity = along
            if wp.length(wp.cross(normal, first_normal)) <= PARALLEL_TOLERANCE:
                points += 1
                speed = wp.max(wp.length(along), wp.length(first_velocity))
                if wp.length(wp.cross(along, first_velocity)) > PARALLEL_TOLERANCE * speed * speed:
                    is_turning = is_turning or speed > MODE_TOLERANCE * free_speed(contact, world, c, count)
                if points > MAX_DETERMINED and is_turning:
                    result = bool(True)
    return result


@wp.func
def is_undetermined(contact: Contact, s: System, world: int, count: int, is_impact: bool):
    """Return True if the motion has no derivative at a solved event."""
    result = bool(False)
    if is_impact:
        result = has_simultaneous_impacts(contact, s, world, count)
    if wp.static(not pyramidal):
        if s.model.groups.max_pairs > MAX_DETERMINED:
            result = result or has_undetermined_friction(contact, s, world, count)
    return result
