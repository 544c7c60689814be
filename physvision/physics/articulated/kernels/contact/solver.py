"""Impulses of contacts: one complementarity problem, by Newton's method on the modes of its contacts.

With u = A λ + b, the velocity of the contacts after the impulse with its bias, each contact obeys

    0 ≤ λ_n ⟂ u_n ≥ 0,   λ_t = −μ λ_n u_t / |u_t| where it slides,   |λ_t| ≤ μ λ_n where u_t = 0.

A contact is a block of three: its impulse is a vector (normal, two tangents), the Delassus matrix A has 3×3 blocks.
Blocks of other laws (bounded rows, turning friction) take part beside them; `beside` has their equations.
Newton's method solves the equations F(λ, u) = 0 of the modes: λ = 0 (open), u = 0 (stick), u_n = 0 and
λ_t = μ λ_n y/|y| with y = A_nn λ_t − u_t (slide, also where it is about to). All that approach are taken to stick at
first, and modes are judged anew after each step: what rests on its feet needs one step. Newton's matrix
G = F_λ + F_u A has a trace of compliance on its diagonal, for several contacts of one body leave impulses undetermined;
velocities do not feel it. Where Newton's method fails, projected sweeps find the modes that it starts from; where they
fail too (a strong coupling of normal and tangent lets sweeps diverge), the solution with much compliance is followed
while compliance falls, and then the one without friction while friction rises.

The adjoint at the solution: F(λ, A λ + b) = 0 gives, for an incoming λ̄, one solve Gᵀ y = λ̄,
and then ū = −F_uᵀ y, μ̄ = −yᵀ F_μ.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, pyramidal, scalar
from physvision.physics.articulated.kernels.spatial.vectors import transposed, zero3
from physvision.physics.articulated.kernels.structs import OPEN, SLIDES, STICKS, TOUCHES, ContactMemory

from .active_set import (
    EXACT,
    LEAST,
    find_slip,
    guess,
    judge,
    largest,
    projected,
    sweep,
)
from .block_lu import factor, solve_factored_transposed
from .friction_pyramid import held_still, pyramid_backward, stiffest
from .newton import (
    COMPLIANCE,
    SOFT,
    SOFTEST,
    build_equations,
    finish,
    hold_all,
    slip_rate,
)
from .noncontact_constraints import beside_backward, effect, forget_beside

ACCEPTED = wp.constant(scalar(1.0e-8 if DOUBLE else 1.0e-3))  # residual beyond which a step fails
FOLLOWED = wp.constant(6)  # the first trial in which compliance falls from the softest; each next is half as fast
FIRST_RAISED = wp.constant(9)  # the trial from which on friction is raised from nothing
SWEEPS = wp.constant(12)
MANY_SWEEPS = wp.constant(1000)
RAMP = wp.constant(17)  # steps in which it is
ORDERS = wp.constant(4)


@wp.func
def sweeps_of(trial: int):
    """How many sweeps a trial begins with at most."""
    sweeps = wp.int32(0)
    if trial == 1 or trial == FIRST_RAISED:
        sweeps = SWEEPS
    if trial == 2:
        sweeps = 10 * SWEEPS
    if trial == 4:
        sweeps = MANY_SWEEPS
    return sweeps


@wp.func
def turn_around(memory: ContactMemory, world: int, start: int, end: int):
    """List the members from `start` to `end` the other way round."""
    for k in range((end - start) / 2):
        first = memory.member[world, start + k]
        memory.member[world, start + k] = memory.member[world, end - 1 - k]
        memory.member[world, end - 1 - k] = first


@wp.func(inline=True)
def try_island(memory: ContactMemory, world: int, start: int, end: int):
    """Impulse of an island from `delassus`, `drive` and `friction`; the residual over its largest velocity.

    First all are held still. Where that is no solution, Newton's method from a guess, then from what a few sweeps find,
    then with more compliance from what more sweeps find, then from what many find, each followed by a try without that
    goes on from where it ended; then along the one solution that there is with the most compliance, more slowly where
    it was lost, and last with friction raised.
    """
    size = scalar(LEAST)
    for m in range(start, end):
        c = memory.member[world, m]
        size = wp.max(size, effect(memory, world, c) * largest(memory.drive[world, c]))
    residual = hold_all(memory, world, start, end, size)
    raised = wp.int32(0)
    enough = scalar(1.0) * EXACT  # a variable, not a constant, to Warp
    trial = wp.int32(0)
    while trial < FIRST_RAISED + RAMP and (raised != 0 or not (residual <= enough)):
        share = scalar(1.0)
        if trial >= FIRST_RAISED:
            raised = 1
            share = scalar(trial - FIRST_RAISED) / scalar(RAMP - 1)
        if trial <= 2 or (trial >= FOLLOWED and trial <= FIRST_RAISED):
            guess(memory, world, start, end, share)
        present = scalar(1.0e29)
        if trial >= 1 and trial <= FIRST_RAISED:
            change = scalar(1.0e29)
            for _sweep in range(sweeps_of(trial)):
                if change > EXACT * size:
                    change = sweep(memory, world, start, end, share)
            find_slip(memory, world, start, end)
            present = judge(memory, world, start, end, share, EXACT * size) / size
        compliance = scalar(COMPLIANCE)
        if trial == 2 or trial == 4:
            compliance = scalar(SOFT)
        slowness = wp.int32(1)
        if trial >= FOLLOWED and trial < FIRST_RAISED:
            compliance = scalar(SOFTEST)
            slowness = 1 << (trial - FOLLOWED)
        residual = finish(memory, world, start, end, share, size, compliance, slowness, present)
        trial += 1
        if trial >= FIRST_RAISED:
            enough = scalar(1.0) * ACCEPTED
    return residual


@wp.func(inline=True)
def solve_island(memory: ContactMemory, world: int, start: int, end: int):
    """The same, and where all of that fails, with contacts in other orders.

    Which contacts bear what is not determined where several press one body; Newton's steps from one order may go round
    among answers that differ by that alone, and from another end at one.
    """
    residual = scalar(1.0e30)
    order = wp.int32(0)
    while order < ORDERS and not (residual <= ACCEPTED):
        if order > 0:
            turn_around(memory, world, start, wp.max(start, end + 1 - order))
        residual = try_island(memory, world, start, end)
        order += 1
    return residual


@wp.func(inline=True)
def solve_impulses(memory: ContactMemory, world: int, count: int):
    """Impulse of all contacts, island by island; the worst residual."""
    worst = scalar(0.0)
    start = wp.int32(0)
    while start < count:
        end = memory.island_end[world, start]
        residual = solve_island(memory, world, start, end)
        # Not a number is larger than any.
        if not (residual <= worst):
            worst = residual
        start = end
    return worst


@wp.func(inline=True)
def island_backward(memory: ContactMemory, world: int, start: int, end: int):
    """Of an island from impulse_bar to slip_bar, which is that of b too, and to the gradients to friction.

    What is about to slide and stands still has a derivative to either side; that of sticking is taken, for several such
    contacts of one body leave their impulses undetermined.
    """
    size = scalar(LEAST)
    for m in range(start, end):
        c = memory.member[world, m]
        size = wp.max(size, effect(memory, world, c) * largest(memory.drive[world, c]))
    for m in range(start, end):
        c = memory.member[world, m]
        slip = memory.slip[world, c]
        if wp.static(pyramidal):
            if memory.law[world, c] == TOUCHES and memory.friction[world, c] > scalar(0.0):
                if memory.mode[world, c] != OPEN and held_still(memory, world, c, EXACT * size):
                    memory.factored[world, start] = -1
        elif memory.friction[world, c] > scalar(0.0) and memory.mode[world, c] == SLIDES:
            if wp.max(wp.abs(slip[1]), wp.abs(slip[2])) < EXACT * size:
                memory.mode[world, c] = STICKS
    closed = memory.factored[world, start]
    if closed < 0:
        closed = build_equations(memory, world, start, end, scalar(1.0), scalar(COMPLIANCE))
        factor(memory, world, start, closed)
    for row in range(start, start + closed):
        memory.vector[world, row] = memory.impulse_bar[world, memory.closed[world, row]]
    solve_factored_transposed(memory, world, start, closed)
    for m in range(start, end):
        c = memory.member[world, m]
        memory.slip_bar[world, c] = zero3()
        memory.friction_bar[world, c] = scalar(0.0)
        forget_beside(memory, world, c)
    for row in range(start, start + closed):
        c = memory.closed[world, row]
        y = memory.vector[world, row]
        if memory.law[world, c] != TOUCHES:
            beside_backward(memory, world, c, y)
            continue
        memory.slip_bar[world, c] = -transposed(slip_rate(memory, world, c, scalar(1.0)), y)
        if wp.static(pyramidal):
            weight = stiffest(memory.delassus[world, c, c])
            memory.friction_bar[world, c] = pyramid_backward(memory.mode[world, c], weight, memory.impulse[world, c], y)
        elif memory.mode[world, c] == SLIDES:
            along = projected(memory, world, c)
            normal = memory.delassus[world, c, c][0, 0] * memory.impulse[world, c][0]
            memory.friction_bar[world, c] = normal * (along[1] * y[1] + along[2] * y[2])


@wp.func(inline=True)
def impulses_backward(memory: ContactMemory, world: int, count: int):
    """The same of all islands."""
    start = wp.int32(0)
    while start < count:
        end = memory.island_end[world, start]
        island_backward(memory, world, start, end)
        start = end
