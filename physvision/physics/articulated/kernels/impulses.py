"""Impulses of contacts: one complementarity problem, by projected sweeps and a finish on the set of modes they find.

With u = A λ + b, the velocity of the contacts after the impulse with its bias, each contact obeys

    0 ≤ λ_n ⟂ u_n ≥ 0,   λ_t = −μ λ_n u_t / |u_t| where it slides,   |λ_t| ≤ μ λ_n where u_t = 0.

The finish is Newton's method on the equations F(λ, u) = 0 of the modes: λ = 0 (open), u = 0 (stick), u_n = 0 and
λ_t = μ λ_n y/|y| with y = λ_t − u_t / A_nn (slide, also where it is about to); modes are judged anew after each step.
Newton's matrix has a trace of compliance on its diagonal, for several contacts of one body leave impulses undetermined;
velocities do not feel it. Where that fails, many more sweeps come first; where they fail too (a strong coupling of
normal and tangent lets sweeps diverge), the solution without friction is followed while friction rises.

The adjoint at the solution: F(λ, A λ + b) = 0 gives, for an incoming λ̄, one solve Gᵀ y = λ̄ with G = F_λ + F_u A,
and then ū = −F_uᵀ y, μ̄ = −yᵀ F_μ.
"""

import warp as wp

from . import scalar
from .spatial import vec3
from .tree import ContactMemory, Contacts

OPEN = wp.constant(0)
STICKS = wp.constant(1)
SLIDES = wp.constant(2)

DOUBLE = scalar is wp.float64
COMPLIANCE = wp.constant(scalar(1.0e-11 if DOUBLE else 1.0e-5))  # of the diagonal's mean
EXACT = wp.constant(scalar(1.0e-10 if DOUBLE else 1.0e-4))  # residual of velocities, of the largest there is
ACCEPTED = wp.constant(scalar(1.0e-5 if DOUBLE else 1.0e-3))  # residual beyond which a step fails
SWEEPS = wp.constant(12)
FINISHES = wp.constant(12)
NEAR = wp.constant(scalar(1.0e-5 if DOUBLE else 1.0e-4))  # residual that asks for no other way
MANY_SWEEPS = wp.constant(2000)
RELAXED = wp.constant(scalar(0.7))  # below one, or a foot that friction presses down is pushed and left in turn
RAMP = wp.constant(17)  # steps in which friction is raised from nothing, where the direct way fails
LEAST = wp.constant(scalar(1.0e-300 if DOUBLE else 1.0e-30))


@wp.func
def find_slip(memory: ContactMemory, world: int, rows: int):
    """Slip = A λ + b; the largest size of its terms."""
    size = scalar(0.0)
    for r in range(rows):
        total = memory.drive[world, r]
        size = wp.max(size, wp.abs(total))
        for c in range(rows):
            total += memory.delassus[world, r, c] * memory.impulse[world, c]
        memory.slip[world, r] = total
    return size


@wp.func
def sweep(memory: ContactMemory, contacts: Contacts, world: int, count: int, share: scalar):
    """One projected sweep over all contacts; notes the mode each was left in. How much velocities changed at most."""
    rows = 3 * count
    change = scalar(0.0)
    for c in range(count):
        n = 3 * c
        friction = share * contacts.friction[world, memory.pair[world, c]]
        slip = memory.drive[world, n]
        for k in range(rows):
            slip += memory.delassus[world, n, k] * memory.impulse[world, k]
        normal = wp.max(scalar(0.0), memory.impulse[world, n] - RELAXED * slip / memory.delassus[world, n, n])
        change = wp.max(change, wp.abs(normal - memory.impulse[world, n]) * memory.delassus[world, n, n])
        memory.impulse[world, n] = normal
        first = memory.drive[world, n + 1]
        second = memory.drive[world, n + 2]
        for k in range(rows):
            first += memory.delassus[world, n + 1, k] * memory.impulse[world, k]
            second += memory.delassus[world, n + 2, k] * memory.impulse[world, k]
        stiff = memory.delassus[world, n + 1, n + 1] + memory.delassus[world, n + 2, n + 2]
        first = memory.impulse[world, n + 1] - first / stiff
        second = memory.impulse[world, n + 2] - second / stiff
        length = wp.sqrt(first * first + second * second)
        bound = friction * normal
        mode = wp.int32(STICKS)
        if normal <= scalar(0.0):
            mode = OPEN
        if length > bound or bound <= scalar(0.0):
            if mode == STICKS:
                mode = SLIDES
            factor = bound / wp.max(length, LEAST)
            first = first * factor
            second = second * factor
        change = wp.max(change, stiff * wp.abs(first - memory.impulse[world, n + 1]))
        change = wp.max(change, stiff * wp.abs(second - memory.impulse[world, n + 2]))
        memory.impulse[world, n + 1] = first
        memory.impulse[world, n + 2] = second
        memory.mode[world, c] = mode
    return change


@wp.func
def projected(memory: ContactMemory, world: int, n: int):
    """Direction and length of A_nn λ_t − u_t, which the friction of a sliding contact is along."""
    weight = memory.delassus[world, n, n]
    first = weight * memory.impulse[world, n + 1] - memory.slip[world, n + 1]
    second = weight * memory.impulse[world, n + 2] - memory.slip[world, n + 2]
    length = wp.max(wp.sqrt(first * first + second * second), LEAST)
    return vec3(first / length, second / length, length)


@wp.func
def judge(memory: ContactMemory, contacts: Contacts, world: int, count: int, share: scalar, size: scalar, change: int):
    """The largest violation of what the contacts' modes ask for; those with one get another mode where `change`."""
    worst = scalar(0.0)
    for c in range(count):
        n = 3 * c
        friction = share * contacts.friction[world, memory.pair[world, c]]
        weight = memory.delassus[world, n, n]
        mode = memory.mode[world, c]
        normal = memory.impulse[world, n]
        slip = memory.slip[world, n]
        wrong = scalar(0.0)
        found = mode
        if mode == OPEN:
            if slip < scalar(0.0):
                wrong = -slip
                found = STICKS
                if friction <= scalar(0.0):
                    found = SLIDES
        elif normal < scalar(0.0):
            wrong = -normal * weight
            found = OPEN
        else:
            # Sliding friction lies on the cone, sticking friction within it.
            along = projected(memory, world, n)
            beyond = along[2] - weight * friction * normal
            if mode == STICKS:
                wrong = wp.max(scalar(0.0), beyond)
                found = SLIDES
            elif friction > scalar(0.0):
                wrong = wp.max(scalar(0.0), -beyond)
                found = STICKS
        if change != 0 and wrong > EXACT * size:
            memory.mode[world, c] = found
        worst = wp.max(worst, wrong)
    return worst


@wp.func
def build_equations(memory: ContactMemory, contacts: Contacts, world: int, count: int, share: scalar):
    """Matrix = F_λ + F_u A and vector = F at the present impulse, slip and modes; the largest of F as velocities."""
    rows = 3 * count
    worst = scalar(0.0)
    soft = scalar(0.0)
    for r in range(rows):
        soft += COMPLIANCE * memory.delassus[world, r, r] / scalar(rows)
    for c in range(count):
        n = 3 * c
        friction = share * contacts.friction[world, memory.pair[world, c]]
        mode = memory.mode[world, c]
        weight = memory.delassus[world, n, n]
        along = projected(memory, world, n)
        bound = weight * friction * memory.impulse[world, n]
        turning = bound / along[2]
        for k in range(3):
            r = n + k
            for j in range(rows):
                value = scalar(0.0)
                if mode == STICKS or (mode == SLIDES and k == 0):
                    value = memory.delassus[world, r, j]
                elif mode == SLIDES:
                    across = along[0] * memory.delassus[world, n + 1, j] + along[1] * memory.delassus[world, n + 2, j]
                    value = turning * (memory.delassus[world, r, j] - along[k - 1] * across)
                memory.matrix[world, r, j] = value
            value = memory.slip[world, r]
            stiff = soft
            if mode == OPEN:
                stiff = weight
                value = weight * memory.impulse[world, r]
            elif mode == SLIDES and k > 0:
                stiff = weight * (scalar(1.0) - turning)
                value = weight * memory.impulse[world, r] - bound * along[k - 1]
                memory.matrix[world, r, n] = memory.matrix[world, r, n] - weight * friction * along[k - 1]
                for j in range(2):
                    share_j = turning * weight * along[k - 1] * along[j]
                    memory.matrix[world, r, n + 1 + j] = memory.matrix[world, r, n + 1 + j] + share_j
            memory.matrix[world, r, r] = memory.matrix[world, r, r] + stiff
            memory.vector[world, r] = value
            worst = wp.max(worst, wp.abs(value))
    return worst


@wp.func
def factor(memory: ContactMemory, world: int, rows: int):
    """Factor the matrix in place, rows exchanged for the largest pivot."""
    for k in range(rows):
        best = wp.int32(k)
        for r in range(k + 1, rows):
            if wp.abs(memory.matrix[world, r, k]) > wp.abs(memory.matrix[world, best, k]):
                best = r
        memory.pivot[world, k] = best
        if best != k:
            for c in range(rows):
                held = memory.matrix[world, k, c]
                memory.matrix[world, k, c] = memory.matrix[world, best, c]
                memory.matrix[world, best, c] = held
        for r in range(k + 1, rows):
            share = memory.matrix[world, r, k] / memory.matrix[world, k, k]
            memory.matrix[world, r, k] = share
            if share != scalar(0.0):
                for c in range(k + 1, rows):
                    memory.matrix[world, r, c] = memory.matrix[world, r, c] - share * memory.matrix[world, k, c]


@wp.func
def solve_factored(memory: ContactMemory, world: int, rows: int):
    """Vector = matrix⁻¹ vector."""
    for k in range(rows):
        other = memory.pivot[world, k]
        held = memory.vector[world, k]
        memory.vector[world, k] = memory.vector[world, other]
        memory.vector[world, other] = held
    for r in range(rows):
        total = memory.vector[world, r]
        for c in range(r):
            total -= memory.matrix[world, r, c] * memory.vector[world, c]
        memory.vector[world, r] = total
    for backwards in range(rows):
        r = rows - 1 - backwards
        total = memory.vector[world, r]
        for c in range(r + 1, rows):
            total -= memory.matrix[world, r, c] * memory.vector[world, c]
        memory.vector[world, r] = total / memory.matrix[world, r, r]


@wp.func
def solve_factored_transposed(memory: ContactMemory, world: int, rows: int):
    """Vector = matrix⁻ᵀ vector."""
    for r in range(rows):
        total = memory.vector[world, r]
        for c in range(r):
            total -= memory.matrix[world, c, r] * memory.vector[world, c]
        memory.vector[world, r] = total / memory.matrix[world, r, r]
    for backwards in range(rows):
        r = rows - 1 - backwards
        total = memory.vector[world, r]
        for c in range(r + 1, rows):
            total -= memory.matrix[world, c, r] * memory.vector[world, c]
        memory.vector[world, r] = total
    for backwards in range(rows):
        k = rows - 1 - backwards
        other = memory.pivot[world, k]
        held = memory.vector[world, k]
        memory.vector[world, k] = memory.vector[world, other]
        memory.vector[world, other] = held


@wp.func
def keep(memory: ContactMemory, world: int, count: int):
    """Note the present impulse and modes as the best."""
    for r in range(3 * count):
        memory.best_impulse[world, r] = memory.impulse[world, r]
    for c in range(count):
        memory.best_mode[world, c] = memory.mode[world, c]


@wp.func
def finish(memory: ContactMemory, contacts: Contacts, world: int, count: int, share: scalar):
    """Newton's method from the present impulse and modes, with a share of the friction; the residual.

    Where it does not converge (rows that differ by rounding alone cannot all stand still), the best it met is kept.
    """
    rows = 3 * count
    size = wp.max(find_slip(memory, world, rows), LEAST)
    residual = wp.max(
        judge(memory, contacts, world, count, share, size, 0), build_equations(memory, contacts, world, count, share)
    )
    residual = residual / size
    best = residual
    keep(memory, world, count)
    judge(memory, contacts, world, count, share, size, 1)
    for _step in range(FINISHES):
        if residual > EXACT:
            build_equations(memory, contacts, world, count, share)
            factor(memory, world, rows)
            solve_factored(memory, world, rows)
            for r in range(rows):
                memory.impulse[world, r] = memory.impulse[world, r] - memory.vector[world, r]
            find_slip(memory, world, rows)
            wrong = judge(memory, contacts, world, count, share, size, 0)
            residual = wp.max(wrong, build_equations(memory, contacts, world, count, share)) / size
            if residual < best:
                best = residual
                keep(memory, world, count)
            judge(memory, contacts, world, count, share, size, 1)
    for r in range(rows):
        memory.impulse[world, r] = memory.best_impulse[world, r]
    for c in range(count):
        memory.mode[world, c] = memory.best_mode[world, c]
    find_slip(memory, world, rows)
    return best


@wp.func
def solve_impulses(memory: ContactMemory, contacts: Contacts, world: int, count: int):
    """Impulse from `delassus` and `drive`; the residual over the largest velocity, above `EXACT` where it failed."""
    rows = 3 * count
    ramped = wp.int32(0)
    size = scalar(0.0)
    for r in range(rows):
        size = wp.max(size, wp.abs(memory.drive[world, r]))
    residual = scalar(1.0e30)
    for trial in range(2 + RAMP):
        if residual > NEAR or ramped != 0:
            share = scalar(1.0)
            sweeps = wp.int32(SWEEPS)
            if trial == 1:
                sweeps = MANY_SWEEPS
            if trial > 1:
                ramped = 1
                share = scalar(trial - 2) / scalar(RAMP - 1)
            if trial == 0 or trial == 2:
                for r in range(rows):
                    memory.impulse[world, r] = scalar(0.0)
            if trial < 3:
                change = scalar(1.0e30)
                for _sweep in range(sweeps):
                    if change > EXACT * size:
                        change = sweep(memory, contacts, world, count, share)
            residual = finish(memory, contacts, world, count, share)
    return residual


@wp.func
def impulses_backward(memory: ContactMemory, contacts: Contacts, world: int, count: int):
    """From impulse_bar to slip_bar (of b too); leaves y in `vector`."""
    rows = 3 * count
    build_equations(memory, contacts, world, count, scalar(1.0))
    factor(memory, world, rows)
    for r in range(rows):
        memory.vector[world, r] = memory.impulse_bar[world, r]
    solve_factored_transposed(memory, world, rows)
    for c in range(count):
        n = 3 * c
        friction = contacts.friction[world, memory.pair[world, c]]
        mode = memory.mode[world, c]
        for k in range(3):
            bar = scalar(0.0)
            if mode == STICKS or (mode == SLIDES and k == 0):
                bar = -memory.vector[world, n + k]
            memory.slip_bar[world, n + k] = bar
        if mode == SLIDES:
            along = projected(memory, world, n)
            turning = memory.delassus[world, n, n] * friction * memory.impulse[world, n] / along[2]
            across = along[0] * memory.vector[world, n + 1] + along[1] * memory.vector[world, n + 2]
            for k in range(1, 3):
                memory.slip_bar[world, n + k] = -turning * (memory.vector[world, n + k] - along[k - 1] * across)


@wp.func
def friction_bar(memory: ContactMemory, world: int, c: int):
    """The gradient to the coefficient of contact c."""
    n = 3 * c
    bar = scalar(0.0)
    if memory.mode[world, c] == SLIDES:
        along = projected(memory, world, n)
        across = along[0] * memory.vector[world, n + 1] + along[1] * memory.vector[world, n + 2]
        bar = memory.delassus[world, n, n] * memory.impulse[world, n] * across
    return bar
