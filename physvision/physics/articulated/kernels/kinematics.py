"""Outward: where each link is, and how it moves."""

import warp as wp

from . import scalar
from .joints import read3, read4, write_lifted
from .spatial import mat33, quaternion_matrix, skew, transposed, turned_about_z, vec3
from .tree import (
    BALL,
    FREE,
    PRISMATIC,
    REVOLUTE,
    Gradients,
    GradientsStruct,
    Tree,
    TreeStruct,
    Workspace,
    WorkspaceStruct,
)


@wp.func
def place_joint(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Rotation and offset of link i against its parent, from q[row]."""
    joint = tree.joint[i]
    p = tree.first_position[i]
    rotation = tree.rotation[world, i]
    work.rotation[world, i] = rotation
    work.offset[world, i] = tree.offset[world, i]
    if joint == REVOLUTE:
        work.rotation[world, i] = turned_about_z(rotation, work.q[world, row, p])
    elif joint == PRISMATIC:
        axis = vec3(rotation[2, 0], rotation[2, 1], rotation[2, 2])
        work.offset[world, i] = tree.offset[world, i] + work.q[world, row, p] * axis
    elif joint == BALL or joint == FREE:
        if joint == FREE:
            shift = transposed(rotation, read3(work.q, world, row, p))
            work.offset[world, i] = tree.offset[world, i] + shift
            p += 3
        turned = wp.transpose(quaternion_matrix(read4(work.q, world, row, p)))
        work.rotation[world, i] = turned * rotation
        if joint == FREE:
            # Its linear velocity is given in the axes of the frame it moves in: columns of Rᵀ.
            d = tree.first_velocity[i]
            for k in range(3):
                work.axis_linear[world, d + k] = vec3(turned[0, k], turned[1, k], turned[2, k])


@wp.func
def move_joint(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Velocity of link i across its joint, from v[row]."""
    joint = tree.joint[i]
    d = tree.first_velocity[i]
    z = scalar(0.0)
    work.joint_angular[world, i] = vec3(z, z, z)
    work.joint_linear[world, i] = vec3(z, z, z)
    if joint == REVOLUTE:
        work.joint_angular[world, i] = vec3(z, z, work.v[world, row, d])
    elif joint == PRISMATIC:
        work.joint_linear[world, i] = vec3(z, z, work.v[world, row, d])
    elif joint == BALL:
        work.joint_angular[world, i] = read3(work.v, world, row, d)
    elif joint == FREE:
        work.joint_angular[world, i] = read3(work.v, world, row, d + 3)
        work.joint_linear[world, i] = (
            work.v[world, row, d] * work.axis_linear[world, d]
            + work.v[world, row, d + 1] * work.axis_linear[world, d + 1]
            + work.v[world, row, d + 2] * work.axis_linear[world, d + 2]
        )


@wp.func
def move_links(tree: Tree, work: Workspace, world: int, row: int):
    """Placement, velocity, and velocity-dependent acceleration v × v_J of every link.

    A free joint's axes turn with it, which adds Ṡ q̇ = (0, −ω_J × v_J).
    """
    for i in range(tree.links):
        place_joint(tree, work, world, row, i)
        move_joint(tree, work, world, row, i)
        joint_angular = work.joint_angular[world, i]
        joint_linear = work.joint_linear[world, i]
        angular = joint_angular
        linear = joint_linear
        parent = tree.parent[i]
        if parent >= 0:
            rotation = work.rotation[world, i]
            parent_angular = work.angular[world, parent]
            angular = angular + rotation * parent_angular
            linear = linear + rotation * (work.linear[world, parent] - wp.cross(work.offset[world, i], parent_angular))
        work.angular[world, i] = angular
        work.linear[world, i] = linear
        work.bias_angular[world, i] = wp.cross(angular, joint_angular)
        bias_linear = wp.cross(linear, joint_angular) + wp.cross(angular, joint_linear)
        if tree.joint[i] == FREE:
            bias_linear = bias_linear - wp.cross(joint_angular, joint_linear)
        work.bias_linear[world, i] = bias_linear


@wp.func
def carried_acceleration_linear(tree: Tree, work: Workspace, world: int, i: int):
    """Linear part of the acceleration that the parent and the velocities give link i; the root's is −gravity."""
    parent = tree.parent[i]
    rotation = work.rotation[world, i]
    if parent >= 0:
        return work.bias_linear[world, i] + rotation * (
            work.linear_acceleration[world, parent]
            - wp.cross(work.offset[world, i], work.angular_acceleration[world, parent])
        )
    return work.bias_linear[world, i] - rotation * tree.gravity[world]


@wp.func
def carried_acceleration_angular(tree: Tree, work: Workspace, world: int, i: int):
    """Angular part of the acceleration that the parent and the velocities give link i."""
    parent = tree.parent[i]
    if parent >= 0:
        return work.bias_angular[world, i] + work.rotation[world, i] * work.angular_acceleration[world, parent]
    return work.bias_angular[world, i]


@wp.func
def add_placement_gradient(
    tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, i: int, turn: vec3, shift: vec3
):
    """Gradient to a turn of the placement, from those to a turn and a shift of the link, both in its own frame.

    The placement is turned before the joint is: R_tree exp([φ]×) R_J = R_tree R_J exp([R_Jᵀ φ]×) with
    R_J = E_tree Eᵀ, and what the joint shifts by p turns with it, φ × p.
    """
    joint = tree.joint[i]
    p = tree.first_position[i]
    before = tree.rotation[world, i]
    rotation = work.rotation[world, i]
    found = before * transposed(rotation, turn)
    if joint == PRISMATIC or joint == FREE:
        z = scalar(0.0)
        moved = vec3(z, z, work.q[world, row, p])
        if joint == FREE:
            moved = read3(work.q, world, row, p)
        found = found + wp.cross(moved, before * transposed(rotation, shift))
    gradients.turn[world, i] = gradients.turn[world, i] + found


@wp.func
def add_joint_gradient(tree: Tree, work: Workspace, world: int, row: int, i: int, turn: vec3, shift: vec3):
    """q_bar[row] += gradients to a turn and a shift of link i, both in its own frame."""
    joint = tree.joint[i]
    d = tree.first_velocity[i]
    if joint == REVOLUTE:
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + turn[2]
    elif joint == PRISMATIC:
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + shift[2]
    elif joint == BALL or joint == FREE:
        if joint == FREE:
            for k in range(3):
                along = wp.dot(work.axis_linear[world, d + k], shift)
                work.q_bar[world, row, d + k] = work.q_bar[world, row, d + k] + along
            d += 3
        for k in range(3):
            work.q_bar[world, row, d + k] = work.q_bar[world, row, d + k] + turn[k]


@wp.func
def finish_rotation_gradient(tree: Tree, gradients: Gradients, world: int):
    """From the tangent to the nine numbers of the matrix: E = exp(−[φ]×) E₀, so Ē = −½ [φ̄]× E₀."""
    if gradients.wanted != 0:
        for i in range(tree.links):
            turn = gradients.turn[world, i]
            gradients.rotation[world, i] = scalar(-0.5) * skew(turn) * tree.rotation[world, i]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def link_poses(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    rotation: wp.array2d(dtype=mat33),
    position: wp.array2d(dtype=vec3),
):
    """Rotation (link to world) and position of every link's frame, from work.q."""
    world = first + wp.tid()
    for i in range(tree.links):
        place_joint(tree, work, world, 0, i)
        own = wp.transpose(work.rotation[world, i])
        parent = tree.parent[i]
        if parent >= 0:
            carrier = rotation[world, parent]
            rotation[world, i] = carrier * own
            position[world, i] = position[world, parent] + carrier * work.offset[world, i]
        else:
            rotation[world, i] = own
            position[world, i] = work.offset[world, i]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def link_poses_backward(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    rotation: wp.array2d(dtype=mat33),
    rotation_bar: wp.array2d(dtype=mat33),
    position_bar: wp.array2d(dtype=vec3),
    q_bar: wp.array2d(dtype=scalar),
    gradients: GradientsStruct,
):
    """Adjoint of `link_poses`.

    A turn ψ of link i about its own origin changes its rotation by R [ψ]×, so ψ̄ = 2 axial(skew part of Rᵀ R̄). Each
    link hands its parent Eᵀψ̄ and the pull p̄ at its origin, with its moment r × p̄, all in link coordinates.
    """
    world = first + wp.tid()
    for i in range(tree.links):
        place_joint(tree, work, world, 0, i)
        m = wp.transpose(rotation[world, i]) * rotation_bar[world, i]
        work.moment[world, i] = vec3(m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1])
        work.force[world, i] = transposed(rotation[world, i], position_bar[world, i])
    for k in range(tree.velocities):
        work.q_bar[world, 0, k] = scalar(0.0)
    for backwards in range(tree.links):
        i = tree.links - 1 - backwards
        moment = work.moment[world, i]
        force = work.force[world, i]
        add_joint_gradient(tree, work, world, 0, i, moment, force)
        pull = transposed(work.rotation[world, i], force)
        if gradients.wanted != 0:
            add_placement_gradient(tree, work, gradients, world, 0, i, moment, force)
            gradients.offset[world, i] = gradients.offset[world, i] + pull
        parent = tree.parent[i]
        if parent >= 0:
            work.force[world, parent] = work.force[world, parent] + pull
            work.moment[world, parent] = (
                work.moment[world, parent]
                + transposed(work.rotation[world, i], moment)
                + wp.cross(work.offset[world, i], pull)
            )
    finish_rotation_gradient(tree, gradients, world)
    write_lifted(tree, world, work.q, 0, work.q_bar, 0, q_bar)
