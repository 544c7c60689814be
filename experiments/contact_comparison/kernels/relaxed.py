"""Relaxed complementarity, solved once in each step of fixed length, and its adjoint.

Each contact is at a point of the central path to complementarity: with κ, in J,

    λ_n u_n = κ,  both positive;      λ_t ψ = −μ λ_n u_t,    ψ = s + √(s² + |u_t|²),  s = κ / (2 μ λ_n).

The second is that of the cone, μ λ_n ψ + λ_t · u_t = κ with λ_t ψ + μ λ_n u_t = 0, solved for ψ: λ_t is inside the
cone, and closer to it the smaller κ is relative to the sliding power. Everything is smooth in the velocities and in μ,
and λ is unique where exact complementarity leaves it undetermined. Contacts that clamp each other without room have no
such λ.

Newton's method solves, with w for A_nn, r = √((w λ_n − u_n)² + 4 w κ), N = (w λ_n − u_n + r) / 2 w and D = ψ + μ w N,

    F = (½ (w λ_n + u_n − r),  (ψ w λ_t + μ w N u_t) / D) = 0,    u = A λ + b,

of which the first is zero exactly if λ_n u_n = κ with both positive, and then N = λ_n; N, which replaces λ_n in ψ, is
positive everywhere. It begins with κ as large as the impulses and follows the path down. The adjoint is (F_λ + F_u A)ᵀ
y = λ̄, ū = −F_uᵀ y, μ̄ = −yᵀ F_μ; D may be held constant in all of these, since its numerator is zero.
"""

import warp as wp

from physvision.physics.articulated.kernels.contact.active_set import MIN_DIVISOR, max_abs, update_velocities
from physvision.physics.articulated.kernels.contact.block_lu import (
    factor_blocks,
    solve_factored,
    solve_factored_transposed,
)
from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import transpose_product
from physvision.physics.articulated.kernels.structs import Contact

from .fixed_step import kernels

CONVERGED_RESIDUAL = wp.constant(scalar(1.0e-13 if DOUBLE else 1.0e-5))  # residual at which Newton's method stops
DECAY_RESIDUAL = wp.constant(scalar(1.0e-2))  # residual at which κ falls on its way down
DECAY = wp.constant(scalar(0.1))
MAX_STEPS = wp.constant(200)
MAX_LINE_SEARCH = wp.constant(8)


@wp.struct
class Law:
    """Parameters of `Relaxed`, and the length of a step."""

    dt: scalar
    smoothing: scalar


@wp.struct
class Equations:
    """Residual F of one contact and its derivatives; `friction` is that of its tangents with respect to μ."""

    residual: vec3
    impulse: mat33
    slip: mat33
    friction: vec3


@wp.func
def equations(contact: Contact, world: int, c: int, smoothing: scalar):
    """Return F and its derivatives for contact c."""
    z = scalar(0.0)
    half = scalar(0.5)
    impulse = contact.solver.impulse[world, c]
    velocity = contact.solver.velocity[world, c]
    mu = contact.blocks.friction[world, c]
    weight = contact.solver.delassus[world, c, c][0, 0]
    drive = weight * impulse[0] - velocity[0]
    root = wp.sqrt(drive * drive + scalar(4.0) * weight * smoothing)
    # (root + |pushed|) / 2, and (root − |pushed|) / 2 without cancellation.
    larger = half * (root + wp.abs(drive))
    smaller = weight * smoothing / larger
    upper_part = wp.where(drive < z, smaller, larger)
    lower_part = wp.where(drive < z, larger, smaller)
    result = Equations()
    result.residual = vec3(half * (weight * impulse[0] + velocity[0] - root), weight * impulse[1], weight * impulse[2])
    result.impulse = mat33(weight * lower_part / root, z, z, z, weight, z, z, z, weight)
    result.slip = mat33(upper_part / root, z, z, z, z, z, z, z, z)
    if mu > z:
        normal = upper_part / weight
        s = half * smoothing / (mu * normal)
        length = wp.sqrt(s * s + velocity[1] * velocity[1] + velocity[2] * velocity[2])
        psi = s + length
        bound = mu * upper_part
        denominator = psi + bound
        rub_1 = weight * impulse[1] / denominator
        rub_2 = weight * impulse[2] / denominator
        spread = -s * (scalar(1.0) + s / length)  # N ∂ψ/∂N = μ ∂ψ/∂μ
        sliding_share = bound / denominator
        first = spread * rub_1 + sliding_share * velocity[1]  # N ∂F/∂N
        second = spread * rub_2 + sliding_share * velocity[2]
        # N grows with w λ_n − u_n by (1 + (w λ_n − u_n) / r) / 2 w.
        normal_rate = scalar(1.0) / (root * normal)
        result.residual = vec3(
            result.residual[0], psi * rub_1 + sliding_share * velocity[1], psi * rub_2 + sliding_share * velocity[2]
        )
        own = weight * psi / denominator
        result.impulse = mat33(
            weight * lower_part / root,
            z,
            z,
            upper_part * normal_rate * first,
            own,
            z,
            upper_part * normal_rate * second,
            z,
            own,
        )
        result.slip = mat33(
            upper_part / root, z, z,
            -normal * normal_rate * first, sliding_share + rub_1 * velocity[1] / length, rub_1 * velocity[2] / length,
            -normal * normal_rate * second, rub_2 * velocity[1] / length, sliding_share + rub_2 * velocity[2] / length,
        )  # fmt: skip
        result.friction = vec3(z, first, second) / mu
    return result


@wp.func
def write_residual(contact: Contact, world: int, start: int, end: int, smoothing: scalar):
    """Write F of the island's contacts to `vector`; returns its largest entry."""
    worst = scalar(0.0)
    for m in range(start, end):
        result = equations(contact, world, contact.solver.island_member[world, m], smoothing)
        contact.solver.vector[world, m] = result.residual
        size = max_abs(result.residual)
        # NaN counts as larger.
        if not (size <= worst):
            worst = size
    return worst


@wp.func
def factor_matrix(contact: Contact, world: int, start: int, end: int, smoothing: scalar):
    """Factor F_λ + F_u A of the island."""
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        result = equations(contact, world, c, smoothing)
        for n in range(start, end):
            contact.solver.matrix[world, m, n] = (
                result.slip * contact.solver.delassus[world, c, contact.solver.island_member[world, n]]
            )
        contact.solver.matrix[world, m, m] = contact.solver.matrix[world, m, m] + result.impulse
    factor_blocks(contact, world, start, end - start)


@wp.func
def newton_step(contact: Contact, world: int, start: int, end: int, smoothing: scalar, initial: scalar):
    """Go along Newton's step as far as F falls; returns the largest entry of F there."""
    factor_matrix(contact, world, start, end, smoothing)
    solve_factored(contact, world, start, end - start)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        contact.solver.best_impulse[world, c] = contact.solver.impulse[world, c]
        contact.adjoint.impulse_bar[world, c] = contact.solver.vector[world, m]
    length = scalar(1.0)
    result = scalar(0.0)
    tries = wp.int32(0)
    too_far = bool(True)
    while tries < MAX_LINE_SEARCH and too_far:
        for m in range(start, end):
            c = contact.solver.island_member[world, m]
            contact.solver.impulse[world, c] = (
                contact.solver.best_impulse[world, c] - length * contact.adjoint.impulse_bar[world, c]
            )
        update_velocities(contact, world, start, end)
        result = write_residual(contact, world, start, end, smoothing)
        too_far = not (result <= (scalar(1.0) - scalar(0.1) * length) * initial)
        length = scalar(0.5) * length
        tries += 1
    return result


@wp.func
def solve_island(law: Law, contact: Contact, world: int, start: int, end: int):
    """Solve for the impulses of an island; returns the residual relative to its largest velocity."""
    size = scalar(0.0)
    softest = scalar(0.0)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        weight = contact.solver.delassus[world, c, c][0, 0]
        size = wp.max(size, wp.max(max_abs(contact.blocks.free_velocity[world, c]), wp.sqrt(weight * law.smoothing)))
    size = wp.max(size, MIN_DIVISOR)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        weight = contact.solver.delassus[world, c, c][0, 0]
        softest = wp.max(softest, size * size / weight)
        contact.solver.impulse[world, c] = vec3(size / weight, scalar(0.0), scalar(0.0))
    update_velocities(contact, world, start, end)
    smoothing = wp.max(softest, law.smoothing)
    residual = write_residual(contact, world, start, end, smoothing) / size
    is_converging = bool(True)
    step = wp.int32(0)
    while step < MAX_STEPS and is_converging:
        next_residual = newton_step(contact, world, start, end, smoothing, size * residual) / size
        # At the last κ it goes on until rounding is all that is left.
        if smoothing <= law.smoothing and (next_residual <= CONVERGED_RESIDUAL or not (next_residual < residual)):
            is_converging = bool(False)
        residual = next_residual
        while residual <= DECAY_RESIDUAL and smoothing > law.smoothing:
            smoothing = wp.max(law.smoothing, DECAY * smoothing)
            residual = write_residual(contact, world, start, end, smoothing) / size
        step += 1
    if smoothing > law.smoothing:
        residual = scalar(1.0)
    return residual


@wp.func
def solve(law: Law, contact: Contact, world: int, count: int):
    """Solve for the impulses of all contacts, island by island; returns the largest residual."""
    worst = scalar(0.0)
    start = wp.int32(0)
    while start < count:
        end = contact.solver.island_end[world, start]
        residual = solve_island(law, contact, world, start, end)
        if not (residual <= worst):
            worst = residual
        start = end
    return worst


@wp.func(inline=True)
def solve_backward(law: Law, contact: Contact, world: int, count: int):
    """Propagate the adjoint from impulse_bar to velocity_bar and friction_bar."""
    start = wp.int32(0)
    while start < count:
        end = contact.solver.island_end[world, start]
        factor_matrix(contact, world, start, end, law.smoothing)
        for m in range(start, end):
            contact.solver.vector[world, m] = contact.adjoint.impulse_bar[world, contact.solver.island_member[world, m]]
        solve_factored_transposed(contact, world, start, end - start)
        for m in range(start, end):
            c = contact.solver.island_member[world, m]
            result = equations(contact, world, c, law.smoothing)
            y = contact.solver.vector[world, m]
            contact.adjoint.velocity_bar[world, c] = -transpose_product(result.slip, y)
            contact.adjoint.friction_bar[world, c] = -wp.dot(result.friction, y)
        start = end


rollout, rollout_backward = kernels(Law, solve, solve_backward)
