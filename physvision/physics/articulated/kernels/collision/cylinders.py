"""Closest points of a solid cylinder to a point and to a segment.

Outside, the closest point lies on the side, on a cap, or on a rim; a point inside belongs to the nearer of side and
cap. The side is a line with a radius about each of its points. A rim of radius ρ about the axis a has, for a normal n,
its point at ρ w/|w|, w = n − a (a · n), which moves with n by H = ρ/|w| τ τᵀ, τ = a × w/|w|.

A segment that reaches inside leaves along the normal of the largest separation: that of a cap, one across the axis of
the cylinder, or one across the segment, which then leaves over a rim. It is never that of an end and a rim: their
differences are an edge of the set of all differences of two points, which from inside is not the nearest of its border.
"""

import math

import warp as wp

from ..precision import scalar, vec3
from ..spatial.root_finding import make_bracket, narrow_bracket, secant_estimate
from ..spatial.vectors import column, zero3
from .contact_primitives import FACE, LINE_SMOOTH, LINES, MIN_LENGTH, POINT_LINE, SMOOTH, ContactPrimitive, ShapePose
from .settings import COLLISION

SURFACE_TOLERANCE = wp.constant(scalar(COLLISION.surface_tolerance))
MAX_ITERATIONS = wp.constant(COLLISION.max_surface_iterations)
MIN_IMPROVEMENT = wp.constant(scalar(COLLISION.min_improvement))
MIN_TILT_SINE = wp.constant(scalar(COLLISION.min_tilt_sine))
MAX_SECANTS = wp.constant(COLLISION.max_secants)
RIM_ANGLES = wp.constant(COLLISION.rim_angles)
HALF_PI = wp.constant(scalar(0.5 * math.pi))
RIM_SPACING = wp.constant(scalar(math.pi / COLLISION.rim_angles))


@wp.func
def outward_direction(radial: vec3, b: ShapePose):
    """Return the direction of an offset across the axis; of one that is nothing but rounding, a fixed one."""
    axis = column(b.rotation, 2)
    outward = wp.normalize(radial)
    outward = outward - wp.dot(outward, axis) * axis
    if wp.length_sq(outward) < scalar(0.5):
        outward = column(b.rotation, 0)
    return wp.normalize(outward)


@wp.func
def point_cylinder(primitive: ContactPrimitive, b: ShapePose):
    """Complete a primitive whose `first_point` is known and whose second shape is a cylinder."""
    axis = column(b.rotation, 2)
    offset = primitive.first_point - b.origin
    along = wp.dot(axis, offset)
    radial = offset - along * axis
    length = wp.length(radial)
    outward = outward_direction(radial, b)
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
def leave_through_cap(primitive: ContactPrimitive, a: ShapePose, b: ShapePose):
    """Return the primitive of the lowest end of a segment and the nearer cap of a cylinder."""
    axis = column(b.rotation, 2)
    line = column(a.rotation, 2)
    side = scalar(0.5) * wp.sign(wp.dot(axis, a.origin - b.origin))
    end = -side * wp.sign(wp.dot(axis, line))
    primitive.form = FACE
    primitive.normal = scalar(2.0) * side * axis
    primitive.first_point = a.origin + end * a.size[2] * line
    primitive.first_size_derivative = vec3(scalar(0.0), scalar(0.0), end)
    height = wp.dot(primitive.normal, primitive.first_point - b.origin) - scalar(0.5) * b.size[2]
    primitive.second_point = primitive.first_point - height * primitive.normal
    primitive.second_size_derivative = vec3(scalar(0.0), scalar(0.0), side)
    primitive.separation = height - a.size[0]
    return primitive


@wp.func
def leave_through_side(primitive: ContactPrimitive, a: ShapePose, b: ShapePose):
    """Return the primitive of a segment and the side of a cylinder, across whose axis both are seen."""
    axis = column(b.rotation, 2)
    line = column(a.rotation, 2)
    offset = a.origin - b.origin
    offset = offset - wp.dot(offset, axis) * axis
    across = line - wp.dot(line, axis) * axis
    squared_sine = wp.length_sq(across)
    half = scalar(0.5) * a.size[2]
    s = scalar(0.0)
    if squared_sine > MIN_TILT_SINE * MIN_TILT_SINE:
        s = wp.clamp(-wp.dot(offset, across) / squared_sine, -half, half)
    radial = offset + s * across
    outward = outward_direction(radial, b)
    primitive.form = POINT_LINE
    primitive.first_size_derivative = vec3(scalar(0.0), scalar(0.0), s / wp.max(a.size[2], MIN_LENGTH))
    if squared_sine > MIN_TILT_SINE * MIN_TILT_SINE and wp.abs(s) < half:
        primitive.form = LINES
        primitive.first_size_derivative = zero3()
        outward = wp.normalize(wp.cross(axis, line))
        outward = wp.sign(wp.dot(outward, radial)) * outward
    primitive.normal = outward
    primitive.first_point = a.origin + s * line
    primitive.second_point = b.origin + wp.dot(axis, primitive.first_point - b.origin) * axis
    primitive.second_radius = b.size[0]
    primitive.separation = wp.length(radial) - b.size[0] - a.size[0]
    return primitive


@wp.func
def rim_separation(b: ShapePose, axis: vec3, origin: vec3, normal: vec3, turned: vec3):
    """Return the separation of a line and a rim along a normal across the line, and its derivative.

    Args:
        b: Cylinder.
        axis: Axis of the cylinder, toward the rim.
        origin: Point of the line.
        normal: Normal.
        turned: Derivative of the normal.
    """
    radial = wp.normalize(normal - wp.dot(normal, axis) * axis)
    radial = radial - wp.dot(radial, axis) * axis  # of a normal along the axis there is nothing but rounding
    rim = b.origin + scalar(0.5) * b.size[2] * axis + b.size[0] * radial
    return wp.dot(normal, origin - rim), wp.dot(turned, origin - rim), rim


@wp.func
def leave_over_rim(primitive: ContactPrimitive, a: ShapePose, b: ShapePose, side: scalar):
    """Return the primitive of a segment and a rim, along the normal across the segment of the largest separation."""
    line = column(a.rotation, 2)
    axis = side * column(b.rotation, 2)
    upward = wp.normalize(axis - wp.dot(axis, line) * line)
    across = wp.cross(line, upward)
    best = scalar(-1.0e30)
    angle = scalar(0.0)
    for k in range(RIM_ANGLES):
        candidate = (scalar(k) + scalar(0.5)) * RIM_SPACING - HALF_PI
        normal = wp.cos(candidate) * upward + wp.sin(candidate) * across
        separation, _slope, _rim = rim_separation(b, axis, a.origin, normal, across)
        if separation > best:
            best = separation
            angle = candidate
    low = wp.max(angle - RIM_SPACING, -HALF_PI)
    high = wp.min(angle + RIM_SPACING, HALF_PI)
    for _step in range(MAX_ITERATIONS):
        angle = scalar(0.5) * (low + high)
        normal = wp.cos(angle) * upward + wp.sin(angle) * across
        turned = wp.cos(angle) * across - wp.sin(angle) * upward
        _separation, slope, _rim = rim_separation(b, axis, a.origin, normal, turned)
        if slope > scalar(0.0):
            low = angle
        else:
            high = angle
    normal = wp.cos(angle) * upward + wp.sin(angle) * across
    separation, _slope, rim = rim_separation(b, axis, a.origin, normal, across)
    tangent = wp.cross(axis, normal)
    sine = wp.max(wp.length(tangent), MIN_TILT_SINE)
    primitive.form = LINE_SMOOTH
    primitive.normal = normal
    primitive.first_point = a.origin + wp.dot(line, rim - a.origin) * line
    primitive.second_point = rim
    primitive.second_curvature = b.size[0] / (sine * sine * sine) * wp.outer(tangent, tangent)
    primitive.second_size_derivative = vec3(scalar(0.0), scalar(0.0), scalar(0.5) * side)
    primitive.second_radius_derivative = wp.normalize(normal - wp.dot(normal, axis) * axis)
    primitive.separation = separation - a.size[0]
    return primitive


@wp.func
def leave_cylinder(primitive: ContactPrimitive, a: ShapePose, b: ShapePose):
    """Return the primitive of least penetration of a segment that reaches into a cylinder."""
    primitive.first_size_derivative = zero3()
    primitive.second_size_derivative = zero3()
    primitive.second_radius = scalar(0.0)
    primitive.second_radius_derivative = zero3()
    best = leave_through_cap(primitive, a, b)
    min_improvement = MIN_IMPROVEMENT * (a.size[2] + b.size[0])
    candidate = leave_through_side(primitive, a, b)
    if candidate.separation > best.separation + min_improvement:
        best = candidate
    if wp.length(wp.cross(column(a.rotation, 2), column(b.rotation, 2))) > MIN_TILT_SINE:
        for k in range(2):
            candidate = leave_over_rim(primitive, a, b, scalar(1 - 2 * k))
            if candidate.separation > best.separation + min_improvement:
                best = candidate
    return best


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
        for step in range(MAX_ITERATIONS):
            if wp.abs(value) > SURFACE_TOLERANCE and interval.high - interval.low > SURFACE_TOLERANCE * a.size[2]:
                s = secant_estimate(interval)
                if step >= MAX_SECANTS:
                    s = scalar(0.5) * (interval.low + interval.high)
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
    if primitive.separation < -a.size[0]:
        primitive = leave_cylinder(primitive, a, b)
    return primitive
