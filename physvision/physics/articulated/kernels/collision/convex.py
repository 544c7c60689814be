"""Any two convex shapes: where they are closest, or overlap least; `manifold` has more points where flat sides meet.

`gjk` finds the normal, roughly where something is round, and a few points of each shape. What of either is there can be
a point, a line or a face; each choice has a normal in closed form, or by Newton's method. Along no normal are shapes
farther apart than along the right one, so that choice is right along which they are farthest apart.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, scalar, vec3

from .closest_features import (
    Place,
    material,
    on_axis,
    place_towards,
    point_and_face,
    round_or_corner,
    two_lines,
)
from .contact_primitives import (
    LEAST,
    PARALLEL,
    POINTS,
    Closest,
    axis_of,
)
from .gjk import Simplex, Way, find_way
from .support_shapes import (
    CYLINDER,
    Hulls,
    Solid,
    apart_along,
    corner_of,
    face_normal_of,
    face_towards,
    farthest,
    is_flat,
)

TIE = wp.constant(scalar(1.0e-9 if DOUBLE else 1.0e-4))  # of the size, by which a choice must be better
FAR = wp.constant(scalar(0.25))  # of the size: apart by more, only balls about the shapes are compared


@wp.struct
class Corners:
    """The corners of a polytope that make its closest point, those that weigh most first; −1 for none."""

    most: int
    next: int
    last: int


@wp.func
def weight_of(found: Simplex, corners: wp.vec4i, corner: int):
    weight = scalar(0.0)
    k = wp.int32(0)
    while k < found.count:
        if corners[k] == corner:
            weight += found.weight[k]
        k += 1
    return weight


@wp.func
def corners_of(found: Simplex, corners: wp.vec4i):
    those = Corners()
    those.most = -1
    those.next = -1
    those.last = -1
    k = wp.int32(0)
    while k < found.count:
        each = corners[k]
        if each != those.most and each != those.next and each != those.last:
            weight = weight_of(found, corners, each)
            if those.most < 0 or weight > weight_of(found, corners, those.most):
                those.last = those.next
                those.next = those.most
                those.most = each
            elif those.next < 0 or weight > weight_of(found, corners, those.next):
                those.last = those.next
                those.next = each
            else:
                those.last = each
        k += 1
    return those


@wp.func
def line_of(s: Solid, hulls: Hulls, those: Corners, normal: vec3):
    """The edge between the two corners that weigh most, or a cylinder's axis where it lies; a mere point elsewhere."""
    place = Place()
    if s.kind == CYLINDER:
        axis = axis_of(s.turn, 2)
        if wp.abs(wp.dot(axis, normal)) < scalar(0.5):
            place = on_axis(s, s.origin)
            place.is_line = 1
            place.axis = axis
    elif those.next >= 0:
        start = corner_of(s, hulls, those.most)
        along = corner_of(s, hulls, those.next) - start
        place = material(s, start)
        place.is_line = 1
        place.axis = along / wp.max(wp.length(along), LEAST)
    return place


@wp.func
def plane_of(s: Solid, hulls: Hulls, those: Corners, normal: vec3):
    """The normal of the plane through three corners, along another one; that one where there are no three."""
    found = normal
    if those.last >= 0:
        start = corner_of(s, hulls, those.most)
        across = wp.cross(corner_of(s, hulls, those.next) - start, corner_of(s, hulls, those.last) - start)
        length = wp.length(across)
        if length > LEAST:
            found = wp.sign(wp.dot(across, normal)) * across / length
    return found


@wp.func
def closest_points(a: Solid, b: Solid, hulls: Hulls, normals: wp.array(dtype=vec3), way: Way):
    """The form along the way that was found."""
    n = way.normal
    size = wp.min(a.bound, b.bound)
    first = vec3()
    second = vec3()
    k = wp.int32(0)
    while k < way.simplex.count:
        first = first + way.simplex.weight[k] * way.simplex.first[k]
        second = second + way.simplex.weight[k] * way.simplex.second[k]
        k += 1
    near = Closest()
    near.normal = n
    value = scalar(-1.0e30)
    face = face_towards(b, normals, n)
    if is_flat(b, face):
        m = face_normal_of(b, normals, face)
        near = point_and_face(a, b, m, place_towards(a, hulls, -m, first), farthest(b, hulls, m).point, False)
        value = apart_along(a, b, hulls, m)
    face = face_towards(a, normals, -n)
    if is_flat(a, face):
        m = -face_normal_of(a, normals, face)
        along = apart_along(a, b, hulls, m)
        if along > value + TIE * size:
            near = point_and_face(a, b, m, place_towards(b, hulls, m, second), farthest(a, hulls, -m).point, True)
            value = along
    if value < way.apart - TIE * size:
        # Of faces that are flat but for rounding, three corners.
        mine = corners_of(way.simplex, way.simplex.first_corner)
        others = corners_of(way.simplex, way.simplex.second_corner)
        if others.last >= 0:
            m = plane_of(b, hulls, others, n)
            along = apart_along(a, b, hulls, m)
            if along > value + TIE * size:
                near = point_and_face(a, b, m, place_towards(a, hulls, -m, first), second, False)
                value = along
        if mine.last >= 0:
            m = plane_of(a, hulls, mine, n)
            along = apart_along(a, b, hulls, m)
            if along > value + TIE * size:
                near = point_and_face(a, b, m, place_towards(b, hulls, m, second), first, True)
                value = along
        one = line_of(a, hulls, mine, n)
        other = line_of(b, hulls, others, n)
        across = wp.cross(one.axis, other.axis)
        length = wp.length(across)
        if length * length > PARALLEL:
            m = across / length
            if wp.dot(m, n) < scalar(0.0):
                m = -m
            along = apart_along(a, b, hulls, m)
            if along > value + TIE * size:
                near = two_lines(a, b, m, one, other)
                value = along
        choice = wp.int32(0)
        while choice < 3 and value < way.apart - TIE * size:
            # A line of the first, of the second, of neither.
            left = one
            right = other
            if choice != 0:
                left.is_line = 0
            if choice != 1:
                right.is_line = 0
            if choice == 2 or left.is_line + right.is_line > 0:
                found = round_or_corner(a, b, hulls, n, left, right, first, second)
                along = apart_along(a, b, hulls, found.normal)
                if along > value + TIE * size:
                    near = found
                    value = along
            choice += 1
    return near


@wp.func(inline=False)
def convex(a: Solid, b: Solid, hulls: Hulls, normals: wp.array(dtype=vec3)):
    """The form of two shapes where they are closest."""
    away = a.origin - b.origin
    length = wp.length(away)
    size = a.bound + b.bound
    near = Closest()
    if length - size > FAR * size:
        near.form = POINTS
        near.first = a.origin
        near.second = b.origin
        near.first_radius = a.bound
        near.second_radius = b.bound
        near.normal = away / length
        near.gap = length - size
    else:
        near = closest_points(a, b, hulls, normals, find_way(a, b, hulls, normals))
    return near
