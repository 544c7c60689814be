"""The working memory of one problem, cut from one long row."""

import warp as wp

from . import scalar


@wp.struct
class Inside:
    """Working memory of one problem of size n: two n×n matrices, eight vectors, and whole numbers for pivots."""

    matrix: wp.array(dtype=scalar)
    factors: wp.array(dtype=scalar)
    residual: wp.array(dtype=scalar)
    dz: wp.array(dtype=scalar)
    dw: wp.array(dtype=scalar)
    vector: wp.array(dtype=scalar)
    z: wp.array(dtype=scalar)
    w: wp.array(dtype=scalar)
    best: wp.array(dtype=scalar)
    kept: wp.array(dtype=scalar)
    order: wp.array(dtype=wp.int32)


def inside_sizes(n: int) -> tuple[int, int]:
    """How many real and how many whole numbers a problem of size n needs."""
    return 2 * n * n + 8 * n, 2 * n + 1


@wp.func
def carve_inside(real: wp.array(dtype=scalar), integer: wp.array(dtype=wp.int32), n: wp.int32):
    """The working memory of a problem of size n, cut from the start of `real` and `integer`."""
    m = Inside()
    square = n * n
    m.matrix = real[0:square]
    m.factors = real[square : 2 * square]
    at = 2 * square
    m.residual = real[at : at + n]
    m.dz = real[at + n : at + 2 * n]
    m.dw = real[at + 2 * n : at + 3 * n]
    m.vector = real[at + 3 * n : at + 4 * n]
    m.z = real[at + 4 * n : at + 5 * n]
    m.w = real[at + 5 * n : at + 6 * n]
    m.best = real[at + 6 * n : at + 7 * n]
    m.kept = real[at + 7 * n : at + 8 * n]
    m.order = integer[0 : 2 * n + 1]
    return m
