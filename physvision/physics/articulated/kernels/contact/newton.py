"""Newton's method on the equations of the contacts' modes, with more or less compliance; see `impulses`.

All functions are about one island, the contacts from `start` to `end` in `member`; its equations have the same rows.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, pyramidal, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import zero3
from physvision.physics.articulated.kernels.structs import OPEN, SLIDES, STICKS, TOUCHES, ContactMemory

from .active_set import (
    CHANGED,
    EXACT,
    LINEAR,
    find_slip,
    judge,
    keep,
    largest,
    projected,
    take_modes,
)
from .block_lu import factor, solve_factored
from .friction_pyramid import (
    pyramid_equations,
    pyramid_impulse_rate,
    pyramid_slip_rate,
    stiffest,
)
from .noncontact_constraints import equations_beside, write_beside

COMPLIANCE = wp.constant(scalar(1.0e-13 if DOUBLE else 1.0e-5))  # of the diagonal's mean
# Where friction can push along directions that move next to nothing, a step with little compliance goes far beyond
# every cone at once. With much at first and less each time, impulses grow until the contacts that must slide do, one
# after the other, and the others stay as they are.
SOFT = wp.constant(scalar(1.0e-3))
SOFTENED = wp.constant(scalar(0.92))
SOFT_STEPS = wp.constant(160)
# With a compliance above the matrix itself there is one solution, which is followed to none: one contact changes its
# mode at a time, and compliance falls while none does. Where more have changed in a row than there are contacts, they
# go round; then all change at once and compliance falls, until none changes.
SOFTEST = wp.constant(scalar(10.0))
FOLLOWING = wp.constant(scalar(0.8))
FOLLOWING_STEPS = wp.constant(400)
TIGHT = wp.constant(scalar(1.0e-13 if DOUBLE else 1.0e-5))  # residual at which Newton's method stops
DEPENDENT = wp.constant(scalar(1.0e8 if DOUBLE else 1.0e3))  # a pivot this much smaller than the diagonal is doubtful
NEWTON_STEPS = wp.constant(12)


@wp.func
def slip_rate(memory: ContactMemory, world: int, c: int, share: scalar):
    """F_u of a contact that is not open."""
    if wp.static(pyramidal):
        return pyramid_slip_rate(memory.mode[world, c])
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
def build_equations(memory: ContactMemory, world: int, start: int, end: int, share: scalar, compliance: scalar):
    """Matrix = F_λ + F_u A of the contacts that are not open, which are listed in `closed`: their number."""
    soft = scalar(0.0)
    closed = wp.int32(0)
    for m in range(start, end):
        c = memory.member[world, m]
        soft += wp.trace(memory.delassus[world, c, c])
        if memory.mode[world, c] != OPEN:
            memory.closed[world, start + closed] = c
            closed += 1
    soft = compliance * soft / scalar(3 * (end - start))
    z = scalar(0.0)
    for row in range(start, start + closed):
        c = memory.closed[world, row]
        if memory.law[world, c] != TOUCHES:
            write_beside(memory, world, row, start, start + closed, share, soft)
        elif memory.mode[world, c] == STICKS:
            for column in range(start, start + closed):
                k = memory.closed[world, column]
                memory.matrix[world, row, column] = memory.delassus[world, c, k]
            memory.matrix[world, row, row] = memory.matrix[world, row, row] + mat33(soft, z, z, z, soft, z, z, z, soft)
        elif wp.static(pyramidal):
            rate = slip_rate(memory, world, c, share)
            for column in range(start, start + closed):
                k = memory.closed[world, column]
                memory.matrix[world, row, column] = rate * memory.delassus[world, c, k]
            weight = stiffest(memory.delassus[world, c, c])
            own = pyramid_impulse_rate(memory.mode[world, c], weight, share * memory.friction[world, c])
            own = own + mat33(soft, z, z, z, soft, z, z, z, soft)
            memory.matrix[world, row, row] = memory.matrix[world, row, row] + own
        else:
            rate = slip_rate(memory, world, c, share)
            for column in range(start, start + closed):
                k = memory.closed[world, column]
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
def write_imbalance(memory: ContactMemory, world: int, start: int, closed: int, share: scalar):
    """Vector = F of the closed contacts."""
    for row in range(start, start + closed):
        c = memory.closed[world, row]
        slip = memory.slip[world, c]
        memory.vector[world, row] = slip
        if memory.law[world, c] != TOUCHES:
            memory.vector[world, row] = equations_beside(memory, world, c, share)
        elif wp.static(pyramidal):
            weight = stiffest(memory.delassus[world, c, c])
            memory.vector[world, row] = pyramid_equations(
                memory.mode[world, c], weight, share * memory.friction[world, c], memory.impulse[world, c], slip
            )
        elif memory.mode[world, c] != STICKS:
            along = projected(memory, world, c)
            weight = memory.delassus[world, c, c][0, 0]
            impulse = memory.impulse[world, c]
            off = weight * impulse - weight * share * memory.friction[world, c] * impulse[0] * along
            memory.vector[world, row] = vec3(slip[0], off[1], off[2])


@wp.func
def newton_step(
    memory: ContactMemory, world: int, start: int, end: int, share: scalar, compliance: scalar, factored: int
):
    """One step towards F = 0 in the present modes, and the slip there: the number of contacts that are not open.

    Where the last step's factors are those of this one too, `factored` is that number; otherwise it is negative.
    """
    closed = wp.int32(factored)
    if closed < 0:
        closed = build_equations(memory, world, start, end, share, compliance)
        factor(memory, world, start, closed)
        let_go = bool(False)
        for m in range(start, end):
            c = memory.member[world, m]
            if memory.mode[world, c] == OPEN:
                let_go = let_go or largest(memory.impulse[world, c]) > scalar(0.0)
                memory.impulse[world, c] = zero3()
        if let_go:
            find_slip(memory, world, start, end)
    write_imbalance(memory, world, start, closed, share)
    solve_factored(memory, world, start, closed)
    for row in range(start, start + closed):
        c = memory.closed[world, row]
        memory.impulse[world, c] = memory.impulse[world, c] - memory.vector[world, row]
    find_slip(memory, world, start, end)
    return closed


@wp.func
def are_pressed(memory: ContactMemory, world: int, start: int, end: int):
    """Whether the island is of contacts alone, which all approach and have friction."""
    found = bool(True)
    for m in range(start, end):
        c = memory.member[world, m]
        if memory.law[world, c] != TOUCHES or not (memory.friction[world, c] > scalar(0.0)):
            found = bool(False)
        if not (memory.drive[world, c][0] < scalar(0.0)):
            found = bool(False)
    return found


@wp.func
def worst_pivot(memory: ContactMemory, world: int, start: int, end: int):
    """The largest reciprocal of a pivot that `factor` left, zero for one that there is none of."""
    worst = scalar(0.0)
    for row in range(start, end):
        own = memory.matrix[world, row, row]
        for k in range(3):
            if own[k, k] == scalar(0.0):
                worst = scalar(1.0e30)
            worst = wp.max(worst, wp.abs(own[k, k]))
    return worst


@wp.func
def hold_all(memory: ContactMemory, world: int, start: int, end: int, size: scalar):
    """Impulses with which nothing moves, and their residual: a large one where something has to.

    That is most of what stands. One solve without compliance finds it, unless rows depend on each other.
    """
    residual = scalar(1.0e29)
    if are_pressed(memory, world, start, end):
        most = scalar(0.0)
        for m in range(start, end):
            c = memory.member[world, m]
            memory.closed[world, m] = c
            memory.mode[world, c] = STICKS
            memory.vector[world, m] = -memory.drive[world, c]
            for n in range(start, end):
                memory.matrix[world, m, n] = memory.delassus[world, c, memory.member[world, n]]
            own = memory.delassus[world, c, c]
            most = wp.max(most, wp.max(own[0, 0], wp.max(own[1, 1], own[2, 2])))
        factor(memory, world, start, end - start)
        if worst_pivot(memory, world, start, end) * most < DEPENDENT:
            solve_factored(memory, world, start, end - start)
            for m in range(start, end):
                memory.impulse[world, memory.member[world, m]] = memory.vector[world, m]
            find_slip(memory, world, start, end)
            residual = judge(memory, world, start, end, scalar(1.0), EXACT * size) / size
            memory.factored[world, start] = end - start
    return residual


@wp.func
def finish(
    memory: ContactMemory,
    world: int,
    start: int,
    end: int,
    share: scalar,
    size: scalar,
    compliance: scalar,
    slowness: int,
    present: scalar,
):
    """Newton's method from the present impulse, slip and modes, with a share of the friction; the residual.

    A solution that is followed is so in so many times more steps, each of them as much smaller. Where Newton's method
    does not converge (rows that differ by rounding alone cannot all stand still), the best it met is kept, or the
    start, whose residual is `present`.
    """
    residual = scalar(1.0e30)
    best = present
    keep(memory, world, start, end)
    steps = wp.int32(NEWTON_STEPS)
    if compliance >= SOFT:
        steps = SOFT_STEPS
    fall = scalar(1.0) * SOFTENED
    following = compliance >= SOFTEST
    if following:
        steps = slowness * FOLLOWING_STEPS
        fall = wp.pow(FOLLOWING, scalar(1.0) / scalar(slowness))
    softness = scalar(1.0) * compliance  # a variable, not a constant, to Warp
    in_a_row = wp.int32(0)  # steps after which a mode changed
    factored = wp.int32(-1)
    memory.factored[world, start] = -1
    step = wp.int32(0)
    while step < steps and not (residual <= TIGHT):
        closed = newton_step(memory, world, start, end, share, softness, factored)
        residual = judge(memory, world, start, end, share, EXACT * size) / size
        if residual < best:
            best = residual
            keep(memory, world, start, end)
        factored = -1
        alone = following and in_a_row < end - start
        after = take_modes(memory, world, start, end, following, alone)
        if after == LINEAR and softness <= COMPLIANCE:
            factored = closed
        if softness > COMPLIANCE and (after != CHANGED or not alone):
            softness = fall * softness
        in_a_row += 1
        if after != CHANGED:
            in_a_row = 0
        step += 1
    memory.factored[world, start] = factored
    if not (residual <= best):
        memory.factored[world, start] = -1
        for m in range(start, end):
            c = memory.member[world, m]
            memory.impulse[world, c] = memory.best_impulse[world, c]
            memory.mode[world, c] = memory.best_mode[world, c]
        find_slip(memory, world, start, end)
    return best
