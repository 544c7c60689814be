"""A step with contacts: flights to the next event, with what rests or rolls held, and impacts.

A flight keeps one acceleration, that of its start or, of trees that nothing touches, of its middle (`middle`):
v(t) = v + t a, q(t) = q ⊕ t (v + t a / 2), which is exact where forces are constant. Contacts that touch at its start
take part: their forces are those with which the velocities at the end of the step, v + h a, obey the complementarity of
`impulses`, with what they overlap taken back. Another gap that closes on the way ends the flight, at the time that a
bracketed root gives to rounding. Contacts that touch and approach make an impact, with Newton's restitution.
"""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import first_near
from physvision.physics.articulated.kernels.collision.joint_limits import stop_gap, write_stop_jacobian
from physvision.physics.articulated.kernels.collision.narrow_phase import (
    closest_of,
    place_moved,
    turn_moved,
    write_jacobian,
)
from physvision.physics.articulated.kernels.dynamics.forward import accelerate_moved
from physvision.physics.articulated.kernels.dynamics.kinematics import move_links
from physvision.physics.articulated.kernels.dynamics.transmissions import list_transmissions, yield_diagonal
from physvision.physics.articulated.kernels.precision import DOUBLE, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import transposed, zero3
from physvision.physics.articulated.kernels.structs import TOUCHES, ContactMemory, Contacts, Forces, Tree, Workspace

from .delassus import apply_impulses, build_delassus, contact_velocity
from .equality import list_ties
from .midpoint_step import find_loose, go_to_middle, speed_up
from .rotational_friction import add_turning
from .solver import ACCEPTED, solve_impulses
from .time_of_impact import TOUCHING, find_event, move_by, near_enough

FLIGHT = wp.constant(0)
IMPACT = wp.constant(1)

ENERGY = wp.constant(scalar(1.0e-10 if DOUBLE else 1.0e-4))  # share that an impact may add by inexact solution
# Share of an overlap that is taken back as a velocity at the end of a step. With gap g and velocity u, per step,
# g′ = g + h (u + u′) / 2 and u′ = −κ g / h: both eigenvalues are real for κ up to 6 − 4 √2; above it, feet hop.
TAKEN_BACK = wp.constant(scalar(0.34))
UNMOVED = wp.constant(scalar(1.0e-12 if DOUBLE else 1.0e-6))  # of what impulses along all three directions give
HALVINGS = wp.constant(8)


@wp.func(inline=True)
def consider(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int, pair: int):
    """List the candidate whose Jacobian was written last, if it touches or is near and slow; note if it strikes.

    What has just arrived when a step begins has to fly there first, be it for no time at all: when it strikes depends
    on where it was, and a flight that an event ends is what carries that gradient. Where a gap is deeper, it was not
    this gap that closed: another part of the shapes has taken over.
    """
    count = memory.count[world, row]
    slow = contacts.rest_speed
    before = contact_velocity(tree, memory, world, count, work.v, row)
    gap = memory.gap[world, pair]
    strikes = before[0] < -slow
    arrives = strikes and row == 0 and gap >= -TOUCHING
    if wp.abs(before[0]) <= slow or (gap <= TOUCHING and not arrives):
        memory.pair[world, count] = pair
        memory.law[world, count] = TOUCHES
        memory.before[world, count] = before
        memory.listed[world, pair] = 1
        memory.count[world, row] = count + 1
        if strikes:
            memory.kind[world, row] = IMPACT


@wp.func(inline=True)
def choose_contacts(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int):
    """List the candidates that touch, with their Jacobians and velocities; whether one of them approaches."""
    memory.count[world, row] = 0
    memory.kind[world, row] = FLIGHT
    memory.deepest[world] = scalar(0.0)
    enough = near_enough(contacts, memory, world)
    pair = first_near(contacts, memory, world, 0, enough)
    while pair < contacts.candidates:
        memory.listed[world, pair] = 0
        slot = memory.count[world, row]
        if pair < contacts.pairs:
            near = closest_of(contacts, memory, world, pair)
            memory.gap[world, pair] = near.gap
            memory.deepest[world] = wp.max(memory.deepest[world], -near.gap)
            if near.gap <= enough and slot < contacts.capacity:
                memory.friction[world, slot] = contacts.friction[world, pair]
                memory.restitution[world, slot] = contacts.restitution[world, pair]
                write_jacobian(tree, work, contacts, memory, world, slot, pair, near)
        else:
            gap = stop_gap(contacts, memory, world, pair)
            memory.gap[world, pair] = gap
            if gap <= enough and slot < contacts.capacity:
                memory.friction[world, slot] = scalar(0.0)
                memory.restitution[world, slot] = scalar(0.0)
                write_stop_jacobian(tree, contacts, memory, world, slot, pair)
        if memory.gap[world, pair] <= enough:
            if slot < contacts.capacity:
                consider(tree, work, contacts, memory, world, row, pair)
                if pair < contacts.pairs:
                    add_turning(tree, work, contacts, memory, world, row, pair, slot)
            elif memory.gap[world, pair] <= TOUCHING:
                memory.count[world, row] = slot + 1
        pair = first_near(contacts, memory, world, pair + 1, enough)


@wp.func
def bounces(contacts: Contacts, memory: ContactMemory, world: int, row: int, c: int):
    """Whether contact c has restitution: none below a speed, and none late in a crowded step.

    Contacts that bounce in turn would go on for ever; in the second half of a step's operations they rest sooner too.
    """
    return memory.before[world, c][0] < -contacts.rest_speed and row < contacts.operations / 2


@wp.func
def share_taken_back(memory: ContactMemory, world: int, c: int):
    """Of an overlap, in a step: none where no joint moves contact c along its normal."""
    share = scalar(1.0) * TAKEN_BACK
    own = memory.delassus[world, c, c]
    if own[0, 0] <= UNMOVED * wp.trace(own):
        share = scalar(0.0)
    return share


@wp.func
def drive_contacts(
    tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int, count: int
):
    """The contacts' velocities, with bias, that they would have without impulses."""
    z = scalar(0.0)
    for c in range(count):
        pair = memory.pair[world, c]
        drive = memory.before[world, c]
        if memory.law[world, c] != TOUCHES:
            if memory.kind[world, row] == FLIGHT:
                drive = drive + memory.left[world, row] * contact_velocity(tree, memory, world, c, work.a, row)
                drive = drive + memory.bias[world, c]
        elif memory.kind[world, row] == FLIGHT:
            drive = drive + memory.left[world, row] * contact_velocity(tree, memory, world, c, work.a, row)
            share = share_taken_back(memory, world, c)
            drive = drive + vec3(share * memory.gap[world, pair] / memory.left[world, 0], z, z)
        elif bounces(contacts, memory, world, row, c):
            drive = drive + vec3(memory.bounce[world, row] * memory.restitution[world, c] * drive[0], z, z)
        memory.drive[world, c] = drive


@wp.func
def gained_energy(memory: ContactMemory, world: int, count: int):
    """Kinetic energy that the impact adds beyond rounding."""
    gain = scalar(0.0)
    size = scalar(0.0)
    for c in range(count):
        before = memory.before[world, c]
        after = before + memory.slip[world, c] - memory.drive[world, c]
        push = scalar(0.5) * memory.impulse[world, c]
        gain += wp.dot(push, before + after)
        for k in range(3):
            size += wp.abs(push[k]) * (wp.abs(before[k]) + wp.abs(after[k]))
    return gain - ENERGY * size


@wp.func(inline=True)
def list_blocks(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    step: int,
    row: int,
):
    """List what takes part in the operation that starts at row, and tell whether it is a flight or an impact."""
    choose_contacts(tree, work, contacts, memory, world, row)
    flying = wp.int32(memory.kind[world, row] == FLIGHT)
    if contacts.ties > 0:
        list_ties(tree, work, contacts, memory, world, row, flying, TAKEN_BACK)
    if contacts.transmissions > 0:
        list_transmissions(tree, work, forces, contacts, memory, world, step, row, flying, TAKEN_BACK)


@wp.func(inline=True)
def begin_operation(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    step: int,
    row: int,
):
    """Accelerations and impulses of the operation that starts at row; the residual of the impulses."""
    left = memory.left[world, row]
    interval = scalar(0.0)
    count = wp.int32(0)
    place = wp.int32(row)
    evaluation = wp.int32(0)
    last = wp.int32(0)
    while evaluation <= last:
        move_links(tree, work, world, place)
        if evaluation == 0:
            place_moved(tree, work, contacts, memory, world, row)
            if contacts.ties > 0:
                turn_moved(tree, work, memory, world)
            list_blocks(tree, work, forces, contacts, memory, world, step, row)
            count = wp.min(memory.count[world, row], contacts.capacity)
            memory.from_middle[world, row] = 0
            if memory.kind[world, row] == FLIGHT:
                interval = left
                if tree.varying > 0 and find_loose(tree, memory, world, count) > 0:
                    memory.from_middle[world, row] = 1
                    place = contacts.operations + 2
                    last = 2
                    go_to_middle(tree, work, memory, world, row, place, left)
        if evaluation > 0 or last == 0:
            accelerate_moved(tree, work, forces, world, step, row, interval)
        if evaluation == 1:
            speed_up(tree, work, memory, world, row, place, left)
        evaluation += 1
    residual = scalar(0.0)
    if count > 0:
        build_delassus(tree, work, memory, world, count)
        if contacts.transmissions > 0:
            yield_diagonal(memory, world, count)
        share = scalar(1.0)
        gain = scalar(1.0)
        for _trial in range(HALVINGS):
            # An impact with friction may add energy, λ · (u⁻ + u⁺) / 2: its restitution is halved until it does not.
            if gain > scalar(0.0):
                memory.bounce[world, row] = share
                drive_contacts(tree, work, contacts, memory, world, row, count)
                residual = solve_impulses(memory, world, count)
                gain = scalar(0.0)
                if memory.kind[world, row] == IMPACT:
                    gain = gained_energy(memory, world, count)
                share = scalar(0.5) * share
                if _trial == HALVINGS - 2:
                    share = scalar(0.0)
        apply_impulses(tree, work, memory, world, row, count)
        if memory.kind[world, row] == FLIGHT:
            for d in range(tree.velocities):
                work.a[world, row, d] = work.a[world, row, d] + memory.jump[world, row, d] / left
    return residual


@wp.func(inline=True)
def end_operation(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int):
    """Where the operation that starts at row ends, in the row after it."""
    left = memory.left[world, row]
    if memory.kind[world, row] == IMPACT:
        memory.duration[world, row] = scalar(0.0)
        memory.struck[world, row] = -1
        for k in range(tree.positions):
            work.q[world, row + 1, k] = work.q[world, row, k]
        for d in range(tree.velocities):
            work.v[world, row + 1, d] = work.v[world, row, d] + memory.jump[world, row, d]
        memory.left[world, row + 1] = left
    else:
        find_event(tree, work, contacts, memory, world, row)
        t = memory.duration[world, row]
        move_by(tree, work, world, row, t)
        for d in range(tree.velocities):
            work.v[world, row + 1, d] = work.v[world, row, d] + t * work.a[world, row, d]
        memory.left[world, row + 1] = left - t
        if memory.struck[world, row] < 0:
            memory.left[world, row + 1] = scalar(0.0)


@wp.func
def note_impulses(contacts: Contacts, memory: ContactMemory, world: int, row: int):
    """Add to what each pair's first shape took in this step; a flight that an event ends takes its share alone."""
    share = scalar(1.0)
    if memory.kind[world, row] == FLIGHT:
        share = memory.duration[world, row] / memory.left[world, row]
    for c in range(memory.count[world, row]):
        pair = memory.pair[world, c]
        if pair < contacts.pairs and memory.law[world, c] == TOUCHES:
            pushed = share * transposed(memory.frame[world, c], memory.impulse[world, c])
            memory.pushed[world, pair] = memory.pushed[world, pair] + pushed


@wp.func
def note_quality(memory: ContactMemory, world: int, row: int):
    """Tell of overlaps where an operation begins, and of an impact with less restitution than was asked for."""
    memory.overlap[world] = wp.max(memory.overlap[world], memory.deepest[world])
    if memory.kind[world, row] == IMPACT and memory.bounce[world, row] < scalar(1.0):
        memory.softened[world] = memory.softened[world] + 1


@wp.func(inline=True)
def run_step(
    h: scalar,
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    step: int,
    is_last: int,
):
    """Run all events of a step from row 0; returns their number, or -1 if the step fails.

    In the last step of a rollout the impulses are summed up.
    """
    memory.left[world, 0] = h
    memory.grazes[world] = 0
    if is_last != 0:
        for pair in range(contacts.pairs):
            memory.pushed[world, pair] = zero3()
    done = wp.int32(0)
    failed = wp.int32(0)
    while done < contacts.operations and memory.left[world, done] > scalar(0.0) and failed == 0:
        residual = begin_operation(tree, work, forces, contacts, memory, world, step, done)
        # Not a number is no number that is small enough.
        if memory.count[world, done] > contacts.capacity or not (residual < ACCEPTED):
            failed = 1
        else:
            memory.residual[world] = wp.max(memory.residual[world], residual)
            note_quality(memory, world, done)
            end_operation(tree, work, contacts, memory, world, done)
            if is_last != 0:
                note_impulses(contacts, memory, world, done)
            done += 1
    if done > contacts.operations / 2:
        memory.crowded[world] = memory.crowded[world] + 1
    if memory.grazes[world] != 0 and memory.grazing[world] < 0:
        memory.grazing[world] = step + 1
    if failed != 0 or memory.left[world, done] > scalar(0.0):
        done = -1
    return done
