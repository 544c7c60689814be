"""The nearest hit of the ray through a pixel's middle: the camera without soft edges."""

import warp as wp

from . import scalar
from .edges import edge_of, edge_value, inside_body
from .layers import NOTHING, depth_at
from .scene import CAPSULE, HUGE, ONE, POLYGON, SAME_DEPTH, ZERO, Scene, extent, in_bounds, ray

# Pixels that sides of polygons are moved out, so that two faces of a box leave no gap between them.
OVERLAP = wp.constant(scalar(1.0e-4))


@wp.func
def is_hit(s: Scene, b: int, p: int, x: scalar, y: scalar):
    if s.kinds[p] == POLYGON:
        first = s.corners[p, 0]
        for i in range(s.corners[p, 1]):
            if s.lines[b, first + i, 0] * x + s.lines[b, first + i, 1] * y + s.lines[b, first + i, 2] < -OVERLAP:
                return False
        return True
    o, d = ray(s, b, p, x, y)
    size = extent(s, b, p)
    if s.kinds[p] >= CAPSULE and s.pinhole != 0:
        if inside_body(s.kinds[p], o, size):
            return True
    edge, end = edge_of(s.kinds[p], o, d, size)
    return edge_value(edge, end, o, d, size) > ZERO


@wp.func
def hard_front(s: Scene, b: int, x: scalar, y: scalar):
    """The patch that is hit first, or NOTHING; at the same depth the later shape."""
    found = int(NOTHING)
    least = scalar(HUGE)
    for p in range(s.patches):
        if in_bounds(s, b, p, x, y) and is_hit(s, b, p, x, y):
            t = depth_at(s, b, p, x, y)
            if t > s.near:
                closer = t < least
                if found != NOTHING:
                    if s.shapes[found] == s.shapes[p]:
                        closer = t < least * (ONE - SAME_DEPTH)
                    else:
                        closer = t <= least * (ONE + SAME_DEPTH)
                if closer:
                    found = p
                    least = t
    return found
