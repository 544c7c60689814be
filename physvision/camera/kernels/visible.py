"""Visible area of each layer in a pixel, and the lines along which one layer gives way to another.

Everything follows from one-dimensional visibility along the sides of the pixel and along the outlines in it. Along a
straight line every layer covers one interval, because it is convex, so a walk from one end of an interval to the next
finds the nearest layer everywhere. Green's theorem then gives the area and the first moments of the visible part:

    ∫∫ dA = ∮ x n_x ds,    ∫∫ x dA = ∮ ½ x² n_x ds,    ∫∫ y dA = ∮ x y n_x ds,

summed over the left and right sides of the pixel and over both sides of every visible piece of outline. The same pieces
carry the gradient of the edges (see `adjoint`).
"""

import warp as wp

from .lists import MAX_PIECES, Lists, int3, vec2
from .precision import scalar
from .scene import HALF, ONE, TWO, ZERO, vec3

# Distance in pixels below which two lines are one.
LINE_TOLERANCE = wp.constant(scalar(1.0e-3))
# Smallest area that is rendered, in pixels squared.
MIN_AREA = wp.constant(scalar(1.0e-5))
STEP = wp.constant(scalar(1.0e-6))
SIXTH = wp.constant(scalar(1.0 / 6.0))


@wp.func
def clip(lists: Lists, layer: int, skip: int, p: vec2, u: vec2, slack: scalar, span: vec2):
    """Return the interval of p + t u, t in the span, inside a layer's lines (moved out by `slack`)."""
    lo = scalar(span[0])
    hi = scalar(span[1])
    owner = lists.layers[layer]
    for k in range(owner[1], owner[1] + owner[2]):
        if k != skip:
            line = lists.lines[k]
            value = line[0] * p[0] + line[1] * p[1] + line[2] + slack
            rate = line[0] * u[0] + line[1] * u[1]
            if wp.abs(rate) < scalar(1.0e-7):
                if value < ZERO:
                    hi = lo - ONE
            elif rate > ZERO:
                lo = wp.max(lo, -value / rate)
            else:
                hi = wp.min(hi, -value / rate)
    return vec2(lo, hi)


@wp.func
def clip_to_pixel(p: vec2, u: vec2):
    """Return the interval of p + t u inside the pixel."""
    low = scalar(-1.0)
    high = scalar(1.0)
    for axis in range(2):
        if wp.abs(u[axis]) < scalar(1.0e-7):
            if wp.abs(p[axis]) > HALF:
                high = low - ONE
        else:
            extent = HALF / wp.abs(u[axis])
            low = wp.max(low, -p[axis] / u[axis] - extent)
            high = wp.min(high, -p[axis] / u[axis] + extent)
    return vec2(low, high)


@wp.func
def nearest_layer(lists: Lists, n: int, skip: int, t: scalar):
    """Return the nearest layer that covers the point at `t`, and the next `t` at which that may change."""
    layer = int(n)
    following = scalar(1.0e9)
    for k in range(n):
        if k != skip:
            span = lists.spans[k]
            if span[0] < span[1]:
                if span[0] > t:
                    following = wp.min(following, span[0])
                elif span[1] > t:
                    following = wp.min(following, span[1])
                    if layer == n:
                        layer = k
    return layer, following


@wp.func
def add_moments(lists: Lists, layer: int, x0: scalar, y0: scalar, x1: scalar, y1: scalar, weight: scalar):
    """Add the boundary integrals over a straight piece with total n_x ds of `weight`."""
    lists.moments[layer] += vec3(
        weight * HALF * (x0 + x1),
        weight * SIXTH * (x0 * x0 + x0 * x1 + x1 * x1),
        weight * SIXTH * (x0 * (TWO * y0 + y1) + x1 * (y0 + TWO * y1)),
    )
    factor = weight * HALF * SIXTH
    xx = x0 * x1
    yy = y0 * y1
    squares = x0 * x0 + x1 * x1
    lists.spreads[layer] += vec3(
        factor * (x0 + x1) * squares,
        factor * HALF * ((squares + TWO * xx) * (y0 + y1) + TWO * (x0 * x0 * y0 + x1 * x1 * y1)),
        factor * ((y0 * y0 + y1 * y1 + TWO * yy) * (x0 + x1) + TWO * (x0 * y0 * y0 + x1 * y1 * y1)),
    )


@wp.func
def add_pixel_side(lists: Lists, n: int, x: scalar):
    """Add the left (x = −½) or right (x = ½) side of the pixel."""
    for k in range(n):
        lists.spans[k] = clip(lists, k, -1, vec2(x, ZERO), vec2(ZERO, ONE), ZERO, vec2(-HALF, HALF))
    t = scalar(-0.5)
    while t < HALF:
        layer, following = nearest_layer(lists, n, -1, t)
        end = wp.max(wp.min(following, HALF), t + STEP)
        add_moments(lists, layer, x, t, x, end, (end - t) * TWO * x)
        t = end


@wp.func
def add_visible_outline(lists: Lists, n: int, used: int, layer: int, line: int):
    """Add the visible pieces of one line of one layer; return the number of pieces."""
    normal = vec2(lists.lines[line][0], lists.lines[line][1])
    p = -lists.lines[line][2] * normal
    # Along the line, the inside on the left. Clip to the pixel, then to the layer's other lines.
    u = vec2(normal[1], -normal[0])
    span = clip(lists, layer, line, p, u, ZERO, clip_to_pixel(p, u))
    if span[0] >= span[1]:
        return used
    # Layers in front hide the line wherever they touch it; those behind show where they cover the far side.
    for k in range(n):
        if k < layer:
            lists.spans[k] = clip(lists, k, -1, p, u, LINE_TOLERANCE, span)
        elif k > layer:
            lists.spans[k] = clip(lists, k, -1, p - TWO * LINE_TOLERANCE * normal, u, ZERO, span)
    t = scalar(span[0])
    while t < span[1]:
        behind, following = nearest_layer(lists, n, layer, t)
        end = wp.max(wp.min(following, span[1]), t + STEP)
        if behind > layer and used < MAX_PIECES:
            first = p + t * u
            last = p + end * u
            middle = HALF * (first + last)
            add_moments(lists, layer, first[0], first[1], last[0], last[1], -normal[0] * (end - t))
            add_moments(lists, behind, first[0], first[1], last[0], last[1], normal[0] * (end - t))
            lists.pieces[used] = vec3(middle[0], middle[1], end - t)
            lists.sides[used] = int3(line, layer, behind)
            used += 1
        t = end
    return used


@wp.func
def extents_from_moments(lists: Lists, layer: int, inverse: scalar, x: scalar, y: scalar):
    """Replace second moments by the parallelogram (see `sample_patch`) that has equal ones about its center."""
    twelve = scalar(12.0)
    spread = lists.spreads[layer]
    across = wp.sqrt(wp.clamp(twelve * (spread[0] * inverse - x * x), ZERO, ONE))
    skew = twelve * (spread[1] * inverse - x * y) / wp.max(across, STEP)
    skew = wp.clamp(skew, -ONE, ONE)
    down = twelve * (spread[2] * inverse - y * y) - skew * skew
    lists.spreads[layer] = vec3(across, skew, wp.sqrt(wp.clamp(down, ZERO, ONE)))


@wp.func
def measure_visibility(lists: Lists, n: int):
    """Set the visible part of each layer and of the background, and list the visible pieces of outline."""
    used = int(0)
    add_pixel_side(lists, n, -HALF)
    add_pixel_side(lists, n, HALF)
    for layer in range(n):
        owner = lists.layers[layer]
        for line in range(owner[1], owner[1] + owner[2]):
            used = add_visible_outline(lists, n, used, layer, line)
    for layer in range(n + 1):
        moment = lists.moments[layer]
        area = wp.clamp(moment[0], ZERO, ONE)
        inverse = ONE / wp.max(area, MIN_AREA)
        x = wp.clamp(moment[1] * inverse, -HALF, HALF)
        y = wp.clamp(moment[2] * inverse, -HALF, HALF)
        lists.moments[layer] = vec3(area, x, y)
        extents_from_moments(lists, layer, inverse, x, y)
    return used
