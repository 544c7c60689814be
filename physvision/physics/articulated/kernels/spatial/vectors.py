"""Products of 3-vectors and 3×3 matrices as Warp functions."""

import warp as wp

from physvision.physics.articulated.kernels.precision import mat33, scalar, vec3


@wp.func
def zero3():
    return vec3(scalar(0.0), scalar(0.0), scalar(0.0))


@wp.func
def either(side: int, one: vec3, other: vec3):
    """What belongs to side 0, or to side 1. Vectors that are merged after an `if` go through memory; returned, not."""
    if side == 0:
        return one
    return other


@wp.func
def skew(a: vec3):
    z = scalar(0.0)
    return mat33(z, -a[2], a[1], a[2], z, -a[0], -a[1], a[0], z)


@wp.func
def crossed(a: vec3, m: mat33):
    """[a]× m, without the products with zeros."""
    first = vec3(m[0, 0], m[0, 1], m[0, 2])
    second = vec3(m[1, 0], m[1, 1], m[1, 2])
    third = vec3(m[2, 0], m[2, 1], m[2, 2])
    return wp.matrix_from_rows(a[1] * third - a[2] * second, a[2] * first - a[0] * third, a[0] * second - a[1] * first)


@wp.func
def transposed(m: mat33, a: vec3):
    """mᵀ a, without building mᵀ."""
    return vec3(
        m[0, 0] * a[0] + m[1, 0] * a[1] + m[2, 0] * a[2],
        m[0, 1] * a[0] + m[1, 1] * a[1] + m[2, 1] * a[2],
        m[0, 2] * a[0] + m[1, 2] * a[1] + m[2, 2] * a[2],
    )
