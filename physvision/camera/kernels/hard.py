"""The nearest hit of the ray through a pixel's middle: the camera without soft edges."""

import warp as wp

from .depths import depth_at
from .edges import edge_of, edge_value, inside_body
from .precision import scalar
from .scene import CAPSULE, HUGE, NOTHING, ONE, POLYGON, SAME_DEPTH, ZERO, Contents, Patch, in_bounds, ray

# Pixels that sides of polygons are moved out, so that two faces of a box leave no gap between them.
OVERLAP = wp.constant(scalar(1.0e-4))


@wp.func
def is_hit(lines: wp.array3d(dtype=scalar), b: int, patch: Patch, x: scalar, y: scalar):
    if patch.kind == POLYGON:
        for i in range(patch.corner, patch.corner + patch.corners):
            if lines[b, i, 0] * x + lines[b, i, 1] * y + lines[b, i, 2] < -OVERLAP:
                return False
        return True
    o, d = ray(patch, x, y)
    if patch.kind >= CAPSULE and patch.pinhole != 0:
        if inside_body(patch.kind, o, patch.size):
            return True
    edge, end = edge_of(patch.kind, o, d, patch.size)
    return edge_value(edge, end, o, d, patch.size) > ZERO


@wp.func
def hard_front(s: Contents, b: int, x: scalar, y: scalar):
    """The patch that is hit first, or NOTHING; at the same depth the later shape."""
    found = int(NOTHING)
    found_shape = int(NOTHING)
    least = scalar(HUGE)
    for p in range(s.count):
        if in_bounds(s, b, p, x, y):
            patch = s.patches[b, p]
            if is_hit(s.lines, b, patch, x, y):
                t = depth_at(patch, x, y)
                if t > patch.near:
                    closer = t <= least * (ONE + SAME_DEPTH)
                    if patch.shape == found_shape:
                        closer = t < least * (ONE - SAME_DEPTH)
                    if closer:
                        found = p
                        found_shape = patch.shape
                        least = t
    return found
