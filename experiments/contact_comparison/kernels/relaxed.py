"""Complementarity that holds but for a little, solved once in each step of fixed length, and its adjoint.

Each contact is at a point of the central path to complementarity: with κ, in J,

    λ_n u_n = κ,  both above zero;      λ_t ψ = −μ λ_n u_t,    ψ = s + √(s² + |u_t|²),  s = κ / (2 μ λ_n).

The second is the cone's, μ λ_n ψ + λ_t · u_t = κ with λ_t ψ + μ λ_n u_t = 0, solved for ψ: λ_t is in the cone, and
nearer to it the smaller κ is against what slides. All is smooth in the velocities and in μ, and where exact
complementarity leaves λ open this does not. Contacts that hold each other without room between have no such λ.

Newton's method solves, with w for A_nn, r = √((w λ_n − u_n)² + 4 w κ), N = (w λ_n − u_n + r) / 2 w and D = ψ + μ w N,

    F = (½ (w λ_n + u_n − r),  (ψ w λ_t + μ w N u_t) / D) = 0,    u = A λ + b,

the first being zero just where λ_n u_n = κ with both above zero, and then N = λ_n; N, which ψ has in place of λ_n, is
above zero everywhere. It begins where κ is as large as the impulses and
follows the path down. The adjoint is (F_λ + F_u A)ᵀ y = λ̄, ū = −F_uᵀ y, μ̄ = −yᵀ F_μ; D may be held constant in
all of these, for what it divides is zero.
"""

import warp as wp

from physvision.physics.articulated.kernels.contact.active_set import LEAST, find_slip, largest
from physvision.physics.articulated.kernels.contact.block_lu import factor, solve_factored, solve_factored_transposed
from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import transposed
from physvision.physics.articulated.kernels.structs import ContactMemory

from .fixed_step import kernels

TIGHT = wp.constant(scalar(1.0e-13 if DOUBLE else 1.0e-5))  # residual at which Newton's method stops
FOLLOWED = wp.constant(scalar(1.0e-2))  # residual at which κ falls on its way down
FALL = wp.constant(scalar(0.1))
STEPS = wp.constant(200)
HALVINGS = wp.constant(8)


@wp.struct
class Law:
    """The number of `Relaxed`."""

    dt: scalar
    smoothing: scalar


@wp.struct
class Equations:
    """F of one contact and its derivatives; `friction` is that of its tangents in μ."""

    off: vec3
    impulse: mat33
    slip: mat33
    friction: vec3


@wp.func
def equations(memory: ContactMemory, world: int, c: int, smoothing: scalar):
    z = scalar(0.0)
    half = scalar(0.5)
    impulse = memory.impulse[world, c]
    slip = memory.slip[world, c]
    mu = memory.friction[world, c]
    weight = memory.delassus[world, c, c][0, 0]
    pushed = weight * impulse[0] - slip[0]
    root = wp.sqrt(pushed * pushed + scalar(4.0) * weight * smoothing)
    # (root + |pushed|) / 2, and (root − |pushed|) / 2 without cancellation.
    larger = half * (root + wp.abs(pushed))
    smaller = weight * smoothing / larger
    more = wp.where(pushed < z, smaller, larger)
    less = wp.where(pushed < z, larger, smaller)
    result = Equations()
    result.off = vec3(half * (weight * impulse[0] + slip[0] - root), weight * impulse[1], weight * impulse[2])
    result.impulse = mat33(weight * less / root, z, z, z, weight, z, z, z, weight)
    result.slip = mat33(more / root, z, z, z, z, z, z, z, z)
    if mu > z:
        normal = more / weight
        s = half * smoothing / (mu * normal)
        length = wp.sqrt(s * s + slip[1] * slip[1] + slip[2] * slip[2])
        psi = s + length
        bound = mu * more
        whole = psi + bound
        rub_1 = weight * impulse[1] / whole
        rub_2 = weight * impulse[2] / whole
        spread = -s * (scalar(1.0) + s / length)  # N ∂ψ/∂N = μ ∂ψ/∂μ
        fraction = bound / whole
        first = spread * rub_1 + fraction * slip[1]  # N ∂F/∂N
        second = spread * rub_2 + fraction * slip[2]
        # N grows with w λ_n − u_n by (1 + (w λ_n − u_n) / r) / 2 w.
        extended = scalar(1.0) / (root * normal)
        result.off = vec3(result.off[0], psi * rub_1 + fraction * slip[1], psi * rub_2 + fraction * slip[2])
        own = weight * psi / whole
        result.impulse = mat33(
            weight * less / root, z, z, more * extended * first, own, z, more * extended * second, z, own
        )
        result.slip = mat33(
            more / root, z, z,
            -normal * extended * first, fraction + rub_1 * slip[1] / length, rub_1 * slip[2] / length,
            -normal * extended * second, rub_2 * slip[1] / length, fraction + rub_2 * slip[2] / length,
        )  # fmt: skip
        result.friction = vec3(z, first, second) / mu
    return result


@wp.func
def imbalance(memory: ContactMemory, world: int, start: int, end: int, smoothing: scalar):
    """Vector = F of the island's contacts; the largest number of it."""
    worst = scalar(0.0)
    for m in range(start, end):
        result = equations(memory, world, memory.member[world, m], smoothing)
        memory.vector[world, m] = result.off
        size = largest(result.off)
        # Not a number is larger than any.
        if not (size <= worst):
            worst = size
    return worst


@wp.func
def factor_rates(memory: ContactMemory, world: int, start: int, end: int, smoothing: scalar):
    """Factor F_λ + F_u A of the island."""
    for m in range(start, end):
        c = memory.member[world, m]
        result = equations(memory, world, c, smoothing)
        for n in range(start, end):
            memory.matrix[world, m, n] = result.slip * memory.delassus[world, c, memory.member[world, n]]
        memory.matrix[world, m, m] = memory.matrix[world, m, m] + result.impulse
    factor(memory, world, start, end - start)


@wp.func
def newton_step(memory: ContactMemory, world: int, start: int, end: int, smoothing: scalar, before: scalar):
    """Go as far along Newton's step as F falls; the largest number of F there."""
    factor_rates(memory, world, start, end, smoothing)
    solve_factored(memory, world, start, end - start)
    for m in range(start, end):
        c = memory.member[world, m]
        memory.best_impulse[world, c] = memory.impulse[world, c]
        memory.impulse_bar[world, c] = memory.vector[world, m]
    fraction = scalar(1.0)
    after = scalar(0.0)
    tries = wp.int32(0)
    too_far = bool(True)
    while tries < HALVINGS and too_far:
        for m in range(start, end):
            c = memory.member[world, m]
            memory.impulse[world, c] = memory.best_impulse[world, c] - fraction * memory.impulse_bar[world, c]
        find_slip(memory, world, start, end)
        after = imbalance(memory, world, start, end, smoothing)
        too_far = not (after <= (scalar(1.0) - scalar(0.1) * fraction) * before)
        fraction = scalar(0.5) * fraction
        tries += 1
    return after


@wp.func
def solve_island(law: Law, memory: ContactMemory, world: int, start: int, end: int):
    """Impulse of an island; the residual over its largest velocity."""
    size = scalar(0.0)
    softest = scalar(0.0)
    for m in range(start, end):
        c = memory.member[world, m]
        weight = memory.delassus[world, c, c][0, 0]
        size = wp.max(size, wp.max(largest(memory.drive[world, c]), wp.sqrt(weight * law.smoothing)))
    size = wp.max(size, LEAST)
    for m in range(start, end):
        c = memory.member[world, m]
        weight = memory.delassus[world, c, c][0, 0]
        softest = wp.max(softest, size * size / weight)
        memory.impulse[world, c] = vec3(size / weight, scalar(0.0), scalar(0.0))
    find_slip(memory, world, start, end)
    smoothing = wp.max(softest, law.smoothing)
    present = imbalance(memory, world, start, end, smoothing) / size
    falling = bool(True)
    step = wp.int32(0)
    while step < STEPS and falling:
        after = newton_step(memory, world, start, end, smoothing, size * present) / size
        # At the last κ it goes on until rounding is all that is left.
        if smoothing <= law.smoothing and (after <= TIGHT or not (after < present)):
            falling = bool(False)
        present = after
        while present <= FOLLOWED and smoothing > law.smoothing:
            smoothing = wp.max(law.smoothing, FALL * smoothing)
            present = imbalance(memory, world, start, end, smoothing) / size
        step += 1
    if smoothing > law.smoothing:
        present = scalar(1.0)
    return present


@wp.func
def solve(law: Law, memory: ContactMemory, world: int, count: int):
    """Impulse of all contacts, island by island; the worst residual."""
    worst = scalar(0.0)
    start = wp.int32(0)
    while start < count:
        end = memory.island_end[world, start]
        residual = solve_island(law, memory, world, start, end)
        if not (residual <= worst):
            worst = residual
        start = end
    return worst


@wp.func(inline=True)
def solve_backward(law: Law, memory: ContactMemory, world: int, count: int):
    start = wp.int32(0)
    while start < count:
        end = memory.island_end[world, start]
        factor_rates(memory, world, start, end, law.smoothing)
        for m in range(start, end):
            memory.vector[world, m] = memory.impulse_bar[world, memory.member[world, m]]
        solve_factored_transposed(memory, world, start, end - start)
        for m in range(start, end):
            c = memory.member[world, m]
            result = equations(memory, world, c, law.smoothing)
            y = memory.vector[world, m]
            memory.slip_bar[world, c] = -transposed(result.slip, y)
            memory.friction_bar[world, c] = -wp.dot(result.friction, y)
        start = end


rollout, rollout_backward = kernels(Law, solve, solve_backward)
