"""Borders of the visible part of each layer in a pixel, other than its own outline."""

import warp as wp

from .edges import DEPTH_EDGE
from .lists import MAX_BORDERS, Lists, int2, vec2, vec5
from .precision import scalar
from .scene import HALF, NO_PATCH, ZERO
from .visible import STEP, clip, nearest_layer


@wp.func
def append_border(
    borders: wp.array(dtype=vec5),
    owners: wp.array(dtype=int2),
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
    borders[n] = vec5(x, y, across_x, across_y, ZERO)
    owners[n] = int2(layer, piece)
    return n + 1


@wp.func
def append_pixel_sides(lists: Lists, count: int, borders: wp.array(dtype=vec5), owners: wp.array(dtype=int2), n: int):
    """Append the visible parts of layers on the sides of the pixel: center, n ds; layer, NO_PATCH."""
    for side in range(4):
        across_x = scalar((2 * (side % 2) - 1) * (1 - side / 2))
        across_y = scalar((2 * (side % 2) - 1) * (side / 2))
        px = HALF * across_x
        py = HALF * across_y
        ux = wp.abs(across_y)
        uy = wp.abs(across_x)
        for k in range(count):
            lo, hi = clip(lists, k, -1, px, py, ux, uy, ZERO, -HALF, HALF)
            lists.spans[k] = vec2(lo, hi)
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
    lists: Lists, count: int, used: int, borders: wp.array(dtype=vec5), owners: wp.array(dtype=int2), n: int
):
    """Append to the borders of each layer the outlines of layers before it: center, n ds; layer, piece.

    Where two layers intersect, that line is no outline of the inner one either.
    """
    for k in range(used):
        side = lists.sides[k]
        piece = lists.pieces[k]
        across_x = lists.lines[side[0]][0] * piece[2]
        across_y = lists.lines[side[0]][1] * piece[2]
        if side[2] < count:
            n = append_border(borders, owners, n, piece[0], piece[1], across_x, across_y, side[2], k)
        if lists.codes[side[0]][0] == DEPTH_EDGE:
            n = append_border(borders, owners, n, piece[0], piece[1], -across_x, -across_y, side[1], k)
    return n
