"""What planning asks of a trajectory, each in one launch: its linearisation, and motion under feedback.

A step is linear in its adjoints, so row r of (A, B) is what a step hands back for the gradient e_r of its end. All rows
of a step share its forward pass. Where a step is one substep of semi-implicit Euler, q′ = q ⊕ h v′, half of them follow
from the other half: a row of q′ is that of ⊕ alone, and its gradient to v′ times the rows of v′.
"""

import warp as wp

from physvision.physics.articulated.kernels.dynamics.forward import accelerate
from physvision.physics.articulated.kernels.dynamics.integration import (
    advance_positions,
    advance_positions_backward,
    begin_stage,
    begin_stage_backward,
    predict,
    predict_backward,
)
from physvision.physics.articulated.kernels.dynamics.joints import advance_backward, read4
from physvision.physics.articulated.kernels.precision import scalar, vec4
from physvision.physics.articulated.kernels.spatial.rotations import quaternion_log, quaternion_product
from physvision.physics.articulated.kernels.structs import (
    BALL,
    FREE,
    Forces,
    ForcesStruct,
    Gradients,
    GradientsStruct,
    Schedule,
    ScheduleStruct,
    Tree,
    TreeStruct,
    Workspace,
    WorkspaceStruct,
)

from .smooth import accelerate_backward
from .trajectory import (
    load_state,
    starts_finite,
    store_failure,
    store_state,
)


@wp.func
def take_step(tree: Tree, work: Workspace, forces: Forces, schedule: Schedule, world: int, step: int):
    """From row 0 of the workspace to its last row."""
    for row in range(schedule.stages * schedule.substeps):
        begin_stage(tree, work, schedule, world, row)
        accelerate(tree, work, forces, world, step, row, schedule.drag_interval)
        if (row + 1) % schedule.stages == 0:
            predict(tree, work, schedule, world, row + 1)
            advance_positions(tree, work, schedule, world, row + 1)


@wp.func
def take_step_backward(
    tree: Tree, work: Workspace, forces: Forces, gradients: Gradients, schedule: Schedule, world: int, step: int
):
    """Adjoint of `take_step`: from the gradients in the last row to those in row 0."""
    last = schedule.stages * schedule.substeps
    for back in range(last):
        row = last - 1 - back
        if last > 1:  # the factorisation is that of the row that came last
            accelerate(tree, work, forces, world, step, row, schedule.drag_interval)
        if (row + 1) % schedule.stages == 0:
            advance_positions_backward(tree, work, schedule, world, row + 1)
            predict_backward(tree, work, schedule, world, row + 1)
        accelerate_backward(tree, work, forces, gradients, world, step, row, schedule.drag_interval)
        begin_stage_backward(tree, work, schedule, world, row)


@wp.func
def begin_row(tree: Tree, work: Workspace, world: int, row: int, number: int):
    """The gradient of one number of the state, and of no other: displacements first, then velocities."""
    for d in range(tree.velocities):
        work.q_bar[world, row, d] = scalar(wp.where(d == number, 1.0, 0.0))
        work.v_bar[world, row, d] = scalar(wp.where(d + tree.velocities == number, 1.0, 0.0))


@wp.func
def row_of_position(
    tree: Tree,
    work: Workspace,
    world: int,
    step: int,
    number: int,
    last: int,
    forces: int,
    h: scalar,
    a: wp.array4d(dtype=scalar),
    b: wp.array4d(dtype=scalar),
):
    """The row of a displacement at the end, the rows of the velocities at the end being known."""
    n = tree.velocities
    begin_row(tree, work, world, last, number)
    for d in range(n):
        work.rate_bar[world, last, d] = scalar(0.0)
        work.q_bar[world, 0, d] = scalar(0.0)
        a[world, step, number, n + d] = scalar(0.0)
    for d in range(forces):
        b[world, step, number, d] = scalar(0.0)
    advance_backward(tree, world, work.q_bar, last, work.rate, last, work.rate_bar, last, work.q_bar, 0, h)
    for d in range(n):
        a[world, step, number, d] = work.q_bar[world, 0, d]
    for k in range(n):
        share = work.rate_bar[world, last, k]
        if share != scalar(0.0):
            for d in range(2 * n):
                a[world, step, number, d] = a[world, step, number, d] + share * a[world, step, n + k, d]
            for d in range(forces):
                b[world, step, number, d] = b[world, step, number, d] + share * b[world, step, n + k, d]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def linearize(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    gradients: GradientsStruct,
    schedule: ScheduleStruct,
    steps: int,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    a: wp.array4d(dtype=scalar),
    b: wp.array4d(dtype=scalar),
):
    """Fill δ(q′, v′) = a δ(q, v) + b δ(torque), [world, step, row, column], of each step of a trajectory."""
    world = first + wp.tid()
    n = tree.velocities
    acting = forces.torque.shape[2]
    last = schedule.stages * schedule.substeps
    direct = last == 1 and schedule.share == scalar(0.0)
    for step in range(steps):
        load_state(tree, work, world, step, q, v)
        take_step(tree, work, forces, schedule, world, step)
        for d in range(acting):
            gradients.torque[world, step, d] = scalar(0.0)
        for number in range(wp.where(direct, n, 0), 2 * n):
            begin_row(tree, work, world, last, number)
            take_step_backward(tree, work, forces, gradients, schedule, world, step)
            for d in range(n):
                a[world, step, number, d] = work.q_bar[world, 0, d]
                a[world, step, number, n + d] = work.v_bar[world, 0, d]
            for d in range(acting):
                b[world, step, number, d] = gradients.torque[world, step, d]
                gradients.torque[world, step, d] = scalar(0.0)
        if direct:
            for number in range(n):
                row_of_position(tree, work, world, step, number, last, acting, schedule.h, a, b)


@wp.func
def find_apart(
    tree: Tree,
    world: int,
    planned: int,
    step: int,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    planned_q: wp.array3d(dtype=scalar),
    planned_v: wp.array3d(dtype=scalar),
    apart: wp.array2d(dtype=scalar),
):
    """The displacement from a planned state to where the world is, then the same of its velocity."""
    for i in range(tree.links):
        joint = tree.joint[i]
        p = tree.first_position[i]
        d = tree.first_velocity[i]
        if joint == BALL or joint == FREE:
            if joint == FREE:
                for k in range(3):
                    apart[world, d + k] = q[world, step, p + k] - planned_q[planned, step, p + k]
                p += 3
                d += 3
            there = read4(planned_q, planned, step, p)
            back = vec4(there[0], -there[1], -there[2], -there[3])
            turn = quaternion_log(quaternion_product(back, read4(q, world, step, p)))
            for k in range(3):
                apart[world, d + k] = turn[k]
        else:
            apart[world, d] = q[world, step, p] - planned_q[planned, step, p]
    for d in range(tree.velocities):
        apart[world, tree.velocities + d] = v[world, step, d] - planned_v[planned, step, d]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def follow(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    schedule: ScheduleStruct,
    steps: int,
    apart: wp.array2d(dtype=scalar),
    shares: wp.array(dtype=scalar),
    planned_q: wp.array3d(dtype=scalar),
    planned_v: wp.array3d(dtype=scalar),
    planned: wp.array3d(dtype=scalar),
    change: wp.array3d(dtype=scalar),
    gains: wp.array4d(dtype=scalar),
    low: wp.array(dtype=scalar),
    high: wp.array(dtype=scalar),
    actuators: wp.array2d(dtype=scalar),
    least: wp.array(dtype=scalar),
    most: wp.array(dtype=scalar),
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    controls: wp.array3d(dtype=scalar),
):
    """Fill q, v and controls from step 0: u = clip(u̅ + share · change + K (x ⊖ x̅)), a plan once for each share.

    `actuators` turns controls between `least` and `most` into forces. A world that stops being finite is left.
    """
    world = first + wp.tid()
    count = shares.shape[0]
    plan = world // count
    share = shares[world % count]
    going = starts_finite(tree, world, q, v)
    for step in range(steps):
        if going:
            find_apart(tree, world, plan, step, q, v, planned_q, planned_v, apart)
            for d in range(forces.torque.shape[2]):
                forces.torque[world, step, d] = scalar(0.0)
            for i in range(low.shape[0]):
                control = planned[plan, step, i] + share * change[plan, step, i]
                for k in range(2 * tree.velocities):
                    control += gains[plan, step, i, k] * apart[world, k]
                control = wp.clamp(control, low[i], high[i])
                controls[world, step, i] = control
                held = wp.clamp(control, least[i], most[i])
                for d in range(forces.torque.shape[2]):
                    forces.torque[world, step, d] = forces.torque[world, step, d] + held * actuators[i, d]
            load_state(tree, work, world, step, q, v)
            take_step(tree, work, forces, schedule, world, step)
            going = store_state(tree, work, world, schedule.stages * schedule.substeps, step + 1, q, v)
        else:
            store_failure(tree, world, step + 1, q, v)
            for i in range(low.shape[0]):
                controls[world, step, i] = scalar(wp.nan)
