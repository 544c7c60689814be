"""Friction against turning: a block beside that of its contact, whose velocity is the turning of both bodies there.

Along the contact's normal and tangents, frame · (ω_a − ω_b). For a motion x of the tree and a moment N in the world's
axes, told by numbers along the frame, N · Δω changes

    with the frame by             δφ · (N × Δω), δφ = n × δn, hence n̄ = (N × Δω) × n,
    with the bodies' motions by   s · (Ω × N) as joint i turns by s, Ω being the turning of the joints from i outward.

`closest_backward` makes pulls at both cores of n̄, as for the contact's own velocity.
"""

import warp as wp

from . import scalar
from .closest_backward import cores_backward
from .modes import TURNS
from .spatial import transposed, vec3, zero3
from .touching import closest_of, frame_of, turn_axis
from .touching_backward import add_displacement, add_placement, add_shape, origin_before_joint, velocity_at
from .tree import ContactGradients, ContactMemory, Contacts, Gradients, Tree, Workspace


@wp.func(inline=True)
def add_turning(
    tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int, pair: int, slot: int
):
    """List the turning friction of the contact in `slot`, behind it, if it was listed and its pair has some."""
    own = slot + 1
    if contacts.turns[pair] != 0 and memory.count[world, row] == own:
        memory.count[world, row] = own + 1
        if own < contacts.capacity:
            frame = memory.frame[world, slot]
            one = contacts.shape_link[contacts.first[pair]]
            other = contacts.shape_link[contacts.second[pair]]
            length = wp.int32(0)
            total = zero3()
            while one >= 0 or other >= 0:
                i = wp.max(one, other)
                sign = scalar(0.0)  # what carries both turns neither against the other
                if one == i:
                    sign += scalar(1.0)
                    one = tree.parent[i]
                if other == i:
                    sign -= scalar(1.0)
                    other = tree.parent[i]
                for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                    along = sign * (frame * turn_axis(tree, memory, world, i, d))
                    memory.jacobian[world, own, d] = along
                    total = total + work.v[world, row, d] * along
                memory.path[world, own, length] = i
                length += 1
            memory.path_length[world, own] = length
            memory.pair[world, own] = pair
            memory.law[world, own] = TURNS
            memory.holder[world, own] = slot
            memory.friction[world, own] = scalar(0.0)
            memory.restitution[world, own] = scalar(0.0)
            memory.torsion[world, own] = contacts.torsion[world, pair]
            memory.rolling[world, own] = contacts.rolling[world, pair]
            memory.before[world, own] = total
            memory.bias[world, own] = zero3()
            memory.yielding[world, own] = scalar(0.0)


@wp.func(inline=True)
def turning_carriers_backward(
    tree: Tree,
    work: Workspace,
    gradients: Gradients,
    memory: ContactMemory,
    world: int,
    row: int,
    link: int,
    motion: wp.array3d(dtype=scalar),
    motion_row: int,
    moment: vec3,
    core: vec3,
    pull: vec3,
    twist: vec3,
):
    """q_bar[row] and the gradients += what joints that carry one of the bodies change of N · Δω."""
    spin = zero3()
    i = wp.int32(link)
    while i >= 0:
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            spin = spin + motion[world, motion_row, d] * turn_axis(tree, memory, world, i, d)
        rest = twist + wp.cross(spin, moment)
        turn = wp.cross(core - memory.world_origin[world, i], pull) + rest
        add_displacement(tree, work, memory, world, row, i, pull, turn)
        if gradients.wanted != 0:
            turn = wp.cross(core - origin_before_joint(tree, memory, world, i), pull) + rest
            add_placement(tree, gradients, memory, world, i, pull, turn)
        i = tree.parent[i]


@wp.func(inline=True)
def turning_work_backward(
    tree: Tree,
    contacts: Contacts,
    work: Workspace,
    gradients: Gradients,
    touch: ContactGradients,
    memory: ContactMemory,
    world: int,
    row: int,
    pair: int,
    motion: wp.array3d(dtype=scalar),
    motion_row: int,
    along: vec3,
):
    """q_bar[row] and the gradients += the derivative of along · (frame Δω)."""
    near = closest_of(contacts, memory, world, pair)
    first = contacts.first[pair]
    second = contacts.second[pair]
    carrier = contacts.shape_link[first]
    other = contacts.shape_link[second]
    moment = transposed(frame_of(near.normal), along)
    moving = velocity_at(tree, memory, world, carrier, near.first, motion, motion_row) - velocity_at(
        tree, memory, world, other, near.first, motion, motion_row
    )
    turning = vec3(moving[1, 0], moving[1, 1], moving[1, 2])
    both = cores_backward(near, zero3(), wp.cross(wp.cross(moment, turning), near.normal))
    for side in range(2):
        link = carrier
        pushed = moment
        core = near.first
        pull = both.first
        twist = both.first_turn
        if side == 1:
            link = other
            pushed = -moment
            core = near.second
            pull = both.second
            twist = both.second_turn
        turning_carriers_backward(
            tree, work, gradients, memory, world, row, link, motion, motion_row, pushed, core, pull, twist
        )
    if touch.wanted != 0:
        add_shape(
            contacts, touch, memory, world, first, near.first_share, near.first, both.first, both.first_turn,
            both.rim_radius, both.first_tilt, near.normal,
        )  # fmt: skip
        add_shape(
            contacts, touch, memory, world, second, near.second_share, near.second, both.second, both.second_turn,
            wp.dot(near.second_rim, both.second), both.second_tilt, near.normal,
        )  # fmt: skip
