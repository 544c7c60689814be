"""Derivatives of separations with respect to poses of links and shapes, and to sizes of shapes."""

import warp as wp

from ..precision import convex_pairs, scalar, vec3
from ..spatial.vectors import skew, transpose_product, zero3
from ..structs import Contact, System, Tree, Workspace
from .closest_points_adjoint import core_separation_backward
from .contact_primitives import ContactPrimitive
from .fixed_features import stored_impact
from .joint_limits import limit_separation_backward
from .narrow_phase import pair_primitive, rotation_axis, translation_axis


@wp.func(inline=True)
def add_link_pose_gradient(
    tree: Tree, work: Workspace, contact: Contact, world: int, row: int, i: int, position_bar: vec3, rotation_bar: vec3
):
    """Add the adjoints of a translation and of a rotation of link i about its origin to q_bar[row]."""
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        along = wp.dot(rotation_axis(tree, contact, world, i, d), rotation_bar) + wp.dot(
            translation_axis(tree, contact, world, i, d), position_bar
        )
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + along


@wp.func(inline=True)
def add_link_placement_gradient(
    tree: Tree, contact: Contact, s: System, world: int, i: int, position_bar: vec3, rotation_bar: vec3
):
    """Add the adjoints of a translation and of a rotation to the placement of link i in its parent.

    `rotation_bar` is about the origin of the link at zero joint position.
    """
    parent = tree.parent[i]
    zero_rotation = wp.transpose(tree.rotation[world, i])
    local_bar = position_bar
    if parent >= 0:
        parent_rotation = contact.detection.link_rotation[world, parent]
        zero_rotation = parent_rotation * zero_rotation
        local_bar = transpose_product(parent_rotation, position_bar)
    s.gradients.offset[world, i] = s.gradients.offset[world, i] + local_bar
    s.gradients.rotation_tangent[world, i] = s.gradients.rotation_tangent[world, i] + transpose_product(
        zero_rotation, rotation_bar
    )


@wp.func(inline=True)
def origin_before_joint(tree: Tree, contact: Contact, world: int, i: int):
    """Return the origin of link i in the world at zero joint position."""
    parent = tree.parent[i]
    origin = tree.offset[world, i]
    if parent >= 0:
        origin = contact.detection.link_origin[world, parent] + contact.detection.link_rotation[world, parent] * origin
    return origin


@wp.func
def add_shape_gradient(
    contact: Contact,
    s: System,
    world: int,
    shape: int,
    scale: vec3,
    point: vec3,
    position_bar: vec3,
    rotation_bar: vec3,
    radius_bar: scalar,
    normal_rotation_bar: vec3,
    reference: vec3,
):
    """Add the adjoints of a point, of a rotation about it and of a radius to the gradients of a shape.

    If the sizes s grow by δs, a normal n changes by −(n δs / s), in the axes of the shape; an edge rotates in the
    opposite direction. `reference` is that normal or edge.
    """
    shape_rotation = contact.detection.shape_rotation[world, shape]
    total_rotation_bar = wp.cross(point - contact.detection.shape_origin[world, shape], position_bar) + rotation_bar
    local_bar = position_bar
    link = s.model.shapes.link[shape]
    if link >= 0:
        local_bar = transpose_product(contact.detection.link_rotation[world, link], position_bar)
        total_rotation_bar = transpose_product(contact.detection.link_rotation[world, link], total_rotation_bar)
    size_bar = transpose_product(shape_rotation, position_bar)
    s.contact_gradients.shapes.offset[world, shape] = s.contact_gradients.shapes.offset[world, shape] + local_bar
    s.contact_gradients.shapes.rotation_tangent[world, shape] = (
        s.contact_gradients.shapes.rotation_tangent[world, shape] + total_rotation_bar
    )
    s.contact_gradients.shapes.size[world, shape] = s.contact_gradients.shapes.size[world, shape] + vec3(
        scale[0] * size_bar[0] + radius_bar, scale[1] * size_bar[1], scale[2] * size_bar[2]
    )
    if wp.length_sq(normal_rotation_bar) > scalar(0.0):
        local_tilt = transpose_product(shape_rotation, normal_rotation_bar)
        local_reference = transpose_product(shape_rotation, reference)
        size = s.model.shapes.size[world, shape]
        s.contact_gradients.shapes.size[world, shape] = s.contact_gradients.shapes.size[world, shape] - vec3(
            local_tilt[0] * local_reference[0] / size[0],
            local_tilt[1] * local_reference[1] / size[1],
            local_tilt[2] * local_reference[2] / size[2],
        )


@wp.func
def finish_shape_gradient(s: System, world: int):
    """Convert the tangent-space gradient to that of the nine matrix entries: R = exp([φ]×) R₀, so R̄ = ½ [φ̄]× R₀."""
    if s.contact_gradients.is_requested != 0:
        for shape in range(s.model.shapes.count):
            tangent = s.contact_gradients.shapes.rotation_tangent[world, shape]
            s.contact_gradients.shapes.rotation[world, shape] = (
                scalar(0.5) * skew(tangent) * s.model.shapes.rotation[world, shape]
            )


@wp.func(inline=True)
def ancestor_pose_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    row: int,
    link: int,
    point: vec3,
    position_bar: vec3,
    rotation_bar: vec3,
    positions_only: int,
):
    """Add the adjoints of a point and of a rotation about it to a link's ancestor joints and to placements."""
    i = wp.int32(link)
    while i >= 0:
        total_rotation_bar = wp.cross(point - contact.detection.link_origin[world, i], position_bar) + rotation_bar
        add_link_pose_gradient(tree, work, contact, world, row, i, position_bar, total_rotation_bar)
        if s.gradients.is_requested != 0 and positions_only == 0:
            total_rotation_bar = (
                wp.cross(point - origin_before_joint(tree, contact, world, i), position_bar) + rotation_bar
            )
            add_link_placement_gradient(tree, contact, s, world, i, position_bar, total_rotation_bar)
        i = tree.parent[i]


@wp.func(inline=True)
def separation_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    row: int,
    event: int,
    separation_bar: scalar,
    positions_only: int,
):
    """Add the adjoint of the separation that ends a flight to q_bar[row], and the gradients unless `positions_only`."""
    pair = contact.events.impact_pair[world, event]
    if pair >= s.model.pairs.count:
        limit_separation_backward(tree, work, contact, s, world, row, pair, separation_bar, positions_only)
        return
    primitive = ContactPrimitive()
    is_stored = bool(False)
    if wp.static(convex_pairs):
        if contact.events.has_fixed_features[world, event] != 0:
            primitive = stored_impact(contact, s, world, event, pair)
            is_stored = bool(True)
    if not is_stored:
        primitive = pair_primitive(contact, s, world, pair)
    adjoint = core_separation_backward(primitive, separation_bar)
    for side in range(2):
        shape = s.model.pairs.first[pair]
        point = primitive.first_point
        position_bar = adjoint.first
        rotation_bar = adjoint.first_rotation
        scale = primitive.first_size_derivative
        radius_bar = adjoint.rim_radius + wp.dot(primitive.first_radius_derivative, position_bar)
        if primitive.first_radius > scalar(0.0):
            radius_bar -= separation_bar
        if side == 1:
            shape = s.model.pairs.second[pair]
            point = primitive.second_point
            position_bar = adjoint.second
            rotation_bar = adjoint.second_rotation
            scale = primitive.second_size_derivative
            radius_bar = wp.dot(primitive.second_radius_derivative, position_bar)
            if primitive.second_radius > scalar(0.0):
                radius_bar = -separation_bar
        link = s.model.shapes.link[shape]
        ancestor_pose_backward(
            tree, work, contact, s, world, row, link, point, position_bar, rotation_bar, positions_only
        )
        if s.contact_gradients.is_requested != 0 and positions_only == 0:
            add_shape_gradient(
                contact,
                s,
                world,
                shape,
                scale,
                point,
                position_bar,
                rotation_bar,
                radius_bar,
                zero3(),
                primitive.normal,
            )
