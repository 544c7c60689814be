"""Which of two patches is in front, and whether they pass through each other within a pixel."""

import warp as wp

from .precision import scalar
from .scene import HALF, ONE, SAME_DEPTH, SPHERE, TINY, Contents, Patch, ray
from .surfaces import depth, depth_normal, not_zero, point_slopes, slant


@wp.func
def depth_at(patch: Patch, x: scalar, y: scalar):
    o, d = ray(patch, x, y)
    return depth(patch.kind, o, d, patch.size, patch.near)


@wp.func
def depth_plane(patch: Patch, x: scalar, y: scalar):
    """Depth at (x, y) and its change along x and y."""
    o, d = ray(patch, x, y)
    size = patch.size
    kind = patch.kind
    t = depth(kind, o, d, size, patch.near)
    n = depth_normal(kind, o + t * d, size)
    t_x, t_y, _px, _py = point_slopes(patch, n, t, d, slant(n, d))
    return t, t_x, t_y


@wp.func
def nearness_plane(patch: Patch, x: scalar, y: scalar):
    """What is linear on the screen for flat patches, and greater where they are nearer, and its change along x and y.

    That is the inverse of the depth, and with parallel rays the depth itself, its sign turned.
    """
    t, t_x, t_y = depth_plane(patch, x, y)
    near = -t
    rate = -ONE
    if patch.pinhole != 0:
        near = ONE / not_zero(t, TINY)
        rate = -near * near
    return near, rate * t_x, rate * t_y


@wp.func
def lead_plane(s: Contents, b: int, i: int, j: int, x: scalar, y: scalar):
    """By how much `i` is nearer than `j`, its change along x and y, and whether the two are the same depth there."""
    near_i, ix, iy = nearness_plane(s.patches[b, i], x, y)
    near_j, jx, jy = nearness_plane(s.patches[b, j], x, y)
    lead = near_i - near_j
    least = SAME_DEPTH * (wp.abs(near_i) + wp.abs(near_j))
    slope = wp.abs(ix - jx) + wp.abs(iy - jy)
    return lead, ix - jx, iy - jy, wp.abs(lead) <= least and slope <= least


@wp.func
def pass_through(s: Contents, b: int, i: int, j: int, x: scalar, y: scalar):
    """Whether two patches that cover the pixel change places in it."""
    lead, gx, gy, same = lead_plane(s, b, i, j, x, y)
    return not same and wp.abs(lead) < HALF * (wp.abs(gx) + wp.abs(gy))


@wp.func
def in_front(s: Contents, b: int, i: int, j: int, x: scalar, y: scalar):
    """Whether `i` hides `j`: of one shape the earlier patch, at the same depth the later shape, else the nearer."""
    if s.patches[b, i].shape == s.patches[b, j].shape:
        return i < j
    ti = depth_at(s.patches[b, i], x, y)
    tj = depth_at(s.patches[b, j], x, y)
    if wp.abs(ti - tj) <= SAME_DEPTH * (wp.abs(ti) + wp.abs(tj)):
        return i > j
    return ti < tj


@wp.func
def surely_behind(patch: Patch, t: scalar, t_range: scalar, x: scalar, y: scalar):
    """Whether a patch that crosses the pixel is behind a depth `t` that changes by `t_range`, wherever it is met."""
    own, own_x, own_y = depth_plane(patch, x, y)
    own_range = wp.abs(own_x) + wp.abs(own_y)
    if patch.kind >= SPHERE:
        own_range = patch.size[0]
    return own - own_range > t + t_range + SAME_DEPTH * wp.abs(t)
