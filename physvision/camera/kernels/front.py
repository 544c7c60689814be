"""The one patch that hides all others in a pixel, for the many pixels in which there is one."""

import warp as wp

from .depths import depth_at, depth_plane, pass_through, surely_behind
from .outline import COVERED, CROSSED, pixel_state
from .precision import scalar
from .scene import HUGE, NOTHING, ONE, SAME_DEPTH, Contents, in_bounds

MIXED = wp.constant(-2)


@wp.func
def front(s: Contents, b: int, x: scalar, y: scalar):
    """The one patch that fills the pixel, NOTHING, or MIXED."""
    first = int(NOTHING)
    second = int(NOTHING)
    first_shape = int(NOTHING)
    t_first = scalar(HUGE)
    t_second = scalar(HUGE)
    crossed = int(NOTHING)
    several = bool(False)
    for p in range(s.count):
        if in_bounds(s, b, p, x, y):
            patch = s.patches[b, p]
            state = pixel_state(s.lines, b, patch, x, y)
            if state == CROSSED:
                several = crossed != NOTHING
                crossed = p
            elif state == COVERED:
                t = depth_at(patch, x, y)
                if t > patch.near:
                    if patch.shape == first_shape:
                        if t < t_first:
                            first = p
                            t_first = t
                    elif t <= t_first * (ONE + SAME_DEPTH):
                        second = first
                        t_second = t_first
                        first = p
                        first_shape = patch.shape
                        t_first = t
                    elif t < t_second:
                        second = p
                        t_second = t
    if crossed != NOTHING:
        if first == NOTHING or several:
            return MIXED
        t, t_x, t_y = depth_plane(s.patches[b, first], x, y)
        if not surely_behind(s.patches[b, crossed], t, wp.abs(t_x) + wp.abs(t_y), x, y):
            return MIXED
    if second != NOTHING:
        if pass_through(s, b, first, second, x, y):
            return MIXED
    return first
