"""Closest points of two general convex shapes, or their least penetration.

`manifold` adds points where flat sides meet.

`gjk` finds the normal, approximately for round surfaces, and a few points of each shape. The closest feature of either
shape can be a point, a line or a face; each choice has a normal in closed form, or by Newton's method. The separation
is largest along the true normal, so the right choice is the one with the largest separation.
"""

import warp as wp

from ..precision import scalar, vec3
from ..spatial.vectors import column
from ..structs import HullModel
from .closest_features import (
    Feature,
    axis_point,
    is_flat_contact,
    line_line_primitive,
    material_point,
    point_face_primitive,
    share_side_normal,
    smooth_primitive,
    support_feature,
)
from .contact_primitives import MIN_LENGTH, PARALLEL_SINE_SQUARED, POINTS, ContactPrimitive
from .gjk import SeparatingDirection, Simplex, find_separating_direction
from .settings import COLLISION
from .support_shapes import (
    CYLINDER,
    ConvexShape,
    face_towards,
    is_flat,
    separation_along,
    support_point,
    vertex_position,
    world_face_normal,
)

MIN_IMPROVEMENT = wp.constant(scalar(COLLISION.min_improvement))
MAX_SIDE_SINE = wp.constant(scalar(COLLISION.max_side_sine))
MAX_SEARCH_SEPARATION = wp.constant(scalar(COLLISION.max_search_separation))


@wp.struct
class SupportVertices:
    """Vertices of a polytope that form its closest point, by decreasing weight; -1 for none."""

    first: int
    second: int
    third: int


@wp.func
def vertex_weight(simplex: Simplex, vertices: wp.vec4i, vertex: int):
    """Return the total weight of a vertex in a simplex."""
    weight = scalar(0.0)
    k = wp.int32(0)
    while k < simplex.count:
        if vertices[k] == vertex:
            weight += simplex.weight[k]
        k += 1
    return weight


@wp.func
def heaviest_vertices(simplex: Simplex, vertices: wp.vec4i):
    """Return the up to three vertices of a simplex with the largest weights."""
    result = SupportVertices()
    result.first = -1
    result.second = -1
    result.third = -1
    k = wp.int32(0)
    while k < simplex.count:
        vertex = vertices[k]
        if vertex != result.first and vertex != result.second and vertex != result.third:
            weight = vertex_weight(simplex, vertices, vertex)
            if result.first < 0 or weight > vertex_weight(simplex, vertices, result.first):
                result.third = result.second
                result.second = result.first
                result.first = vertex
            elif result.second < 0 or weight > vertex_weight(simplex, vertices, result.second):
                result.third = result.second
                result.second = vertex
            else:
                result.third = vertex
        k += 1
    return result


@wp.func
def line_feature(s: ConvexShape, hulls: HullModel, support: SupportVertices, normal: vec3):
    """Return the edge between the two heaviest vertices, or the axis of a cylinder that lies on its side.

    Else an empty point.
    """
    feature = Feature()
    if s.kind == CYLINDER:
        axis = column(s.rotation, 2)
        if wp.abs(wp.dot(axis, normal)) < scalar(0.5):
            feature = axis_point(s, s.origin)
            feature.is_line = 1
            feature.axis = axis
    elif support.second >= 0:
        start = vertex_position(s, hulls, support.first)
        along = vertex_position(s, hulls, support.second) - start
        feature = material_point(s, start)
        feature.is_line = 1
        feature.axis = along / wp.max(wp.length(along), MIN_LENGTH)
    return feature


@wp.func
def vertex_plane_normal(s: ConvexShape, hulls: HullModel, support: SupportVertices, normal: vec3):
    """Return the normal of the plane through three vertices, on the side of a given normal; else that one."""
    result = normal
    if support.third >= 0:
        start = vertex_position(s, hulls, support.first)
        cross = wp.cross(
            vertex_position(s, hulls, support.second) - start, vertex_position(s, hulls, support.third) - start
        )
        length = wp.length(cross)
        if length > MIN_LENGTH:
            result = wp.sign(wp.dot(cross, normal)) * cross / length
    return result


@wp.func
def select_primitive(a: ConvexShape, b: ConvexShape, hulls: HullModel, search: SeparatingDirection):
    """Return the primitive with the largest separation near the normal of the search."""
    n = search.normal
    size = wp.min(a.bounding_radius, b.bounding_radius)
    first = vec3()
    second = vec3()
    k = wp.int32(0)
    while k < search.simplex.count:
        first = first + search.simplex.weight[k] * search.simplex.first[k]
        second = second + search.simplex.weight[k] * search.simplex.second[k]
        k += 1
    primitive = ContactPrimitive()
    primitive.normal = n
    best = scalar(-1.0e30)
    face = face_towards(b, hulls, n)
    side_normal = vec3()
    is_flat_on_flat = bool(False)
    if is_flat(b, face):
        m = world_face_normal(b, hulls, face)
        side_normal = m
        primitive = point_face_primitive(
            a, b, m, support_feature(a, hulls, -m, first), support_point(b, hulls, m).point, False
        )
        best = separation_along(a, b, hulls, m)
    face = face_towards(a, hulls, -n)
    if is_flat(a, face):
        m = -world_face_normal(a, hulls, face)
        is_flat_on_flat = is_flat_contact(-m, side_normal)
        separation = separation_along(a, b, hulls, m)
        if separation > best + MIN_IMPROVEMENT * size:
            primitive = point_face_primitive(
                a, b, m, support_feature(b, hulls, m, second), support_point(a, hulls, -m).point, True
            )
            best = separation
    if best < search.separation - MIN_IMPROVEMENT * size:
        # Planes through three vertices, for faces that are flat up to rounding.
        first_support = heaviest_vertices(search.simplex, search.simplex.first_vertex)
        second_support = heaviest_vertices(search.simplex, search.simplex.second_vertex)
        if second_support.third >= 0:
            m = vertex_plane_normal(b, hulls, second_support, n)
            separation = separation_along(a, b, hulls, m)
            if separation > best + MIN_IMPROVEMENT * size:
                primitive = point_face_primitive(a, b, m, support_feature(a, hulls, -m, first), second, False)
                best = separation
        if first_support.third >= 0:
            m = vertex_plane_normal(a, hulls, first_support, n)
            separation = separation_along(a, b, hulls, m)
            if separation > best + MIN_IMPROVEMENT * size:
                primitive = point_face_primitive(a, b, m, support_feature(b, hulls, m, second), first, True)
                best = separation
        first_line = line_feature(a, hulls, first_support, n)
        second_line = line_feature(b, hulls, second_support, n)
        cross = wp.cross(first_line.axis, second_line.axis)
        length = wp.length(cross)
        if length * length > PARALLEL_SINE_SQUARED:
            m = cross / length
            if wp.dot(m, n) < scalar(0.0):
                m = -m
            separation = separation_along(a, b, hulls, m)
            if separation > best + MIN_IMPROVEMENT * size:
                primitive = line_line_primitive(a, b, m, first_line, second_line)
                best = separation
        choice = wp.int32(0)
        while choice < 3 and best < search.separation - MIN_IMPROVEMENT * size:
            # A line of the first shape, of the second, or of neither.
            left = first_line
            right = second_line
            if choice != 0:
                left.is_line = 0
            if choice != 1:
                right.is_line = 0
            if choice == 2 or left.is_line + right.is_line > 0:
                candidate = smooth_primitive(a, b, hulls, n, left, right, first, second)
                separation = separation_along(a, b, hulls, candidate.normal)
                if separation > best + MIN_IMPROVEMENT * size:
                    primitive = candidate
                    best = separation
            choice += 1
        if best < search.separation - MIN_IMPROVEMENT * size:
            # Vertices that coincide, or edges that are parallel: the normal of the search, on the second shape.
            primitive = point_face_primitive(
                a, b, n, support_feature(a, hulls, -n, first), support_point(b, hulls, n).point, False
            )
            primitive.is_ambiguous = 1
    if is_flat_on_flat and wp.length(wp.cross(primitive.normal, side_normal)) < MAX_SIDE_SINE:
        primitive = share_side_normal(primitive, side_normal)
    return primitive


@wp.func(inline=False)
def convex_primitive(a: ConvexShape, b: ConvexShape, hulls: HullModel):
    """Return the primitive of the closest points of two convex shapes."""
    difference = a.origin - b.origin
    length = wp.length(difference)
    size = a.bounding_radius + b.bounding_radius
    primitive = ContactPrimitive()
    if length - size > MAX_SEARCH_SEPARATION * size:
        primitive.form = POINTS
        primitive.first_point = a.origin
        primitive.second_point = b.origin
        primitive.first_radius = a.bounding_radius
        primitive.second_radius = b.bounding_radius
        primitive.normal = difference / length
        primitive.separation = length - size
    else:
        primitive = select_primitive(a, b, hulls, find_separating_direction(a, b, hulls))
    return primitive
