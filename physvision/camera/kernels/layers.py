"""Layers of a pixel, nearest first.

Two patches that intersect in the pixel are cut at the line of equal depth: the first, as far as it is in front, then
the second, then the first again.
"""

import warp as wp

from .depths import depth_at, in_front, nearness_difference
from .edges import DEPTH_EDGE
from .hard import is_hit
from .lists import MAX_LAYERS, MAX_LINES, Lists, int3, vec2
from .outline import CROSSED, OUTSIDE, append_line, append_outline, pixel_state
from .precision import scalar
from .scene import HALF, ONE, TINY, ZERO, Contents, Pixel, in_bounds
from .visible import STEP, clip, clip_to_pixel


@wp.func
def common_point(lists: Lists, first_i: int, count_i: int, first_j: int, count_j: int):
    """Return a point of the pixel inside two outlines, by projections onto one half-plane after the other.

    If they leave less room than each line needs, it is the mean of the last projections, the center of a sliver: the
    depth of a patch that is seen edge-on changes a lot across one. It is symmetric in i and j, so that an image does
    not jump where two patches change their order.
    """
    first = wp.min(first_i, first_j)
    second = wp.max(first_i, first_j)
    count = wp.where(first_j < first_i, count_j, count_i)
    # Not ZERO: the compiler would take a variable that starts as a constant for the constant itself.
    p = vec2(scalar(0.0))
    for sweep in range(4):
        total = vec2(scalar(0.0))
        moves = scalar(0.0)
        for k in range(count_i + count_j):
            line = lists.lines[wp.where(k >= count, second + k - count, first + k)]
            shortfall = scalar(0.05) - line[0] * p[0] - line[1] * p[1] - line[2]
            if shortfall > ZERO:
                p += shortfall * vec2(line[0], line[1])
                total += p
                moves += ONE
        if sweep == 3 and moves > ONE:
            p = total / moves
        p = vec2(wp.clamp(p[0], -HALF, HALF), wp.clamp(p[1], -HALF, HALF))
    return p


@wp.func
def insert_layer(s: Contents, at: Pixel, lists: Lists, n: int, patch: int, first: int, count: int):
    """Insert a layer into the order from near to far; drop the farthest where there is no room."""
    place = int(n)
    ahead = bool(True)
    while place > 0 and ahead:
        neighbor = lists.layers[place - 1]
        p = common_point(lists, first, count, neighbor[1], neighbor[2])
        ahead = in_front(s, at.b, patch, neighbor[0], at.x + p[0], at.y + p[1])
        if ahead:
            if place < MAX_LAYERS:
                lists.layers[place] = neighbor
            place -= 1
    if place < MAX_LAYERS:
        lists.layers[place] = int3(patch, first, count)
    return wp.min(n + 1, MAX_LAYERS)


@wp.func
def same_shape(s: Contents, b: int, lists: Lists, i: int, j: int):
    """Return true if two layers are patches of one shape."""
    return s.patches[b, lists.layers[i][0]].shape == s.patches[b, lists.layers[j][0]].shape


@wp.func
def both_hit(s: Contents, at: Pixel, i: int, j: int, p: vec2):
    """Return true if the ray through a point of the pixel hits both patches."""
    hit = is_hit(s.lines, at.b, s.patches[at.b, i], at.x + p[0], at.y + p[1])
    return hit and is_hit(s.lines, at.b, s.patches[at.b, j], at.x + p[0], at.y + p[1])


@wp.func
def farthest_common_hit(s: Contents, at: Pixel, i: int, j: int, start: vec2, end: vec2):
    """Return the last point on the way at which rays hit both patches: its end, or near to an outline."""
    a = vec2(start[0], start[1])
    b = vec2(end[0], end[1])
    if both_hit(s, at, i, j, b):
        return b
    for _halving in range(5):
        middle = HALF * (a + b)
        if both_hit(s, at, i, j, middle):
            a = middle
        else:
            b = middle
    return a


@wp.func
def common_side(lists: Lists, i: int, j: int, k: int):
    """Return the ends of a side of the intersection of the pixel and layers `i` and `j`, and true if it has it.

    The first four are the pixel's, followed by the lines of `i` and those of `j`.
    """
    p = vec2(scalar(0.0))
    u = vec2(scalar(0.0))
    if k < 2:
        p = vec2(HALF * scalar(2 * k - 1), ZERO)
        u = vec2(ZERO, ONE)
    elif k < 4:
        p = vec2(ZERO, HALF * scalar(2 * k - 5))
        u = vec2(ONE, ZERO)
    else:
        own = k - 4 < lists.layers[i][2]
        line = lists.lines[wp.where(own, lists.layers[i][1], lists.layers[j][1] - lists.layers[i][2]) + k - 4]
        u = vec2(line[1], -line[0])
        p = line[2] * vec2(-line[0], -line[1])
    span = clip(lists, i, -1, p, u, STEP, clip_to_pixel(p, u))
    span = clip(lists, j, -1, p, u, STEP, span)
    return p + span[0] * u, p + span[1] * u, span[0] <= span[1]


@wp.func
def order_change(s: Contents, at: Pixel, lists: Lists, i: int, j: int, p: vec2, lead: scalar):
    """Return a point next to which layers `i` and `j` change their order, and true if there is one.

    Given are a point and the nearness difference `lead` there. Towards a limb depths change without bound, and a
    tangent plane predicts crossings that do not exist. So the search goes towards the corners of the intersection of
    both outlines, as far as rays hit both patches: beside a patch its depth means nothing. Bisection then finds the
    change.
    """
    patch = lists.layers[i][0]
    neighbor = lists.layers[j][0]
    a = vec2(p[0], p[1])
    b = vec2(p[0], p[1])
    max_change = scalar(0.0)
    for k in range(4 + lists.layers[i][2] + lists.layers[j][2]):
        start, end, is_side = common_side(lists, i, j, k)
        if is_side:
            for corner in range(2):
                c = farthest_common_hit(s, at, patch, neighbor, p, wp.where(corner == 1, end, start))
                lead_there, _gx, _gy, _same = nearness_difference(s, at.b, patch, neighbor, at.x + c[0], at.y + c[1])
                if -lead_there * wp.sign(lead) > max_change:
                    max_change = -lead_there * wp.sign(lead)
                    b = c
    if max_change <= ZERO:
        return a, False
    for _halving in range(5):
        middle = HALF * (a + b)
        lead_there, _gx, _gy, _same = nearness_difference(s, at.b, patch, neighbor, at.x + middle[0], at.y + middle[1])
        if lead_there * lead > ZERO:
            a = middle
        else:
            b = middle
    return a, True


@wp.func
def split_layer(s: Contents, at: Pixel, lists: Lists, n: int, i: int, used: int):
    """Cut layer `i` where the next one intersects it; return the number of lines then, unchanged if it does not."""
    patch = lists.layers[i][0]
    first = lists.layers[i][1]
    count = lists.layers[i][2]
    # The next layer of another shape: a cylinder's body is right behind its cap.
    j = i + 1
    if same_shape(s, at.b, lists, i, j) and j + 1 < n:
        j = i + 2
    if same_shape(s, at.b, lists, i, j) or used + count + 1 > MAX_LINES or n >= MAX_LAYERS:
        return used
    neighbor = lists.layers[j][0]
    p = common_point(lists, first, count, lists.layers[j][1], lists.layers[j][2])
    lead, gx, gy, same = nearness_difference(s, at.b, patch, neighbor, at.x + p[0], at.y + p[1])
    if same or wp.abs(lead - gx * p[0] - gy * p[1]) >= HALF * (wp.abs(gx) + wp.abs(gy)):
        return used
    q, changes = order_change(s, at, lists, i, j, p, lead)
    if not changes:
        return used
    lead, gx, gy, same = nearness_difference(s, at.b, patch, neighbor, at.x + q[0], at.y + q[1])
    slope = wp.max(wp.sqrt(gx * gx + gy * gy), TINY)
    for k in range(count):
        lists.lines[used + k] = lists.lines[first + k]
        lists.codes[used + k] = lists.codes[first + k]
    at_middle = lead - gx * q[0] - gy * q[1]
    end = append_line(lists, used + count, gx / slope, gy / slope, at_middle / slope, DEPTH_EDGE, neighbor)
    for k in range(n - j - 1):
        lists.layers[n - k] = lists.layers[n - k - 1]
    lists.layers[j + 1] = int3(patch, first, count)
    lists.layers[i] = int3(patch, used, count + 1)
    return end


@wp.func
def list_layers(s: Contents, at: Pixel, lists: Lists):
    """List the layers of a pixel from near to far; return their number."""
    n = int(0)
    used = int(0)
    for p in range(s.count):
        if in_bounds(s, at.b, p, at.x, at.y):
            patch = s.patches[at.b, p]
            state = pixel_state(s.lines, at.b, patch, at.x, at.y)
            if state != OUTSIDE:
                end = int(used)
                if state == CROSSED:
                    end = append_outline(s.lines, at.b, patch, at.x, at.y, lists, used)
                if end >= 0:
                    point = common_point(lists, used, end - used, used, 0)
                    if depth_at(patch, at.x + point[0], at.y + point[1]) > patch.near:
                        n = insert_layer(s, at, lists, n, p, used, end - used)
                        used = end
    i = int(0)
    while i + 1 < n:
        lines = split_layer(s, at, lists, n, i, used)
        if lines > used:
            used = lines
            n += 1
            # The two parts of the cut patch are not compared again; a cylinder's body is cut as its cap was.
            if not same_shape(s, at.b, lists, i, i + 1):
                i += 1
            i += 1
        else:
            if lists.layers[i][2] == 0:
                n = i + 1
            i += 1
    return n
