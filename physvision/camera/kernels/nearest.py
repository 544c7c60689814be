"""Depth and identity of what is nearest in the middle of each pixel."""

import warp as wp

from . import scalar
from .hard import hard_front
from .layers import NOTHING, depth_at
from .scene import Scene, center_x, center_y


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def nearest(s: Scene, depths: wp.array3d(dtype=scalar), shapes: wp.array3d(dtype=int)):
    """Fill depths (batch, height, width) and shapes (the same; −1 for the background)."""
    b, line, column = wp.tid()
    x = center_x(s, column)
    y = center_y(s, line)
    patch = hard_front(s, b, x, y)
    if patch != NOTHING:
        depths[b, line, column] = depth_at(s, b, patch, x, y)
        shapes[b, line, column] = s.shapes[patch]
    else:
        shapes[b, line, column] = -1
