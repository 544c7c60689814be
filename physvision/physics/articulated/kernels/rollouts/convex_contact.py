"""A rollout whose contacts follow a reference acceleration, by the steps of `steps`, and its adjoint."""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import find_bounds
from physvision.physics.articulated.kernels.collision.narrow_phase import place_moved, turn_moved
from physvision.physics.articulated.kernels.collision.narrow_phase_adjoint import (
    contact_work_backward,
    finish_shape_gradient,
)
from physvision.physics.articulated.kernels.contact.convex_contact import (
    friction_backward,
    gap_backward,
    times_stiffness,
)
from physvision.physics.articulated.kernels.contact.convex_solver import answer_backward, answered, find_least_cost
from physvision.physics.articulated.kernels.contact.delassus import add_push, contact_velocity
from physvision.physics.articulated.kernels.contact.penetrating_contacts import force_of, list_overlapping, note_pushes
from physvision.physics.articulated.kernels.dynamics.forward import accelerate_moved, solve_inward, solve_outward
from physvision.physics.articulated.kernels.dynamics.integration import (
    advance_positions,
    advance_positions_backward,
    begin_stage,
    begin_stage_backward,
    predict,
    predict_backward,
)
from physvision.physics.articulated.kernels.dynamics.inverse import accelerate_links, residual_backward
from physvision.physics.articulated.kernels.dynamics.kinematics import move_links
from physvision.physics.articulated.kernels.precision import DOUBLE, FUSED, scalar
from physvision.physics.articulated.kernels.structs import (
    ContactGradients,
    ContactGradientsStruct,
    ContactMemory,
    ContactMemoryStruct,
    Contacts,
    ContactsStruct,
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
    forget,
    load_state,
    store_failure,
    store_state,
)

ACCEPTED = wp.constant(scalar(1.0e-6 if DOUBLE else 1.0e-3))


@wp.func(inline=True)
def accelerate_pushed(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    step: int,
    row: int,
    drag_interval: scalar,
):
    """work.a[row] = q̈ with the forces of contacts at (work.q[row], work.v[row]); how many, −1 where that fails."""
    move_links(tree, work, world, row)
    place_moved(tree, work, contacts, memory, world, row)
    accelerate_moved(tree, work, forces, world, step, row, drag_interval)
    count = list_overlapping(tree, work, contacts, memory, world, row)
    if count > 0:
        residual = find_least_cost(tree, memory, world, count)
        answered(tree, work, memory, world)
        solve_outward(tree, work, world, memory.jump, 0)
        for d in range(tree.velocities):
            work.a[world, row, d] = work.a[world, row, d] + memory.jump[world, 0, d]
        memory.residual[world] = wp.max(memory.residual[world], residual)
        # Not a number is no number that is small enough.
        if not (residual <= ACCEPTED):
            count = -1
    return count


@wp.func(inline=True)
def accelerate_backward(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    step: int,
    row: int,
    drag_interval: scalar,
    count: int,
):
    """Adjoint of the last `accelerate_pushed`: from a_bar[row], which it negates, to q_bar[row], v_bar[row], gradients.

    Forces join the residual of `inverse` as −Jᵀ F.
    """
    for d in range(tree.velocities):
        work.a_bar[world, row, d] = -work.a_bar[world, row, d]
    solve_inward(tree, work, world, work.a_bar, row)
    if count > 0:
        answer_backward(tree, work, memory, world)
    solve_outward(tree, work, world, work.multiplier, row)
    if count > 0:
        turn_moved(tree, work, memory, world)
        for d in range(tree.velocities):
            work.rate[world, 0, d] = work.v[world, row, d]
            work.rate[world, 1, d] = work.a[world, row, d]
            work.rate[world, 2, d] = work.multiplier[world, row, d]
        accelerate_links(tree, work, world, row)
    for c in range(count):
        pair = memory.pair[world, c]
        hard = memory.hardness[world, c]
        friction = memory.friction[world, c]
        pushes = memory.mode[world, c]
        if pushes != 0:
            force = force_of(memory, world, c)
            weight = -contact_velocity(tree, memory, world, c, work.multiplier, row)
            held = times_stiffness(hard, friction, pushes, weight)
            done = wp.dot(weight, force)
            reference = contacts.reference[pair]
            slip_bar = -reference[1] * held
            add_push(tree, memory, world, c, slip_bar, work.v_bar, row)
            gap_bar = gap_backward(reference, contacts.shares[pair], memory.gap[world, pair], held[0], done)
            along = wp.matrix_from_rows(slip_bar, -held, -force)
            contact_work_backward(
                tree, contacts, work, gradients, touch, memory, world, row, pair, 0, 1, 2, along, scalar(0.0), gap_bar
            )
            if touch.wanted != 0 and pair < contacts.pairs:
                bar = friction_backward(hard, friction, pushes, memory.lag[world, c], weight, done)
                touch.friction[world, pair] = touch.friction[world, pair] + bar
    residual_backward(tree, work, forces, gradients, world, step, row, row, drag_interval)


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3, **FUSED})
def rollout(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    contacts: ContactsStruct,
    memory: ContactMemoryStruct,
    schedule: ScheduleStruct,
    steps: int,
    start_q: wp.array2d(dtype=scalar),
    start_v: wp.array2d(dtype=scalar),
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    first_failed_step: wp.array(dtype=wp.int32),
):
    """Fill q and v, [world, step, number], from a start. A world whose step fails is marked and left."""
    world = first + wp.tid()
    last = schedule.stages * schedule.substeps
    forget(memory, world)
    find_bounds(contacts, memory, world)
    bad = wp.int32(-1)
    if not begin(tree, world, start_q, start_v, q, v):
        bad = 0
    for step in range(steps):
        if bad < 0:
            load_state(tree, work, world, step, q, v)
            for row in range(last):
                begin_stage(tree, work, schedule, world, row)
                drag = schedule.drag_interval
                count = accelerate_pushed(tree, work, forces, contacts, memory, world, step, row, drag)
                if count < 0:
                    bad = step + 1
                if (row + 1) % schedule.stages == 0:
                    predict(tree, work, schedule, world, row + 1)
                    advance_positions(tree, work, schedule, world, row + 1)
                if step == steps - 1:
                    interval = schedule.weight[row % schedule.stages] * schedule.h
                    note_pushes(contacts, memory, world, row, count, interval)
            if not store_state(tree, work, world, last, step + 1, q, v):
                bad = step + 1
        if bad >= 0:
            store_failure(tree, world, step + 1, q, v)
    first_failed_step[world] = bad


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3, **FUSED})
def rollout_backward(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    contacts: ContactsStruct,
    memory: ContactMemoryStruct,
    gradients: GradientsStruct,
    touch: ContactGradientsStruct,
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
    """Adjoint of `rollout`. A world that failed gives no gradient."""
    world = first + wp.tid()
    if first_failed_step[world] >= 0:
        return
    last = schedule.stages * schedule.substeps
    begin_backward(tree, work, world)
    find_bounds(contacts, memory, world)
    for backwards in range(steps):
        step = steps - 1 - backwards
        carry_backward(tree, work, world, last, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar)
        load_state(tree, work, world, step, q, v)
        # Forward through all rows, then back; the last row's factorisation serves both ways.
        for visit in range(2 * last - 1):
            row = wp.min(visit, 2 * last - 2 - visit)
            drag = schedule.drag_interval
            if visit < last:
                begin_stage(tree, work, schedule, world, row)
            count = accelerate_pushed(tree, work, forces, contacts, memory, world, step, row, drag)
            ends_substep = (row + 1) % schedule.stages == 0
            if visit < last and ends_substep:
                predict(tree, work, schedule, world, row + 1)
                advance_positions(tree, work, schedule, world, row + 1)
            if visit >= last - 1:
                if ends_substep:
                    advance_positions_backward(tree, work, schedule, world, row + 1)
                    predict_backward(tree, work, schedule, world, row + 1)
                accelerate_backward(
                    tree, work, forces, contacts, memory, gradients, touch, world, step, row, drag, count
                )
                begin_stage_backward(tree, work, schedule, world, row)
    finish_shape_gradient(contacts, touch, world)
    end_backward(tree, work, gradients, world, start_q, q, trajectory_q_bar, trajectory_v_bar, q_bar, v_bar)
