"""Closest points of a box and an ellipsoid: of the box's corners, edges and faces, each a pair of its own.

The ellipsoid's normal at the point closest to a corner or edge must lead out of the box there, between the faces that
meet; a face takes part where the ellipsoid's point farthest below it lies within its borders. Apart, exactly one of
these holds. Elsewhere the gap is `APART`.
"""

import warp as wp

from . import scalar
from .edges import APART, edge_direction, edge_length, leads_out
from .ellipsoids import ellipsoid_plane, segment_ellipsoid, to_ellipsoid
from .forms import LINE_SMOOTH, Closest, axis_of, scaled
from .spatial import mat33, transposed, vec3

BORDER = wp.constant(scalar(1.0e-6))  # m beyond its border at which a face still takes part


@wp.func
def corner_ellipsoid(near: Closest, turn_a: mat33, corner: vec3, turn: mat33, origin: vec3, radii: vec3):
    """A corner of a box, which is `first` already."""
    near = to_ellipsoid(near, turn, origin, radii)
    if near.gap < -wp.min(radii) or not leads_out(-near.normal, turn_a, corner):
        near.gap = wp.max(near.gap, APART)
    return near


@wp.func
def edge_ellipsoid(
    near: Closest, turn_a: mat33, origin_a: vec3, size_a: vec3, edge: vec3, turn: mat33, origin: vec3, radii: vec3
):
    axis = edge_direction(turn_a, edge)
    middle = origin_a + turn_a * scaled(edge, size_a)
    z = scalar(0.0)
    along = mat33(z, z, axis[0], z, z, axis[1], z, z, axis[2])
    near = segment_ellipsoid(near, along, middle, vec3(z, z, edge_length(size_a, edge)), turn, origin, radii)
    near.first_share = edge
    inside = near.form == LINE_SMOOTH and near.gap > -wp.min(radii)
    if not inside or not leads_out(-near.normal, turn_a, edge):
        near.gap = wp.max(near.gap, APART)
    return near


@wp.func
def ellipsoid_face(
    near: Closest, turn_a: mat33, origin_a: vec3, radii: vec3, turn: mat33, origin: vec3, size: vec3, face: vec3
):
    """An ellipsoid and a face of a box; deep in the box, the face that its centre is least below."""
    half = scalar(0.5) * size
    normal = scalar(2.0) * (turn * face)
    first = wp.cross(normal, axis_of(turn, 0))
    if wp.abs(face[0]) > scalar(0.0):
        first = axis_of(turn, 1)
    first = wp.normalize(first)
    second = wp.cross(normal, first)
    plane = mat33(
        first[0], second[0], normal[0], first[1], second[1], normal[1], first[2], second[2], normal[2],
    )  # fmt: skip
    near = ellipsoid_plane(near, turn_a, origin_a, radii, plane, origin + turn * scaled(face, size))
    near.second_share = face
    local = transposed(turn, near.first - origin)
    center = transposed(turn, origin_a - origin)
    own = scalar(2.0) * wp.dot(face, center)
    least = scalar(-1.0e30)
    within = bool(True)
    for k in range(3):
        least = wp.max(least, wp.abs(center[k]) - half[k])
        if face[k] == scalar(0.0):
            if wp.abs(local[k]) > half[k] + BORDER:
                within = bool(False)
        else:
            own = own - half[k]
    if not within or (own <= scalar(0.0) and own < least):
        near.gap = wp.max(near.gap, APART)
    return near
