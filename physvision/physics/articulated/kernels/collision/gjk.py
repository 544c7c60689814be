"""Direction of largest separation, or of least penetration, of two convex shapes.

The shortest difference of two points of the shapes is the point of the Minkowski difference closest to the origin.
The algorithm of Gilbert, Johnson and Keerthi finds it from few points of that set: the closest point of the hull of
these gives the direction in which the next point is searched, until there is no progress.

Shapes that touch have no nonzero shortest difference. Moved apart along a normal n by t, they have one, and for n′
along it f(n′) ≥ f(n) with the separation f along a normal: the shortest difference maximizes f(m) + t m · n over all m.
So n improves until it is stationary. It then has two points of the shapes that differ by f(n) n, hence f(m) ≤ |f(n)|
for all m. If f(n) is positive, or zero up to a tolerance, n is the normal; if not, another one may be better, even one
along which the shapes are separate: `penetration` has the least of all.
"""

import warp as wp

from ..precision import mat43, scalar, vec3, vec4
from ..spatial.vectors import column
from ..structs import HullModel
from .contact_primitives import MIN_LENGTH
from .penetration import least_penetration_normal
from .settings import COLLISION
from .support_shapes import (
    MAX_EXHAUSTIVE_VERTICES,
    POLYTOPE,
    ConvexShape,
    separation_along,
    support_point,
    world_face_normal,
)

LENGTH_TOLERANCE = wp.constant(scalar(COLLISION.length_tolerance))
PROBE_DISTANCE_FRACTION = wp.constant(scalar(COLLISION.hold_distance))
MIN_IMPROVEMENT = wp.constant(scalar(COLLISION.min_improvement))
SHALLOW_PENETRATION = wp.constant(scalar(COLLISION.shallow_penetration))
DIRECTION_TOLERANCE = wp.constant(scalar(COLLISION.direction_tolerance))
MAX_SEARCHES = wp.constant(COLLISION.max_searches)
MAX_ITERATIONS = wp.constant(COLLISION.max_search_iterations)


@wp.struct
class Simplex:
    """Up to four differences of two points, with the weights of the shortest point of their hull."""

    count: int
    difference: mat43
    first: mat43
    second: mat43
    first_vertex: wp.vec4i
    second_vertex: wp.vec4i
    weight: vec4
    shortest: vec3


@wp.struct
class SeparatingDirection:
    """Normal, closest points of the shapes when moved apart along it, and the separation before that."""

    normal: vec3
    separation: scalar
    simplex: Simplex


@wp.func
def segment_weights(p: vec3, q: vec3):
    """Return the weights of two points that give the point of their segment closest to the origin."""
    d = q - p
    t = wp.clamp(-wp.dot(p, d) / wp.max(wp.dot(d, d), MIN_LENGTH), scalar(0.0), scalar(1.0))
    return vec3(scalar(1.0) - t, t, scalar(0.0))


@wp.func
def triangle_weights(p: vec3, q: vec3, r: vec3):
    """Return the weights of three points that give the point of their triangle closest to the origin."""
    normal = wp.cross(q - p, r - p)
    u = wp.dot(normal, wp.cross(q, r))
    v = wp.dot(normal, wp.cross(r, p))
    w = wp.dot(normal, wp.cross(p, q))
    z = scalar(0.0)
    if u > z and v > z and w > z:
        return vec3(u, v, w) / (u + v + w)
    best = segment_weights(p, q)
    shortest = wp.length_sq(best[0] * p + best[1] * q)
    candidate = segment_weights(q, r)
    length = wp.length_sq(candidate[0] * q + candidate[1] * r)
    if length < shortest:
        shortest = length
        best = vec3(z, candidate[0], candidate[1])
    candidate = segment_weights(r, p)
    length = wp.length_sq(candidate[0] * r + candidate[1] * p)
    if length < shortest:
        best = vec3(candidate[1], z, candidate[0])
    return best


@wp.func
def reduce_simplex(s: Simplex):
    """Compute the weights of the shortest difference, and remove points without weight.

    Of four points the last is new, and the shortest difference lies on a face that contains it.
    """
    z = scalar(0.0)
    unit = scalar(1.0)
    if s.count == 1:
        s.weight = vec4(unit, z, z, z)
    elif s.count == 2:
        weights = segment_weights(s.difference[0], s.difference[1])
        s.weight = vec4(weights[0], weights[1], z, z)
    elif s.count == 3:
        weights = triangle_weights(s.difference[0], s.difference[1], s.difference[2])
        s.weight = vec4(weights[0], weights[1], weights[2], z)
    else:
        min_length = scalar(1.0e30)
        omitted = wp.int32(0)
        while omitted < 3:
            i = (omitted + 1) % 3
            j = (omitted + 2) % 3
            weights = triangle_weights(s.difference[i], s.difference[j], s.difference[3])
            length = wp.length_sq(
                weights[0] * s.difference[i] + weights[1] * s.difference[j] + weights[2] * s.difference[3]
            )
            if length < min_length:
                min_length = length
                s.weight = vec4(z, z, z, weights[2])
                s.weight[i] = weights[0]
                s.weight[j] = weights[1]
            omitted += 1
    remaining = wp.int32(0)
    s.shortest = vec3(z, z, z)
    k = wp.int32(0)
    while k < s.count:
        if s.weight[k] > z:
            s.shortest = s.shortest + s.weight[k] * s.difference[k]
            s.weight[remaining] = s.weight[k]
            s.difference[remaining] = s.difference[k]
            s.first[remaining] = s.first[k]
            s.second[remaining] = s.second[k]
            s.first_vertex[remaining] = s.first_vertex[k]
            s.second_vertex[remaining] = s.second_vertex[k]
            remaining += 1
        k += 1
    s.count = remaining
    return s


@wp.func
def contains_difference(s: Simplex, first: int, second: int):
    """Return True if the difference of two vertices is part of the simplex."""
    result = bool(False)
    for k in range(s.count):
        if first >= 0 and second >= 0 and s.first_vertex[k] == first and s.second_vertex[k] == second:
            result = bool(True)
    return result


@wp.func(inline=False)
def shortest_difference(a: ConvexShape, b: ConvexShape, hulls: HullModel, shift: vec3, start: vec3, size: scalar):
    """Return the simplex of the shortest difference of two separate cores, the first of which is shifted."""
    s = Simplex()
    direction = start
    iterations = wp.int32(MAX_ITERATIONS)
    while iterations > 0:
        iterations -= 1
        first = support_point(a, hulls, -direction)
        second = support_point(b, hulls, direction)
        a.start_vertex = wp.max(first.vertex, 0)
        b.start_vertex = wp.max(second.vertex, 0)
        difference = first.point + shift - second.point
        length = wp.length(s.shortest)
        if s.count > 0:
            progress = wp.dot(s.shortest, s.shortest - difference)
            if progress <= LENGTH_TOLERANCE * size * length or contains_difference(s, first.vertex, second.vertex):
                iterations = 0
        if iterations > 0:
            extended = s
            extended.difference[s.count] = difference
            extended.first[s.count] = first.point
            extended.second[s.count] = second.point
            extended.first_vertex[s.count] = first.vertex
            extended.second_vertex[s.count] = second.vertex
            extended.count = s.count + 1
            extended = reduce_simplex(extended)
            if s.count > 0 and wp.length(extended.shortest) >= length:
                iterations = 0  # no progress because of rounding
            else:
                s = extended
                direction = s.shortest
    return s


@wp.func
def best_face_normal(s: ConvexShape, a: ConvexShape, b: ConvexShape, hulls: HullModel, best: vec3):
    """Return the normal of largest separation among `best` and the face normals of shape s, which is a or b."""
    orientation = scalar(-1.0)
    if s.first_face == b.first_face:
        orientation = scalar(1.0)
    max_separation = separation_along(a, b, hulls, best)
    if s.kind == POLYTOPE and s.num_faces <= MAX_EXHAUSTIVE_VERTICES:
        for face in range(s.first_face, s.first_face + s.num_faces):
            normal = orientation * world_face_normal(s, hulls, face)
            separation = separation_along(a, b, hulls, normal)
            if separation > max_separation:
                max_separation = separation
                best = normal
    return best


@wp.func
def initial_normal(a: ConvexShape, b: ConvexShape, hulls: HullModel):
    """Return the initial normal of largest separation: of the line of centers, axes and face normals of the shapes."""
    z = scalar(0.0)
    best = a.origin - b.origin
    length = wp.length(best)
    if length > MIN_LENGTH:
        best = best / length
    else:
        best = vec3(z, z, scalar(1.0))
    max_separation = separation_along(a, b, hulls, best)
    if max_separation < z:
        k = wp.int32(0)
        while k < 12:
            axis = column(a.rotation, k % 3)
            if k >= 6:
                axis = column(b.rotation, k % 3)
            if k % 6 >= 3:
                axis = -axis
            separation = separation_along(a, b, hulls, axis)
            if separation > max_separation:
                max_separation = separation
                best = axis
            k += 1
        if max_separation < z:
            best = best_face_normal(a, a, b, hulls, best)
            best = best_face_normal(b, a, b, hulls, best)
    return best


@wp.func(inline=False)
def search_from(a: ConvexShape, b: ConvexShape, hulls: HullModel, normal: vec3):
    """Return a stationary normal near a given one, along which the shapes are held apart where they penetrate."""
    result = SeparatingDirection()
    result.normal = normal
    result.separation = separation_along(a, b, hulls, normal)
    size = a.bounding_radius + b.bounding_radius
    hold_distance = PROBE_DISTANCE_FRACTION * wp.min(a.bounding_radius, b.bounding_radius)
    iterations = wp.int32(MAX_SEARCHES)
    while iterations > 0:
        iterations -= 1
        shift_distance = wp.max(scalar(0.0), hold_distance - result.separation - a.radius - b.radius)
        result.simplex = shortest_difference(a, b, hulls, shift_distance * result.normal, result.normal, size)
        normal = wp.normalize(result.simplex.shortest)
        if shift_distance == scalar(0.0) or wp.length(normal - result.normal) < DIRECTION_TOLERANCE:
            iterations = 0
        separation = separation_along(a, b, hulls, normal)
        if shift_distance > scalar(0.0) and separation < result.separation:
            iterations = 0  # no progress because of rounding
        else:
            result.normal = normal
            result.separation = separation
    return result


@wp.func
def find_separating_direction(a: ConvexShape, b: ConvexShape, hulls: HullModel):
    """Find the normal of largest separation, or of least penetration.

    A stationary normal is the one sought if the shapes are separate along it, or only just touch: no other separates
    them by more than the points that it finds differ. Otherwise the shapes may be separate along another one, which
    the shortest difference shows, or penetrate less.
    """
    size = a.bounding_radius + b.bounding_radius
    result = search_from(a, b, hulls, initial_normal(a, b, hulls))
    core_separation = result.separation + a.radius + b.radius
    if core_separation > scalar(0.0) or core_separation < -SHALLOW_PENETRATION * size:
        separated = SeparatingDirection()
        separated.simplex = shortest_difference(a, b, hulls, vec3(), result.normal, size)
        separated.normal = wp.normalize(separated.simplex.shortest)
        separated.separation = separation_along(a, b, hulls, separated.normal)
        if separated.separation > wp.max(result.separation, -a.radius - b.radius):
            result = separated
        elif core_separation < scalar(0.0):
            normal = least_penetration_normal(a, b, hulls, result.normal)
            if separation_along(a, b, hulls, normal) > result.separation + MIN_IMPROVEMENT * size:
                result = search_from(a, b, hulls, normal)
    return result
