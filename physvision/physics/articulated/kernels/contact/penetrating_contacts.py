"""Detection of penetrating contacts for convex contact, and the impulses of their forces."""

import warp as wp

from ..collision.broad_phase import next_candidate
from ..collision.joint_limits import limit_separation, write_limit_jacobian
from ..collision.narrow_phase import pair_primitive, write_contact_jacobian
from ..precision import scalar
from ..spatial.vectors import transpose_product, zero3
from ..structs import Contact, System, Tree, Workspace
from .convex_contact import edge_stiffness, impedance, stiffness_product
from .convex_solver import scale_half_jacobian
from .delassus import contact_velocity, write_half_jacobian


@wp.func
def detect_penetrations(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int):
    """Add the penetrating candidates, with stiffness, lag behind the reference and half Jacobian H.

    Return their number, or -1 if it exceeds the limit.
    """
    count = wp.int32(0)
    pair = next_candidate(contact, s, world, 0, scalar(0.0))
    while pair < s.model.candidates and count >= 0:
        separation = scalar(0.0)
        within_capacity = bool(count < s.model.max_blocks)
        if pair < s.model.pairs.count:
            primitive = pair_primitive(contact, s, world, pair)
            separation = primitive.separation
            if separation < scalar(0.0) and within_capacity:
                contact.blocks.friction[world, count] = s.model.pairs.friction[world, pair]
                write_contact_jacobian(tree, work, contact, s, world, count, pair, primitive)
        else:
            separation = limit_separation(contact, s, world, pair)
            if separation < scalar(0.0) and within_capacity:
                contact.blocks.friction[world, count] = scalar(0.0)
                write_limit_jacobian(tree, contact, s, world, count, pair)
        contact.detection.separation[world, pair] = separation
        contact.status.penetration[world] = wp.max(contact.status.penetration[world], -separation)
        if separation < scalar(0.0):
            if within_capacity:
                reference = s.model.convex.reference[pair]
                impedances = s.model.convex.impedance[pair]
                ratio, _slope = impedance(reference, impedances, separation)
                contact.blocks.pair[world, count] = pair
                contact.convex.edge_stiffness[world, count] = edge_stiffness(
                    ratio, impedances[2], contact.blocks.friction[world, count]
                )
                lag = -reference[1] * contact_velocity(tree, contact, world, count, work.v, row)
                lag = lag - contact_velocity(tree, contact, world, count, work.a, row)
                lag[0] = lag[0] - reference[0] * ratio * separation
                contact.convex.lag[world, count] = lag
                write_half_jacobian(tree, work, contact, world, count)
                scale_half_jacobian(tree, work, contact, world, count)
                count += 1
            else:
                count = -1
        pair = next_candidate(contact, s, world, pair + 1, scalar(0.0))
    return count


@wp.func
def contact_force(contact: Contact, world: int, c: int):
    """Return the force of contact c along its normal and tangents."""
    return stiffness_product(
        contact.convex.edge_stiffness[world, c],
        contact.blocks.friction[world, c],
        contact.solver.mode[world, c],
        contact.convex.lag[world, c],
    )


@wp.func
def accumulate_impulses(contact: Contact, s: System, world: int, row: int, count: int, interval: scalar):
    """Add the impulses of the contact forces over an interval to those of the step, which row 0 clears first."""
    if row == 0:
        for pair in range(s.model.pairs.count):
            contact.status.pair_impulse[world, pair] = zero3()
    for c in range(count):
        pair = contact.blocks.pair[world, c]
        if pair < s.model.pairs.count:
            force = transpose_product(contact.blocks.frame[world, c], contact_force(contact, world, c))
            contact.status.pair_impulse[world, pair] = contact.status.pair_impulse[world, pair] + interval * force
