"""Products with constraint rows, each sparse over the two bodies that it acts on."""

import warp as wp

from .precision import Array1d, scalar
from .problem import Problem


@wp.func
def row_body(p: Problem, r: int, side: int):
    """Return the first (side 0) or second (side 1) body of row r."""
    return wp.where(side == 1, p.row_b[r], p.row_a[r])


@wp.func
def link_row_ends(p: Problem, size: int):
    """Link the ends of the first `size` rows that act on one body, two a row, in the order of their rows."""
    for body in range(p.bodies + 1):
        p.first_end[body] = -1
    for back in range(2 * size):
        end = 2 * size - 1 - back
        body = row_body(p, end // 2, end % 2)
        if p.inverse_mass[3 * body] > scalar(0.0):
            p.next_end[end] = p.first_end[body]
            p.first_end[body] = end


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
def apply_impulses(p: Problem, rows: Array1d, multipliers: Array1d, size: int, v: Array1d):
    """Add the effect of the multipliers of the first `size` rows to the vector v."""
    for r in range(size):
        if multipliers[r] != scalar(0.0):
            apply_impulse(p, rows, r, multipliers[r], v)


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
