"""Linear equations of 3×3 blocks by LU factorization without pivoting: the matrices are nearly symmetric.

A diagonal block holds its own factors: unit lower triangle, upper triangle, and the reciprocals of its diagonal.
"""

import warp as wp

from ..precision import mat33, scalar, vec3
from ..spatial.vectors import transpose_product
from ..structs import Contact
from .settings import SOLVER

PIVOT_TOLERANCE = wp.constant(scalar(SOLVER.pivot_tolerance))


@wp.func
def pivot_reciprocal(pivot: scalar, floor: scalar):
    """Return 1 / pivot; zero for a pivot within rounding, whose unknown then stays zero."""
    result = scalar(0.0)
    if wp.abs(pivot) > floor:
        result = scalar(1.0) / pivot
    return result


@wp.func
def factor_block(m: mat33, floor: scalar):
    """Factor a single block of the matrix."""
    p0 = pivot_reciprocal(m[0, 0], floor)
    l10 = m[1, 0] * p0
    l20 = m[2, 0] * p0
    p1 = pivot_reciprocal(m[1, 1] - l10 * m[0, 1], floor)
    u12 = m[1, 2] - l10 * m[0, 2]
    l21 = (m[2, 1] - l20 * m[0, 1]) * p1
    p2 = pivot_reciprocal(m[2, 2] - l20 * m[0, 2] - l21 * u12, floor)
    return mat33(p0, m[0, 1], m[0, 2], l10, p1, u12, l20, l21, p2)


@wp.func
def lower_solve(f: mat33, b: vec3):
    """Return L⁻¹ b of a factored block."""
    y1 = b[1] - f[1, 0] * b[0]
    return vec3(b[0], y1, b[2] - f[2, 0] * b[0] - f[2, 1] * y1)


@wp.func
def upper_solve(f: mat33, b: vec3):
    """Return U⁻¹ b of a factored block."""
    x2 = f[2, 2] * b[2]
    x1 = f[1, 1] * (b[1] - f[1, 2] * x2)
    return vec3(f[0, 0] * (b[0] - f[0, 1] * x1 - f[0, 2] * x2), x1, x2)


@wp.func
def lower_solve_transposed(f: mat33, b: vec3):
    """Return L⁻ᵀ b of a factored block."""
    x1 = b[1] - f[2, 1] * b[2]
    return vec3(b[0] - f[1, 0] * x1 - f[2, 0] * b[2], x1, b[2])


@wp.func
def upper_solve_transposed(f: mat33, b: vec3):
    """Return U⁻ᵀ b of a factored block."""
    y0 = f[0, 0] * b[0]
    y1 = f[1, 1] * (b[1] - f[0, 1] * y0)
    return vec3(y0, y1, f[2, 2] * (b[2] - f[0, 2] * y0 - f[1, 2] * y1))


@wp.func
def matrix_row(m: mat33, k: int):
    """Return row k of a matrix."""
    return vec3(m[k, 0], m[k, 1], m[k, 2])


@wp.func
def lower_solve_columns(f: mat33, m: mat33):
    """Return L⁻¹ m of a factored block."""
    first = matrix_row(m, 0)
    second = matrix_row(m, 1) - f[1, 0] * first
    third = matrix_row(m, 2) - f[2, 0] * first - f[2, 1] * second
    return wp.matrix_from_rows(first, second, third)


@wp.func
def upper_solve_rows(f: mat33, m: mat33):
    """Return m U⁻¹ of a factored block, row by row."""
    return wp.matrix_from_rows(
        upper_solve_transposed(f, matrix_row(m, 0)),
        upper_solve_transposed(f, matrix_row(m, 1)),
        upper_solve_transposed(f, matrix_row(m, 2)),
    )


@wp.func
def factor_blocks(contact: Contact, world: int, start: int, blocks: int):
    """Factor in place the part of the matrix that begins in row and column `start`."""
    end = start + blocks
    floor = scalar(0.0)
    for k in range(start, end):
        for j in range(3):
            floor = wp.max(floor, PIVOT_TOLERANCE * wp.abs(contact.solver.matrix[world, k, k][j, j]))
    for k in range(start, end):
        factors = factor_block(contact.solver.matrix[world, k, k], floor)
        contact.solver.matrix[world, k, k] = factors
        for c in range(k + 1, end):
            contact.solver.matrix[world, k, c] = lower_solve_columns(factors, contact.solver.matrix[world, k, c])
        for r in range(k + 1, end):
            multiplier = upper_solve_rows(factors, contact.solver.matrix[world, r, k])
            contact.solver.matrix[world, r, k] = multiplier
            for c in range(k + 1, end):
                contact.solver.matrix[world, r, c] = (
                    contact.solver.matrix[world, r, c] - multiplier * contact.solver.matrix[world, k, c]
                )


@wp.func
def solve_factored(contact: Contact, world: int, start: int, blocks: int):
    """Replace `vector` by matrix⁻¹ vector."""
    for r in range(start, start + blocks):
        total = contact.solver.vector[world, r]
        for c in range(start, r):
            total = total - contact.solver.matrix[world, r, c] * contact.solver.vector[world, c]
        contact.solver.vector[world, r] = lower_solve(contact.solver.matrix[world, r, r], total)
    for r in range(start + blocks - 1, start - 1, -1):
        total = contact.solver.vector[world, r]
        for c in range(r + 1, start + blocks):
            total = total - contact.solver.matrix[world, r, c] * contact.solver.vector[world, c]
        contact.solver.vector[world, r] = upper_solve(contact.solver.matrix[world, r, r], total)


@wp.func
def solve_factored_transposed(contact: Contact, world: int, start: int, blocks: int):
    """Replace `vector` by matrix⁻ᵀ vector."""
    for r in range(start, start + blocks):
        total = contact.solver.vector[world, r]
        for c in range(start, r):
            total = total - transpose_product(contact.solver.matrix[world, c, r], contact.solver.vector[world, c])
        contact.solver.vector[world, r] = upper_solve_transposed(contact.solver.matrix[world, r, r], total)
    for r in range(start + blocks - 1, start - 1, -1):
        total = contact.solver.vector[world, r]
        for c in range(r + 1, start + blocks):
            total = total - transpose_product(contact.solver.matrix[world, c, r], contact.solver.vector[world, c])
        contact.solver.vector[world, r] = lower_solve_transposed(contact.solver.matrix[world, r, r], total)
