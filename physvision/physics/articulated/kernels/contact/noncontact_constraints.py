"""Blocks beside those of contacts in the complementarity problem of `impulses`: bounded rows, and turning friction.

A bounded row has one direction, of which the impulse λ and the velocity u, with its bias, obey

    low ≤ λ ≤ high,    u = 0 within,    u ≥ 0 where λ = low,    u ≤ 0 where λ = high:

the dry friction of a joint, a servo with a largest force, a tie between joints (bounds at infinity). What yields,
u + ε λ = 0, has its ε on the diagonal of the Delassus matrix.

Turning friction belongs to a contact with the normal impulse λ_n. Its three directions are the turns about the
normal and about both tangents, with the lengths ρ and σ: |λ_0| ≤ ρ λ_n, against the sign of the spin u_0, and
|(λ_1, λ_2)| ≤ σ λ_n, against the rolling (u_1, u_2), in the way of a contact's own tangents.

A tie between bodies has three rows that always stick.

Equations F(λ, u) = 0 of the modes, with w for a diagonal number of the Delassus matrix and y = w λ − u:

    sticks  u = 0      at a bound  w (λ − bound) = 0      spins or rolls  w (λ − ρ λ_n y/|y|) = 0.

F_u = 1 where it sticks, 0 at a bound; where it rolls w σ λ_n (1 − ŷ ŷᵀ)/|y|, and F_λ = w (1 − F_u). The dependence on
λ_n is −w ρ ŷ in the column of the contact.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import transposed, zero3
from physvision.physics.articulated.kernels.structs import (
    AT_HIGH,
    AT_LOW,
    BOUNDED,
    OPEN,
    ROLLS,
    SPINS,
    SPINS_AND_ROLLS,
    STICKS,
    TURNS,
    ContactMemory,
)

LEAST = wp.constant(scalar(1.0e-300 if DOUBLE else 1.0e-30))


@wp.func
def diagonal(x: scalar, y: scalar, z: scalar):
    o = scalar(0.0)
    return mat33(x, o, o, o, y, o, o, o, z)


@wp.func
def weights(memory: ContactMemory, world: int, c: int):
    """How much velocity an impulse gives, along the block's directions; the two tangents share one number."""
    own = memory.delassus[world, c, c]
    across = wp.max(scalar(0.5) * (own[1, 1] + own[2, 2]), LEAST)
    return vec3(wp.max(own[0, 0], LEAST), across, across)


@wp.func
def spins(mode: int):
    return mode == SPINS or mode == SPINS_AND_ROLLS


@wp.func
def rolls(mode: int):
    return mode == ROLLS or mode == SPINS_AND_ROLLS


@wp.func
def turning_mode(spinning: bool, rolling: bool):
    mode = wp.int32(STICKS)
    if spinning:
        mode = SPINS
    if rolling:
        mode = ROLLS
        if spinning:
            mode = SPINS_AND_ROLLS
    return mode


@wp.func
def towards(memory: ContactMemory, world: int, c: int):
    """The velocity w λ − u, whose direction is that of what rubs."""
    weight = weights(memory, world, c)
    impulse = memory.impulse[world, c]
    slip = memory.slip[world, c]
    return vec3(weight[0] * impulse[0] - slip[0], weight[1] * impulse[1] - slip[1], weight[2] * impulse[2] - slip[2])


@wp.func
def rolling_direction(y: vec3):
    """Length (first number) and direction of the rolling part of y."""
    length = wp.max(wp.sqrt(y[1] * y[1] + y[2] * y[2]), LEAST)
    return vec3(length, y[1] / length, y[2] / length)


@wp.func
def sign_of(x: scalar):
    found = scalar(1.0)
    if x < scalar(0.0):
        found = scalar(-1.0)
    return found


@wp.func
def effect(memory: ContactMemory, world: int, c: int):
    """The share of a bounded row's velocity that its bodies take, where it yields for the rest."""
    share = scalar(1.0)
    if memory.law[world, c] == BOUNDED:
        yielded = memory.yielding[world, c] / memory.delassus[world, c, c][0, 0]
        share = wp.max(scalar(1.0) - yielded, scalar(0.0))
    return share


@wp.func
def begin_beside(memory: ContactMemory, world: int, c: int):
    """The mode to begin with, where there is no impulse yet; that of a contact is known before its turning."""
    mode = wp.int32(STICKS)
    if memory.law[world, c] == TURNS:
        mode = turning_mode(memory.torsion[world, c] <= scalar(0.0), memory.rolling[world, c] <= scalar(0.0))
        if memory.mode[world, memory.holder[world, c]] == OPEN:
            mode = OPEN
    memory.mode[world, c] = mode


@wp.func
def sweep_beside(memory: ContactMemory, world: int, c: int, share: scalar, slip: vec3):
    """Project the impulse of a block with this velocity; how much velocities changed at most."""
    weight = weights(memory, world, c)
    was = memory.impulse[world, c]
    found = vec3(was[0] - slip[0] / weight[0], was[1] - slip[1] / weight[1], was[2] - slip[2] / weight[2])
    mode = wp.int32(STICKS)
    if memory.law[world, c] == BOUNDED:
        pushed = found[0]
        found = vec3(wp.clamp(pushed, memory.low[world, c], memory.high[world, c]), scalar(0.0), scalar(0.0))
        if pushed <= memory.low[world, c]:
            mode = AT_LOW
        elif pushed >= memory.high[world, c]:
            mode = AT_HIGH
    elif memory.law[world, c] == TURNS:
        normal = share * memory.impulse[world, memory.holder[world, c]][0]
        most = memory.torsion[world, c] * normal
        length = wp.sqrt(found[1] * found[1] + found[2] * found[2])
        bound = memory.rolling[world, c] * normal
        spinning = bool(wp.abs(found[0]) >= most)
        rolling = bool(length >= bound)
        onto = scalar(1.0)
        if rolling:
            onto = bound / wp.max(length, LEAST)
        mode = turning_mode(spinning, rolling)
        if memory.mode[world, memory.holder[world, c]] == OPEN:
            mode = OPEN
        found = vec3(wp.clamp(found[0], -most, most), onto * found[1], onto * found[2])
    memory.impulse[world, c] = found
    memory.mode[world, c] = mode
    changed = found - was
    return wp.max(weight[0] * wp.abs(changed[0]), weight[1] * wp.max(wp.abs(changed[1]), wp.abs(changed[2])))


@wp.func
def equations_beside(memory: ContactMemory, world: int, c: int, share: scalar):
    """F of a block that is not open."""
    weight = weights(memory, world, c)
    impulse = memory.impulse[world, c]
    off = memory.slip[world, c]
    mode = memory.mode[world, c]
    if memory.law[world, c] == BOUNDED:
        off = vec3(off[0], weight[0] * impulse[1], weight[0] * impulse[2])
        if mode == AT_LOW:
            off[0] = weight[0] * (impulse[0] - memory.low[world, c])
        elif mode == AT_HIGH:
            off[0] = weight[0] * (impulse[0] - memory.high[world, c])
    elif memory.law[world, c] == TURNS:
        y = towards(memory, world, c)
        normal = share * memory.impulse[world, memory.holder[world, c]][0]
        if spins(mode):
            off[0] = weight[0] * (impulse[0] - memory.torsion[world, c] * normal * sign_of(y[0]))
        if rolls(mode):
            along = rolling_direction(y)
            bound = memory.rolling[world, c] * normal
            off[1] = weight[1] * (impulse[1] - bound * along[1])
            off[2] = weight[2] * (impulse[2] - bound * along[2])
    return off


@wp.func
def rate_beside(memory: ContactMemory, world: int, c: int, share: scalar):
    """F_u of a block that is not open."""
    z = scalar(0.0)
    one = scalar(1.0)
    mode = memory.mode[world, c]
    rate = diagonal(one, one, one)
    if memory.law[world, c] == BOUNDED:
        rate = diagonal(one, z, z)
        if mode != STICKS:
            rate = diagonal(z, z, z)
    elif memory.law[world, c] == TURNS:
        first = one
        if spins(mode):
            first = z
        rate = diagonal(first, one, one)
        if rolls(mode):
            along = rolling_direction(towards(memory, world, c))
            normal = share * memory.impulse[world, memory.holder[world, c]][0]
            bound = weights(memory, world, c)[1] * memory.rolling[world, c] * normal
            turning = wp.clamp(bound / along[0], z, one)
            cross = -turning * along[1] * along[2]
            rate = mat33(
                first, z, z,
                z, turning * (one - along[1] * along[1]), cross,
                z, cross, turning * (one - along[2] * along[2]),
            )  # fmt: skip
    return rate


@wp.func
def own_rate_beside(memory: ContactMemory, world: int, c: int, rate: mat33):
    """F_λ of a block that is not open, in its own impulse: w (1 − F_u) in the directions that do not stick."""
    weight = weights(memory, world, c)
    one = scalar(1.0)
    mode = memory.mode[world, c]
    own = diagonal(weight[0] * (one - rate[0, 0]), weight[0], weight[0])
    if memory.law[world, c] != BOUNDED:
        own = diagonal(own[0, 0], scalar(0.0), scalar(0.0))
        if rolls(mode):
            w = weight[1]
            own = mat33(
                own[0, 0], scalar(0.0), scalar(0.0),
                scalar(0.0), w * (one - rate[1, 1]), -w * rate[1, 2],
                scalar(0.0), -w * rate[2, 1], w * (one - rate[2, 2]),
            )  # fmt: skip
    return own


@wp.func
def held_rate(memory: ContactMemory, world: int, c: int, share: scalar):
    """The column of F_λ in the normal impulse of the contact that turning friction belongs to."""
    found = zero3()
    if memory.law[world, c] == TURNS:
        weight = weights(memory, world, c)
        mode = memory.mode[world, c]
        y = towards(memory, world, c)
        if spins(mode):
            found[0] = -share * weight[0] * memory.torsion[world, c] * sign_of(y[0])
        if rolls(mode):
            along = rolling_direction(y)
            slope = -share * weight[1] * memory.rolling[world, c]
            found[1] = slope * along[1]
            found[2] = slope * along[2]
    return found


@wp.func
def write_beside(memory: ContactMemory, world: int, row: int, start: int, end: int, share: scalar, soft: scalar):
    """The rows of Newton's matrix of a block, number `row` of those that are not open, from `start` to `end`."""
    c = memory.closed[world, row]
    rate = rate_beside(memory, world, c, share)
    for column in range(start, end):
        k = memory.closed[world, column]
        memory.matrix[world, row, column] = rate * memory.delassus[world, c, k]
    own = own_rate_beside(memory, world, c, rate) + diagonal(soft, soft, soft)
    memory.matrix[world, row, row] = memory.matrix[world, row, row] + own
    if memory.law[world, c] == TURNS:
        held = held_rate(memory, world, c, share)
        z = scalar(0.0)
        for column in range(start, row):
            if memory.closed[world, column] == memory.holder[world, c]:
                memory.matrix[world, row, column] = memory.matrix[world, row, column] + mat33(
                    held[0], z, z, held[1], z, z, held[2], z, z
                )


@wp.func
def judge_bounded(memory: ContactMemory, world: int, c: int, tolerance: scalar):
    """How far a bounded row is from what its mode asks for, as a velocity; notes the mode to try next."""
    mode = memory.mode[world, c]
    weight = weights(memory, world, c)[0] * effect(memory, world, c)
    slip = memory.slip[world, c][0] * effect(memory, world, c)
    impulse = memory.impulse[world, c][0]
    low = memory.low[world, c]
    high = memory.high[world, c]
    wrong = scalar(0.0)
    off = scalar(0.0)
    other = wp.int32(STICKS)
    if mode == STICKS:
        off = wp.abs(slip)
        wrong = weight * (low - impulse)
        other = AT_LOW
        if impulse > high:
            wrong = weight * (impulse - high)
            other = AT_HIGH
    elif mode == AT_LOW:
        off = weight * wp.abs(impulse - low)
        wrong = -slip
    else:
        off = weight * wp.abs(impulse - high)
        wrong = slip
    memory.next_mode[world, c] = mode
    if wrong > tolerance:
        memory.next_mode[world, c] = other
    return wp.max(wrong, off)


@wp.func
def judge_turning(memory: ContactMemory, world: int, c: int, share: scalar, tolerance: scalar):
    """The same of turning friction, whose contact is judged already."""
    mode = memory.mode[world, c]
    holder = memory.holder[world, c]
    slip = memory.slip[world, c]
    worst = scalar(0.0)
    torsion = memory.torsion[world, c]
    rolling = memory.rolling[world, c]
    if mode == OPEN:
        if memory.mode[world, holder] != OPEN:
            if torsion > scalar(0.0):
                worst = wp.abs(slip[0])
            if rolling > scalar(0.0):
                worst = wp.max(worst, wp.max(wp.abs(slip[1]), wp.abs(slip[2])))
        memory.next_mode[world, c] = turning_mode(torsion <= scalar(0.0), rolling <= scalar(0.0))
    else:
        off = equations_beside(memory, world, c, share)
        worst = wp.max(wp.abs(off[0]), wp.max(wp.abs(off[1]), wp.abs(off[2])))
        weight = weights(memory, world, c)
        y = towards(memory, world, c)
        normal = share * memory.impulse[world, holder][0]
        beyond = wp.abs(y[0]) - weight[0] * torsion * normal
        spinning = bool(spins(mode))
        if spinning:
            beyond = -beyond
            if torsion <= scalar(0.0):
                beyond = scalar(0.0)
        worst = wp.max(worst, beyond)
        if beyond > tolerance:
            spinning = not spinning
        beyond = rolling_direction(y)[0] - weight[1] * rolling * normal
        moving = bool(rolls(mode))
        if moving:
            beyond = -beyond
            if rolling <= scalar(0.0):
                beyond = scalar(0.0)
        worst = wp.max(worst, beyond)
        if beyond > tolerance:
            moving = not moving
        memory.next_mode[world, c] = turning_mode(spinning, moving)
    if memory.next_mode[world, holder] == OPEN:
        memory.next_mode[world, c] = OPEN
    return worst


@wp.func
def judge_beside(memory: ContactMemory, world: int, c: int, share: scalar, tolerance: scalar):
    found = scalar(0.0)
    if memory.law[world, c] == BOUNDED:
        found = judge_bounded(memory, world, c, tolerance)
    elif memory.law[world, c] == TURNS:
        found = judge_turning(memory, world, c, share, tolerance)
    else:
        slip = memory.slip[world, c]
        found = wp.max(wp.abs(slip[0]), wp.max(wp.abs(slip[1]), wp.abs(slip[2])))
        memory.next_mode[world, c] = STICKS
    return found


@wp.func
def forget_beside(memory: ContactMemory, world: int, c: int):
    """No gradient to a block's own numbers yet."""
    memory.low_bar[world, c] = scalar(0.0)
    memory.high_bar[world, c] = scalar(0.0)


@wp.func
def beside_backward(memory: ContactMemory, world: int, c: int, y: vec3):
    """Slip_bar and the adjoints of a block's own numbers (torsion and rolling, or both bounds) from the adjoint y of F.

    F falls by w with a bound, by w λ_n times the direction with a length of turning friction.
    """
    memory.slip_bar[world, c] = -transposed(rate_beside(memory, world, c, scalar(1.0)), y)
    weight = weights(memory, world, c)
    mode = memory.mode[world, c]
    if memory.law[world, c] == BOUNDED:
        if mode == AT_LOW:
            memory.low_bar[world, c] = weight[0] * y[0]
        elif mode == AT_HIGH:
            memory.high_bar[world, c] = weight[0] * y[0]
    elif memory.law[world, c] == TURNS:
        normal = memory.impulse[world, memory.holder[world, c]][0]
        turn = towards(memory, world, c)
        if spins(mode):
            memory.low_bar[world, c] = weight[0] * normal * sign_of(turn[0]) * y[0]
        if rolls(mode):
            along = rolling_direction(turn)
            memory.high_bar[world, c] = weight[1] * normal * (along[1] * y[1] + along[2] * y[2])
