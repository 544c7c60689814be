"""The factorisation A = L Lᵀ of a sparse matrix of D×D blocks whose pattern is known, and solutions with it.

Column after column: a column takes from itself what those to its left have in its row, which `left` lists. A diagonal
block C is kept as its inverse.
"""

import warp as wp

from . import D, Mat, Vec, real
from .structs import BodyStruct


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
def factorise(
    body: BodyStruct, diagonal: wp.array(dtype=Mat), below: wp.array(dtype=Mat), at: wp.array(dtype=wp.int32)
):
    """Replace the matrix by its factor; whether it is positive definite."""
    for j in range(diagonal.shape[0]):
        for q in range(body.column[j], body.column[j + 1]):
            at[body.row[q]] = q
        here = diagonal[j]
        for entry in range(body.left[j], body.left[j + 1]):
            p = body.left_block[entry]
            taken = wp.transpose(below[p])
            here -= below[p] * taken
            for q in range(p + 1, body.column[body.left_column[entry] + 1]):
                slot = at[body.row[q]]
                below[slot] = below[slot] - below[q] * taken
        root = inverse_of_root(here)
        smallest = root[0, 0]
        for i in range(D):
            smallest = wp.min(smallest, root[i, i])
        if not (smallest > real(0.0) and wp.isfinite(root)):
            return False
        diagonal[j] = root
        over = wp.transpose(root)
        for q in range(body.column[j], body.column[j + 1]):
            below[q] = below[q] * over
    return True


@wp.func
def solve(body: BodyStruct, diagonal: wp.array(dtype=Mat), below: wp.array(dtype=Mat), x: wp.array(dtype=Vec)):
    """Replace x, of all nodes, by A⁻¹ x on the free ones."""
    n = diagonal.shape[0]
    for j in range(n):
        node = body.node[j]
        y = diagonal[j] * x[node]
        x[node] = y
        for q in range(body.column[j], body.column[j + 1]):
            other = body.node[body.row[q]]
            x[other] = x[other] - below[q] * y
    for back in range(n):
        j = n - 1 - back
        y = x[body.node[j]]
        for q in range(body.column[j], body.column[j + 1]):
            y -= wp.transpose(below[q]) * x[body.node[body.row[q]]]
        x[body.node[j]] = wp.transpose(diagonal[j]) * y
