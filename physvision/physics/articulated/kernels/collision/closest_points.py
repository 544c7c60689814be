"""Closest points, separation and normal of two shapes.

Each shape is a core (a point, a line, the face of a half space) with a radius about every point of it. The kind of a
pair says what the cores are; at an end, an edge or a face it reduces to one of a few smooth contact primitives, which
`closest_points_adjoint` differentiates.

Pairs of shapes with flat sides are in `convex`, except spheres with boxes and all shapes with planes.
"""

import warp as wp

from ..precision import mat33, scalar, vec3
from ..spatial.vectors import column, transpose_product, zero3
from .contact_primitives import (
    FACE,
    LINE_POINT,
    LINES,
    MIN_LENGTH,
    PARALLEL_SINE_SQUARED,
    POINT_LINE,
    POINTS,
    RIM,
    ContactPrimitive,
    ShapePose,
    elementwise_product,
)
from .cylinders import point_cylinder, segment_cylinder
from .ellipsoids import ellipsoid_plane, point_ellipsoid
from .settings import COLLISION

# Kinds of pairs of features, which `contact.features` lists; the first shape is named first.
POINT_PLANE = wp.constant(0)
POINT_POINT = wp.constant(1)
POINT_SEGMENT = wp.constant(2)
SEGMENT_SEGMENT = wp.constant(3)
POINT_BOX = wp.constant(4)
RIM_PLANE = wp.constant(5)
CORNER_PLANE = wp.constant(6)
POINT_ELLIPSOID = wp.constant(7)
ELLIPSOID_PLANE = wp.constant(10)
POINT_CYLINDER = wp.constant(11)
SEGMENT_CYLINDER = wp.constant(12)
STRING = wp.constant(13)
CONVEX = wp.constant(15)  # see `convex`
SEGMENT_END = wp.constant(16)

MAX_BESIDE_SINE_SQUARED = wp.constant(scalar(COLLISION.max_beside_sine_squared))
MIN_BESIDE_LENGTH = wp.constant(scalar(COLLISION.min_beside_length))
ABSENT_SEPARATION = wp.constant(scalar(COLLISION.absent_separation))
MIN_RIM_SINE = wp.constant(scalar(COLLISION.min_rim_sine))


@wp.func
def set_normal_from_points(primitive: ContactPrimitive):
    """Set normal and separation of a primitive from its two closest points."""
    difference = primitive.first_point - primitive.second_point
    length = wp.length(difference)
    primitive.normal = vec3(scalar(0.0), scalar(0.0), scalar(1.0))
    if length > MIN_LENGTH:
        primitive.normal = difference / length
    primitive.separation = length - primitive.first_radius - primitive.second_radius
    return primitive


@wp.func
def point_plane(primitive: ContactPrimitive, b: ShapePose):
    """Complete the primitive of a point and a plane."""
    primitive.form = FACE
    primitive.normal = column(b.rotation, 2)
    height = wp.dot(primitive.normal, primitive.first_point - b.origin)
    primitive.second_point = primitive.first_point - height * primitive.normal
    primitive.separation = height - primitive.first_radius
    return primitive


@wp.func
def point_segment(primitive: ContactPrimitive, b: ShapePose):
    """Complete the primitive of a point and a segment."""
    axis = column(b.rotation, 2)
    along = wp.dot(axis, primitive.first_point - b.origin)
    half = scalar(0.5) * b.size[2]
    primitive.form = POINT_LINE
    if wp.abs(along) >= half:
        primitive.form = POINTS
        primitive.second_size_derivative = vec3(scalar(0.0), scalar(0.0), wp.sign(along) * scalar(0.5))
        along = wp.sign(along) * half
    primitive.second_point = b.origin + along * axis
    primitive.second_axis = axis
    primitive.second_radius = b.size[0]
    return set_normal_from_points(primitive)


@wp.func
def project_on_segment(point: vec3, origin: vec3, axis: vec3, half: scalar):
    """Return the coordinate along a segment of its point closest to another point."""
    return wp.clamp(wp.dot(axis, point - origin), -half, half)


@wp.func
def segment_segment(primitive: ContactPrimitive, a: ShapePose, b: ShapePose):
    """Complete the primitive of two segments."""
    axis_a = column(a.rotation, 2)
    axis_b = column(b.rotation, 2)
    half_a = scalar(0.5) * a.size[2]
    half_b = scalar(0.5) * b.size[2]
    cosine = wp.dot(axis_a, axis_b)
    squared_sine = scalar(1.0) - cosine * cosine
    difference = a.origin - b.origin
    s = project_on_segment(b.origin, a.origin, axis_a, half_a)
    if squared_sine > PARALLEL_SINE_SQUARED:
        s = wp.clamp(-wp.dot(difference, axis_a - cosine * axis_b) / squared_sine, -half_a, half_a)
    t = project_on_segment(a.origin + s * axis_a, b.origin, axis_b, half_b)
    s = project_on_segment(b.origin + t * axis_b, a.origin, axis_a, half_a)
    inside_a = wp.abs(s) < half_a and squared_sine > PARALLEL_SINE_SQUARED
    inside_b = wp.abs(t) < half_b
    primitive.form = POINTS
    if inside_a and inside_b:
        primitive.form = LINES
    elif inside_a:
        primitive.form = LINE_POINT
    elif inside_b:
        primitive.form = POINT_LINE
    if wp.abs(s) >= half_a:
        primitive.first_size_derivative = vec3(scalar(0.0), scalar(0.0), wp.sign(s) * scalar(0.5))
    if not inside_b:
        primitive.second_size_derivative = vec3(scalar(0.0), scalar(0.0), wp.sign(t) * scalar(0.5))
    primitive.first_point = a.origin + s * axis_a
    primitive.second_point = b.origin + t * axis_b
    primitive.first_axis = axis_a
    primitive.second_axis = axis_b
    primitive.first_radius = a.size[0]
    primitive.second_radius = b.size[0]
    return set_normal_from_points(primitive)


@wp.func
def parallel_interval(a: ShapePose, b: ShapePose):
    """Return the interval of a's axis beside which b lies; empty (low above high) if they are far from parallel."""
    axis = column(a.rotation, 2)
    cosine = wp.dot(axis, column(b.rotation, 2))
    center = wp.dot(axis, b.origin - a.origin)
    half = scalar(0.5) * wp.abs(cosine) * b.size[2]
    low = wp.max(center - half, scalar(-0.5) * a.size[2])
    high = wp.min(center + half, scalar(0.5) * a.size[2])
    is_beside = high - low > MIN_BESIDE_LENGTH * wp.min(a.size[2], b.size[2])
    if not is_beside or scalar(1.0) - cosine * cosine > MAX_BESIDE_SINE_SQUARED:
        low = scalar(1.0)
        high = scalar(-1.0)
    return low, high


@wp.func
def segment_end(primitive: ContactPrimitive, a: ShapePose, feature: vec3, b: ShapePose):
    """Complete the primitive of the end of the part along which two segments lie beside each other.

    It is that end of the first segment which the feature names, or the end of the second before it.
    """
    axis_a = column(a.rotation, 2)
    axis_b = column(b.rotation, 2)
    cosine = wp.dot(axis_a, axis_b)
    center = wp.dot(axis_a, b.origin - a.origin)
    coordinate = wp.sign(feature[2]) * center + scalar(0.5) * wp.abs(cosine) * b.size[2]
    primitive.first_radius = a.size[0]
    if coordinate >= scalar(0.5) * a.size[2]:
        primitive = point_segment(primitive, b)
    else:
        side = wp.sign(feature[2] * cosine) * scalar(0.5)
        primitive.form = LINE_POINT
        primitive.second_point = b.origin + side * b.size[2] * axis_b
        primitive.second_size_derivative = vec3(scalar(0.0), scalar(0.0), side)
        primitive.first_point = a.origin + wp.dot(axis_a, primitive.second_point - a.origin) * axis_a
        primitive.first_size_derivative = zero3()
        primitive.first_axis = axis_a
        primitive.second_radius = b.size[0]
        primitive = set_normal_from_points(primitive)
    low, high = parallel_interval(a, b)
    if low > high:
        primitive.separation = ABSENT_SEPARATION
    return primitive


@wp.func
def point_box(primitive: ContactPrimitive, b: ShapePose):
    """Complete the primitive of a sphere's center and a box: closest to a face, edge or corner; inside, to a face."""
    local = transpose_product(b.rotation, primitive.first_point - b.origin)
    half = scalar(0.5) * b.size
    nearest = local
    scale = zero3()
    axes_outside = wp.int32(0)
    free_axis = wp.int32(0)  # an axis along which the point is inside the box
    nearest_face = wp.int32(0)
    for k in range(3):
        if wp.abs(local[k]) > half[k]:
            nearest[k] = wp.sign(local[k]) * half[k]
            scale[k] = wp.sign(local[k]) * scalar(0.5)
            axes_outside += 1
        else:
            free_axis = k
        if wp.abs(local[k]) - half[k] > wp.abs(local[nearest_face]) - half[nearest_face]:
            nearest_face = k
    primitive.second_size_derivative = scale
    primitive.second_point = b.origin + b.rotation * nearest
    primitive.form = POINTS
    primitive.second_axis = column(b.rotation, free_axis)
    if axes_outside == 2:
        primitive.form = POINT_LINE
    if axes_outside > 1:
        primitive = set_normal_from_points(primitive)
    else:
        primitive = box_face(primitive, b.rotation, local, half, nearest_face)
    return primitive


@wp.func
def box_face(primitive: ContactPrimitive, rotation: mat33, local: vec3, half: vec3, k: int):
    """Complete the primitive of a point and face k of a box, on the side of the point."""
    side = wp.sign(local[k])
    height = wp.abs(local[k]) - half[k]
    primitive.form = FACE
    primitive.normal = side * column(rotation, k)
    primitive.second_point = primitive.first_point - height * primitive.normal
    primitive.second_size_derivative = zero3()
    primitive.second_size_derivative[k] = scalar(0.5) * side
    primitive.separation = height - primitive.first_radius
    return primitive


@wp.func
def lowest_direction(axis: vec3, normal: vec3, rotation: mat33):
    """Return the radial direction of a circle that points most against a normal, or a fixed one if it is level."""
    down = wp.dot(axis, normal) * axis - normal
    length = wp.length(down)
    direction = column(rotation, 0)
    if length > MIN_RIM_SINE:
        direction = down / length
    return direction


@wp.func
def rim_plane(primitive: ContactPrimitive, a: ShapePose, corner: vec3, b: ShapePose):
    """Complete the primitive of a point on the rim of a cylinder and a plane.

    The corner has cosine and sine of the angle from the lowest point, and the end of the cylinder.
    """
    axis = column(a.rotation, 2)
    normal = column(b.rotation, 2)
    lowest = lowest_direction(axis, normal, a.rotation)
    radial = corner[0] * lowest + corner[1] * wp.cross(axis, lowest)
    primitive.first_point = a.origin + corner[2] * a.size[2] * axis + a.size[0] * radial
    primitive.first_axis = axis
    primitive.first_size_derivative = vec3(scalar(0.0), scalar(0.0), corner[2])
    primitive.second_axis = radial
    primitive.rim = vec3(corner[0], corner[1], a.size[0])
    primitive = point_plane(primitive, b)
    primitive.form = RIM
    return primitive


@wp.func(inline=False)
def closest_points(
    kind: int,
    rotation_a: mat33,
    origin_a: vec3,
    size_a: vec3,
    feature_a: vec3,
    rotation_b: mat33,
    origin_b: vec3,
    size_b: vec3,
):
    """Return the primitive of a pair of shapes from their world frames, sizes and the feature of the first.

    A feature is a point as a share of the sizes of its shape. Poses are put together here: a processor waits for a
    struct that is read as a whole after its parts were written.
    """
    a = ShapePose(rotation_a, origin_a, size_a)
    b = ShapePose(rotation_b, origin_b, size_b)
    primitive = ContactPrimitive()
    primitive.first_point = a.origin + a.rotation * elementwise_product(feature_a, a.size)
    primitive.first_size_derivative = feature_a
    if kind == POINT_PLANE or kind == POINT_POINT or kind == POINT_SEGMENT or kind == POINT_BOX:
        primitive.first_radius = a.size[0]
    if kind == POINT_PLANE or kind == CORNER_PLANE:
        return point_plane(primitive, b)
    if kind == POINT_POINT:
        primitive.second_point = b.origin
        primitive.second_radius = b.size[0]
        return set_normal_from_points(primitive)
    if kind == POINT_SEGMENT:
        return point_segment(primitive, b)
    if kind == SEGMENT_SEGMENT:
        primitive.first_size_derivative = zero3()
        return segment_segment(primitive, a, b)
    if kind == SEGMENT_END:
        return segment_end(primitive, a, feature_a, b)
    if kind == POINT_BOX:
        return point_box(primitive, b)
    if kind == RIM_PLANE:
        return rim_plane(primitive, a, feature_a, b)
    if kind == POINT_ELLIPSOID:
        primitive.first_radius = a.size[0]
        return point_ellipsoid(primitive, b)
    if kind == POINT_CYLINDER:
        primitive.first_radius = a.size[0]
        return point_cylinder(primitive, b)
    if kind == SEGMENT_CYLINDER:
        return segment_cylinder(primitive, a, b)
    if kind == ELLIPSOID_PLANE:
        return ellipsoid_plane(primitive, a, b)
    # Two points of a tendon or a rod; a tendon pulls at the distance given by its margin.
    primitive.second_point = b.origin
    primitive = set_normal_from_points(primitive)
    if kind == STRING:
        primitive.normal = -primitive.normal
        primitive.separation = -primitive.separation
    return primitive
