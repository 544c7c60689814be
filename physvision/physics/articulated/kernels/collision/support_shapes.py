"""Convex shapes by their support function and their flat sides, for the general convex pair.

A polytope has vertices, given as shares of its sizes, and faces, loops of vertices that run counterclockwise as seen
from outside; with a radius about every point, a single vertex is a sphere and two vertices are a capsule. Cylinders and
ellipsoids have support functions of their own; the vertices of a cylinder are those of prisms inside it, on which it
stands, and the ends of its axis.
"""

import warp as wp

from ..precision import mat33, scalar, vec3
from ..spatial.vectors import column, transpose_product
from ..structs import Contact, HullModel, Model, System
from .contact_primitives import MIN_LENGTH, elementwise_product
from .ellipsoids import ellipsoid_support
from .settings import COLLISION

POLYTOPE = wp.constant(0)
ROUNDED = wp.constant(1)
CYLINDER = wp.constant(2)
ELLIPSOID = wp.constant(3)

MIN_TILT_SINE = wp.constant(scalar(COLLISION.min_tilt_sine))
MAX_EXHAUSTIVE_VERTICES = wp.constant(COLLISION.max_exhaustive_vertices)
MIN_CAP_COSINE = wp.constant(scalar(COLLISION.min_cap_cosine))


@wp.struct
class ConvexShape:
    """Convex shape with its pose in the world."""

    kind: int
    rotation: mat33
    origin: vec3
    size: vec3
    scale: vec3  # factors of vertex coordinates
    radius: scalar  # about the core
    bounding_radius: scalar  # about the origin
    first_vertex: int
    num_vertices: int
    first_face: int
    num_faces: int
    start_vertex: int  # vertex at which a search for the farthest begins


@wp.struct
class SupportPoint:
    """Point of a core that is farthest along a direction; for a polytope also the index of the vertex."""

    point: vec3
    vertex: int


@wp.func
def make_convex_shape(
    kind: int,
    rotation: mat33,
    origin: vec3,
    size: vec3,
    bound: scalar,
    first_vertex: int,
    vertices: int,
    first_face: int,
    faces: int,
):
    """Return the shape; its bounding radius is given as a share of the largest size if it has vertices."""
    s = ConvexShape()
    s.kind = kind
    s.rotation = rotation
    s.origin = origin
    s.size = size
    s.scale = size
    s.radius = scalar(0.0)
    s.first_vertex = first_vertex
    s.num_vertices = vertices
    s.first_face = first_face
    s.num_faces = faces
    s.start_vertex = first_vertex
    s.bounding_radius = bound * wp.max(size[0], wp.max(size[1], size[2]))
    if kind == CYLINDER:
        s.scale = vec3(size[0], size[0], size[2])
        s.bounding_radius = wp.sqrt(size[0] * size[0] + scalar(0.25) * size[2] * size[2])
    elif kind == ROUNDED:
        s.radius = size[0]
        s.bounding_radius = size[0] + scalar(0.5) * size[2]
    return s


@wp.func
def vertex_position(s: ConvexShape, hulls: HullModel, k: int):
    """Return the position of vertex k in the world."""
    return s.origin + s.rotation * elementwise_product(hulls.vertex[k], s.scale)


@wp.func
def hill_climb_support(hulls: HullModel, start: int, direction: vec3):
    """Return the farthest vertex of a polytope along a direction, by edges that lead uphill from a start vertex.

    A vertex that is not the farthest has an uphill edge, since the shape is convex.
    """
    top = wp.int32(start)
    best = wp.dot(direction, hulls.vertex[top])
    is_climbing = bool(True)
    while is_climbing:
        is_climbing = bool(False)
        current = wp.int32(top)
        for edge in range(hulls.neighbor_start[current], hulls.neighbor_start[current + 1]):
            neighbor = hulls.neighbor[edge]
            along = wp.dot(direction, hulls.vertex[neighbor])
            if along > best:
                best = along
                top = neighbor
                is_climbing = bool(True)
    return top


@wp.func(inline=False)
def support_point(s: ConvexShape, hulls: HullModel, direction: vec3):
    """Return the point of the core of a shape that is farthest along a direction."""
    support = SupportPoint()
    support.vertex = -1
    if s.kind == ELLIPSOID:
        support.point = s.origin + ellipsoid_support(s.rotation, s.size, direction)
    elif s.kind == CYLINDER:
        local = transpose_product(s.rotation, direction)
        radial = wp.max(wp.sqrt(local[0] * local[0] + local[1] * local[1]), MIN_LENGTH)
        scale = s.size[0] / radial
        end = scalar(0.5) * wp.sign(local[2]) * s.size[2]
        support.point = s.origin + s.rotation * vec3(scale * local[0], scale * local[1], end)
    else:
        local = elementwise_product(transpose_product(s.rotation, direction), s.scale)
        if s.num_vertices > MAX_EXHAUSTIVE_VERTICES:
            support.vertex = hill_climb_support(hulls, s.start_vertex, local)
        else:
            best = scalar(-1.0e30)
            for k in range(s.first_vertex, s.first_vertex + s.num_vertices):
                along = wp.dot(local, hulls.vertex[k])
                if along > best:
                    best = along
                    support.vertex = k
        support.point = vertex_position(s, hulls, support.vertex)
    return support


@wp.func(inline=False)
def separation_along(a: ConvexShape, b: ConvexShape, hulls: HullModel, normal: vec3):
    """Return the separation of two shapes along a normal that points to the first."""
    difference = support_point(a, hulls, -normal).point - support_point(b, hulls, normal).point
    return wp.dot(normal, difference) - a.radius - b.radius


@wp.func
def world_face_normal(s: ConvexShape, hulls: HullModel, face: int):
    """Return the normal of a face in the world; it changes with the sizes that scale the face."""
    n = hulls.face_normal[face]
    return s.rotation * wp.normalize(vec3(n[0] / s.scale[0], n[1] / s.scale[1], n[2] / s.scale[2]))


@wp.func
def face_towards(s: ConvexShape, hulls: HullModel, direction: vec3):
    """Return the face that points most along a direction, or -1.

    For a cylinder it is a cap, or its axis if it lies on its side.
    """
    result = wp.int32(-1)
    if s.kind == CYLINDER:
        along = wp.dot(direction, column(s.rotation, 2))
        result = s.first_face + 2
        if along > MIN_CAP_COSINE:
            result = s.first_face
        elif along < -MIN_CAP_COSINE:
            result = s.first_face + 1
    elif s.kind == ROUNDED:
        if s.num_faces > 0:
            result = s.first_face
    elif s.kind == POLYTOPE:
        local = transpose_product(s.rotation, direction)
        best = scalar(-2.0)
        for k in range(s.first_face, s.first_face + s.num_faces):
            n = hulls.face_normal[k]
            scaled = vec3(n[0] / s.scale[0], n[1] / s.scale[1], n[2] / s.scale[2])
            along = wp.dot(local, scaled) / wp.length(scaled)
            if along > best:
                best = along
                result = k
    return result


@wp.func
def is_flat(s: ConvexShape, face: int):
    """Return True if `face` is a face, not the axis of a round shape."""
    return face >= 0 and (s.kind == POLYTOPE or (s.kind == CYLINDER and face < s.first_face + 2))


@wp.func
def size_derivative(s: ConvexShape, point: vec3):
    """Return the motion of a point of a shape as its sizes grow, along its own axes.

    For a cylinder along its axis only.
    """
    local = transpose_product(s.rotation, point - s.origin)
    z = scalar(0.0)
    if s.kind == CYLINDER or s.kind == ROUNDED:
        return vec3(z, z, local[2] / wp.max(s.size[2], MIN_LENGTH))
    return vec3(local[0] / s.size[0], local[1] / s.size[1], local[2] / s.size[2])


@wp.func(inline=True)
def convex_shape(contact: Contact, s: System, world: int, shape: int):
    """Return a shape of the model as a convex shape."""
    first_vertex = s.model.shapes.first_vertex[shape]
    first_face = s.model.shapes.first_face[shape]
    return make_convex_shape(
        s.model.shapes.kind[shape],
        contact.detection.shape_rotation[world, shape],
        contact.detection.shape_origin[world, shape],
        s.model.shapes.size[world, shape],
        s.model.shapes.bounding_radius[shape],
        first_vertex,
        s.model.shapes.first_vertex[shape + 1] - first_vertex,
        first_face,
        s.model.shapes.first_face[shape + 1] - first_face,
    )


@wp.func(inline=True)
def hull_table(model: Model):
    """Return a copy of the hulls, apart from `model`, for functions that are not inlined."""
    h = model.hulls
    return HullModel(h.vertex, h.neighbor_start, h.neighbor, h.face_normal, h.loop_start, h.loop)
