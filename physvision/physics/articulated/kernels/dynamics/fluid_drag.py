"""Drag of a medium at rest, which sees each body as a box of the same inertia.

Along the box's axes, at the centre of mass, with the velocity x of that point, or the turning, the drag is

    −(a x + b |x| x)

with the viscous share a and the dynamic one b (`packing` has both). In inverse dynamics it adds Σ l · (a x + b |x| x),
l being what the virtual motion does there. With R from the box's axes to the world's and the link's motion (ω, v),
x = Rᵀ (v + ω × c): the adjoint g of v + ω × c is that of v, c × g that of ω, and g × ω that of c.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import transposed
from physvision.physics.articulated.kernels.structs import Gradients, Tree, Workspace


@wp.func
def drag_of(viscous: vec3, dynamic: vec3, x: vec3):
    found = x
    for k in range(3):
        found[k] = (viscous[k] + dynamic[k] * wp.abs(x[k])) * x[k]
    return found


@wp.func
def drag_rate(viscous: vec3, dynamic: vec3, x: vec3, along: vec3):
    """The derivative of `drag_of`, times a vector."""
    found = x
    for k in range(3):
        found[k] = (viscous[k] + scalar(2.0) * dynamic[k] * wp.abs(x[k])) * along[k]
    return found


@wp.func
def add_drag(tree: Tree, work: Workspace, world: int):
    """Add what drag asks for to the forces that the links' velocities ask for."""
    for body in range(tree.bodies):
        i = tree.body_link[body]
        if i >= 0:
            own = work.orientation[world, i]
            turn = own * tree.drag_axes[world, body]
            center = own * tree.center[world, body]
            spin = work.angular[world, i]
            velocity = transposed(turn, work.linear[world, i] + wp.cross(spin, center))
            force = turn * drag_of(tree.viscous_force[world, body], tree.dynamic_force[world, body], velocity)
            moment = turn * drag_of(
                tree.viscous_moment[world, body], tree.dynamic_moment[world, body], transposed(turn, spin)
            )
            work.force[world, i] = work.force[world, i] + force
            work.moment[world, i] = work.moment[world, i] + moment + wp.cross(center, force)


@wp.func
def rate_by_square(x: vec3, along: vec3):
    """The derivative of drag · along in the dynamic shares."""
    return vec3(wp.abs(x[0]) * x[0] * along[0], wp.abs(x[1]) * x[1] * along[1], wp.abs(x[2]) * x[2] * along[2])


@wp.func
def drag_backward(tree: Tree, work: Workspace, gradients: Gradients, world: int):
    """Add the drag's share to the adjoints of the links' velocities and virtual motions, and to the gradients."""
    for body in range(tree.bodies):
        i = tree.body_link[body]
        if i >= 0:
            own = work.orientation[world, i]
            turn = own * tree.drag_axes[world, body]
            center = own * tree.center[world, body]
            spin = work.angular[world, i]
            virtual_spin = work.virtual_angular[world, i]
            velocity = work.linear[world, i] + wp.cross(spin, center)
            virtual = work.virtual_linear[world, i] + wp.cross(virtual_spin, center)
            x = transposed(turn, velocity)
            along = transposed(turn, virtual)
            y = transposed(turn, spin)
            m = transposed(turn, virtual_spin)
            x_bar = drag_rate(tree.viscous_force[world, body], tree.dynamic_force[world, body], x, along)
            l_bar = drag_of(tree.viscous_force[world, body], tree.dynamic_force[world, body], x)
            y_bar = drag_rate(tree.viscous_moment[world, body], tree.dynamic_moment[world, body], y, m)
            m_bar = drag_of(tree.viscous_moment[world, body], tree.dynamic_moment[world, body], y)
            pull = turn * x_bar
            virtual_pull = turn * l_bar
            work.velocity_bar_linear[world, i] = work.velocity_bar_linear[world, i] + pull
            work.velocity_bar_angular[world, i] = (
                work.velocity_bar_angular[world, i] + turn * y_bar + wp.cross(center, pull)
            )
            work.virtual_bar_linear[world, i] = work.virtual_bar_linear[world, i] + virtual_pull
            work.virtual_bar_angular[world, i] = (
                work.virtual_bar_angular[world, i] + turn * m_bar + wp.cross(center, virtual_pull)
            )
            if gradients.wanted != 0:
                center_bar = wp.cross(pull, spin) + wp.cross(virtual_pull, virtual_spin)
                gradients.center[world, body] = gradients.center[world, body] + transposed(own, center_bar)
                gradients.drag_axes[world, body] = gradients.drag_axes[world, body] + wp.transpose(own) * (
                    wp.outer(velocity, x_bar)
                    + wp.outer(virtual, l_bar)
                    + wp.outer(spin, y_bar)
                    + wp.outer(virtual_spin, m_bar)
                )
                gradients.viscous_force[world, body] = gradients.viscous_force[world, body] + wp.cw_mul(x, along)
                gradients.viscous_moment[world, body] = gradients.viscous_moment[world, body] + wp.cw_mul(y, m)
                gradients.dynamic_force[world, body] = gradients.dynamic_force[world, body] + rate_by_square(x, along)
                gradients.dynamic_moment[world, body] = gradients.dynamic_moment[world, body] + rate_by_square(y, m)
