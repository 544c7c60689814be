"""Rotational friction: a block in addition to that of its contact, with the velocity frame · (ω_a − ω_b).

Its adjoint is in `contact_power_adjoint`.
"""

import warp as wp

from ..precision import scalar, vec3
from ..spatial.vectors import zero3
from ..structs import ROLL, SPIN, SPIN_AND_ROLL, STICK, TORSIONAL_ROLLING, Contact, System, Tree, Workspace
from .settings import SOLVER

MIN_WEIGHT = wp.constant(scalar(SOLVER.min_divisor))


@wp.func
def is_spinning(mode: int):
    """Return True if a mode of rotational friction spins."""
    return mode == SPIN or mode == SPIN_AND_ROLL


@wp.func
def is_rolling(mode: int):
    """Return True if a mode of rotational friction rolls."""
    return mode == ROLL or mode == SPIN_AND_ROLL


@wp.func
def rotational_mode(spins: bool, rolling: bool):
    """Return the mode of rotational friction that spins, rolls, both or neither."""
    mode = wp.int32(STICK)
    if spins:
        mode = SPIN
    if rolling:
        mode = ROLL
        if spins:
            mode = SPIN_AND_ROLL
    return mode


@wp.func
def rolling_direction(y: vec3):
    """Return the length (first entry) and the direction of the rolling components of a velocity."""
    length = wp.max(wp.sqrt(y[1] * y[1] + y[2] * y[2]), MIN_WEIGHT)
    return vec3(length, y[1] / length, y[2] / length)


@wp.func
def sign_or_one(x: scalar):
    """Return the sign of a number, 1 for zero."""
    sign = scalar(1.0)
    if x < scalar(0.0):
        sign = scalar(-1.0)
    return sign


@wp.func(inline=True)
def write_rotational_jacobian(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, pair: int, slot: int, block: int
):
    """Write the Jacobian and the path of a block of rotational friction, whose contact is in `slot`."""
    frame = contact.blocks.frame[world, slot]
    first_link = s.model.shapes.link[s.model.pairs.first[pair]]
    second_link = s.model.shapes.link[s.model.pairs.second[pair]]
    length = wp.int32(0)
    while first_link >= 0 or second_link >= 0:
        i = wp.max(first_link, second_link)
        sign = scalar(0.0)  # a link that carries both shapes causes no relative rotation
        if first_link == i:
            sign += scalar(1.0)
            first_link = tree.parent[i]
        if second_link == i:
            sign -= scalar(1.0)
            second_link = tree.parent[i]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            contact.blocks.jacobian[world, block, d] = sign * (frame * work.axis_angular[world, d])
        contact.blocks.path[world, block, length] = i
        length += 1
    contact.blocks.path_length[world, block] = length


@wp.func(inline=True)
def add_rotational_friction(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, pair: int, slot: int
):
    """Add rotational friction after the contact in `slot`, if that was added and its pair has rotational friction."""
    block = slot + 1
    if s.model.pairs.has_rotational_friction[pair] != 0 and contact.events.count[world, row] == block:
        contact.events.count[world, row] = block + 1
        if block < s.model.max_blocks:
            write_rotational_jacobian(tree, work, contact, s, world, pair, slot, block)
            velocity = zero3()
            for k in range(contact.blocks.path_length[world, block]):
                i = contact.blocks.path[world, block, k]
                for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                    velocity = velocity + work.v[world, row, d] * contact.blocks.jacobian[world, block, d]
            contact.blocks.pair[world, block] = pair
            contact.blocks.law[world, block] = TORSIONAL_ROLLING
            contact.blocks.parent[world, block] = slot
            contact.blocks.friction[world, block] = scalar(0.0)
            contact.blocks.restitution[world, block] = scalar(0.0)
            contact.blocks.torsional_friction[world, block] = s.model.pairs.torsional_friction[world, pair]
            contact.blocks.rolling_friction[world, block] = s.model.pairs.rolling_friction[world, pair]
            contact.blocks.initial_velocity[world, block] = velocity
            contact.blocks.velocity_bias[world, block] = zero3()
            contact.blocks.compliance[world, block] = scalar(0.0)
