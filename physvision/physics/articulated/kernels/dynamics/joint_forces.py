"""Forces of joints (damping, dry friction, springs, actuator states), and external wrenches on bodies."""

import warp as wp

from ..precision import scalar
from ..spatial.vectors import transpose_product, zero3
from ..structs import Forces, Gradients, Tree, Workspace
from .joints import add3, read3, subtract_spring_force


@wp.func
def smoothed_sign_rate(x: scalar):
    """Return tanh(x) / x, which makes Coulomb friction a damping that falls with speed."""
    if wp.abs(x) < scalar(1.0e-3):
        return scalar(1.0) - x * x / scalar(3.0)
    return wp.tanh(x) / x


@wp.func
def smoothed_sign_rate_slope(x: scalar):
    """Return the derivative of `smoothed_sign_rate`."""
    if wp.abs(x) < scalar(1.0e-2):
        return x * (scalar(-2.0) / scalar(3.0) + x * x * (scalar(8.0) / scalar(15.0)))
    t = wp.tanh(x)
    return (scalar(1.0) - t * t - t / x) / x


@wp.func
def free_joint_force(tree: Tree, work: Workspace, forces: Forces, world: int, step: int, i: int):
    """Return the external force on the coordinates of free link i, in the axes of the link."""
    d = tree.first_velocity[i]
    force = zero3()
    for k in range(3):
        force = force + forces.torque[world, step, d + k] * work.axis_linear[world, d + k]
    return transpose_product(work.orientation[world, i], force)


@wp.func
def add_centering_moments(tree: Tree, work: Workspace, forces: Forces, world: int, step: int):
    """Add the moments −c × f about the centers of mass by the external forces f on free links.

    These act where the coordinates of the joint have their origin, at −c from the center of mass.
    """
    for m in range(tree.centered_links):
        i = tree.centered_link[m]
        d = tree.first_velocity[i] + 3
        moment = wp.cross(free_joint_force(tree, work, forces, world, step, i), tree.link_center[world, i])
        for k in range(3):
            work.rhs[world, d + k] = work.rhs[world, d + k] + moment[k]


@wp.func
def centering_moments_backward(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    gradients: Gradients,
    world: int,
    step: int,
    row: int,
    state_row: int,
):
    """Compute the adjoint of −λ · (moments of `add_centering_moments`) = λ · (c × f), for links placed at `state_row`.

    A rotation δ of the link changes f by f × δ.
    """
    for m in range(tree.centered_links):
        i = tree.centered_link[m]
        d = tree.first_velocity[i]
        center = tree.link_center[world, i]
        force = free_joint_force(tree, work, forces, world, step, i)
        multiplier = read3(work.multiplier, world, row, d + 3)
        force_bar = wp.cross(multiplier, center)
        add3(work.q_bar, world, state_row, d + 3, wp.cross(force_bar, force))
        along = work.orientation[world, i] * force_bar
        for k in range(3):
            gradients.torque[world, step, d + k] = gradients.torque[world, step, d + k] + wp.dot(
                work.axis_linear[world, d + k], along
            )
        if gradients.is_requested != 0:
            gradients.link_center[world, i] = gradients.link_center[world, i] + wp.cross(force, multiplier)


@wp.func
def apply_joint_forces(tree: Tree, work: Workspace, forces: Forces, world: int, step: int, row: int, h: scalar):
    """Write torque − damping · velocity − spring force to `rhs`, for a step of length h.

    The spring of a servo acts at the end of the step, k (q + h v′ − q*): that is the spring force at the start, and a
    damping of h k.
    """
    for d in range(tree.velocities):
        drag = tree.joint_damping[world, d]
        if tree.servo_link[d] >= 0:
            drag = drag + h * tree.joint_stiffness[world, tree.servo_link[d]]
        if tree.has_dry_friction != 0:
            speed = work.v[world, row, d] / tree.dry_friction_velocity
            drag = drag + tree.friction_loss[world, d] / tree.dry_friction_velocity * smoothed_sign_rate(speed)
        work.damping[world, d] = drag
        work.rhs[world, d] = forces.torque[world, step, d] - drag * work.v[world, row, d]
    for k in range(tree.couplings):
        d = tree.coupling_target[k]
        if d < tree.velocities:
            force = tree.coupling_gain[k] * work.v[world, row, tree.coupling_source[k]]
            work.rhs[world, d] = work.rhs[world, d] + force
    add_centering_moments(tree, work, forces, world, step)
    if tree.has_springs != 0:
        for i in range(tree.links):
            subtract_spring_force(tree, work, world, row, i, work.rhs)


@wp.func
def gather_wrenches(tree: Tree, work: Workspace, forces: Forces, world: int, step: int):
    """Sum the wrenches on the bodies of every link, moved from centers of mass to the link's frame."""
    for i in range(tree.links):
        work.wrench_force[world, i] = zero3()
        work.wrench_moment[world, i] = zero3()
    for body in range(tree.bodies):
        i = tree.body_link[body]
        if i >= 0:
            force = forces.body_force[world, step, body]
            center = work.orientation[world, i] * tree.center[world, body]
            work.wrench_force[world, i] = work.wrench_force[world, i] + force
            work.wrench_moment[world, i] = (
                work.wrench_moment[world, i] + forces.body_moment[world, step, body] + wp.cross(center, force)
            )


@wp.func
def wrenches_backward(tree: Tree, work: Workspace, forces: Forces, gradients: Gradients, world: int, step: int):
    """Compute the adjoint of −(virtual work of the wrenches) under the virtual motion of λ.

    The work is N·ω_λ + F·(v_λ + ω_λ × c). In the link's frame, a rotation ψ changes F by −ψ × F, so the adjoint of ψ is
    N × ω_λ + F × (v_λ + ω_λ × c); `orientation_bar` accumulates it from the leaves to the root.
    """
    for body in range(tree.bodies):
        i = tree.body_link[body]
        if i >= 0:
            orientation = work.orientation[world, i]
            force = forces.body_force[world, step, body]
            moment = forces.body_moment[world, step, body]
            angular = work.virtual_angular[world, i]
            center_motion = work.virtual_linear[world, i] + wp.cross(angular, orientation * tree.center[world, body])
            gradients.body_force[world, step, body] = gradients.body_force[world, step, body] - center_motion
            gradients.body_moment[world, step, body] = gradients.body_moment[world, step, body] - angular
            work.orientation_bar[world, i] = (
                work.orientation_bar[world, i] + wp.cross(moment, angular) + wp.cross(force, center_motion)
            )
            if gradients.is_requested != 0:
                gradients.center[world, body] = gradients.center[world, body] - transpose_product(
                    orientation, wp.cross(force, angular)
                )


@wp.func
def joint_forces_backward(
    tree: Tree, work: Workspace, gradients: Gradients, world: int, step: int, row: int, d: int, h: scalar
):
    """Compute the adjoint of λ (armature q̈ + B(v) (h q̈ + v) − τ) with the damping B."""
    multiplier = work.multiplier[world, row, d]
    velocity = work.v[world, row, d]
    acceleration = work.a[world, row, d]
    damping_bar = multiplier * (h * acceleration + velocity)
    bar = multiplier * work.damping[world, d]
    gradients.torque[world, step, d] = gradients.torque[world, step, d] - multiplier
    if tree.has_dry_friction != 0:
        speed = velocity / tree.dry_friction_velocity
        friction = tree.friction_loss[world, d] / tree.dry_friction_velocity
        bar = bar + damping_bar * friction * smoothed_sign_rate_slope(speed) / tree.dry_friction_velocity
        if gradients.is_requested != 0:
            rate = smoothed_sign_rate(speed) / tree.dry_friction_velocity
            gradients.friction_loss[world, d] = gradients.friction_loss[world, d] + damping_bar * rate
    if gradients.is_requested != 0:
        gradients.joint_damping[world, d] = gradients.joint_damping[world, d] + damping_bar
        link = tree.servo_link[d]
        if link >= 0:
            gradients.joint_stiffness[world, link] = gradients.joint_stiffness[world, link] + h * damping_bar
        gradients.armature[world, d] = gradients.armature[world, d] + multiplier * acceleration
    work.v_bar[world, row, d] = work.v_bar[world, row, d] + bar


@wp.func
def couplings_backward(tree: Tree, work: Workspace, world: int, row: int):
    """Compute the adjoint of −λ · (forces of coupled velocities)."""
    for k in range(tree.couplings):
        d = tree.coupling_target[k]
        if d < tree.velocities:
            source = tree.coupling_source[k]
            bar = work.multiplier[world, row, d] * tree.coupling_gain[k]
            work.v_bar[world, row, source] = work.v_bar[world, row, source] - bar
