"""Where pairs are: gaps, Jacobians, and how both change as the tree moves.

A pair is a ball of radius r about a point c that is fixed in a link, and a plane of the world with normal n. In the
world's axes the contact is at p = c − r n. A displacement of joint i moves everything outward of it as one rigid body,
by a twist with turn s about a point o: the centre moves by s × (c − o). The motion x of the tree gives the contact the
velocity u(p) = Y(p) + Z(p), where Y is the motion of what carries joint i and Z turns with the joint. Hence, for a
force F at the contact,

    δ(F · u) = F · (Y_ω × (s × (c − o)) + s × Z(p) + Z_ω × (s × r n)) = s · ψ,
    ψ = (c − o) × (F × Y_ω) + Z(p) × F + r n × (F × Z_ω),

and a shift e of the joint gives e · (F × Y_ω). The gap n · (c − o_plane) − r has ψ = (c − o) × n and the shift's n.
"""

import warp as wp

from . import scalar
from .joints import read3, read4
from .spatial import mat33, quaternion_matrix, transposed, turned_about_z, vec3, zero3
from .tree import BALL, FREE, PRISMATIC, REVOLUTE, ContactGradients, ContactMemory, Contacts, Gradients, Tree, Workspace


@wp.func
def column(m: mat33, k: int):
    return vec3(m[0, k], m[1, k], m[2, k])


@wp.func
def place_in_world(tree: Tree, memory: ContactMemory, world: int, q: wp.array3d(dtype=scalar), row: int):
    """Rotation (link to world) and origin of every link at q[row]; nothing of the factorisation is touched."""
    for i in range(tree.links):
        joint = tree.joint[i]
        p = tree.first_position[i]
        rotation = tree.rotation[world, i]
        offset = tree.offset[world, i]
        if joint == REVOLUTE:
            rotation = turned_about_z(rotation, q[world, row, p])
        elif joint == PRISMATIC:
            offset = offset + q[world, row, p] * vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])
        else:
            if joint == FREE:
                offset = offset + transposed(rotation, read3(q, world, row, p))
                p += 3
            rotation = wp.transpose(quaternion_matrix(read4(q, world, row, p))) * rotation
        own = wp.transpose(rotation)
        parent = tree.parent[i]
        if parent >= 0:
            carrier = memory.world_rotation[world, parent]
            offset = memory.world_origin[world, parent] + carrier * offset
            own = carrier * own
        memory.world_rotation[world, i] = own
        memory.world_origin[world, i] = offset


@wp.func
def centre_of(contacts: Contacts, memory: ContactMemory, world: int, pair: int):
    link = contacts.link[pair]
    return memory.world_origin[world, link] + memory.world_rotation[world, link] * contacts.point[world, pair]


@wp.func
def normal_of(contacts: Contacts, world: int, pair: int):
    frame = contacts.frame[world, pair]
    return vec3(frame[0, 0], frame[0, 1], frame[0, 2])


@wp.func
def gap_of(contacts: Contacts, memory: ContactMemory, world: int, pair: int):
    """How far the pair is apart, where links were placed last."""
    away = centre_of(contacts, memory, world, pair) - contacts.origin[world, pair]
    return wp.dot(normal_of(contacts, world, pair), away) - contacts.radius[world, pair]


@wp.func
def turn_axis(tree: Tree, memory: ContactMemory, world: int, i: int, d: int):
    """The world's direction that velocity d of link i turns about; zero where it shifts."""
    joint = tree.joint[i]
    local = d - tree.first_velocity[i]
    rotation = memory.world_rotation[world, i]
    axis = zero3()
    if joint == REVOLUTE:
        axis = column(rotation, 2)
    elif joint == BALL:
        axis = column(rotation, local)
    elif joint == FREE and local >= 3:
        axis = column(rotation, local - 3)
    return axis


@wp.func
def shift_axis(tree: Tree, memory: ContactMemory, world: int, i: int, d: int):
    """The world's direction that velocity d of link i shifts along; zero where it turns."""
    joint = tree.joint[i]
    local = d - tree.first_velocity[i]
    axis = zero3()
    if joint == PRISMATIC:
        axis = column(memory.world_rotation[world, i], 2)
    elif joint == FREE and local < 3:
        # A free joint's linear velocity is given in the axes of the frame it moves in.
        rotation = tree.rotation[world, i]
        axis = vec3(rotation[local, 0], rotation[local, 1], rotation[local, 2])
    return axis


@wp.func
def write_jacobian(tree: Tree, contacts: Contacts, memory: ContactMemory, world: int, slot: int):
    """Three rows of contact `slot`: velocity along normal and tangents that each velocity of the tree gives it."""
    pair = memory.pair[world, slot]
    frame = contacts.frame[world, pair]
    place = centre_of(contacts, memory, world, pair)
    place = place - contacts.radius[world, pair] * normal_of(contacts, world, pair)
    for d in range(tree.velocities):
        for k in range(3):
            memory.jacobian[world, 3 * slot + k, d] = scalar(0.0)
    i = wp.int32(contacts.link[pair])
    while i >= 0:
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            motion = shift_axis(tree, memory, world, i, d)
            motion = motion + wp.cross(turn_axis(tree, memory, world, i, d), place - memory.world_origin[world, i])
            along = frame * motion
            for k in range(3):
                memory.jacobian[world, 3 * slot + k, d] = along[k]
        i = tree.parent[i]


@wp.func
def add_displacement(
    tree: Tree, work: Workspace, memory: ContactMemory, world: int, row: int, i: int, pull: vec3, turn: vec3
):
    """Hand the adjoints of a shift and of a turn of link i about its origin to q_bar[row] and to its placement."""
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        along = wp.dot(turn_axis(tree, memory, world, i, d), turn) + wp.dot(shift_axis(tree, memory, world, i, d), pull)
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + along


@wp.func
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


@wp.func
def origin_before_joint(tree: Tree, memory: ContactMemory, world: int, i: int):
    parent = tree.parent[i]
    origin = tree.offset[world, i]
    if parent >= 0:
        origin = memory.world_origin[world, parent] + memory.world_rotation[world, parent] * origin
    return origin


@wp.func
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
    """q_bar[row] and, unless `positions_only`, the gradients += bar times the derivative of the pair's gap."""
    normal = normal_of(contacts, world, pair)
    place = centre_of(contacts, memory, world, pair)
    pull = bar * normal
    i = wp.int32(contacts.link[pair])
    while i >= 0:
        turn = wp.cross(place - memory.world_origin[world, i], pull)
        add_displacement(tree, work, memory, world, row, i, pull, turn)
        if gradients.wanted != 0 and positions_only == 0:
            turn = wp.cross(place - origin_before_joint(tree, memory, world, i), pull)
            add_placement(tree, gradients, memory, world, i, pull, turn)
        i = tree.parent[i]
    if touch.wanted != 0 and positions_only == 0:
        rotation = memory.world_rotation[world, contacts.link[pair]]
        touch.point[world, pair] = touch.point[world, pair] + transposed(rotation, pull)
        touch.radius[world, pair] = touch.radius[world, pair] - bar
        touch.origin[world, pair] = touch.origin[world, pair] - pull
        away = bar * (place - contacts.origin[world, pair])
        z = scalar(0.0)
        touch.frame[world, pair] = touch.frame[world, pair] + mat33(away[0], away[1], away[2], z, z, z, z, z, z)


@wp.func
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
    frame = contacts.frame[world, pair]
    force = transposed(frame, along)
    normal = vec3(frame[0, 0], frame[0, 1], frame[0, 2])
    radius = contacts.radius[world, pair]
    center = centre_of(contacts, memory, world, pair)
    place = center - radius * normal
    # The whole velocity and turn, then, walking inwards, the part that turns with each joint.
    velocity = zero3()
    spin = zero3()
    i = wp.int32(contacts.link[pair])
    while i >= 0:
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            x = motion[world, motion_row, d]
            axis = turn_axis(tree, memory, world, i, d)
            spin = spin + x * axis
            velocity = velocity + x * (
                shift_axis(tree, memory, world, i, d) + wp.cross(axis, place - memory.world_origin[world, i])
            )
        i = tree.parent[i]
    turning = zero3()
    turning_spin = zero3()
    i = contacts.link[pair]
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
        pull = wp.cross(force, spin - turning_spin)
        rest = wp.cross(turning, force) + wp.cross(radius * normal, wp.cross(force, turning_spin))
        turn = wp.cross(center - memory.world_origin[world, i], pull) + rest
        add_displacement(tree, work, memory, world, row, i, pull, turn)
        if gradients.wanted != 0:
            turn = wp.cross(center - origin_before_joint(tree, memory, world, i), pull) + rest
            if tree.joint[i] == FREE:
                turn = turn + wp.cross(held, force)
            add_placement(tree, gradients, memory, world, i, pull, turn)
        i = tree.parent[i]
    if touch.wanted != 0:
        moved = wp.cross(force, spin)
        rotation = memory.world_rotation[world, contacts.link[pair]]
        touch.point[world, pair] = touch.point[world, pair] + transposed(rotation, moved)
        touch.radius[world, pair] = touch.radius[world, pair] - wp.dot(normal, moved)
        shifted = -radius * moved
        z = scalar(0.0)
        touch.frame[world, pair] = (
            touch.frame[world, pair]
            + wp.outer(along, velocity)
            + mat33(shifted[0], shifted[1], shifted[2], z, z, z, z, z, z)
        )
