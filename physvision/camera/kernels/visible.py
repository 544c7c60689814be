"""How much of a pixel each layer fills, and along which lines one layer gives way to another.

Everything follows from one-dimensional visibility along the sides of the pixel and along the outlines in it. Along a
straight line every layer covers one interval, because it is convex, so the nearest one at each place is found by
walking from one end of an interval to the next. Green's theorem then gives the area and the first moments of what is
seen:

    ∫∫ dA = ∮ x n_x ds,    ∫∫ x dA = ∮ ½ x² n_x ds,    ∫∫ y dA = ∮ x y n_x ds,

summed over the left and right sides of the pixel and over both sides of every visible piece of outline. The same pieces
carry the gradient of the edges (see `adjoint`).
"""

import warp as wp

from . import scalar
from .scene import HALF, ONE, TWO, ZERO

MOST_PIECES = wp.constant(48)
# Lines closer than this, in pixels, are one line.
SAME_LINE = wp.constant(scalar(1.0e-3))
# What is smaller, in pixels squared, is not drawn.
LEAST_AREA = wp.constant(scalar(1.0e-5))
STEP = wp.constant(scalar(1.0e-6))
SIXTH = wp.constant(scalar(1.0 / 6.0))


@wp.func
def clip(
    lines: wp.array(dtype=scalar),
    first: int,
    count: int,
    skip: int,
    px: scalar,
    py: scalar,
    ux: scalar,
    uy: scalar,
    slack: scalar,
    low: scalar,
    high: scalar,
):
    """The part of the points p + t u, t between `low` and `high`, inside all half-planes (moved out by `slack`)."""
    lo = scalar(low)
    hi = scalar(high)
    for k in range(first, first + count):
        if k != skip:
            value = lines[3 * k] * px + lines[3 * k + 1] * py + lines[3 * k + 2] + slack
            rate = lines[3 * k] * ux + lines[3 * k + 1] * uy
            if wp.abs(rate) < scalar(1.0e-7):
                if value < ZERO:
                    hi = lo - ONE
            elif rate > ZERO:
                lo = wp.max(lo, -value / rate)
            else:
                hi = wp.min(hi, -value / rate)
    return lo, hi


@wp.func
def clip_to_pixel(px: scalar, py: scalar, ux: scalar, uy: scalar):
    """The part of the points p + t u inside the pixel."""
    low = scalar(-1.0)
    high = scalar(1.0)
    for axis in range(2):
        at = px
        rate = ux
        if axis == 1:
            at = py
            rate = uy
        if wp.abs(rate) < scalar(1.0e-7):
            if wp.abs(at) > HALF:
                high = low - ONE
        else:
            reach = HALF / wp.abs(rate)
            low = wp.max(low, -at / rate - reach)
            high = wp.min(high, -at / rate + reach)
    return low, high


@wp.func
def at_place(spans: wp.array(dtype=scalar), n: int, without: int, t: scalar):
    """The nearest layer that covers the place `t`, and the next place where that may change."""
    found = int(n)
    following = scalar(1.0e9)
    for k in range(n):
        if k != without:
            lo = spans[2 * k]
            hi = spans[2 * k + 1]
            if lo < hi:
                if lo > t:
                    following = wp.min(following, lo)
                elif hi > t:
                    following = wp.min(following, hi)
                    if found == n:
                        found = k
    return found, following


@wp.func
def add_moments(
    moments: wp.array(dtype=scalar),
    spreads: wp.array(dtype=scalar),
    layer: int,
    sign: scalar,
    x0: scalar,
    y0: scalar,
    x1: scalar,
    y1: scalar,
    rise: scalar,
):
    """Add the boundary integrals over a straight piece whose n_x ds is `rise` in all."""
    weight = sign * rise
    moments[3 * layer] += weight * HALF * (x0 + x1)
    moments[3 * layer + 1] += weight * SIXTH * (x0 * x0 + x0 * x1 + x1 * x1)
    moments[3 * layer + 2] += weight * SIXTH * (x0 * (TWO * y0 + y1) + x1 * (y0 + TWO * y1))
    weight = weight * HALF * SIXTH
    xx = x0 * x1
    yy = y0 * y1
    squares = x0 * x0 + x1 * x1
    spreads[3 * layer] += weight * (x0 + x1) * squares
    spreads[3 * layer + 1] += weight * HALF * ((squares + TWO * xx) * (y0 + y1) + TWO * (x0 * x0 * y0 + x1 * x1 * y1))
    spreads[3 * layer + 2] += weight * (
        (y0 * y0 + y1 * y1 + TWO * yy) * (x0 + x1) + TWO * (x0 * y0 * y0 + x1 * y1 * y1)
    )


@wp.func
def add_border(
    lines: wp.array(dtype=scalar),
    layers: wp.array(dtype=int),
    n: int,
    spans: wp.array(dtype=scalar),
    moments: wp.array(dtype=scalar),
    spreads: wp.array(dtype=scalar),
    x: scalar,
):
    """The left (x = −½) or right (x = ½) side of the pixel."""
    for k in range(n):
        lo, hi = clip(lines, layers[3 * k + 1], layers[3 * k + 2], -1, x, ZERO, ZERO, ONE, ZERO, -HALF, HALF)
        spans[2 * k] = lo
        spans[2 * k + 1] = hi
    t = scalar(-0.5)
    while t < HALF:
        layer, following = at_place(spans, n, -1, t)
        end = wp.max(wp.min(following, HALF), t + STEP)
        add_moments(moments, spreads, layer, ONE, x, t, x, end, (end - t) * TWO * x)
        t = end


@wp.func
def add_outline(
    lines: wp.array(dtype=scalar),
    layers: wp.array(dtype=int),
    n: int,
    spans: wp.array(dtype=scalar),
    moments: wp.array(dtype=scalar),
    spreads: wp.array(dtype=scalar),
    pieces: wp.array(dtype=scalar),
    sides: wp.array(dtype=int),
    used: int,
    layer: int,
    line: int,
):
    """The visible pieces of one line of one layer; the number of pieces then."""
    a = lines[3 * line]
    b = lines[3 * line + 1]
    c = lines[3 * line + 2]
    px = -c * a
    py = -c * b
    # Along the line, the inside on the left: u = (b, −a). Clip to the pixel, then to the layer's other lines.
    low, high = clip_to_pixel(px, py, b, -a)
    first = layers[3 * layer + 1]
    low, high = clip(lines, first, layers[3 * layer + 2], line, px, py, b, -a, ZERO, low, high)
    if low >= high:
        return used
    # Who is in front hides the line wherever it touches it; who is behind shows where it covers the far side.
    for k in range(n):
        slack = SAME_LINE
        ox = px
        oy = py
        if k > layer:
            slack = ZERO
            ox = px - TWO * SAME_LINE * a
            oy = py - TWO * SAME_LINE * b
        if k != layer:
            lo, hi = clip(lines, layers[3 * k + 1], layers[3 * k + 2], -1, ox, oy, b, -a, slack, low, high)
            spans[2 * k] = lo
            spans[2 * k + 1] = hi
    t = scalar(low)
    while t < high:
        other, following = at_place(spans, n, layer, t)
        end = wp.max(wp.min(following, high), t + STEP)
        if other > layer and used < MOST_PIECES:
            x0 = px + t * b
            y0 = py - t * a
            x1 = px + end * b
            y1 = py - end * a
            add_moments(moments, spreads, layer, ONE, x0, y0, x1, y1, -a * (end - t))
            add_moments(moments, spreads, other, -ONE, x0, y0, x1, y1, -a * (end - t))
            pieces[3 * used] = HALF * (x0 + x1)
            pieces[3 * used + 1] = HALF * (y0 + y1)
            pieces[3 * used + 2] = end - t
            sides[3 * used] = line
            sides[3 * used + 1] = layer
            sides[3 * used + 2] = other
            used += 1
        t = end
    return used


@wp.func
def spread_out(spreads: wp.array(dtype=scalar), layer: int, inverse: scalar, x: scalar, y: scalar):
    """From second moments to the parallelogram (see `look`) that has the same ones about its middle."""
    twelve = scalar(12.0)
    across = wp.sqrt(wp.clamp(twelve * (spreads[3 * layer] * inverse - x * x), ZERO, ONE))
    skew = twelve * (spreads[3 * layer + 1] * inverse - x * y) / wp.max(across, STEP)
    skew = wp.clamp(skew, -ONE, ONE)
    down = twelve * (spreads[3 * layer + 2] * inverse - y * y) - skew * skew
    spreads[3 * layer] = across
    spreads[3 * layer + 1] = skew
    spreads[3 * layer + 2] = wp.sqrt(wp.clamp(down, ZERO, ONE))


@wp.func
def measure(
    lines: wp.array(dtype=scalar),
    layers: wp.array(dtype=int),
    n: int,
    spans: wp.array(dtype=scalar),
    moments: wp.array(dtype=scalar),
    spreads: wp.array(dtype=scalar),
    pieces: wp.array(dtype=scalar),
    sides: wp.array(dtype=int),
):
    """Area and centroid of what is seen of each layer (the last: of the background), and the pieces of outline.

    moments: area, x, y of each layer. spreads: see `look`. pieces: middle and length. sides: line, layer inside, layer
    outside.
    """
    used = int(0)
    add_border(lines, layers, n, spans, moments, spreads, -HALF)
    add_border(lines, layers, n, spans, moments, spreads, HALF)
    for layer in range(n):
        first = layers[3 * layer + 1]
        for line in range(first, first + layers[3 * layer + 2]):
            used = add_outline(lines, layers, n, spans, moments, spreads, pieces, sides, used, layer, line)
    for layer in range(n + 1):
        area = wp.clamp(moments[3 * layer], ZERO, ONE)
        moments[3 * layer] = area
        inverse = ONE / wp.max(area, LEAST_AREA)
        moments[3 * layer + 1] = wp.clamp(moments[3 * layer + 1] * inverse, -HALF, HALF)
        moments[3 * layer + 2] = wp.clamp(moments[3 * layer + 2] * inverse, -HALF, HALF)
        spread_out(spreads, layer, inverse, moments[3 * layer + 1], moments[3 * layer + 2])
    return used
