"""Drag of a fluid at rest on the equivalent inertia box of every body.

Along the axes of the box, at the center of mass, for the velocity x of that point, or the angular velocity, the drag is

    −(a x + b |x| x)

with the viscous coefficient a and the quadratic one b, both computed from properties. In inverse dynamics it adds Σ l ·
(a x + b |x| x) with the virtual velocity l. With R from the axes of the box to the world's and the link's motion (ω,
v), x = Rᵀ (v + ω × c): the adjoint g of v + ω × c is that of v, c × g that of ω, and g × ω that of c.
"""

import warp as wp

from ..precision import scalar, vec3
from ..spatial.vectors import transpose_product
from ..structs import Gradients, Tree, Workspace


@wp.func
def drag_force(viscous: vec3, dynamic: vec3, x: vec3):
    """Return a x + b |x| x for viscous coefficients a and quadratic coefficients b."""
    force = x
    for k in range(3):
        force[k] = (viscous[k] + dynamic[k] * wp.abs(x[k])) * x[k]
    return force


@wp.func
def drag_derivative(viscous: vec3, dynamic: vec3, x: vec3, along: vec3):
    """Return the derivative of `drag_force` times a vector."""
    product = x
    for k in range(3):
        product[k] = (viscous[k] + scalar(2.0) * dynamic[k] * wp.abs(x[k])) * along[k]
    return product


@wp.func
def add_fluid_drag(tree: Tree, work: Workspace, world: int):
    """Add the drag on bodies to the bias forces of the links."""
    for body in range(tree.bodies):
        i = tree.body_link[body]
        if i >= 0:
            orientation = work.orientation[world, i]
            box_axes = orientation * tree.drag_axes[world, body]
            center = orientation * tree.center[world, body]
            spin = work.angular_velocity[world, i]
            velocity = transpose_product(box_axes, work.linear_velocity[world, i] + wp.cross(spin, center))
            force = box_axes * drag_force(tree.viscous_force[world, body], tree.dynamic_force[world, body], velocity)
            moment = box_axes * drag_force(
                tree.viscous_moment[world, body], tree.dynamic_moment[world, body], transpose_product(box_axes, spin)
            )
            work.force[world, i] = work.force[world, i] + force
            work.moment[world, i] = work.moment[world, i] + moment + wp.cross(center, force)


@wp.func
def quadratic_drag_gradient(x: vec3, along: vec3):
    """Return the derivative of drag · along with respect to the quadratic coefficients."""
    return vec3(wp.abs(x[0]) * x[0] * along[0], wp.abs(x[1]) * x[1] * along[1], wp.abs(x[2]) * x[2] * along[2])


@wp.func
def fluid_drag_backward(tree: Tree, work: Workspace, gradients: Gradients, world: int):
    """Add the contribution of drag to the adjoints of velocities and virtual motions of links, and to the gradients."""
    for body in range(tree.bodies):
        i = tree.body_link[body]
        if i >= 0:
            orientation = work.orientation[world, i]
            box_axes = orientation * tree.drag_axes[world, body]
            center = orientation * tree.center[world, body]
            spin = work.angular_velocity[world, i]
            virtual_spin = work.virtual_angular[world, i]
            velocity = work.linear_velocity[world, i] + wp.cross(spin, center)
            virtual = work.virtual_linear[world, i] + wp.cross(virtual_spin, center)
            x = transpose_product(box_axes, velocity)
            along = transpose_product(box_axes, virtual)
            y = transpose_product(box_axes, spin)
            m = transpose_product(box_axes, virtual_spin)
            x_bar = drag_derivative(tree.viscous_force[world, body], tree.dynamic_force[world, body], x, along)
            l_bar = drag_force(tree.viscous_force[world, body], tree.dynamic_force[world, body], x)
            y_bar = drag_derivative(tree.viscous_moment[world, body], tree.dynamic_moment[world, body], y, m)
            m_bar = drag_force(tree.viscous_moment[world, body], tree.dynamic_moment[world, body], y)
            velocity_bar = box_axes * x_bar
            virtual_bar = box_axes * l_bar
            work.velocity_bar_linear[world, i] = work.velocity_bar_linear[world, i] + velocity_bar
            work.velocity_bar_angular[world, i] = (
                work.velocity_bar_angular[world, i] + box_axes * y_bar + wp.cross(center, velocity_bar)
            )
            work.virtual_bar_linear[world, i] = work.virtual_bar_linear[world, i] + virtual_bar
            work.virtual_bar_angular[world, i] = (
                work.virtual_bar_angular[world, i] + box_axes * m_bar + wp.cross(center, virtual_bar)
            )
            if gradients.is_requested != 0:
                center_bar = wp.cross(velocity_bar, spin) + wp.cross(virtual_bar, virtual_spin)
                gradients.center[world, body] = gradients.center[world, body] + transpose_product(
                    orientation, center_bar
                )
                gradients.drag_axes[world, body] = gradients.drag_axes[world, body] + wp.transpose(orientation) * (
                    wp.outer(velocity, x_bar)
                    + wp.outer(virtual, l_bar)
                    + wp.outer(spin, y_bar)
                    + wp.outer(virtual_spin, m_bar)
                )
                gradients.viscous_force[world, body] = gradients.viscous_force[world, body] + wp.cw_mul(x, along)
                gradients.viscous_moment[world, body] = gradients.viscous_moment[world, body] + wp.cw_mul(y, m)
                gradients.dynamic_force[world, body] = gradients.dynamic_force[world, body] + quadratic_drag_gradient(
                    x, along
                )
                gradients.dynamic_moment[world, body] = gradients.dynamic_moment[world, body] + quadratic_drag_gradient(
                    y, m
                )
