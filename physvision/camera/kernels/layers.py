"""Which patches a pixel sees, nearest first.

`front` answers for the many pixels in which one patch hides all others; `put_layers` lists the patches of the rest
with their outlines. Two patches that pass through each other in the pixel are cut at the line where their depths are
equal: the first, as far as it is in front, then the second, then the first again.
"""

import warp as wp

from . import scalar
from .edges import DEPTH_EDGE
from .outline import COVERED, CROSSED, MOST_LINES, OUTSIDE, pixel_state, put_line, put_outline
from .scene import HALF, HUGE, ONE, SAME_DEPTH, SPHERE, TINY, ZERO, Scene, extent, in_bounds, ray
from .surfaces import depth, depth_normal, point_slopes

MOST_LAYERS = wp.constant(10)
NOTHING = wp.constant(-1)
MIXED = wp.constant(-2)


@wp.func
def depth_at(s: Scene, b: int, p: int, x: scalar, y: scalar):
    o, d = ray(s, b, p, x, y)
    return depth(s.kinds[p], o, d, extent(s, b, p), s.near)


@wp.func
def depth_plane(s: Scene, b: int, p: int, x: scalar, y: scalar):
    """Depth at (x, y) and its change along x and y."""
    o, d = ray(s, b, p, x, y)
    size = extent(s, b, p)
    kind = s.kinds[p]
    t = depth(kind, o, d, size, s.near)
    t_x, t_y, _px, _py = point_slopes(s, b, p, depth_normal(kind, o + t * d, size), t, d)
    return t, t_x, t_y


@wp.func
def difference_plane(s: Scene, b: int, i: int, j: int, x: scalar, y: scalar):
    """Depth of `j` minus that of `i`, its change along x and y, and whether the two are the same depth there."""
    ti, ix, iy = depth_plane(s, b, i, x, y)
    tj, jx, jy = depth_plane(s, b, j, x, y)
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
    if s.shapes[i] == s.shapes[j]:
        return i < j
    ti = depth_at(s, b, i, x, y)
    tj = depth_at(s, b, j, x, y)
    if wp.abs(ti - tj) <= SAME_DEPTH * (wp.abs(ti) + wp.abs(tj)):
        return i > j
    return ti < tj


@wp.func
def surely_behind(s: Scene, b: int, p: int, t: scalar, t_range: scalar, x: scalar, y: scalar):
    """Whether a patch that crosses the pixel is behind a depth `t` that changes by `t_range`, wherever it is met."""
    own, own_x, own_y = depth_plane(s, b, p, x, y)
    own_range = wp.abs(own_x) + wp.abs(own_y)
    if s.kinds[p] >= SPHERE:
        own_range = s.extents[b, p, 0]
    return own - own_range > t + t_range + SAME_DEPTH * wp.abs(t)


@wp.func
def front(s: Scene, b: int, x: scalar, y: scalar):
    """The one patch that fills the pixel, NOTHING, or MIXED."""
    first = int(NOTHING)
    second = int(NOTHING)
    first_shape = int(NOTHING)
    t_first = scalar(HUGE)
    t_second = scalar(HUGE)
    crossed = int(NOTHING)
    several = bool(False)
    for p in range(s.patches):
        if in_bounds(s, b, p, x, y):
            state = pixel_state(s, b, p, x, y)
            if state == CROSSED:
                several = crossed != NOTHING
                crossed = p
            elif state == COVERED:
                t = depth_at(s, b, p, x, y)
                if t > s.near:
                    shape = s.shapes[p]
                    if shape == first_shape:
                        if t < t_first:
                            first = p
                            t_first = t
                    elif t <= t_first * (ONE + SAME_DEPTH):
                        second = first
                        t_second = t_first
                        first = p
                        first_shape = shape
                        t_first = t
                    elif t < t_second:
                        second = p
                        t_second = t
    if crossed != NOTHING:
        if first == NOTHING or several:
            return MIXED
        t, t_x, t_y = depth_plane(s, b, first, x, y)
        if not surely_behind(s, b, crossed, t, wp.abs(t_x) + wp.abs(t_y), x, y):
            return MIXED
    if second != NOTHING:
        if pass_through(s, b, first, second, x, y):
            return MIXED
    return first


@wp.func
def meeting_point(lines: wp.array(dtype=scalar), first_i: int, count_i: int, first_j: int, count_j: int):
    """A point of the pixel inside two outlines, by projecting the middle onto one half-plane after the other."""
    x = scalar(ZERO)
    y = scalar(ZERO)
    for _sweep in range(4):
        for k in range(count_i + count_j):
            at = 3 * (first_i + k)
            if k >= count_i:
                at = 3 * (first_j + k - count_i)
            short = scalar(0.05) - lines[at] * x - lines[at + 1] * y - lines[at + 2]
            if short > ZERO:
                x += short * lines[at]
                y += short * lines[at + 1]
        x = wp.clamp(x, -HALF, HALF)
        y = wp.clamp(y, -HALF, HALF)
    return x, y


@wp.func
def put_layer(layers: wp.array(dtype=int), at: int, patch: int, first: int, count: int):
    layers[3 * at] = patch
    layers[3 * at + 1] = first
    layers[3 * at + 2] = count


@wp.func
def insert(
    s: Scene,
    b: int,
    x: scalar,
    y: scalar,
    lines: wp.array(dtype=scalar),
    layers: wp.array(dtype=int),
    n: int,
    patch: int,
    first: int,
    count: int,
):
    """Insert a layer where it belongs from near to far; the farthest is dropped where there is no room."""
    at = int(n)
    ahead = bool(True)
    while at > 0 and ahead:
        other = 3 * (at - 1)
        px, py = meeting_point(lines, first, count, layers[other + 1], layers[other + 2])
        ahead = in_front(s, b, patch, layers[other], x + px, y + py)
        if ahead:
            if at < MOST_LAYERS:
                put_layer(layers, at, layers[other], layers[other + 1], layers[other + 2])
            at -= 1
    if at < MOST_LAYERS:
        put_layer(layers, at, patch, first, count)
    return wp.min(n + 1, MOST_LAYERS)


@wp.func
def split(
    s: Scene,
    b: int,
    x: scalar,
    y: scalar,
    lines: wp.array(dtype=scalar),
    codes: wp.array(dtype=int),
    layers: wp.array(dtype=int),
    n: int,
    i: int,
    used: int,
):
    """Cut layer `i` where the next passes through it; the number of lines used then (the same if it does not)."""
    patch = layers[3 * i]
    first = layers[3 * i + 1]
    count = layers[3 * i + 2]
    # The next layer of another shape: a cylinder's body is right behind its cap.
    j = i + 1
    if s.shapes[patch] == s.shapes[layers[3 * j]] and j + 1 < n:
        j = i + 2
    other = layers[3 * j]
    if s.shapes[patch] == s.shapes[other] or used + count + 1 > MOST_LINES or n >= MOST_LAYERS:
        return used
    px, py = meeting_point(lines, first, count, layers[3 * j + 1], layers[3 * j + 2])
    gap, gx, gy, same = difference_plane(s, b, patch, other, x + px, y + py)
    slope = wp.sqrt(gx * gx + gy * gy)
    at_middle = gap - gx * px - gy * py
    if same or slope < TINY or wp.abs(at_middle) >= HALF * (wp.abs(gx) + wp.abs(gy)):
        return used
    for k in range(count):
        for c in range(3):
            lines[3 * (used + k) + c] = lines[3 * (first + k) + c]
        codes[2 * (used + k)] = codes[2 * (first + k)]
        codes[2 * (used + k) + 1] = codes[2 * (first + k) + 1]
    end = put_line(lines, codes, used + count, gx / slope, gy / slope, at_middle / slope, DEPTH_EDGE, other)
    for k in range(n - j - 1):
        at = n - k
        put_layer(layers, at, layers[3 * at - 3], layers[3 * at - 2], layers[3 * at - 1])
    put_layer(layers, j + 1, patch, first, count)
    put_layer(layers, i, patch, used, count + 1)
    return end


@wp.func
def put_layers(
    s: Scene,
    b: int,
    x: scalar,
    y: scalar,
    lines: wp.array(dtype=scalar),
    codes: wp.array(dtype=int),
    layers: wp.array(dtype=int),
):
    """List the layers of a pixel from near to far; their number."""
    n = int(0)
    used = int(0)
    for p in range(s.patches):
        if in_bounds(s, b, p, x, y):
            state = pixel_state(s, b, p, x, y)
            if state != OUTSIDE:
                end = int(used)
                if state == CROSSED:
                    end = put_outline(s, b, p, x, y, lines, codes, used)
                if end >= 0:
                    px, py = meeting_point(lines, used, end - used, used, 0)
                    if depth_at(s, b, p, x + px, y + py) > s.near:
                        n = insert(s, b, x, y, lines, layers, n, p, used, end - used)
                        used = end
    i = int(0)
    while i + 1 < n:
        now = split(s, b, x, y, lines, codes, layers, n, i, used)
        if now > used:
            used = now
            n += 1
            # The two parts of the cut patch are not compared again; a cylinder's body is cut as its cap was.
            if s.shapes[layers[3 * i]] != s.shapes[layers[3 * i + 3]]:
                i += 1
            i += 1
        else:
            if layers[3 * i + 2] == 0:
                n = i + 1
            i += 1
    return n
