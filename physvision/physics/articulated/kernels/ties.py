"""Ties between bodies: two points that stay together, and two frames that stay turned alike.

The bodies carry a frame each, (p_a, A) and (p_b, B) in the world, told as shapes that touch nothing. A tie is one block
of three rows along the world's axes, a weld two:

    u = Y_a(p_a) − Y_b(p_b),   off by p_a − p_b;        u = ω_a − ω_b,   off by e(A Bᵀ),

e being half the difference of a matrix and its transpose, as a vector. All rows stick, in flights and in impacts; in
flights κ/h of what they are off is added to u, as of an overlap.

For a force F along the rows, F · Y_a(p_a) changes with p_a by δp · (F × ω_a), and with the joints that carry a as a
contact's velocity does (`touching_backward`). With R = A Bᵀ and turns φ of the frames δR = [φ_a] R − R [φ_b], so for an
adjoint g of e the turns take w([g] Rᵀ)/2 and −w(Rᵀ [g])/2, w(M) being the vector of M − Mᵀ.
"""

import warp as wp

from . import scalar
from .modes import TIES
from .spatial import mat33, skew, vec3, zero3
from .touching import shift_axis, turn_axis
from .touching_backward import add_shape, carriers_backward, pull_carriers, velocity_at
from .tree import ContactGradients, ContactMemory, Contacts, Gradients, Tree, Workspace
from .turning import turning_carriers_backward


@wp.func
def difference_vector(m: mat33):
    """The vector of m − mᵀ."""
    return vec3(m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1])


@wp.func
def frames_turn(contacts: Contacts, memory: ContactMemory, world: int, t: int):
    """R = A Bᵀ."""
    first = memory.shape_turn[world, contacts.tie_first[t]]
    return first * wp.transpose(memory.shape_turn[world, contacts.tie_second[t]])


@wp.func
def tie_off(contacts: Contacts, memory: ContactMemory, world: int, t: int, part: int):
    """How far points or frames are off."""
    found = memory.shape_origin[world, contacts.tie_first[t]] - memory.shape_origin[world, contacts.tie_second[t]]
    if part == 1:
        found = scalar(0.5) * difference_vector(frames_turn(contacts, memory, world, t))
    return found


@wp.func
def write_tie_jacobian(tree: Tree, contacts: Contacts, memory: ContactMemory, world: int, slot: int, t: int, part: int):
    """Of block `slot`: the links that carry either frame, outermost first, and what their velocities give its rows."""
    first = contacts.tie_first[t]
    second = contacts.tie_second[t]
    one = contacts.shape_link[first]
    other = contacts.shape_link[second]
    length = wp.int32(0)
    while one >= 0 or other >= 0:
        i = wp.max(one, other)
        mine = scalar(0.0)
        theirs = scalar(0.0)
        if one == i:
            mine = scalar(1.0)
            one = tree.parent[i]
        if other == i:
            theirs = scalar(1.0)
            other = tree.parent[i]
        origin = memory.world_origin[world, i]
        arm = mine * (memory.shape_origin[world, first] - origin)
        arm = arm - theirs * (memory.shape_origin[world, second] - origin)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            axis = turn_axis(tree, memory, world, i, d)
            along = (mine - theirs) * axis
            if part == 0:
                along = (mine - theirs) * shift_axis(tree, memory, world, i, d) + wp.cross(axis, arm)
            memory.jacobian[world, slot, d] = along
        memory.path[world, slot, length] = i
        length += 1
    memory.path_length[world, slot] = length


@wp.func
def list_ties(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    row: int,
    flying: int,
    taken_back: scalar,
):
    """Add all ties to the list of blocks."""
    for t in range(contacts.ties):
        for part in range(1 + contacts.tie_turns[t]):
            slot = memory.count[world, row]
            memory.count[world, row] = slot + 1
            if slot < contacts.capacity:
                write_tie_jacobian(tree, contacts, memory, world, slot, t, part)
                velocity = zero3()
                for k in range(memory.path_length[world, slot]):
                    i = memory.path[world, slot, k]
                    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                        velocity = velocity + work.v[world, row, d] * memory.jacobian[world, slot, d]
                bias = zero3()
                if flying != 0:
                    bias = (taken_back / memory.left[world, 0]) * tie_off(contacts, memory, world, t, part)
                memory.pair[world, slot] = contacts.candidates + contacts.transmissions + 2 * t + part
                memory.law[world, slot] = TIES
                memory.friction[world, slot] = scalar(0.0)
                memory.restitution[world, slot] = scalar(0.0)
                memory.before[world, slot] = velocity
                memory.bias[world, slot] = bias
                memory.yielding[world, slot] = scalar(0.0)


@wp.func(inline=True)
def tie_off_backward(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    row: int,
    c: int,
    taken_back: scalar,
):
    """From the adjoint of the rows of block c to those of positions, by what they are off."""
    number = memory.pair[world, c] - contacts.candidates - contacts.transmissions
    t = number / 2
    bar = (taken_back / memory.left[world, 0]) * memory.slip_bar[world, c]
    turn = frames_turn(contacts, memory, world, t)
    for side in range(2):
        shape = contacts.tie_first[t]
        pull = bar
        twist = zero3()
        if number % 2 == 1:
            pull = zero3()
            twist = scalar(0.5) * difference_vector(skew(bar) * wp.transpose(turn))
        if side == 1:
            shape = contacts.tie_second[t]
            pull = -pull
            if number % 2 == 1:
                twist = scalar(-0.5) * difference_vector(wp.transpose(turn) * skew(bar))
        place = memory.shape_origin[world, shape]
        link = contacts.shape_link[shape]
        pull_carriers(tree, work, gradients, memory, world, row, link, place, pull, twist, 0)
        if touch.wanted != 0:
            add_shape(contacts, touch, memory, world, shape, zero3(), place, pull, twist, scalar(0.0), zero3(), zero3())


@wp.func(inline=True)
def tie_work_backward(
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
    """q_bar[row] and the gradients += the derivative of along · u."""
    number = pair - contacts.candidates - contacts.transmissions
    t = number / 2
    for side in range(2):
        shape = contacts.tie_first[t]
        force = along
        if side == 1:
            shape = contacts.tie_second[t]
            force = -along
        link = contacts.shape_link[shape]
        place = memory.shape_origin[world, shape]
        if number % 2 == 1:
            turning_carriers_backward(
                tree, work, gradients, memory, world, row, link, motion, motion_row, force, place, zero3(), zero3()
            )
        else:
            moving = velocity_at(tree, memory, world, link, place, motion, motion_row)
            pull = wp.cross(force, vec3(moving[1, 0], moving[1, 1], moving[1, 2]))
            carriers_backward(
                tree, work, gradients, memory, world, row, link, motion, motion_row, place, force, place, pull, zero3()
            )
            if touch.wanted != 0:
                add_shape(
                    contacts, touch, memory, world, shape, zero3(), place, pull, zero3(), scalar(0.0), zero3(), zero3()
                )
