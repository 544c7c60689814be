"""Adjoint of loop constraints in convex contact (`compliant_rows`), for weights w as in `convex_contact_adjoint`.

The power −b K w · u of the rows in the motion v and −F · (J λ) are those of forces at fixed links. The term −K w · α
depends on the true accelerations of the links, so it adds to the adjoints of the motions of links, as the inertial
forces of `dynamics/inverse` do, and one sweep to the root propagates them. A point with the arm r on a link with the
spatial motions (ω, v) and accelerations (ω̇, a) has A = a + ω̇ × r + ω × (v + ω × r), and f · A has the adjoints

    ā = f,    ω̇ = r × f,    v̄ = f × ω,    ω̄ = (v + ω × r) × f + r × (f × ω),    r̄ = f × ω̇ + (f × ω) × ω,

and A × f of a rotation of the link, for f stays.

For a weld with E = B* ⊗ A and forces N in its rows, the moments are τ = Gᵀ N in world axes, and a rotation φ_a, φ_b of
the frames changes N · G ω and g · e with β = Bᵀ (φ_a − φ_b) and y = Bᵀ ω by

    σ/4 (−(N · y) vec(E) + E_w N × y + vec(E) × (N × y)) · β + (τ × ω) · φ_b,    σ/2 (E_w g + vec(E) × g) · β.
"""

import warp as wp

from ..collision.contact_primitives import WeightedForces
from ..collision.narrow_phase_adjoint import add_shape_gradient
from ..dynamics.inverse import clear_motion_adjoints, joint_backward
from ..precision import mat33, scalar, vec3
from ..spatial.vectors import transpose_product, zero3
from ..structs import Contact, System, Tree, Workspace
from .compliant_rows import loop_errors, point_acceleration, weld_quaternion, weld_rate, weld_rotation
from .convex_contact import impedance
from .delassus import add_jacobian_transpose, contact_velocity
from .equality import equality_power_backward


@wp.func(inline=True)
def frame_rotation(tree: Tree, work: Workspace, s: System, world: int, t: int, motion: int):
    """Return ω_a − ω_b of the frames of equality constraint t in a motion, a row of `step_velocity`."""
    total = zero3()
    for side in range(2):
        shape = s.model.equalities.first[t]
        if side == 1:
            shape = s.model.equalities.second[t]
        i = s.model.shapes.link[shape]
        while i >= 0:
            for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                rate = scalar(1 - 2 * side) * work.step_velocity[world, motion, d]
                total = total + rate * work.axis_angular[world, d]
            i = tree.parent[i]
    return total


@wp.func(inline=True)
def point_acceleration_backward(
    work: Workspace, contact: Contact, s: System, world: int, shape: int, force: vec3, gravity: vec3
):
    """Add the derivative of force · (acceleration of the shape's origin) to the adjoints of its link's motions."""
    i = s.model.shapes.link[shape]
    if i < 0:
        if s.gradients.is_requested != 0:
            s.gradients.gravity[world] = s.gradients.gravity[world] - force
    else:
        point = contact.detection.shape_origin[world, shape]
        arm = point - contact.detection.link_origin[world, i]
        angular = work.angular_velocity[world, i]
        turned = wp.cross(force, angular)
        velocity = work.linear_velocity[world, i] + wp.cross(angular, arm)
        total = point_acceleration(work, contact, s, world, shape, gravity)
        work.acceleration_bar_linear[world, i] = work.acceleration_bar_linear[world, i] + force
        work.acceleration_bar_angular[world, i] = work.acceleration_bar_angular[world, i] + wp.cross(arm, force)
        work.velocity_bar_linear[world, i] = work.velocity_bar_linear[world, i] + turned
        work.velocity_bar_angular[world, i] = (
            work.velocity_bar_angular[world, i] + wp.cross(velocity, force) + wp.cross(arm, turned)
        )
        work.orientation_bar[world, i] = work.orientation_bar[world, i] + wp.cross(total, force)
        if s.contact_gradients.is_requested != 0:
            arm_bar = wp.cross(force, work.angular_acceleration[world, i]) + wp.cross(turned, angular)
            add_shape_gradient(
                contact, s, world, shape, zero3(), point, arm_bar, zero3(), scalar(0.0), zero3(), zero3()
            )


@wp.func(inline=True)
def rotation_backward(work: Workspace, world: int, i: int, moment: vec3, velocity_bar: vec3):
    """Add the derivative of moment · ω̇ + velocity_bar · ω of a link to the adjoints of its motions."""
    if i >= 0:
        work.acceleration_bar_angular[world, i] = work.acceleration_bar_angular[world, i] + moment
        work.velocity_bar_angular[world, i] = work.velocity_bar_angular[world, i] + velocity_bar
        work.orientation_bar[world, i] = (
            work.orientation_bar[world, i]
            + wp.cross(work.angular_acceleration[world, i], moment)
            + wp.cross(work.angular_velocity[world, i], velocity_bar)
        )


@wp.func(inline=True)
def begin_loop_accelerations(tree: Tree, work: Workspace, world: int):
    """Clear the adjoints of the motions of links, which `loop_rows_backward` adds to."""
    for i in range(tree.links):
        clear_motion_adjoints(work, world, i)


@wp.func(inline=True)
def end_loop_accelerations(tree: Tree, work: Workspace, s: System, world: int, row: int):
    """Propagate the adjoints of the motions of links to q_bar[row], v_bar[row] and the gradients."""
    for back in range(tree.links):
        joint_backward(tree, work, s.gradients, world, row, row, tree.links - 1 - back)


@wp.func(inline=True)
def loop_rows_backward(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, c: int):
    """Propagate through the forces of a loop constraint: block c of its positions and, of a weld, the next block."""
    number = contact.blocks.pair[world, c] - s.model.candidates - s.model.transmissions.count
    t = number / 2
    is_weld = s.model.equalities.is_weld[t]
    if number % 2 == 0:
        parameters = s.model.candidates + s.model.transmissions.count + t
        reference = s.model.convex.reference[parameters]
        distance, orientation, size = loop_errors(contact, s, world, t)
        ratio, slope = impedance(
            reference, s.model.convex.impedance[parameters], s.model.convex.curve[parameters], size
        )
        pull = scalar(0.0)  # derivative with respect to the length of the errors
        for part in range(1 + is_weld):
            stiffness = contact.convex.edge_stiffness[world, c + part]
            product = -stiffness * contact_velocity(tree, contact, world, c + part, work.multiplier, row)
            error = distance
            if part == 1:
                error = orientation
            pull += wp.dot(product, contact.convex.lag[world, c + part]) / (ratio * (scalar(1.0) - ratio))
            pull -= reference[0] * wp.dot(product, error)
        pull = pull * slope
        if size > scalar(0.0):
            pull = pull / size
        for part in range(1 + is_weld):
            stiffness = contact.convex.edge_stiffness[world, c + part]
            product = -stiffness * contact_velocity(tree, contact, world, c + part, work.multiplier, row)
            error = distance
            if part == 1:
                error = orientation
            error_bar = pull * error - (reference[0] * ratio) * product
            velocity_bar = -reference[1] * product
            add_jacobian_transpose(tree, contact, world, c + part, velocity_bar, work.v_bar, row)
            forces = wp.matrix_from_rows(velocity_bar, zero3(), -stiffness * contact.convex.lag[world, c + part])
            first_bar = zero3()
            second_bar = zero3()
            if part == 0:
                gravity = tree.gravity[world]
                point_acceleration_backward(work, contact, s, world, s.model.equalities.first[t], -product, gravity)
                point_acceleration_backward(work, contact, s, world, s.model.equalities.second[t], product, gravity)
            else:
                quaternion = weld_quaternion(contact, s, world, t)
                vector = vec3(quaternion[1], quaternion[2], quaternion[3])
                rate = weld_rate(contact, s, world, t, quaternion)
                second = contact.detection.shape_rotation[world, s.model.equalities.second[t]]
                half_scale = scalar(0.5) * s.model.equalities.torque_scale[t]
                local_bar = half_scale * (quaternion[0] * error_bar + wp.cross(vector, error_bar))
                first_rate, second_rate, change = weld_rotation(work, s, world, t)
                relative = first_rate - second_rate
                along = scalar(0.5) * half_scale * wp.length_sq(relative)
                # The adjoint of vec(E) in −σ/4 |ω|² N · vec(E), with N = −K w.
                local_bar = local_bar + scalar(0.5) * along * (quaternion[0] * product + wp.cross(vector, product))
                moment = -transpose_product(rate, product)
                rate_bar = half_scale * wp.dot(product, vector) * relative
                rotation_backward(
                    work, world, s.model.shapes.link[s.model.equalities.first[t]], moment,
                    wp.cross(second_rate, moment) + rate_bar,
                )  # fmt: skip
                rotation_backward(
                    work, world, s.model.shapes.link[s.model.equalities.second[t]], -moment,
                    wp.cross(moment, first_rate) - rate_bar,
                )  # fmt: skip
                moments = mat33()
                for motion in range(3):
                    force = vec3(forces[motion, 0], forces[motion, 1], forces[motion, 2])
                    rotation = change
                    if motion == 1:
                        force = -product
                    else:
                        rotation = frame_rotation(tree, work, s, world, t, motion)
                    local = transpose_product(second, rotation)
                    crossed = wp.cross(force, local)
                    turned = quaternion[0] * crossed + wp.cross(vector, crossed) - wp.dot(force, local) * vector
                    local_bar = local_bar + (scalar(0.5) * half_scale) * turned
                    moment = transpose_product(rate, force)
                    second_bar = second_bar + wp.cross(moment, rotation)
                    if motion != 1:
                        for k in range(3):
                            moments[motion, k] = moment[k]
                first_bar = second * local_bar
                second_bar = second_bar - first_bar
                forces = moments
                error_bar = zero3()
            weights = WeightedForces(0, 1, 2, forces, scalar(part), zero3(), zero3())
            equality_power_backward(tree, work, contact, s, world, row, t, weights, error_bar, first_bar, second_bar)
