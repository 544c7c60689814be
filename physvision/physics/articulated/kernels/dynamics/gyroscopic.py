"""Second-order integration of the rotation of free bodies.

Without forces, the angular velocity ω of a body with inertia I about its center of mass obeys I dω/dt = −g(ω), g(ω) = ω
× I ω, in body axes. A flight has constant acceleration; with that at its start, −I⁻¹ g(ω), a spinning body gains
energy: a fraction x² of the part perpendicular to the axis of rotation in each step with contact, where ω rotates by
the angle x in the body. Here the acceleration is that at the midpoint, ω̄ = ω − h y / 2 with I y = g(ω) (midpoint
rule), for which the gain is x⁴ / 8. Inverse dynamics contains g(ω) already, so the added moment is g(ω) − g(ω̄).

Adjoint of E = −λ · (g(ω) − g(ω̄)): for a cotangent c of g, that of ω is I ω × c + I (c × ω), and that of I is (c × ω)
ωᵀ. With s that of ω̄ for c = λ, y has −h s / 2, the first g has r − λ, where I r = −h s / 2, and I has −r yᵀ besides.
Through ω̄ the derivative with respect to h is −s · y / 2.
"""

import warp as wp

from ..precision import mat33, scalar, vec3
from ..structs import Gradients, Tree, Workspace


@wp.struct
class FreeRotation:
    """Rotation of a free body: central inertia, angular velocity, deceleration y, and velocity at the midpoint."""

    inertia: mat33
    velocity: vec3
    deceleration: vec3
    midpoint_velocity: vec3


@wp.func
def gyroscopic_moment(inertia: mat33, velocity: vec3):
    """Return the gyroscopic moment ω × I ω."""
    return wp.cross(velocity, inertia * velocity)


@wp.func(inline=True)
def free_rotation(tree: Tree, work: Workspace, world: int, row: int, i: int, h: scalar):
    """Return the rotation of free link i at v[row], with its midpoint over a step of length h."""
    s = FreeRotation()
    d = tree.first_velocity[i] + 3
    moment = tree.first_moment[world, i]
    square = wp.dot(moment, moment)
    z = scalar(0.0)
    spread = mat33(square, z, z, z, square, z, z, z, square) - wp.outer(moment, moment)
    s.inertia = tree.inertia[world, i] - spread / tree.mass[world, i]
    s.velocity = vec3(work.v[world, row, d], work.v[world, row, d + 1], work.v[world, row, d + 2])
    s.deceleration = wp.inverse(s.inertia) * gyroscopic_moment(s.inertia, s.velocity)
    s.midpoint_velocity = s.velocity - scalar(0.5) * h * s.deceleration
    return s


@wp.func
def add_gyroscopic_correction(tree: Tree, work: Workspace, world: int, row: int, h: scalar):
    """Add the moments to `rhs` that make the acceleration of free bodies that of the midpoint of the step."""
    for k in range(tree.free_bodies):
        i = tree.free_body_link[k]
        s = free_rotation(tree, work, world, row, i, h)
        moment = gyroscopic_moment(s.inertia, s.velocity) - gyroscopic_moment(s.inertia, s.midpoint_velocity)
        d = tree.first_velocity[i] + 3
        for c in range(3):
            work.rhs[world, d + c] = work.rhs[world, d + c] + moment[c]


@wp.func
def gyroscopic_velocity_adjoint(inertia: mat33, velocity: vec3, c: vec3):
    """Return the adjoint of ω for a cotangent c of the gyroscopic moment."""
    return wp.cross(inertia * velocity, c) + inertia * wp.cross(c, velocity)


@wp.func
def rotational_multiplier(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Return λ of the rotation of a free link."""
    d = tree.first_velocity[i] + 3
    return vec3(work.multiplier[world, row, d], work.multiplier[world, row, d + 1], work.multiplier[world, row, d + 2])


@wp.func
def gyroscopic_correction_backward(tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, h: scalar):
    """Compute the adjoint of −λ · (moments of `add_gyroscopic_correction`)."""
    for k in range(tree.free_bodies):
        i = tree.free_body_link[k]
        s = free_rotation(tree, work, world, row, i, h)
        multiplier = rotational_multiplier(tree, work, world, row, i)
        midpoint_bar = gyroscopic_velocity_adjoint(s.inertia, s.midpoint_velocity, multiplier)
        r = scalar(-0.5) * h * (wp.inverse(s.inertia) * midpoint_bar)
        c = r - multiplier
        bar = midpoint_bar + gyroscopic_velocity_adjoint(s.inertia, s.velocity, c)
        d = tree.first_velocity[i] + 3
        for n in range(3):
            work.v_bar[world, row, d + n] = work.v_bar[world, row, d + n] + bar[n]
        if gradients.is_requested != 0:
            inertia_bar = (
                wp.outer(wp.cross(multiplier, s.midpoint_velocity), s.midpoint_velocity)
                + wp.outer(wp.cross(c, s.velocity), s.velocity)
                - wp.outer(r, s.deceleration)
            )
            # With the first moment p = m c, I is that about the link's origin minus (|p|² − p pᵀ) / m.
            moment = tree.first_moment[world, i]
            mass = tree.mass[world, i]
            trace = wp.trace(inertia_bar)
            along = inertia_bar * moment
            symmetric = along + wp.transpose(inertia_bar) * moment
            gradients.inertia[world, i] = gradients.inertia[world, i] + inertia_bar
            gradients.first_moment[world, i] = (
                gradients.first_moment[world, i] + (symmetric - scalar(2.0) * trace * moment) / mass
            )
            spread = wp.dot(moment, moment) * trace - wp.dot(moment, along)
            gradients.mass[world, i] = gradients.mass[world, i] + spread / (mass * mass)


@wp.func
def gyroscopic_correction_time_derivative(tree: Tree, work: Workspace, world: int, row: int, h: scalar):
    """Return the derivative of −λ · (moments of `add_gyroscopic_correction`) with respect to the length of the step."""
    total = scalar(0.0)
    for k in range(tree.free_bodies):
        i = tree.free_body_link[k]
        s = free_rotation(tree, work, world, row, i, h)
        midpoint_bar = gyroscopic_velocity_adjoint(
            s.inertia, s.midpoint_velocity, rotational_multiplier(tree, work, world, row, i)
        )
        total -= scalar(0.5) * wp.dot(midpoint_bar, s.deceleration)
    return total
