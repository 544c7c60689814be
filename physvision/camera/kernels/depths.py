"""Which of two patches is in front, and whether they pass through each other within a pixel."""

import warp as wp

from . import scalar
from .scene import HALF, SAME_DEPTH, SPHERE, Patch, Scene, ray
from .surfaces import depth, depth_normal, point_slopes, slant


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
def difference_plane(s: Scene, b: int, i: int, j: int, x: scalar, y: scalar):
    """Depth of `j` minus that of `i`, its change along x and y, and whether the two are the same depth there."""
    ti, ix, iy = depth_plane(s.patches[b, i], x, y)
    tj, jx, jy = depth_plane(s.patches[b, j], x, y)
    gap = tj - ti
    least = SAME_DEPTH * (wp.abs(ti) + wp.abs(tj))
    slope = wp.abs(jx - ix) + wp.abs(jy - iy)
    return gap, jx - ix, jy - iy, wp.abs(gap) <= least and slope <= least


@wp.func
def pass_through(s: Scene, b: int, i: int, j: int, x: scalar, y: scalar):
    """Whether two patches that cover the pixel change places in it."""
    gap, gx, gy, same = difference_plane(s, b, i, j, x, y)
    return not same and wp.abs(gap) < HALF * (wp.abs(gx) + wp.abs(gy))


@wp.func
def in_front(s: Scene, b: int, i: int, j: int, x: scalar, y: scalar):
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
