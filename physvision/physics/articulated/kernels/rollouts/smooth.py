"""Rollouts without contact in one launch, one thread for each world, and their adjoint in reverse time."""

import warp as wp

from ..dynamics.forward import forward_dynamics, solve_inertia
from ..dynamics.integration import (
    advance_positions,
    advance_positions_backward,
    begin_stage,
    begin_stage_backward,
    predict_velocity,
    predict_velocity_backward,
    stage_discrepancy,
)
from ..dynamics.inverse import dynamics_residual_backward
from ..dynamics.joints import write_coordinate_gradient
from ..dynamics.kinematics import finish_rotation_gradient
from ..precision import FUSED, Array1d, Array2d, Array3d, IntArray1d, scalar
from ..structs import (
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
    begin_rollout,
    clear_state_adjoint,
    finish_backward,
    load_state,
    load_state_adjoint,
    store_failure,
    store_state,
)

MAX_DISCREPANCY = wp.constant(scalar(0.1))  # stage discrepancy at which energy drifts by some percent a second


@wp.func
def forward_dynamics_backward(
    tree: Tree, work: Workspace, forces: Forces, gradients: Gradients, world: int, step: int, row: int, h: scalar
):
    """Propagate a_bar[row], which is negated, through the last `forward_dynamics` to q_bar[row] and v_bar[row]."""
    for d in range(tree.velocities):
        work.a_bar[world, row, d] = -work.a_bar[world, row, d]
    solve_inertia(tree, work, world, work.a_bar, row, work.multiplier, row)
    dynamics_residual_backward(tree, work, forces, gradients, world, step, row, row, h)


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6, **FUSED})
def rollout(
    first_world: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    schedule: ScheduleStruct,
    steps: int,
    start_q: Array2d,
    start_v: Array2d,
    q: Array3d,
    v: Array3d,
    first_failed_step: IntArray1d,
    first_underresolved_step: IntArray1d,
    coarseness: Array1d,
):
    """Fill q and v, [world, step, coordinate], from an initial state; a world that stops being finite is marked.

    A step that is too long for the motion is marked, and the rollout goes on.
    """
    world = first_world + wp.tid()
    last = schedule.stages * schedule.substeps
    bad = wp.int32(-1)  # makes a Warp variable of a constant
    underresolved_step = wp.int32(-1)
    worst = scalar(0.0)
    if not begin_rollout(tree, world, start_q, start_v, q, v):
        bad = 0
    for step in range(steps):
        if bad < 0:
            load_state(tree, work, world, step, q, v)
            for row in range(last):
                begin_stage(tree, work, schedule, world, row)
                forward_dynamics(tree, work, forces, world, step, row, schedule.drag_interval)
                if (row + 1) % schedule.stages == 0:
                    predict_velocity(tree, work, schedule, world, row + 1)
                    advance_positions(tree, work, schedule, world, row + 1)
                    discrepancy = stage_discrepancy(tree, work, schedule, world, row + 1)
                    worst = wp.max(worst, discrepancy)
                    if discrepancy > MAX_DISCREPANCY and underresolved_step < 0:
                        underresolved_step = step + 1
            if not store_state(tree, work, world, last, step + 1, q, v):
                bad = step + 1
        else:
            store_failure(tree, world, step + 1, q, v)
    first_failed_step[world] = bad
    first_underresolved_step[world] = underresolved_step
    coarseness[world] = worst


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6, **FUSED})
def rollout_backward(
    first_world: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    gradients: GradientsStruct,
    schedule: ScheduleStruct,
    steps: int,
    truncate: int,
    start_q: Array2d,
    q: Array3d,
    v: Array3d,
    first_failed_step: IntArray1d,
    trajectory_q_bar: Array3d,
    trajectory_v_bar: Array3d,
    q_bar: Array2d,
    v_bar: Array2d,
):
    """Compute the adjoint of `rollout`; a failed world adds nothing to the gradients that worlds share."""
    world = first_world + wp.tid()
    if first_failed_step[world] >= 0:
        return
    last = schedule.stages * schedule.substeps
    clear_state_adjoint(tree, work, world)
    for backwards in range(steps):
        step = steps - 1 - backwards
        load_state_adjoint(tree, work, world, last, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar)
        load_state(tree, work, world, step, q, v)
        # Forward through all rows, then backward; the last row's factorization serves both ways.
        for visit in range(2 * last - 1):
            row = wp.min(visit, 2 * last - 2 - visit)
            if visit < last:
                begin_stage(tree, work, schedule, world, row)
            forward_dynamics(tree, work, forces, world, step, row, schedule.drag_interval)
            ends_substep = (row + 1) % schedule.stages == 0
            if visit < last and ends_substep:
                predict_velocity(tree, work, schedule, world, row + 1)
                advance_positions(tree, work, schedule, world, row + 1)
            if visit >= last - 1:
                if ends_substep:
                    advance_positions_backward(tree, work, schedule, world, row + 1)
                    predict_velocity_backward(tree, work, schedule, world, row + 1)
                forward_dynamics_backward(tree, work, forces, gradients, world, step, row, schedule.drag_interval)
                begin_stage_backward(tree, work, schedule, world, row)
    finish_backward(tree, work, gradients, world, start_q, q, trajectory_q_bar, trajectory_v_bar, q_bar, v_bar)


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def accelerations(first_world: int, tree: TreeStruct, work: WorkspaceStruct, forces: ForcesStruct):
    """Compute work.a[0] = q̈ at (work.q[0], work.v[0])."""
    forward_dynamics(tree, work, forces, first_world + wp.tid(), 0, 0, scalar(0.0))


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def accelerations_backward(
    first_world: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    gradients: GradientsStruct,
    q_bar: Array2d,
    v_bar: Array2d,
):
    """Compute the adjoint of `accelerations` from work.a_bar[0]."""
    world = first_world + wp.tid()
    for d in range(tree.velocities):
        work.q_bar[world, 0, d] = scalar(0.0)
        work.v_bar[world, 0, d] = scalar(0.0)
    forward_dynamics(tree, work, forces, world, 0, 0, scalar(0.0))
    forward_dynamics_backward(tree, work, forces, gradients, world, 0, 0, scalar(0.0))
    finish_rotation_gradient(tree, gradients, world)
    write_coordinate_gradient(tree, world, work.q, 0, work.q_bar, 0, q_bar)
    for d in range(tree.velocities):
        v_bar[world, d] = work.v_bar[world, 0, d]
