"""Detection of penetrating contacts for convex contact, and the impulses of their forces."""

import warp as wp

from ..collision.broad_phase import first_candidate, next_candidate
from ..collision.joint_limits import limit_separation, write_limit_jacobian
from ..collision.narrow_phase import copy_link_rotations, pair_primitive, write_contact_jacobian
from ..dynamics.inverse import propagate_accelerations
from ..precision import scalar
from ..spatial.vectors import transpose_product, zero3
from ..structs import Contact, System, Tree, Workspace
from .compliant_rows import add_loop_rows, add_transmission_rows, finish_block
from .convex_contact import (
    COMPANION,
    ELLIPTIC,
    PYRAMID,
    block_force,
    companion_entry,
    edge_stiffness,
    impedance,
    impedance_stiffness,
)
from .delassus import contact_velocity
from .rotational_friction import write_rotational_jacobian


@wp.func
def set_contact_law(contact: Contact, s: System, world: int, pair: int, slot: int, separation: scalar):
    """Set law and stiffness of the contact in a slot; returns k d g of its reference."""
    reference = s.model.convex.reference[pair]
    impedances = s.model.convex.impedance[pair]
    ratio, _slope = impedance(reference, impedances, s.model.convex.curve[pair], separation)
    friction = contact.blocks.friction[world, slot]
    contact.blocks.law[world, slot] = PYRAMID
    if s.model.convex.is_elliptic != 0 and friction > scalar(0.0):
        contact.blocks.law[world, slot] = ELLIPTIC
        contact.convex.edge_stiffness[world, slot] = impedance_stiffness(ratio, impedances[2])
    else:
        contact.convex.edge_stiffness[world, slot] = edge_stiffness(
            ratio, impedances[2], friction, s.model.convex.friction_ratio
        )
    return reference[0] * ratio * separation


@wp.func
def add_companion(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, pair: int, slot: int):
    """Add rotational friction behind the contact in a slot."""
    block = slot + 1
    contact.convex.companion[world, slot] = block
    contact.convex.companion[world, block] = -1
    contact.blocks.torsional_friction[world, slot] = s.model.pairs.torsional_friction[world, pair]
    contact.blocks.rolling_friction[world, slot] = s.model.pairs.rolling_friction[world, pair]
    contact.blocks.law[world, block] = COMPANION
    contact.blocks.pair[world, block] = pair
    contact.blocks.friction[world, block] = scalar(0.0)
    write_rotational_jacobian(tree, work, contact, s, world, pair, slot, block)
    lag = -s.model.convex.reference[pair][1] * contact_velocity(tree, contact, world, block, work.v, row)
    contact.convex.lag[world, block] = lag - contact_velocity(tree, contact, world, block, work.a, row)
    finish_block(tree, work, contact, world, block)


@wp.func
def detect_penetrations(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int):
    """Add the penetrating candidates, with stiffness, lag behind the reference and half Jacobian H.

    Return their number, or -1 if it exceeds the limit.
    """
    count = wp.int32(0)
    pair = first_candidate(contact, s, world, scalar(0.0))
    while pair < s.model.candidates and count >= 0:
        separation = scalar(0.0)
        num_blocks = wp.int32(1)
        if pair < s.model.pairs.count:
            num_blocks += s.model.pairs.has_rotational_friction[pair]
        within_capacity = bool(count + num_blocks <= s.model.max_blocks - s.model.row_blocks)
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
                contact.blocks.pair[world, count] = pair
                contact.convex.companion[world, count] = -1
                push = set_contact_law(contact, s, world, pair, count, separation)
                lag = -s.model.convex.reference[pair][1] * contact_velocity(tree, contact, world, count, work.v, row)
                lag = lag - contact_velocity(tree, contact, world, count, work.a, row)
                lag[0] = lag[0] - push
                contact.convex.lag[world, count] = lag
                finish_block(tree, work, contact, world, count)
                if num_blocks == 2:
                    add_companion(tree, work, contact, s, world, row, pair, count)
                count += num_blocks
            else:
                contact.status.block_count[world] = s.model.max_blocks + 1
                count = -1
        pair = next_candidate(contact, s, world, pair + 1, scalar(0.0))
    return count


@wp.func
def detect_constraints(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    row: int,
    drag_interval: scalar,
):
    """Add all blocks: penetrating candidates, transmissions and loop constraints; returns their number, or -1."""
    count = detect_penetrations(tree, work, contact, s, world, row)
    if count >= 0:
        if s.model.transmissions.count > 0:
            count = add_transmission_rows(tree, work, contact, s, world, step, row, count, drag_interval)
        if s.model.equalities.count > 0:
            copy_link_rotations(tree, work, contact, world)
            propagate_accelerations(tree, work, world, row)
            count = add_loop_rows(tree, work, contact, s, world, row, count)
    return count


@wp.func
def contact_force(contact: Contact, s: System, world: int, c: int):
    """Return the force of block c along its rows, and the moment of its rotational friction."""
    force, moment = block_force(
        contact,
        world,
        c,
        s.model.convex.friction_ratio,
        contact.solver.mode[world, c],
        contact.convex.lag[world, c],
        companion_entry(contact, world, c, contact.convex.lag),
    )
    return force, moment


@wp.func
def accumulate_impulses(contact: Contact, s: System, world: int, row: int, count: int, interval: scalar):
    """Add the impulses of the contact forces over an interval to those of the step, which row 0 clears first."""
    if row == 0:
        for pair in range(s.model.pairs.count):
            contact.status.pair_impulse[world, pair] = zero3()
    for c in range(count):
        pair = contact.blocks.pair[world, c]
        if pair < s.model.pairs.count and contact.blocks.law[world, c] != COMPANION:
            along, _moment = contact_force(contact, s, world, c)
            force = transpose_product(contact.blocks.frame[world, c], along)
            contact.status.pair_impulse[world, pair] = contact.status.pair_impulse[world, pair] + interval * force
