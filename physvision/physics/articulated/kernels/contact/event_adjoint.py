"""Adjoints of one flight and of one impact.

A flight's acceleration a and impulses λ over the time h that is left solve, with f = λ / h and w = v + h a,

    R = ID(q, v, a) + B (v + h a) + K(q) − τ − J(q)ᵀ f = 0,      F(λ, u) = 0 with u = J(q) w + gap / h₀,
h₀ being the whole step's time. Of trees that nothing touches ID is that of the flight's middle (`middle`).

For an incoming ā the impulses' adjoint is λ̄ = (M⁻¹ Jᵀ)ᵀ ā / h; `impulses_backward` makes ū of it, and with
ā + h Jᵀ ū in its place the implicit function theorem on R gives the rest. An impact solves M (v′ − v) = J(q)ᵀ λ and
F(λ, u) = 0 with u = J v′ + e J_n v in the same way.
"""

import warp as wp

from physvision.physics.articulated.kernels.collision.narrow_phase import place_in_world, place_moved, turn_moved
from physvision.physics.articulated.kernels.collision.narrow_phase_adjoint import contact_work_backward, gap_backward
from physvision.physics.articulated.kernels.dynamics.forward import solve_inward, solve_outward
from physvision.physics.articulated.kernels.dynamics.gyroscopic import spins_by_time
from physvision.physics.articulated.kernels.dynamics.inverse import accelerate_links, move_virtually, residual_backward
from physvision.physics.articulated.kernels.dynamics.joint_forces import apply_joint_loads
from physvision.physics.articulated.kernels.dynamics.joints import advance_backward
from physvision.physics.articulated.kernels.dynamics.kinematics import move_links
from physvision.physics.articulated.kernels.dynamics.transmissions import transmission_backward
from physvision.physics.articulated.kernels.precision import scalar, vec3
from physvision.physics.articulated.kernels.structs import (
    BOUNDED,
    TIES,
    TOUCHES,
    TURNS,
    ContactGradients,
    ContactMemory,
    Contacts,
    Forces,
    Gradients,
    Tree,
    Workspace,
)

from .delassus import add_halves, add_push, contact_velocity, response
from .equality import tie_backward
from .events import FLIGHT, TAKEN_BACK, bounces, share_taken_back
from .midpoint_step import (
    begin_middle_backward,
    go_to_middle_backward,
    speed_up_backward,
)
from .solver import impulses_backward


@wp.func
def time_bar(tree: Tree, work: Workspace, world: int, row: int, bars: int, spare: int, t: scalar, with_velocity: int):
    """T of the adjoints in row `bars`: the derivative of what they weigh in the time of the flight from `row`."""
    for d in range(tree.velocities):
        work.rate_bar[world, spare, d] = scalar(0.0)
    advance_backward(tree, world, work.q_bar, bars, work.rate, row + 1, work.rate_bar, spare, work.q_bar, row, t)
    total = scalar(0.0)
    for d in range(tree.velocities):
        total += work.q_bar[world, bars, d] * work.rate[world, row + 1, d]
        total += scalar(0.5) * work.rate_bar[world, spare, d] * work.a[world, row, d]
        if with_velocity != 0:
            total += work.v_bar[world, bars, d] * work.a[world, row, d]
    return total


@wp.func(inline=True)
def contacts_backward(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    row: int,
    scale: scalar,
    bouncing: int,
):
    """Hand ū · J w + scale · λ · J m to q_bar[row] and the gradients; w is in rate[row + 1], m in its spare row.

    Where `bouncing`, what restitution adds too, and v is in rate[row]; in a flight, what overlaps and offsets add to u.
    """
    spare = contacts.operations + 1
    taken_back = scalar(1 - bouncing) * TAKEN_BACK / memory.left[world, 0]
    for c in range(memory.count[world, row]):
        pair = memory.pair[world, c]
        law = memory.law[world, c]
        slip_bar = memory.slip_bar[world, c]
        restored = scalar(0.0)
        if bouncing != 0:
            restored = memory.restored_bar[world, c]
        along = wp.matrix_from_rows(
            slip_bar, scale * memory.impulse[world, c], vec3(restored, scalar(0.0), scalar(0.0))
        )
        if law == TIES:
            tie_backward(
                tree, work, contacts, memory, gradients, touch, world, row, pair, row + 1, spare, row, along,
                taken_back * slip_bar,
            )  # fmt: skip
        elif law != BOUNDED:
            moments = scalar(wp.int32(law == TURNS))
            share = share_taken_back(memory, world, c) * scalar(1 - bouncing) / memory.left[world, 0]
            bar = (scalar(1.0) - moments) * share * slip_bar[0]
            contact_work_backward(
                tree, contacts, work, gradients, touch, memory, world, row, pair, row + 1, spare, row, along, moments,
                bar,
            )  # fmt: skip
        if touch.wanted != 0 and law == TURNS:
            touch.torsion[world, pair] = touch.torsion[world, pair] + memory.low_bar[world, c]
            touch.rolling[world, pair] = touch.rolling[world, pair] + memory.high_bar[world, c]
        elif touch.wanted != 0 and pair < contacts.pairs:
            touch.friction[world, pair] = touch.friction[world, pair] + memory.friction_bar[world, c]


@wp.func(inline=True)
def flown_backward(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    row: int,
    left_bar_after: scalar,
):
    """From the adjoints at a flight's end to those of its start and of its acceleration; that of the time left."""
    t = memory.duration[world, row]
    struck = memory.struck[world, row]
    spare = contacts.operations + 1
    for d in range(tree.velocities):
        work.rate[world, row + 1, d] = work.v[world, row, d] + scalar(0.5) * t * work.a[world, row, d]
    left_bar = scalar(0.0)
    if row > 0 or struck >= 0:
        # What is left at the start of a step is the step's own time, which has no adjoint.
        left_bar = time_bar(tree, work, world, row, row + 1, spare, t, 1)
    if struck >= 0:
        for d in range(tree.velocities):
            work.q_bar[world, spare, d] = scalar(0.0)
        place_in_world(tree, contacts, memory, world, work.q, row + 1)
        weight = scalar(1.0)
        for part in range(2):
            # First the gap's own gradient, to find its weight, and then all that the weight brings.
            gap_backward(tree, contacts, work, gradients, touch, memory, world, spare, struck, weight, 1 - part)
            if part == 0:
                closing = time_bar(tree, work, world, row, spare, spare, t, 0)
                weight = -(left_bar - left_bar_after) / closing
                for d in range(tree.velocities):
                    share = weight * work.q_bar[world, spare, d]
                    work.q_bar[world, row + 1, d] = work.q_bar[world, row + 1, d] + share
        left_bar = left_bar_after
    for d in range(tree.velocities):
        work.rate_bar[world, row + 1, d] = scalar(0.0)
        work.q_bar[world, row, d] = scalar(0.0)
    advance_backward(tree, world, work.q_bar, row + 1, work.rate, row + 1, work.rate_bar, row + 1, work.q_bar, row, t)
    for d in range(tree.velocities):
        end_bar = work.v_bar[world, row + 1, d]
        rate_bar = work.rate_bar[world, row + 1, d]
        work.v_bar[world, row, d] = end_bar + rate_bar
        work.a_bar[world, row, d] = -(t * end_bar + scalar(0.5) * t * rate_bar)
    return left_bar


@wp.func(inline=True)
def held_backward(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    step: int,
    row: int,
    scale: scalar,
):
    """Adjoint of u and of the impulses, where `rest` holds W times that of what impulses change; that of h in u.

    Impulses change a by scale λ, up to its sign, and u has a's share h; of an impact, v′ and one. Adds what follows,
    Jᵀ ū times this share, to `rest`, and Jᵀ ū to v_bar[row].
    """
    count = memory.count[world, row]
    left_bar = scalar(0.0)
    for c in range(count):
        memory.impulse_bar[world, c] = scale * response(tree, work, memory, world, c)
    impulses_backward(memory, world, count)
    for c in range(count):
        slip_bar = memory.slip_bar[world, c]
        add_push(tree, memory, world, c, slip_bar, work.v_bar, row)
        add_halves(tree, work, memory, world, c, slip_bar / scale)
        if memory.kind[world, row] == FLIGHT:
            left_bar += wp.dot(slip_bar, contact_velocity(tree, memory, world, c, work.a, row))
            if memory.law[world, c] == BOUNDED:
                left_bar += transmission_backward(
                    tree, work, contacts, memory, gradients, touch, world, step, row, c, TAKEN_BACK
                )
    return left_bar


@wp.func(inline=True)
def restored_backward(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    touch: ContactGradients,
    world: int,
    row: int,
):
    """Adjoint of e J_n v in an impact's u."""
    for c in range(memory.count[world, row]):
        pair = memory.pair[world, c]
        memory.restored_bar[world, c] = scalar(0.0)
        if memory.law[world, c] == TOUCHES and bounces(contacts, memory, world, row, c):
            restored = memory.bounce[world, row] * memory.slip_bar[world, c][0]
            bar = restored * memory.restitution[world, c]
            memory.restored_bar[world, c] = bar
            add_push(tree, memory, world, c, vec3(bar, scalar(0.0), scalar(0.0)), work.v_bar, row)
            if touch.wanted != 0 and pair < contacts.pairs:
                found = restored * memory.before[world, c][0]
                touch.restitution[world, pair] = touch.restitution[world, pair] + found


@wp.func
def loads_by_time(tree: Tree, work: Workspace, world: int, row: int, h: scalar):
    """Derivative of λ · (drag and servos at the end of a flight) in its time h."""
    total = scalar(0.0)
    for d in range(tree.velocities):
        multiplier = work.multiplier[world, row, d]
        total += multiplier * work.drag[world, d] * work.a[world, row, d]
        if tree.servo[d] >= 0:
            after = work.v[world, row, d] + h * work.a[world, row, d]
            total += multiplier * tree.joint_stiffness[world, tree.servo[d]] * after
    return total


@wp.func(inline=True)
def dynamics_backward(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    world: int,
    step: int,
    row: int,
):
    """Hand λᵀ ID(q, v, a) of a flight, or −λᵀ M (v′ − v) of an impact, to the adjoints in `row` and the gradients.

    M is what inverse dynamics at rest, in the spare row, adds for an acceleration. A flight that was looked at in its
    middle has two evaluations (`middle`). Returns the derivative of a flight's in the time that was left.
    """
    flying = memory.kind[world, row] == FLIGHT
    spare = contacts.operations + 1
    middle = contacts.operations + 2
    target = wp.int32(row)
    place = wp.int32(row)
    interval = memory.left[world, row]
    sides = wp.int32(1)
    left_bar = scalar(0.0)
    from_middle = flying and memory.from_middle[world, row] != 0
    if from_middle:
        place = middle
        sides = 2
        begin_middle_backward(tree, work, world, middle)
    if not flying:
        target = spare
        place = spare
        interval = scalar(0.0)
        sides = 2
        for k in range(tree.positions):
            work.q[world, spare, k] = work.q[world, row, k]
        for d in range(tree.velocities):
            work.q_bar[world, spare, d] = scalar(0.0)
            work.v_bar[world, spare, d] = scalar(0.0)
            work.v[world, spare, d] = scalar(0.0)
        move_links(tree, work, world, spare)
    for side in range(sides):
        if flying and side == 1:
            left_bar += speed_up_backward(tree, work, memory, world, row, middle, interval)
            move_links(tree, work, world, middle)
            solve_inward(tree, work, world, work.a_bar, row)
            solve_outward(tree, work, world, work.multiplier, row)
        if flying:
            left_bar += loads_by_time(tree, work, world, row, interval)
        else:
            apply_joint_loads(tree, work, forces, world, step, spare, scalar(0.0))
            for d in range(tree.velocities):
                gained = work.v[world, row + 1, d] - work.v[world, row, d]
                work.a[world, spare, d] = scalar(1 - side) * gained
                work.multiplier[world, spare, d] = scalar(2 * side - 1) * work.multiplier[world, row, d]
            move_virtually(tree, work, world, spare)
        if memory.count[world, row] > 0 or side > 0:
            accelerate_links(tree, work, world, target)
        residual_backward(tree, work, forces, gradients, world, step, target, place, interval)
    if from_middle:
        left_bar += go_to_middle_backward(tree, work, memory, world, row, middle, interval)
    if not flying:
        for d in range(tree.velocities):
            work.q_bar[world, row, d] = work.q_bar[world, row, d] + work.q_bar[world, spare, d]
    return left_bar


@wp.func(inline=True)
def operation_backward(
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
    left_bar_after: scalar,
):
    """From the adjoints in row + 1 to those in row, of a flight or an impact; that of the time left at the start."""
    flying = memory.kind[world, row] == FLIGHT
    left = memory.left[world, row]
    count = memory.count[world, row]
    spare = contacts.operations + 1
    left_bar = scalar(left_bar_after)
    scale = scalar(1.0)
    if flying:
        scale = scalar(-1.0) / left
        left_bar = flown_backward(tree, work, contacts, memory, gradients, touch, world, row, left_bar_after)
    else:
        for d in range(tree.velocities):
            work.q_bar[world, row, d] = work.q_bar[world, row + 1, d]
            work.v_bar[world, row, d] = work.v_bar[world, row + 1, d]
            work.a_bar[world, row, d] = work.v_bar[world, row + 1, d]
    solve_inward(tree, work, world, work.a_bar, row)
    if count > 0:
        if flying and memory.looked_ahead[world, row] != 0:
            place_moved(tree, work, contacts, memory, world, row)
        turn_moved(tree, work, memory, world)
        left_bar += held_backward(tree, work, contacts, memory, gradients, touch, world, step, row, scale)
    solve_outward(tree, work, world, work.multiplier, row)
    if flying:
        left_bar += spins_by_time(tree, work, world, row, left)
    if count > 0:
        for d in range(tree.velocities):
            work.rate[world, row, d] = work.v[world, row, d]
            work.rate[world, spare, d] = work.multiplier[world, row, d]
            work.rate[world, row + 1, d] = work.v[world, row + 1, d]
            if flying:
                work.rate[world, row + 1, d] = work.v[world, row, d] + left * work.a[world, row, d]
        if flying:
            for c in range(count):
                pushed = contact_velocity(tree, memory, world, c, work.multiplier, row)
                left_bar += wp.dot(pushed, memory.impulse[world, c]) / (left * left)
        else:
            restored_backward(tree, work, contacts, memory, touch, world, row)
        bouncing = wp.int32(not flying)
        contacts_backward(tree, work, contacts, memory, gradients, touch, world, row, scale, bouncing)
    left_bar += dynamics_backward(tree, work, forces, contacts, memory, gradients, world, step, row)
    return left_bar
