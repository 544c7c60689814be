"""Derivatives of the power of contact forces with respect to the pose of the tree.

For a motion x of the tree and a force F in world axes, with components `along` in the contact frame, F · u changes

    with the point by   δp · (F × (ω_a − ω_b)),
    with the frame by   δφ · (F × u), which rotates only with n, since friction is isotropic:
                        δφ = n × δn, hence n̄ = (F × u) × n,
    with the bodies' motions, at a fixed point: Z(p) = Z₀ + Z_ω × p, the part of Y_a that rotates with joint i, becomes
                        s × Z(p) − Z_ω × (s × (p − o) + e) as the joint rotates by s about o and translates by e.

`closest_points_adjoint` converts p̄, n̄ and ḡ = −n · p̄ to adjoints of the two cores. With the adjoint P of a
translation of q and T of a rotation about it, joint i takes

    s · ψ + e · (P − F × Z_ω),    ψ = (q − o) × P + T + Z(p) × F − (p − o) × (F × Z_ω),

and the joints of b the same with −F. The tangents are chosen anew for each normal. Everything is linear in the forces
and in the motions: for several motions x, each with a force of its own, one pass along the joints sums G = Σ x F for
each velocity of the tree, and Z(p) × F and F × Z_ω from it.

A moment N with the relative angular velocity instead of a force with the relative velocity, as in rotational friction,
changes

    with the frame by             δφ · (N × Δω), hence n̄ = (N × Δω) × n,
    with the bodies' motions by   s · (Ω × N) as joint i rotates by s, with the angular velocity Ω of the joints from i
                                  outward.
"""

import warp as wp

from ..dynamics.kinematics import add_joint_gradient
from ..precision import mat33, midway, pyramidal, scalar, vec3
from ..spatial.vectors import select_vec3, tangential_part, transpose_product, zero3
from ..structs import FREE, PRISMATIC, Contact, System, Tree, Workspace
from .closest_points_adjoint import add_adjoints, closest_points_backward, core_separation_backward
from .contact_primitives import MIN_LENGTH, WeightedForces
from .joint_limits import limit_power_backward, limit_separation_backward
from .narrow_phase import (
    DEPTH_SHARE,
    contact_depth,
    contact_frame,
    follows_axis,
    pair_frame,
    pair_primitive,
    tangent_hint,
)
from .narrow_phase_adjoint import add_link_placement_gradient, add_shape_gradient, origin_before_joint


@wp.func(inline=True)
def weighted_force(work: Workspace, world: int, d: int, w: WeightedForces):
    """Return the sum of forces weighted by velocity d of their motions."""
    v = work.step_velocity
    return transpose_product(
        w.forces, vec3(v[world, w.row_after, d], v[world, w.row_virtual, d], v[world, w.row_before, d])
    )


@wp.func(inline=True)
def force_moments(tree: Tree, work: Workspace, contact: Contact, world: int, link: int, w: WeightedForces):
    """Return Σ F × ω (first row) and Σ F × u, or Σ N × ω for moments (second row), over a link's ancestors."""
    angular_part = zero3()
    linear_part = zero3()
    is_force = scalar(1.0) - w.is_orientation
    i = wp.int32(link)
    while i >= 0:
        arm = w.point - contact.detection.link_origin[world, i]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            axis = work.axis_angular[world, d]
            force = weighted_force(work, world, d, w)
            angular_part = angular_part + is_force * wp.cross(force, axis)
            axis_motion = is_force * (work.axis_linear[world, d] + wp.cross(axis, arm)) + w.is_orientation * axis
            linear_part = linear_part + wp.cross(force, axis_motion)
        i = tree.parent[i]
    z = scalar(0.0)
    return mat33(
        angular_part[0], angular_part[1], angular_part[2], linear_part[0], linear_part[1], linear_part[2], z, z, z
    )


@wp.func(inline=True)
def ancestor_power_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    row: int,
    link: int,
    w: WeightedForces,
    core: vec3,
    position_bar: vec3,
    rotation_bar: vec3,
):
    """Add the derivative of Σ F · u, or of Σ N · ω, through the joints that carry one of the bodies.

    The poses of links and shapes are those after `forward_kinematics`.
    """
    angular_part = zero3()
    linear_part = zero3()
    is_force = scalar(1.0) - w.is_orientation
    i = wp.int32(link)
    while i >= 0:
        origin = contact.detection.link_origin[world, i]
        fixed_part = zero3()  # part of the joint's own motion that does not rotate with it
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            axis = work.axis_angular[world, d]
            force = weighted_force(work, world, d, w)
            angular_part = angular_part + is_force * wp.cross(force, axis)
            linear_part = linear_part + wp.cross(
                is_force * wp.cross(axis, w.point - origin) + w.is_orientation * axis, force
            )
            fixed_part = fixed_part + is_force * wp.cross(work.axis_linear[world, d], force)
        linear_part = linear_part + scalar(wp.int32(tree.joint[i] == PRISMATIC)) * fixed_part
        total_rotation_bar = (
            wp.cross(core - origin, position_bar)
            - wp.cross(w.point - origin, angular_part)
            + linear_part
            + rotation_bar
        )
        add_joint_gradient(tree, work, world, row, i, total_rotation_bar, position_bar - angular_part)
        if s.gradients.is_requested != 0:
            origin = origin_before_joint(tree, contact, world, i)
            total_rotation_bar = (
                wp.cross(core - origin, position_bar)
                - wp.cross(w.point - origin, angular_part)
                + linear_part
                + rotation_bar
            )
            total_rotation_bar = total_rotation_bar + scalar(wp.int32(tree.joint[i] == FREE)) * fixed_part
            add_link_placement_gradient(tree, contact, s, world, i, position_bar - angular_part, total_rotation_bar)
        i = tree.parent[i]


@wp.func
def frame_spin_backward(normal: vec3, spin_bar: scalar):
    """Return n̄ of the rotation of tangents about the normal in `contact_frame`: −(s · n) t₂ · δn / |s − (s · n) n|."""
    frame = contact_frame(normal)
    first_tangent = vec3(frame[1, 0], frame[1, 1], frame[1, 2])
    second_tangent = vec3(frame[2, 0], frame[2, 1], frame[2, 2])
    along_x = vec3(scalar(1.0), scalar(0.0), scalar(0.0))
    along_y = vec3(scalar(0.0), scalar(1.0), scalar(0.0))
    direction = select_vec3(wp.int32(wp.abs(normal[0]) > scalar(0.6)), along_x, along_y)
    return -spin_bar * wp.dot(direction, normal) / wp.dot(direction, first_tangent) * second_tangent


@wp.func(inline=True)
def contact_power_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    row: int,
    pair: int,
    w: WeightedForces,
    separation_bar: scalar,
):
    """Add the derivative of Σ forces · (frame u) + separation_bar · separation to q_bar[row] and the gradients.

    Each row of forces belongs to a motion with the contact velocity u; for moments, Δω takes the place of u, at the
    point of the first core.
    """
    if pair >= s.model.pairs.count:
        limit_power_backward(tree, work, contact, s, world, row, pair, w)
        limit_separation_backward(tree, work, contact, s, world, row, pair, separation_bar, 0)
        return
    primitive = pair_primitive(contact, s, world, pair)
    depth = (scalar(1.0) - w.is_orientation) * contact_depth(primitive, s.model.pairs.margin[pair])
    w.point = primitive.first_point - depth * primitive.normal
    forces = w.forces * pair_frame(contact, s, world, pair, primitive.normal)
    w.forces = forces
    total = mat33()
    for side in range(2):
        link = s.model.shapes.link[s.model.pairs.first[pair]]
        sign = scalar(1 - 2 * side)
        if side == 1:
            link = s.model.shapes.link[s.model.pairs.second[pair]]
        total = total + sign * force_moments(tree, work, contact, world, link, w)
    point_bar = vec3(total[0, 0], total[0, 1], total[0, 2])
    frame_bar = vec3(total[1, 0], total[1, 1], total[1, 2]) + w.frame_bar
    along_normal = wp.dot(primitive.normal, point_bar)
    core_separation_bar = separation_bar - DEPTH_SHARE * along_normal
    normal_bar = wp.cross(frame_bar, primitive.normal) - depth * point_bar
    if wp.static(pyramidal):
        normal_bar = normal_bar + frame_spin_backward(primitive.normal, wp.dot(frame_bar, primitive.normal))
    lengthwise_rotation = zero3()
    if wp.static(midway):
        # Tangents rotate about the normal by t₂ · (δs − s · n δn) / |s across n| as the direction s of `tangent_hint`
        # and the normal change.
        hint = tangent_hint(contact, s, world, pair, primitive.normal)
        perpendicular = tangential_part(hint, primitive.normal)
        hint_bar_factor = (
            wp.dot(frame_bar, primitive.normal)
            / wp.max(wp.length_sq(perpendicular), MIN_LENGTH)
            * wp.cross(primitive.normal, perpendicular)
        )
        normal_bar = normal_bar - wp.dot(hint, primitive.normal) * hint_bar_factor
        follows = scalar(follows_axis(contact, s, world, pair, primitive.normal))
        lengthwise_rotation = follows * wp.cross(hint, hint_bar_factor)
    adjoint = add_adjoints(
        closest_points_backward(primitive, point_bar, normal_bar),
        core_separation_backward(primitive, core_separation_bar),
    )
    if wp.static(midway):
        adjoint.first_rotation = adjoint.first_rotation + lengthwise_rotation
    for side in range(2):
        shape = s.model.pairs.first[pair]
        radius_bar = adjoint.rim_radius + wp.dot(primitive.first_radius_derivative, adjoint.first)
        if primitive.first_radius > scalar(0.0):
            radius_bar -= separation_bar  # the radius moves point and separation alike
            if wp.static(midway):
                radius_bar -= (scalar(1.0) - DEPTH_SHARE) * along_normal
        if side == 1:
            shape = s.model.pairs.second[pair]
            radius_bar = wp.dot(primitive.second_radius_derivative, adjoint.second)
            if primitive.second_radius > scalar(0.0):
                radius_bar = -core_separation_bar
        core_point = select_vec3(side, primitive.first_point, primitive.second_point)
        position_bar = select_vec3(side, adjoint.first, adjoint.second)
        rotation_bar = select_vec3(side, adjoint.first_rotation, adjoint.second_rotation)
        w.forces = scalar(1 - 2 * side) * forces
        ancestor_power_backward(
            tree, work, contact, s, world, row, s.model.shapes.link[shape], w, core_point, position_bar, rotation_bar
        )
        if s.contact_gradients.is_requested != 0:
            size_derivative = select_vec3(side, primitive.first_size_derivative, primitive.second_size_derivative)
            direction_rotation = select_vec3(side, adjoint.first_direction_rotation, adjoint.second_direction_rotation)
            direction = select_vec3(side, adjoint.first_direction, adjoint.second_direction)
            add_shape_gradient(
                contact,
                s,
                world,
                shape,
                size_derivative,
                core_point,
                position_bar,
                rotation_bar,
                radius_bar,
                direction_rotation,
                direction,
            )
