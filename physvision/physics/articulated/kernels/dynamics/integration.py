"""One substep by any tableau, and its adjoint: predict the velocity at its end, then advance the positions.

The workspace holds a row for each evaluation of the dynamics, and the row after the last holds the end of the step.
`accelerate` stands at one place in the loop over rows only: called from two places it would not be inlined, and each
call would copy its arguments, some kilobytes. What changes velocities at once belongs between the two halves.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import scalar
from physvision.physics.articulated.kernels.structs import Schedule, Tree, Workspace

from .joints import advance, advance_backward


@wp.func
def begin_stage(tree: Tree, work: Workspace, schedule: Schedule, world: int, row: int):
    """Where the dynamics are evaluated: stage s stands at q ⊕ h reach v_{s−1}, v + h reach q̈_{s−1}."""
    stage = row % schedule.stages
    if stage > 0:
        start = row - stage
        reach = schedule.reach[stage] * schedule.h
        for d in range(tree.velocities):
            work.v[world, row, d] = work.v[world, start, d] + reach * work.a[world, row - 1, d]
        advance(tree, world, work.q, start, row, work.v, row - 1, reach)


@wp.func
def begin_stage_backward(tree: Tree, work: Workspace, schedule: Schedule, world: int, row: int):
    """Adjoint of `begin_stage`: hands q_bar and v_bar of the stage to the substep's start and to the stage before."""
    stage = row % schedule.stages
    if stage > 0:
        start = row - stage
        reach = schedule.reach[stage] * schedule.h
        advance_backward(tree, world, work.q_bar, row, work.v, row - 1, work.v_bar, row - 1, work.q_bar, start, reach)
        for d in range(tree.velocities):
            bar = work.v_bar[world, row, d]
            work.v_bar[world, start, d] = work.v_bar[world, start, d] + bar
            work.a_bar[world, row - 1, d] = work.a_bar[world, row - 1, d] + reach * bar


@wp.func
def predict(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """v′ = v + h Σ weight q̈ of the substep's stages, the rows before `end`."""
    start = end - schedule.stages
    for d in range(tree.velocities):
        mean = scalar(0.0)
        for stage in range(schedule.stages):
            mean += schedule.weight[stage] * work.a[world, start + stage, d]
        work.v[world, end, d] = work.v[world, start, d] + schedule.h * mean


@wp.func
def disagreement(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """How far two evaluations at the middle of a Runge–Kutta substep are apart, as a share of its velocities.

    It is of third order in h: small where the step resolves the motion, and near one where the method is unstable.
    """
    apart = scalar(0.0)
    if schedule.stages > 2:
        start = end - schedule.stages
        moving = scalar(0.0)
        for d in range(tree.velocities):
            apart = wp.max(apart, wp.abs(work.a[world, start + 2, d] - work.a[world, start + 1, d]))
            moving = wp.max(moving, wp.abs(work.v[world, start, d]) + wp.abs(work.v[world, end, d]))
        if apart > scalar(0.0):
            apart = schedule.h * apart / moving
    return apart


@wp.func
def predict_backward(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """Adjoint of `predict`: adds to v_bar of the substep's start, and sets a_bar of its stages."""
    start = end - schedule.stages
    for d in range(tree.velocities):
        bar = work.v_bar[world, end, d]
        work.v_bar[world, start, d] = work.v_bar[world, start, d] + bar
        for stage in range(schedule.stages):
            work.a_bar[world, start + stage, d] = schedule.h * schedule.weight[stage] * bar


@wp.func
def find_rate(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """The velocity that moves positions over the substep: of the stages' mean and the end's velocity."""
    start = end - schedule.stages
    for d in range(tree.velocities):
        rate = (scalar(1.0) - schedule.share) * work.v[world, end, d]
        if schedule.share > scalar(0.0):
            for stage in range(schedule.stages):
                rate += schedule.share * schedule.weight[stage] * work.v[world, start + stage, d]
        work.rate[world, end, d] = rate


@wp.func
def advance_positions(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """q′ = q ⊕ h rate."""
    find_rate(tree, work, schedule, world, end)
    advance(tree, world, work.q, end - schedule.stages, end, work.rate, end, schedule.h)


@wp.func
def advance_positions_backward(tree: Tree, work: Workspace, schedule: Schedule, world: int, end: int):
    """Adjoint of `advance_positions`: sets q_bar and v_bar of the stages, and adds to v_bar of the end."""
    start = end - schedule.stages
    find_rate(tree, work, schedule, world, end)
    for d in range(tree.velocities):
        work.rate_bar[world, end, d] = scalar(0.0)
        for stage in range(schedule.stages):
            work.q_bar[world, start + stage, d] = scalar(0.0)
    h = schedule.h
    advance_backward(tree, world, work.q_bar, end, work.rate, end, work.rate_bar, end, work.q_bar, start, h)
    for d in range(tree.velocities):
        bar = work.rate_bar[world, end, d]
        work.v_bar[world, end, d] = work.v_bar[world, end, d] + (scalar(1.0) - schedule.share) * bar
        for stage in range(schedule.stages):
            work.v_bar[world, start + stage, d] = schedule.share * schedule.weight[stage] * bar
