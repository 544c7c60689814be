"""Contacts of flat sides at which the motion has no derivative.

Corners of a side that strike at the same time strike one after the other once the side is tilted however little, and
that may end in another motion. A flat side touches at more points than hold it, so that their normal impulses are
undetermined. Where it slides while it spins, these points slide along different directions, and how strong the friction
along each direction is, is undetermined too.
"""

import warp as wp

from ..precision import scalar, vec3
from ..spatial.vectors import transpose_product, zero3
from ..structs import CONTACT, OPEN, Contact, System
from .active_set import MODE_TOLERANCE, max_abs
from .settings import SOLVER

MAX_DETERMINED = wp.constant(3)  # points of a flat side whose normal impulses are determined
PARALLEL_TOLERANCE = wp.constant(scalar(SOLVER.parallel_tolerance))


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
                if speed > MODE_TOLERANCE * max_abs(contact.blocks.free_velocity[world, c]):
                    area = wp.length(wp.cross(along, first_velocity))
                    is_turning = is_turning or area > PARALLEL_TOLERANCE * speed * speed
                if points > MAX_DETERMINED and is_turning:
                    result = bool(True)
    return result
