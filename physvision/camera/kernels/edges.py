"""Edge functions: positive for rays that hit, zero on the silhouette, with their derivatives.

Each is a polynomial in the ray (o, d) without a root or a quotient, so that the outline of every shape is a line or
a conic of the screen. With m the vector from the relevant center to o and r the radius:

    side of a polygon A → B:   d · ((A − o) × (B − A))
    disc:                      r² d_z² − |m_xy d_z − m_z d_xy|²
    sphere:                    r² |d|² − |m × d|²
    infinite tube along z:     r² |d_xy|² − ((m × d)_z)²
    horizon of a plane:        −o_z d_z / |o_z|

The ends of capsules and cylinders are spheres and discs with m shifted by half the length.
"""

import warp as wp

from .precision import scalar
from .scene import CAPSULE, DISC, HALF, ONE, PLANE, SPHERE, TINY, TWO, ZERO, Patch, vec3

LINE_EDGE = wp.constant(0)
DISC_EDGE = wp.constant(1)
SPHERE_EDGE = wp.constant(2)
TUBE_EDGE = wp.constant(3)
HORIZON_EDGE = wp.constant(4)
DEPTH_EDGE = wp.constant(5)


@wp.func
def shifted(o: vec3, end: int, length: scalar):
    """Return the origin relative to the center (0), the upper (1) or the lower (−1) end."""
    return vec3(o[0], o[1], o[2] - HALF * scalar(end) * length)


@wp.func
def edge_value(edge: int, end: int, o: vec3, d: vec3, size: vec3):
    """Return the value of an edge function."""
    m = shifted(o, end, size[2])
    value = ZERO
    if edge == DISC_EDGE:
        qx = m[0] * d[2] - m[2] * d[0]
        qy = m[1] * d[2] - m[2] * d[1]
        value = size[0] * size[0] * d[2] * d[2] - qx * qx - qy * qy
    elif edge == SPHERE_EDGE:
        c = wp.cross(m, d)
        value = size[0] * size[0] * wp.dot(d, d) - wp.dot(c, c)
    elif edge == TUBE_EDGE:
        q = m[0] * d[1] - m[1] * d[0]
        value = size[0] * size[0] * (d[0] * d[0] + d[1] * d[1]) - q * q
    elif edge == HORIZON_EDGE:
        value = -d[2] * wp.sign(o[2])
    return value


@wp.func
def edge_slopes(edge: int, end: int, o: vec3, d: vec3, size: vec3):
    """Return the derivatives of `edge_value` with respect to origin, direction and size."""
    m = shifted(o, end, size[2])
    r = size[0]
    by_o = vec3()
    by_d = vec3()
    by_r = ZERO
    if edge == DISC_EDGE:
        qx = m[0] * d[2] - m[2] * d[0]
        qy = m[1] * d[2] - m[2] * d[1]
        by_o = vec3(-TWO * qx * d[2], -TWO * qy * d[2], TWO * (qx * d[0] + qy * d[1]))
        by_d = vec3(TWO * m[2] * qx, TWO * m[2] * qy, TWO * (r * r * d[2] - qx * m[0] - qy * m[1]))
        by_r = TWO * r * d[2] * d[2]
    elif edge == SPHERE_EDGE:
        c = wp.cross(m, d)
        by_o = -TWO * wp.cross(d, c)
        by_d = TWO * (r * r * d - wp.cross(c, m))
        by_r = TWO * r * wp.dot(d, d)
    elif edge == TUBE_EDGE:
        q = m[0] * d[1] - m[1] * d[0]
        by_o = vec3(-TWO * q * d[1], TWO * q * d[0], ZERO)
        by_d = vec3(TWO * (r * r * d[0] + q * m[1]), TWO * (r * r * d[1] - q * m[0]), ZERO)
        by_r = TWO * r * (d[0] * d[0] + d[1] * d[1])
    elif edge == HORIZON_EDGE:
        by_d = vec3(ZERO, ZERO, -wp.sign(o[2]))
    return by_o, by_d, vec3(by_r, ZERO, -HALF * scalar(end) * by_o[2])


@wp.func
def side(vertices: wp.array2d(dtype=scalar), patch: Patch, i: int):
    """Return corner `i` of a polygon and the vector to the next, in meters."""
    first = patch.corner
    following = i + 1
    if following == patch.corners:
        following = 0
    ax = vertices[first + i, 0]
    ay = vertices[first + i, 1]
    ex = vertices[first + following, 0] - ax
    ey = vertices[first + following, 1] - ay
    width = patch.size[0]
    height = patch.size[1]
    return vec3(ax * width, ay * height, ZERO), vec3(ex * width, ey * height, ZERO)


@wp.func
def side_value(vertices: wp.array2d(dtype=scalar), patch: Patch, i: int, o: vec3, d: vec3):
    """Return the edge function of a polygon's side."""
    corner, along = side(vertices, patch, i)
    return wp.dot(d, wp.cross(corner - o, along))


@wp.func
def side_slopes(vertices: wp.array2d(dtype=scalar), patch: Patch, i: int, o: vec3, d: vec3):
    """Return derivatives of `side_value`: ∂/∂(B − A) = d × (A − o) with A fixed, ∂/∂A = (B − A) × d."""
    corner, along = side(vertices, patch, i)
    by_corner = wp.cross(along, d)
    by_along = wp.cross(d, corner - o)
    size = patch.size
    by_width = ZERO
    by_height = ZERO
    if wp.abs(size[0]) > TINY:
        by_width = (by_corner[0] * corner[0] + by_along[0] * along[0]) / size[0]
    if wp.abs(size[1]) > TINY:
        by_height = (by_corner[1] * corner[1] + by_along[1] * along[1]) / size[1]
    return -by_corner, wp.cross(corner - o, along), vec3(by_width, by_height, ZERO)


@wp.func
def axis_coordinate(o: vec3, d: vec3):
    """Return the coordinate along the z axis at which a ray comes nearest to it."""
    across = wp.max(d[0] * d[0] + d[1] * d[1], TINY)
    return o[2] - (o[0] * d[0] + o[1] * d[1]) / across * d[2]


@wp.func
def end_of_body(o: vec3, d: vec3, length: scalar):
    """Return the end of a capsule or cylinder that a ray passes: 0 between the ends, 1 or −1 beyond one."""
    z = axis_coordinate(o, d)
    return wp.where(z > HALF * length, 1, wp.where(z < -HALF * length, -1, 0))


@wp.func
def end_edge(kind: int):
    """Return the edge function of the ends of a capsule or cylinder."""
    return wp.where(kind == CAPSULE, SPHERE_EDGE, DISC_EDGE)


@wp.func
def bounding_edge(kind: int, o: vec3, d: vec3, size: vec3):
    """Return the edge function, and the end it belongs to, that bounds a curved patch near this ray."""
    edge = TUBE_EDGE
    end = 0
    if kind == DISC:
        edge = DISC_EDGE
    elif kind == SPHERE:
        edge = SPHERE_EDGE
    elif kind == PLANE:
        edge = HORIZON_EDGE
    else:
        end = end_of_body(o, d, size[2])
        if end != 0:
            edge = end_edge(kind)
    return edge, end


@wp.func
def inside_body(kind: int, o: vec3, size: vec3):
    """Return true if the eye is inside a capsule or cylinder, which then fills the view."""
    z = wp.abs(o[2]) - HALF * size[2]
    radial = o[0] * o[0] + o[1] * o[1]
    inside = z < ZERO
    if kind == CAPSULE and z > ZERO:
        radial = radial + z * z
        inside = True
    return inside and radial < size[0] * size[0] * ONE
