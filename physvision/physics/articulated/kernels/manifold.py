"""Further points where flat sides of two convex shapes meet.

Seen along the normal of one's face, the face and the flat side of the other have a region in common. Its corners are
corners of the one within the other, or crossings of their borders; each is of a form that exists, point and face or two
lines. A slot has a direction in the face, and takes the corner of the region that is farthest along it, if it is low
enough: one that is higher counts as less far. Where two slots, or the closest points, are at the same place, only the
first one counts; the gap of the others is `APART`.
"""

import warp as wp

from . import scalar
from .edges import APART
from .forms import LEAST, Closest
from .places import material, on_axis, point_and_face, rim_radius_of, two_lines
from .solids import CYLINDER, Solid, corner_of, face_normal_of, face_towards, is_flat
from .spatial import vec3

LEVEL = wp.constant(scalar(0.1))  # height that counts as much as a unit of distance along the slot's direction
FACING = wp.constant(scalar(0.9))  # cosine of the face's normal and that of the closest points
BORDER = wp.constant(scalar(1.0e-6))  # of a length beyond its border at which a point is within a face
CROSSING = wp.constant(scalar(1.0e-2))  # sine from which on borders cross
SAME = wp.constant(scalar(1.0e-4))  # of the shapes' size


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
    corner: wp.array(dtype=vec3),
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
        found.level = corner_of(s, corner, loop[found.first])
        found.radius = s.radius
        if is_flat(s, face):
            found.is_face = 1
            found.normal = face_normal_of(s, normals, face)
        elif s.kind == CYLINDER:
            found.radius = s.size[0]
    return found


@wp.func
def loop_corner(s: Solid, flat: Flat, corner: wp.array(dtype=vec3), loop: wp.array(dtype=wp.int32), k: int):
    return corner_of(s, corner, loop[flat.first + k % flat.count])


@wp.func
def is_within(
    s: Solid, flat: Flat, corner: wp.array(dtype=vec3), loop: wp.array(dtype=wp.int32), point: vec3, normal: vec3
):
    """Whether a point is within a face, seen along a normal; its corners run anticlockwise about its own one."""
    sense = wp.sign(wp.dot(normal, flat.normal))
    within = bool(True)
    k = wp.int32(0)
    while k < flat.count:
        start = loop_corner(s, flat, corner, loop, k)
        along = loop_corner(s, flat, corner, loop, k + 1) - start
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


@wp.func
def extreme(
    a: Solid,
    b: Solid,
    face: Flat,
    side: Flat,
    on_first: bool,
    corner: wp.array(dtype=vec3),
    loop: wp.array(dtype=wp.int32),
    angle: scalar,
    lowest: scalar,
):
    """The corner of what a face and the other's flat side have in common that is farthest along an angle.

    The face is the first shape's where `on_first`. The angle counts from the face's first border. What is lower than
    the shapes overlap is not above the face, but beneath something that it overhangs.
    """
    # `s` has the face, `o` the flat side.
    s = b
    o = a
    if on_first:
        s = a
        o = b
    n = face.normal
    toward_first = n
    if on_first:
        toward_first = -n
    ahead = wp.normalize(loop_corner(s, face, corner, loop, 1) - face.level)
    direction = wp.cos(angle) * ahead + wp.sin(angle) * wp.cross(n, ahead)
    near = Closest()
    near.gap = APART
    best = scalar(-1.0e30)
    k = wp.int32(0)
    while k < side.count:
        p = loop_corner(o, side, corner, loop, k)
        height = wp.dot(n, p - face.level) - side.radius
        score = wp.dot(direction, p) - height / LEVEL
        if score > best and height >= lowest and is_within(s, face, corner, loop, p, n):
            best = score
            near = point_and_face(a, b, toward_first, corner_place(o, side, p), face.level, on_first)
        k += 1
    if side.is_face != 0 and -wp.dot(side.normal, n) > FACING:
        out = side.normal
        if not on_first:
            out = -side.normal
        k = wp.int32(0)
        while k < face.count:
            p = loop_corner(s, face, corner, loop, k)
            height = wp.dot(side.normal, p - side.level)
            score = wp.dot(direction, p) - height / LEVEL
            if score > best and height >= lowest and is_within(o, side, corner, loop, p, n):
                best = score
                near = point_and_face(a, b, out, corner_place(s, face, p), side.level, not on_first)
            k += 1
    borders = side.count
    if side.count == 2:
        borders = 1
    k = wp.int32(0)
    while k < face.count * borders:
        i = k / borders
        j = k % borders
        p = loop_corner(s, face, corner, loop, i)
        q = loop_corner(o, side, corner, loop, j)
        d = loop_corner(s, face, corner, loop, i + 1) - p
        e = loop_corner(o, side, corner, loop, j + 1) - q
        turning = wp.dot(n, wp.cross(d, e))
        if wp.abs(turning) > CROSSING * wp.length(d) * wp.length(e):
            x = wp.dot(n, wp.cross(q - p, e)) / turning
            y = wp.dot(n, wp.cross(q - p, d)) / turning
            if x > BORDER and x < scalar(1.0) - BORDER and y > BORDER and y < scalar(1.0) - BORDER:
                across = wp.normalize(wp.cross(d, e))
                if wp.dot(across, toward_first) < scalar(0.0):
                    across = -across
                one = border_place(o, side, q, q + e)
                other = border_place(s, face, p, p + d)
                one.radius = side.radius
                height = wp.dot(n, q + y * e - p - x * d) - side.radius
                score = wp.dot(direction, p + x * d) - height / LEVEL
                if score > best and height >= lowest and wp.abs(wp.dot(across, n)) > FACING:
                    best = score
                    if on_first:
                        near = two_lines(a, b, across, other, one)
                    else:
                        near = two_lines(a, b, across, one, other)
        k += 1
    return near


@wp.func
def angle_of(slot: int):
    """The directions of slots, at right angles, and along no border that shapes often have."""
    return scalar(0.7) + scalar(slot) * scalar(1.5707963267948966)


@wp.func
def place_on_second(near: Closest):
    return near.first - (near.first_radius + near.gap) * near.normal


@wp.func
def flat_point(
    a: Solid,
    b: Solid,
    slot: int,
    corner: wp.array(dtype=vec3),
    normals: wp.array(dtype=vec3),
    loop_start: wp.array(dtype=wp.int32),
    loop: wp.array(dtype=wp.int32),
    closest: Closest,
    beside: scalar,
):
    """The point of a slot, where the shapes are less than `beside` apart and flat sides meet there."""
    near = closest
    near.gap = wp.max(closest.gap, APART)
    if closest.gap < beside:
        n = closest.normal
        one = flat_of(a, corner, normals, loop_start, loop, -n)
        two = flat_of(b, corner, normals, loop_start, loop, n)
        facing = scalar(-1.0)
        on_first = bool(False)
        if two.is_face != 0:
            facing = wp.dot(two.normal, n)
        if one.is_face != 0 and -wp.dot(one.normal, n) > facing + scalar(1.0e-3):
            facing = -wp.dot(one.normal, n)
            on_first = bool(True)
        if facing > FACING and one.count > 1 and two.count > 1:
            face = two
            side = one
            if on_first:
                face = one
                side = two
            same = SAME * (a.bound + b.bound)
            lowest = wp.min(closest.gap, scalar(0.0)) - BORDER * (a.bound + b.bound)
            near = extreme(a, b, face, side, on_first, corner, loop, angle_of(slot), lowest)
            place = place_on_second(near)
            taken = wp.length(place - place_on_second(closest)) < same
            earlier = wp.int32(1)
            while earlier < slot and not taken:
                other = extreme(a, b, face, side, on_first, corner, loop, angle_of(earlier), lowest)
                taken = wp.length(place - place_on_second(other)) < same
                earlier += 1
            if taken:
                near.gap = wp.max(near.gap, APART)
    return near
