"""The kernel: one thread solves one problem whose first rows are equations and whose others are complementary."""

import warp as wp

from . import scalar
from .interior import Inside, carve_inside, solve_scaled
from .linear import factor, solve


@wp.func
def eliminate(
    matrix: wp.array(dtype=scalar),
    vector: wp.array(dtype=scalar),
    factors: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    order: wp.array(dtype=wp.int32),
    n: wp.int32,
    free: wp.int32,
):
    """Factorise the free block F and set `columns` to F⁻¹ [A_fc, b_f], one column after the other."""
    for i in range(free):
        for j in range(free):
            factors[i * free + j] = matrix[i * n + j]
    factor(factors, order, free)
    for j in range(n - free + 1):
        column = columns[j * free : (j + 1) * free]
        for i in range(free):
            if j == n - free:
                column[i] = vector[i]
            else:
                column[i] = matrix[i * n + free + j]
        solve(factors, order, column, free)


@wp.func
def refine(
    matrix: wp.array(dtype=scalar),
    vector: wp.array(dtype=scalar),
    factors: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    order: wp.array(dtype=wp.int32),
    n: wp.int32,
    free: wp.int32,
    inside: Inside,
    scale: scalar,
    z: wp.array(dtype=scalar),
):
    """One step of iterative refinement of the whole z on its active set, which `inside` marks in `residual`.

    The factors at hand are those of F and of the active part of S/scale, S the reduced matrix.
    """
    bound = n - free
    rest = columns[bound * free : (bound + 1) * free]
    for i in range(free):
        total = vector[i]
        for j in range(n):
            total += matrix[i * n + j] * z[j]
        rest[i] = -total
    solve(factors, order, rest, free)
    for i in range(bound):
        total = vector[free + i]
        for j in range(n):
            total += matrix[(free + i) * n + j] * z[j]
        for k in range(free):
            total += matrix[(free + i) * n + k] * rest[k]
        inside.dz[i] = -total / scale * inside.residual[i]
    solve(inside.factors, inside.order, inside.dz, bound)
    for i in range(bound):
        z[free + i] = wp.max(z[free + i] + inside.dz[i] * inside.residual[i], scalar(0.0))
    for k in range(free):
        change = rest[k]
        for j in range(bound):
            change -= columns[j * free + k] * inside.dz[j] * inside.residual[j]
        z[k] = z[k] + change


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def solve_problems(
    matrices: wp.array2d(dtype=scalar),
    vectors: wp.array2d(dtype=scalar),
    n: wp.int32,
    free: wp.int32,
    tolerance: scalar,
    ridge: scalar,
    real: wp.array2d(dtype=scalar),
    integer: wp.array2d(dtype=wp.int32),
    solutions: wp.array2d(dtype=scalar),
    residuals: wp.array(dtype=scalar),
    iterations: wp.array(dtype=wp.int32),
):
    """Solve w = A z + b with w = 0 in the first `free` rows and 0 ≤ z ⟂ w ≥ 0 in the others."""
    world = wp.tid()
    bound = n - free
    matrix = matrices[world]
    vector = vectors[world]
    memory = real[world]
    z = solutions[world]
    inside = carve_inside(memory, integer[world], bound)
    at = 2 * bound * bound + 7 * bound
    factors = memory[at : at + free * free]
    columns = memory[at + free * free : at + free * free + free * (bound + 1)]
    eliminate(matrix, vector, factors, columns, integer[world][bound:n], n, free)
    for i in range(bound):
        row = (free + i) * n
        for j in range(bound):
            total = matrix[row + free + j]
            for k in range(free):
                total -= matrix[row + k] * columns[j * free + k]
            inside.matrix[i * bound + j] = total
        rest = vector[free + i]
        for k in range(free):
            rest -= matrix[row + k] * columns[bound * free + k]
        inside.vector[i] = rest
    taken, residual = solve_scaled(inside, bound, tolerance, ridge)
    for k in range(free):
        total = -columns[bound * free + k]
        for j in range(bound):
            total -= columns[j * free + k] * inside.z[j]
        z[k] = total
    for i in range(bound):
        z[free + i] = inside.z[i]
    if free > 0 and residual < tolerance:
        scale = scalar(0.0)
        for i in range(bound * bound):
            scale = wp.max(scale, wp.abs(inside.matrix[i]))
        for _ in range(2):
            refine(matrix, vector, factors, columns, integer[world][bound:n], n, free, inside, scale, z)
    residuals[world] = residual
    iterations[world] = taken
