"""Forces of the joints themselves and wrenches on bodies."""

import warp as wp

from . import scalar
from .joints import spring_force
from .spatial import transposed
from .tree import Forces, Gradients, Tree, Workspace


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
def apply_joint_loads(tree: Tree, work: Workspace, forces: Forces, world: int, step: int, row: int):
    """rest = torque − drag · velocity − spring."""
    for d in range(tree.velocities):
        drag = tree.damping[world, d]
        if tree.rubs != 0:
            speed = work.v[world, row, d] / tree.friction_velocity
            drag = drag + tree.friction[world, d] / tree.friction_velocity * smoothed_sign_rate(speed)
        work.drag[world, d] = drag
        work.rest[world, d] = forces.torque[world, step, d] - drag * work.v[world, row, d]
    if tree.springs != 0:
        for i in range(tree.bodies):
            spring_force(tree, work, world, row, i, work.rest)


@wp.func
def turn_wrenches(tree: Tree, work: Workspace, forces: Forces, world: int, step: int):
    """The wrench on every body, from the world's axes at the centre of mass to the body's at its origin."""
    for i in range(tree.bodies):
        own = wp.transpose(work.rotation[world, i])
        parent = tree.parent[i]
        if parent >= 0:
            own = work.orientation[world, parent] * own
        work.orientation[world, i] = own
        push = transposed(own, forces.push[world, step, i])
        work.wrench_force[world, i] = push
        work.wrench_moment[world, i] = transposed(own, forces.twist[world, step, i]) + wp.cross(
            tree.center[world, i], push
        )


@wp.func
def wrenches_backward(
    tree: Tree, work: Workspace, gradients: Gradients, world: int, step: int, i: int
):
    """Adjoint of −(virtual work of the wrench on body i), the virtual motion being that of λ.

    With F, N in body axes, the work is N·ω_λ + F·(v_λ + ω_λ × c). Turning the body by ψ changes F by −ψ × F, so the
    adjoint of ψ is N × ω_λ + F × (v_λ + ω_λ × c); `turning` gathers it from the leaves to the root.
    """
    angular = work.virtual_angular[world, i]
    at_center = work.virtual_linear[world, i] + wp.cross(angular, tree.center[world, i])
    push = work.wrench_force[world, i]
    twist = work.wrench_moment[world, i] - wp.cross(tree.center[world, i], push)
    turn = work.orientation[world, i]
    gradients.push[world, step, i] = gradients.push[world, step, i] - turn * at_center
    gradients.twist[world, step, i] = gradients.twist[world, step, i] - turn * angular
    if gradients.wanted != 0:
        gradients.center[world, i] = gradients.center[world, i] - wp.cross(push, angular)
    work.turning[world, i] = work.turning[world, i] + wp.cross(twist, angular) + wp.cross(push, at_center)


@wp.func
def joint_loads_backward(
    tree: Tree, work: Workspace, gradients: Gradients, world: int, step: int, row: int, d: int, h: scalar
):
    """Adjoint of λ (armature q̈ + B(v) (h q̈ + v) − τ), where B is the drag."""
    multiplier = work.multiplier[world, d]
    velocity = work.v[world, row, d]
    acceleration = work.a[world, row, d]
    held = multiplier * (h * acceleration + velocity)
    bar = multiplier * work.drag[world, d]
    gradients.torque[world, step, d] = gradients.torque[world, step, d] - multiplier
    if tree.rubs != 0:
        speed = velocity / tree.friction_velocity
        friction = tree.friction[world, d] / tree.friction_velocity
        bar = bar + held * friction * smoothed_sign_rate_slope(speed) / tree.friction_velocity
        if gradients.wanted != 0:
            rate = smoothed_sign_rate(speed) / tree.friction_velocity
            gradients.friction[world, d] = gradients.friction[world, d] + held * rate
    if gradients.wanted != 0:
        gradients.damping[world, d] = gradients.damping[world, d] + held
        gradients.armature[world, d] = gradients.armature[world, d] + multiplier * acceleration
    work.v_bar[world, row, d] = work.v_bar[world, row, d] + bar
