"""Nearest hit of the ray through a pixel's center: the camera without soft edges."""

import warp as wp

from .depths import depth_at
from .edges import bounding_edge, edge_value, inside_body
from .precision import scalar
from .scene import CAPSULE, DEPTH_TOLERANCE, HUGE, NO_PATCH, ONE, POLYGON, ZERO, Contents, Patch, in_bounds, ray

# Pixels by which sides of polygons are moved out, so that two faces of a box leave no gap between them.
SIDE_MARGIN = wp.constant(scalar(1.0e-4))


@wp.func
def is_hit(lines: wp.array3d(dtype=scalar), b: int, patch: Patch, x: scalar, y: scalar):
    """Return true if the ray through (x, y) hits the patch."""
    if patch.kind == POLYGON:
        for i in range(patch.corner, patch.corner + patch.corners):
            if lines[b, i, 0] * x + lines[b, i, 1] * y + lines[b, i, 2] < -SIDE_MARGIN:
                return False
        return True
    o, d = ray(patch, x, y)
    if patch.kind >= CAPSULE and patch.pinhole != 0:
        if inside_body(patch.kind, o, patch.size):
            return True
    edge, end = bounding_edge(patch.kind, o, d, patch.size)
    return edge_value(edge, end, o, d, patch.size) > ZERO


@wp.func
def nearest_patch(s: Contents, b: int, x: scalar, y: scalar):
    """Return the patch that is hit first, or NO_PATCH; at equal depth the later shape."""
    nearest = int(NO_PATCH)
    nearest_shape = int(NO_PATCH)
    min_depth = scalar(HUGE)
    for p in range(s.count):
        if in_bounds(s, b, p, x, y):
            patch = s.patches[b, p]
            if is_hit(s.lines, b, patch, x, y):
                t = depth_at(patch, x, y)
                if t > patch.near:
                    closer = t <= min_depth * (ONE + DEPTH_TOLERANCE)
                    if patch.shape == nearest_shape:
                        closer = t < min_depth * (ONE - DEPTH_TOLERANCE)
                    if closer:
                        nearest = p
                        nearest_shape = patch.shape
                        min_depth = t
    return nearest
