"""Forms of two convex shapes, made of what each has where they are closest: a point, a line or a face.

A point is a corner, or the one point of something round with that normal; `curve` says how it moves with the normal. A
line is an edge, or the axis of a cylinder or capsule with its radius. Where flat sides lie on each other the point is
one of the body that the simplex found within both.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import zero3

from .contact_primitives import (
    LEAST,
    LINE_SMOOTH,
    LINES,
    SMOOTH,
    SMOOTH_FACE,
    Closest,
    across_solve,
    axis_of,
)
from .ellipsoids import curvature, share_of
from .support_shapes import (
    CYLINDER,
    ELLIPSOID,
    POLYTOPE,
    UPRIGHT,
    Hulls,
    Solid,
    farthest,
    share_at,
)

ROUNDING = wp.constant(scalar(1.0e-15 if DOUBLE else 1.0e-6))
LEVEL = wp.constant(scalar(1.0e-9 if DOUBLE else 1.0e-4))  # of the size, by which a point may be higher
TURNS = wp.constant(50)


@wp.struct
class Place:
    """A point of a shape's core, or a line through it."""

    point: vec3
    radius: scalar  # about it
    share: vec3
    rim: vec3  # how it moves as the radius of a cylinder grows
    curve: mat33
    is_line: int
    axis: vec3


@wp.func
def material(s: Solid, point: vec3):
    """A point of the shape's core as it is."""
    place = Place()
    place.point = point
    place.radius = s.radius
    place.share = share_at(s, point)
    return place


@wp.func
def on_axis(s: Solid, point: vec3):
    """The point of a cylinder's axis beside another one, with the cylinder's radius about it."""
    axis = axis_of(s.turn, 2)
    half = scalar(0.5) * s.size[2]
    along = wp.clamp(wp.dot(axis, point - s.origin), -half, half)
    place = material(s, s.origin + along * axis)
    place.radius = s.size[0]
    return place


@wp.func
def rim_radius_of(s: Solid, point: vec3):
    """How a point of a cylinder's cap moves as its radius grows."""
    axis = axis_of(s.turn, 2)
    away = point - s.origin
    return (away - wp.dot(away, axis) * axis) / s.size[0]


@wp.func(inline=False)
def place_towards(s: Solid, hulls: Hulls, direction: vec3, witness: vec3):
    """The point of the shape that is farthest along a direction; of a flat side the witness, if that is as far."""
    found = farthest(s, hulls, direction)
    if s.kind == ELLIPSOID:
        place = material(s, found.point)
        place.share = share_of(s.turn, s.size, found.point - s.origin)
        place.curve = curvature(s.turn, s.size, direction)
        return place
    if s.kind == CYLINDER:
        axis = axis_of(s.turn, 2)
        cosine = wp.dot(axis, direction)
        across = direction - cosine * axis
        sine = wp.length(across)
        if wp.abs(cosine) < UPRIGHT:
            return on_axis(s, witness)
        half = vec3(scalar(0.0), scalar(0.0), scalar(0.5) * wp.sign(cosine))
        if sine < UPRIGHT:
            away = witness - s.origin
            away = away - wp.dot(away, axis) * axis
            place = material(s, s.origin + away + half[2] * s.size[2] * axis)
            place.rim = away / s.size[0]
        else:
            place = material(s, found.point)
            round = wp.cross(axis, across) / sine
            place.rim = across / sine
            place.curve = s.size[0] / sine * wp.outer(round, round)
        place.share = half
        return place
    if wp.dot(direction, found.point - witness) < LEVEL * s.bound:
        return material(s, witness)
    return material(s, found.point)


@wp.func
def as_first(near: Closest, place: Place):
    near.first = place.point
    near.first_radius = place.radius
    near.first_share = place.share
    near.first_rim = place.rim
    near.first_curve = place.curve
    near.first_axis = place.axis
    return near


@wp.func
def as_second(near: Closest, place: Place):
    near.second = place.point
    near.second_radius = place.radius
    near.second_share = place.share
    near.second_rim = place.rim
    near.second_curve = place.curve
    near.second_axis = place.axis
    return near


@wp.func
def both_told(near: Closest, a: Solid, b: Solid, one: Place, other: Place):
    """What is left to tell once the normal and the form are known."""
    near = as_first(near, one)
    near = as_second(near, other)
    near.first_stretches = wp.int32(a.kind == POLYTOPE)
    near.second_stretches = wp.int32(b.kind == POLYTOPE)
    near.gap = wp.dot(near.normal, near.first - near.second) - near.first_radius - near.second_radius
    return near


@wp.func(inline=False)
def point_and_face(a: Solid, b: Solid, normal: vec3, place: Place, level: vec3, on_first: bool):
    """A point of one shape, and a face through `level` of the other; the face is the first shape's where `on_first`.

    The normal leads from the second shape to the first.
    """
    near = Closest()
    near.form = SMOOTH_FACE
    near.normal = normal
    foot = material(a, place.point - wp.dot(normal, place.point - level) * normal)
    foot.radius = scalar(0.0)
    if on_first:
        near.turned = 1
        if a.kind == CYLINDER:
            foot.share = vec3(scalar(0.0), scalar(0.0), wp.sign(foot.share[2]) * scalar(0.5))
        return both_told(near, a, b, foot, place)
    foot.share = share_at(b, foot.point)
    return both_told(near, a, b, place, foot)


@wp.func
def two_lines(a: Solid, b: Solid, normal: vec3, one: Place, other: Place):
    """Two lines, and the normal across both; their points are where they are closest."""
    near = Closest()
    near.form = LINES
    near.normal = normal
    cosine = wp.dot(one.axis, other.axis)
    squared_sine = scalar(1.0) - cosine * cosine
    away = one.point - other.point
    one.point = one.point - wp.dot(away, one.axis - cosine * other.axis) / squared_sine * one.axis
    other.point = other.point + wp.dot(away, other.axis - cosine * one.axis) / squared_sine * other.axis
    one.share = share_at(a, one.point)
    other.share = share_at(b, other.point)
    return both_told(near, a, b, one, other)


@wp.func
def round_or_corner(
    a: Solid, b: Solid, hulls: Hulls, normal: vec3, one: Place, other: Place, first: vec3, second: vec3
):
    """Two points, or a line and a point, by Newton's method on the sphere of normals, or on the circle across a line.

    What is no line has its point farthest along the normal; see `ellipsoids.ellipsoid_ellipsoid` for the slope.
    """
    near = Closest()
    n = normal
    moved = scalar(1.0)
    left = wp.int32(TURNS)
    while left > 0 and moved > ROUNDING:
        left -= 1
        e = zero3()
        if one.is_line != 0:
            n = wp.normalize(n - wp.dot(n, one.axis) * one.axis)
            e = wp.cross(n, one.axis)
        else:
            one = place_towards(a, hulls, -n, first)
        if other.is_line != 0:
            n = wp.normalize(n - wp.dot(n, other.axis) * other.axis)
            e = wp.cross(n, other.axis)
        else:
            other = place_towards(b, hulls, n, second)
        between = one.point - other.point
        apart = wp.dot(n, between)
        slope = between - apart * n
        curve = one.curve + other.curve
        step = zero3()
        if one.is_line + other.is_line == 0:
            step = across_solve(curve, apart, n, slope)
        else:
            under = wp.dot(e, curve * e) + apart
            if wp.abs(under) < LEAST:
                under = LEAST
            step = wp.dot(slope, e) / under * e
        moved = wp.length(step)
        n = wp.normalize(n + wp.min(scalar(1.0), scalar(0.5) / wp.max(moved, LEAST)) * step)
    near.normal = n
    near.form = SMOOTH
    if one.is_line != 0:
        near.form = LINE_SMOOTH
        one.point = one.point + wp.dot(one.axis, other.point - one.point) * one.axis
        one.share = share_at(a, one.point)
    elif other.is_line != 0:
        near.form = LINE_SMOOTH
        near.turned = 1
        other.point = other.point + wp.dot(other.axis, one.point - other.point) * other.axis
        other.share = share_at(b, other.point)
    return both_told(near, a, b, one, other)
