"""Lemke's complementary pivoting (1965), where the path from the inside does not lead to a solution.

It follows the vertices of w = A z + d z₀ + b, d > 0, from z₀ large to z₀ = 0, with z·w = 0 on the way. For copositive
matrices, those of friction cones among them, it finds a solution whenever it does not run off along a ray. Basic
variables stand as functions of the others, y = b + T x, in one n×n table and two columns: z₀'s and the constants.
"""

import warp as wp

from . import scalar
from .workspace import Inside

# What counts as zero in the scaled table.
PIVOT = wp.constant(wp.float64(1.0e-11))


@wp.func
def lay_table(m: Inside, n: wp.int32, ridge: scalar, attempt: wp.int32):
    """Fill the table: T in `factors`, z₀'s column in `residual`, constants in `dz`; name what is basic and what not.

    Variables are numbered w₀ … z₀ …, and z₀ last. No two entries of the covering vector are equal, so that ties in a
    degenerate problem are rare; each attempt has another.
    """
    for i in range(n):
        for j in range(n):
            m.factors[i * n + j] = m.matrix[i * n + j]
        m.factors[i * n + i] = m.factors[i * n + i] + ridge
        spread = scalar(i) * scalar(0.6180339887498949) * scalar(attempt + 1)
        m.residual[i] = scalar(1.0) + scalar(0.5) * (spread - wp.floor(spread))
        m.dz[i] = m.vector[i]
        m.order[i] = i
        m.order[n + i] = n + i
    m.order[2 * n] = 2 * n


@wp.func
def entry(m: Inside, n: wp.int32, i: wp.int32, column: wp.int32):
    """The table's entry in row i; column n is z₀'s at first."""
    value = scalar(0.0)
    if column == n:
        value = m.residual[i]
    else:
        value = m.factors[i * n + column]
    return value


@wp.func
def exchange(m: Inside, n: wp.int32, row: wp.int32, column: wp.int32):
    """Exchange the basic variable of a row with the one of a column."""
    inverse = scalar(1.0) / entry(m, n, row, column)
    m.dz[row] = -m.dz[row] * inverse
    for j in range(n):
        if j != column:
            m.factors[row * n + j] = -m.factors[row * n + j] * inverse
    if column == n:
        m.residual[row] = inverse
    else:
        m.residual[row] = -m.residual[row] * inverse
        m.factors[row * n + column] = inverse
    for i in range(n):
        share = entry(m, n, i, column)
        if i != row and share != scalar(0.0):
            m.dz[i] = m.dz[i] + share * m.dz[row]
            for j in range(n):
                if j != column:
                    m.factors[i * n + j] = m.factors[i * n + j] + share * m.factors[row * n + j]
            if column == n:
                m.residual[i] = share * inverse
            else:
                m.residual[i] = m.residual[i] + share * m.residual[row]
                m.factors[i * n + column] = share * inverse
    held = m.order[row]
    m.order[row] = m.order[n + column]
    m.order[n + column] = held


@wp.func
def leaving_row(m: Inside, n: wp.int32, column: wp.int32):
    """The row whose basic variable is the first to reach zero as the column's grows; −1 on a ray.

    Among equals z₀ goes first, then the largest pivot.
    """
    row = wp.int32(-1)
    least = scalar(1.0e300)
    pivot = scalar(0.0)
    for i in range(n):
        slope = entry(m, n, i, column)
        if slope < -PIVOT:
            ratio = wp.max(m.dz[i], scalar(0.0)) / -slope
            tie = wp.abs(ratio - least) <= PIVOT * wp.max(scalar(1.0), least)
            better = ratio < least and not tie
            if tie and m.order[row] != 2 * n:
                better = m.order[i] == 2 * n or -slope > pivot
            if better:
                least = wp.min(least, ratio)
                if not tie:
                    least = ratio
                row = i
                pivot = -slope
    return row


@wp.func
def pivot_to_solution(m: Inside, n: wp.int32, ridge: scalar, attempt: wp.int32):
    """Set z to a solution, or to zero where the pivots run off along a ray or on without end; how many it took."""
    lay_table(m, n, ridge, attempt)
    for i in range(n):
        m.z[i] = scalar(0.0)
    row = wp.int32(-1)
    least = scalar(0.0)
    for i in range(n):
        ratio = m.dz[i] / m.residual[i]
        if ratio < least:
            least = ratio
            row = i
    column = wp.int32(n)
    taken = wp.int32(0)
    while row >= 0:
        leaving = m.order[row]
        exchange(m, n, row, column)
        taken += 1
        row = wp.int32(-1)
        if leaving == 2 * n:
            for i in range(n):
                if m.order[i] >= n:
                    m.z[m.order[i] - n] = wp.max(m.dz[i], scalar(0.0))
        elif taken < 20 * n + 50:
            entering = (leaving + n) % (2 * n)
            for j in range(n + 1):
                if m.order[n + j] == entering:
                    column = j
            row = leaving_row(m, n, column)
    return taken
