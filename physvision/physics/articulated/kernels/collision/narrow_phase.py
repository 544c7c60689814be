"""Where pairs are: gaps, Jacobians, and how both change as the tree moves.

A contact of shapes a and b is at p = q − (r + g) n, on b's surface: q is the point of a's core closest to b, r the
radius about it, g the gap, n the normal from b to a. So all contacts with one face lie in one plane, and what a body
must do to stand still on it does not contradict itself by the little that its gaps differ. Its velocity is what both
bodies do there, u(p) = Y_a(p) − Y_b(p), told in a frame whose first row is n.
"""

import warp as wp

from physvision.physics.articulated.kernels.dynamics.joints import read3, read4
from physvision.physics.articulated.kernels.precision import DOUBLE, convex_pairs, mat33, midway, scalar, vec3
from physvision.physics.articulated.kernels.spatial.rotations import quaternion_matrix, turned_about_z
from physvision.physics.articulated.kernels.spatial.vectors import either, transposed, zero3
from physvision.physics.articulated.kernels.structs import (
    BALL,
    FREE,
    PRISMATIC,
    REVOLUTE,
    ContactMemory,
    ContactMemoryStruct,
    Contacts,
    ContactsStruct,
    Tree,
    TreeStruct,
    Workspace,
)

from .closest_points import CONVEX, closest
from .contact_primitives import LEAST, Closest
from .convex import convex
from .joint_limits import place_stops, stop_gap
from .manifold import (
    APART,
    NOTHING,
    flat_corners,
    flat_point,
    place_on_second,
)
from .support_shapes import hulls_of, solid_of

UPRIGHT = wp.constant(scalar(1.0e-24 if DOUBLE else 1.0e-12))  # squared sine between axis and normal
BESIDE = wp.constant(scalar(0.1))  # of their size: shapes that are apart by more have no further points


@wp.func(inline=True)
def column(m: mat33, k: int):
    return vec3(m[0, k], m[1, k], m[2, k])


@wp.func
def place_in_world(
    tree: Tree, contacts: Contacts, memory: ContactMemory, world: int, q: wp.array3d(dtype=scalar), row: int
):
    """Rotation (to the world) and origin of every link and shape at q[row]; nothing of the factorisation is touched."""
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
    place_shapes(contacts, memory, world, memory.world_rotation)
    place_stops(tree, contacts, memory, world, q, row)


@wp.func
def place_moved(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int):
    """The same from the placements of links in their parents that the last `move_links` left, but for rotations."""
    for i in range(tree.links):
        memory.world_origin[world, i] = work.offset[world, i]
        parent = tree.parent[i]
        if parent >= 0:
            memory.world_origin[world, i] = memory.world_origin[world, parent] + work.offset[world, i]
    place_shapes(contacts, memory, world, work.orientation)
    place_stops(tree, contacts, memory, world, work.q, row)


@wp.func
def turn_moved(tree: Tree, work: Workspace, memory: ContactMemory, world: int):
    """The rotations of links, which only ties and adjoints ask for."""
    for i in range(tree.links):
        memory.world_rotation[world, i] = work.orientation[world, i]


@wp.func
def place_shapes(contacts: Contacts, memory: ContactMemory, world: int, rotation: wp.array2d(dtype=mat33)):
    """The shapes, where their links are."""
    memory.placed[world] = memory.placed[world] + 1
    for shape in range(contacts.shapes):
        turn = contacts.shape_turn[world, shape]
        offset = contacts.shape_offset[world, shape]
        link = contacts.shape_link[shape]
        if link >= 0:
            carrier = rotation[world, link]
            turn = carrier * turn
            offset = memory.world_origin[world, link] + carrier * offset
        memory.shape_turn[world, shape] = turn
        memory.shape_origin[world, shape] = offset


@wp.func(inline=True)
def convex_of(contacts: Contacts, memory: ContactMemory, world: int, pair: int):
    """The form of two convex shapes: their closest points, or one of the further ones, in rows that follow.

    The normal, and which corners the further points are, is found once for all rows where shapes are placed.
    """
    start = contacts.group_start[contacts.group[pair]]
    further = contacts.group_start[contacts.group[pair] + 1] - start - 1
    a = solid_of(contacts, memory, world, contacts.first[pair])
    b = solid_of(contacts, memory, world, contacts.second[pair])
    hulls = hulls_of(contacts)
    near = Closest()
    if pair == start or memory.searched[world, start] != memory.placed[world]:
        near = convex(a, b, hulls, contacts.face_normal)
        memory.searched[world, start] = memory.placed[world]
        memory.way[world, start] = near.normal
        memory.way_gap[world, start] = near.gap
        if further > 0:
            found = wp.vec4i(NOTHING, NOTHING, NOTHING, NOTHING)
            if near.gap < BESIDE * (a.bound + b.bound):
                found = flat_corners(
                    a, b, hulls, contacts.face_normal, contacts.loop_start, contacts.loop, near.normal,
                    near.gap, place_on_second(near),
                )  # fmt: skip
            for k in range(4):
                memory.flat_corner[world, start + 1 + k] = found[k]
    if pair != start:
        near = flat_point(
            a, b, hulls, contacts.face_normal, contacts.loop_start, contacts.loop, memory.way[world, start],
            memory.flat_corner[world, pair],
        )  # fmt: skip
        if near.gap == APART:
            near.gap = wp.max(APART, memory.way_gap[world, start])
    return near


@wp.func(inline=True)
def closest_of(contacts: Contacts, memory: ContactMemory, world: int, pair: int):
    """The form of the pair, where shapes were placed last."""
    a = contacts.first[pair]
    b = contacts.second[pair]
    if wp.static(convex_pairs):
        if contacts.kind[pair] == CONVEX:
            near = convex_of(contacts, memory, world, pair)
            near.gap = near.gap - contacts.margin[pair]
            return near
    near = closest(
        contacts.kind[pair],
        memory.shape_turn[world, a],
        memory.shape_origin[world, a],
        contacts.shape_size[world, a],
        contacts.feature[pair],
        memory.shape_turn[world, b],
        memory.shape_origin[world, b],
        contacts.shape_size[world, b],
    )
    near.gap = near.gap - contacts.margin[pair]
    return near


@wp.func(inline=True)
def gap_of(contacts: Contacts, memory: ContactMemory, world: int, pair: int):
    """How far the candidate is apart, where shapes were placed last."""
    if pair >= contacts.pairs:
        return stop_gap(contacts, memory, world, pair)
    return closest_of(contacts, memory, world, pair).gap


# Of the gap, how far the contact is from the first surface.
SHARE = wp.constant(scalar(0.5 if midway else 1.0))


@wp.func
def depth_of(near: Closest, margin: scalar):
    """How far the contact is from the first shape's core, against the normal."""
    return near.first_radius + SHARE * (near.gap + margin)


@wp.func
def place_of(near: Closest, margin: scalar):
    """The contact's point: on the surface of the second shape, or midway."""
    return near.first - depth_of(near, margin) * near.normal


@wp.func
def frame_of(normal: vec3):
    """Rows: a unit normal and two tangents, by J. Frisvad's quaternion with T. Duff's sign (JCGT 6(1), 2017)."""
    one = scalar(1.0)
    x = normal[0]
    y = normal[1]
    z = normal[2]
    sign = wp.where(z < scalar(0.0), -one, one)
    share = -one / (sign + z)
    both = x * y * share
    return mat33(
        x, y, z,
        one + sign * x * x * share, sign * both, -sign * x,
        both, sign + y * y * share, -y,
    )  # fmt: skip


@wp.func
def across(side: vec3, normal: vec3):
    """What of a direction is at right angles to a normal."""
    return side - wp.dot(side, normal) * normal


@wp.func(inline=True)
def first_axis(contacts: Contacts, memory: ContactMemory, world: int, pair: int):
    """The z axis of a pair's first shape."""
    return column(memory.shape_turn[world, contacts.first[pair]], 2)


@wp.func(inline=True)
def lies_along(contacts: Contacts, memory: ContactMemory, world: int, pair: int, normal: vec3):
    """1 where tangents follow the first shape's axis, 0 elsewhere: where it stands on its end, the axis tells none."""
    found = wp.int32(0)
    if contacts.lengthwise[pair] != 0:
        if wp.length_sq(across(first_axis(contacts, memory, world, pair), normal)) > UPRIGHT:
            found = wp.int32(1)
    return found


@wp.func(inline=True)
def side_of(contacts: Contacts, memory: ContactMemory, world: int, pair: int, normal: vec3):
    """The direction that the first tangent of a contact midway is nearest to: along a capsule on a plane, or y or z."""
    z = scalar(0.0)
    one = scalar(1.0)
    side = either(wp.int32(wp.abs(normal[1]) >= scalar(0.5)), vec3(z, one, z), vec3(z, z, one))
    return either(lies_along(contacts, memory, world, pair, normal), side, first_axis(contacts, memory, world, pair))


@wp.func
def frame_towards(side: vec3, normal: vec3):
    """Rows: a unit normal, the direction nearest to a side at right angles to it, and the third."""
    first = across(side, normal)
    first = first / wp.max(wp.length(first), LEAST)
    return wp.matrix_from_rows(normal, first, wp.cross(normal, first))


@wp.func(inline=True)
def pair_frame(contacts: Contacts, memory: ContactMemory, world: int, pair: int, normal: vec3):
    """The frame of a pair's contact."""
    if wp.static(midway):
        return frame_towards(side_of(contacts, memory, world, pair, normal), normal)
    return frame_of(normal)


@wp.func(inline=True)
def turn_axis(tree: Tree, memory: ContactMemory, world: int, i: int, d: int):
    """The world's direction that velocity d of link i turns about; zero where it shifts."""
    joint = tree.joint[i]
    local = d - tree.first_velocity[i]
    if joint == REVOLUTE:
        return column(memory.world_rotation[world, i], 2)
    if joint == BALL:
        return column(memory.world_rotation[world, i], local)
    if joint == FREE and local >= 3:
        return column(memory.world_rotation[world, i], local - 3)
    return zero3()


@wp.func(inline=True)
def shift_axis(tree: Tree, memory: ContactMemory, world: int, i: int, d: int):
    """The world's direction that velocity d of link i shifts along; zero where it turns."""
    joint = tree.joint[i]
    local = d - tree.first_velocity[i]
    if joint == PRISMATIC:
        return column(memory.world_rotation[world, i], 2)
    if joint == FREE and local < 3:
        # A free joint's linear velocity is given in the axes of the frame it moves in.
        rotation = tree.rotation[world, i]
        return vec3(rotation[local, 0], rotation[local, 1], rotation[local, 2])
    return zero3()


@wp.func
def write_jacobian(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    slot: int,
    pair: int,
    near: Closest,
):
    """Of contact `slot`: the links that carry it, outermost first, and the velocity that each of theirs gives it.

    Links are where `move_links` has left them, as shapes are.
    """
    frame = pair_frame(contacts, memory, world, pair, near.normal)
    memory.frame[world, slot] = frame
    place = place_of(near, contacts.margin[pair])
    one = contacts.shape_link[contacts.first[pair]]
    other = contacts.shape_link[contacts.second[pair]]
    length = wp.int32(0)
    while one >= 0 or other >= 0:
        i = wp.max(one, other)
        sign = scalar(0.0)  # what carries both moves neither against the other
        if one == i:
            sign += scalar(1.0)
            one = tree.parent[i]
        if other == i:
            sign -= scalar(1.0)
            other = tree.parent[i]
        arm = place - memory.world_origin[world, i]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            motion = work.axis_linear[world, d] + wp.cross(work.axis_angular[world, d], arm)
            memory.jacobian[world, slot, d] = sign * (frame * motion)
        memory.path[world, slot, length] = i
        length += 1
    memory.path_length[world, slot] = length


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3})
def contact_list(
    first: int,
    tree: TreeStruct,
    contacts: ContactsStruct,
    memory: ContactMemoryStruct,
    q: wp.array3d(dtype=scalar),
    gap: wp.array2d(dtype=scalar),
    point: wp.array2d(dtype=vec3),
    normal: wp.array2d(dtype=vec3),
):
    """Gap, point and normal of each pair at q[world, 0]."""
    world = first + wp.tid()
    place_in_world(tree, contacts, memory, world, q, 0)
    for pair in range(contacts.pairs):
        near = closest_of(contacts, memory, world, pair)
        gap[world, pair] = near.gap
        point[world, pair] = place_of(near, contacts.margin[pair])
        normal[world, pair] = near.normal
