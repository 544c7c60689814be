"""Products of 3-vectors and 3×3 matrices as Warp functions."""

import warp as wp

from ..precision import mat33, scalar, vec3


@wp.func
def zero3():
    """Return the zero vector of length three."""
    return vec3(scalar(0.0), scalar(0.0), scalar(0.0))


@wp.func
def select_vec3(index: int, first: vec3, second: vec3):
    """Return the first vector if `index` is 0, else the second; unlike a merge after `if`, this stays in registers."""
    if index == 0:
        return first
    return second


@wp.func
def skew(a: vec3):
    """Return the matrix [a]× of the cross product with a."""
    z = scalar(0.0)
    return mat33(z, -a[2], a[1], a[2], z, -a[0], -a[1], a[0], z)


@wp.func
def skew_product(a: vec3, m: mat33):
    """Return [a]× m, without the products with zeros."""
    first = vec3(m[0, 0], m[0, 1], m[0, 2])
    second = vec3(m[1, 0], m[1, 1], m[1, 2])
    third = vec3(m[2, 0], m[2, 1], m[2, 2])
    return wp.matrix_from_rows(a[1] * third - a[2] * second, a[2] * first - a[0] * third, a[0] * second - a[1] * first)


@wp.func
def transpose_product(m: mat33, a: vec3):
    """Return mᵀ a, without building mᵀ."""
    return vec3(
        m[0, 0] * a[0] + m[1, 0] * a[1] + m[2, 0] * a[2],
        m[0, 1] * a[0] + m[1, 1] * a[1] + m[2, 1] * a[2],
        m[0, 2] * a[0] + m[1, 2] * a[1] + m[2, 2] * a[2],
    )


@wp.func
def column(m: mat33, k: int):
    """Return column k of a matrix."""
    return vec3(m[0, k], m[1, k], m[2, k])


@wp.func
def tangential_part(a: vec3, axis: vec3):
    """Return the part of a vector that is perpendicular to a unit axis."""
    return a - wp.dot(a, axis) * axis
