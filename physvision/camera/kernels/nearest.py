"""Kernel of depth and identity of the nearest patch at the center of each pixel."""

import warp as wp

from .depths import depth_at
from .hard import nearest_patch
from .precision import scalar
from .scene import NO_PATCH, Contents, center


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def nearest(first: int, stripe: int, s: Contents, depths: wp.array3d(dtype=scalar), shapes: wp.array3d(dtype=int)):
    """Fill depths (batch, height, width) and shapes (the same; −1 for the background)."""
    line, k = wp.tid()
    b = (first + line) // s.height
    row = (first + line) % s.height
    y = center(row, s.height)
    for column in range(k * stripe, wp.min((k + 1) * stripe, s.width)):
        x = center(column, s.width)
        p = nearest_patch(s, b, x, y)
        if p != NO_PATCH:
            depths[b, row, column] = depth_at(s.patches[b, p], x, y)
            shapes[b, row, column] = s.patches[b, p].shape
        else:
            shapes[b, row, column] = -1
