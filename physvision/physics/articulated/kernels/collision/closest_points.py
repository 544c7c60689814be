"""Where two shapes are closest, what their surfaces are apart, and along which normal.

Each shape is a core (a point, a line, the face of a half space) with a ball of some radius about every point of it. A
pair has a kind, which says what the cores are; where it finds itself on an end, an edge or a face it comes down to one
of a few smooth forms, and `closest_backward` differentiates those.

Pairs of shapes with flat sides, but of spheres with boxes and of all shapes with planes, are `convex`.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import transposed, zero3

from .contact_primitives import (
    FACE,
    LEAST,
    LINE_POINT,
    LINES,
    PARALLEL,
    POINT_LINE,
    POINTS,
    RIM,
    Closest,
    axis_of,
    scaled,
)
from .cylinders import segment_cylinder, to_cylinder
from .ellipsoids import (
    ellipsoid_ellipsoid,
    ellipsoid_plane,
    segment_ellipsoid,
    to_ellipsoid,
)

# Kinds of pairs, as `contact.pairs` lists them; the first shape of a pair is named first.
POINT_PLANE = wp.constant(0)
POINT_POINT = wp.constant(1)
POINT_SEGMENT = wp.constant(2)
SEGMENT_SEGMENT = wp.constant(3)
POINT_BOX = wp.constant(4)
RIM_PLANE = wp.constant(5)
CORNER_PLANE = wp.constant(6)
POINT_ELLIPSOID = wp.constant(7)
SEGMENT_ELLIPSOID = wp.constant(8)
ELLIPSOID_ELLIPSOID = wp.constant(9)
ELLIPSOID_PLANE = wp.constant(10)
POINT_CYLINDER = wp.constant(11)
SEGMENT_CYLINDER = wp.constant(12)
STRING = wp.constant(13)
STRUT = wp.constant(14)
CONVEX = wp.constant(15)  # see `convex`

UPRIGHT = wp.constant(scalar(1.0e-6 if DOUBLE else 1.0e-4))  # sine below which a circle has no lowest point


@wp.func
def between(near: Closest):
    """Normal and gap from the two closest points."""
    away = near.first - near.second
    length = wp.length(away)
    near.normal = vec3(scalar(0.0), scalar(0.0), scalar(1.0))
    if length > LEAST:
        near.normal = away / length
    near.gap = length - near.first_radius - near.second_radius
    return near


@wp.func
def point_plane(near: Closest, turn: mat33, origin: vec3):
    near.form = FACE
    near.normal = axis_of(turn, 2)
    height = wp.dot(near.normal, near.first - origin)
    near.second = near.first - height * near.normal
    near.gap = height - near.first_radius
    return near


@wp.func
def point_segment(near: Closest, turn: mat33, origin: vec3, size: vec3):
    axis = axis_of(turn, 2)
    along = wp.dot(axis, near.first - origin)
    half = scalar(0.5) * size[2]
    near.form = POINT_LINE
    if wp.abs(along) >= half:
        near.form = POINTS
        near.second_share = vec3(scalar(0.0), scalar(0.0), wp.sign(along) * scalar(0.5))
        along = wp.sign(along) * half
    near.second = origin + along * axis
    near.second_axis = axis
    near.second_radius = size[0]
    return between(near)


@wp.func
def on_segment(point: vec3, origin: vec3, axis: vec3, half: scalar):
    """Where along a segment it is closest to a point."""
    return wp.clamp(wp.dot(axis, point - origin), -half, half)


@wp.func
def segment_segment(
    near: Closest, turn_a: mat33, origin_a: vec3, size_a: vec3, turn_b: mat33, origin_b: vec3, size_b: vec3
):
    axis_a = axis_of(turn_a, 2)
    axis_b = axis_of(turn_b, 2)
    half_a = scalar(0.5) * size_a[2]
    half_b = scalar(0.5) * size_b[2]
    cosine = wp.dot(axis_a, axis_b)
    squared_sine = scalar(1.0) - cosine * cosine
    away = origin_a - origin_b
    s = on_segment(origin_b, origin_a, axis_a, half_a)
    if squared_sine > PARALLEL:
        s = wp.clamp(-wp.dot(away, axis_a - cosine * axis_b) / squared_sine, -half_a, half_a)
    t = on_segment(origin_a + s * axis_a, origin_b, axis_b, half_b)
    s = on_segment(origin_b + t * axis_b, origin_a, axis_a, half_a)
    inside_a = wp.abs(s) < half_a and squared_sine > PARALLEL
    inside_b = wp.abs(t) < half_b
    near.form = POINTS
    if inside_a and inside_b:
        near.form = LINES
    elif inside_a:
        near.form = LINE_POINT
    elif inside_b:
        near.form = POINT_LINE
    if wp.abs(s) >= half_a:
        near.first_share = vec3(scalar(0.0), scalar(0.0), wp.sign(s) * scalar(0.5))
    if not inside_b:
        near.second_share = vec3(scalar(0.0), scalar(0.0), wp.sign(t) * scalar(0.5))
    near.first = origin_a + s * axis_a
    near.second = origin_b + t * axis_b
    near.first_axis = axis_a
    near.second_axis = axis_b
    near.first_radius = size_a[0]
    near.second_radius = size_b[0]
    return between(near)


@wp.func
def point_box(near: Closest, turn: mat33, origin: vec3, size: vec3):
    """A ball's centre and a box: the closest point of a face, an edge or a corner; within the box of a face."""
    local = transposed(turn, near.first - origin)
    half = scalar(0.5) * size
    nearest = local
    share = zero3()
    beyond = wp.int32(0)
    free = wp.int32(0)  # an axis along which the point is within the box
    deepest = wp.int32(0)
    for k in range(3):
        if wp.abs(local[k]) > half[k]:
            nearest[k] = wp.sign(local[k]) * half[k]
            share[k] = wp.sign(local[k]) * scalar(0.5)
            beyond += 1
        else:
            free = k
        if wp.abs(local[k]) - half[k] > wp.abs(local[deepest]) - half[deepest]:
            deepest = k
    near.second_share = share
    near.second = origin + turn * nearest
    near.form = POINTS
    near.second_axis = axis_of(turn, free)
    if beyond == 2:
        near.form = POINT_LINE
    if beyond > 1:
        near = between(near)
    else:
        near = at_face(near, turn, local, half, deepest)
    return near


@wp.func
def at_face(near: Closest, turn: mat33, local: vec3, half: vec3, k: int):
    """A point and face k of a box, on the side where the point is."""
    side = wp.sign(local[k])
    height = wp.abs(local[k]) - half[k]
    near.form = FACE
    near.normal = side * axis_of(turn, k)
    near.second = near.first - height * near.normal
    near.second_share = zero3()
    near.second_share[k] = scalar(0.5) * side
    near.gap = height - near.first_radius
    return near


@wp.func
def lowest(axis: vec3, normal: vec3, turn: mat33):
    """The direction across a circle's axis that leads farthest against a normal; one of its own where it is upright."""
    down = wp.dot(axis, normal) * axis - normal
    length = wp.length(down)
    found = axis_of(turn, 0)
    if length > UPRIGHT:
        found = down / length
    return found


@wp.func
def rim_plane(near: Closest, turn_a: mat33, origin_a: vec3, size_a: vec3, corner: vec3, turn: mat33, origin: vec3):
    """A point on the rim of a cylinder and a plane; the corner has cosine and sine of its angle, and its end."""
    axis = axis_of(turn_a, 2)
    normal = axis_of(turn, 2)
    down = lowest(axis, normal, turn_a)
    towards = corner[0] * down + corner[1] * wp.cross(axis, down)
    near.first = origin_a + corner[2] * size_a[2] * axis + size_a[0] * towards
    near.first_axis = axis
    near.first_share = vec3(scalar(0.0), scalar(0.0), corner[2])
    near.second_axis = towards
    near.rim = vec3(corner[0], corner[1], size_a[0])
    near = point_plane(near, turn, origin)
    near.form = RIM
    return near


@wp.func(inline=False)
def closest(
    kind: int,
    turn_a: mat33,
    origin_a: vec3,
    size_a: vec3,
    feature_a: vec3,
    turn_b: mat33,
    origin_b: vec3,
    size_b: vec3,
):
    """The form of a pair of this kind: frames of both shapes in the world, their sizes, and which part of each.

    A feature is a point as a share of its shape's sizes.
    """
    near = Closest()
    near.first = origin_a + turn_a * scaled(feature_a, size_a)
    near.first_share = feature_a
    if kind == POINT_PLANE or kind == POINT_POINT or kind == POINT_SEGMENT or kind == POINT_BOX:
        near.first_radius = size_a[0]
    if kind == POINT_PLANE or kind == CORNER_PLANE:
        return point_plane(near, turn_b, origin_b)
    if kind == POINT_POINT:
        near.second = origin_b
        near.second_radius = size_b[0]
        return between(near)
    if kind == POINT_SEGMENT:
        return point_segment(near, turn_b, origin_b, size_b)
    if kind == SEGMENT_SEGMENT:
        near.first_share = zero3()
        return segment_segment(near, turn_a, origin_a, size_a, turn_b, origin_b, size_b)
    if kind == POINT_BOX:
        return point_box(near, turn_b, origin_b, size_b)
    if kind == RIM_PLANE:
        return rim_plane(near, turn_a, origin_a, size_a, feature_a, turn_b, origin_b)
    if kind == POINT_ELLIPSOID:
        near.first_radius = size_a[0]
        return to_ellipsoid(near, turn_b, origin_b, size_b)
    if kind == POINT_CYLINDER:
        near.first_radius = size_a[0]
        return to_cylinder(near, turn_b, origin_b, size_b)
    if kind == SEGMENT_CYLINDER:
        return segment_cylinder(near, turn_a, origin_a, size_a, turn_b, origin_b, size_b)
    if kind == SEGMENT_ELLIPSOID:
        return segment_ellipsoid(near, turn_a, origin_a, size_a, turn_b, origin_b, size_b)
    if kind == ELLIPSOID_ELLIPSOID:
        return ellipsoid_ellipsoid(near, turn_a, origin_a, size_a, turn_b, origin_b, size_b)
    if kind == ELLIPSOID_PLANE:
        return ellipsoid_plane(near, turn_a, origin_a, size_a, turn_b, origin_b)
    # A string or strut: two points. The first is taut where they are as far apart as its margin says, and pulls.
    near.second = origin_b
    near = between(near)
    if kind == STRING:
        near.normal = -near.normal
        near.gap = -near.gap
    return near
