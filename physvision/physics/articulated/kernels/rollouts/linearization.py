"""Kernels for trajectory optimization, each in one launch: linearization of a trajectory, and rollout under feedback.

A step is linear in its adjoints, so row r of (A, B) is the adjoint of a step for the gradient e_r of its end. All rows
of a step share its forward pass. If a step is one substep of semi-implicit Euler, q′ = q ⊕ h v′, half of them follow
from the other half: a row of q′ is that of ⊕ alone, plus its gradient with respect to v′ times the rows of v′.
"""

import warp as wp

from ..dynamics.forward import forward_dynamics
from ..dynamics.integration import (
    advance_positions,
    advance_positions_backward,
    begin_stage,
    begin_stage_backward,
    predict_velocity,
    predict_velocity_backward,
)
from ..dynamics.joints import integrate_positions_backward, read4
from ..precision import Array1d, Array2d, Array3d, Array4d, scalar, vec4
from ..spatial.rotations import quaternion_log, quaternion_product
from ..structs import (
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
from .smooth import forward_dynamics_backward
from .trajectory import is_start_finite, load_state, store_failure, store_state


@wp.func
def take_step(tree: Tree, work: Workspace, forces: Forces, schedule: Schedule, world: int, step: int):
    """Advance from row 0 of the workspace to its last row."""
    for row in range(schedule.stages * schedule.substeps):
        begin_stage(tree, work, schedule, world, row)
        forward_dynamics(tree, work, forces, world, step, row, schedule.drag_interval)
        if (row + 1) % schedule.stages == 0:
            predict_velocity(tree, work, schedule, world, row + 1)
            advance_positions(tree, work, schedule, world, row + 1)


@wp.func
def take_step_backward(
    tree: Tree, work: Workspace, forces: Forces, gradients: Gradients, schedule: Schedule, world: int, step: int
):
    """Compute the adjoint of `take_step`, from the last row to row 0."""
    last = schedule.stages * schedule.substeps
    for row in range(last - 1, -1, -1):
        if last > 1:  # the factorization is that of the last row
            forward_dynamics(tree, work, forces, world, step, row, schedule.drag_interval)
        if (row + 1) % schedule.stages == 0:
            advance_positions_backward(tree, work, schedule, world, row + 1)
            predict_velocity_backward(tree, work, schedule, world, row + 1)
        forward_dynamics_backward(tree, work, forces, gradients, world, step, row, schedule.drag_interval)
        begin_stage_backward(tree, work, schedule, world, row)


@wp.func
def set_unit_adjoint(tree: Tree, work: Workspace, world: int, row: int, coordinate: int):
    """Set the adjoint of a row to the unit vector of a coordinate: displacements first, then velocities."""
    for d in range(tree.velocities):
        work.q_bar[world, row, d] = scalar(wp.where(d == coordinate, 1.0, 0.0))
        work.v_bar[world, row, d] = scalar(wp.where(d + tree.velocities == coordinate, 1.0, 0.0))


@wp.func
def position_row(
    tree: Tree,
    work: Workspace,
    world: int,
    step: int,
    coordinate: int,
    last: int,
    num_forces: int,
    h: scalar,
    a: Array4d,
    b: Array4d,
):
    """Compute the row of a displacement at the end from the rows of the velocities at the end."""
    n = tree.velocities
    set_unit_adjoint(tree, work, world, last, coordinate)
    for d in range(n):
        work.step_velocity_bar[world, last, d] = scalar(0.0)
        work.q_bar[world, 0, d] = scalar(0.0)
        a[world, step, coordinate, n + d] = scalar(0.0)
    for d in range(num_forces):
        b[world, step, coordinate, d] = scalar(0.0)
    integrate_positions_backward(
        tree, world, work.q_bar, last, work.step_velocity, last, work.step_velocity_bar, last, work.q_bar, 0, h
    )
    for d in range(n):
        a[world, step, coordinate, d] = work.q_bar[world, 0, d]
    for k in range(n):
        factor = work.step_velocity_bar[world, last, k]
        if factor != scalar(0.0):
            for d in range(2 * n):
                a[world, step, coordinate, d] = a[world, step, coordinate, d] + factor * a[world, step, n + k, d]
            for d in range(num_forces):
                b[world, step, coordinate, d] = b[world, step, coordinate, d] + factor * b[world, step, n + k, d]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def linearize(
    first_world: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    gradients: GradientsStruct,
    schedule: ScheduleStruct,
    steps: int,
    q: Array3d,
    v: Array3d,
    a: Array4d,
    b: Array4d,
):
    """Fill δ(q′, v′) = a δ(q, v) + b δ(torque), [world, step, row, column], for each step of a trajectory."""
    world = first_world + wp.tid()
    n = tree.velocities
    num_forces = forces.torque.shape[2]
    last = schedule.stages * schedule.substeps
    is_euler = last == 1 and schedule.stage_velocity_weight == scalar(0.0)  # one substep of semi-implicit Euler
    for step in range(steps):
        load_state(tree, work, world, step, q, v)
        take_step(tree, work, forces, schedule, world, step)
        for d in range(num_forces):
            gradients.torque[world, step, d] = scalar(0.0)
        for coordinate in range(wp.where(is_euler, n, 0), 2 * n):
            set_unit_adjoint(tree, work, world, last, coordinate)
            take_step_backward(tree, work, forces, gradients, schedule, world, step)
            for d in range(n):
                a[world, step, coordinate, d] = work.q_bar[world, 0, d]
                a[world, step, coordinate, n + d] = work.v_bar[world, 0, d]
            for d in range(num_forces):
                b[world, step, coordinate, d] = gradients.torque[world, step, d]
                gradients.torque[world, step, d] = scalar(0.0)
        if is_euler:
            for coordinate in range(n):
                position_row(tree, work, world, step, coordinate, last, num_forces, schedule.h, a, b)


@wp.func
def state_difference(
    tree: Tree,
    world: int,
    plan: int,
    step: int,
    q: Array3d,
    v: Array3d,
    planned_q: Array3d,
    planned_v: Array3d,
    difference: Array2d,
):
    """Compute the displacement from a planned state to that of the world, then the velocity difference."""
    for i in range(tree.links):
        joint = tree.joint[i]
        p = tree.first_position[i]
        d = tree.first_velocity[i]
        if joint == BALL or joint == FREE:
            if joint == FREE:
                for k in range(3):
                    difference[world, d + k] = q[world, step, p + k] - planned_q[plan, step, p + k]
                p += 3
                d += 3
            reference = read4(planned_q, plan, step, p)
            inverse = vec4(reference[0], -reference[1], -reference[2], -reference[3])
            rotation = quaternion_log(quaternion_product(inverse, read4(q, world, step, p)))
            for k in range(3):
                difference[world, d + k] = rotation[k]
        else:
            difference[world, d] = q[world, step, p] - planned_q[plan, step, p]
    for d in range(tree.velocities):
        difference[world, tree.velocities + d] = v[world, step, d] - planned_v[plan, step, d]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def rollout_feedback(
    first_world: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    schedule: ScheduleStruct,
    steps: int,
    difference: Array2d,
    step_sizes: Array1d,
    planned_q: Array3d,
    planned_v: Array3d,
    planned: Array3d,
    change: Array3d,
    gains: Array4d,
    low: Array1d,
    high: Array1d,
    actuators: Array2d,
    actuator_low: Array1d,
    actuator_high: Array1d,
    q: Array3d,
    v: Array3d,
    controls: Array3d,
):
    """Fill q, v and controls under u = clip(u̅ + step_size · change + K (x ⊖ x̅)), for each plan and step size.

    `actuators` converts controls, clamped to the actuators' limits, to forces. A world whose
    state is no longer finite has NaN from there on.
    """
    world = first_world + wp.tid()
    count = step_sizes.shape[0]
    plan = world // count
    step_size = step_sizes[world % count]
    is_finite = is_start_finite(tree, world, q, v)
    for step in range(steps):
        if is_finite:
            state_difference(tree, world, plan, step, q, v, planned_q, planned_v, difference)
            for d in range(forces.torque.shape[2]):
                forces.torque[world, step, d] = scalar(0.0)
            for i in range(low.shape[0]):
                control = planned[plan, step, i] + step_size * change[plan, step, i]
                for k in range(2 * tree.velocities):
                    control += gains[plan, step, i, k] * difference[world, k]
                control = wp.clamp(control, low[i], high[i])
                controls[world, step, i] = control
                clamped = wp.clamp(control, actuator_low[i], actuator_high[i])
                for d in range(forces.torque.shape[2]):
                    forces.torque[world, step, d] = forces.torque[world, step, d] + clamped * actuators[i, d]
            load_state(tree, work, world, step, q, v)
            take_step(tree, work, forces, schedule, world, step)
            is_finite = store_state(tree, work, world, schedule.stages * schedule.substeps, step + 1, q, v)
        else:
            store_failure(tree, world, step + 1, q, v)
            for i in range(low.shape[0]):
                controls[world, step, i] = scalar(wp.nan)
