"""One substep of a Runge–Kutta tableau, and its adjoint: predict the velocity at the end, then integrate positions.

Rotations are integrated in the tangent space at the start of the substep (Munthe-Kaas), as MuJoCo's are: q = q₀ exp(u)
with u̇ = J_r(u)⁻¹ ω. The rate of a stage at u = h c K_{s−1} is K_s = J_r(u)⁻¹ ω, and the mean rate of the substep is Σ
weight K_s. With ω itself the step would be of second order only, for its error is h³/12 ω × ω̇.

Adjoint of K = J_r(u)⁻¹ ω: ω̄ = J_r(u)⁻ᵀ K̄ = J_r(−u)⁻¹ K̄, and with J_r(u)⁻¹ ω = ω + ½ u × ω + c u × (u × ω), c = c(|u|²),

    ū = ½ ω × K̄ + c ((u · ω) K̄ + (u · K̄) ω − 2 (K̄ · ω) u) + 2 c′ (K̄ · u × (u × ω)) u.

The workspace has a row for every evaluation of the dynamics; the row after the last holds the end of the step. The loop
over rows calls `forward_dynamics` at one place only: called from two places it would not be inlined, and each call
would copy its arguments, some kilobytes. Velocity jumps belong between the two halves.
"""

import warp as wp

from ..precision import scalar
from ..spatial.rotations import right_jacobian_inverse, right_jacobian_inverse_backward
from ..structs import BALL, FREE, Schedule, Tree, Workspace
from .joints import add3, integrate_positions, integrate_positions_backward, read3


@wp.func
def begin_stage(tree: Tree, work: Workspace, schedule: Schedule, world: int, row: int):
    """Write state and rate of a stage: stage s is at q ⊕ h c_s K_{s−1} and v + h c_s q̈_{s−1}, with its fraction c_s."""
    stage = row % schedule.stages
    if stage > 0:
        start = row - stage
        interval = schedule.stage_fraction[stage] * schedule.h
        for d in range(tree.velocities):
            work.v[world, row, d] = work.v[world, start, d] + interval * work.a[world, row - 1, d]
        integrate_positions(tree, world, work.q, start, row, work.stage_rate, row - 1, interval)
    if schedule.stages > 1:
        for d in range(tree.velocities):
            work.stage_rate[world, row, d] = work.v[world, row, d]
        if stage > 0:
            correct_rotation_rates(tree, work, world, row, schedule.stage_fraction[stage] * schedule.h)


@wp.func
def rotation_velocity(tree: Tree, i: int):
    """Return the first velocity of the rotation of a ball or free joint, -1 for other joints."""
    d = wp.int32(-1)
    if tree.joint[i] == BALL:
        d = tree.first_velocity[i]
    elif tree.joint[i] == FREE:
        d = tree.first_velocity[i] + 3
    return d


@wp.func
def correct_rotation_rates(tree: Tree, work: Workspace, world: int, row: int, interval: scalar):
    """Replace ω by K = J_r(u)⁻¹ ω in the rate of a stage, with u = interval · (rate of the stage before)."""
    for i in range(tree.links):
        d = rotation_velocity(tree, i)
        if d >= 0:
            u = interval * read3(work.stage_rate, world, row - 1, d)
            rate = right_jacobian_inverse(u, read3(work.v, world, row, d))
            for k in range(3):
                work.stage_rate[world, row, d + k] = rate[k]


@wp.func
def stage_rate_backward(tree: Tree, work: Workspace, schedule: Schedule, world: int, row: int):
    """Compute the adjoint of the rate of a stage: add to v_bar of the stage and to the rate before it."""
    stage = row % schedule.stages
    for i in range(tree.links):
        d = rotation_velocity(tree, i)
        for k in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            if stage == 0 or d < 0 or k < d:
                work.v_bar[world, row, k] = work.v_bar[world, row, k] + work.stage_rate_bar[world, row, k]
        if stage > 0 and d >= 0:
            interval = schedule.stage_fraction[stage] * schedule.h
            u = interval * read3(work.stage_rate, world, row - 1, d)
            bar = read3(work.stage_rate_bar, world, row, d)
            add3(work.v_bar, world, row, d, right_jacobian_inverse(-u, bar))
            u_bar = right_jacobian_inverse_backward(u, read3(work.v, world, row, d), bar)
            add3(work.stage_rate_bar, world, row - 1, d, interval * u_bar)


@wp.func
def begin_stage_backward(tree: Tree, work: Workspace, schedule: Schedule, world: int, row: int):
    """Pass q_bar and v_bar of a stage to the start of the substep and to the previous stage."""
    stage = row % schedule.stages
    if schedule.stages > 1:
        stage_rate_backward(tree, work, schedule, world, row)
    if stage > 0:
        start = row - stage
        interval = schedule.stage_fraction[stage] * schedule.h
        rate_bar = work.stage_rate_bar
        integrate_positions_backward(
            tree, world, work.q_bar, row, work.stage_rate, row - 1, rate_bar, row - 1, work.q_bar, start, interval
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
                rate += (
                    schedule.stage_velocity_weight * schedule.weight[stage] * work.stage_rate[world, start + stage, d]
                )
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
            work.v_bar[world, start + stage, d] = scalar(0.0)
            work.stage_rate_bar[world, start + stage, d] = schedule.stage_velocity_weight * schedule.weight[stage] * bar
