"""Narrow phase: poses of shapes, contact primitives of pairs, contact frames and contact Jacobians.

The contact point of shapes a and b is p = q − (r + g) n, on the surface of b: q is the point of a's core closest to b,
r the radius about it, g the separation, n the normal from b to a. Thus all contacts with one face lie in one plane, and
the conditions that hold a body at rest on it do not contradict each other through small differences of separations. The
contact velocity is the relative velocity of both bodies there, u(p) = Y_a(p) − Y_b(p), in a frame whose first row is n.
"""

import warp as wp

from ..dynamics.joints import read3, read4
from ..precision import Array2d, Array3d, Mat33Array2d, Vec3Array2d, convex_pairs, mat33, midway, scalar, vec3
from ..spatial.rotations import quaternion_matrix, rotated_about_z
from ..spatial.vectors import column, select_vec3, tangential_part, transpose_product, zero3
from ..structs import (
    BALL,
    FREE,
    PRISMATIC,
    REVOLUTE,
    Contact,
    ContactGradientsStruct,
    ContactModelStruct,
    ContactWorkspaceStruct,
    ForcesStruct,
    GradientsStruct,
    System,
    SystemStruct,
    Tree,
    TreeStruct,
    Workspace,
)
from .closest_points import CONVEX, SEGMENT_SEGMENT, closest_points, parallel_interval
from .contact_primitives import LINES, MIN_LENGTH, ContactPrimitive, ShapePose
from .convex import convex_primitive
from .joint_limits import limit_separation, update_limit_positions
from .manifold import ABSENT, ABSENT_SEPARATION, manifold_corners, manifold_point, point_on_second
from .settings import COLLISION
from .support_shapes import convex_shape, hull_table

MIN_AXIS_SINE_SQUARED = wp.constant(scalar(COLLISION.min_axis_sine_squared))
MAX_MANIFOLD_SEPARATION = wp.constant(scalar(COLLISION.max_manifold_separation))


@wp.func
def update_link_pose(tree: Tree, contact: Contact, world: int, i: int, q: Array3d, row: int):
    """Compute pose and rotation of link i at q[row] from those of its parent."""
    joint = tree.joint[i]
    p = tree.first_position[i]
    rotation = tree.rotation[world, i]
    offset = tree.offset[world, i]
    if joint == REVOLUTE:
        rotation = rotated_about_z(rotation, q[world, row, p])
    elif joint == PRISMATIC:
        offset = offset + q[world, row, p] * vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])
    else:
        if joint == FREE:
            offset = offset + transpose_product(rotation, read3(q, world, row, p))
            p += 3
        rotation = wp.transpose(quaternion_matrix(read4(q, world, row, p))) * rotation
    link_rotation = wp.transpose(rotation)
    parent = tree.parent[i]
    if parent >= 0:
        parent_rotation = contact.detection.link_rotation[world, parent]
        offset = contact.detection.link_origin[world, parent] + parent_rotation * offset
        link_rotation = parent_rotation * link_rotation
    contact.detection.link_rotation[world, i] = link_rotation
    contact.detection.link_origin[world, i] = offset


@wp.func
def update_poses(tree: Tree, contact: Contact, s: System, world: int, q: Array3d, row: int):
    """Compute pose and rotation of every link and shape at q[row]; the factorization of the dynamics is not touched."""
    for i in range(tree.links):
        update_link_pose(tree, contact, world, i, q, row)
    update_shape_poses(contact, s, world, contact.detection.link_rotation)
    update_limit_positions(tree, contact, s, world, q, row)


@wp.func
def update_poses_from_links(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int):
    """Compute poses from those of links in their parents after `forward_kinematics`; link rotations are left out."""
    for i in range(tree.links):
        parent = tree.parent[i]
        if parent >= 0:
            contact.detection.link_origin[world, i] = (
                contact.detection.link_origin[world, parent] + work.offset[world, i]
            )
        else:
            contact.detection.link_origin[world, i] = work.offset[world, i]
    update_shape_poses(contact, s, world, work.orientation)
    update_limit_positions(tree, contact, s, world, work.q, row)


@wp.func
def copy_link_rotations(tree: Tree, work: Workspace, contact: Contact, world: int):
    """Copy the rotations of links, which only equality constraints and adjoints need."""
    for i in range(tree.links):
        contact.detection.link_rotation[world, i] = work.orientation[world, i]


@wp.func
def update_shape_pose(contact: Contact, s: System, world: int, shape: int, rotation: Mat33Array2d):
    """Compute the pose of a shape from that of its link."""
    orientation = s.model.shapes.rotation[world, shape]
    offset = s.model.shapes.offset[world, shape]
    link = s.model.shapes.link[shape]
    # Each branch writes its own result: a matrix that one of them replaces is copied through memory.
    if link >= 0:
        parent_rotation = rotation[world, link]
        contact.detection.shape_rotation[world, shape] = parent_rotation * orientation
        contact.detection.shape_origin[world, shape] = (
            contact.detection.link_origin[world, link] + parent_rotation * offset
        )
    else:
        contact.detection.shape_rotation[world, shape] = orientation
        contact.detection.shape_origin[world, shape] = offset


@wp.func
def update_shape_poses(contact: Contact, s: System, world: int, rotation: Mat33Array2d):
    """Compute the poses of shapes from those of their links."""
    contact.detection.pose_version[world] = contact.detection.pose_version[world] + 1
    for shape in range(s.model.shapes.count):
        update_shape_pose(contact, s, world, shape, rotation)


@wp.func(inline=True)
def convex_pair_primitive(contact: Contact, s: System, world: int, pair: int):
    """Return the primitive of two convex shapes: their closest points, or a manifold point in the rows that follow.

    The normal, and the corners of the manifold, are computed once for all rows at the same poses.
    """
    start = s.model.groups.start[s.model.pairs.group[pair]]
    manifold_rows = s.model.groups.start[s.model.pairs.group[pair] + 1] - start - 1
    a = convex_shape(contact, s, world, s.model.pairs.first[pair])
    b = convex_shape(contact, s, world, s.model.pairs.second[pair])
    hulls = hull_table(s.model)
    primitive = ContactPrimitive()
    if pair == start or contact.detection.cached_pose_version[world, start] != contact.detection.pose_version[world]:
        primitive = convex_primitive(a, b, hulls)
        contact.detection.cached_pose_version[world, start] = contact.detection.pose_version[world]
        contact.detection.cached_normal[world, start] = primitive.normal
        contact.detection.cached_separation[world, start] = primitive.separation
        if manifold_rows > 0:
            corners = wp.vec4i(ABSENT, ABSENT, ABSENT, ABSENT)
            if primitive.separation < MAX_MANIFOLD_SEPARATION * (a.bounding_radius + b.bounding_radius):
                corners = manifold_corners(
                    a, b, hulls, primitive.normal, primitive.separation, point_on_second(primitive)
                )
            for k in range(4):
                contact.detection.manifold_corner[world, start + 1 + k] = corners[k]
    if pair != start:
        primitive = manifold_point(
            a, b, hulls, contact.detection.cached_normal[world, start], contact.detection.manifold_corner[world, pair]
        )
        if primitive.separation == ABSENT_SEPARATION:
            primitive.separation = wp.max(ABSENT_SEPARATION, contact.detection.cached_separation[world, start])
    return primitive


@wp.func(inline=True)
def shape_pose(contact: Contact, s: System, world: int, i: int):
    """Return the current pose and the sizes of shape i."""
    return ShapePose(
        contact.detection.shape_rotation[world, i],
        contact.detection.shape_origin[world, i],
        s.model.shapes.size[world, i],
    )


@wp.func(inline=True)
def pair_primitive(contact: Contact, s: System, world: int, pair: int):
    """Return the contact primitive of a pair of features at the current poses."""
    a = s.model.pairs.first[pair]
    b = s.model.pairs.second[pair]
    if wp.static(convex_pairs):
        if s.model.pairs.kind[pair] == CONVEX:
            primitive = convex_pair_primitive(contact, s, world, pair)
            primitive.separation = primitive.separation - s.model.pairs.margin[pair]
            return primitive
    primitive = closest_points(
        s.model.pairs.kind[pair],
        contact.detection.shape_rotation[world, a],
        contact.detection.shape_origin[world, a],
        s.model.shapes.size[world, a],
        s.model.pairs.feature[pair],
        contact.detection.shape_rotation[world, b],
        contact.detection.shape_origin[world, b],
        s.model.shapes.size[world, b],
    )
    primitive.separation = primitive.separation - s.model.pairs.margin[pair]
    return primitive


@wp.func(inline=True)
def contact_primitive(contact: Contact, s: System, world: int, pair: int):
    """Return the primitive of a pair, with `ABSENT_SEPARATION` for segments whose contacts are other pairs.

    Where two segments lie beside each other, the ends of the part that they share are contacts, and have pairs of their
    own.
    """
    primitive = pair_primitive(contact, s, world, pair)
    if s.model.pairs.kind[pair] == SEGMENT_SEGMENT and primitive.form != LINES:
        group = s.model.pairs.group[pair]
        if s.model.groups.start[group + 1] > pair + 1:
            low, high = parallel_interval(
                shape_pose(contact, s, world, s.model.pairs.first[pair]),
                shape_pose(contact, s, world, s.model.pairs.second[pair]),
            )
            if low <= high:
                primitive.separation = ABSENT_SEPARATION
    return primitive


@wp.func(inline=True)
def candidate_separation(contact: Contact, s: System, world: int, pair: int):
    """Return the separation of a candidate at the current poses."""
    if pair >= s.model.pairs.count:
        return limit_separation(contact, s, world, pair)
    return pair_primitive(contact, s, world, pair).separation


# Distance of the contact point from the first surface as a fraction of the separation; without `midway` it lies on the
# second surface.
DEPTH_SHARE = wp.constant(scalar(0.5 if midway else 1.0))


@wp.func
def contact_depth(primitive: ContactPrimitive, margin: scalar):
    """Return the distance of the contact point from the first shape's core, against the normal."""
    return primitive.first_radius + DEPTH_SHARE * (primitive.separation + margin)


@wp.func
def contact_point(primitive: ContactPrimitive, margin: scalar):
    """Return the contact point, on the surface of the second shape or midway."""
    return primitive.first_point - contact_depth(primitive, margin) * primitive.normal


@wp.func
def first_shape_origin(contact: Contact, s: System, world: int, pair: int):
    """Return the origin of the first shape of a pair."""
    return contact.detection.shape_origin[world, s.model.pairs.first[pair]]


@wp.func
def contact_frame(normal: vec3):
    """Return a normal and two tangents as rows, by J. Frisvad's quaternion with T. Duff's sign (JCGT 6(1), 2017)."""
    unit = scalar(1.0)
    x = normal[0]
    y = normal[1]
    z = normal[2]
    sign = wp.where(z < scalar(0.0), -unit, unit)
    factor = -unit / (sign + z)
    product = x * y * factor
    return mat33(
        x,
        y,
        z,
        unit + sign * x * x * factor,
        sign * product,
        -sign * x,
        product,
        sign + y * y * factor,
        -y,
    )


@wp.func(inline=True)
def first_shape_axis(contact: Contact, s: System, world: int, pair: int):
    """Return the z axis of the first shape of a pair."""
    return column(contact.detection.shape_rotation[world, s.model.pairs.first[pair]], 2)


@wp.func(inline=True)
def follows_axis(contact: Contact, s: System, world: int, pair: int, normal: vec3):
    """Return 1 if the tangents follow the first shape's axis, else 0: an axis along the normal gives no direction."""
    follows = wp.int32(0)
    if s.model.pairs.is_capsule_end[pair] != 0:
        if wp.length_sq(tangential_part(first_shape_axis(contact, s, world, pair), normal)) > MIN_AXIS_SINE_SQUARED:
            follows = wp.int32(1)
    return follows


@wp.func(inline=True)
def tangent_hint(contact: Contact, s: System, world: int, pair: int, normal: vec3):
    """Return the direction that the first tangent is nearest to: the axis of a capsule on a plane, or y or z."""
    z = scalar(0.0)
    unit = scalar(1.0)
    axis = select_vec3(wp.int32(wp.abs(normal[1]) >= scalar(0.5)), vec3(z, unit, z), vec3(z, z, unit))
    return select_vec3(follows_axis(contact, s, world, pair, normal), axis, first_shape_axis(contact, s, world, pair))


@wp.func
def frame_along(direction: vec3, normal: vec3):
    """Return a frame as rows: a unit normal, the direction across it that is nearest to `direction`, and the third."""
    first = tangential_part(direction, normal)
    first = first / wp.max(wp.length(first), MIN_LENGTH)
    return wp.matrix_from_rows(normal, first, wp.cross(normal, first))


@wp.func(inline=True)
def pair_frame(contact: Contact, s: System, world: int, pair: int, normal: vec3):
    """Return the contact frame of a pair."""
    if wp.static(midway):
        return frame_along(tangent_hint(contact, s, world, pair, normal), normal)
    return contact_frame(normal)


@wp.func(inline=True)
def rotation_axis(tree: Tree, contact: Contact, world: int, i: int, d: int):
    """Return the world axis that velocity d of link i rotates about; zero if it translates."""
    joint = tree.joint[i]
    local = d - tree.first_velocity[i]
    if joint == REVOLUTE:
        return column(contact.detection.link_rotation[world, i], 2)
    if joint == BALL:
        return column(contact.detection.link_rotation[world, i], local)
    if joint == FREE and local >= 3:
        return column(contact.detection.link_rotation[world, i], local - 3)
    return zero3()


@wp.func(inline=True)
def translation_axis(tree: Tree, contact: Contact, world: int, i: int, d: int):
    """Return the world axis that velocity d of link i translates along; zero if it rotates."""
    joint = tree.joint[i]
    local = d - tree.first_velocity[i]
    if joint == PRISMATIC:
        return column(contact.detection.link_rotation[world, i], 2)
    if joint == FREE and local < 3:
        # The linear velocity of a free joint is expressed in the axes of the parent frame.
        rotation = tree.rotation[world, i]
        return vec3(rotation[local, 0], rotation[local, 1], rotation[local, 2])
    return zero3()


@wp.func
def write_contact_jacobian(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    slot: int,
    pair: int,
    primitive: ContactPrimitive,
):
    """Write frame, Jacobian and path of contact `slot`; the path lists the links that move it, outermost first.

    The poses of links and shapes are those after `forward_kinematics`.
    """
    frame = pair_frame(contact, s, world, pair, primitive.normal)
    contact.blocks.frame[world, slot] = frame
    point = contact_point(primitive, s.model.pairs.margin[pair])
    first_link = s.model.shapes.link[s.model.pairs.first[pair]]
    second_link = s.model.shapes.link[s.model.pairs.second[pair]]
    length = wp.int32(0)
    while first_link >= 0 or second_link >= 0:
        i = wp.max(first_link, second_link)
        sign = scalar(0.0)  # a link that carries both shapes causes no relative motion
        if first_link == i:
            sign += scalar(1.0)
            first_link = tree.parent[i]
        if second_link == i:
            sign -= scalar(1.0)
            second_link = tree.parent[i]
        arm = point - contact.detection.link_origin[world, i]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            motion = work.axis_linear[world, d] + wp.cross(work.axis_angular[world, d], arm)
            contact.blocks.jacobian[world, slot, d] = sign * (frame * motion)
        contact.blocks.path[world, slot, length] = i
        length += 1
    contact.blocks.path_length[world, slot] = length


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3})
def contact_list(
    first_world: int,
    tree: TreeStruct,
    model: ContactModelStruct,
    contact: ContactWorkspaceStruct,
    q: Array3d,
    separation: Array2d,
    point: Vec3Array2d,
    normal: Vec3Array2d,
):
    """Compute separation, contact point and normal of every pair at q[world, 0]."""
    world = first_world + wp.tid()
    s = SystemStruct(ForcesStruct(), model, GradientsStruct(), ContactGradientsStruct())
    update_poses(tree, contact, s, world, q, 0)
    for pair in range(model.pairs.count):
        primitive = contact_primitive(contact, s, world, pair)
        separation[world, pair] = primitive.separation
        point[world, pair] = contact_point(primitive, model.pairs.margin[pair])
        normal[world, pair] = primitive.normal
