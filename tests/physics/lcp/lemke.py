"""Lemke's complementary pivoting in plain numpy: an independent method for w = A z + b, z ≥ 0, w ≥ 0, z·w = 0."""

import numpy as np


def lemke(matrix, vector, max_pivots=2000):
    """The solution z, or None where the method ends on a ray."""
    n = len(vector)
    if (vector >= 0).all():
        return np.zeros(n)
    # A slight, fixed perturbation of the covering vector keeps degenerate problems from cycling.
    cover = 1.0 + 1e-3 * np.cos(np.arange(n))
    table = np.hstack([np.eye(n), -matrix, -cover[:, None], vector[:, None]])
    basis = list(range(n))
    row = int(np.argmin(vector / cover))
    entering = 2 * n
    for _ in range(max_pivots):
        leaving = basis[row]
        table[row] /= table[row, entering]
        rest = np.arange(n) != row
        table[rest] -= np.outer(table[rest, entering], table[row])
        basis[row] = entering
        if leaving == 2 * n:
            z = np.zeros(2 * n + 1)
            z[basis] = table[:, -1]
            return z[n : 2 * n]
        entering = leaving + n if leaving < n else leaving - n
        column = table[:, entering]
        allowed = column > 1e-11
        if not allowed.any():
            return None
        ratios = np.where(allowed, table[:, -1] / np.where(allowed, column, 1.0), np.inf)
        tied_rows = np.flatnonzero(ratios <= ratios.min() + 1e-12)
        zero = [i for i in tied_rows if basis[i] == 2 * n]
        row = int(zero[0] if zero else tied_rows[0])
    return None
