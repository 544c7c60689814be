"""The turning of free bodies to second order in the step.

The velocity ω of a body without forces, of inertia I about its centre of mass, follows I dω/dt = −g(ω), g(ω) = ω × I ω,
in the body's axes. A flight holds its acceleration; with that of its start, −I⁻¹ g(ω), what spins gains energy: with
x the angle that ω turns by in the body, a share x² of what is not about the axis that it turns about, in each step of
contact. Here it is that of the middle of the step, ω̄ = ω − h y / 2 with I y = g(ω) (the midpoint rule), with which the
gain is x⁴ / 8. Inverse dynamics has g(ω) already, so the moment that is added is g(ω) − g(ω̄).

Adjoint of E = −λ · (g(ω) − g(ω̄)): with c a cotangent of g, that of ω is I ω × c + I (c × ω), and that of I is
(c × ω) ωᵀ. With s that of ω̄ for c = λ, y has −h s / 2, the first g has r − λ, where I r = −h s / 2, and I has −r yᵀ
beside. Through ω̄ the derivative in h is −s · y / 2.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import mat33, scalar, vec3
from physvision.physics.articulated.kernels.structs import Gradients, Tree, Workspace


@wp.struct
class Spin:
    """A body that spins: its inertia about its centre of mass, its velocity, y, and the velocity of the middle."""

    inertia: mat33
    velocity: vec3
    slowing: vec3
    middle: vec3


@wp.func
def gyroscopic(inertia: mat33, velocity: vec3):
    return wp.cross(velocity, inertia * velocity)


@wp.func(inline=True)
def spin_of(tree: Tree, work: Workspace, world: int, row: int, i: int, h: scalar):
    s = Spin()
    d = tree.first_velocity[i] + 3
    moment = tree.moment[world, i]
    square = wp.dot(moment, moment)
    z = scalar(0.0)
    spread = mat33(square, z, z, z, square, z, z, z, square) - wp.outer(moment, moment)
    s.inertia = tree.inertia[world, i] - spread / tree.mass[world, i]
    s.velocity = vec3(work.v[world, row, d], work.v[world, row, d + 1], work.v[world, row, d + 2])
    s.slowing = wp.inverse(s.inertia) * gyroscopic(s.inertia, s.velocity)
    s.middle = s.velocity - scalar(0.5) * h * s.slowing
    return s


@wp.func
def add_spins(tree: Tree, work: Workspace, world: int, row: int, h: scalar):
    """Add to `rest` the moments by which the acceleration of free bodies becomes that of the step's middle."""
    for k in range(tree.spinners):
        i = tree.spinner[k]
        s = spin_of(tree, work, world, row, i, h)
        moment = gyroscopic(s.inertia, s.velocity) - gyroscopic(s.inertia, s.middle)
        d = tree.first_velocity[i] + 3
        for c in range(3):
            work.rest[world, d + c] = work.rest[world, d + c] + moment[c]


@wp.func
def velocity_cotangent(inertia: mat33, velocity: vec3, c: vec3):
    return wp.cross(inertia * velocity, c) + inertia * wp.cross(c, velocity)


@wp.func
def multiplier_of(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """λ of the turning of a free link."""
    d = tree.first_velocity[i] + 3
    return vec3(work.multiplier[world, row, d], work.multiplier[world, row, d + 1], work.multiplier[world, row, d + 2])


@wp.func
def spins_backward(tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, h: scalar):
    """Adjoint of −λ · (those moments)."""
    for k in range(tree.spinners):
        i = tree.spinner[k]
        s = spin_of(tree, work, world, row, i, h)
        multiplier = multiplier_of(tree, work, world, row, i)
        middle_bar = velocity_cotangent(s.inertia, s.middle, multiplier)
        r = scalar(-0.5) * h * (wp.inverse(s.inertia) * middle_bar)
        c = r - multiplier
        bar = middle_bar + velocity_cotangent(s.inertia, s.velocity, c)
        d = tree.first_velocity[i] + 3
        for n in range(3):
            work.v_bar[world, row, d + n] = work.v_bar[world, row, d + n] + bar[n]
        if gradients.wanted != 0:
            inertia_bar = (
                wp.outer(wp.cross(multiplier, s.middle), s.middle)
                + wp.outer(wp.cross(c, s.velocity), s.velocity)
                - wp.outer(r, s.slowing)
            )
            # With the first moment p = m c, I = (that about the link's origin) − (|p|² − p pᵀ) / m.
            moment = tree.moment[world, i]
            mass = tree.mass[world, i]
            trace = wp.trace(inertia_bar)
            along = inertia_bar * moment
            both = along + wp.transpose(inertia_bar) * moment
            gradients.inertia[world, i] = gradients.inertia[world, i] + inertia_bar
            gradients.moment[world, i] = gradients.moment[world, i] + (both - scalar(2.0) * trace * moment) / mass
            spread = wp.dot(moment, moment) * trace - wp.dot(moment, along)
            gradients.mass[world, i] = gradients.mass[world, i] + spread / (mass * mass)


@wp.func
def spins_by_time(tree: Tree, work: Workspace, world: int, row: int, h: scalar):
    """Derivative of −λ · (those moments) in the length of the step."""
    total = scalar(0.0)
    for k in range(tree.spinners):
        i = tree.spinner[k]
        s = spin_of(tree, work, world, row, i, h)
        middle_bar = velocity_cotangent(s.inertia, s.middle, multiplier_of(tree, work, world, row, i))
        total -= scalar(0.5) * wp.dot(middle_bar, s.slowing)
    return total
