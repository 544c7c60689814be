"""Contact primitives: the few smooth forms that all pairs of shapes reduce to, with closest points and normals."""

import warp as wp

from ..precision import mat33, scalar, vec3
from .settings import COLLISION

POINTS = wp.constant(0)  # two points
FACE = wp.constant(1)  # a point, and a face of the second shape
POINT_LINE = wp.constant(2)
LINE_POINT = wp.constant(3)
LINES = wp.constant(4)
RIM = wp.constant(5)  # a point of a circle, relative to its lowest one, and a face
SMOOTH = wp.constant(6)  # a point or an ellipsoid, and an ellipsoid
LINE_SMOOTH = wp.constant(7)  # a line and an ellipsoid
SMOOTH_FACE = wp.constant(8)  # an ellipsoid and a face

PARALLEL_SINE_SQUARED = wp.constant(scalar(COLLISION.parallel_sine_squared))
MIN_LENGTH = wp.constant(scalar(COLLISION.min_length))


@wp.struct
class ShapePose:
    """Pose of a shape in the world, and its sizes."""

    rotation: mat33
    origin: vec3
    size: vec3


@wp.struct
class WeightedForces:
    """Forces at a point, or moments, one for each of three motions: rows of `step_velocity` that weight them."""

    row_after: int
    row_virtual: int
    row_before: int
    forces: mat33  # a row for each motion
    is_orientation: scalar  # one for moments, otherwise zero
    point: vec3
    frame_bar: vec3  # adjoint of a rotation of the contact frame besides that of the power


@wp.struct
class ContactPrimitive:
    """Closest points of a pair of shapes, with the form of the pair: one of the constants above."""

    form: int
    separation: scalar
    normal: vec3  # from the second shape to the first
    first_point: vec3  # the closest point of the first shape's core, in the world
    second_point: vec3
    first_axis: vec3  # direction of a line, or axis of a circle
    second_axis: vec3  # direction of a line, or from the center of a circle to its point
    first_radius: scalar  # about the core
    second_radius: scalar
    first_size_derivative: vec3  # derivative of the point with respect to the sizes of its shape, in its axes
    second_size_derivative: vec3
    first_curvature: mat33  # derivative of a smooth surface's point with respect to the normal
    second_curvature: mat33
    first_radius_derivative: vec3  # derivative of a point on a cap with respect to the radius of the cylinder
    second_radius_derivative: vec3
    first_is_scaled: int  # whether faces and edges rotate as the sizes grow
    second_is_scaled: int
    is_swapped: int  # whether the form describes the second shape and the first, in this order
    is_ambiguous: int  # whether another normal separates the shapes as far
    is_flat: int  # whether flat sides lie on each other; whatever the form, the normal is that of the second
    rim: vec3  # cosine and sine of the angle from the lowest point of a circle, and its radius


@wp.func
def is_ambiguous(primitive: ContactPrimitive):
    """Return True if the normal of a contact has no derivative.

    This is the case where corners meet corners or edges, whose normal is undefined, or parallel edges.
    """
    total_radius = primitive.first_radius + primitive.second_radius
    total_curvature = wp.trace(primitive.first_curvature) + wp.trace(primitive.second_curvature) + total_radius
    is_sharp = (primitive.form == SMOOTH or primitive.form == LINE_SMOOTH) and total_curvature == scalar(0.0)
    return is_sharp or primitive.is_ambiguous != 0


@wp.func
def elementwise_product(a: vec3, b: vec3):
    """Return the elementwise product of two vectors."""
    return vec3(a[0] * b[0], a[1] * b[1], a[2] * b[2])


@wp.func
def solve_tangential(curvature: mat33, distance: scalar, n: vec3, rhs: vec3):
    """Solve ((curvature + distance) x) = rhs within the plane perpendicular to n."""
    z = scalar(0.0)
    axis = vec3(scalar(1.0), z, z)
    if wp.abs(n[0]) > scalar(0.6):
        axis = vec3(z, scalar(1.0), z)
    u = wp.normalize(axis - wp.dot(axis, n) * n)
    w = wp.cross(n, u)
    a = wp.dot(u, curvature * u) + distance
    b = wp.dot(u, curvature * w)
    c = wp.dot(w, curvature * w) + distance
    p = wp.dot(u, rhs)
    q = wp.dot(w, rhs)
    determinant = a * c - b * b
    if wp.abs(determinant) < MIN_LENGTH:
        determinant = MIN_LENGTH
    return ((c * p - b * q) / determinant) * u + ((a * q - b * p) / determinant) * w
