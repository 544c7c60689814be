"""Depth order of two patches, and their intersection within a pixel."""

import warp as wp

from .precision import scalar
from .scene import DEPTH_TOLERANCE, HALF, ONE, SPHERE, TINY, Contents, Patch, ray
from .surfaces import depth, depth_normal, not_zero, point_slopes, slant


@wp.func
def depth_at(patch: Patch, x: scalar, y: scalar):
    """Return the depth of a patch at (x, y)."""
    o, d = ray(patch, x, y)
    return depth(patch.kind, o, d, patch.size, patch.near)


@wp.func
def depth_plane(patch: Patch, x: scalar, y: scalar):
    """Return the depth at (x, y) and its change along x and y."""
    o, d = ray(patch, x, y)
    size = patch.size
    kind = patch.kind
    t = depth(kind, o, d, size, patch.near)
    n = depth_normal(kind, o + t * d, size)
    t_x, t_y, _px, _py = point_slopes(patch, n, t, d, slant(n, d))
    return t, t_x, t_y


@wp.func
def nearness_plane(patch: Patch, x: scalar, y: scalar):
    """Return the nearness at (x, y), linear on the screen for flat patches, and its change along x and y.

    It is the inverse of the depth, and with parallel rays the negative depth.
    """
    t, t_x, t_y = depth_plane(patch, x, y)
    nearness = -t
    rate = -ONE
    if patch.pinhole != 0:
        nearness = ONE / not_zero(t, TINY)
        rate = -nearness * nearness
    return nearness, rate * t_x, rate * t_y


@wp.func
def nearness_difference(s: Contents, b: int, i: int, j: int, x: scalar, y: scalar):
    """Return the nearness of `i` less that of `j`, its change along x and y, and true if both depths are equal."""
    near_i, ix, iy = nearness_plane(s.patches[b, i], x, y)
    near_j, jx, jy = nearness_plane(s.patches[b, j], x, y)
    lead = near_i - near_j
    tolerance = DEPTH_TOLERANCE * (wp.abs(near_i) + wp.abs(near_j))
    slope = wp.abs(ix - jx) + wp.abs(iy - jy)
    return lead, ix - jx, iy - jy, wp.abs(lead) <= tolerance and slope <= tolerance


@wp.func
def patches_intersect(s: Contents, b: int, i: int, j: int, x: scalar, y: scalar):
    """Return true if two patches that cover the pixel change their order in it."""
    lead, gx, gy, same = nearness_difference(s, b, i, j, x, y)
    return not same and wp.abs(lead) < HALF * (wp.abs(gx) + wp.abs(gy))


@wp.func
def in_front(s: Contents, b: int, i: int, j: int, x: scalar, y: scalar):
    """Return true if `i` hides `j`: of one shape the earlier patch, at equal depth the later shape, else the nearer."""
    if s.patches[b, i].shape == s.patches[b, j].shape:
        return i < j
    ti = depth_at(s.patches[b, i], x, y)
    tj = depth_at(s.patches[b, j], x, y)
    if wp.abs(ti - tj) <= DEPTH_TOLERANCE * (wp.abs(ti) + wp.abs(tj)):
        return i > j
    return ti < tj


@wp.func
def is_behind(patch: Patch, t: scalar, t_range: scalar, x: scalar, y: scalar):
    """Return true if a patch that crosses the pixel is behind a depth `t` that changes by `t_range`, anywhere."""
    own, own_x, own_y = depth_plane(patch, x, y)
    own_range = wp.where(patch.kind >= SPHERE, patch.size[0], wp.abs(own_x) + wp.abs(own_y))
    return own - own_range > t + t_range + DEPTH_TOLERANCE * wp.abs(t)
