"""Search for the one patch that hides all others in a pixel, which most pixels have."""

import warp as wp

from .depths import depth_at, depth_plane, is_behind, patches_intersect
from .outline import COVERED, CROSSED, pixel_state
from .precision import scalar
from .scene import DEPTH_TOLERANCE, HUGE, NO_PATCH, ONE, Contents, in_bounds

MIXED = wp.constant(-2)


@wp.func
def covering_patch(s: Contents, b: int, x: scalar, y: scalar):
    """Return the one patch that fills the pixel, NO_PATCH, or MIXED."""
    first = int(NO_PATCH)
    second = int(NO_PATCH)
    first_shape = int(NO_PATCH)
    t_first = scalar(HUGE)
    t_second = scalar(HUGE)
    crossed = int(NO_PATCH)
    many_crossed = bool(False)
    for p in range(s.count):
        if in_bounds(s, b, p, x, y):
            patch = s.patches[b, p]
            state = pixel_state(s.lines, b, patch, x, y)
            if state == CROSSED:
                many_crossed = crossed != NO_PATCH
                crossed = p
            elif state == COVERED:
                t = depth_at(patch, x, y)
                if t > patch.near:
                    if patch.shape == first_shape:
                        if t < t_first:
                            first = p
                            t_first = t
                    elif t <= t_first * (ONE + DEPTH_TOLERANCE):
                        second = first
                        t_second = t_first
                        first = p
                        first_shape = patch.shape
                        t_first = t
                    elif t < t_second:
                        second = p
                        t_second = t
    if crossed != NO_PATCH:
        if first == NO_PATCH or many_crossed:
            return MIXED
        t, t_x, t_y = depth_plane(s.patches[b, first], x, y)
        if not is_behind(s.patches[b, crossed], t, wp.abs(t_x) + wp.abs(t_y), x, y):
            return MIXED
    if second != NO_PATCH:
        if patches_intersect(s, b, first, second, x, y):
            return MIXED
    return first
