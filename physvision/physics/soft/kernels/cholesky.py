"""Cholesky factorization A = L Lᵀ of a sparse matrix of D×D blocks with a known pattern, and its solver.

It is left-looking: each column subtracts the products of the columns to its left, which `left` lists. Diagonal blocks C
are stored as their inverses.
"""

import warp as wp

from .precision import D, Mat, real
from .structs import BodyStruct, StepStruct


@wp.func
def inverse_of_root(a: Mat):
    """Inverse of the lower triangular C with a = C Cᵀ; NaN if a is not positive definite."""
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
def factorize(body: BodyStruct, s: StepStruct):
    """Replace the matrix by its factor; return true if it is positive definite."""
    for j in range(s.diagonal.shape[0]):
        for q in range(body.column[j], body.column[j + 1]):
            s.at[body.row[q]] = q
        block = s.diagonal[j]
        for entry in range(body.left[j], body.left[j + 1]):
            p = body.left_block[entry]
            transposed = wp.transpose(s.below[p])
            block -= s.below[p] * transposed
            for q in range(p + 1, body.column[body.left_column[entry] + 1]):
                slot = s.at[body.row[q]]
                s.below[slot] = s.below[slot] - s.below[q] * transposed
        root = inverse_of_root(block)
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
    """Replace `move` of the free nodes by A⁻¹ `move`."""
    n = s.diagonal.shape[0]
    for j in range(n):
        node = body.node[j]
        y = s.diagonal[j] * s.move[node]
        s.move[node] = y
        for q in range(body.column[j], body.column[j + 1]):
            row_node = body.node[body.row[q]]
            s.move[row_node] = s.move[row_node] - s.below[q] * y
    for back in range(n):
        j = n - 1 - back
        y = s.move[body.node[j]]
        for q in range(body.column[j], body.column[j + 1]):
            y -= wp.transpose(s.below[q]) * s.move[body.node[body.row[q]]]
        s.move[body.node[j]] = wp.transpose(s.diagonal[j]) * y
