"""Closest points of an ellipsoid to a plane and to a point.

An ellipsoid with radii r has, in its own axes, the outward normal n at x = r² n / h, h = |r n|; H = ∂x/∂n is the
curvature of its support function. The closest point to y is x = r² y / (t + r²) with the largest root t of Σ (r y / (t
+ r²))² = 1: y is outside for t > 0, and the distance has the sign of t.
"""

import warp as wp

from ..precision import mat33, scalar, vec3
from ..spatial.vectors import column, transpose_product
from .contact_primitives import (
    MIN_LENGTH,
    SMOOTH,
    SMOOTH_FACE,
    ContactPrimitive,
    ShapePose,
    elementwise_product,
)
from .settings import COLLISION

SURFACE_TOLERANCE = wp.constant(scalar(COLLISION.surface_tolerance))
MAX_ROOT_STEPS = wp.constant(COLLISION.max_root_steps)
MAX_ITERATIONS = wp.constant(COLLISION.max_surface_iterations)


@wp.func
def ellipsoid_support(rotation: mat33, radii: vec3, normal: vec3):
    """Return the vector from the center to the support point along a direction."""
    local = transpose_product(rotation, normal)
    stretched = elementwise_product(radii, local)
    return rotation * (elementwise_product(radii, stretched) / wp.max(wp.length(stretched), MIN_LENGTH))


@wp.func
def ellipsoid_size_derivative(rotation: mat33, radii: vec3, offset: vec3):
    """Return the motion of a point, given relative to the center, as the radii grow."""
    local = transpose_product(rotation, offset)
    return vec3(local[0] / radii[0], local[1] / radii[1], local[2] / radii[2])


@wp.func
def ellipsoid_curvature(rotation: mat33, radii: vec3, normal: vec3):
    """Return H, the derivative of the support point with respect to the direction."""
    local = transpose_product(rotation, normal)
    stretched = elementwise_product(radii, local)
    size = wp.max(wp.length(stretched), MIN_LENGTH)
    x = elementwise_product(radii, stretched) / size
    z = scalar(0.0)
    squares = elementwise_product(radii, radii)
    local_curvature = mat33(squares[0], z, z, z, squares[1], z, z, z, squares[2]) - wp.outer(x, x)
    return rotation * (local_curvature / size) * wp.transpose(rotation)


@wp.func
def closest_root(y: vec3, radii: vec3):
    """Return the largest root t, by Newton's method from below, which never overshoots."""
    low = scalar(-1.0e30)
    for k in range(3):
        low = wp.max(low, radii[k] * wp.abs(y[k]) - radii[k] * radii[k])
    t = low
    change = scalar(1.0)
    for _step in range(MAX_ROOT_STEPS):
        if change > SURFACE_TOLERANCE * wp.dot(radii, radii):
            value = scalar(-1.0)
            slope = scalar(0.0)
            for k in range(3):
                denominator = wp.max(t + radii[k] * radii[k], MIN_LENGTH)
                term = radii[k] * y[k] / denominator
                value += term * term
                slope += scalar(2.0) * term * term / denominator
            change = scalar(0.0)
            if value > scalar(0.0) and slope > scalar(0.0):
                change = value / slope
            t = t + change
    return t


@wp.func
def closest_normal(y: vec3, radii: vec3):
    """Return the outward normal, in the axes of the ellipsoid, at its point closest to y."""
    t = closest_root(y, radii)
    normal = vec3(scalar(0.0), scalar(0.0), scalar(1.0))
    z = scalar(0.0)
    n = vec3(z, z, z)
    for k in range(3):
        n[k] = y[k] / wp.max(t + radii[k] * radii[k], MIN_LENGTH)
    length = wp.length(n)
    if length > MIN_LENGTH:
        normal = n / length
    return normal


@wp.func
def point_ellipsoid(primitive: ContactPrimitive, b: ShapePose):
    """Complete a primitive whose `first_point` is known and whose second shape is an ellipsoid."""
    primitive.normal = b.rotation * closest_normal(
        transpose_product(b.rotation, primitive.first_point - b.origin), b.size
    )
    primitive.second_point = b.origin + ellipsoid_support(b.rotation, b.size, primitive.normal)
    primitive.second_curvature = ellipsoid_curvature(b.rotation, b.size, primitive.normal)
    primitive.second_size_derivative = ellipsoid_size_derivative(b.rotation, b.size, primitive.second_point - b.origin)
    primitive.separation = (
        wp.dot(primitive.normal, primitive.first_point - primitive.second_point) - primitive.first_radius
    )
    primitive.form = SMOOTH
    return primitive


@wp.func
def ellipsoid_plane(primitive: ContactPrimitive, a: ShapePose, b: ShapePose):
    """Complete the primitive of an ellipsoid and a plane."""
    primitive.normal = column(b.rotation, 2)
    primitive.first_point = a.origin - ellipsoid_support(a.rotation, a.size, primitive.normal)
    primitive.first_curvature = ellipsoid_curvature(a.rotation, a.size, primitive.normal)
    primitive.first_size_derivative = ellipsoid_size_derivative(a.rotation, a.size, primitive.first_point - a.origin)
    primitive.separation = wp.dot(primitive.normal, primitive.first_point - b.origin)
    primitive.second_point = primitive.first_point - primitive.separation * primitive.normal
    primitive.form = SMOOTH_FACE
    return primitive
