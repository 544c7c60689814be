"""Forces of the joints themselves and wrenches on bodies."""

import warp as wp

from physvision.physics.articulated.kernels.precision import scalar
from physvision.physics.articulated.kernels.spatial.vectors import transposed, zero3
from physvision.physics.articulated.kernels.structs import Forces, Gradients, Tree, Workspace

from .gyroscopic import add_spins
from .joints import spring_force


@wp.func
def smoothed_sign_rate(x: scalar):
    """tanh(x) / x: Coulomb friction as a damping that falls with speed."""
    if wp.abs(x) < scalar(1.0e-3):
        return scalar(1.0) - x * x / scalar(3.0)
    return wp.tanh(x) / x


@wp.func
def smoothed_sign_rate_slope(x: scalar):
    """The derivative of `smoothed_sign_rate`."""
    if wp.abs(x) < scalar(1.0e-2):
        return x * (scalar(-2.0) / scalar(3.0) + x * x * (scalar(8.0) / scalar(15.0)))
    t = wp.tanh(x)
    return (scalar(1.0) - t * t - t / x) / x


@wp.func
def apply_joint_loads(tree: Tree, work: Workspace, forces: Forces, world: int, step: int, row: int, h: scalar):
    """Rest = torque − drag · velocity − spring, for a step of length h.

    A servo's spring is taken where the velocity v′ at the end of the step leads: k (q + h v′ − q*) is the force of the
    spring here, and a drag of h k.
    """
    for d in range(tree.velocities):
        drag = tree.joint_damping[world, d]
        if tree.servo[d] >= 0:
            drag = drag + h * tree.joint_stiffness[world, tree.servo[d]]
        if tree.rubs != 0:
            speed = work.v[world, row, d] / tree.friction_velocity
            drag = drag + tree.friction_loss[world, d] / tree.friction_velocity * smoothed_sign_rate(speed)
        work.drag[world, d] = drag
        work.rest[world, d] = forces.torque[world, step, d] - drag * work.v[world, row, d]
    for k in range(tree.couplings):
        d = tree.coupling_target[k]
        if d < tree.velocities:
            push = tree.coupling_gain[k] * work.v[world, row, tree.coupling_source[k]]
            work.rest[world, d] = work.rest[world, d] + push
    if h > scalar(0.0):
        add_spins(tree, work, world, row, h)
    if tree.springs != 0:
        for i in range(tree.links):
            spring_force(tree, work, world, row, i, work.rest)


@wp.func
def turn_wrenches(tree: Tree, work: Workspace, forces: Forces, world: int, step: int):
    """The wrench on every link: those on its bodies, each brought from its centre of mass to the link's frame."""
    for i in range(tree.links):
        work.wrench_force[world, i] = zero3()
        work.wrench_moment[world, i] = zero3()
    for body in range(tree.bodies):
        i = tree.body_link[body]
        if i >= 0:
            push = forces.push[world, step, body]
            center = work.orientation[world, i] * tree.center[world, body]
            work.wrench_force[world, i] = work.wrench_force[world, i] + push
            work.wrench_moment[world, i] = (
                work.wrench_moment[world, i] + forces.twist[world, step, body] + wp.cross(center, push)
            )


@wp.func
def wrenches_backward(tree: Tree, work: Workspace, forces: Forces, gradients: Gradients, world: int, step: int):
    """Adjoint of −(virtual work of the wrenches), the virtual motion being that of λ.

    The work is N·ω_λ + F·(v_λ + ω_λ × c). To the link, turning it by ψ changes F by −ψ × F, so the
    adjoint of ψ is N × ω_λ + F × (v_λ + ω_λ × c); `turning` gathers it from the leaves to the root.
    """
    for body in range(tree.bodies):
        i = tree.body_link[body]
        if i >= 0:
            orientation = work.orientation[world, i]
            push = forces.push[world, step, body]
            twist = forces.twist[world, step, body]
            angular = work.virtual_angular[world, i]
            at_center = work.virtual_linear[world, i] + wp.cross(angular, orientation * tree.center[world, body])
            gradients.push[world, step, body] = gradients.push[world, step, body] - at_center
            gradients.twist[world, step, body] = gradients.twist[world, step, body] - angular
            work.turning[world, i] = work.turning[world, i] + wp.cross(twist, angular) + wp.cross(push, at_center)
            if gradients.wanted != 0:
                gradients.center[world, body] = gradients.center[world, body] - transposed(
                    orientation, wp.cross(push, angular)
                )


@wp.func
def joint_loads_backward(
    tree: Tree, work: Workspace, gradients: Gradients, world: int, step: int, row: int, d: int, h: scalar
):
    """Adjoint of λ (armature q̈ + B(v) (h q̈ + v) − τ), where B is the drag."""
    multiplier = work.multiplier[world, row, d]
    velocity = work.v[world, row, d]
    acceleration = work.a[world, row, d]
    held = multiplier * (h * acceleration + velocity)
    bar = multiplier * work.drag[world, d]
    gradients.torque[world, step, d] = gradients.torque[world, step, d] - multiplier
    if tree.rubs != 0:
        speed = velocity / tree.friction_velocity
        friction = tree.friction_loss[world, d] / tree.friction_velocity
        bar = bar + held * friction * smoothed_sign_rate_slope(speed) / tree.friction_velocity
        if gradients.wanted != 0:
            rate = smoothed_sign_rate(speed) / tree.friction_velocity
            gradients.friction_loss[world, d] = gradients.friction_loss[world, d] + held * rate
    if gradients.wanted != 0:
        gradients.joint_damping[world, d] = gradients.joint_damping[world, d] + held
        link = tree.servo[d]
        if link >= 0:
            gradients.joint_stiffness[world, link] = gradients.joint_stiffness[world, link] + h * held
        gradients.armature[world, d] = gradients.armature[world, d] + multiplier * acceleration
    work.v_bar[world, row, d] = work.v_bar[world, row, d] + bar


@wp.func
def couplings_backward(tree: Tree, work: Workspace, world: int, row: int):
    """Adjoint of −λ · (what velocities push)."""
    for k in range(tree.couplings):
        d = tree.coupling_target[k]
        if d < tree.velocities:
            source = tree.coupling_source[k]
            bar = work.multiplier[world, row, d] * tree.coupling_gain[k]
            work.v_bar[world, row, source] = work.v_bar[world, row, source] - bar
