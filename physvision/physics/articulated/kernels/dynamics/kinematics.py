"""Forward kinematics: poses, velocities and bias accelerations of links, from the root to the leaves."""

import warp as wp

from ..precision import Array2d, Mat33Array2d, Vec3Array2d, scalar, vec3
from ..spatial.rotations import quaternion_matrix, rotated_about_z
from ..spatial.vectors import skew, transpose_product, zero3
from ..structs import (
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
from .joints import read3, read4, write_coordinate_gradient


@wp.func
def link_or_world(values: Vec3Array2d, world: int, i: int):
    """Return the value of a link, or zero for the world."""
    if i < 0:
        return zero3()
    return values[world, i]


@wp.func
def joint_rotation(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Return the orientation of link i in its parent at q[row]."""
    zero_rotation = tree.rotation[world, i]
    joint = tree.joint[i]
    p = tree.first_position[i]
    if joint == REVOLUTE:
        return wp.transpose(rotated_about_z(zero_rotation, work.q[world, row, p]))
    if joint == PRISMATIC:
        return wp.transpose(zero_rotation)
    if joint == FREE:
        p += 3
    return wp.transpose(zero_rotation) * quaternion_matrix(read4(work.q, world, row, p))


@wp.func
def joint_offset(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Return the offset of link i in its parent at q[row]."""
    joint = tree.joint[i]
    p = tree.first_position[i]
    offset = tree.offset[world, i]
    if joint == PRISMATIC:
        zero_rotation = tree.rotation[world, i]
        return offset + work.q[world, row, p] * vec3(zero_rotation[2, 0], zero_rotation[2, 1], zero_rotation[2, 2])
    if joint == FREE:
        return offset + transpose_product(tree.rotation[world, i], read3(work.q, world, row, p))
    return offset


@wp.func
def place_link(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Compute orientation, offset from the parent and joint axes of link i at q[row]."""
    joint = tree.joint[i]
    d = tree.first_velocity[i]
    parent = tree.parent[i]
    if parent >= 0:
        parent_rotation = work.orientation[world, parent]
        work.orientation[world, i] = parent_rotation * joint_rotation(tree, work, world, row, i)
        work.offset[world, i] = parent_rotation * joint_offset(tree, work, world, row, i)
    else:
        work.orientation[world, i] = joint_rotation(tree, work, world, row, i)
        work.offset[world, i] = joint_offset(tree, work, world, row, i)
    orientation = work.orientation[world, i]
    axis = vec3(orientation[0, 2], orientation[1, 2], orientation[2, 2])
    if joint == REVOLUTE:
        work.axis_angular[world, d] = axis
    elif joint == PRISMATIC:
        work.axis_linear[world, d] = axis
    else:
        if joint == FREE:
            # Its linear velocity is expressed in the axes of the parent frame.
            zero_rotation = tree.rotation[world, i]
            for k in range(3):
                along = vec3(zero_rotation[k, 0], zero_rotation[k, 1], zero_rotation[k, 2])
                if parent >= 0:
                    work.axis_linear[world, d + k] = work.orientation[world, parent] * along
                else:
                    work.axis_linear[world, d + k] = along
            d += 3
        for k in range(3):
            work.axis_angular[world, d + k] = vec3(orientation[0, k], orientation[1, k], orientation[2, k])


@wp.func
def rotate_inertia(tree: Tree, work: Workspace, world: int, i: int):
    """Compute the first and second moment of mass of link i in world axes."""
    orientation = work.orientation[world, i]
    work.first_moment[world, i] = orientation * tree.first_moment[world, i]
    work.second_moment[world, i] = orientation * tree.inertia[world, i] * wp.transpose(orientation)


@wp.func
def joint_angular_velocity(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Return the angular velocity across the joint of link i, from v[row]."""
    d = tree.first_velocity[i]
    if tree.joint[i] == REVOLUTE:
        return work.v[world, row, d] * work.axis_angular[world, d]
    total = zero3()
    for k in range(d, tree.first_velocity[i + 1]):
        total = total + work.v[world, row, k] * work.axis_angular[world, k]
    return total


@wp.func
def joint_linear_velocity(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Return the linear velocity across the joint of link i, from v[row]."""
    total = zero3()
    if tree.joint[i] == REVOLUTE:
        return total
    for k in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        total = total + work.v[world, row, k] * work.axis_linear[world, k]
    return total


@wp.func
def forward_kinematics(tree: Tree, work: Workspace, world: int, row: int):
    """Compute pose, inertia, velocity and velocity-dependent acceleration v × v_J of every link.

    The axes of a free joint rotate with it, which adds Ṡ q̇ = (0, −ω_J × v_J).
    """
    for i in range(tree.links):
        place_link(tree, work, world, row, i)
        rotate_inertia(tree, work, world, i)
        joint_angular = joint_angular_velocity(tree, work, world, row, i)
        joint_linear = joint_linear_velocity(tree, work, world, row, i)
        parent = tree.parent[i]
        carried = link_or_world(work.angular_velocity, world, parent)
        angular = joint_angular + carried
        linear = (
            joint_linear + link_or_world(work.linear_velocity, world, parent) + wp.cross(carried, work.offset[world, i])
        )
        work.joint_angular_velocity[world, i] = joint_angular
        work.joint_linear_velocity[world, i] = joint_linear
        work.angular_velocity[world, i] = angular
        work.linear_velocity[world, i] = linear
        work.bias_angular[world, i] = wp.cross(angular, joint_angular)
        # A vector that one of two branches replaces is copied through memory, for which a processor waits.
        work.bias_linear[world, i] = wp.cross(linear, joint_angular) + wp.cross(angular, joint_linear)
        if tree.joint[i] == FREE:
            work.bias_linear[world, i] = work.bias_linear[world, i] - wp.cross(joint_angular, joint_linear)


@wp.func
def transported_linear_acceleration(tree: Tree, work: Workspace, world: int, i: int):
    """Return the linear acceleration of link i due to its parent and to velocities; that of the world is −gravity."""
    parent = tree.parent[i]
    if parent >= 0:
        return (
            work.bias_linear[world, i]
            + work.linear_acceleration[world, parent]
            + wp.cross(work.angular_acceleration[world, parent], work.offset[world, i])
        )
    return work.bias_linear[world, i] - tree.gravity[world]


@wp.func
def transported_angular_acceleration(tree: Tree, work: Workspace, world: int, i: int):
    """Return the angular acceleration of link i due to its parent and to velocities."""
    parent = tree.parent[i]
    if parent >= 0:
        return work.bias_angular[world, i] + work.angular_acceleration[world, parent]
    return work.bias_angular[world, i]


@wp.func
def in_parent_axes(tree: Tree, work: Workspace, world: int, i: int, a: vec3):
    """Return a vector in the axes of the parent of link i."""
    parent = tree.parent[i]
    local = a
    if parent >= 0:
        local = transpose_product(work.orientation[world, parent], a)
    return local


@wp.func
def add_placement_gradient(
    tree: Tree,
    work: Workspace,
    gradients: Gradients,
    world: int,
    row: int,
    i: int,
    rotation_bar: vec3,
    translation_bar: vec3,
):
    """Add the gradient with respect to a rotation of the link's placement, from those with respect to its pose.

    `turn` and `shift` are the adjoints of a rotation and a translation of the link about its origin. The placement is
    rotated before the joint is: R_tree exp([φ]×) R_J = R_tree R_J exp([R_Jᵀ φ]×) with R_J = E_tree Eᵀ, and the
    translation p of the joint rotates with it, φ × p.
    """
    joint = tree.joint[i]
    p = tree.first_position[i]
    zero_rotation = tree.rotation[world, i]
    tangent = zero_rotation * in_parent_axes(tree, work, world, i, rotation_bar)
    if joint == PRISMATIC or joint == FREE:
        z = scalar(0.0)
        displacement = vec3(z, z, work.q[world, row, p])
        if joint == FREE:
            displacement = read3(work.q, world, row, p)
        tangent = tangent + wp.cross(
            displacement, zero_rotation * in_parent_axes(tree, work, world, i, translation_bar)
        )
    gradients.rotation_tangent[world, i] = gradients.rotation_tangent[world, i] + tangent


@wp.func
def add_joint_gradient(
    tree: Tree, work: Workspace, world: int, row: int, i: int, rotation_bar: vec3, translation_bar: vec3
):
    """Add the gradients with respect to a rotation and a translation of link i about its origin to q_bar[row]."""
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        along = wp.dot(work.axis_angular[world, d], rotation_bar) + wp.dot(work.axis_linear[world, d], translation_bar)
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + along


@wp.func
def finish_rotation_gradient(tree: Tree, gradients: Gradients, world: int):
    """Convert the tangent-space gradient to that of the nine matrix entries: E = exp(−[φ]×) E₀, so Ē = −½ [φ̄]× E₀."""
    if gradients.is_requested != 0:
        for i in range(tree.links):
            tangent = gradients.rotation_tangent[world, i]
            gradients.rotation[world, i] = scalar(-0.5) * skew(tangent) * tree.rotation[world, i]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def link_poses(
    first_world: int, tree: TreeStruct, work: WorkspaceStruct, rotation: Mat33Array2d, position: Vec3Array2d
):
    """Compute rotation (link to world) and position of the frame of every link, from work.q."""
    world = first_world + wp.tid()
    for i in range(tree.links):
        place_link(tree, work, world, 0, i)
        rotation[world, i] = work.orientation[world, i]
        position[world, i] = work.offset[world, i]
        parent = tree.parent[i]
        if parent >= 0:
            position[world, i] = position[world, parent] + work.offset[world, i]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def link_poses_backward(
    first_world: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    rotation: Mat33Array2d,
    rotation_bar: Mat33Array2d,
    position_bar: Vec3Array2d,
    q_bar: Array2d,
    gradients: GradientsStruct,
):
    """Compute the adjoint of `link_poses`.

    A rotation ψ of link i about its own origin changes its rotation matrix by R [ψ]×, so ψ̄ = 2 axial(skew part of Rᵀ
    R̄). Every link passes R ψ̄ and the adjoint p̄ of its position to its parent, with the moment r × p̄, all in world
    axes.
    """
    world = first_world + wp.tid()
    for i in range(tree.links):
        place_link(tree, work, world, 0, i)
        m = wp.transpose(rotation[world, i]) * rotation_bar[world, i]
        axial = vec3(m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1])
        work.moment[world, i] = rotation[world, i] * axial
        work.force[world, i] = position_bar[world, i]
    for k in range(tree.velocities):
        work.q_bar[world, 0, k] = scalar(0.0)
    for i in range(tree.links - 1, -1, -1):
        moment = work.moment[world, i]
        force = work.force[world, i]
        add_joint_gradient(tree, work, world, 0, i, moment, force)
        if gradients.is_requested != 0:
            add_placement_gradient(tree, work, gradients, world, 0, i, moment, force)
            gradients.offset[world, i] = gradients.offset[world, i] + in_parent_axes(tree, work, world, i, force)
        parent = tree.parent[i]
        if parent >= 0:
            work.force[world, parent] = work.force[world, parent] + force
            arm = wp.cross(work.offset[world, i], force)
            work.moment[world, parent] = work.moment[world, parent] + moment + arm
    finish_rotation_gradient(tree, gradients, world)
    write_coordinate_gradient(tree, world, work.q, 0, work.q_bar, 0, q_bar)
