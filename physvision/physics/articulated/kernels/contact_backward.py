"""Adjoints of one flight and of one impact.

A flight's acceleration a and impulses λ over the time h that is left solve, with f = λ / h and w = v + h a,

    R = ID(q, v, a) + B (v + h a) + K(q) − τ − J(q)ᵀ f = 0,      F(λ, u) = 0 with u = J(q) w + gap / h₀,
h₀ being the whole step's time.

For an incoming ā the impulses' adjoint is λ̄ = (M⁻¹ Jᵀ)ᵀ ā / h; `impulses_backward` makes ū of it, and with
ā + h Jᵀ ū in its place the implicit function theorem on R gives the rest. An impact solves M (v′ − v) = J(q)ᵀ λ and
F(λ, u) = 0 with u = J v′ + e J_n v in the same way.
"""

import warp as wp

from . import scalar
from .delassus import add_halves, add_push, contact_velocity, response
from .events import TAKEN_BACK, bounces
from .forward import solve_inward, solve_outward
from .impulses import impulses_backward
from .inverse import accelerate_links, move_virtually, residual_backward
from .joints import advance_backward
from .kinematics import move_links
from .loads import apply_joint_loads
from .modes import BOUNDED, TIES, TOUCHES, TURNS
from .spatial import vec3
from .ties import tie_off_backward, tie_work_backward
from .touching import place_in_world, place_moved
from .touching_backward import contact_work_backward, gap_backward
from .transmissions import transmission_backward
from .tree import ContactGradients, ContactMemory, Contacts, Forces, Gradients, Tree, Workspace
from .turning import turning_work_backward


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

    Where `bouncing`, what restitution adds too, and v is in rate[row].
    """
    for c in range(memory.count[world, row]):
        pair = memory.pair[world, c]
        for part in range(2 + bouncing):
            along = memory.slip_bar[world, c]
            motion_row = row + 1
            if part == 1:
                along = scale * memory.impulse[world, c]
                motion_row = contacts.operations + 1
            elif part == 2:
                along = vec3(memory.restored_bar[world, c], scalar(0.0), scalar(0.0))
                motion_row = row
            if memory.law[world, c] == TURNS:
                if part < 2:
                    turning_work_backward(
                        tree, contacts, work, gradients, touch, memory, world, row, pair, work.rate, motion_row, along
                    )
            elif memory.law[world, c] == TIES:
                if part < 2:
                    tie_work_backward(
                        tree, contacts, work, gradients, touch, memory, world, row, pair, work.rate, motion_row, along
                    )
            elif part < 2 or along[0] != scalar(0.0):
                contact_work_backward(
                    tree, contacts, work, gradients, touch, memory, world, row, pair, work.rate, motion_row, along
                )
        if touch.wanted != 0 and memory.law[world, c] == TURNS:
            touch.torsion[world, pair] = touch.torsion[world, pair] + memory.low_bar[world, c]
            touch.rolling[world, pair] = touch.rolling[world, pair] + memory.high_bar[world, c]
        elif touch.wanted != 0 and pair < contacts.pairs:
            touch.friction[world, pair] = touch.friction[world, pair] + memory.friction_bar[world, c]


@wp.func(inline=True)
def flight_backward(
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
    """From the adjoints in row + 1 to those in row; returns that of the time left at the start."""
    t = memory.duration[world, row]
    left = memory.left[world, row]
    struck = memory.struck[world, row]
    count = memory.count[world, row]
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
        gap_backward(tree, contacts, work, gradients, touch, memory, world, spare, struck, scalar(1.0), 1)
        weight = -(left_bar - left_bar_after) / time_bar(tree, work, world, row, spare, spare, t, 0)
        for d in range(tree.velocities):
            share = weight * work.q_bar[world, spare, d]
            work.q_bar[world, row + 1, d] = work.q_bar[world, row + 1, d] + share
        gap_backward(tree, contacts, work, gradients, touch, memory, world, spare, struck, weight, 0)
        left_bar = left_bar_after
    for d in range(tree.velocities):
        work.rate_bar[world, row + 1, d] = scalar(0.0)
        work.q_bar[world, row, d] = scalar(0.0)
    advance_backward(tree, world, work.q_bar, row + 1, work.rate, row + 1, work.rate_bar, row + 1, work.q_bar, row, t)
    for d in range(tree.velocities):
        end_bar = work.v_bar[world, row + 1, d]
        rate_bar = work.rate_bar[world, row + 1, d]
        work.v_bar[world, row, d] = end_bar + rate_bar
        work.a_bar[world, row, d] = t * end_bar + scalar(0.5) * t * rate_bar
    for d in range(tree.velocities):
        work.a_bar[world, row, d] = -work.a_bar[world, row, d]
    solve_inward(tree, work, world, work.a_bar, row)
    if count > 0:
        if memory.looked_ahead[world, row] != 0:
            place_moved(tree, work, contacts, memory, world, row)
        left_bar += held_backward(tree, work, contacts, memory, gradients, touch, world, step, row)
    solve_outward(tree, work, world, work.multiplier, row)
    for d in range(tree.velocities):
        left_bar += work.multiplier[world, row, d] * work.drag[world, d] * work.a[world, row, d]
        if tree.servo[d] >= 0:
            after = work.v[world, row, d] + left * work.a[world, row, d]
            left_bar += work.multiplier[world, row, d] * tree.joint_stiffness[world, tree.servo[d]] * after
    if count > 0:
        for d in range(tree.velocities):
            work.rate[world, row + 1, d] = work.v[world, row, d] + left * work.a[world, row, d]
            work.rate[world, spare, d] = work.multiplier[world, row, d]
        contacts_backward(tree, work, contacts, memory, gradients, touch, world, row, scalar(-1.0) / left, 0)
        for c in range(count):
            pushed = contact_velocity(tree, memory, world, c, work.multiplier, row)
            left_bar += wp.dot(pushed, memory.impulse[world, c]) / (left * left)
        accelerate_links(tree, work, world, row)
    residual_backward(tree, work, forces, gradients, world, step, row, left)
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
):
    """Adjoint of u = J w + gap / h and of the impulses, where `rest` holds −W ā; the adjoint of h in u.

    Adds what follows for ā, that is h Jᵀ ū, to `rest`.
    """
    left = memory.left[world, row]
    count = memory.count[world, row]
    left_bar = scalar(0.0)
    for c in range(count):
        memory.impulse_bar[world, c] = (scalar(-1.0) / left) * response(tree, work, memory, world, c)
    impulses_backward(memory, world, count)
    for c in range(count):
        slip_bar = memory.slip_bar[world, c]
        add_push(tree, memory, world, c, slip_bar, work.v_bar, row)
        left_bar += wp.dot(slip_bar, contact_velocity(tree, memory, world, c, work.a, row))
        add_halves(tree, work, memory, world, c, -left * slip_bar)
    for c in range(count):
        pair = memory.pair[world, c]
        if memory.law[world, c] == BOUNDED:
            left_bar += transmission_backward(
                tree, work, contacts, memory, gradients, touch, world, step, row, c, TAKEN_BACK
            )
        elif memory.law[world, c] == TIES:
            tie_off_backward(tree, work, contacts, memory, gradients, touch, world, row, c, TAKEN_BACK)
        elif memory.law[world, c] == TOUCHES:
            bar = TAKEN_BACK * memory.slip_bar[world, c][0] / memory.left[world, 0]
            gap_backward(tree, contacts, work, gradients, touch, memory, world, row, pair, bar, 0)
    return left_bar


@wp.func(inline=True)
def impact_backward(
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
):
    """From the adjoints in row + 1 to those in row."""
    count = memory.count[world, row]
    spare = contacts.operations + 1
    solve_inward(tree, work, world, work.v_bar, row + 1)
    for c in range(count):
        memory.impulse_bar[world, c] = response(tree, work, memory, world, c)
    impulses_backward(memory, world, count)
    for d in range(tree.velocities):
        work.q_bar[world, row, d] = work.q_bar[world, row + 1, d]
        work.v_bar[world, row, d] = work.v_bar[world, row + 1, d]
    for c in range(count):
        add_push(tree, memory, world, c, memory.slip_bar[world, c], work.v_bar, row)
        add_halves(tree, work, memory, world, c, memory.slip_bar[world, c])
    solve_outward(tree, work, world, work.multiplier, row)
    for d in range(tree.velocities):
        work.rate[world, row, d] = work.v[world, row, d]
        work.rate[world, row + 1, d] = work.v[world, row + 1, d]
        work.rate[world, spare, d] = work.multiplier[world, row, d]
    for c in range(count):
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
    contacts_backward(tree, work, contacts, memory, gradients, touch, world, row, scalar(1.0), 1)
    # −mᵀ M (v′ − v): M is what inverse dynamics at rest adds for an acceleration.
    for k in range(tree.positions):
        work.q[world, spare, k] = work.q[world, row, k]
    for d in range(tree.velocities):
        work.q_bar[world, spare, d] = scalar(0.0)
        work.v_bar[world, spare, d] = scalar(0.0)
        work.v[world, spare, d] = scalar(0.0)
    move_links(tree, work, world, spare)
    for side in range(2):
        sign = scalar(1 - 2 * side)
        apply_joint_loads(tree, work, forces, world, step, spare, scalar(0.0))
        for d in range(tree.velocities):
            gained = work.v[world, row + 1, d] - work.v[world, row, d]
            work.a[world, spare, d] = scalar(1 - side) * gained
            work.multiplier[world, spare, d] = -sign * work.multiplier[world, row, d]
        accelerate_links(tree, work, world, spare)
        move_virtually(tree, work, world, spare)
        residual_backward(tree, work, forces, gradients, world, step, spare, scalar(0.0))
    for d in range(tree.velocities):
        work.q_bar[world, row, d] = work.q_bar[world, row, d] + work.q_bar[world, spare, d]
