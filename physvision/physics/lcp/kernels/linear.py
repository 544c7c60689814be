"""Dense linear systems of run-time size, for one thread: LU with row exchanges, both ways round."""

import warp as wp

from . import scalar


@wp.func
def factor(matrix: wp.array(dtype=scalar), order: wp.array(dtype=wp.int32), n: wp.int32):
    """Replace the n×n `matrix` (row after row) by its LU factors; `order[k]` is the row exchanged with row k.

    A multiplier that is zero costs nothing, so a banded matrix is factorised in the time of its band. A column
    without a pivot gets a tiny one: the unknown is then decided by the caller's regularisation, not by chance.
    """
    largest = scalar(0.0)
    for i in range(n * n):
        largest = wp.max(largest, wp.abs(matrix[i]))
    least = largest * scalar(1.0e-30) + scalar(1.0e-30)
    for k in range(n):
        pivot = k
        best = wp.abs(matrix[k * n + k])
        for i in range(k + 1, n):
            if wp.abs(matrix[i * n + k]) > best * scalar(2.0):
                best = wp.abs(matrix[i * n + k])
                pivot = i
        order[k] = pivot
        if pivot != k:
            for j in range(n):
                held = matrix[k * n + j]
                matrix[k * n + j] = matrix[pivot * n + j]
                matrix[pivot * n + j] = held
        if best < least:
            matrix[k * n + k] = least
        inverse = scalar(1.0) / matrix[k * n + k]
        for i in range(k + 1, n):
            if matrix[i * n + k] != scalar(0.0):
                multiplier = matrix[i * n + k] * inverse
                matrix[i * n + k] = multiplier
                for j in range(k + 1, n):
                    matrix[i * n + j] = matrix[i * n + j] - multiplier * matrix[k * n + j]


@wp.func
def solve(factors: wp.array(dtype=scalar), order: wp.array(dtype=wp.int32), x: wp.array(dtype=scalar), n: wp.int32):
    """Replace `x` by the solution of A x = b, given b in `x` and the factors of A."""
    for k in range(n):
        if order[k] != k:
            held = x[k]
            x[k] = x[order[k]]
            x[order[k]] = held
    for i in range(n):
        total = x[i]
        for j in range(i):
            total -= factors[i * n + j] * x[j]
        x[i] = total
    for back in range(n):
        i = n - 1 - back
        total = x[i]
        for j in range(i + 1, n):
            total -= factors[i * n + j] * x[j]
        x[i] = total / factors[i * n + i]


@wp.func
def solve_transposed(
    factors: wp.array(dtype=scalar), order: wp.array(dtype=wp.int32), x: wp.array(dtype=scalar), n: wp.int32
):
    """Replace `x` by the solution of Aᵀ x = b, given b in `x` and the factors of A."""
    for i in range(n):
        total = x[i]
        for j in range(i):
            total -= factors[j * n + i] * x[j]
        x[i] = total / factors[i * n + i]
    for back in range(n):
        i = n - 1 - back
        total = x[i]
        for j in range(i + 1, n):
            total -= factors[j * n + i] * x[j]
        x[i] = total
    for back in range(n):
        k = n - 1 - back
        if order[k] != k:
            held = x[k]
            x[k] = x[order[k]]
            x[order[k]] = held
