"""A linear complementarity problem for one thread: w = A z + b, z ≥ 0, w ≥ 0, z·w = 0.

Mehrotra's predictor-corrector from the inside, then the exact solution on the active set that it found. With
Z = diag(z), W = diag(w), r = A z + b − w, Newton's step towards z·w = σμ is
    (A + Z⁻¹W) Δz = −r − w + (σμ − Δz°Δw°)/z,    Δw = A Δz + r,
where Δz°, Δw° are the predictor's (σ = 0) step. A need not be symmetric, nor monotone: rows of a friction cone are not.
"""

import warp as wp

from . import scalar
from .lemke import pivot_to_solution
from .linear import factor, solve
from .workspace import Inside

# A scaled residual with which the search ends.
EXACT = wp.constant(wp.float64(1.0e-13))


@wp.func
def evaluate(m: Inside, n: wp.int32):
    """Set w = A z + b in `m.dw` and return how far (z, w) is from complementary: max |min(z, w)|, scaled."""
    largest_z = scalar(1.0)
    largest_w = scalar(1.0)
    for i in range(n):
        total = m.vector[i]
        size = wp.abs(total)
        for j in range(n):
            term = m.matrix[i * n + j] * m.z[j]
            total += term
            size = wp.max(size, wp.abs(term))
        m.dw[i] = total
        largest_z = wp.max(largest_z, wp.abs(m.z[i]))
        largest_w = wp.max(largest_w, size)
    worst = scalar(0.0)
    for i in range(n):
        off = wp.abs(wp.min(m.z[i] / largest_z, m.dw[i] / largest_w))
        if not wp.isfinite(off):
            off = scalar(1.0e30)
        worst = wp.max(worst, off)
    return worst


@wp.func
def newton_step(m: Inside, n: wp.int32, target: scalar, corrected: wp.int32):
    """Solve for Δz and Δw towards z·w = target, with the factors at hand; with the predictor's product if corrected."""
    for i in range(n):
        aim = target
        if corrected == 1:
            aim -= m.dz[i] * m.dw[i]
        m.best[i] = aim
    for i in range(n):
        m.dz[i] = -m.residual[i] - m.w[i] + m.best[i] / m.z[i]
    solve(m.factors, m.order, m.dz, n)
    for i in range(n):
        m.dw[i] = (m.best[i] - m.w[i] * m.dz[i]) / m.z[i] - m.w[i]


@wp.func
def longest_step(m: Inside, n: wp.int32):
    """The longest step in [0, 1] that leaves z and w positive."""
    length = scalar(1.0)
    for i in range(n):
        if m.dz[i] < scalar(0.0):
            length = wp.min(length, -m.z[i] / m.dz[i])
        if m.dw[i] < scalar(0.0):
            length = wp.min(length, -m.w[i] / m.dw[i])
    return length


@wp.func
def follow_center(m: Inside, n: wp.int32, tolerance: scalar, most: wp.int32):
    """Interior-point iterations from z = w = 1 until gap and residual are below `tolerance`; how many it took."""
    for i in range(n):
        m.z[i] = scalar(1.0)
        m.w[i] = scalar(1.0)
    taken = wp.int32(0)
    going = wp.int32(1)
    while going == 1:
        gap = scalar(0.0)
        worst = scalar(0.0)
        for i in range(n):
            total = m.vector[i] - m.w[i]
            for j in range(n):
                total += m.matrix[i * n + j] * m.z[j]
            m.residual[i] = total
            worst = wp.max(worst, wp.abs(total))
            gap += m.z[i] * m.w[i]
        gap /= scalar(n)
        if (gap < tolerance and worst < tolerance) or taken >= most or not wp.isfinite(gap):
            going = wp.int32(0)
        else:
            taken += 1
            for i in range(n):
                for j in range(n):
                    m.factors[i * n + j] = m.matrix[i * n + j]
                m.factors[i * n + i] = m.factors[i * n + i] + m.w[i] / m.z[i]
            factor(m.factors, m.order, n)
            newton_step(m, n, scalar(0.0), 0)
            length = longest_step(m, n)
            ahead = scalar(0.0)
            for i in range(n):
                ahead += (m.z[i] + length * m.dz[i]) * (m.w[i] + length * m.dw[i])
            ratio = wp.clamp(ahead / scalar(n) / gap, scalar(0.0), scalar(1.0))
            newton_step(m, n, ratio * ratio * ratio * gap, 1)
            length = longest_step(m, n) * scalar(0.99)
            for i in range(n):
                m.z[i] = m.z[i] + length * m.dz[i]
                m.w[i] = m.w[i] + length * m.dw[i]
    return taken


@wp.func
def solve_active(m: Inside, n: wp.int32, ridge: scalar):
    """Set z to the solution of A_αα z_α = −b_α on the active set α = {z > w}, refined once; zero elsewhere."""
    for i in range(n):
        m.best[i] = m.z[i]
    for i in range(n):
        active = m.z[i] > m.w[i]
        for j in range(n):
            kept = scalar(0.0)
            if active and m.z[j] > m.w[j]:
                kept = m.matrix[i * n + j]
            m.factors[i * n + j] = kept
        if active:
            m.factors[i * n + i] = m.factors[i * n + i] + ridge
        else:
            m.factors[i * n + i] = scalar(1.0)
    factor(m.factors, m.order, n)
    for i in range(n):
        m.residual[i] = scalar(0.0)
        if m.z[i] > m.w[i]:
            m.residual[i] = scalar(1.0)
    for i in range(n):
        m.z[i] = m.best[i] * m.residual[i]
    for _ in range(3):
        for i in range(n):
            total = m.vector[i]
            for j in range(n):
                total += m.matrix[i * n + j] * m.z[j]
            m.dz[i] = -total * m.residual[i]
        solve(m.factors, m.order, m.dz, n)
        for i in range(n):
            m.z[i] = m.z[i] + m.dz[i] * m.residual[i]


@wp.func
def polish(m: Inside, n: wp.int32, ridge: scalar):
    """Replace z by the exact solution on its active set where that is closer; set w; return the residual."""
    before = evaluate(m, n)
    solve_active(m, n, ridge)
    for i in range(n):
        m.z[i] = wp.max(m.z[i], scalar(0.0))
    after = evaluate(m, n)
    residual = after
    if not (after <= before):
        for i in range(n):
            m.z[i] = m.best[i]
        residual = evaluate(m, n)
    for i in range(n):
        m.w[i] = m.dw[i]
    return residual


@wp.func
def keep_better(m: Inside, n: wp.int32, found: scalar, kept: scalar):
    """Keep z if its residual is the smaller; return the smaller."""
    least = kept
    if found < kept:
        for i in range(n):
            m.kept[i] = m.z[i]
        least = found
    return least


@wp.func
def search(m: Inside, n: wp.int32, ridge: scalar):
    """Set z and w to the best that is found; returns iterations and residual.

    Where the path from the inside does not lead to a solution, Lemke's pivots are tried, at last with a compliance:
    a problem that rounding made insolvable has a solution next to it.
    """
    for i in range(n):
        m.kept[i] = scalar(0.0)
    iterations = follow_center(m, n, scalar(1.0e-11), 40)
    residual = keep_better(m, n, polish(m, n, ridge), scalar(1.0e30))
    attempt = wp.int32(0)
    compliance = scalar(0.0)
    while attempt < 6 and not (residual < EXACT):
        iterations += pivot_to_solution(m, n, compliance, attempt)
        residual = keep_better(m, n, polish(m, n, ridge), residual)
        attempt += 1
        if attempt == 3:
            compliance = scalar(1.0e-10)
        elif attempt > 3:
            compliance *= scalar(1.0e2)
    for i in range(n):
        m.z[i] = m.kept[i]
    residual = polish(m, n, ridge)
    return iterations, residual


@wp.func
def solve_scaled(m: Inside, n: wp.int32, ridge: scalar):
    """Solve the problem in `m.matrix`, `m.vector`; z and w into `m.z`, `m.w`; returns iterations and residual.

    The matrix and the vector are scaled to a largest entry of one and back.
    """
    a = scalar(0.0)
    b = scalar(0.0)
    for i in range(n * n):
        a = wp.max(a, wp.abs(m.matrix[i]))
    for i in range(n):
        b = wp.max(b, wp.abs(m.vector[i]))
    iterations = wp.int32(0)
    residual = scalar(0.0)
    if b == scalar(0.0):
        for i in range(n):
            m.z[i] = scalar(0.0)
            m.w[i] = scalar(0.0)
    else:
        if a == scalar(0.0):
            a = scalar(1.0)
        for i in range(n * n):
            m.matrix[i] = m.matrix[i] / a
        for i in range(n):
            m.vector[i] = m.vector[i] / b
        iterations, residual = search(m, n, ridge)
        for i in range(n * n):
            m.matrix[i] = m.matrix[i] * a
        for i in range(n):
            m.vector[i] = m.vector[i] * b
            m.z[i] = m.z[i] * (b / a)
            m.w[i] = m.w[i] * b
    return iterations, residual
