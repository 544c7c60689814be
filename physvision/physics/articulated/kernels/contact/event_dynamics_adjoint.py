"""Adjoints of the dynamics of flights and impacts, without their constraint blocks; see `event_adjoint`."""

import warp as wp

from ..dynamics.forward import solve_inertia_inward, solve_inertia_outward
from ..dynamics.inverse import dynamics_residual_backward, propagate_accelerations, propagate_virtual_motion
from ..dynamics.joint_forces import apply_joint_forces
from ..dynamics.kinematics import forward_kinematics
from ..precision import scalar
from ..structs import Contact, System, Tree, Workspace
from .events import FLIGHT
from .midpoint_step import (
    FREE_MIDPOINT,
    NO_MIDPOINT,
    clear_midpoint_adjoint,
    go_to_midpoint_backward,
    update_midpoint_velocity_backward,
)


@wp.func
def joint_forces_time_derivative(tree: Tree, work: Workspace, world: int, row: int, h: scalar):
    """Return the derivative of λ · (damping and servos at the end of a flight) with respect to its time h."""
    total = scalar(0.0)
    for d in range(tree.velocities):
        multiplier = work.multiplier[world, row, d]
        total += multiplier * work.damping[world, d] * work.a[world, row, d]
        if tree.servo_link[d] >= 0:
            after = work.v[world, row, d] + h * work.a[world, row, d]
            total += multiplier * tree.joint_stiffness[world, tree.servo_link[d]] * after
    return total


@wp.func(inline=True)
def dynamics_backward(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, row: int):
    """Add λᵀ ID(q, v, a) of a flight, or −λᵀ M (v′ − v) of an impact, to the adjoints in `row` and the gradients.

    M is what inverse dynamics at rest, in the spare row, adds for an acceleration. A flight with a midpoint has two
    evaluations (`midpoint_step`); with contacts at the midpoint this is one of them. Returns the derivative of a
    flight's term with respect to the remaining time.
    """
    is_flight = contact.events.kind[world, row] == FLIGHT
    spare = s.model.max_events + 1
    midpoint = s.model.max_events + 2
    target = wp.int32(row)
    state_row = wp.int32(row)
    interval = contact.events.remaining_time[world, row]
    evaluations = wp.int32(1)
    remaining_bar = scalar(0.0)
    uses_midpoint = contact.events.uses_midpoint[world, row]
    if uses_midpoint != NO_MIDPOINT:
        state_row = midpoint
    if uses_midpoint == FREE_MIDPOINT:
        evaluations = 2
        clear_midpoint_adjoint(tree, work, world, midpoint)
    if not is_flight:
        target = spare
        state_row = spare
        interval = scalar(0.0)
        evaluations = 2
        for k in range(tree.positions):
            work.q[world, spare, k] = work.q[world, row, k]
        for d in range(tree.velocities):
            work.q_bar[world, spare, d] = scalar(0.0)
            work.v_bar[world, spare, d] = scalar(0.0)
            work.v[world, spare, d] = scalar(0.0)
        forward_kinematics(tree, work, world, spare)
    for evaluation in range(evaluations):
        if is_flight and evaluation == 1:
            remaining_bar += update_midpoint_velocity_backward(tree, work, contact, world, row, midpoint, interval)
            forward_kinematics(tree, work, world, midpoint)
            solve_inertia_inward(tree, work, world, work.a_bar, row)
            solve_inertia_outward(tree, work, world, work.multiplier, row)
        if is_flight:
            remaining_bar += joint_forces_time_derivative(tree, work, world, row, interval)
        else:
            apply_joint_forces(tree, work, s.forces, world, step, spare, scalar(0.0))
            for d in range(tree.velocities):
                velocity_change = work.v[world, row + 1, d] - work.v[world, row, d]
                work.a[world, spare, d] = scalar(1 - evaluation) * velocity_change
                work.multiplier[world, spare, d] = scalar(2 * evaluation - 1) * work.multiplier[world, row, d]
            propagate_virtual_motion(tree, work, world, spare)
        if contact.events.count[world, row] > 0 or evaluation > 0:
            propagate_accelerations(tree, work, world, target)
        dynamics_residual_backward(tree, work, s.forces, s.gradients, world, step, target, state_row, interval)
    if uses_midpoint == FREE_MIDPOINT:
        remaining_bar += go_to_midpoint_backward(tree, work, contact, world, row, midpoint, interval)
    if not is_flight:
        for d in range(tree.velocities):
            work.q_bar[world, row, d] = work.q_bar[world, row, d] + work.q_bar[world, spare, d]
    return remaining_bar
