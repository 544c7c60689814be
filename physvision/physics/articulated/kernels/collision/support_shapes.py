"""Convex shapes as the general pair sees them: how far they reach in a direction, and their flat sides.

A polytope has corners, told as shares of its sizes, and faces, loops of corners that run anticlockwise as seen from
outside; a ball about each point makes a sphere of one corner and a capsule of two. A cylinder's reach is its own, as an
ellipsoid's is; the corners of a cylinder are of prisms within it, on which it stands, and the ends of its axis.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import transposed
from physvision.physics.articulated.kernels.structs import ContactMemory, Contacts

from .contact_primitives import LEAST, axis_of, scaled
from .ellipsoids import support

POLYTOPE = wp.constant(0)
ROUNDED = wp.constant(1)
CYLINDER = wp.constant(2)
ELLIPSOID = wp.constant(3)

UPRIGHT = wp.constant(scalar(1.0e-6 if DOUBLE else 1.0e-4))  # sine below which a cylinder stands on its cap, or lies
FEW = wp.constant(32)  # corners of which the farthest is found by looking at all of them
SEEN = wp.constant(scalar(0.7))  # cosine from which on a cylinder shows its cap


@wp.struct
class Solid:
    """A convex shape in the world."""

    kind: int
    turn: mat33
    origin: vec3
    size: vec3
    scale: vec3  # what makes places of shares
    radius: scalar  # about the core
    bound: scalar  # of a ball about the origin that holds it
    first_corner: int
    corners: int
    first_face: int
    faces: int
    began: int  # the corner from which the farthest one of many is looked for


@wp.struct
class Hulls:
    """The corners of all shapes, as shares of their sizes, and which corners edges lead to from each."""

    corner: wp.array(dtype=vec3)
    neighbour_start: wp.array(dtype=wp.int32)  # one more than there are corners
    neighbour: wp.array(dtype=wp.int32)


@wp.struct
class Farthest:
    """A point of a core that is farthest along a direction; of a polytope which corner it is."""

    point: vec3
    corner: int


@wp.func
def solid(
    kind: int,
    turn: mat33,
    origin: vec3,
    size: vec3,
    bound: scalar,
    first_corner: int,
    corners: int,
    first_face: int,
    faces: int,
):
    """The shape; its bound is told as a share of the sizes where it has corners."""
    s = Solid()
    s.kind = kind
    s.turn = turn
    s.origin = origin
    s.size = size
    s.scale = size
    s.radius = scalar(0.0)
    s.first_corner = first_corner
    s.corners = corners
    s.first_face = first_face
    s.faces = faces
    s.began = first_corner
    s.bound = bound * wp.max(size[0], wp.max(size[1], size[2]))
    if kind == CYLINDER:
        s.scale = vec3(size[0], size[0], size[2])
        s.bound = wp.sqrt(size[0] * size[0] + scalar(0.25) * size[2] * size[2])
    elif kind == ROUNDED:
        s.radius = size[0]
        s.bound = size[0] + scalar(0.5) * size[2]
    return s


@wp.func
def corner_of(s: Solid, hulls: Hulls, k: int):
    return s.origin + s.turn * scaled(hulls.corner[k], s.scale)


@wp.func
def highest(hulls: Hulls, began: int, direction: vec3):
    """The corner of a polytope that is farthest along a direction, by edges that lead uphill from one of its corners.

    From a corner that is not the farthest one of all some edge does lead uphill, for the shape is convex.
    """
    top = wp.int32(began)
    best = wp.dot(direction, hulls.corner[top])
    climbing = bool(True)
    while climbing:
        climbing = bool(False)
        here = wp.int32(top)
        for edge in range(hulls.neighbour_start[here], hulls.neighbour_start[here + 1]):
            other = hulls.neighbour[edge]
            along = wp.dot(direction, hulls.corner[other])
            if along > best:
                best = along
                top = other
                climbing = bool(True)
    return top


@wp.func(inline=False)
def farthest(s: Solid, hulls: Hulls, direction: vec3):
    found = Farthest()
    found.corner = -1
    if s.kind == ELLIPSOID:
        found.point = s.origin + support(s.turn, s.size, direction)
    elif s.kind == CYLINDER:
        local = transposed(s.turn, direction)
        across = wp.max(wp.sqrt(local[0] * local[0] + local[1] * local[1]), LEAST)
        out = s.size[0] / across
        end = scalar(0.5) * wp.sign(local[2]) * s.size[2]
        found.point = s.origin + s.turn * vec3(out * local[0], out * local[1], end)
    else:
        local = scaled(transposed(s.turn, direction), s.scale)
        if s.corners > FEW:
            found.corner = highest(hulls, s.began, local)
        else:
            best = scalar(-1.0e30)
            for k in range(s.first_corner, s.first_corner + s.corners):
                along = wp.dot(local, hulls.corner[k])
                if along > best:
                    best = along
                    found.corner = k
        found.point = corner_of(s, hulls, found.corner)
    return found


@wp.func(inline=False)
def apart_along(a: Solid, b: Solid, hulls: Hulls, normal: vec3):
    """How far the second shape is behind the first along a normal that leads to the first."""
    between = farthest(a, hulls, -normal).point - farthest(b, hulls, normal).point
    return wp.dot(normal, between) - a.radius - b.radius


@wp.func
def face_normal_of(s: Solid, normals: wp.array(dtype=vec3), face: int):
    """A face's normal in the world; as the sizes stretch a face its normal turns."""
    n = normals[face]
    return s.turn * wp.normalize(vec3(n[0] / s.scale[0], n[1] / s.scale[1], n[2] / s.scale[2]))


@wp.func
def face_towards(s: Solid, normals: wp.array(dtype=vec3), direction: vec3):
    """The face that looks most along a direction: of a cylinder a cap, or its axis where it shows its side; or −1."""
    found = wp.int32(-1)
    if s.kind == CYLINDER:
        along = wp.dot(direction, axis_of(s.turn, 2))
        found = s.first_face + 2
        if along > SEEN:
            found = s.first_face
        elif along < -SEEN:
            found = s.first_face + 1
    elif s.kind == ROUNDED:
        if s.faces > 0:
            found = s.first_face
    elif s.kind == POLYTOPE:
        local = transposed(s.turn, direction)
        best = scalar(-2.0)
        for k in range(s.first_face, s.first_face + s.faces):
            n = normals[k]
            stretched = vec3(n[0] / s.scale[0], n[1] / s.scale[1], n[2] / s.scale[2])
            along = wp.dot(local, stretched) / wp.length(stretched)
            if along > best:
                best = along
                found = k
    return found


@wp.func
def is_flat(s: Solid, face: int):
    """Whether what `face_towards` found is a face, and not the axis of something round."""
    return face >= 0 and (s.kind == POLYTOPE or (s.kind == CYLINDER and face < s.first_face + 2))


@wp.func
def share_at(s: Solid, place: vec3):
    """How a point of a shape moves as its sizes grow, along its own axes; of a cylinder along its axis alone."""
    local = transposed(s.turn, place - s.origin)
    z = scalar(0.0)
    if s.kind == CYLINDER or s.kind == ROUNDED:
        return vec3(z, z, local[2] / wp.max(s.size[2], LEAST))
    return vec3(local[0] / s.size[0], local[1] / s.size[1], local[2] / s.size[2])


@wp.func(inline=True)
def solid_of(contacts: Contacts, memory: ContactMemory, world: int, shape: int):
    """A shape as the general pair sees it."""
    first_corner = contacts.solid_corner[shape]
    first_face = contacts.solid_face[shape]
    return solid(
        contacts.solid_kind[shape],
        memory.shape_turn[world, shape],
        memory.shape_origin[world, shape],
        contacts.shape_size[world, shape],
        contacts.solid_bound[shape],
        first_corner,
        contacts.solid_corner[shape + 1] - first_corner,
        first_face,
        contacts.solid_face[shape + 1] - first_face,
    )


@wp.func(inline=True)
def hulls_of(contacts: Contacts):
    hulls = Hulls()
    hulls.corner = contacts.corner
    hulls.neighbour_start = contacts.neighbour_start
    hulls.neighbour = contacts.neighbour
    return hulls
