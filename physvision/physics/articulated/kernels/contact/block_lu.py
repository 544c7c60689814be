"""Linear equations of 3×3 blocks, by elimination without exchange of rows: the matrices are all but symmetric.

A diagonal block keeps its own factors: the unit lower triangle, the upper one, and the reciprocals of its diagonal.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import transposed
from physvision.physics.articulated.kernels.structs import ContactMemory

ROUNDING = wp.constant(scalar(1.0e-14 if DOUBLE else 1.0e-7))  # share of the largest number on the diagonal


@wp.func
def reciprocal(pivot: scalar, floor: scalar):
    """1 / pivot; zero for a pivot that is rounding alone, whose unknown then stays zero."""
    found = scalar(0.0)
    if wp.abs(pivot) > floor:
        found = scalar(1.0) / pivot
    return found


@wp.func
def factor_block(m: mat33, floor: scalar):
    p0 = reciprocal(m[0, 0], floor)
    l10 = m[1, 0] * p0
    l20 = m[2, 0] * p0
    p1 = reciprocal(m[1, 1] - l10 * m[0, 1], floor)
    u12 = m[1, 2] - l10 * m[0, 2]
    l21 = (m[2, 1] - l20 * m[0, 1]) * p1
    p2 = reciprocal(m[2, 2] - l20 * m[0, 2] - l21 * u12, floor)
    return mat33(p0, m[0, 1], m[0, 2], l10, p1, u12, l20, l21, p2)


@wp.func
def lower_solve(f: mat33, b: vec3):
    """L⁻¹ b."""
    y1 = b[1] - f[1, 0] * b[0]
    return vec3(b[0], y1, b[2] - f[2, 0] * b[0] - f[2, 1] * y1)


@wp.func
def upper_solve(f: mat33, b: vec3):
    """U⁻¹ b."""
    x2 = f[2, 2] * b[2]
    x1 = f[1, 1] * (b[1] - f[1, 2] * x2)
    return vec3(f[0, 0] * (b[0] - f[0, 1] * x1 - f[0, 2] * x2), x1, x2)


@wp.func
def lower_solve_transposed(f: mat33, b: vec3):
    """L⁻ᵀ b."""
    x1 = b[1] - f[2, 1] * b[2]
    return vec3(b[0] - f[1, 0] * x1 - f[2, 0] * b[2], x1, b[2])


@wp.func
def upper_solve_transposed(f: mat33, b: vec3):
    """U⁻ᵀ b."""
    y0 = f[0, 0] * b[0]
    y1 = f[1, 1] * (b[1] - f[0, 1] * y0)
    return vec3(y0, y1, f[2, 2] * (b[2] - f[0, 2] * y0 - f[1, 2] * y1))


@wp.func
def row(m: mat33, k: int):
    return vec3(m[k, 0], m[k, 1], m[k, 2])


@wp.func
def lower_solve_columns(f: mat33, m: mat33):
    """L⁻¹ m."""
    first = row(m, 0)
    second = row(m, 1) - f[1, 0] * first
    third = row(m, 2) - f[2, 0] * first - f[2, 1] * second
    return wp.matrix_from_rows(first, second, third)


@wp.func
def upper_solve_rows(f: mat33, m: mat33):
    """Of m U⁻¹ each row is U⁻ᵀ times that of m."""
    return wp.matrix_from_rows(
        upper_solve_transposed(f, row(m, 0)), upper_solve_transposed(f, row(m, 1)), upper_solve_transposed(f, row(m, 2))
    )


@wp.func
def factor(memory: ContactMemory, world: int, start: int, blocks: int):
    """Factor in place the part of the matrix that begins in row and column `start`."""
    end = start + blocks
    floor = scalar(0.0)
    for k in range(start, end):
        for j in range(3):
            floor = wp.max(floor, ROUNDING * wp.abs(memory.matrix[world, k, k][j, j]))
    for k in range(start, end):
        own = factor_block(memory.matrix[world, k, k], floor)
        memory.matrix[world, k, k] = own
        for c in range(k + 1, end):
            memory.matrix[world, k, c] = lower_solve_columns(own, memory.matrix[world, k, c])
        for r in range(k + 1, end):
            share = upper_solve_rows(own, memory.matrix[world, r, k])
            memory.matrix[world, r, k] = share
            for c in range(k + 1, end):
                memory.matrix[world, r, c] = memory.matrix[world, r, c] - share * memory.matrix[world, k, c]


@wp.func
def solve_factored(memory: ContactMemory, world: int, start: int, blocks: int):
    """Vector = matrix⁻¹ vector."""
    for r in range(start, start + blocks):
        total = memory.vector[world, r]
        for c in range(start, r):
            total = total - memory.matrix[world, r, c] * memory.vector[world, c]
        memory.vector[world, r] = lower_solve(memory.matrix[world, r, r], total)
    for r in range(start + blocks - 1, start - 1, -1):
        total = memory.vector[world, r]
        for c in range(r + 1, start + blocks):
            total = total - memory.matrix[world, r, c] * memory.vector[world, c]
        memory.vector[world, r] = upper_solve(memory.matrix[world, r, r], total)


@wp.func
def solve_factored_transposed(memory: ContactMemory, world: int, start: int, blocks: int):
    """Vector = matrix⁻ᵀ vector."""
    for r in range(start, start + blocks):
        total = memory.vector[world, r]
        for c in range(start, r):
            total = total - transposed(memory.matrix[world, c, r], memory.vector[world, c])
        memory.vector[world, r] = upper_solve_transposed(memory.matrix[world, r, r], total)
    for r in range(start + blocks - 1, start - 1, -1):
        total = memory.vector[world, r]
        for c in range(r + 1, start + blocks):
            total = total - transposed(memory.matrix[world, c, r], memory.vector[world, c])
        memory.vector[world, r] = lower_solve_transposed(memory.matrix[world, r, r], total)
