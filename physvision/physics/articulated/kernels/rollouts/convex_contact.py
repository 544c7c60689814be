"""A rollout whose contacts follow a reference acceleration, by the steps of `steps`, and its adjoint."""

import warp as wp

from physvision.physics.articulated.kernels.collision.narrow_phase import place_moved, turn_moved
from physvision.physics.articulated.kernels.collision.narrow_phase_adjoint import contact_work_backward
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
    ContactMemory,
    Contacts,
    Forces,
    Gradients,
    Schedule,
    ScheduleStruct,
    Tree,
    Workspace,
)

from .template import rollout_kernels
from .trajectory import carry_backward

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


@wp.func(inline=True)
def take_step(
    schedule: Schedule,
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    step: int,
    is_last: int,
):
    """Run all stages of a step; returns the row of the state after it, or -1 if a solve fails."""
    last = schedule.stages * schedule.substeps
    end = wp.int32(last)
    for row in range(last):
        begin_stage(tree, work, schedule, world, row)
        drag = schedule.drag_interval
        count = accelerate_pushed(tree, work, forces, contacts, memory, world, step, row, drag)
        if count < 0:
            end = -1
        if (row + 1) % schedule.stages == 0:
            predict(tree, work, schedule, world, row + 1)
            advance_positions(tree, work, schedule, world, row + 1)
        if is_last != 0:
            interval = schedule.weight[row % schedule.stages] * schedule.h
            note_pushes(contacts, memory, world, row, count, interval)
    return end


@wp.func(inline=True)
def step_backward(
    schedule: Schedule,
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    step: int,
    steps: int,
    truncate: int,
    q: wp.array3d(dtype=scalar),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
):
    """Run all stages of a step forward, then their adjoints backward; the last factorization serves both ways."""
    last = schedule.stages * schedule.substeps
    carry_backward(tree, work, world, last, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar)
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
            accelerate_backward(tree, work, forces, contacts, memory, gradients, touch, world, step, row, drag, count)
            begin_stage_backward(tree, work, schedule, world, row)


_OPTIONS = {"max_unroll": 3, **FUSED}
rollout, rollout_backward = rollout_kernels(
    ScheduleStruct, take_step, step_backward, options=_OPTIONS, backward_options=_OPTIONS
)
