"""Outward: where each link is, and how it moves."""

import warp as wp

from physvision.physics.articulated.kernels.precision import mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.rotations import quaternion_matrix, turned_about_z
from physvision.physics.articulated.kernels.spatial.vectors import skew, transposed, zero3
from physvision.physics.articulated.kernels.structs import (
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

from .joints import read3, read4, write_lifted


@wp.func
def of_link(values: wp.array2d(dtype=vec3), world: int, i: int):
    """What a link has, or zero for the world."""
    if i < 0:
        return zero3()
    return values[world, i]


@wp.func
def turned_by_joint(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Orientation of link i in its parent, from q[row]."""
    before = tree.rotation[world, i]
    joint = tree.joint[i]
    p = tree.first_position[i]
    if joint == REVOLUTE:
        return wp.transpose(turned_about_z(before, work.q[world, row, p]))
    if joint == PRISMATIC:
        return wp.transpose(before)
    if joint == FREE:
        p += 3
    return wp.transpose(before) * quaternion_matrix(read4(work.q, world, row, p))


@wp.func
def shifted_by_joint(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Offset of link i in its parent, from q[row]."""
    joint = tree.joint[i]
    p = tree.first_position[i]
    offset = tree.offset[world, i]
    if joint == PRISMATIC:
        before = tree.rotation[world, i]
        return offset + work.q[world, row, p] * vec3(before[2, 0], before[2, 1], before[2, 2])
    if joint == FREE:
        return offset + transposed(tree.rotation[world, i], read3(work.q, world, row, p))
    return offset


@wp.func
def place_joint(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Orientation, offset from its parent and axes of link i, from q[row]."""
    joint = tree.joint[i]
    d = tree.first_velocity[i]
    parent = tree.parent[i]
    if parent >= 0:
        carrier = work.orientation[world, parent]
        work.orientation[world, i] = carrier * turned_by_joint(tree, work, world, row, i)
        work.offset[world, i] = carrier * shifted_by_joint(tree, work, world, row, i)
    else:
        work.orientation[world, i] = turned_by_joint(tree, work, world, row, i)
        work.offset[world, i] = shifted_by_joint(tree, work, world, row, i)
    own = work.orientation[world, i]
    upright = vec3(own[0, 2], own[1, 2], own[2, 2])
    if joint == REVOLUTE:
        work.axis_angular[world, d] = upright
    elif joint == PRISMATIC:
        work.axis_linear[world, d] = upright
    else:
        if joint == FREE:
            # Its linear velocity is given in the axes of the frame it moves in.
            before = tree.rotation[world, i]
            for k in range(3):
                along = vec3(before[k, 0], before[k, 1], before[k, 2])
                if parent >= 0:
                    work.axis_linear[world, d + k] = work.orientation[world, parent] * along
                else:
                    work.axis_linear[world, d + k] = along
            d += 3
        for k in range(3):
            work.axis_angular[world, d + k] = vec3(own[0, k], own[1, k], own[2, k])


@wp.func
def turn_inertia(tree: Tree, work: Workspace, world: int, i: int):
    """First and second moment of link i in the world's axes."""
    own = work.orientation[world, i]
    work.first_moment[world, i] = own * tree.moment[world, i]
    work.second_moment[world, i] = own * tree.inertia[world, i] * wp.transpose(own)


@wp.func
def turned_across(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """The angular velocity across the joint of link i, from v[row]."""
    d = tree.first_velocity[i]
    if tree.joint[i] == REVOLUTE:
        return work.v[world, row, d] * work.axis_angular[world, d]
    total = zero3()
    for k in range(d, tree.first_velocity[i + 1]):
        total = total + work.v[world, row, k] * work.axis_angular[world, k]
    return total


@wp.func
def shifted_across(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """The linear velocity across the joint of link i, from v[row]."""
    total = zero3()
    if tree.joint[i] == REVOLUTE:
        return total
    for k in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        total = total + work.v[world, row, k] * work.axis_linear[world, k]
    return total


@wp.func
def move_links(tree: Tree, work: Workspace, world: int, row: int):
    """Placement, inertia, velocity, and velocity-dependent acceleration v × v_J of every link.

    A free joint's axes turn with it, which adds Ṡ q̇ = (0, −ω_J × v_J).
    """
    for i in range(tree.links):
        place_joint(tree, work, world, row, i)
        turn_inertia(tree, work, world, i)
        joint_angular = turned_across(tree, work, world, row, i)
        joint_linear = shifted_across(tree, work, world, row, i)
        parent = tree.parent[i]
        carried = of_link(work.angular, world, parent)
        angular = joint_angular + carried
        linear = joint_linear + of_link(work.linear, world, parent) + wp.cross(carried, work.offset[world, i])
        work.joint_angular[world, i] = joint_angular
        work.joint_linear[world, i] = joint_linear
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
    if parent >= 0:
        return (
            work.bias_linear[world, i]
            + work.linear_acceleration[world, parent]
            + wp.cross(work.angular_acceleration[world, parent], work.offset[world, i])
        )
    return work.bias_linear[world, i] - tree.gravity[world]


@wp.func
def carried_acceleration_angular(tree: Tree, work: Workspace, world: int, i: int):
    """Angular part of the acceleration that the parent and the velocities give link i."""
    parent = tree.parent[i]
    if parent >= 0:
        return work.bias_angular[world, i] + work.angular_acceleration[world, parent]
    return work.bias_angular[world, i]


@wp.func
def in_parent(tree: Tree, work: Workspace, world: int, i: int, a: vec3):
    """A vector in the axes of link i's parent."""
    parent = tree.parent[i]
    found = a
    if parent >= 0:
        found = transposed(work.orientation[world, parent], a)
    return found


@wp.func
def add_placement_gradient(
    tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, i: int, turn: vec3, shift: vec3
):
    """Gradient to a turn of the placement, from those to a turn and a shift of the link, both about its origin.

    The placement is turned before the joint is: R_tree exp([φ]×) R_J = R_tree R_J exp([R_Jᵀ φ]×) with
    R_J = E_tree Eᵀ, and what the joint shifts by p turns with it, φ × p.
    """
    joint = tree.joint[i]
    p = tree.first_position[i]
    before = tree.rotation[world, i]
    found = before * in_parent(tree, work, world, i, turn)
    if joint == PRISMATIC or joint == FREE:
        z = scalar(0.0)
        moved = vec3(z, z, work.q[world, row, p])
        if joint == FREE:
            moved = read3(work.q, world, row, p)
        found = found + wp.cross(moved, before * in_parent(tree, work, world, i, shift))
    gradients.turn[world, i] = gradients.turn[world, i] + found


@wp.func
def add_joint_gradient(tree: Tree, work: Workspace, world: int, row: int, i: int, turn: vec3, shift: vec3):
    """q_bar[row] += gradients to a turn and a shift of link i, both about its origin."""
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        along = wp.dot(work.axis_angular[world, d], turn) + wp.dot(work.axis_linear[world, d], shift)
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + along


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
        rotation[world, i] = work.orientation[world, i]
        position[world, i] = work.offset[world, i]
        parent = tree.parent[i]
        if parent >= 0:
            position[world, i] = position[world, parent] + work.offset[world, i]


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
    link hands its parent R ψ̄ and the pull p̄ at its origin, with its moment r × p̄, all in the world's axes.
    """
    world = first + wp.tid()
    for i in range(tree.links):
        place_joint(tree, work, world, 0, i)
        m = wp.transpose(rotation[world, i]) * rotation_bar[world, i]
        turned = vec3(m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1])
        work.moment[world, i] = rotation[world, i] * turned
        work.force[world, i] = position_bar[world, i]
    for k in range(tree.velocities):
        work.q_bar[world, 0, k] = scalar(0.0)
    for i in range(tree.links - 1, -1, -1):
        moment = work.moment[world, i]
        force = work.force[world, i]
        add_joint_gradient(tree, work, world, 0, i, moment, force)
        if gradients.wanted != 0:
            add_placement_gradient(tree, work, gradients, world, 0, i, moment, force)
            gradients.offset[world, i] = gradients.offset[world, i] + in_parent(tree, work, world, i, force)
        parent = tree.parent[i]
        if parent >= 0:
            work.force[world, parent] = work.force[world, parent] + force
            arm = wp.cross(work.offset[world, i], force)
            work.moment[world, parent] = work.moment[world, parent] + moment + arm
    finish_rotation_gradient(tree, gradients, world)
    write_lifted(tree, world, work.q, 0, work.q_bar, 0, q_bar)
