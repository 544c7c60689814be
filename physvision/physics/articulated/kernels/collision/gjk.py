"""The direction along which two convex shapes are farthest apart, or overlap least.

The shortest difference of two points of the shapes is that of the hull of all differences. Gilbert, Johnson and
Keerthi's method finds it from few points of that hull: the shortest one of their own hull leads to the point that is
farthest against it, until that gets no farther.

Shapes that touch have no difference to tell a direction from. Held apart along a normal n by t, they have one, and
with n′ along it f(n′) ≥ f(n), f being how far the shapes are apart along a normal: the shortest difference maximises
f(m) + t m · n among all m. So n rises until it stays. Where the shapes are apart that is the one normal that there is,
for f is concave; where they overlap by d it is a way out that no other one is shorter than by more than 2 t.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat43, scalar, vec3, vec4

from .contact_primitives import LEAST, axis_of
from .support_shapes import (
    POLYTOPE,
    Hulls,
    Solid,
    apart_along,
    face_normal_of,
    farthest,
)

CLOSE = wp.constant(scalar(1.0e-14 if DOUBLE else 1.0e-6))  # of the shapes' size, by which a difference may be longer
HELD = wp.constant(scalar(1.0e-2))  # of the smaller shape's size: how far shapes are held apart
STAYS = wp.constant(scalar(1.0e-9 if DOUBLE else 1.0e-4))
SEARCHES = wp.constant(10)
TURNS = wp.constant(64)


@wp.struct
class Simplex:
    """Up to four differences of two points; the shortest of their hull has these weights."""

    count: int
    apart: mat43
    first: mat43
    second: mat43
    first_corner: wp.vec4i
    second_corner: wp.vec4i
    weight: vec4
    shortest: vec3


@wp.struct
class Way:
    """The normal, the points that are closest when the shapes are held apart along it, and how far they are without."""

    normal: vec3
    apart: scalar
    simplex: Simplex


@wp.func
def on_segment(p: vec3, q: vec3):
    """Weights of two points, by which they make the point of their segment that is closest to the origin."""
    d = q - p
    t = wp.clamp(-wp.dot(p, d) / wp.max(wp.dot(d, d), LEAST), scalar(0.0), scalar(1.0))
    return vec3(scalar(1.0) - t, t, scalar(0.0))


@wp.func
def on_triangle(p: vec3, q: vec3, r: vec3):
    """The same of three points: within the triangle if the origin is above it, else on the nearest of its sides."""
    normal = wp.cross(q - p, r - p)
    u = wp.dot(normal, wp.cross(q, r))
    v = wp.dot(normal, wp.cross(r, p))
    w = wp.dot(normal, wp.cross(p, q))
    z = scalar(0.0)
    if u > z and v > z and w > z:
        return vec3(u, v, w) / (u + v + w)
    best = on_segment(p, q)
    least = wp.length_sq(best[0] * p + best[1] * q)
    other = on_segment(q, r)
    length = wp.length_sq(other[0] * q + other[1] * r)
    if length < least:
        least = length
        best = vec3(z, other[0], other[1])
    other = on_segment(r, p)
    length = wp.length_sq(other[0] * r + other[1] * p)
    if length < least:
        best = vec3(other[1], z, other[0])
    return best


@wp.func
def weighted(s: Simplex):
    """The simplex with the weights of its shortest difference, without the points that have none.

    Of four points the last is new, and the shortest difference is on one of the sides that it belongs to.
    """
    z = scalar(0.0)
    one = scalar(1.0)
    if s.count == 1:
        s.weight = vec4(one, z, z, z)
    elif s.count == 2:
        found = on_segment(s.apart[0], s.apart[1])
        s.weight = vec4(found[0], found[1], z, z)
    elif s.count == 3:
        found = on_triangle(s.apart[0], s.apart[1], s.apart[2])
        s.weight = vec4(found[0], found[1], found[2], z)
    else:
        least = scalar(1.0e30)
        left_out = wp.int32(0)
        while left_out < 3:
            i = (left_out + 1) % 3
            j = (left_out + 2) % 3
            found = on_triangle(s.apart[i], s.apart[j], s.apart[3])
            length = wp.length_sq(found[0] * s.apart[i] + found[1] * s.apart[j] + found[2] * s.apart[3])
            if length < least:
                least = length
                s.weight = vec4(z, z, z, found[2])
                s.weight[i] = found[0]
                s.weight[j] = found[1]
            left_out += 1
    kept = wp.int32(0)
    s.shortest = vec3(z, z, z)
    k = wp.int32(0)
    while k < s.count:
        if s.weight[k] > z:
            s.shortest = s.shortest + s.weight[k] * s.apart[k]
            s.weight[kept] = s.weight[k]
            s.apart[kept] = s.apart[k]
            s.first[kept] = s.first[k]
            s.second[kept] = s.second[k]
            s.first_corner[kept] = s.first_corner[k]
            s.second_corner[kept] = s.second_corner[k]
            kept += 1
        k += 1
    s.count = kept
    return s


@wp.func
def is_known(s: Simplex, first: int, second: int):
    """Whether a difference of two corners is one of the simplex."""
    known = bool(False)
    for k in range(s.count):
        if first >= 0 and second >= 0 and s.first_corner[k] == first and s.second_corner[k] == second:
            known = bool(True)
    return known


@wp.func(inline=False)
def shortest_difference(a: Solid, b: Solid, hulls: Hulls, shift: vec3, start: vec3, size: scalar):
    """The simplex of the shortest difference of the two cores, the first shifted, which must be apart."""
    s = Simplex()
    direction = start
    going = wp.int32(TURNS)
    while going > 0:
        going -= 1
        one = farthest(a, hulls, -direction)
        other = farthest(b, hulls, direction)
        a.began = wp.max(one.corner, 0)
        b.began = wp.max(other.corner, 0)
        apart = one.point + shift - other.point
        length = wp.length(s.shortest)
        if s.count > 0:
            gained = wp.dot(s.shortest, s.shortest - apart)
            if gained <= CLOSE * size * length or is_known(s, one.corner, other.corner):
                going = 0
        if going > 0:
            longer = s
            longer.apart[s.count] = apart
            longer.first[s.count] = one.point
            longer.second[s.count] = other.point
            longer.first_corner[s.count] = one.corner
            longer.second_corner[s.count] = other.corner
            longer.count = s.count + 1
            longer = weighted(longer)
            if s.count > 0 and wp.length(longer.shortest) >= length:
                going = 0  # rounding
            else:
                s = longer
                direction = s.shortest
    return s


@wp.func
def best_face(s: Solid, a: Solid, b: Solid, hulls: Hulls, normals: wp.array(dtype=vec3), best: vec3):
    """The best of a normal and those of the faces of one of the shapes, told as they lead to the first."""
    sense = scalar(-1.0)
    if s.first_face == b.first_face:
        sense = scalar(1.0)
    most = apart_along(a, b, hulls, best)
    if s.kind == POLYTOPE:
        for face in range(s.first_face, s.first_face + s.faces):
            normal = sense * face_normal_of(s, normals, face)
            along = apart_along(a, b, hulls, normal)
            if along > most:
                most = along
                best = normal
    return best


@wp.func
def first_normal(a: Solid, b: Solid, hulls: Hulls, normals: wp.array(dtype=vec3)):
    """The best of some normals to begin with: along the centres, or the axes or faces of either shape."""
    z = scalar(0.0)
    best = a.origin - b.origin
    length = wp.length(best)
    if length > LEAST:
        best = best / length
    else:
        best = vec3(z, z, scalar(1.0))
    most = apart_along(a, b, hulls, best)
    if most < z:
        k = wp.int32(0)
        while k < 12:
            axis = axis_of(a.turn, k % 3)
            if k >= 6:
                axis = axis_of(b.turn, k % 3)
            if k % 6 >= 3:
                axis = -axis
            along = apart_along(a, b, hulls, axis)
            if along > most:
                most = along
                best = axis
            k += 1
        if most < z:
            best = best_face(a, a, b, hulls, normals, best)
            best = best_face(b, a, b, hulls, normals, best)
    return best


@wp.func
def find_way(a: Solid, b: Solid, hulls: Hulls, normals: wp.array(dtype=vec3)):
    way = Way()
    way.normal = first_normal(a, b, hulls, normals)
    way.apart = apart_along(a, b, hulls, way.normal)
    size = a.bound + b.bound
    held = HELD * wp.min(a.bound, b.bound)
    going = wp.int32(SEARCHES)
    while going > 0:
        going -= 1
        push = wp.max(scalar(0.0), held - way.apart - a.radius - b.radius)
        way.simplex = shortest_difference(a, b, hulls, push * way.normal, way.normal, size)
        found = wp.normalize(way.simplex.shortest)
        if push == scalar(0.0) or wp.length(found - way.normal) < STAYS:
            going = 0
        along = apart_along(a, b, hulls, found)
        if push > scalar(0.0) and along < way.apart:
            going = 0  # rounding
        else:
            way.normal = found
            way.apart = along
    return way
