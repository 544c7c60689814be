"""The kernel: one thread solves one problem whose first rows are equations and whose others are complementary."""

import warp as wp

from . import scalar
from .interior import solve_scaled
from .linear import factor, solve
from .workspace import Inside, carve_inside, carve_whole


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
def reduce(
    matrix: wp.array(dtype=scalar),
    vector: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    inside: Inside,
    n: wp.int32,
    free: wp.int32,
):
    """Set the problem of the complementary rows alone: A_cc − A_cf F⁻¹ A_fc and b_c − A_cf F⁻¹ b_f."""
    bound = n - free
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


@wp.func
def residual_of(
    matrix: wp.array(dtype=scalar),
    vector: wp.array(dtype=scalar),
    z: wp.array(dtype=scalar),
    n: wp.int32,
    free: wp.int32,
):
    """Max |w| over the equations and |min(z, w)| over the others, z and w scaled to a size of one."""
    largest_z = scalar(1.0)
    largest_w = scalar(1.0)
    for i in range(n):
        size = wp.abs(vector[i])
        for j in range(n):
            size += wp.abs(matrix[i * n + j] * z[j])
        largest_z = wp.max(largest_z, wp.abs(z[i]))
        largest_w = wp.max(largest_w, size)
    worst = scalar(0.0)
    for i in range(n):
        w = vector[i]
        for j in range(n):
            w += matrix[i * n + j] * z[j]
        off = w / largest_w
        if i >= free:
            off = wp.min(off, z[i] / largest_z)
        if not wp.isfinite(off):
            off = scalar(1.0e30)
        worst = wp.max(worst, wp.abs(off))
    return worst


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def solve_problems(
    first: wp.int32,
    matrices: wp.array2d(dtype=scalar),
    vectors: wp.array2d(dtype=scalar),
    n: wp.int32,
    free: wp.int32,
    ridge: scalar,
    real: wp.array2d(dtype=scalar),
    integer: wp.array2d(dtype=wp.int32),
    solutions: wp.array2d(dtype=scalar),
    residuals: wp.array(dtype=scalar),
    iterations: wp.array(dtype=wp.int32),
):
    """Solve w = A z + b with w = 0 in the first `free` rows and 0 ≤ z ⟂ w ≥ 0 in the others."""
    world = first + wp.tid()
    bound = n - free
    matrix = matrices[world]
    vector = vectors[world]
    z = solutions[world]
    memory = carve_whole(n, free, real[world], integer[world])
    inside = carve_inside(bound, memory.inside, memory.inside_order)
    factors = memory.factors
    columns = memory.columns
    order = memory.order
    before = memory.before
    eliminate(matrix, vector, factors, columns, order, n, free)
    reduce(matrix, vector, columns, inside, n, free)
    taken, _residual = solve_scaled(inside, bound, ridge)
    for k in range(free):
        total = -columns[bound * free + k]
        for j in range(bound):
            total -= columns[j * free + k] * inside.z[j]
        z[k] = total
    for i in range(bound):
        z[free + i] = inside.z[i]
    residual = residual_of(matrix, vector, z, n, free)
    if free > 0:
        scale = scalar(0.0)
        for i in range(bound * bound):
            scale = wp.max(scale, wp.abs(inside.matrix[i]))
        tries = wp.int32(0)
        while tries < 3:
            tries += 1
            for i in range(n):
                before[i] = z[i]
            refine(matrix, vector, factors, columns, order, n, free, inside, scale, z)
            after = residual_of(matrix, vector, z, n, free)
            if after < residual:
                residual = after
            else:
                tries = wp.int32(3)
                for i in range(n):
                    z[i] = before[i]
    residuals[world] = residual
    iterations[world] = taken
