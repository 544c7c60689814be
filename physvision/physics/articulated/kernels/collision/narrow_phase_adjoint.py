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

and b's joints the same with −F. The frame's tangents are chosen anew for each normal. All of it is linear in the forces
and in the motions: for several motions x, each with a force of its own, one walk along the joints sums up
G = Σ x F for each velocity of the tree, and Z(p) × F and F × Z_ω from it.

A moment N with the bodies' turning in place of a force with their velocity, as friction against turning has it, changes

    with the frame by             δφ · (N × Δω), hence n̄ = (N × Δω) × n,
    with the bodies' motions by   s · (Ω × N) as joint i turns by s, Ω being the turning of the joints from i outward.
"""

import warp as wp

from physvision.physics.articulated.kernels.dynamics.kinematics import add_joint_gradient
from physvision.physics.articulated.kernels.precision import mat33, midway, pyramidal, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import either, skew, transposed, zero3
from physvision.physics.articulated.kernels.structs import (
    FREE,
    PRISMATIC,
    ContactGradients,
    ContactMemory,
    Contacts,
    Gradients,
    Tree,
    Workspace,
)

from .closest_points_adjoint import cores_backward, gap_pull, sum_of
from .contact_primitives import LEAST
from .joint_limits import stop_gap_backward, stop_work_backward
from .narrow_phase import (
    SHARE,
    across,
    closest_of,
    depth_of,
    frame_of,
    lies_along,
    pair_frame,
    shift_axis,
    side_of,
    turn_axis,
)


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
    upright: vec3,
):
    """Hand a pull at a place, a turn about it and the adjoint of a radius to a shape's own numbers.

    As sizes s grow by δs, a normal n turns by −(n δs / s), told in the shape's own axes; an edge turns the other way.
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
        standing = transposed(own, upright)
        size = contacts.shape_size[world, shape]
        touch.shape_size[world, shape] = touch.shape_size[world, shape] - vec3(
            across[0] * standing[0] / size[0], across[1] * standing[1] / size[1], across[2] * standing[2] / size[2]
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
        stop_gap_backward(tree, contacts, work, touch, memory, world, row, pair, bar, positions_only)
        return
    near = closest_of(contacts, memory, world, pair)
    both = gap_pull(near, bar)
    for side in range(2):
        shape = contacts.first[pair]
        place = near.first
        pull = both.first
        twist = both.first_turn
        share = near.first_share
        radius_bar = both.rim_radius + wp.dot(near.first_rim, pull)
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
def weighed(work: Workspace, world: int, d: int, after: int, virtual: int, before: int, forces: mat33):
    """G: the forces in the rows, weighed with velocity d of their motions, which are three rows of `rate`."""
    return transposed(
        forces, vec3(work.rate[world, after, d], work.rate[world, virtual, d], work.rate[world, before, d])
    )


@wp.func(inline=True)
def turned_forces(
    tree: Tree,
    work: Workspace,
    memory: ContactMemory,
    world: int,
    link: int,
    place: vec3,
    after: int,
    virtual: int,
    before: int,
    forces: mat33,
    moments: scalar,
):
    """What a link gives Σ F × ω (first row) and Σ F × u, or Σ N × ω where the rows are moments (second row)."""
    spun = zero3()
    moved = zero3()
    push = scalar(1.0) - moments
    i = wp.int32(link)
    while i >= 0:
        arm = place - memory.world_origin[world, i]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            axis = work.axis_angular[world, d]
            force = weighed(work, world, d, after, virtual, before, forces)
            spun = spun + push * wp.cross(force, axis)
            moving = push * (work.axis_linear[world, d] + wp.cross(axis, arm)) + moments * axis
            moved = moved + wp.cross(force, moving)
        i = tree.parent[i]
    z = scalar(0.0)
    return mat33(spun[0], spun[1], spun[2], moved[0], moved[1], moved[2], z, z, z)


@wp.func(inline=True)
def carriers_backward(
    tree: Tree,
    work: Workspace,
    gradients: Gradients,
    memory: ContactMemory,
    world: int,
    row: int,
    link: int,
    after: int,
    virtual: int,
    before: int,
    place: vec3,
    forces: mat33,
    moments: scalar,
    core: vec3,
    pull: vec3,
    twist: vec3,
):
    """q_bar[row] and the gradients += what joints that carry one of the bodies change of Σ F · u, or of Σ N · ω.

    Links are where `move_links` has left them, as shapes are.
    """
    spun = zero3()
    moved = zero3()
    push = scalar(1.0) - moments
    i = wp.int32(link)
    while i >= 0:
        origin = memory.world_origin[world, i]
        held = zero3()  # what does not turn with the joint, though it is the joint's own
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            axis = work.axis_angular[world, d]
            force = weighed(work, world, d, after, virtual, before, forces)
            spun = spun + push * wp.cross(force, axis)
            moved = moved + wp.cross(push * wp.cross(axis, place - origin) + moments * axis, force)
            held = held + push * wp.cross(work.axis_linear[world, d], force)
        moved = moved + scalar(wp.int32(tree.joint[i] == PRISMATIC)) * held
        turn = wp.cross(core - origin, pull) - wp.cross(place - origin, spun) + moved + twist
        add_joint_gradient(tree, work, world, row, i, turn, pull - spun)
        if gradients.wanted != 0:
            origin = origin_before_joint(tree, memory, world, i)
            turn = wp.cross(core - origin, pull) - wp.cross(place - origin, spun) + moved + twist
            turn = turn + scalar(wp.int32(tree.joint[i] == FREE)) * held
            add_placement(tree, gradients, memory, world, i, pull - spun, turn)
        i = tree.parent[i]


@wp.func
def spin_backward(normal: vec3, spin_bar: scalar):
    """N̄ of the turn of the tangents about the normal that `frame_of` gives them: −(s · n) t₂ · δn / |s − (s · n) n|."""
    frame = frame_of(normal)
    first = vec3(frame[1, 0], frame[1, 1], frame[1, 2])
    second = vec3(frame[2, 0], frame[2, 1], frame[2, 2])
    along_x = vec3(scalar(1.0), scalar(0.0), scalar(0.0))
    along_y = vec3(scalar(0.0), scalar(1.0), scalar(0.0))
    side = either(wp.int32(wp.abs(normal[0]) > scalar(0.6)), along_x, along_y)
    return -spin_bar * wp.dot(side, normal) / wp.dot(side, first) * second


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
    after: int,
    virtual: int,
    before: int,
    along: mat33,
    moments: scalar,
    bar: scalar,
):
    """q_bar[row] and the gradients += the derivative of Σ along · (frame u) + bar · gap.

    Each row of `along` goes with a motion, u being the contact's velocity in it; where `moments` is one, with Δω in
    place of u, at the first core's point.
    """
    if pair >= contacts.pairs:
        stop_work_backward(tree, contacts, work, memory, world, row, pair, after, virtual, before, along)
        stop_gap_backward(tree, contacts, work, touch, memory, world, row, pair, bar, 0)
        return
    near = closest_of(contacts, memory, world, pair)
    depth = (scalar(1.0) - moments) * depth_of(near, contacts.margin[pair])
    place = near.first - depth * near.normal
    forces = along * pair_frame(contacts, memory, world, pair, near.normal)
    total = mat33()
    for side in range(2):
        link = contacts.shape_link[contacts.first[pair]]
        sign = scalar(1 - 2 * side)
        if side == 1:
            link = contacts.shape_link[contacts.second[pair]]
        total = total + sign * turned_forces(
            tree, work, memory, world, link, place, after, virtual, before, forces, moments
        )
    place_bar = vec3(total[0, 0], total[0, 1], total[0, 2])
    turned = vec3(total[1, 0], total[1, 1], total[1, 2])
    along_normal = wp.dot(near.normal, place_bar)
    gap_bar = bar - SHARE * along_normal
    normal_bar = wp.cross(turned, near.normal) - depth * place_bar
    if wp.static(pyramidal):
        normal_bar = normal_bar + spin_backward(near.normal, wp.dot(turned, near.normal))
    lengthwise_turn = zero3()
    if wp.static(midway):
        # Tangents turn about the normal by t₂ · (δs − s · n δn) / |s across n| as the side s and the normal move.
        along_side = side_of(contacts, memory, world, pair, near.normal)
        rest = across(along_side, near.normal)
        swung = wp.dot(turned, near.normal) / wp.max(wp.length_sq(rest), LEAST) * wp.cross(near.normal, rest)
        normal_bar = normal_bar - wp.dot(along_side, near.normal) * swung
        follows = scalar(lies_along(contacts, memory, world, pair, near.normal))
        lengthwise_turn = follows * wp.cross(along_side, swung)
    both = sum_of(cores_backward(near, place_bar, normal_bar), gap_pull(near, gap_bar))
    if wp.static(midway):
        both.first_turn = both.first_turn + lengthwise_turn
    for side in range(2):
        shape = contacts.first[pair]
        radius_bar = both.rim_radius + wp.dot(near.first_rim, both.first)
        if near.first_radius > scalar(0.0):
            radius_bar -= bar  # it moves the point and the gap alike
            if wp.static(midway):
                radius_bar -= (scalar(1.0) - SHARE) * along_normal
        if side == 1:
            shape = contacts.second[pair]
            radius_bar = wp.dot(near.second_rim, both.second)
            if near.second_radius > scalar(0.0):
                radius_bar = -gap_bar
        core = either(side, near.first, near.second)
        pull = either(side, both.first, both.second)
        twist = either(side, both.first_turn, both.second_turn)
        pushed = scalar(1 - 2 * side) * forces
        carriers_backward(
            tree, work, gradients, memory, world, row, contacts.shape_link[shape], after, virtual, before, place,
            pushed, moments, core, pull, twist,
        )  # fmt: skip
        if touch.wanted != 0:
            share = either(side, near.first_share, near.second_share)
            tilt = either(side, both.first_tilt, both.second_tilt)
            upright = either(side, both.first_upright, both.second_upright)
            add_shape(contacts, touch, memory, world, shape, share, core, pull, twist, radius_bar, tilt, upright)
