"""Further points where flat sides of two convex shapes meet.

Seen along the normal of one's face, the face and the flat side of the other have a region in common. Its corners are
corners of the one within the other, or crossings of their borders; each is of a form that exists, point and face or two
lines, and has a number: first those of the flat side's corners, then those of the face's, then those of the crossings.
A slot has a direction in the face, and takes the corner of the region that is farthest along it, if it is low
enough: one that is higher counts as less far. Where two slots, or the closest points, are at the same place, only the
first one counts; the gap of the others is `APART`.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import mat43, scalar, vec3, vec4

from .closest_features import (
    material,
    on_axis,
    point_and_face,
    rim_radius_of,
    two_lines,
)
from .contact_primitives import LEAST, Closest
from .support_shapes import (
    CYLINDER,
    Hulls,
    Solid,
    corner_of,
    face_normal_of,
    face_towards,
    is_flat,
)

LEVEL = wp.constant(scalar(0.1))  # height that counts as much as a unit of distance along the slot's direction
FACING = wp.constant(scalar(0.9))  # cosine of the face's normal and that of the closest points
BORDER = wp.constant(scalar(1.0e-6))  # of a length beyond its border at which a point is within a face
CROSSING = wp.constant(scalar(1.0e-2))  # sine from which on borders cross
SAME = wp.constant(scalar(1.0e-4))  # of the shapes' size
APART = wp.constant(scalar(1.0))  # m; the gap of what is no corner
NOTHING = wp.constant(-1)  # the form, or the number, of what is no corner


@wp.struct
class Flat:
    """A flat side: a face, or the axis of what is round."""

    first: int
    count: int
    normal: vec3  # outwards
    radius: scalar
    level: vec3  # a corner
    is_face: int


@wp.func
def flat_of(
    s: Solid,
    hulls: Hulls,
    normals: wp.array(dtype=vec3),
    loop_start: wp.array(dtype=wp.int32),
    loop: wp.array(dtype=wp.int32),
    direction: vec3,
):
    found = Flat()
    face = face_towards(s, normals, direction)
    if face >= 0:
        found.first = loop_start[face]
        found.count = loop_start[face + 1] - found.first
        found.level = corner_of(s, hulls, loop[found.first])
        found.radius = s.radius
        if is_flat(s, face):
            found.is_face = 1
            found.normal = face_normal_of(s, normals, face)
        elif s.kind == CYLINDER:
            found.radius = s.size[0]
    return found


@wp.func
def loop_corner(s: Solid, flat: Flat, hulls: Hulls, loop: wp.array(dtype=wp.int32), k: int):
    return corner_of(s, hulls, loop[flat.first + k % flat.count])


@wp.func
def is_within(s: Solid, flat: Flat, hulls: Hulls, loop: wp.array(dtype=wp.int32), point: vec3, normal: vec3):
    """Whether a point is within a face, seen along a normal; its corners run anticlockwise about its own one."""
    sense = wp.sign(wp.dot(normal, flat.normal))
    within = bool(True)
    k = wp.int32(0)
    while k < flat.count:
        start = loop_corner(s, flat, hulls, loop, k)
        along = loop_corner(s, flat, hulls, loop, k + 1) - start
        inwards = sense * wp.cross(normal, along)
        if wp.dot(inwards, point - start) < -BORDER * wp.length_sq(along):
            within = bool(False)
        k += 1
    return within


@wp.func
def corner_place(s: Solid, flat: Flat, point: vec3):
    """A corner of a flat side, or an end of an axis."""
    place = material(s, point)
    if s.kind == CYLINDER:
        if flat.is_face != 0:
            place.rim = rim_radius_of(s, point)
        else:
            place = on_axis(s, point)
    return place


@wp.func
def border_place(s: Solid, flat: Flat, start: vec3, end: vec3):
    """A piece of the border of a flat side, as a line."""
    along = end - start
    place = corner_place(s, flat, start)
    place.is_line = 1
    place.axis = along / wp.max(wp.length(along), LEAST)
    return place


@wp.struct
class Meeting:
    """A face of one shape and the flat side of the other on it; the face is the first shape's where `on_first`."""

    face: Flat
    side: Flat
    on_first: int
    found: int


@wp.func
def meeting(
    a: Solid,
    b: Solid,
    hulls: Hulls,
    normals: wp.array(dtype=vec3),
    loop_start: wp.array(dtype=wp.int32),
    loop: wp.array(dtype=wp.int32),
    n: vec3,
):
    """The flat sides that look along the normal of the closest points, if there are two and one is a face."""
    m = Meeting()
    one = flat_of(a, hulls, normals, loop_start, loop, -n)
    two = flat_of(b, hulls, normals, loop_start, loop, n)
    facing = scalar(-1.0)
    if two.is_face != 0:
        facing = wp.dot(two.normal, n)
    m.face = two
    m.side = one
    if one.is_face != 0 and -wp.dot(one.normal, n) > facing + scalar(1.0e-3):
        facing = -wp.dot(one.normal, n)
        m.on_first = 1
        m.face = one
        m.side = two
    if facing > FACING and one.count > 1 and two.count > 1:
        m.found = 1
    return m


@wp.func
def crossings(m: Meeting):
    """How many borders of the flat side there are for each of the face."""
    borders = wp.int32(m.side.count)
    if m.side.count == 2:
        borders = 1
    return borders


@wp.func
def crossing(
    a: Solid,
    b: Solid,
    s: Solid,
    o: Solid,
    m: Meeting,
    hulls: Hulls,
    loop: wp.array(dtype=wp.int32),
    k: int,
):
    """Where a border of the face of `s` and one of the flat side of `o` cross, if they do between their ends."""
    near = Closest()
    near.form = NOTHING
    n = m.face.normal
    i = k / crossings(m)
    j = k % crossings(m)
    p = loop_corner(s, m.face, hulls, loop, i)
    q = loop_corner(o, m.side, hulls, loop, j)
    d = loop_corner(s, m.face, hulls, loop, i + 1) - p
    e = loop_corner(o, m.side, hulls, loop, j + 1) - q
    turning = wp.dot(n, wp.cross(d, e))
    if wp.abs(turning) > CROSSING * wp.length(d) * wp.length(e):
        x = wp.dot(n, wp.cross(q - p, e)) / turning
        y = wp.dot(n, wp.cross(q - p, d)) / turning
        if x > BORDER and x < scalar(1.0) - BORDER and y > BORDER and y < scalar(1.0) - BORDER:
            across = wp.normalize(wp.cross(d, e))
            if wp.dot(across, n) < scalar(0.0):
                across = -across
            if wp.dot(across, n) > FACING:
                one = border_place(o, m.side, q, q + e)
                one.radius = m.side.radius
                other = border_place(s, m.face, p, p + d)
                if m.on_first != 0:
                    near = two_lines(a, b, -across, other, one)
                else:
                    near = two_lines(a, b, across, one, other)
    return near


@wp.func
def region_corner(a: Solid, b: Solid, m: Meeting, hulls: Hulls, loop: wp.array(dtype=wp.int32), k: int):
    """Corner number k of what a face and the other's flat side have in common; its form is `NOTHING` if it is none."""
    # `s` has the face, `o` the flat side.
    s = b
    o = a
    toward_first = m.face.normal
    out = -m.side.normal
    if m.on_first != 0:
        s = a
        o = b
        toward_first = -m.face.normal
        out = m.side.normal
    near = Closest()
    near.form = NOTHING
    if k < m.side.count:
        p = loop_corner(o, m.side, hulls, loop, k)
        if is_within(s, m.face, hulls, loop, p, m.face.normal):
            near = point_and_face(a, b, toward_first, corner_place(o, m.side, p), m.face.level, m.on_first != 0)
    elif k < m.side.count + m.face.count:
        if m.side.is_face != 0 and -wp.dot(m.side.normal, m.face.normal) > FACING:
            p = loop_corner(s, m.face, hulls, loop, k - m.side.count)
            if is_within(o, m.side, hulls, loop, p, m.face.normal):
                near = point_and_face(a, b, out, corner_place(s, m.face, p), m.side.level, m.on_first == 0)
    else:
        near = crossing(a, b, s, o, m, hulls, loop, k - m.side.count - m.face.count)
    return near


@wp.func
def place_on_second(near: Closest):
    return near.first - (near.first_radius + near.gap) * near.normal


@wp.func(inline=False)
def flat_corners(
    a: Solid,
    b: Solid,
    hulls: Hulls,
    normals: wp.array(dtype=vec3),
    loop_start: wp.array(dtype=wp.int32),
    loop: wp.array(dtype=wp.int32),
    normal: vec3,
    gap: scalar,
    place: vec3,
):
    """The corners that the four slots take, beside closest points of this normal, gap and place on the second shape.

    What is lower than the shapes overlap is not above the face, but beneath something that it overhangs.
    """
    taken = wp.vec4i(NOTHING, NOTHING, NOTHING, NOTHING)
    m = meeting(a, b, hulls, normals, loop_start, loop, normal)
    if m.found != 0:
        size = a.bound + b.bound
        lowest = wp.min(gap, scalar(0.0)) - BORDER * size
        s = b
        if m.on_first != 0:
            s = a
        # Directions at right angles, and along no border that shapes often have.
        ahead = wp.normalize(loop_corner(s, m.face, hulls, loop, 1) - m.face.level)
        aside = wp.cross(m.face.normal, ahead)
        turned = scalar(0.7648421872844885) * ahead + scalar(0.644217687237691) * aside
        across = wp.cross(m.face.normal, turned)
        best = vec4(scalar(-1.0e30))
        places = mat43()
        k = wp.int32(0)
        while k < m.side.count + m.face.count + m.face.count * crossings(m):
            near = region_corner(a, b, m, hulls, loop, k)
            if near.form != NOTHING and near.gap >= lowest:
                there = place_on_second(near)
                along = vec4(wp.dot(turned, there), wp.dot(across, there), scalar(0.0), scalar(0.0))
                along[2] = -along[0]
                along[3] = -along[1]
                for slot in range(4):
                    score = along[slot] - near.gap / LEVEL
                    if score > best[slot]:
                        best[slot] = score
                        taken[slot] = k
                        places[slot] = there
            k += 1
        for backwards in range(4):
            later = 3 - backwards
            same = wp.length(places[later] - place) < SAME * size
            for earlier in range(later):
                same = same or wp.length(places[later] - places[earlier]) < SAME * size
            if same:
                taken[later] = NOTHING
    return taken


@wp.func(inline=False)
def flat_point(
    a: Solid,
    b: Solid,
    hulls: Hulls,
    normals: wp.array(dtype=vec3),
    loop_start: wp.array(dtype=wp.int32),
    loop: wp.array(dtype=wp.int32),
    normal: vec3,
    number: int,
):
    """The form at a corner of this number, or something `APART`."""
    near = Closest()
    near.form = NOTHING
    if number != NOTHING:
        near = region_corner(a, b, meeting(a, b, hulls, normals, loop_start, loop, normal), hulls, loop, number)
    if near.form == NOTHING:
        near.normal = normal
        near.gap = APART
    return near
