"""What a pixel sees, layer by layer, nearest first.

Two patches that pass through each other in the pixel are cut at the line where their depths are equal: the first, as
far as it is in front, then the second, then the first again.
"""

import warp as wp

from . import scalar
from .depths import depth_at, in_front, lead_plane
from .edges import DEPTH_EDGE
from .outline import CROSSED, MOST_LINES, OUTSIDE, pixel_state, put_line, put_outline
from .scene import HALF, ONE, TINY, ZERO, Contents, in_bounds

MOST_LAYERS = wp.constant(10)


@wp.func
def meeting_point(
    lines: wp.array(dtype=scalar),
    first_i: int,
    count_i: int,
    first_j: int,
    count_j: int,
    start_x: scalar,
    start_y: scalar,
):
    """A point of the pixel inside two outlines, by projecting the start onto one half-plane after the other.

    Where they leave less room than each line wants, it is the mean of the last projections: the middle of a sliver, for
    a patch seen edge-on changes its depth a lot across one. The same for (i, j) as for (j, i), so that an image does
    not jump where two patches change their order.
    """
    first = first_i
    count = count_i
    then = first_j
    if first_j < first_i:
        first = first_j
        count = count_j
        then = first_i
    x = scalar(start_x)
    y = scalar(start_y)
    for sweep in range(4):
        # Not ZERO: the compiler takes the variable that began as a constant for the constant itself.
        sum_x = scalar(0.0)
        sum_y = scalar(0.0)
        moves = scalar(0.0)
        for k in range(count_i + count_j):
            at = 3 * (first + k)
            if k >= count:
                at = 3 * (then + k - count)
            short = scalar(0.05) - lines[at] * x - lines[at + 1] * y - lines[at + 2]
            if short > ZERO:
                x += short * lines[at]
                y += short * lines[at + 1]
                sum_x += x
                sum_y += y
                moves += ONE
        if sweep == 3 and moves > ONE:
            x = sum_x / moves
            y = sum_y / moves
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
    s: Contents,
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
        px, py = meeting_point(lines, first, count, layers[other + 1], layers[other + 2], ZERO, ZERO)
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
    s: Contents,
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
    if s.patches[b, patch].shape == s.patches[b, layers[3 * j]].shape and j + 1 < n:
        j = i + 2
    other = layers[3 * j]
    if s.patches[b, patch].shape == s.patches[b, other].shape or used + count + 1 > MOST_LINES or n >= MOST_LAYERS:
        return used
    px, py = meeting_point(lines, first, count, layers[3 * j + 1], layers[3 * j + 2], ZERO, ZERO)
    lead, gx, gy, same = lead_plane(s, b, patch, other, x + px, y + py)
    at_middle = lead - gx * px - gy * py
    if same or wp.abs(at_middle) >= HALF * (wp.abs(gx) + wp.abs(gy)):
        return used
    for k in range(count):
        for c in range(3):
            lines[3 * (used + k) + c] = lines[3 * (first + k) + c]
        codes[2 * (used + k)] = codes[2 * (first + k)]
        codes[2 * (used + k) + 1] = codes[2 * (first + k) + 1]
    # Towards a limb depths change without bound, and a tangent plane tells of crossings that are not there. So look in
    # the four corners of what both cover; where it is the other way round, the line is drawn from a place in between.
    qx = scalar(px)
    qy = scalar(py)
    most = scalar(0.0)
    for corner in range(4):
        cx, cy = meeting_point(
            lines,
            first,
            count,
            layers[3 * j + 1],
            layers[3 * j + 2],
            scalar(corner % 2) - HALF,
            scalar(corner / 2) - HALF,
        )
        there, _hx, _hy, _same = lead_plane(s, b, patch, other, x + cx, y + cy)
        if -there * wp.sign(lead) > most:
            most = -there * wp.sign(lead)
            qx = cx
            qy = cy
    if most <= ZERO:
        return used
    for _halving in range(5):
        mx = HALF * (px + qx)
        my = HALF * (py + qy)
        there, _hx, _hy, _same = lead_plane(s, b, patch, other, x + mx, y + my)
        if there * lead > ZERO:
            px = mx
            py = my
        else:
            qx = mx
            qy = my
    lead, gx, gy, same = lead_plane(s, b, patch, other, x + px, y + py)
    slope = wp.max(wp.sqrt(gx * gx + gy * gy), TINY)
    at_middle = lead - gx * px - gy * py
    end = put_line(lines, codes, used + count, gx / slope, gy / slope, at_middle / slope, DEPTH_EDGE, other)
    for k in range(n - j - 1):
        at = n - k
        put_layer(layers, at, layers[3 * at - 3], layers[3 * at - 2], layers[3 * at - 1])
    put_layer(layers, j + 1, patch, first, count)
    put_layer(layers, i, patch, used, count + 1)
    return end


@wp.func
def put_layers(
    s: Contents,
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
    for p in range(s.count):
        if in_bounds(s, b, p, x, y):
            patch = s.patches[b, p]
            state = pixel_state(s.lines, b, patch, x, y)
            if state != OUTSIDE:
                end = int(used)
                if state == CROSSED:
                    end = put_outline(s.lines, b, patch, x, y, lines, codes, used)
                if end >= 0:
                    px, py = meeting_point(lines, used, end - used, used, 0, ZERO, ZERO)
                    if depth_at(patch, x + px, y + py) > patch.near:
                        n = insert(s, b, x, y, lines, layers, n, p, used, end - used)
                        used = end
    i = int(0)
    while i + 1 < n:
        now = split(s, b, x, y, lines, codes, layers, n, i, used)
        if now > used:
            used = now
            n += 1
            # The two parts of the cut patch are not compared again; a cylinder's body is cut as its cap was.
            if s.patches[b, layers[3 * i]].shape != s.patches[b, layers[3 * i + 3]].shape:
                i += 1
            i += 1
        else:
            if layers[3 * i + 2] == 0:
                n = i + 1
            i += 1
    return n
