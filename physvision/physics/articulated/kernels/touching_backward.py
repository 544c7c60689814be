"""How gaps, and what forces do at contacts, change as the tree moves; `touching` says where contacts are.

For a motion x of the tree and a force F in the world's axes, told by numbers `along` in the frame of the contact,
F · u changes

    with the point by   δp · (F × (ω_a − ω_b)),
    with the frame by   δφ · (F × u), which turns it no more than n turns, for friction is alike in all directions:
                        δφ = n × δn, hence n̄ = (F × u) × n,
    with the bodies' motions, at a point held still: Z(p) = Z₀ + Z_ω × p, the part of Y_a that turns with joint i as the
    joint turns by s about o and shifts by e, becomes s × Z(p) − Z_ω × (s × (p − o) + e).

`closest_backward` makes pulls at the two cores of p̄, n̄ and ḡ = −n · p̄. With a pull P at q and a turn T about it,
joint i takes

    s · ψ + e · (P − F × Z_ω),    ψ = (q − o) × P + T + Z(p) × F − (p − o) × (F × Z_ω),

and b's joints the same with −F. The frame's tangents are chosen anew for each normal.
"""

import warp as wp

from . import scalar
from .closest_backward import cores_backward, gap_pull, sum_of
from .spatial import mat33, skew, transposed, vec3, zero3
from .stops import stop_gap_backward
from .touching import closest_of, frame_of, place_of, shift_axis, turn_axis
from .tree import FREE, PRISMATIC, ContactGradients, ContactMemory, Contacts, Gradients, Tree, Workspace


@wp.func(inline=True)
def add_displacement(
    tree: Tree, work: Workspace, memory: ContactMemory, world: int, row: int, i: int, pull: vec3, turn: vec3
):
    """Hand the adjoints of a shift and of a turn of link i about its origin to q_bar[row] and to its placement."""
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        along = wp.dot(turn_axis(tree, memory, world, i, d), turn) + wp.dot(shift_axis(tree, memory, world, i, d), pull)
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + along


@wp.func(inline=True)
def add_placement(tree: Tree, gradients: Gradients, memory: ContactMemory, world: int, i: int, pull: vec3, turn: vec3):
    """The same for the placement of link i in its parent: `turn` is about the origin that it has before its joint."""
    parent = tree.parent[i]
    before = wp.transpose(tree.rotation[world, i])
    local_pull = pull
    if parent >= 0:
        carrier = memory.world_rotation[world, parent]
        before = carrier * before
        local_pull = transposed(carrier, pull)
    gradients.offset[world, i] = gradients.offset[world, i] + local_pull
    gradients.turn[world, i] = gradients.turn[world, i] + transposed(before, turn)


@wp.func(inline=True)
def origin_before_joint(tree: Tree, memory: ContactMemory, world: int, i: int):
    parent = tree.parent[i]
    origin = tree.offset[world, i]
    if parent >= 0:
        origin = memory.world_origin[world, parent] + memory.world_rotation[world, parent] * origin
    return origin


@wp.func
def add_shape(
    contacts: Contacts,
    touch: ContactGradients,
    memory: ContactMemory,
    world: int,
    shape: int,
    share: vec3,
    place: vec3,
    pull: vec3,
    turn: vec3,
    radius_bar: scalar,
    tilt: vec3,
    normal: vec3,
):
    """Hand a pull at a place, a turn about it and the adjoint of a radius to a shape's own numbers.

    As the sizes s of an ellipsoid grow by δs, its normal n at a point turns by −(n δs / s), told in its own axes.
    """
    own = memory.shape_turn[world, shape]
    whole = wp.cross(place - memory.shape_origin[world, shape], pull) + turn
    local_pull = pull
    link = contacts.shape_link[shape]
    if link >= 0:
        local_pull = transposed(memory.world_rotation[world, link], pull)
        whole = transposed(memory.world_rotation[world, link], whole)
    grown = transposed(own, pull)
    touch.shape_offset[world, shape] = touch.shape_offset[world, shape] + local_pull
    touch.shape_twist[world, shape] = touch.shape_twist[world, shape] + whole
    touch.shape_size[world, shape] = touch.shape_size[world, shape] + vec3(
        share[0] * grown[0] + radius_bar, share[1] * grown[1], share[2] * grown[2]
    )
    if wp.length_sq(tilt) > scalar(0.0):
        across = transposed(own, tilt)
        upright = transposed(own, normal)
        size = contacts.shape_size[world, shape]
        touch.shape_size[world, shape] = touch.shape_size[world, shape] - vec3(
            across[0] * upright[0] / size[0], across[1] * upright[1] / size[1], across[2] * upright[2] / size[2]
        )


@wp.func
def finish_shape_gradient(contacts: Contacts, touch: ContactGradients, world: int):
    """From a turn to the nine numbers of the matrix: R = exp([φ]×) R₀, so R̄ = ½ [φ̄]× R₀."""
    if touch.wanted != 0:
        for shape in range(contacts.shapes):
            twist = touch.shape_twist[world, shape]
            touch.shape_turn[world, shape] = scalar(0.5) * skew(twist) * contacts.shape_turn[world, shape]


@wp.func(inline=True)
def pull_carriers(
    tree: Tree,
    work: Workspace,
    gradients: Gradients,
    memory: ContactMemory,
    world: int,
    row: int,
    link: int,
    place: vec3,
    pull: vec3,
    twist: vec3,
    positions_only: int,
):
    """Hand a pull at a place and a turn about it to the joints that carry a link, and to the links' placements."""
    i = wp.int32(link)
    while i >= 0:
        turn = wp.cross(place - memory.world_origin[world, i], pull) + twist
        add_displacement(tree, work, memory, world, row, i, pull, turn)
        if gradients.wanted != 0 and positions_only == 0:
            turn = wp.cross(place - origin_before_joint(tree, memory, world, i), pull) + twist
            add_placement(tree, gradients, memory, world, i, pull, turn)
        i = tree.parent[i]


@wp.func(inline=True)
def gap_backward(
    tree: Tree,
    contacts: Contacts,
    work: Workspace,
    gradients: Gradients,
    touch: ContactGradients,
    memory: ContactMemory,
    world: int,
    row: int,
    pair: int,
    bar: scalar,
    positions_only: int,
):
    """q_bar[row] and, unless `positions_only`, the gradients += bar times the derivative of the candidate's gap."""
    if pair >= contacts.pairs:
        stop_gap_backward(tree, contacts, work, touch, world, row, pair, bar, positions_only)
        return
    near = closest_of(contacts, memory, world, pair)
    both = gap_pull(near, bar)
    for side in range(2):
        shape = contacts.first[pair]
        place = near.first
        pull = both.first
        twist = both.first_turn
        share = near.first_share
        radius_bar = both.rim_radius
        if near.first_radius > scalar(0.0):
            radius_bar -= bar
        if side == 1:
            shape = contacts.second[pair]
            place = near.second
            pull = both.second
            twist = both.second_turn
            share = near.second_share
            radius_bar = wp.dot(near.second_rim, pull)
            if near.second_radius > scalar(0.0):
                radius_bar = -bar
        link = contacts.shape_link[shape]
        pull_carriers(tree, work, gradients, memory, world, row, link, place, pull, twist, positions_only)
        if touch.wanted != 0 and positions_only == 0:
            add_shape(
                contacts, touch, memory, world, shape, share, place, pull, twist, radius_bar, zero3(), near.normal
            )


@wp.func(inline=True)
def velocity_at(
    tree: Tree,
    memory: ContactMemory,
    world: int,
    link: int,
    place: vec3,
    motion: wp.array3d(dtype=scalar),
    motion_row: int,
):
    """Velocity (first row) and turning (second) at a place that a link carries."""
    velocity = zero3()
    spin = zero3()
    i = wp.int32(link)
    while i >= 0:
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            x = motion[world, motion_row, d]
            axis = turn_axis(tree, memory, world, i, d)
            spin = spin + x * axis
            velocity = velocity + x * (
                shift_axis(tree, memory, world, i, d) + wp.cross(axis, place - memory.world_origin[world, i])
            )
        i = tree.parent[i]
    z = scalar(0.0)
    return mat33(velocity[0], velocity[1], velocity[2], spin[0], spin[1], spin[2], z, z, z)


@wp.func(inline=True)
def carriers_backward(
    tree: Tree,
    work: Workspace,
    gradients: Gradients,
    memory: ContactMemory,
    world: int,
    row: int,
    link: int,
    motion: wp.array3d(dtype=scalar),
    motion_row: int,
    place: vec3,
    force: vec3,
    core: vec3,
    pull: vec3,
    twist: vec3,
):
    """q_bar[row] and the gradients += what joints that carry one of the bodies change of F · u."""
    turning = zero3()
    turning_spin = zero3()
    i = wp.int32(link)
    while i >= 0:
        held = zero3()  # what does not turn with the joint, though it is the joint's own
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            x = motion[world, motion_row, d]
            axis = turn_axis(tree, memory, world, i, d)
            turning_spin = turning_spin + x * axis
            turning = turning + x * wp.cross(axis, place - memory.world_origin[world, i])
            held = held + x * shift_axis(tree, memory, world, i, d)
        if tree.joint[i] == PRISMATIC:
            turning = turning + held
        twisted = wp.cross(force, turning_spin)
        rest = twist + wp.cross(turning, force)
        origin = memory.world_origin[world, i]
        turn = wp.cross(core - origin, pull) - wp.cross(place - origin, twisted) + rest
        add_displacement(tree, work, memory, world, row, i, pull - twisted, turn)
        if gradients.wanted != 0:
            origin = origin_before_joint(tree, memory, world, i)
            turn = wp.cross(core - origin, pull) - wp.cross(place - origin, twisted) + rest
            if tree.joint[i] == FREE:
                turn = turn + wp.cross(held, force)
            add_placement(tree, gradients, memory, world, i, pull - twisted, turn)
        i = tree.parent[i]


@wp.func(inline=True)
def contact_work_backward(
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
    """q_bar[row] and the gradients += the derivative of along · (frame u), u being the contact's velocity."""
    if pair >= contacts.pairs:
        return  # a joint's direction never changes
    near = closest_of(contacts, memory, world, pair)
    margin = contacts.margin[pair]
    place = place_of(near, margin)
    first = contacts.first[pair]
    second = contacts.second[pair]
    carrier = contacts.shape_link[first]
    other = contacts.shape_link[second]
    force = transposed(frame_of(near.normal), along)
    moving = velocity_at(tree, memory, world, carrier, place, motion, motion_row) - velocity_at(
        tree, memory, world, other, place, motion, motion_row
    )
    velocity = vec3(moving[0, 0], moving[0, 1], moving[0, 2])
    place_bar = wp.cross(force, vec3(moving[1, 0], moving[1, 1], moving[1, 2]))
    depth = near.first_radius + near.gap + margin
    gap_bar = -wp.dot(near.normal, place_bar)
    normal_bar = wp.cross(wp.cross(force, velocity), near.normal) - depth * place_bar
    both = sum_of(cores_backward(near, place_bar, normal_bar), gap_pull(near, gap_bar))
    for side in range(2):
        link = carrier
        pushed = force
        core = near.first
        pull = both.first
        twist = both.first_turn
        if side == 1:
            link = other
            pushed = -force
            core = near.second
            pull = both.second
            twist = both.second_turn
        carriers_backward(
            tree, work, gradients, memory, world, row, link, motion, motion_row, place, pushed, core, pull, twist
        )
    if touch.wanted != 0:
        # The first shape's radius moves the point and the gap alike, and the contact not at all.
        radius_bar = wp.dot(near.second_rim, both.second)
        if near.second_radius > scalar(0.0):
            radius_bar = -gap_bar
        add_shape(
            contacts, touch, memory, world, first, near.first_share, near.first, both.first, both.first_turn,
            both.rim_radius, both.first_tilt, near.normal,
        )  # fmt: skip
        add_shape(
            contacts, touch, memory, world, second, near.second_share, near.second, both.second, both.second_turn,
            radius_bar, both.second_tilt, near.normal,
        )  # fmt: skip
