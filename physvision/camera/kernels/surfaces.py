"""Intersection of a ray with a patch, the normal there, and how both move.

A surface G(P) = 0 is hit at P = o + t d. With n = ∇G there, n · (δo + t δd + d δt) + ∂G/∂size · δsize = 0 gives

    δt = −(n · (δo + t δd) + ∂G/∂size · δsize) / (n · d),

so one formula differentiates every hit, whatever the surface.
"""

import warp as wp

from .edges import SPHERE_EDGE, TUBE_EDGE, edge_slopes, edge_value, shifted
from .precision import scalar
from .scene import CAPSULE, CYLINDER, HALF, ONE, SPHERE, TINY, ZERO, Patch, screen_slope, vec3

# Smallest |n · d| of unit vectors: a limb does not appear more slanted.
MIN_SLANT = wp.constant(scalar(0.02))
# Fraction of a cylinder's half length from which a point is on the cap.
ON_CAP = wp.constant(scalar(0.99999))


@wp.func
def not_zero(value: scalar, min_magnitude: scalar):
    """Return the value, moved away from zero to the given magnitude."""
    return wp.where(wp.abs(value) < min_magnitude, wp.where(value < ZERO, -min_magnitude, min_magnitude), value)


@wp.func
def sphere_depth(o: vec3, d: vec3, end: int, size: vec3, sign: scalar):
    """Return the depth of entry (sign −1) or exit (sign 1); the closest approach if the ray misses."""
    root = wp.sqrt(wp.max(edge_value(SPHERE_EDGE, end, o, d, size), ZERO))
    return (sign * root - wp.dot(shifted(o, end, size[2]), d)) / wp.dot(d, d)


@wp.func
def tube_depth(o: vec3, d: vec3, size: vec3, sign: scalar):
    """Return the depth of entry or exit of the infinite tube."""
    across = wp.max(d[0] * d[0] + d[1] * d[1], TINY)
    root = wp.sqrt(wp.max(edge_value(TUBE_EDGE, 0, o, d, size), ZERO))
    return (sign * root - o[0] * d[0] - o[1] * d[1]) / across


@wp.func
def capsule_depth(o: vec3, d: vec3, size: vec3, sign: scalar):
    """Return the depth of entry or exit of a capsule."""
    t = tube_depth(o, d, size, sign)
    z = o[2] + t * d[2]
    if wp.abs(z) > HALF * size[2]:
        end = wp.where(z < ZERO, -1, 1)
        t = sphere_depth(o, d, end, size, sign)
    return t


@wp.func
def cylinder_depth(o: vec3, d: vec3, size: vec3, sign: scalar):
    """Return the depth of the closed cylinder: the later of two entries, or the earlier of two exits."""
    t = tube_depth(o, d, size, sign)
    slab = (sign * HALF * size[2] * wp.sign(d[2]) - o[2]) / not_zero(d[2], TINY)
    return wp.where(sign < ZERO, wp.max(t, slab), wp.min(t, slab))


@wp.func
def curved_depth(kind: int, o: vec3, d: vec3, size: vec3, sign: scalar):
    """Return the depth of entry or exit of a curved patch."""
    if kind == SPHERE:
        return sphere_depth(o, d, 0, size, sign)
    if kind == CAPSULE:
        return capsule_depth(o, d, size, sign)
    return cylinder_depth(o, d, size, sign)


@wp.func
def depth(kind: int, o: vec3, d: vec3, size: vec3, near: scalar):
    """Return the depth at which the ray hits the patch: the exit if the entry is nearer than `near`.

    A ray that misses a curved patch gets the depth of its closest approach, one that misses a flat patch that of its
    plane: pixels on the edge need it for the depth order of two patches.
    """
    if kind < SPHERE:
        return -o[2] / not_zero(d[2], TINY)
    t = curved_depth(kind, o, d, size, -ONE)
    if t <= near:
        t = curved_depth(kind, o, d, size, ONE)
    return t


@wp.func
def side_depth(kind: int, o: vec3, d: vec3, size: vec3, near: scalar):
    """Return the depth as `depth` does, but of a cylinder that of its curved side, which gives its color."""
    if kind != CYLINDER:
        return depth(kind, o, d, size, near)
    t = tube_depth(o, d, size, -ONE)
    if t <= near:
        t = tube_depth(o, d, size, ONE)
    return t


@wp.func
def axis_point(kind: int, point: vec3, size: vec3):
    """Return the center of curvature of a point of a curved surface."""
    z = ZERO
    if kind == CYLINDER:
        z = point[2]
    elif kind == CAPSULE:
        z = wp.clamp(point[2], -HALF * size[2], HALF * size[2])
    return vec3(ZERO, ZERO, z)


@wp.func
def normal(kind: int, point: vec3, size: vec3):
    """Return ∇G: the unit vector z of a flat patch, the radius vector of a curved one."""
    return wp.where(kind >= SPHERE, point - axis_point(kind, point, size), vec3(ZERO, ZERO, ONE))


@wp.func
def depth_normal(kind: int, point: vec3, size: vec3):
    """Return ∇G where the closed solid is hit: on a cap of a cylinder that of the cap."""
    if kind == CYLINDER and wp.abs(point[2]) > HALF * size[2] * ON_CAP:
        return vec3(ZERO, ZERO, wp.sign(point[2]))
    return normal(kind, point, size)


@wp.func
def slant(n: vec3, d: vec3):
    """Return the product n · d, kept away from zero."""
    return not_zero(wp.dot(n, d), MIN_SLANT * wp.length(n) * wp.length(d) + TINY)


@wp.func
def mean_slant(patch: Patch, point: vec3, n: vec3, o: vec3, d: vec3, spread: vec3):
    """Return the harmonic mean of n · d over a part of a pixel about the ray, see `sample_patch`.

    On a curved surface n · d = ∓√f, with f the edge function. Towards the limb its inverse grows without bound, but its
    mean does not: where f goes from f₋ to f₊ in a pixel, that is 2 / (√f₋ + √f₊). A pixel that the limb cuts is
    represented by the center of its covered part, where f is halfway from 0 to f₊.
    """
    result = slant(n, d)
    if patch.kind >= SPHERE:
        edge = SPHERE_EDGE
        end = 0
        if patch.kind != SPHERE:
            edge = TUBE_EDGE
        if patch.kind == CAPSULE and wp.abs(point[2]) > HALF * patch.size[2]:
            edge = SPHERE_EDGE
            end = wp.where(point[2] < ZERO, -1, 1)
        f = wp.max(edge_value(edge, end, o, d, patch.size), ZERO)
        by_o, by_d, _by_size = edge_slopes(edge, end, o, d, patch.size)
        gx, gy = screen_slope(patch, by_o, by_d)
        along = gx * spread[0] + gy * spread[1]
        half = wp.min(HALF * wp.sqrt(along * along + gy * gy * spread[2] * spread[2]), f)
        mean = HALF * (wp.sqrt(f - half) + wp.sqrt(f + half))
        result = not_zero(wp.sign(result) * mean, MIN_SLANT * MIN_SLANT * wp.length(n) * wp.length(d) + TINY)
    return result


@wp.func
def depth_by_size(kind: int, point: vec3, n: vec3, size: vec3):
    """Return the derivative ∂G/∂size."""
    by_radius = ZERO
    by_length = ZERO
    if kind >= SPHERE:
        by_radius = -size[0]
    if kind == CYLINDER and n[0] == ZERO and n[1] == ZERO:
        by_radius = ZERO
        by_length = -HALF
    if kind == CAPSULE and wp.abs(point[2]) > HALF * size[2]:
        by_length = -HALF * wp.abs(n[2])
    return vec3(by_radius, ZERO, by_length)


@wp.func
def hit_adjoint(kind: int, point: vec3, n: vec3, t: scalar, d: vec3, size: vec3, slanted: scalar, point_bar: vec3):
    """Return adjoints of origin, direction and size, from that of the point that is hit."""
    pull = wp.dot(point_bar, d) / slanted
    o_bar = point_bar - pull * n
    return o_bar, t * o_bar, -pull * depth_by_size(kind, point, n, size)


@wp.func
def depth_adjoint(kind: int, point: vec3, n: vec3, t: scalar, d: vec3, size: vec3, t_bar: scalar):
    """Return adjoints of origin, direction and size, from that of the depth."""
    pull = t_bar / slant(n, d)
    return -pull * n, -pull * t * n, -pull * depth_by_size(kind, point, n, size)


@wp.func
def point_slopes(patch: Patch, n: vec3, t: scalar, d: vec3, slanted: scalar):
    """Return the change of depth and of the hit point from one pixel to the next along x and along y."""
    ahead_x = patch.by_x
    ahead_y = patch.by_y
    if patch.pinhole != 0:
        ahead_x = ahead_x * t
        ahead_y = ahead_y * t
    inverse = ONE / slanted
    t_x = -wp.dot(n, ahead_x) * inverse
    t_y = -wp.dot(n, ahead_y) * inverse
    return t_x, t_y, ahead_x + t_x * d, ahead_y + t_y * d
