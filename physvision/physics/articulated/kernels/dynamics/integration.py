"""One substep of a Runge–Kutta tableau, and its adjoint: predict the velocity at the end, then integrate positions.

The workspace has a row for every evaluation of the dynamics; the row after the last holds the end of the step. The loop
over rows calls `forward_dynamics` at one place only: called from two places it would not be inlined, and each call
would copy its arguments, some kilobytes. Velocity jumps belong between the two halves.
"""

import warp as wp

from ..precision import scalar
from ..structs import Schedule, Tree, Workspace
from .joints import integrate_positions, integrate_positions_backward


@wp.func
def begin_stage(tree: Tree, work: Workspace, schedule: Schedule, world: int, row: int):
    """Write the state of a stage: stage s is at q ⊕ h c_s v_{s−1} and v + h c_s q̈_{s−1}, with its fraction c_s."""
    stage = row % schedule.stages
    if stage > 0:
        start = row - stage
        interval = schedule.stage_fraction[stage] * schedule.h
        for d in range(tree.velocities):
            work.v[world, row, d] = work.v[world, start, d] + interval * work.a[world, row - 1, d]
        integrate_positions(tree, world, work.q, start, row, work.v, row - 1, interval)


@wp.func
def begin_stage_backward(tree: Tree, work: Workspace, schedule: Schedule, world: int, row: int):
    """Pass q_bar and v_bar of a stage to the start of the substep and to the previous stage."""
    stage = row % schedule.stages
    if stage > 0:
        start = row - stage
        interval = schedule.stage_fraction[stage] * schedule.h
        integrate_positions_backward(
            tree, world, work.q_bar, row, work.v, row - 1, work.v_bar, row - 1, work.q_bar, start, interval
        )
        for d in range(tree.velocities):
            bar = work.v_bar[world, row, d]
            work.v_bar[world, start, d] = work.v_bar[world, start, d] + bar
            work.a_bar[world, row - 1, d] = work.a_bar[world, row - 1, d] + interval * bar


@wp.func
def predict_velocity(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """Compute v′ = v + h Σ weight q̈ over the stages of the substep, the rows before `end`."""
    start = end - schedule.stages
    for d in range(tree.velocities):
        mean = scalar(0.0)
        for stage in range(schedule.stages):
            mean += schedule.weight[stage] * work.a[world, start + stage, d]
        work.v[world, end, d] = work.v[world, start, d] + schedule.h * mean


@wp.func
def stage_discrepancy(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """Return the difference of two evaluations at the middle of a Runge–Kutta substep, relative to its velocities.

    It is of third order in h: small if the step resolves the motion, and near one where the method is unstable.
    """
    discrepancy = scalar(0.0)
    if schedule.stages > 2:
        start = end - schedule.stages
        max_speed = scalar(0.0)
        for d in range(tree.velocities):
            discrepancy = wp.max(discrepancy, wp.abs(work.a[world, start + 2, d] - work.a[world, start + 1, d]))
            max_speed = wp.max(max_speed, wp.abs(work.v[world, start, d]) + wp.abs(work.v[world, end, d]))
        if discrepancy > scalar(0.0):
            discrepancy = schedule.h * discrepancy / max_speed
    return discrepancy


@wp.func
def predict_velocity_backward(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """Compute the adjoint of `predict_velocity`: add to v_bar of the substep's start, set a_bar of its stages."""
    start = end - schedule.stages
    for d in range(tree.velocities):
        bar = work.v_bar[world, end, d]
        work.v_bar[world, start, d] = work.v_bar[world, start, d] + bar
        for stage in range(schedule.stages):
            work.a_bar[world, start + stage, d] = schedule.h * schedule.weight[stage] * bar


@wp.func
def update_step_velocity(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """Compute the velocity that moves positions over the substep, from that of its stages and the final one."""
    start = end - schedule.stages
    for d in range(tree.velocities):
        rate = (scalar(1.0) - schedule.stage_velocity_weight) * work.v[world, end, d]
        if schedule.stage_velocity_weight > scalar(0.0):
            for stage in range(schedule.stages):
                rate += schedule.stage_velocity_weight * schedule.weight[stage] * work.v[world, start + stage, d]
        work.step_velocity[world, end, d] = rate


@wp.func
def advance_positions(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """Compute q′ = q ⊕ h · step_velocity at the end of the substep."""
    update_step_velocity(tree, work, schedule, world, end)
    integrate_positions(tree, world, work.q, end - schedule.stages, end, work.step_velocity, end, schedule.h)


@wp.func
def advance_positions_backward(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """Compute the adjoint of `advance_positions`: set q_bar and v_bar of the stages, and add to v_bar of the end."""
    start = end - schedule.stages
    update_step_velocity(tree, work, schedule, world, end)
    for d in range(tree.velocities):
        work.step_velocity_bar[world, end, d] = scalar(0.0)
        for stage in range(schedule.stages):
            work.q_bar[world, start + stage, d] = scalar(0.0)
    h = schedule.h
    integrate_positions_backward(
        tree, world, work.q_bar, end, work.step_velocity, end, work.step_velocity_bar, end, work.q_bar, start, h
    )
    for d in range(tree.velocities):
        bar = work.step_velocity_bar[world, end, d]
        work.v_bar[world, end, d] = work.v_bar[world, end, d] + (scalar(1.0) - schedule.stage_velocity_weight) * bar
        for stage in range(schedule.stages):
            work.v_bar[world, start + stage, d] = schedule.stage_velocity_weight * schedule.weight[stage] * bar
