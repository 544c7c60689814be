"""A whole rollout in one launch, one thread a world; backward, time runs in reverse and each step is taken again."""

import warp as wp

from physvision.physics.articulated.kernels.dynamics.forward import accelerate, solve
from physvision.physics.articulated.kernels.dynamics.integration import (
    advance_positions,
    advance_positions_backward,
    begin_stage,
    begin_stage_backward,
    disagreement,
    predict,
    predict_backward,
)
from physvision.physics.articulated.kernels.dynamics.inverse import residual_backward
from physvision.physics.articulated.kernels.dynamics.joints import write_lifted
from physvision.physics.articulated.kernels.dynamics.kinematics import finish_rotation_gradient
from physvision.physics.articulated.kernels.precision import FUSED, scalar
from physvision.physics.articulated.kernels.structs import (
    Forces,
    ForcesStruct,
    Gradients,
    GradientsStruct,
    ScheduleStruct,
    Tree,
    TreeStruct,
    Workspace,
    WorkspaceStruct,
)

from .trajectory import (
    begin,
    begin_backward,
    carry_backward,
    end_backward,
    load_state,
    store_failure,
    store_state,
)

COARSE = wp.constant(scalar(0.1))  # a disagreement of stages at which energy drifts by some percent a second


@wp.func
def accelerate_backward(
    tree: Tree, work: Workspace, forces: Forces, gradients: Gradients, world: int, step: int, row: int, h: scalar
):
    """Adjoint of the last `accelerate`: from a_bar[row], which it negates, to q_bar[row], v_bar[row], gradients."""
    for d in range(tree.velocities):
        work.a_bar[world, row, d] = -work.a_bar[world, row, d]
    solve(tree, work, world, work.a_bar, row, work.multiplier, row)
    residual_backward(tree, work, forces, gradients, world, step, row, row, h)


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6, **FUSED})
def rollout(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    schedule: ScheduleStruct,
    steps: int,
    start_q: wp.array2d(dtype=scalar),
    start_v: wp.array2d(dtype=scalar),
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    first_failed_step: wp.array(dtype=wp.int32),
    first_underresolved_step: wp.array(dtype=wp.int32),
    coarseness: wp.array(dtype=scalar),
):
    """Fill q and v, [world, step, number], from a start. A world that stops being finite is marked and left.

    A step that is too coarse for the motion is marked, and time goes on.
    """
    world = first + wp.tid()
    last = schedule.stages * schedule.substeps
    bad = wp.int32(-1)  # a variable, not a constant, to Warp
    coarse = wp.int32(-1)
    worst = scalar(0.0)
    if not begin(tree, world, start_q, start_v, q, v):
        bad = 0
    for step in range(steps):
        if bad < 0:
            load_state(tree, work, world, step, q, v)
            for row in range(last):
                begin_stage(tree, work, schedule, world, row)
                accelerate(tree, work, forces, world, step, row, schedule.drag_interval)
                if (row + 1) % schedule.stages == 0:
                    predict(tree, work, schedule, world, row + 1)
                    advance_positions(tree, work, schedule, world, row + 1)
                    apart = disagreement(tree, work, schedule, world, row + 1)
                    worst = wp.max(worst, apart)
                    if apart > COARSE and coarse < 0:
                        coarse = step + 1
            if not store_state(tree, work, world, last, step + 1, q, v):
                bad = step + 1
        else:
            store_failure(tree, world, step + 1, q, v)
    first_failed_step[world] = bad
    first_underresolved_step[world] = coarse
    coarseness[world] = worst


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6, **FUSED})
def rollout_backward(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    gradients: GradientsStruct,
    schedule: ScheduleStruct,
    steps: int,
    truncate: int,
    start_q: wp.array2d(dtype=scalar),
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    first_failed_step: wp.array(dtype=wp.int32),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
    q_bar: wp.array2d(dtype=scalar),
    v_bar: wp.array2d(dtype=scalar),
):
    """Adjoint of `rollout`. A world that failed gives no gradient, so that it cannot spoil what worlds share."""
    world = first + wp.tid()
    if first_failed_step[world] >= 0:
        return
    last = schedule.stages * schedule.substeps
    begin_backward(tree, work, world)
    for backwards in range(steps):
        step = steps - 1 - backwards
        carry_backward(tree, work, world, last, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar)
        load_state(tree, work, world, step, q, v)
        # Forward through all rows, then back; the last row's factorisation serves both ways.
        for visit in range(2 * last - 1):
            row = wp.min(visit, 2 * last - 2 - visit)
            if visit < last:
                begin_stage(tree, work, schedule, world, row)
            accelerate(tree, work, forces, world, step, row, schedule.drag_interval)
            ends_substep = (row + 1) % schedule.stages == 0
            if visit < last and ends_substep:
                predict(tree, work, schedule, world, row + 1)
                advance_positions(tree, work, schedule, world, row + 1)
            if visit >= last - 1:
                if ends_substep:
                    advance_positions_backward(tree, work, schedule, world, row + 1)
                    predict_backward(tree, work, schedule, world, row + 1)
                accelerate_backward(tree, work, forces, gradients, world, step, row, schedule.drag_interval)
                begin_stage_backward(tree, work, schedule, world, row)
    end_backward(tree, work, gradients, world, start_q, q, trajectory_q_bar, trajectory_v_bar, q_bar, v_bar)


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def accelerations(first: int, tree: TreeStruct, work: WorkspaceStruct, forces: ForcesStruct):
    """work.a[0] = q̈ at (work.q[0], work.v[0])."""
    accelerate(tree, work, forces, first + wp.tid(), 0, 0, scalar(0.0))


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def accelerations_backward(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    gradients: GradientsStruct,
    q_bar: wp.array2d(dtype=scalar),
    v_bar: wp.array2d(dtype=scalar),
):
    """Adjoint of `accelerations`, from work.a_bar[0]."""
    world = first + wp.tid()
    for d in range(tree.velocities):
        work.q_bar[world, 0, d] = scalar(0.0)
        work.v_bar[world, 0, d] = scalar(0.0)
    accelerate(tree, work, forces, world, 0, 0, scalar(0.0))
    accelerate_backward(tree, work, forces, gradients, world, 0, 0, scalar(0.0))
    finish_rotation_gradient(tree, gradients, world)
    write_lifted(tree, world, work.q, 0, work.q_bar, 0, q_bar)
    for d in range(tree.velocities):
        v_bar[world, d] = work.v_bar[world, 0, d]
