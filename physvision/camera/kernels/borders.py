"""Borders of the visible part of each layer in a pixel, other than its own outline."""

import warp as wp

from .edges import DEPTH_EDGE
from .lists import MAX_BORDERS, Lists
from .precision import scalar
from .scene import HALF, NO_PATCH, ZERO
from .visible import STEP, clip, nearest_layer


@wp.func
def append_border(
    borders: wp.array(dtype=scalar),
    owners: wp.array(dtype=int),
    n: int,
    x: scalar,
    y: scalar,
    across_x: scalar,
    across_y: scalar,
    layer: int,
    piece: int,
):
    """Append one border with its layer and piece; return the number of borders."""
    if n >= MAX_BORDERS:
        return n
    borders[5 * n] = x
    borders[5 * n + 1] = y
    borders[5 * n + 2] = across_x
    borders[5 * n + 3] = across_y
    owners[2 * n] = layer
    owners[2 * n + 1] = piece
    return n + 1


@wp.func
def append_pixel_sides(lists: Lists, count: int, borders: wp.array(dtype=scalar), owners: wp.array(dtype=int), n: int):
    """Append the visible parts of layers on the sides of the pixel: center, n ds; layer, NO_PATCH."""
    for side in range(4):
        across_x = scalar(2 * (side % 2) - 1)
        across_y = scalar(ZERO)
        if side > 1:
            across_y = across_x
            across_x = ZERO
        px = HALF * across_x
        py = HALF * across_y
        ux = wp.abs(across_y)
        uy = wp.abs(across_x)
        for k in range(count):
            lo, hi = clip(lists, k, -1, px, py, ux, uy, ZERO, -HALF, HALF)
            lists.spans[2 * k] = lo
            lists.spans[2 * k + 1] = hi
        t = scalar(-0.5)
        while t < HALF:
            layer, following = nearest_layer(lists, count, -1, t)
            end = wp.max(wp.min(following, HALF), t + STEP)
            if layer < count:
                at = HALF * (t + end)
                length = end - t
                x = px + at * ux
                y = py + at * uy
                n = append_border(borders, owners, n, x, y, across_x * length, across_y * length, layer, NO_PATCH)
            t = end
    return n


@wp.func
def append_outline_pieces(
    lists: Lists, count: int, used: int, borders: wp.array(dtype=scalar), owners: wp.array(dtype=int), n: int
):
    """Append to the borders of each layer the outlines of layers before it: center, n ds; layer, piece.

    Where two layers intersect, that line is no outline of the inner one either.
    """
    for k in range(used):
        line = lists.sides[3 * k]
        across_x = lists.lines[3 * line] * lists.pieces[3 * k + 2]
        across_y = lists.lines[3 * line + 1] * lists.pieces[3 * k + 2]
        x = lists.pieces[3 * k]
        y = lists.pieces[3 * k + 1]
        if lists.sides[3 * k + 2] < count:
            n = append_border(borders, owners, n, x, y, across_x, across_y, lists.sides[3 * k + 2], k)
        if lists.codes[2 * line] == DEPTH_EDGE:
            n = append_border(borders, owners, n, x, y, -across_x, -across_y, lists.sides[3 * k + 1], k)
    return n
