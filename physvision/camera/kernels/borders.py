"""Borders of the visible part of each layer in a pixel, other than its own outline."""

import warp as wp

from .edges import DEPTH_EDGE
from .lists import MAX_BORDERS, Lists, int2, vec2, vec5
from .precision import scalar
from .scene import HALF, NO_PATCH, ZERO
from .visible import STEP, clip, nearest_layer


@wp.func
def append_border(
    borders: wp.array(dtype=vec5), owners: wp.array(dtype=int2), n: int, p: vec2, across: vec2, layer: int, piece: int
):
    """Append one border with its layer and piece; return the number of borders."""
    if n >= MAX_BORDERS:
        return n
    borders[n] = vec5(p[0], p[1], across[0], across[1], ZERO)
    owners[n] = int2(layer, piece)
    return n + 1


@wp.func
def append_pixel_sides(lists: Lists, count: int, borders: wp.array(dtype=vec5), owners: wp.array(dtype=int2), n: int):
    """Append the visible parts of layers on the sides of the pixel: center, n ds; layer, NO_PATCH."""
    for side in range(4):
        sign = scalar(2 * (side % 2) - 1)
        across = vec2(sign * scalar(1 - side / 2), sign * scalar(side / 2))
        u = vec2(wp.abs(across[1]), wp.abs(across[0]))
        for k in range(count):
            lists.spans[k] = clip(lists, k, -1, HALF * across, u, ZERO, vec2(-HALF, HALF))
        t = scalar(-0.5)
        while t < HALF:
            layer, following = nearest_layer(lists, count, -1, t)
            end = wp.max(wp.min(following, HALF), t + STEP)
            if layer < count:
                p = HALF * across + HALF * (t + end) * u
                n = append_border(borders, owners, n, p, (end - t) * across, layer, NO_PATCH)
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
        p = vec2(piece[0], piece[1])
        across = piece[2] * vec2(lists.lines[side[0]][0], lists.lines[side[0]][1])
        if side[2] < count:
            n = append_border(borders, owners, n, p, across, side[2], k)
        if lists.codes[side[0]][0] == DEPTH_EDGE:
            n = append_border(borders, owners, n, p, -across, side[1], k)
    return n
