"""Products with constraint rows, each sparse over the two bodies that it acts on."""

import warp as wp

from .precision import Array1d, scalar
from .problem import Problem


@wp.func
def row_velocity(p: Problem, rows: Array1d, r: int, v: Array1d):
    """Return row r times the vector v over bodies."""
    a = 3 * p.row_a[r]
    b = 3 * p.row_b[r]
    total = rows[6 * r] * v[a] + rows[6 * r + 1] * v[a + 1] + rows[6 * r + 2] * v[a + 2]
    return total + rows[6 * r + 3] * v[b] + rows[6 * r + 4] * v[b + 1] + rows[6 * r + 5] * v[b + 2]


@wp.func
def add_row(p: Problem, rows: Array1d, r: int, factor: scalar, v: Array1d):
    """Add `factor` times row r to the vector v over bodies."""
    a = 3 * p.row_a[r]
    b = 3 * p.row_b[r]
    for k in range(3):
        v[a + k] = v[a + k] + factor * rows[6 * r + k]
    for k in range(3):
        v[b + k] = v[b + k] + factor * rows[6 * r + 3 + k]


@wp.func
def apply_impulse(p: Problem, rows: Array1d, r: int, factor: scalar, v: Array1d):
    """Add `factor` times W times row r, W the inverse masses, to the vector v over bodies."""
    a = 3 * p.row_a[r]
    b = 3 * p.row_b[r]
    for k in range(3):
        v[a + k] = v[a + k] + factor * p.inverse_mass[a + k] * rows[6 * r + k]
    for k in range(3):
        v[b + k] = v[b + k] + factor * p.inverse_mass[b + k] * rows[6 * r + 3 + k]


@wp.func
def delassus_entry(p: Problem, rows: Array1d, columns: Array1d, i: int, j: int):
    """Return entry (i, j) of the Delassus matrix: the velocity of row i per unit of multiplier j."""
    total = scalar(0.0)
    for side_i in range(2):
        body = p.row_a[i]
        if side_i == 1:
            body = p.row_b[i]
        for side_j in range(2):
            body_j = p.row_a[j]
            if side_j == 1:
                body_j = p.row_b[j]
            if body == body_j:
                for k in range(3):
                    total += (
                        rows[6 * i + 3 * side_i + k] * p.inverse_mass[3 * body + k] * columns[6 * j + 3 * side_j + k]
                    )
    return total


@wp.func
def weighted_velocity(p: Problem, rows: Array1d, r: int, x: Array1d):
    """Return row r times W times x, W the inverse masses."""
    total = scalar(0.0)
    a = 3 * p.row_a[r]
    b = 3 * p.row_b[r]
    for k in range(3):
        total += rows[6 * r + k] * p.inverse_mass[a + k] * x[a + k]
        total += rows[6 * r + 3 + k] * p.inverse_mass[b + k] * x[b + k]
    return total
