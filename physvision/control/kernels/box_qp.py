"""Box-constrained quadratic program of one control: minimize ½ kᵀ Q k + qᵀ k with lower ≤ k ≤ upper.

Method: projected Newton. Entries at a bound that the gradient pushes against are clamped there; a Newton step in the
others, projected onto the bounds, is shortened until it descends. Q has to be positive definite on the free entries, so
that the solution is unique; once the clamped entries are those of the solution, a step is exact. Reference: Tassa,
Mansard and Todorov, Control-limited differential dynamic programming, 2014.
"""

import warp as wp

from .precision import scalar

MAX_ITERATIONS = wp.constant(wp.int32(64))
MAX_HALVINGS = wp.constant(wp.int32(40))
# A free entry's gradient below this fraction of the sum of its terms' magnitudes is rounding.
ROUNDING = wp.constant(scalar(1e-13))


@wp.func
def factor(matrix: wp.array(dtype=scalar), clamped: wp.array(dtype=wp.int32), factors: wp.array(dtype=scalar), n: int):
    """Compute the Cholesky factors of the free rows and columns, with ones for clamped ones; true if positive definite.

    The diagonal has reciprocals of the factors.
    """
    definite = bool(True)
    for j in range(n):
        for i in range(j, n):
            total = wp.where(clamped[i] + clamped[j] > 0, scalar(wp.where(i == j, 1.0, 0.0)), matrix[i * n + j])
            for k in range(j):
                total -= factors[i * n + k] * factors[j * n + k]
            if i == j:
                if total > scalar(0.0):
                    factors[j * n + j] = scalar(1.0) / wp.sqrt(total)
                else:
                    factors[j * n + j] = scalar(1.0)
                    definite = False
            else:
                factors[i * n + j] = total * factors[j * n + j]
    return definite


@wp.func
def solve(factors: wp.array(dtype=scalar), x: wp.array(dtype=scalar), n: int):
    """Replace x by the solution y of L Lᵀ y = x."""
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= factors[i * n + k] * x[k]
        x[i] = total * factors[i * n + i]
    for step in range(n):
        i = n - 1 - step
        total = x[i]
        for k in range(i + 1, n):
            total -= factors[k * n + i] * x[k]
        x[i] = total * factors[i * n + i]


@wp.func
def objective(matrix: wp.array(dtype=scalar), vector: wp.array(dtype=scalar), k: wp.array(dtype=scalar), n: int):
    """Return the objective ½ kᵀ Q k + qᵀ k."""
    total = scalar(0.0)
    for i in range(n):
        row = scalar(0.0)
        for j in range(n):
            row += matrix[i * n + j] * k[j]
        total += k[i] * (scalar(0.5) * row + vector[i])
    return total


@wp.func
def solve_box_qp(
    matrix: wp.array(dtype=scalar),
    vector: wp.array(dtype=scalar),
    lower: wp.array(dtype=scalar),
    upper: wp.array(dtype=scalar),
    k: wp.array(dtype=scalar),
    clamped: wp.array(dtype=wp.int32),
    factors: wp.array(dtype=scalar),
    step: wp.array(dtype=scalar),
    trial: wp.array(dtype=scalar),
    n: int,
):
    """Set k to the solution, `clamped` to 1 at bounds, and `factors` to the Cholesky factors of the free entries.

    Returns true if the matrix is positive definite on the free entries, so that there is a solution.
    """
    for i in range(n):
        k[i] = wp.clamp(scalar(0.0), lower[i], upper[i])
    definite = bool(True)
    active = bool(True)
    for _ in range(MAX_ITERATIONS):
        if active:
            largest = scalar(0.0)
            for i in range(n):
                gradient = vector[i]
                magnitude = wp.abs(vector[i])
                for j in range(n):
                    gradient += matrix[i * n + j] * k[j]
                    magnitude += wp.abs(matrix[i * n + j] * k[j])
                clamped[i] = 0
                if (k[i] <= lower[i] and gradient > scalar(0.0)) or (k[i] >= upper[i] and gradient < scalar(0.0)):
                    clamped[i] = 1
                    gradient = scalar(0.0)
                elif wp.abs(gradient) > ROUNDING * magnitude:
                    largest = wp.max(largest, wp.abs(gradient))
                step[i] = -gradient
            definite = factor(matrix, clamped, factors, n)
            if largest == scalar(0.0) or not definite:
                active = bool(False)
            else:
                solve(factors, step, n)
                inside = bool(True)
                for i in range(n):
                    if clamped[i] == 1 or k[i] + step[i] < lower[i] or k[i] + step[i] > upper[i]:
                        inside = False
                if inside:  # without clamped entries the step is exact
                    active = bool(False)
                    for i in range(n):
                        k[i] = k[i] + step[i]
            if active:
                before = objective(matrix, vector, k, n)
                step_size = scalar(1.0)
                searching = bool(True)
                for _ in range(MAX_HALVINGS):
                    if searching:
                        for i in range(n):
                            trial[i] = wp.clamp(k[i] + step_size * step[i], lower[i], upper[i])
                        if objective(matrix, vector, trial, n) < before:
                            searching = bool(False)
                        else:
                            step_size *= scalar(0.5)
                if searching:
                    active = bool(False)  # no step size descends beyond rounding
                else:
                    for i in range(n):
                        k[i] = trial[i]
    return definite
