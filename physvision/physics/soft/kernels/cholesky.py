"""The factorisation A = L Lᵀ of a sparse matrix of D×D blocks whose pattern is known, and solutions with it.

Column after column: a column takes from itself what those to its left have in its row, which `left` lists. A diagonal
block C is kept as its inverse.
"""

import warp as wp

from .precision import D, Mat, real
from .structs import BodyStruct, StepStruct


@wp.func
def inverse_of_root(a: Mat):
    """The inverse of the lower triangular C with a = C Cᵀ; not a number where there is none."""
    C = Mat()
    for j in range(D):
        for i in range(D):
            if i >= j:
                total = a[i, j]
                for k in range(D):
                    if k < j:
                        total -= C[i, k] * C[j, k]
                if i == j:
                    C[i, j] = wp.sqrt(total)
                else:
                    C[i, j] = total / C[j, j]
    return wp.inverse(C)


@wp.func
def factorise(body: BodyStruct, s: StepStruct):
    """Replace the matrix by its factor; whether it is positive definite."""
    for j in range(s.diagonal.shape[0]):
        for q in range(body.column[j], body.column[j + 1]):
            s.at[body.row[q]] = q
        here = s.diagonal[j]
        for entry in range(body.left[j], body.left[j + 1]):
            p = body.left_block[entry]
            taken = wp.transpose(s.below[p])
            here -= s.below[p] * taken
            for q in range(p + 1, body.column[body.left_column[entry] + 1]):
                slot = s.at[body.row[q]]
                s.below[slot] = s.below[slot] - s.below[q] * taken
        root = inverse_of_root(here)
        smallest = root[0, 0]
        for i in range(D):
            smallest = wp.min(smallest, root[i, i])
        if not (smallest > real(0.0) and wp.isfinite(root)):
            return False
        s.diagonal[j] = root
        over = wp.transpose(root)
        for q in range(body.column[j], body.column[j + 1]):
            s.below[q] = s.below[q] * over
    return True


@wp.func
def solve(body: BodyStruct, s: StepStruct):
    """Replace `move`, of all nodes, by A⁻¹ `move` on the free ones."""
    n = s.diagonal.shape[0]
    for j in range(n):
        node = body.node[j]
        y = s.diagonal[j] * s.move[node]
        s.move[node] = y
        for q in range(body.column[j], body.column[j + 1]):
            other = body.node[body.row[q]]
            s.move[other] = s.move[other] - s.below[q] * y
    for back in range(n):
        j = n - 1 - back
        y = s.move[body.node[j]]
        for q in range(body.column[j], body.column[j + 1]):
            y -= wp.transpose(s.below[q]) * s.move[body.node[body.row[q]]]
        s.move[body.node[j]] = wp.transpose(s.diagonal[j]) * y
