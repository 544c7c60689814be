"""Closest points of a solid cylinder to a point and to a segment.

Outside, the closest point lies on the side, on a cap, or on a rim; a point inside belongs to the nearer of side and
cap. The side is a line with a radius about each of its points. A rim of radius ρ about the axis a has, for a normal n,
its point at ρ w/|w|, w = n − a (a · n), which moves with n by H = ρ/|w| τ τᵀ, τ = a × w/|w|.
"""

import warp as wp

from ..precision import scalar, vec3
from ..spatial.root_finding import make_bracket, narrow_bracket, secant_estimate
from ..spatial.vectors import column, zero3
from .contact_primitives import FACE, LINE_SMOOTH, LINES, MIN_LENGTH, POINT_LINE, SMOOTH, ContactPrimitive, ShapePose
from .settings import COLLISION

SURFACE_TOLERANCE = wp.constant(scalar(COLLISION.surface_tolerance))
MAX_ITERATIONS = wp.constant(COLLISION.max_surface_iterations)


@wp.func
def point_cylinder(primitive: ContactPrimitive, b: ShapePose):
    """Complete a primitive whose `first_point` is known and whose second shape is a cylinder."""
    axis = column(b.rotation, 2)
    offset = primitive.first_point - b.origin
    along = wp.dot(axis, offset)
    radial = offset - along * axis
    length = wp.length(radial)
    outward = column(b.rotation, 0)
    if length > MIN_LENGTH:
        outward = radial / length
    end = wp.sign(along)
    axial_distance = wp.abs(along) - scalar(0.5) * b.size[2]
    radial_distance = length - b.size[0]
    primitive.second_axis = axis
    primitive.second_size_derivative = zero3()
    primitive.second_radius = scalar(0.0)
    primitive.second_radius_derivative = zero3()
    end_derivative = vec3(scalar(0.0), scalar(0.0), scalar(0.5) * end)
    if axial_distance > scalar(0.0) and radial_distance > scalar(0.0):
        primitive.form = SMOOTH
        primitive.second_point = b.origin + scalar(0.5) * b.size[2] * end * axis + b.size[0] * outward
        difference = primitive.first_point - primitive.second_point
        primitive.normal = difference / wp.length(difference)
        radial_normal = primitive.normal - wp.dot(primitive.normal, axis) * axis
        tangent = wp.cross(axis, outward)
        primitive.second_curvature = (
            b.size[0] / wp.max(wp.length(radial_normal), MIN_LENGTH) * wp.outer(tangent, tangent)
        )
        primitive.second_size_derivative = end_derivative
        primitive.second_radius_derivative = outward
        primitive.separation = wp.length(difference) - primitive.first_radius
    elif axial_distance > radial_distance:
        primitive.form = FACE
        primitive.normal = end * axis
        primitive.second_point = primitive.first_point - axial_distance * primitive.normal
        primitive.second_size_derivative = end_derivative
        primitive.separation = axial_distance - primitive.first_radius
    else:
        primitive.form = POINT_LINE
        primitive.normal = outward
        primitive.second_point = b.origin + along * axis
        primitive.second_radius = b.size[0]
        primitive.separation = radial_distance - primitive.first_radius
    return primitive


@wp.func
def cylinder_distance_slope(primitive: ContactPrimitive, s: scalar, center: vec3, axis: vec3, b: ShapePose):
    """Return the derivative of the distance to the cylinder along a line, at s; outside it never falls with s."""
    primitive.first_point = center + s * axis
    result = point_cylinder(primitive, b)
    return wp.dot(axis, result.normal)


@wp.func
def segment_cylinder(primitive: ContactPrimitive, a: ShapePose, b: ShapePose):
    """Complete the primitive of a capsule and a cylinder, by a root of the slope of the distance along the axis."""
    axis = column(a.rotation, 2)
    low = scalar(-0.5) * a.size[2]
    high = scalar(0.5) * a.size[2]
    value_low = cylinder_distance_slope(primitive, low, a.origin, axis, b)
    value_high = cylinder_distance_slope(primitive, high, a.origin, axis, b)
    s = low
    is_inside = wp.int32(0)
    if value_high <= scalar(0.0):
        s = high
    elif value_low < scalar(0.0):
        is_inside = 1
        interval = make_bracket(low, high, value_low, value_high)
        value = scalar(1.0)
        for _step in range(MAX_ITERATIONS):
            if wp.abs(value) > SURFACE_TOLERANCE and interval.high - interval.low > SURFACE_TOLERANCE * a.size[2]:
                s = secant_estimate(interval)
                value = cylinder_distance_slope(primitive, s, a.origin, axis, b)
                interval = narrow_bracket(interval, s, value, value < scalar(0.0))
    primitive.first_point = a.origin + s * axis
    primitive.first_radius = a.size[0]
    primitive = point_cylinder(primitive, b)
    primitive.first_axis = axis
    primitive.first_size_derivative = zero3()
    if is_inside != 0:
        if primitive.form == POINT_LINE:
            primitive.form = LINES
        elif primitive.form == SMOOTH:
            primitive.form = LINE_SMOOTH
    else:
        primitive.first_size_derivative = vec3(scalar(0.0), scalar(0.0), wp.sign(s) * scalar(0.5))
    return primitive
