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

from physvision.physics.articulated.kernels.collision.narrow_phase import shift_axis, turn_axis
from physvision.physics.articulated.kernels.collision.narrow_phase_adjoint import (
    add_shape,
    carriers_backward,
    turned_forces,
)
from physvision.physics.articulated.kernels.precision import mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import either, skew, zero3
from physvision.physics.articulated.kernels.structs import (
    TIES,
    ContactGradients,
    ContactMemory,
    Contacts,
    Gradients,
    Tree,
    Workspace,
)


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
def tie_backward(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    row: int,
    pair: int,
    after: int,
    virtual: int,
    before: int,
    along: mat33,
    off_bar: vec3,
):
    """q_bar[row] and the gradients += the derivative of Σ along · u, and of off_bar times what the block is off."""
    number = pair - contacts.candidates - contacts.transmissions
    t = number / 2
    moments = scalar(number % 2)
    turn = frames_turn(contacts, memory, world, t)
    first_twist = (scalar(0.5) * moments) * difference_vector(skew(off_bar) * wp.transpose(turn))
    second_twist = (scalar(-0.5) * moments) * difference_vector(wp.transpose(turn) * skew(off_bar))
    for side in range(2):
        shape = contacts.tie_first[t]
        sign = scalar(1 - 2 * side)
        if side == 1:
            shape = contacts.tie_second[t]
        link = contacts.shape_link[shape]
        place = memory.shape_origin[world, shape]
        forces = sign * along
        total = turned_forces(tree, work, memory, world, link, place, after, virtual, before, forces, moments)
        pull = vec3(total[0, 0], total[0, 1], total[0, 2]) + (sign * (scalar(1.0) - moments)) * off_bar
        twist = either(side, first_twist, second_twist)
        carriers_backward(
            tree, work, gradients, memory, world, row, link, after, virtual, before, place, forces, moments, place,
            pull, twist,
        )  # fmt: skip
        if touch.wanted != 0:
            add_shape(contacts, touch, memory, world, shape, zero3(), place, pull, twist, scalar(0.0), zero3(), zero3())
