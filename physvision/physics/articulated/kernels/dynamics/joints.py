"""Positions on the manifold of each joint: read, advance, and the adjoint of advancing."""

import warp as wp

from physvision.physics.articulated.kernels.precision import scalar, vec3, vec4
from physvision.physics.articulated.kernels.spatial.rotations import (
    left_jacobian,
    lift_of,
    quaternion_exp,
    quaternion_log,
    quaternion_product,
    right_jacobian_inverse,
    rotated_by,
    tangent_of,
)
from physvision.physics.articulated.kernels.structs import BALL, FREE, PRISMATIC, Gradients, Tree, Workspace


@wp.func
def read3(values: wp.array3d(dtype=scalar), world: int, row: int, start: int):
    return vec3(values[world, row, start], values[world, row, start + 1], values[world, row, start + 2])


@wp.func
def read4(values: wp.array3d(dtype=scalar), world: int, row: int, start: int):
    return vec4(
        values[world, row, start],
        values[world, row, start + 1],
        values[world, row, start + 2],
        values[world, row, start + 3],
    )


@wp.func
def reference4(tree: Tree, world: int, start: int):
    return vec4(
        tree.spring_reference[world, start],
        tree.spring_reference[world, start + 1],
        tree.spring_reference[world, start + 2],
        tree.spring_reference[world, start + 3],
    )


@wp.func
def add3(values: wp.array3d(dtype=scalar), world: int, row: int, start: int, x: vec3):
    values[world, row, start] = values[world, row, start] + x[0]
    values[world, row, start + 1] = values[world, row, start + 1] + x[1]
    values[world, row, start + 2] = values[world, row, start + 2] + x[2]


@wp.func
def advance(
    tree: Tree,
    world: int,
    q: wp.array3d(dtype=scalar),
    origin: int,
    target: int,
    rate: wp.array3d(dtype=scalar),
    rate_row: int,
    h: scalar,
):
    """q[target] = q[origin] ⊕ h · rate: positions add, quaternions multiply with exp(h ω) and are normalised."""
    for i in range(tree.links):
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
            turned = wp.normalize(quaternion_product(read4(q, world, origin, p), step))
            for k in range(4):
                q[world, target, p + k] = turned[k]
        else:
            q[world, target, p] = q[world, origin, p] + h * rate[world, rate_row, d]


@wp.func
def advance_backward(
    tree: Tree,
    world: int,
    end_bar: wp.array3d(dtype=scalar),
    end_row: int,
    rate: wp.array3d(dtype=scalar),
    rate_row: int,
    rate_bar: wp.array3d(dtype=scalar),
    rate_bar_row: int,
    start_bar: wp.array3d(dtype=scalar),
    start_row: int,
    h: scalar,
):
    """Adjoint of `advance`, all positions on the tangent: adds to start_bar[start_row] and rate_bar[rate_bar_row].

    q exp(δ) exp(h ω + h δω) = q exp(h ω) exp(δ′) with δ′ = exp(−h ω) δ + J_r(h ω) h δω, hence the adjoints
    δ̄ = exp(h ω) δ̄′ and ω̄ = h J_r(h ω)ᵀ δ̄′. start_bar may be end_bar: each number is read before it is written.
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
            turn = h * read3(rate, world, rate_row, d)
            bar = read3(end_bar, world, end_row, d)
            add3(rate_bar, world, rate_bar_row, d, h * left_jacobian(turn, bar))
            add3(start_bar, world, start_row, d, rotated_by(turn, bar))
        else:
            bar1 = end_bar[world, end_row, d]
            rate_bar[world, rate_bar_row, d] = rate_bar[world, rate_bar_row, d] + h * bar1
            start_bar[world, start_row, d] = start_bar[world, start_row, d] + bar1


@wp.func
def add_tangent(
    tree: Tree,
    world: int,
    q: wp.array3d(dtype=scalar),
    gradient: wp.array3d(dtype=scalar),
    row: int,
    tangent: wp.array3d(dtype=scalar),
    tangent_row: int,
):
    """tangent[tangent_row] += the gradient to q[row], turned from numbers of q into displacements."""
    for i in range(tree.links):
        joint = tree.joint[i]
        p = tree.first_position[i]
        d = tree.first_velocity[i]
        if joint == BALL or joint == FREE:
            if joint == FREE:
                add3(tangent, world, tangent_row, d, read3(gradient, world, row, p))
                p += 3
                d += 3
            turn = tangent_of(read4(q, world, row, p), read4(gradient, world, row, p))
            add3(tangent, world, tangent_row, d, turn)
        else:
            tangent[world, tangent_row, d] = tangent[world, tangent_row, d] + gradient[world, row, p]


@wp.func
def write_lifted(
    tree: Tree,
    world: int,
    q: wp.array3d(dtype=scalar),
    row: int,
    tangent: wp.array3d(dtype=scalar),
    tangent_row: int,
    gradient: wp.array2d(dtype=scalar),
):
    """Gradient = the tangent gradient at q[row] in numbers of q."""
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
            lifted = lift_of(read4(q, world, row, p), read3(tangent, world, tangent_row, d))
            for k in range(4):
                gradient[world, p + k] = lifted[k]
        else:
            gradient[world, p] = tangent[world, tangent_row, d]


@wp.func
def spring_turn(tree: Tree, work: Workspace, world: int, row: int, p: int):
    """The rotation vector from a ball joint's spring at rest to where it is."""
    rest = reference4(tree, world, p)
    return quaternion_log(quaternion_product(vec4(rest[0], -rest[1], -rest[2], -rest[3]), read4(work.q, world, row, p)))


@wp.func
def spring_force(tree: Tree, work: Workspace, world: int, row: int, i: int, force: wp.array2d(dtype=scalar)):
    """Force -= k · displacement, for the joint of link i."""
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
        turn = spring_turn(tree, work, world, row, p)
        for c in range(3):
            force[world, d + c] = force[world, d + c] - k * turn[c]
    else:
        force[world, d] = force[world, d] - k * (work.q[world, row, p] - tree.spring_reference[world, p])


@wp.func
def spring_backward(tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, i: int):
    """Adjoint of λᵀ(k · displacement).

    For a ball joint the displacement is θ = log(rest⁻¹ q): δθ = J_r(θ)⁻¹ δ for q exp(δ), and −J_l(θ)⁻¹ δ for
    rest exp(δ); with J_l(θ) = J_r(−θ) = J_r(θ)ᵀ the adjoints need one function only.
    """
    joint = tree.joint[i]
    p = tree.first_position[i]
    d = tree.first_velocity[i]
    if joint == BALL or joint == FREE:
        if joint == FREE:
            for c in range(3):
                shift_spring_backward(tree, work, gradients, world, row, i, p + c, d + c)
            p += 3
            d += 3
        k = tree.joint_stiffness[world, i]
        turn = spring_turn(tree, work, world, row, p)
        pulls = vec3(
            work.multiplier[world, row, d], work.multiplier[world, row, d + 1], work.multiplier[world, row, d + 2]
        )
        add3(work.q_bar, world, row, d, k * right_jacobian_inverse(-turn, pulls))
        if gradients.wanted != 0:
            gradients.joint_stiffness[world, i] = gradients.joint_stiffness[world, i] + wp.dot(pulls, turn)
            lifted = lift_of(reference4(tree, world, p), -k * right_jacobian_inverse(turn, pulls))
            for c in range(4):
                gradients.spring_reference[world, p + c] = gradients.spring_reference[world, p + c] + lifted[c]
    else:
        shift_spring_backward(tree, work, gradients, world, row, i, p, d)


@wp.func
def shift_spring_backward(
    tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, i: int, p: int, d: int
):
    """The same for one number of a position that is not a quaternion."""
    pull = work.multiplier[world, row, d]
    held = tree.joint_stiffness[world, i] * pull
    work.q_bar[world, row, d] = work.q_bar[world, row, d] + held
    if gradients.wanted != 0:
        gradients.spring_reference[world, p] = gradients.spring_reference[world, p] - held
        gradients.joint_stiffness[world, i] = gradients.joint_stiffness[world, i] + pull * (
            work.q[world, row, p] - tree.spring_reference[world, p]
        )


@wp.func
def is_single_axis(joint: int):
    return joint <= PRISMATIC
