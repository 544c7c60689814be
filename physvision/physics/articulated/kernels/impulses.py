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
fail too (a strong coupling of normal and tangent lets sweeps diverge), the solution without friction is followed while
friction rises.

The adjoint at the solution: F(λ, A λ + b) = 0 gives, for an incoming λ̄, one solve Gᵀ y = λ̄,
and then ū = −F_uᵀ y, μ̄ = −yᵀ F_μ.
"""

import warp as wp

from . import scalar
from .beside import (
    begin_beside,
    beside_backward,
    effect,
    equations_beside,
    forget_beside,
    judge_beside,
    sweep_beside,
    write_beside,
)
from .blocks import factor, solve_factored, solve_factored_transposed
from .modes import OPEN, SLIDES, STICKS, TOUCHES, TURNS
from .spatial import mat33, transposed, vec3, zero3
from .tree import ContactMemory

DOUBLE = scalar is wp.float64
COMPLIANCE = wp.constant(scalar(1.0e-13 if DOUBLE else 1.0e-5))  # of the diagonal's mean
EXACT = wp.constant(scalar(1.0e-11 if DOUBLE else 1.0e-4))  # residual of velocities, of the largest there is
# Where friction can push along directions that move next to nothing, a step with little compliance goes far beyond
# every cone at once. With much at first and less each time, impulses grow until the contacts that must slide do, one
# after the other, and the others stay as they are.
SOFT = wp.constant(scalar(1.0e-3))
SOFTENED = wp.constant(scalar(0.92))
SOFT_STEPS = wp.constant(160)
ACCEPTED = wp.constant(scalar(1.0e-8 if DOUBLE else 1.0e-3))  # residual beyond which a step fails
TIGHT = wp.constant(scalar(1.0e-13 if DOUBLE else 1.0e-5))  # residual at which Newton's method stops
NEWTON_STEPS = wp.constant(12)
FIRST_RAISED = wp.constant(6)  # the trial from which on friction is raised from nothing
SWEEPS = wp.constant(12)
MANY_SWEEPS = wp.constant(1000)
RELAXED = wp.constant(scalar(0.7))  # below one, or a foot that friction presses down is pushed and left in turn
RAMP = wp.constant(17)  # steps in which it is
LEAST = wp.constant(scalar(1.0e-300 if DOUBLE else 1.0e-30))
HUGE = wp.constant(scalar(1.0e30))


@wp.func
def largest(a: vec3):
    return wp.max(wp.abs(a[0]), wp.max(wp.abs(a[1]), wp.abs(a[2])))


@wp.func
def find_slip(memory: ContactMemory, world: int, count: int):
    """Slip = A λ + b."""
    for c in range(count):
        total = memory.drive[world, c]
        for k in range(count):
            if memory.island[world, k] == memory.island[world, c]:
                total = total + memory.delassus[world, c, k] * memory.impulse[world, k]
        memory.slip[world, c] = total


@wp.func
def sweep(memory: ContactMemory, world: int, count: int, share: scalar):
    """One projected sweep over all contacts; notes the mode each was left in. How much velocities changed at most."""
    change = scalar(0.0)
    for c in range(count):
        bound = share * memory.friction[world, c]
        own = memory.delassus[world, c, c]
        was = memory.impulse[world, c]
        slip = memory.drive[world, c]
        for k in range(count):
            if memory.island[world, k] == memory.island[world, c]:
                slip = slip + memory.delassus[world, c, k] * memory.impulse[world, k]
        if memory.law[world, c] != TOUCHES:
            change = wp.max(change, sweep_beside(memory, world, c, share, slip))
            continue
        normal = wp.max(scalar(0.0), was[0] - RELAXED * slip[0] / own[0, 0])
        slip = slip + (normal - was[0]) * vec3(own[0, 0], own[1, 0], own[2, 0])
        stiff = wp.max(own[1, 1] + own[2, 2], LEAST)  # nothing where there is no tangent
        first = was[1] - slip[1] / stiff
        second = was[2] - slip[2] / stiff
        length = wp.sqrt(first * first + second * second)
        bound = bound * normal
        mode = wp.int32(STICKS)
        if length > bound or bound <= scalar(0.0):
            mode = SLIDES
            factor_to_cone = bound / wp.max(length, LEAST)
            first = first * factor_to_cone
            second = second * factor_to_cone
        if normal <= scalar(0.0):
            mode = OPEN
        found = vec3(normal, first, second)
        change = wp.max(change, wp.max(own[0, 0], stiff) * largest(found - was))
        memory.impulse[world, c] = found
        memory.mode[world, c] = mode
    return change


@wp.func
def projected(memory: ContactMemory, world: int, c: int):
    """Direction (second and third number) and length (first) of A_nn λ_t − u_t, along which a contact rubs."""
    weight = memory.delassus[world, c, c][0, 0]
    y = weight * memory.impulse[world, c] - memory.slip[world, c]
    length = wp.max(wp.sqrt(y[1] * y[1] + y[2] * y[2]), LEAST)
    return vec3(length, y[1] / length, y[2] / length)


@wp.func
def closed_mode(friction: scalar):
    """The mode that a contact is taken to have when it closes."""
    mode = wp.int32(STICKS)
    if friction <= scalar(0.0):
        mode = SLIDES
    return mode


@wp.func
def judge(memory: ContactMemory, world: int, count: int, share: scalar, tolerance: scalar):
    """How far the contacts are from what their modes ask for, as a velocity; notes the modes to try next."""
    worst = scalar(0.0)
    for c in range(count):
        if memory.law[world, c] != TOUCHES:
            beside = judge_beside(memory, world, c, share, tolerance)
            if not (beside <= worst):
                worst = beside
            continue
        friction = share * memory.friction[world, c]
        weight = memory.delassus[world, c, c][0, 0]
        mode = memory.mode[world, c]
        impulse = memory.impulse[world, c]
        slip = memory.slip[world, c]
        wrong = scalar(0.0)
        off = scalar(0.0)
        other = mode
        if mode == OPEN:
            wrong = -slip[0]
            other = closed_mode(friction)
        else:
            # Sliding friction lies on the cone, sticking friction within it.
            along = projected(memory, world, c)
            bound = weight * friction * impulse[0]
            if mode == STICKS:
                off = largest(slip)
                wrong = along[0] - bound
                other = SLIDES
            else:
                rubbing = weight * impulse - bound * along
                off = wp.max(wp.abs(slip[0]), wp.max(wp.abs(rubbing[1]), wp.abs(rubbing[2])))
                if friction > scalar(0.0):
                    wrong = bound - along[0]
                other = STICKS
            if impulse[0] < scalar(0.0):
                wrong = -weight * impulse[0]
                other = OPEN
        memory.next_mode[world, c] = mode
        if wrong > tolerance:
            memory.next_mode[world, c] = other
        # Not a number is larger than any.
        if not (wp.max(wrong, off) <= worst):
            worst = wp.max(wrong, off)
    return worst


@wp.func
def slip_rate(memory: ContactMemory, world: int, c: int, share: scalar):
    """F_u of a contact that is not open."""
    z = scalar(0.0)
    one = scalar(1.0)
    rate = mat33(one, z, z, z, one, z, z, z, one)
    if memory.mode[world, c] == SLIDES:
        along = projected(memory, world, c)
        weight = memory.delassus[world, c, c][0, 0]
        # At most one at a solution; on the way to it, and where nothing presses, the direction may be rounding alone.
        turning = wp.clamp(weight * share * memory.friction[world, c] * memory.impulse[world, c][0] / along[0], z, one)
        cross = -turning * along[1] * along[2]
        first = turning * (one - along[1] * along[1])
        second = turning * (one - along[2] * along[2])
        rate = mat33(one, z, z, z, first, cross, z, cross, second)
    return rate


@wp.func
def build_equations(memory: ContactMemory, world: int, count: int, share: scalar, compliance: scalar):
    """Matrix = F_λ + F_u A of the contacts that are not open, which are listed in `closed`: their number."""
    soft = scalar(0.0)
    closed = wp.int32(0)
    for c in range(count):
        soft += wp.trace(memory.delassus[world, c, c])
        if memory.mode[world, c] != OPEN:
            memory.closed[world, closed] = c
            closed += 1
    soft = compliance * soft / scalar(3 * count)
    z = scalar(0.0)
    for row in range(closed):
        c = memory.closed[world, row]
        if memory.law[world, c] != TOUCHES:
            write_beside(memory, world, row, closed, share, soft)
        elif memory.mode[world, c] == STICKS:
            for column in range(closed):
                k = memory.closed[world, column]
                if memory.island[world, k] == memory.island[world, c]:
                    memory.matrix[world, row, column] = memory.delassus[world, c, k]
            memory.matrix[world, row, row] = memory.matrix[world, row, row] + mat33(soft, z, z, z, soft, z, z, z, soft)
        else:
            rate = slip_rate(memory, world, c, share)
            for column in range(closed):
                k = memory.closed[world, column]
                if memory.island[world, k] == memory.island[world, c]:
                    memory.matrix[world, row, column] = rate * memory.delassus[world, c, k]
            along = projected(memory, world, c)
            weight = memory.delassus[world, c, c][0, 0]
            slope = weight * share * memory.friction[world, c]
            # F_λ: of λ_t − μ λ_n y/|y| times A_nn, and y turns with λ_t.
            memory.matrix[world, row, row] = memory.matrix[world, row, row] + mat33(
                soft, z, z,
                -slope * along[1], soft + weight * (scalar(1.0) - rate[1, 1]), -weight * rate[1, 2],
                -slope * along[2], -weight * rate[2, 1], soft + weight * (scalar(1.0) - rate[2, 2]),
            )  # fmt: skip
    return closed


@wp.func
def write_imbalance(memory: ContactMemory, world: int, closed: int, share: scalar):
    """Vector = F of the closed contacts."""
    for row in range(closed):
        c = memory.closed[world, row]
        slip = memory.slip[world, c]
        memory.vector[world, row] = slip
        if memory.law[world, c] != TOUCHES:
            memory.vector[world, row] = equations_beside(memory, world, c, share)
        elif memory.mode[world, c] != STICKS:
            along = projected(memory, world, c)
            weight = memory.delassus[world, c, c][0, 0]
            impulse = memory.impulse[world, c]
            off = weight * impulse - weight * share * memory.friction[world, c] * impulse[0] * along
            memory.vector[world, row] = vec3(slip[0], off[1], off[2])


@wp.func
def keep(memory: ContactMemory, world: int, count: int):
    """Note the present impulse and modes as the best."""
    for c in range(count):
        memory.best_impulse[world, c] = memory.impulse[world, c]
        memory.best_mode[world, c] = memory.mode[world, c]


@wp.func
def newton_step(memory: ContactMemory, world: int, count: int, share: scalar, compliance: scalar, factored: int):
    """One step towards F = 0 in the present modes, and the slip there: the number of contacts that are not open.

    Args:
        factored: this number, where the last step's factors are those of this one; otherwise negative.
    """
    closed = wp.int32(factored)
    if closed < 0:
        closed = build_equations(memory, world, count, share, compliance)
        factor(memory, world, closed)
        for c in range(count):
            if memory.mode[world, c] == OPEN:
                memory.impulse[world, c] = zero3()
    write_imbalance(memory, world, closed, share)
    solve_factored(memory, world, closed)
    for row in range(closed):
        c = memory.closed[world, row]
        memory.impulse[world, c] = memory.impulse[world, c] - memory.vector[world, row]
    find_slip(memory, world, count)
    return closed


@wp.func
def take_modes(memory: ContactMemory, world: int, count: int):
    """Take the modes that `judge` noted; whether the equations are linear, and the same as before."""
    same = bool(True)
    for c in range(count):
        mode = memory.next_mode[world, c]
        if mode != memory.mode[world, c] or (mode == SLIDES and memory.friction[world, c] > scalar(0.0)):
            same = bool(False)
        if memory.law[world, c] == TURNS and mode > STICKS:
            same = bool(False)
        memory.mode[world, c] = mode
    return same


@wp.func
def finish(
    memory: ContactMemory, world: int, count: int, share: scalar, size: scalar, compliance: scalar, present: scalar
):
    """Newton's method from the present impulse, slip and modes, with a share of the friction; the residual.

    Where it does not converge (rows that differ by rounding alone cannot all stand still), the best it met is kept, or
    the start, whose residual is `present`.
    """
    residual = scalar(1.0e30)
    best = present
    keep(memory, world, count)
    steps = wp.int32(NEWTON_STEPS)
    if compliance >= SOFT:
        steps = SOFT_STEPS
    softness = scalar(1.0) * compliance  # a variable, not a constant, to Warp
    factored = wp.int32(-1)
    memory.factored[world] = -1
    step = wp.int32(0)
    while step < steps and not (residual <= TIGHT):
        closed = newton_step(memory, world, count, share, softness, factored)
        residual = judge(memory, world, count, share, EXACT * size) / size
        if residual < best:
            best = residual
            keep(memory, world, count)
        factored = -1
        if take_modes(memory, world, count) and softness <= COMPLIANCE:
            factored = closed
        if softness > COMPLIANCE:
            softness = scalar(SOFTENED) * softness
        step += 1
    memory.factored[world] = factored
    if not (residual <= best):
        memory.factored[world] = -1
        for c in range(count):
            memory.impulse[world, c] = memory.best_impulse[world, c]
            memory.mode[world, c] = memory.best_mode[world, c]
        find_slip(memory, world, count)
    return best


@wp.func
def guess(memory: ContactMemory, world: int, count: int, share: scalar):
    """No impulse, and closed what would approach."""
    for c in range(count):
        memory.impulse[world, c] = zero3()
        memory.slip[world, c] = memory.drive[world, c]
        memory.mode[world, c] = OPEN
        if memory.law[world, c] != TOUCHES:
            begin_beside(memory, world, c)
        elif memory.drive[world, c][0] < scalar(0.0):
            memory.mode[world, c] = closed_mode(share * memory.friction[world, c])


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
def solve_impulses(memory: ContactMemory, world: int, count: int):
    """Impulse from `delassus`, `drive` and `friction`; the residual over the largest velocity.

    First Newton's method from a guess, then from what a few sweeps find, then with more compliance from what more
    sweeps find, then from what many find, then with friction raised. Each try with more compliance is followed by one
    without, that goes on from where it ended.
    """
    size = scalar(LEAST)
    for c in range(count):
        size = wp.max(size, effect(memory, world, c) * largest(memory.drive[world, c]))
    residual = scalar(HUGE)
    raised = wp.int32(0)
    for trial in range(FIRST_RAISED + RAMP):
        enough = scalar(EXACT)
        if trial >= FIRST_RAISED:
            enough = scalar(ACCEPTED)
        if raised != 0 or not (residual <= enough):
            share = scalar(1.0)
            if trial >= FIRST_RAISED:
                raised = 1
                share = scalar(trial - FIRST_RAISED) / scalar(RAMP - 1)
            if trial <= 2 or trial == FIRST_RAISED:
                guess(memory, world, count, share)
            # Not HUGE: the compiler takes the variable that began as a constant for the constant itself.
            present = scalar(1.0e29)
            if trial >= 1 and trial <= FIRST_RAISED:
                change = scalar(1.0e29)
                for _sweep in range(sweeps_of(trial)):
                    if change > EXACT * size:
                        change = sweep(memory, world, count, share)
                find_slip(memory, world, count)
                present = judge(memory, world, count, share, EXACT * size) / size
            compliance = scalar(COMPLIANCE)
            if trial == 2 or trial == 4:
                compliance = scalar(SOFT)
            residual = finish(memory, world, count, share, size, compliance, present)
    return residual


@wp.func
def impulses_backward(memory: ContactMemory, world: int, count: int):
    """From impulse_bar to slip_bar, which is that of b too, and to the gradients of the coefficients of friction.

    What is about to slide and stands still has a derivative to either side; that of sticking is taken, for several such
    contacts of one body leave their impulses undetermined.
    """
    size = scalar(LEAST)
    for c in range(count):
        size = wp.max(size, effect(memory, world, c) * largest(memory.drive[world, c]))
    for c in range(count):
        slip = memory.slip[world, c]
        if memory.friction[world, c] > scalar(0.0) and memory.mode[world, c] == SLIDES:
            if wp.max(wp.abs(slip[1]), wp.abs(slip[2])) < EXACT * size:
                memory.mode[world, c] = STICKS
    closed = memory.factored[world]
    if closed < 0:
        closed = build_equations(memory, world, count, scalar(1.0), scalar(COMPLIANCE))
        factor(memory, world, closed)
    for row in range(closed):
        memory.vector[world, row] = memory.impulse_bar[world, memory.closed[world, row]]
    solve_factored_transposed(memory, world, closed)
    for c in range(count):
        memory.slip_bar[world, c] = zero3()
        memory.friction_bar[world, c] = scalar(0.0)
        forget_beside(memory, world, c)
    for row in range(closed):
        c = memory.closed[world, row]
        y = memory.vector[world, row]
        if memory.law[world, c] != TOUCHES:
            beside_backward(memory, world, c, y)
            continue
        memory.slip_bar[world, c] = -transposed(slip_rate(memory, world, c, scalar(1.0)), y)
        if memory.mode[world, c] == SLIDES:
            along = projected(memory, world, c)
            normal = memory.delassus[world, c, c][0, 0] * memory.impulse[world, c][0]
            memory.friction_bar[world, c] = normal * (along[1] * y[1] + along[2] * y[2])
