"""Joint coordinates on their manifold: access, integration, and the adjoint of integration."""

import warp as wp

from ..precision import Array2d, Array3d, scalar, vec3, vec4
from ..spatial.rotations import (
    left_jacobian,
    quaternion_exp,
    quaternion_lift,
    quaternion_log,
    quaternion_product,
    quaternion_tangent,
    right_jacobian_inverse,
    rotate_vector,
)
from ..structs import BALL, FREE, Gradients, Tree, Workspace


@wp.func
def read3(values: Array3d, world: int, row: int, start: int):
    """Read three consecutive numbers of a row."""
    return vec3(values[world, row, start], values[world, row, start + 1], values[world, row, start + 2])


@wp.func
def read4(values: Array3d, world: int, row: int, start: int):
    """Read four consecutive numbers of a row."""
    return vec4(
        values[world, row, start],
        values[world, row, start + 1],
        values[world, row, start + 2],
        values[world, row, start + 3],
    )


@wp.func
def spring_reference4(tree: Tree, world: int, start: int):
    """Read the reference quaternion of a spring."""
    return vec4(
        tree.spring_reference[world, start],
        tree.spring_reference[world, start + 1],
        tree.spring_reference[world, start + 2],
        tree.spring_reference[world, start + 3],
    )


@wp.func
def add3(values: Array3d, world: int, row: int, start: int, x: vec3):
    """Add a vector to three consecutive numbers of a row."""
    values[world, row, start] = values[world, row, start] + x[0]
    values[world, row, start + 1] = values[world, row, start + 1] + x[1]
    values[world, row, start + 2] = values[world, row, start + 2] + x[2]


@wp.func
def integrate_joint(
    tree: Tree, world: int, i: int, q: Array3d, origin: int, target: int, rate: Array3d, rate_row: int, h: scalar
):
    """Set the positions of link i's joint in q[target], as `integrate_positions` does."""
    joint = tree.joint[i]
    p = tree.first_position[i]
    d = tree.first_velocity[i]
    if joint == BALL or joint == FREE:
        if joint == FREE:
            for k in range(3):
                q[world, target, p + k] = q[world, origin, p + k] + h * rate[world, rate_row, d + k]
            p += 3
            d += 3
        step = quaternion_exp(h * read3(rate, world, rate_row, d))
        rotated = wp.normalize(quaternion_product(read4(q, world, origin, p), step))
        for k in range(4):
            q[world, target, p + k] = rotated[k]
    else:
        q[world, target, p] = q[world, origin, p] + h * rate[world, rate_row, d]


@wp.func
def integrate_positions(
    tree: Tree, world: int, q: Array3d, origin: int, target: int, rate: Array3d, rate_row: int, h: scalar
):
    """Set q[target] = q[origin] ⊕ h · rate: positions add, quaternions multiply by exp(h ω) and are normalized."""
    for i in range(tree.links):
        integrate_joint(tree, world, i, q, origin, target, rate, rate_row, h)


@wp.func
def integrate_positions_backward(
    tree: Tree,
    world: int,
    end_bar: Array3d,
    end_row: int,
    rate: Array3d,
    rate_row: int,
    rate_bar: Array3d,
    rate_bar_row: int,
    start_bar: Array3d,
    start_row: int,
    h: scalar,
):
    """Compute the adjoint of `integrate_positions`: add to start_bar[start_row] and rate_bar[rate_bar_row].

    All adjoints of positions are in the tangent space. q exp(δ) exp(h ω + h δω) = q exp(h ω) exp(δ′) with δ′ = exp(−h
    ω) δ + J_r(h ω) h δω, hence δ̄ = exp(h ω) δ̄′ and ω̄ = h J_r(h ω)ᵀ δ̄′. `start_bar` may be `end_bar`: every number
    is read before it is written.
    """
    for i in range(tree.links):
        joint = tree.joint[i]
        d = tree.first_velocity[i]
        if joint == BALL or joint == FREE:
            if joint == FREE:
                bar = read3(end_bar, world, end_row, d)
                add3(rate_bar, world, rate_bar_row, d, h * bar)
                add3(start_bar, world, start_row, d, bar)
                d += 3
            rotation = h * read3(rate, world, rate_row, d)
            bar = read3(end_bar, world, end_row, d)
            add3(rate_bar, world, rate_bar_row, d, h * left_jacobian(rotation, bar))
            add3(start_bar, world, start_row, d, rotate_vector(rotation, bar))
        else:
            scalar_bar = end_bar[world, end_row, d]
            rate_bar[world, rate_bar_row, d] = rate_bar[world, rate_bar_row, d] + h * scalar_bar
            start_bar[world, start_row, d] = start_bar[world, start_row, d] + scalar_bar


@wp.func
def add_tangent_gradient(
    tree: Tree, world: int, q: Array3d, gradient: Array3d, row: int, tangent: Array3d, tangent_row: int
):
    """Add the gradient with respect to q[row], converted to the tangent space, to tangent[tangent_row]."""
    for i in range(tree.links):
        joint = tree.joint[i]
        p = tree.first_position[i]
        d = tree.first_velocity[i]
        if joint == BALL or joint == FREE:
            if joint == FREE:
                add3(tangent, world, tangent_row, d, read3(gradient, world, row, p))
                p += 3
                d += 3
            rotation = quaternion_tangent(read4(q, world, row, p), read4(gradient, world, row, p))
            add3(tangent, world, tangent_row, d, rotation)
        else:
            tangent[world, tangent_row, d] = tangent[world, tangent_row, d] + gradient[world, row, p]


@wp.func
def write_coordinate_gradient(
    tree: Tree, world: int, q: Array3d, row: int, tangent: Array3d, tangent_row: int, gradient: Array2d
):
    """Write the tangent-space gradient at q[row] as a gradient with respect to the coordinates of q."""
    for i in range(tree.links):
        joint = tree.joint[i]
        p = tree.first_position[i]
        d = tree.first_velocity[i]
        if joint == BALL or joint == FREE:
            if joint == FREE:
                for k in range(3):
                    gradient[world, p + k] = tangent[world, tangent_row, d + k]
                p += 3
                d += 3
            lifted = quaternion_lift(read4(q, world, row, p), read3(tangent, world, tangent_row, d))
            for k in range(4):
                gradient[world, p + k] = lifted[k]
        else:
            gradient[world, p] = tangent[world, tangent_row, d]


@wp.func
def spring_rotation(tree: Tree, work: Workspace, world: int, row: int, p: int):
    """Return the rotation vector of a ball joint from the reference of its spring."""
    reference = spring_reference4(tree, world, p)
    return quaternion_log(
        quaternion_product(
            vec4(reference[0], -reference[1], -reference[2], -reference[3]), read4(work.q, world, row, p)
        )
    )


@wp.func
def subtract_spring_force(tree: Tree, work: Workspace, world: int, row: int, i: int, force: Array2d):
    """Subtract k · displacement from the force, for the joint of link i."""
    k = tree.joint_stiffness[world, i]
    joint = tree.joint[i]
    p = tree.first_position[i]
    d = tree.first_velocity[i]
    if joint == BALL or joint == FREE:
        if joint == FREE:
            for c in range(3):
                force[world, d + c] = force[world, d + c] - k * (
                    work.q[world, row, p + c] - tree.spring_reference[world, p + c]
                )
            p += 3
            d += 3
        rotation = spring_rotation(tree, work, world, row, p)
        for c in range(3):
            force[world, d + c] = force[world, d + c] - k * rotation[c]
    else:
        force[world, d] = force[world, d] - k * (work.q[world, row, p] - tree.spring_reference[world, p])


@wp.func
def spring_backward(tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, i: int):
    """Compute the adjoint of λᵀ(k · displacement) of a spring.

    For a ball joint the displacement is θ = log(rest⁻¹ q): δθ = J_r(θ)⁻¹ δ for q exp(δ), and −J_l(θ)⁻¹ δ for rest
    exp(δ); since J_l(θ) = J_r(−θ) = J_r(θ)ᵀ, the adjoints need one function only.
    """
    joint = tree.joint[i]
    p = tree.first_position[i]
    d = tree.first_velocity[i]
    if joint == BALL or joint == FREE:
        if joint == FREE:
            for c in range(3):
                linear_spring_backward(tree, work, gradients, world, row, i, p + c, d + c)
            p += 3
            d += 3
        k = tree.joint_stiffness[world, i]
        rotation = spring_rotation(tree, work, world, row, p)
        multipliers = vec3(
            work.multiplier[world, row, d], work.multiplier[world, row, d + 1], work.multiplier[world, row, d + 2]
        )
        add3(work.q_bar, world, row, d, k * right_jacobian_inverse(-rotation, multipliers))
        if gradients.is_requested != 0:
            gradients.joint_stiffness[world, i] = gradients.joint_stiffness[world, i] + wp.dot(multipliers, rotation)
            lifted = quaternion_lift(
                spring_reference4(tree, world, p), -k * right_jacobian_inverse(rotation, multipliers)
            )
            for c in range(4):
                gradients.spring_reference[world, p + c] = gradients.spring_reference[world, p + c] + lifted[c]
    else:
        linear_spring_backward(tree, work, gradients, world, row, i, p, d)


@wp.func
def linear_spring_backward(
    tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, i: int, p: int, d: int
):
    """Compute the adjoint of λ k · displacement for one coordinate that is not part of a quaternion."""
    multiplier = work.multiplier[world, row, d]
    weighted = tree.joint_stiffness[world, i] * multiplier
    work.q_bar[world, row, d] = work.q_bar[world, row, d] + weighted
    if gradients.is_requested != 0:
        gradients.spring_reference[world, p] = gradients.spring_reference[world, p] - weighted
        gradients.joint_stiffness[world, i] = gradients.joint_stiffness[world, i] + multiplier * (
            work.q[world, row, p] - tree.spring_reference[world, p]
        )
