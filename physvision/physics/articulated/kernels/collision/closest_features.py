"""Closest features of two convex shapes (points, lines or faces), and the contact primitives that they form.

A point is a corner, or the single support point of a smooth surface, whose `curvature` is its derivative with respect
to the normal. A line is an edge, or the axis of a cylinder or capsule with its radius. If two flat sides lie on each
other, many points are closest, and the feature is the witness point: the closest point that GJK's simplex ends with.
"""

import warp as wp

from ..precision import mat33, scalar, vec3
from ..spatial.vectors import column, zero3
from ..structs import HullModel
from .contact_primitives import LINE_SMOOTH, LINES, MIN_LENGTH, SMOOTH, SMOOTH_FACE, ContactPrimitive, solve_tangential
from .ellipsoids import ellipsoid_curvature
from .settings import COLLISION
from .support_shapes import CYLINDER, ELLIPSOID, MIN_TILT_SINE, POLYTOPE, ConvexShape, size_derivative, support_point

SURFACE_TOLERANCE = wp.constant(scalar(COLLISION.surface_tolerance))
MAX_WITNESS_HEIGHT = wp.constant(scalar(COLLISION.max_witness_height))
MAX_ITERATIONS = wp.constant(COLLISION.max_surface_iterations)
MAX_FLAT_SINE = wp.constant(scalar(COLLISION.max_flat_sine))


@wp.struct
class Feature:
    """Point of the core of a shape, or a line through it."""

    point: vec3
    radius: scalar  # about the point
    size_derivative: vec3  # derivative of each coordinate of the point with respect to the size along it
    radius_derivative: vec3  # derivative of the point with respect to the radius of a cylinder
    curvature: mat33
    is_line: int
    axis: vec3


@wp.func
def material_point(s: ConvexShape, point: vec3):
    """Return a point that is fixed to the core of a shape."""
    feature = Feature()
    feature.point = point
    feature.radius = s.radius
    feature.size_derivative = size_derivative(s, point)
    return feature


@wp.func
def axis_point(s: ConvexShape, point: vec3):
    """Return the point of a cylinder's axis beside a given point, with the radius of the cylinder."""
    axis = column(s.rotation, 2)
    half = scalar(0.5) * s.size[2]
    along = wp.clamp(wp.dot(axis, point - s.origin), -half, half)
    feature = material_point(s, s.origin + along * axis)
    feature.radius = s.size[0]
    return feature


@wp.func
def rim_point(s: ConvexShape, direction: vec3, end: scalar):
    """Return the farthest point of a rim of a cylinder along a direction that is not its axis; `end` is 1 or −1."""
    axis = column(s.rotation, 2)
    radial = direction - wp.dot(axis, direction) * axis
    sine = wp.length(radial)
    outward = radial / sine
    tangent = wp.cross(axis, outward)
    feature = material_point(s, s.origin + scalar(0.5) * end * s.size[2] * axis + s.size[0] * outward)
    feature.radius_derivative = outward
    feature.curvature = s.size[0] / sine * wp.outer(tangent, tangent)
    feature.size_derivative = vec3(scalar(0.0), scalar(0.0), scalar(0.5) * end)
    return feature


@wp.func
def radius_derivative(s: ConvexShape, point: vec3):
    """Return the derivative of a point on the cap of a cylinder with respect to the radius."""
    axis = column(s.rotation, 2)
    offset = point - s.origin
    return (offset - wp.dot(offset, axis) * axis) / s.size[0]


@wp.func(inline=False)
def support_feature(s: ConvexShape, hulls: HullModel, direction: vec3, witness: vec3):
    """Return the support point of a shape along a direction; on a flat side the witness, if it is as far."""
    support = support_point(s, hulls, direction)
    if s.kind == ELLIPSOID:
        feature = material_point(s, support.point)
        feature.curvature = ellipsoid_curvature(s.rotation, s.size, direction)
        return feature
    if s.kind == CYLINDER:
        axis = column(s.rotation, 2)
        cosine = wp.dot(axis, direction)
        radial = direction - cosine * axis
        sine = wp.length(radial)
        if wp.abs(cosine) < MIN_TILT_SINE:
            return axis_point(s, witness)
        if sine >= MIN_TILT_SINE:
            return rim_point(s, direction, wp.sign(cosine))
        end_derivative = vec3(scalar(0.0), scalar(0.0), scalar(0.5) * wp.sign(cosine))
        radial_offset = witness - s.origin
        radial_offset = radial_offset - wp.dot(radial_offset, axis) * axis
        feature = material_point(s, s.origin + radial_offset + end_derivative[2] * s.size[2] * axis)
        feature.radius_derivative = radial_offset / s.size[0]
        feature.size_derivative = end_derivative
        return feature
    if wp.dot(direction, support.point - witness) < MAX_WITNESS_HEIGHT * s.bounding_radius:
        return material_point(s, witness)
    return material_point(s, support.point)


@wp.func
def set_first_feature(primitive: ContactPrimitive, feature: Feature):
    """Set the first feature of a primitive."""
    primitive.first_point = feature.point
    primitive.first_radius = feature.radius
    primitive.first_size_derivative = feature.size_derivative
    primitive.first_radius_derivative = feature.radius_derivative
    primitive.first_curvature = feature.curvature
    primitive.first_axis = feature.axis
    return primitive


@wp.func
def set_second_feature(primitive: ContactPrimitive, feature: Feature):
    """Set the second feature of a primitive."""
    primitive.second_point = feature.point
    primitive.second_radius = feature.radius
    primitive.second_size_derivative = feature.size_derivative
    primitive.second_radius_derivative = feature.radius_derivative
    primitive.second_curvature = feature.curvature
    primitive.second_axis = feature.axis
    return primitive


@wp.func
def finish_primitive(primitive: ContactPrimitive, a: ConvexShape, b: ConvexShape, first: Feature, second: Feature):
    """Complete a primitive that has its form and normal: with its features and its separation."""
    primitive = set_first_feature(primitive, first)
    primitive = set_second_feature(primitive, second)
    primitive.first_is_scaled = wp.int32(a.kind == POLYTOPE)
    primitive.second_is_scaled = wp.int32(b.kind == POLYTOPE)
    primitive.separation = (
        wp.dot(primitive.normal, primitive.first_point - primitive.second_point)
        - primitive.first_radius
        - primitive.second_radius
    )
    return primitive


@wp.func(inline=False)
def point_face_primitive(
    a: ConvexShape, b: ConvexShape, normal: vec3, feature: Feature, face_point: vec3, on_first: bool
):
    """Return the primitive of a point of one shape and a face of the other's core, through `face_point`.

    The face belongs to the first shape if `on_first`. The normal points from the second shape to the first.
    """
    primitive = ContactPrimitive()
    primitive.form = SMOOTH_FACE
    primitive.normal = normal
    foot = material_point(a, feature.point - wp.dot(normal, feature.point - face_point) * normal)
    foot.radius = wp.where(on_first, a.radius, b.radius)
    if on_first:
        primitive.is_swapped = 1
        if a.kind == CYLINDER:
            foot.size_derivative = vec3(scalar(0.0), scalar(0.0), wp.sign(foot.size_derivative[2]) * scalar(0.5))
        return finish_primitive(primitive, a, b, foot, feature)
    foot.size_derivative = size_derivative(b, foot.point)
    return finish_primitive(primitive, a, b, feature, foot)


@wp.func
def line_line_primitive(a: ConvexShape, b: ConvexShape, normal: vec3, first: Feature, second: Feature):
    """Return the primitive of two lines, which have the closest points and the normal across both."""
    primitive = ContactPrimitive()
    primitive.form = LINES
    primitive.normal = normal
    cosine = wp.dot(first.axis, second.axis)
    squared_sine = scalar(1.0) - cosine * cosine
    difference = first.point - second.point
    first.point = first.point - wp.dot(difference, first.axis - cosine * second.axis) / squared_sine * first.axis
    second.point = second.point + wp.dot(difference, second.axis - cosine * first.axis) / squared_sine * second.axis
    first.size_derivative = size_derivative(a, first.point)
    second.size_derivative = size_derivative(b, second.point)
    return finish_primitive(primitive, a, b, first, second)


@wp.func
def is_flat_contact(first_normal: vec3, second_normal: vec3):
    """Return True if two flat sides with these outward normals lie on each other."""
    sine = wp.length(wp.cross(first_normal, second_normal))
    return sine < MAX_FLAT_SINE and wp.dot(first_normal, second_normal) < scalar(0.0)


@wp.func
def share_side_normal(primitive: ContactPrimitive, side_normal: vec3):
    """Return a primitive of flat contact with the normal of the second shape's side.

    Its points are corners of either side and crossings of their borders, and their own normals differ by the tilt of
    the sides. Which of the points bear the load is undetermined, so that with several normals the force along the
    sides would be, too.
    """
    if primitive.form == LINES or primitive.form == SMOOTH_FACE:
        primitive.normal = side_normal
        primitive.is_flat = 1
        primitive.separation = (
            wp.dot(side_normal, primitive.first_point - primitive.second_point)
            - primitive.first_radius
            - primitive.second_radius
        )
    return primitive


@wp.func
def smooth_primitive(
    a: ConvexShape,
    b: ConvexShape,
    hulls: HullModel,
    normal: vec3,
    first: Feature,
    second: Feature,
    first_witness: vec3,
    second_witness: vec3,
):
    """Return the primitive of two points, or of a line and a point.

    Newton's method runs on the sphere of normals, or on the circle perpendicular to a line. A feature that is no line
    is the support point x along the normal, on a flat side the witness point. f(n) = n · (x_a − x_b) has the gradient
    x_a − x_b across n, and the curvature −(H_a + H_b) − f with the derivatives H of the support points.
    """
    primitive = ContactPrimitive()
    n = normal
    change = scalar(1.0)
    iterations = wp.int32(MAX_ITERATIONS)
    while iterations > 0 and change > SURFACE_TOLERANCE:
        iterations -= 1
        e = zero3()
        if first.is_line != 0:
            n = wp.normalize(n - wp.dot(n, first.axis) * first.axis)
            e = wp.cross(n, first.axis)
        else:
            first = support_feature(a, hulls, -n, first_witness)
        if second.is_line != 0:
            n = wp.normalize(n - wp.dot(n, second.axis) * second.axis)
            e = wp.cross(n, second.axis)
        else:
            second = support_feature(b, hulls, n, second_witness)
        difference = first.point - second.point
        distance = wp.dot(n, difference)
        slope = difference - distance * n
        curvature = first.curvature + second.curvature
        step = zero3()
        if first.is_line + second.is_line == 0:
            step = solve_tangential(curvature, distance, n, slope)
        else:
            denominator = wp.dot(e, curvature * e) + distance
            if wp.abs(denominator) < MIN_LENGTH:
                denominator = MIN_LENGTH
            step = wp.dot(slope, e) / denominator * e
        change = wp.length(step)
        n = wp.normalize(n + wp.min(scalar(1.0), scalar(0.5) / wp.max(change, MIN_LENGTH)) * step)
    primitive.normal = n
    primitive.form = SMOOTH
    if first.is_line != 0:
        primitive.form = LINE_SMOOTH
        first.point = first.point + wp.dot(first.axis, second.point - first.point) * first.axis
        first.size_derivative = size_derivative(a, first.point)
    elif second.is_line != 0:
        primitive.form = LINE_SMOOTH
        primitive.is_swapped = 1
        second.point = second.point + wp.dot(second.axis, first.point - second.point) * second.axis
        second.size_derivative = size_derivative(b, second.point)
    return finish_primitive(primitive, a, b, first, second)
