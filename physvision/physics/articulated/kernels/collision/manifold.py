"""Contact manifold: further contact points where flat sides of two convex shapes meet.

A face of one shape and the flat side of the other have a region in common. Its corners are corners of one inside the
other, seen along the normal of the other, or crossings of their borders, where the points of two borders that are
closest to each other lie within both; each is an existing primitive, point and face or two lines, with the normal of
the second shape where both sides are flat on each other, and has a number: first the corners of the flat side, then
those of the face, then the crossings. A slot has a direction in the face, and takes the corner of the region that is
farthest along it; height above the face counts against a corner. If two slots, or the closest points, are at the same
place, only the first counts; the separation of the others is `ABSENT_SEPARATION`.
"""

import warp as wp

from ..precision import mat43, scalar, vec3, vec4
from ..spatial.vectors import column
from ..structs import HullModel
from .closest_features import (
    axis_point,
    is_flat_contact,
    line_line_primitive,
    material_point,
    point_face_primitive,
    radius_derivative,
    rim_point,
    share_side_normal,
)
from .contact_primitives import MIN_LENGTH, ContactPrimitive
from .settings import COLLISION
from .support_shapes import CYLINDER, ConvexShape, face_towards, is_flat, vertex_position, world_face_normal

HEIGHT_WEIGHT = wp.constant(scalar(COLLISION.height_weight))
MIN_FACING_COSINE = wp.constant(scalar(COLLISION.min_facing_cosine))
BORDER_TOLERANCE = wp.constant(scalar(COLLISION.border_tolerance))
MIN_CROSSING_SINE = wp.constant(scalar(COLLISION.min_crossing_sine))
SAME_POINT_TOLERANCE = wp.constant(scalar(COLLISION.same_point_tolerance))
ABSENT_SEPARATION = wp.constant(scalar(COLLISION.absent_separation))
ABSENT = wp.constant(-1)  # case, or number, of an absent corner


@wp.struct
class FlatSide:
    """Flat side of a shape: a face, or the axis of a round shape."""

    first: int
    count: int
    normal: vec3  # outward
    radius: scalar
    point: vec3  # one of its corners
    is_face: int


@wp.func
def flat_side(s: ConvexShape, hulls: HullModel, direction: vec3):
    """Return the flat side of a shape that points along a direction."""
    result = FlatSide()
    face = face_towards(s, hulls, direction)
    if face >= 0:
        result.first = hulls.loop_start[face]
        result.count = hulls.loop_start[face + 1] - result.first
        result.point = vertex_position(s, hulls, hulls.loop[result.first])
        result.radius = s.radius
        if is_flat(s, face):
            result.is_face = 1
            result.normal = world_face_normal(s, hulls, face)
        elif s.kind == CYLINDER:
            result.radius = s.size[0]
    return result


@wp.func
def loop_corner(s: ConvexShape, flat: FlatSide, hulls: HullModel, k: int):
    """Return corner k of a flat side, counted around it."""
    return vertex_position(s, hulls, hulls.loop[flat.first + k % flat.count])


@wp.func
def is_within(s: ConvexShape, flat: FlatSide, hulls: HullModel, point: vec3, normal: vec3):
    """Return True if a point is inside a face, seen along a normal.

    Its corners are counterclockwise about its own normal.
    """
    orientation = wp.sign(wp.dot(normal, flat.normal))
    within = bool(True)
    k = wp.int32(0)
    while k < flat.count:
        start = loop_corner(s, flat, hulls, k)
        along = loop_corner(s, flat, hulls, k + 1) - start
        inwards = orientation * wp.cross(normal, along)
        if wp.dot(inwards, point - start) < -BORDER_TOLERANCE * wp.length_sq(along):
            within = bool(False)
        k += 1
    return within


@wp.func
def corner_feature(s: ConvexShape, flat: FlatSide, point: vec3, direction: vec3):
    """Return the feature of a corner of a flat side; of an end of a cylinder's axis the rim point along a direction."""
    feature = material_point(s, point)
    if s.kind == CYLINDER:
        if flat.is_face != 0:
            feature.radius_derivative = radius_derivative(s, point)
        else:
            feature = rim_point(s, direction, wp.sign(wp.dot(column(s.rotation, 2), point - s.origin)))
    return feature


@wp.func
def border_feature(s: ConvexShape, flat: FlatSide, start: vec3, end: vec3):
    """Return the feature of a piece of the border of a flat side, as a line."""
    along = end - start
    feature = material_point(s, start)
    if s.kind == CYLINDER:
        if flat.is_face != 0:
            feature.radius_derivative = radius_derivative(s, start)
        else:
            feature = axis_point(s, start)
    feature.is_line = 1
    feature.axis = along / wp.max(wp.length(along), MIN_LENGTH)
    return feature


@wp.struct
class FacePair:
    """Face of one shape and the flat side of the other on it; the face is the first shape's if `on_first`."""

    face: FlatSide
    side: FlatSide
    on_first: int
    is_valid: int


@wp.func
def facing_sides(a: ConvexShape, b: ConvexShape, hulls: HullModel, n: vec3):
    """Return the flat sides along the normal of the closest points; valid if there are two and one is a face."""
    sides = FacePair()
    first = flat_side(a, hulls, -n)
    second = flat_side(b, hulls, n)
    facing = scalar(-1.0)
    if second.is_face != 0:
        facing = wp.dot(second.normal, n)
    sides.face = second
    sides.side = first
    if first.is_face != 0 and -wp.dot(first.normal, n) > facing + scalar(1.0e-3):
        facing = -wp.dot(first.normal, n)
        sides.on_first = 1
        sides.face = first
        sides.side = second
    if facing > MIN_FACING_COSINE and first.count > 1 and second.count > 1:
        sides.is_valid = 1
    return sides


@wp.func
def crossings_per_border(sides: FacePair):
    """Return the number of borders of the flat side that each border of the face can cross."""
    borders = wp.int32(sides.side.count)
    if sides.side.count == 2:
        borders = 1
    return borders


@wp.func
def crossing(a: ConvexShape, b: ConvexShape, s: ConvexShape, o: ConvexShape, sides: FacePair, hulls: HullModel, k: int):
    """Return the primitive where a border of the face of `s` crosses one of the flat side of `o`.

    Absent if they do not cross.
    """
    primitive = ContactPrimitive()
    primitive.form = ABSENT
    n = sides.face.normal
    i = k / crossings_per_border(sides)
    j = k % crossings_per_border(sides)
    p = loop_corner(s, sides.face, hulls, i)
    q = loop_corner(o, sides.side, hulls, j)
    d = loop_corner(s, sides.face, hulls, i + 1) - p
    e = loop_corner(o, sides.side, hulls, j + 1) - q
    direction = wp.cross(d, e)
    length = wp.length(direction)
    if length > MIN_CROSSING_SINE * wp.length(d) * wp.length(e):
        direction = wp.sign(wp.dot(direction, n)) * direction / length
        # Closest points of the two lines, p + x d and q + y e.
        x = wp.dot(direction, wp.cross(q - p, e)) / wp.dot(direction, wp.cross(d, e))
        y = wp.dot(direction, wp.cross(q - p, d)) / wp.dot(direction, wp.cross(d, e))
        if (
            x > BORDER_TOLERANCE
            and x < scalar(1.0) - BORDER_TOLERANCE
            and y > BORDER_TOLERANCE
            and y < scalar(1.0) - BORDER_TOLERANCE
            and wp.dot(direction, n) > MIN_FACING_COSINE
        ):
            side_line = border_feature(o, sides.side, q, q + e)
            side_line.radius = sides.side.radius
            face_line = border_feature(s, sides.face, p, p + d)
            if sides.on_first != 0:
                primitive = line_line_primitive(a, b, -direction, face_line, side_line)
            else:
                primitive = line_line_primitive(a, b, direction, side_line, face_line)
    return primitive


@wp.func
def region_corner(a: ConvexShape, b: ConvexShape, sides: FacePair, hulls: HullModel, k: int):
    """Return the primitive of corner number k of the common region of a face and a flat side, or an absent one."""
    # Shape s has the face, shape o the flat side.
    s = b
    o = a
    toward_first = sides.face.normal
    out = -sides.side.normal
    if sides.on_first != 0:
        s = a
        o = b
        toward_first = -sides.face.normal
        out = sides.side.normal
    primitive = ContactPrimitive()
    primitive.form = ABSENT
    if k < sides.side.count:
        p = loop_corner(o, sides.side, hulls, k)
        corner = corner_feature(o, sides.side, p, -sides.face.normal)
        if is_within(s, sides.face, hulls, corner.point, sides.face.normal):
            primitive = point_face_primitive(a, b, toward_first, corner, sides.face.point, sides.on_first != 0)
    elif k < sides.side.count + sides.face.count:
        if sides.side.is_face != 0 and -wp.dot(sides.side.normal, sides.face.normal) > MIN_FACING_COSINE:
            p = loop_corner(s, sides.face, hulls, k - sides.side.count)
            if is_within(o, sides.side, hulls, p, sides.side.normal):
                corner = corner_feature(s, sides.face, p, -sides.side.normal)
                primitive = point_face_primitive(a, b, out, corner, sides.side.point, sides.on_first == 0)
    else:
        primitive = crossing(a, b, s, o, sides, hulls, k - sides.side.count - sides.face.count)
    if sides.side.is_face != 0 and sides.on_first == 0 and is_flat_contact(sides.side.normal, sides.face.normal):
        primitive = share_side_normal(primitive, sides.face.normal)
    return primitive


@wp.func
def point_on_second(primitive: ContactPrimitive):
    """Return the point of a primitive on the surface of the second shape."""
    return primitive.first_point - (primitive.first_radius + primitive.separation) * primitive.normal


@wp.func(inline=False)
def manifold_corners(
    a: ConvexShape, b: ConvexShape, hulls: HullModel, normal: vec3, separation: scalar, closest_point: vec3
):
    """Return the corners that the four slots take, besides closest points with this normal, separation and point.

    A corner that is lower than the penetration is not above the face, but beneath something that overhangs it.
    """
    corners = wp.vec4i(ABSENT, ABSENT, ABSENT, ABSENT)
    sides = facing_sides(a, b, hulls, normal)
    if sides.is_valid != 0:
        size = a.bounding_radius + b.bounding_radius
        lowest = wp.min(separation, scalar(0.0)) - BORDER_TOLERANCE * size
        s = b
        if sides.on_first != 0:
            s = a
        # Perpendicular directions that are parallel to no common border direction.
        face_axis = wp.normalize(loop_corner(s, sides.face, hulls, 1) - sides.face.point)
        face_side = wp.cross(sides.face.normal, face_axis)
        slot_axis = scalar(0.7648421872844885) * face_axis + scalar(0.644217687237691) * face_side
        across = wp.cross(sides.face.normal, slot_axis)
        best = vec4(scalar(-1.0e30))
        points = mat43()
        k = wp.int32(0)
        while k < sides.side.count + sides.face.count + sides.face.count * crossings_per_border(sides):
            primitive = region_corner(a, b, sides, hulls, k)
            if primitive.form != ABSENT and primitive.separation >= lowest:
                point = point_on_second(primitive)
                along = vec4(wp.dot(slot_axis, point), wp.dot(across, point), scalar(0.0), scalar(0.0))
                along[2] = -along[0]
                along[3] = -along[1]
                for slot in range(4):
                    score = along[slot] - primitive.separation / HEIGHT_WEIGHT
                    if score > best[slot]:
                        best[slot] = score
                        corners[slot] = k
                        points[slot] = point
            k += 1
        for backwards in range(4):
            later = 3 - backwards
            is_duplicate = wp.length(points[later] - closest_point) < SAME_POINT_TOLERANCE * size
            for earlier in range(later):
                is_duplicate = is_duplicate or wp.length(points[later] - points[earlier]) < SAME_POINT_TOLERANCE * size
            if is_duplicate:
                corners[later] = ABSENT
    return corners


@wp.func(inline=False)
def manifold_point(a: ConvexShape, b: ConvexShape, hulls: HullModel, normal: vec3, number: int):
    """Return the primitive of the corner with this number, or an absent one."""
    primitive = ContactPrimitive()
    primitive.form = ABSENT
    if number != ABSENT:
        primitive = region_corner(a, b, facing_sides(a, b, hulls, normal), hulls, number)
    if primitive.form == ABSENT:
        primitive.normal = normal
        primitive.separation = ABSENT_SEPARATION
    return primitive
