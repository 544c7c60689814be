"""Inverse dynamics by the recursive Newton–Euler algorithm, and its reverse, which all gradients of the dynamics use.

Reverse mode. Let λ be fixed and w the virtual motion of the links under λ (w_i = X w_parent + S λ_i, at velocity zero).
Then λᵀ ID(q, v, q̈) = Σ_i w_i · (I a_i + v_i ×* I v_i), without a sweep of forces. With h = I v and y = w × v, since w
· (v ×* h) = y · h, the adjoints of the motions of link i gain

    w̄ += I a + v ×* h      ā += I w      v̄ += I y − w ×* h

and v̄ += v_J ×* ā for the bias v × v_J. A link passes all three to its parent as it would pass forces. A rotation δ of
the joint changes X y_parent by −S δ × X y_parent for each of the three motions y, so q̄ = −Σ ȳ · (S × X y_parent). The
scalar is linear in mass, first moment and inertia, whose gradients are read off.

Forward dynamics solves res(q, v, q̈, τ, θ) = ID + B(v)(v + h q̈) + K(q) − τ − wrenches = 0 for q̈, with the damping B
(implicit over the time h) and the forces K of springs. With λ from
∂res/∂q̈ᵀ λ = −∂L/∂q̈ the implicit function theorem gives ∂L/∂(q, v, τ, θ) = λᵀ ∂res/∂(q, v, τ, θ).
"""

import warp as wp

from ..precision import Array2d, scalar, vec3
from ..spatial.vectors import transpose_product, zero3
from ..structs import (
    FREE,
    Forces,
    ForcesStruct,
    Gradients,
    GradientsStruct,
    Tree,
    TreeStruct,
    Workspace,
    WorkspaceStruct,
)
from .fluid_drag import add_fluid_drag, fluid_drag_backward
from .joint_forces import (
    apply_joint_forces,
    centering_moments_backward,
    couplings_backward,
    gather_wrenches,
    joint_forces_backward,
    wrenches_backward,
)
from .joints import spring_backward, write_coordinate_gradient
from .kinematics import (
    add_joint_gradient,
    add_placement_gradient,
    finish_rotation_gradient,
    forward_kinematics,
    in_parent_axes,
    link_or_world,
    transported_angular_acceleration,
    transported_linear_acceleration,
)


@wp.func
def propagate_accelerations(tree: Tree, work: Workspace, world: int, row: int):
    """Compute the acceleration of every link from work.a[row] across the joints."""
    for i in range(tree.links):
        angular = transported_angular_acceleration(tree, work, world, i)
        linear = transported_linear_acceleration(tree, work, world, i)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            angular = angular + work.a[world, row, d] * work.axis_angular[world, d]
            linear = linear + work.a[world, row, d] * work.axis_linear[world, d]
        work.angular_acceleration[world, i] = angular
        work.linear_acceleration[world, i] = linear


@wp.func
def propagate_virtual_motion(tree: Tree, work: Workspace, world: int, row: int):
    """Compute the virtual motion of every link under λ."""
    for i in range(tree.links):
        parent = tree.parent[i]
        angular = link_or_world(work.virtual_angular, world, parent)
        linear = link_or_world(work.virtual_linear, world, parent) + wp.cross(angular, work.offset[world, i])
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            angular = angular + work.multiplier[world, row, d] * work.axis_angular[world, d]
            linear = linear + work.multiplier[world, row, d] * work.axis_linear[world, d]
        work.virtual_angular[world, i] = angular
        work.virtual_linear[world, i] = linear


@wp.func(inline=True)
def clear_motion_adjoints(work: Workspace, world: int, i: int):
    """Clear the adjoints of the motions of link i."""
    work.velocity_bar_angular[world, i] = zero3()
    work.velocity_bar_linear[world, i] = zero3()
    work.acceleration_bar_angular[world, i] = zero3()
    work.acceleration_bar_linear[world, i] = zero3()
    work.virtual_bar_angular[world, i] = zero3()
    work.virtual_bar_linear[world, i] = zero3()
    work.orientation_bar[world, i] = zero3()


@wp.func(inline=True)
def dynamics_residual_backward(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    gradients: Gradients,
    world: int,
    step: int,
    row: int,
    state_row: int,
    h: scalar,
):
    """Add λᵀ ∂res/∂(q, v, τ, θ) to q_bar, v_bar and the gradients; leave λᵀ ∂ID/∂q̈ in `rhs`.

    Joint forces, λ and q̈ belong to the state of `row`; everything else belongs to the state of
    `state_row`, whose poses the links have.
    """
    for d in range(tree.velocities):
        joint_forces_backward(tree, work, gradients, world, step, row, d, h)
    couplings_backward(tree, work, world, row)
    centering_moments_backward(tree, work, forces, gradients, world, step, row, state_row)
    for i in range(tree.links):
        clear_motion_adjoints(work, world, i)
        if tree.has_springs != 0:
            spring_backward(tree, work, gradients, world, row, i)
    if tree.has_fluid_drag != 0:
        fluid_drag_backward(tree, work, gradients, world)
    if forces.has_wrenches != 0:
        wrenches_backward(tree, work, forces, gradients, world, step)
    for i in range(tree.links - 1, -1, -1):
        link_backward(tree, work, forces, gradients, world, i)
        joint_backward(tree, work, gradients, world, row, state_row, i)


@wp.func
def link_backward(tree: Tree, work: Workspace, forces: Forces, gradients: Gradients, world: int, i: int):
    """Add the contribution of link i to the adjoints of its three motions, and to the gradients."""
    mass = tree.mass[world, i]
    first = work.first_moment[world, i]
    second = work.second_moment[world, i]
    w = work.angular_velocity[world, i]
    v = work.linear_velocity[world, i]
    a_w = work.angular_acceleration[world, i]
    a_v = work.linear_acceleration[world, i]
    l_w = work.virtual_angular[world, i]
    l_v = work.virtual_linear[world, i]
    h_w = second * w + wp.cross(first, v)
    h_v = mass * v - wp.cross(first, w)
    net_moment = second * a_w + wp.cross(first, a_v) + wp.cross(w, h_w) + wp.cross(v, h_v)
    net_force = mass * a_v - wp.cross(first, a_w) + wp.cross(w, h_v)
    y_w = wp.cross(l_w, w)
    y_v = wp.cross(l_w, v) + wp.cross(l_v, w)
    if forces.has_wrenches != 0:
        net_moment = net_moment - work.wrench_moment[world, i]
        net_force = net_force - work.wrench_force[world, i]
    work.virtual_bar_angular[world, i] = work.virtual_bar_angular[world, i] + net_moment
    work.virtual_bar_linear[world, i] = work.virtual_bar_linear[world, i] + net_force
    work.acceleration_bar_angular[world, i] = (
        work.acceleration_bar_angular[world, i] + second * l_w + wp.cross(first, l_v)
    )
    work.acceleration_bar_linear[world, i] = work.acceleration_bar_linear[world, i] + mass * l_v - wp.cross(first, l_w)
    work.velocity_bar_angular[world, i] = work.velocity_bar_angular[world, i] + (
        second * y_w + wp.cross(first, y_v) - wp.cross(l_w, h_w) - wp.cross(l_v, h_v)
    )
    work.velocity_bar_linear[world, i] = work.velocity_bar_linear[world, i] + (
        mass * y_v - wp.cross(first, y_w) - wp.cross(l_w, h_v)
    )
    if gradients.is_requested != 0:
        gradients.mass[world, i] = gradients.mass[world, i] + wp.dot(l_v, a_v) + wp.dot(y_v, v)
        orientation = work.orientation[world, i]
        first_bar = wp.cross(a_v, l_w) + wp.cross(l_v, a_w) + wp.cross(v, y_w) + wp.cross(y_v, w)
        second_bar = wp.outer(l_w, a_w) + wp.outer(y_w, w)
        gradients.first_moment[world, i] = gradients.first_moment[world, i] + transpose_product(orientation, first_bar)
        gradients.inertia[world, i] = gradients.inertia[world, i] + wp.transpose(orientation) * second_bar * orientation


@wp.func
def joint_backward(tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, state_row: int, i: int):
    """Propagate the adjoints of the three motions of link i to its joint coordinates and to its parent.

    Positions and velocities are those of `state_row`, accelerations and λ those of `row`.
    """
    w = work.angular_velocity[world, i]
    v = work.linear_velocity[world, i]
    joint_w = work.joint_angular_velocity[world, i]
    joint_v = work.joint_linear_velocity[world, i]
    a_bar_w = work.acceleration_bar_angular[world, i]
    a_bar_v = work.acceleration_bar_linear[world, i]
    l_bar_w = work.virtual_bar_angular[world, i]
    l_bar_v = work.virtual_bar_linear[world, i]
    # The bias v × v_J depends on v, and on v_J directly besides its part in v.
    v_bar_w = work.velocity_bar_angular[world, i] + wp.cross(joint_w, a_bar_w) + wp.cross(joint_v, a_bar_v)
    v_bar_v = work.velocity_bar_linear[world, i] + wp.cross(joint_w, a_bar_v)
    joint_bar_w = v_bar_w - wp.cross(w, a_bar_w) - wp.cross(v, a_bar_v)
    joint_bar_v = v_bar_v - wp.cross(w, a_bar_v)
    # Motions of the parent: each motion without the joint's own part.
    from_w = w - joint_w
    from_v = v - joint_v
    rotation_bar = -wp.cross(from_w, v_bar_w) - wp.cross(from_v, v_bar_v) + work.orientation_bar[world, i]
    translation_bar = -wp.cross(from_w, v_bar_v)
    joint_rotation_bar = zero3()
    bias_w = work.bias_angular[world, i]
    bias_v = work.bias_linear[world, i]
    from_a_w = work.angular_acceleration[world, i] - bias_w
    from_a_v = work.linear_acceleration[world, i] - bias_v
    from_l_w = work.virtual_angular[world, i]
    from_l_v = work.virtual_linear[world, i]
    joint = tree.joint[i]
    if joint == FREE:
        # Ṡ q̇ = (0, −ω_J × v_J), and the linear columns Rᵀ rotate with the link: δ(Rᵀx) = Rᵀx × δ.
        joint_bar_w = joint_bar_w - wp.cross(joint_v, a_bar_v)
        joint_bar_v = joint_bar_v + wp.cross(joint_w, a_bar_v)
        joint_rotation_bar = wp.cross(joint_bar_v, joint_v)
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        axis_w = work.axis_angular[world, d]
        axis_v = work.axis_linear[world, d]
        acceleration = work.a[world, row, d]
        multiplier = work.multiplier[world, row, d]
        work.v_bar[world, state_row, d] = (
            work.v_bar[world, state_row, d] + wp.dot(axis_w, joint_bar_w) + wp.dot(axis_v, joint_bar_v)
        )
        work.rhs[world, d] = wp.dot(axis_w, a_bar_w) + wp.dot(axis_v, a_bar_v)
        from_a_w = from_a_w - acceleration * axis_w
        from_a_v = from_a_v - acceleration * axis_v
        from_l_w = from_l_w - multiplier * axis_w
        from_l_v = from_l_v - multiplier * axis_v
        if joint == FREE:
            joint_rotation_bar = (
                joint_rotation_bar + wp.cross(a_bar_v, acceleration * axis_v) + wp.cross(l_bar_v, multiplier * axis_v)
            )
    rotation_bar = (
        rotation_bar
        - wp.cross(from_a_w, a_bar_w)
        - wp.cross(from_a_v, a_bar_v)
        - wp.cross(from_l_w, l_bar_w)
        - wp.cross(from_l_v, l_bar_v)
    )
    translation_bar = translation_bar - wp.cross(from_a_w, a_bar_v) - wp.cross(from_l_w, l_bar_v)
    if gradients.is_requested != 0:
        add_placement_gradient(tree, work, gradients, world, state_row, i, rotation_bar, translation_bar)
    add_joint_gradient(tree, work, world, state_row, i, rotation_bar + joint_rotation_bar, translation_bar)
    add_adjoints_to_parent(tree, work, gradients, world, i, v_bar_w, v_bar_v)


@wp.func
def add_adjoints_to_parent(
    tree: Tree, work: Workspace, gradients: Gradients, world: int, i: int, v_bar_w: vec3, v_bar_v: vec3
):
    """Add the adjoints of the three motions to the parent, as forces, and those of offset and gravity."""
    offset = work.offset[world, i]
    acceleration_force = work.acceleration_bar_linear[world, i]
    parent = tree.parent[i]
    if parent >= 0:
        velocity_force = v_bar_v
        virtual_force = work.virtual_bar_linear[world, i]
        work.velocity_bar_linear[world, parent] = work.velocity_bar_linear[world, parent] + velocity_force
        work.velocity_bar_angular[world, parent] = (
            work.velocity_bar_angular[world, parent] + v_bar_w + wp.cross(offset, velocity_force)
        )
        work.acceleration_bar_linear[world, parent] = work.acceleration_bar_linear[world, parent] + acceleration_force
        work.acceleration_bar_angular[world, parent] = (
            work.acceleration_bar_angular[world, parent]
            + work.acceleration_bar_angular[world, i]
            + wp.cross(offset, acceleration_force)
        )
        work.virtual_bar_linear[world, parent] = work.virtual_bar_linear[world, parent] + virtual_force
        work.virtual_bar_angular[world, parent] = (
            work.virtual_bar_angular[world, parent]
            + work.virtual_bar_angular[world, i]
            + wp.cross(offset, virtual_force)
        )
        work.orientation_bar[world, parent] = work.orientation_bar[world, parent] + work.orientation_bar[world, i]
        if gradients.is_requested != 0:
            offset_bar = (
                wp.cross(velocity_force, work.angular_velocity[world, parent])
                + wp.cross(acceleration_force, work.angular_acceleration[world, parent])
                + wp.cross(virtual_force, work.virtual_angular[world, parent])
            )
            gradients.offset[world, i] = gradients.offset[world, i] + in_parent_axes(tree, work, world, i, offset_bar)
    elif gradients.is_requested != 0:
        gradients.gravity[world] = gradients.gravity[world] - acceleration_force


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def inverse_dynamics(first_world: int, tree: TreeStruct, work: WorkspaceStruct, forces: ForcesStruct, torque: Array2d):
    """Compute the torque for (work.q, work.v, work.a); torque and wrenches in `forces` are subtracted."""
    world = first_world + wp.tid()
    forward_kinematics(tree, work, world, 0)
    apply_joint_forces(tree, work, forces, world, 0, 0, scalar(0.0))
    propagate_accelerations(tree, work, world, 0)
    if forces.has_wrenches != 0:
        gather_wrenches(tree, work, forces, world, 0)
    for i in range(tree.links):
        mass = tree.mass[world, i]
        first_moment = work.first_moment[world, i]
        second = work.second_moment[world, i]
        w = work.angular_velocity[world, i]
        v = work.linear_velocity[world, i]
        a_w = work.angular_acceleration[world, i]
        a_v = work.linear_acceleration[world, i]
        h_w = second * w + wp.cross(first_moment, v)
        h_v = mass * v - wp.cross(first_moment, w)
        moment = second * a_w + wp.cross(first_moment, a_v) + wp.cross(w, h_w) + wp.cross(v, h_v)
        force = mass * a_v - wp.cross(first_moment, a_w) + wp.cross(w, h_v)
        if forces.has_wrenches != 0:
            moment = moment - work.wrench_moment[world, i]
            force = force - work.wrench_force[world, i]
        work.moment[world, i] = moment
        work.force[world, i] = force
    if tree.has_fluid_drag != 0:
        add_fluid_drag(tree, work, world)
    for i in range(tree.links - 1, -1, -1):
        moment = work.moment[world, i]
        force = work.force[world, i]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            torque[world, d] = (
                wp.dot(work.axis_angular[world, d], moment)
                + wp.dot(work.axis_linear[world, d], force)
                + tree.armature[world, d] * work.a[world, 0, d]
                - work.rhs[world, d]
            )
        parent = tree.parent[i]
        if parent >= 0:
            work.force[world, parent] = work.force[world, parent] + force
            arm = wp.cross(work.offset[world, i], force)
            work.moment[world, parent] = work.moment[world, parent] + moment + arm


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def inverse_dynamics_backward(
    first_world: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    gradients: GradientsStruct,
    torque_bar: Array2d,
    q_bar: Array2d,
    v_bar: Array2d,
    a_bar: Array2d,
):
    """Compute the adjoint of `inverse_dynamics`: λ is the incoming gradient itself."""
    world = first_world + wp.tid()
    forward_kinematics(tree, work, world, 0)
    apply_joint_forces(tree, work, forces, world, 0, 0, scalar(0.0))
    propagate_accelerations(tree, work, world, 0)
    if forces.has_wrenches != 0:
        gather_wrenches(tree, work, forces, world, 0)
    for d in range(tree.velocities):
        work.multiplier[world, 0, d] = torque_bar[world, d]
        work.q_bar[world, 0, d] = scalar(0.0)
        work.v_bar[world, 0, d] = scalar(0.0)
    propagate_virtual_motion(tree, work, world, 0)
    dynamics_residual_backward(tree, work, forces, gradients, world, 0, 0, 0, scalar(0.0))
    for d in range(tree.velocities):
        v_bar[world, d] = work.v_bar[world, 0, d]
        a_bar[world, d] = work.rhs[world, d] + tree.armature[world, d] * torque_bar[world, d]
    finish_rotation_gradient(tree, gradients, world)
    write_coordinate_gradient(tree, world, work.q, 0, work.q_bar, 0, q_bar)
