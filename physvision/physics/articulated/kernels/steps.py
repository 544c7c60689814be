"""One step of time by either integrator, and its adjoint, around a single evaluation of the dynamics.

The workspace holds a row for each evaluation: one a substep for semi-implicit Euler, four for Runge–Kutta, and the
row after the last holds the end of the step. `accelerate` stands at one place in the loop over rows only: called from
two places it would not be inlined, and each call would copy its arguments, some kilobytes.
"""

import warp as wp

from . import scalar
from .joints import advance, advance_backward
from .tree import Tree, Workspace

RUNGE_KUTTA = wp.constant(4)  # stages of a substep; semi-implicit Euler has one


@wp.func
def implicit_interval(stages: int, h: scalar):
    """The time over which drag is taken implicitly: Runge–Kutta takes none of it so."""
    if stages == RUNGE_KUTTA:
        return scalar(0.0)
    return h


@wp.func
def node(stage: int):
    """Where in the substep a Runge–Kutta stage stands."""
    if stage == 0:
        return scalar(0.0)
    if stage == 3:
        return scalar(1.0)
    return scalar(0.5)


@wp.func
def weight(stages: int, stage: int):
    """What a stage counts."""
    if stages == 1:
        return scalar(1.0)
    if stage == 0 or stage == 3:
        return scalar(1.0) / scalar(6.0)
    return scalar(1.0) / scalar(3.0)


@wp.func
def begin_stage(tree: Tree, work: Workspace, world: int, stages: int, row: int, h: scalar):
    """Where the dynamics are evaluated: stage s of Runge–Kutta stands at q ⊕ c h v_{s−1}, v + c h q̈_{s−1}."""
    stage = row % stages
    if stage > 0:
        start = row - stage
        reach = node(stage) * h
        for d in range(tree.velocities):
            work.v[world, row, d] = work.v[world, start, d] + reach * work.a[world, row - 1, d]
        advance(tree, world, work.q, start, row, work.v, row - 1, reach)


@wp.func
def finish_substep(tree: Tree, work: Workspace, world: int, stages: int, row: int, h: scalar):
    """After its last stage: v′ = v + h mean q̈, and q′ = q ⊕ h v′ (Euler) or q ⊕ h mean v (Runge–Kutta)."""
    end = row + 1
    start = end - stages
    if stages == RUNGE_KUTTA:
        mean_velocity(tree, work, world, start)
        advance(tree, world, work.q, start, end, work.v, end, h)
    for d in range(tree.velocities):
        mean = scalar(0.0)
        for stage in range(stages):
            mean += weight(stages, stage) * work.a[world, start + stage, d]
        work.v[world, end, d] = work.v[world, start, d] + h * mean
    if stages == 1:
        advance(tree, world, work.q, start, end, work.v, end, h)


@wp.func
def mean_velocity(tree: Tree, work: Workspace, world: int, start: int):
    """v[start + 4] = the weighted mean of the stages' velocities."""
    for d in range(tree.velocities):
        mean = scalar(0.0)
        for stage in range(RUNGE_KUTTA):
            mean += weight(RUNGE_KUTTA, stage) * work.v[world, start + stage, d]
        work.v[world, start + RUNGE_KUTTA, d] = mean


@wp.func
def finish_substep_backward(tree: Tree, work: Workspace, world: int, stages: int, row: int, h: scalar):
    """Adjoint of `finish_substep`: from q_bar and v_bar of the end to q_bar, v_bar, a_bar of the stages.

    For Runge–Kutta v_bar of the end is first that of v′, then that of the mean velocity.
    """
    end = row + 1
    start = end - stages
    for stage in range(stages):
        for d in range(tree.velocities):
            work.q_bar[world, start + stage, d] = scalar(0.0)
            work.v_bar[world, start + stage, d] = scalar(0.0)
    if stages == 1:
        advance_backward(tree, world, work.q_bar, end, work.v, end, work.v_bar, end, work.q_bar, start, h)
        for d in range(tree.velocities):
            bar = work.v_bar[world, end, d]
            work.v_bar[world, start, d] = bar
            work.a_bar[world, start, d] = h * bar
    else:
        mean_velocity(tree, work, world, start)
        for d in range(tree.velocities):
            bar = work.v_bar[world, end, d]
            work.v_bar[world, end, d] = scalar(0.0)
            work.v_bar[world, start, d] = bar
            for stage in range(stages):
                work.a_bar[world, start + stage, d] = h * weight(stages, stage) * bar
        advance_backward(tree, world, work.q_bar, end, work.v, end, work.v_bar, end, work.q_bar, start, h)
        for d in range(tree.velocities):
            for stage in range(stages):
                work.v_bar[world, start + stage, d] = (
                    work.v_bar[world, start + stage, d] + weight(stages, stage) * work.v_bar[world, end, d]
                )


@wp.func
def begin_stage_backward(tree: Tree, work: Workspace, world: int, stages: int, row: int, h: scalar):
    """Adjoint of `begin_stage`: hands q_bar and v_bar of the stage to the substep's start and to the stage before."""
    stage = row % stages
    if stage > 0:
        start = row - stage
        reach = node(stage) * h
        advance_backward(tree, world, work.q_bar, row, work.v, row - 1, work.v_bar, row - 1, work.q_bar, start, reach)
        for d in range(tree.velocities):
            bar = work.v_bar[world, row, d]
            work.v_bar[world, start, d] = work.v_bar[world, start, d] + bar
            work.a_bar[world, row - 1, d] = work.a_bar[world, row - 1, d] + reach * bar
