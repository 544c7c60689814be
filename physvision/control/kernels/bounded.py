"""The quadratic problem of one control: least ½ kᵀ Q k + qᵀ k with low ≤ k ≤ high, by projected Newton steps.

Entries at a bound that the gradient pushes against are held there; a Newton step in the others, projected onto the
bounds, is shortened until it descends. Q is positive definite on what is free, so there is one solution, and once the
held entries are those of the solution a step is exact. Reference: Tassa, Mansard and Todorov, Control-limited
differential dynamic programming, 2014.
"""

import warp as wp

from .precision import scalar

ROUNDS = wp.constant(wp.int32(64))
HALVINGS = wp.constant(wp.int32(40))
# Of the largest entry of the gradient's parts: below it a free entry's gradient is rounding.
ROUNDING = wp.constant(scalar(1e-13))


@wp.func
def factor(matrix: wp.array(dtype=scalar), held: wp.array(dtype=wp.int32), factors: wp.array(dtype=scalar), n: int):
    """Cholesky's factors of the free rows and columns, a one in the place of every held one; whether there are any.

    On the diagonal stand their reciprocals.
    """
    definite = bool(True)
    for j in range(n):
        for i in range(j, n):
            total = matrix[i * n + j]
            if held[i] + held[j] > 0:
                total = scalar(wp.where(i == j, 1.0, 0.0))
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
    """Replace x by the solution of L Lᵀ y = x."""
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
def value_of(matrix: wp.array(dtype=scalar), vector: wp.array(dtype=scalar), k: wp.array(dtype=scalar), n: int):
    """½ kᵀ Q k + qᵀ k."""
    total = scalar(0.0)
    for i in range(n):
        row = scalar(0.0)
        for j in range(n):
            row += matrix[i * n + j] * k[j]
        total += k[i] * (scalar(0.5) * row + vector[i])
    return total


@wp.func
def least(
    matrix: wp.array(dtype=scalar),
    vector: wp.array(dtype=scalar),
    low: wp.array(dtype=scalar),
    high: wp.array(dtype=scalar),
    k: wp.array(dtype=scalar),
    held: wp.array(dtype=wp.int32),
    factors: wp.array(dtype=scalar),
    step: wp.array(dtype=scalar),
    trial: wp.array(dtype=scalar),
    n: int,
):
    """Set k to the solution, `held` to 1 where it lies at a bound, and `factors` to those of what is free.

    Returns whether the matrix is positive definite on what is free, and so whether there is a solution.
    """
    for i in range(n):
        k[i] = wp.clamp(scalar(0.0), low[i], high[i])
    definite = bool(True)
    going = bool(True)
    for _ in range(ROUNDS):
        if going:
            size = scalar(0.0)
            for i in range(n):
                slope = vector[i]
                parts = wp.abs(vector[i])
                for j in range(n):
                    slope += matrix[i * n + j] * k[j]
                    parts += wp.abs(matrix[i * n + j] * k[j])
                held[i] = 0
                if (k[i] <= low[i] and slope > scalar(0.0)) or (k[i] >= high[i] and slope < scalar(0.0)):
                    held[i] = 1
                    slope = scalar(0.0)
                elif wp.abs(slope) > ROUNDING * parts:
                    size = wp.max(size, wp.abs(slope))
                step[i] = -slope
            definite = factor(matrix, held, factors, n)
            if size == scalar(0.0) or not definite:
                going = bool(False)
            else:
                solve(factors, step, n)
                inside = bool(True)
                for i in range(n):
                    if held[i] == 1 or k[i] + step[i] < low[i] or k[i] + step[i] > high[i]:
                        inside = False
                if inside:  # with nothing held the step is exact
                    going = bool(False)
                    for i in range(n):
                        k[i] = k[i] + step[i]
            if going:
                before = value_of(matrix, vector, k, n)
                share = scalar(1.0)
                searching = bool(True)
                for _ in range(HALVINGS):
                    if searching:
                        for i in range(n):
                            trial[i] = wp.clamp(k[i] + share * step[i], low[i], high[i])
                        if value_of(matrix, vector, trial, n) < before:
                            searching = bool(False)
                        else:
                            share *= scalar(0.5)
                if searching:
                    going = bool(False)  # nothing is lower but by rounding
                else:
                    for i in range(n):
                        k[i] = trial[i]
    return definite
