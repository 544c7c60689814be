"""Rollouts with MuJoCo's convex contact, by any Runge–Kutta tableau, and their adjoint."""

import warp as wp

from ..collision.narrow_phase import copy_link_rotations, update_poses_from_links
from ..contact.convex_contact import COMPANION, SPRING
from ..contact.convex_contact_adjoint import contact_block_backward, transmission_row_backward
from ..contact.convex_solver import minimize_cost, solution_backward, write_solution
from ..contact.loop_adjoint import begin_loop_accelerations, end_loop_accelerations, loop_rows_backward
from ..contact.penetrating_contacts import accumulate_impulses, detect_constraints
from ..contact.settings import SOLVER
from ..dynamics.forward import solve_forward_dynamics, solve_inertia_inward, solve_inertia_outward
from ..dynamics.integration import (
    advance_positions,
    advance_positions_backward,
    begin_stage,
    begin_stage_backward,
    predict_velocity,
    predict_velocity_backward,
)
from ..dynamics.inverse import dynamics_residual_backward, propagate_accelerations
from ..dynamics.kinematics import forward_kinematics
from ..precision import FUSED, Array3d, scalar
from ..structs import Contact, Schedule, ScheduleStruct, System, Tree, Workspace
from .template import rollout_kernels
from .trajectory import load_state_adjoint

MAX_RESIDUAL = wp.constant(scalar(SOLVER.max_convex_residual))


@wp.func(inline=True)
def constrained_dynamics(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, row: int, drag_interval: scalar
):
    """Compute work.a[row] = q̈ with contact forces at (work.q[row], work.v[row]).

    Returns the number of contacts, -1 on failure.
    """
    forward_kinematics(tree, work, world, row)
    update_poses_from_links(tree, work, contact, s, world, row)
    solve_forward_dynamics(tree, work, s.forces, world, step, row, drag_interval)
    count = detect_constraints(tree, work, contact, s, world, step, row, drag_interval)
    if count > 0:
        residual = minimize_cost(tree, contact, world, count, s.model.convex.friction_ratio)
        write_solution(tree, work, contact, world)
        solve_inertia_outward(tree, work, world, contact.solver.velocity_change, 0)
        for d in range(tree.velocities):
            work.a[world, row, d] = work.a[world, row, d] + contact.solver.velocity_change[world, 0, d]
        contact.status.residual[world] = wp.max(contact.status.residual[world], residual)
        # NaN fails this comparison.
        if not (residual <= MAX_RESIDUAL):
            count = -1
    return count


@wp.func(inline=True)
def constrained_dynamics_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    row: int,
    drag_interval: scalar,
    count: int,
):
    """Propagate a_bar[row], which is negated, through the last `constrained_dynamics` to q_bar[row] and v_bar[row].

    Contact forces enter the residual of `inverse` as −Jᵀ F.
    """
    for d in range(tree.velocities):
        work.a_bar[world, row, d] = -work.a_bar[world, row, d]
    solve_inertia_inward(tree, work, world, work.a_bar, row)
    if count > 0:
        solution_backward(tree, work, contact, world)
    solve_inertia_outward(tree, work, world, work.multiplier, row)
    if count > 0:
        copy_link_rotations(tree, work, contact, world)
        for d in range(tree.velocities):
            work.step_velocity[world, 0, d] = work.v[world, row, d]
            work.step_velocity[world, 1, d] = work.a[world, row, d]
            work.step_velocity[world, 2, d] = work.multiplier[world, row, d]
        propagate_accelerations(tree, work, world, row)
    if count > 0 and s.model.equalities.count > 0:
        begin_loop_accelerations(tree, work, world)
    for c in range(count):
        law = contact.blocks.law[world, c]
        if contact.solver.mode[world, c] != 0:
            if law == SPRING:
                loop_rows_backward(tree, work, contact, s, world, row, c)
            elif contact.blocks.pair[world, c] >= s.model.candidates:
                transmission_row_backward(tree, work, contact, s, world, step, row, c, drag_interval)
            elif law != COMPANION:
                contact_block_backward(tree, work, contact, s, world, row, c)
    if count > 0 and s.model.equalities.count > 0:
        end_loop_accelerations(tree, work, s, world, row)
    dynamics_residual_backward(tree, work, s.forces, s.gradients, world, step, row, row, drag_interval)


@wp.func(inline=True)
def take_step(
    schedule: Schedule, tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, is_last: int
):
    """Run all stages of a step; returns the row of the state after it, or -1 if a solve fails."""
    last = schedule.stages * schedule.substeps
    end = wp.int32(last)
    for row in range(last):
        begin_stage(tree, work, schedule, world, row)
        drag = schedule.drag_interval
        count = constrained_dynamics(tree, work, contact, s, world, step, row, drag)
        if count < 0:
            end = -1
        if (row + 1) % schedule.stages == 0:
            predict_velocity(tree, work, schedule, world, row + 1)
            advance_positions(tree, work, schedule, world, row + 1)
        if is_last != 0:
            interval = schedule.weight[row % schedule.stages] * schedule.h
            accumulate_impulses(contact, s, world, row, count, interval)
    return end


@wp.func(inline=True)
def step_backward(
    schedule: Schedule,
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    steps: int,
    truncate: int,
    q: Array3d,
    trajectory_q_bar: Array3d,
    trajectory_v_bar: Array3d,
):
    """Run all stages of a step forward, then their adjoints backward; the last factorization serves both ways."""
    last = schedule.stages * schedule.substeps
    load_state_adjoint(tree, work, world, last, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar)
    for visit in range(2 * last - 1):
        row = wp.min(visit, 2 * last - 2 - visit)
        drag = schedule.drag_interval
        if visit < last:
            begin_stage(tree, work, schedule, world, row)
        count = constrained_dynamics(tree, work, contact, s, world, step, row, drag)
        ends_substep = (row + 1) % schedule.stages == 0
        if visit < last and ends_substep:
            predict_velocity(tree, work, schedule, world, row + 1)
            advance_positions(tree, work, schedule, world, row + 1)
        if visit >= last - 1:
            if ends_substep:
                advance_positions_backward(tree, work, schedule, world, row + 1)
                predict_velocity_backward(tree, work, schedule, world, row + 1)
            constrained_dynamics_backward(tree, work, contact, s, world, step, row, drag, count)
            begin_stage_backward(tree, work, schedule, world, row)


_OPTIONS = {"max_unroll": 3, **FUSED}
rollout, rollout_backward = rollout_kernels(
    ScheduleStruct, take_step, step_backward, options=_OPTIONS, backward_options=_OPTIONS
)
