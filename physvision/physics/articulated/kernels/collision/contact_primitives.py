"""The few smooth forms that every pair of shapes comes down to, and what is told of each."""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3

POINTS = wp.constant(0)  # two points
FACE = wp.constant(1)  # a point, and a face with a normal that the second shape carries
POINT_LINE = wp.constant(2)
LINE_POINT = wp.constant(3)
LINES = wp.constant(4)
RIM = wp.constant(5)  # a point of a circle, told from the circle's lowest one, and a face
SMOOTH = wp.constant(6)  # a point or an ellipsoid, and an ellipsoid
LINE_SMOOTH = wp.constant(7)  # a line and an ellipsoid
SMOOTH_FACE = wp.constant(8)  # an ellipsoid and a face

PARALLEL = wp.constant(scalar(1.0e-6))  # squared sine below which lines have no crossing
LEAST = wp.constant(scalar(1.0e-150 if DOUBLE else 1.0e-18))


@wp.struct
class Closest:
    """The form that a pair has, and where."""

    form: int
    gap: scalar
    normal: vec3  # from the second shape to the first
    first: vec3  # the closest point of the first shape's core, in the world
    second: vec3
    first_axis: vec3  # of a line, unit; of a circle
    second_axis: vec3  # of a circle: from its centre to the point
    first_radius: scalar  # about the core
    second_radius: scalar
    first_share: vec3  # how the point moves as the sizes of its shape grow, along the shape's axes
    second_share: vec3
    first_curve: mat33  # of an ellipsoid: how its point moves with its normal
    second_curve: mat33
    first_rim: vec3  # how its point moves as its radius grows, where it is on the cap of a cylinder
    second_rim: vec3
    first_stretches: int  # whether its faces and edges turn as its sizes grow
    second_stretches: int
    turned: int  # whether the form is told of the second shape and the first, in this order
    rim: vec3  # of a circle: cosine and sine of the angle from its lowest point, and its radius


@wp.func
def axis_of(m: mat33, k: int):
    return vec3(m[0, k], m[1, k], m[2, k])


@wp.func
def scaled(a: vec3, b: vec3):
    return vec3(a[0] * b[0], a[1] * b[1], a[2] * b[2])


@wp.func
def across_solve(curve: mat33, apart: scalar, n: vec3, right: vec3):
    """The vector across n that (curve + apart), taken across n, makes `right` of."""
    z = scalar(0.0)
    side = vec3(scalar(1.0), z, z)
    if wp.abs(n[0]) > scalar(0.6):
        side = vec3(z, scalar(1.0), z)
    u = wp.normalize(side - wp.dot(side, n) * n)
    w = wp.cross(n, u)
    a = wp.dot(u, curve * u) + apart
    b = wp.dot(u, curve * w)
    c = wp.dot(w, curve * w) + apart
    p = wp.dot(u, right)
    q = wp.dot(w, right)
    whole = a * c - b * b
    if wp.abs(whole) < LEAST:
        whole = LEAST
    return ((c * p - b * q) / whole) * u + ((a * q - b * p) / whole) * w
