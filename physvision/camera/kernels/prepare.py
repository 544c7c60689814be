"""Before the pixels: where on the screen each patch can be seen, and the lines that its sides make there."""

import warp as wp

from . import scalar
from .edges import side, side_slopes, side_value
from .outline import project
from .scene import DISC, HALF, HUGE, PLANE, POLYGON, SPHERE, TINY, ZERO, Scene, extent, row, screen_slope, vec3

# Pixels about a patch's corners that may still be touched by it.
MARGIN = wp.constant(scalar(1.5))


@wp.func
def finite(s: Scene, b: int, p: int):
    total = scalar(ZERO)
    for i in range(4):
        r = row(s, b, p, i)
        total += wp.abs(r[0]) + wp.abs(r[1]) + wp.abs(r[2])
    size = extent(s, b, p)
    total += wp.abs(size[0]) + wp.abs(size[1]) + wp.abs(size[2])
    # Neither NaN nor infinite.
    return total < HUGE


@wp.func
def has_size(kind: int, size: vec3):
    result = size[0] > ZERO
    if kind == POLYGON or kind == PLANE:
        result = size[0] > ZERO and size[1] > ZERO
    elif kind > SPHERE:
        result = size[0] > ZERO and size[2] >= ZERO
    return result


@wp.func
def faces_eye(s: Scene, b: int, p: int):
    """Whether the outward side of a face is turned to the eye."""
    sign = scalar(s.group[p, 1])
    eye = row(s, b, p, 0)
    result = sign * eye[2] > ZERO
    if s.pinhole == 0:
        result = sign * eye[2] < ZERO
    return result


@wp.func
def seen(s: Scene, b: int, p: int):
    """False for a face that is turned away, unless the eye is inside and sees all faces from behind."""
    if s.group[p, 1] == 0 or faces_eye(s, b, p):
        return True
    if s.pinhole == 0:
        return False
    inside = bool(True)
    for other in range(s.group[p, 0], s.patches):
        if s.group[other, 0] == s.group[p, 0] and s.group[other, 1] != 0 and faces_eye(s, b, other):
            inside = False
    if inside and s.kinds[p] == DISC:
        # Between the two caps of a cylinder, but inside only if also within its radius.
        eye = row(s, b, p, 0)
        size = extent(s, b, p)
        inside = eye[0] * eye[0] + eye[1] * eye[1] < size[0] * size[0]
    return inside


@wp.func
def half_extents(s: Scene, p: int, size: vec3):
    """Half the edges of a box about the patch, and its middle in x and y."""
    kind = s.kinds[p]
    half = vec3(size[0], size[0], ZERO)
    middle = vec3()
    if kind == SPHERE:
        half = vec3(size[0], size[0], size[0])
    elif kind > SPHERE:
        half = vec3(size[0], size[0], HALF * size[2] + size[0])
    elif kind == POLYGON:
        low_x = scalar(HUGE)
        low_y = scalar(HUGE)
        high_x = scalar(-HUGE)
        high_y = scalar(-HUGE)
        for i in range(s.corners[p, 1]):
            at, _along = side(s, p, i, size)
            low_x = wp.min(low_x, at[0])
            high_x = wp.max(high_x, at[0])
            low_y = wp.min(low_y, at[1])
            high_y = wp.max(high_y, at[1])
        half = vec3(HALF * (high_x - low_x), HALF * (high_y - low_y), ZERO)
        middle = vec3(HALF * (high_x + low_x), HALF * (high_y + low_y), ZERO)
    return half, middle


@wp.func
def bound(s: Scene, b: int, p: int):
    """A rectangle of the screen about the patch: all of it where some corner of its box is behind the camera."""
    size = extent(s, b, p)
    left = scalar(HUGE)
    top = scalar(HUGE)
    right = scalar(-HUGE)
    bottom = scalar(-HUGE)
    ahead = int(0)
    visible = bool(False)
    if finite(s, b, p):
        visible = has_size(s.kinds[p], size) and seen(s, b, p)
    if visible:
        half, middle = half_extents(s, p, size)
        if s.kinds[p] == PLANE:
            ahead = 1
        else:
            for i in range(8):
                across = half[0] * scalar(1 - 2 * (i % 2))
                along = half[1] * scalar(1 - 2 * ((i / 2) % 2))
                x, y, in_front = project(s, b, p, middle + vec3(across, along, half[2] * scalar(1 - 2 * (i / 4))))
                if in_front:
                    ahead += 1
                    left = wp.min(left, x - MARGIN)
                    right = wp.max(right, x + MARGIN)
                    top = wp.min(top, y - MARGIN)
                    bottom = wp.max(bottom, y + MARGIN)
    if ahead > 0 and ahead < 8:
        left = scalar(-HUGE)
        top = scalar(-HUGE)
        right = scalar(HUGE)
        bottom = scalar(HUGE)
    return left, top, right, bottom


@wp.func
def put_side(s: Scene, b: int, p: int, i: int):
    """The line of one side, its normal of length 1 and pointing inwards."""
    size = extent(s, b, p)
    o = row(s, b, p, 0)
    d = row(s, b, p, 3)
    # Seen from the front the corners go anticlockwise, and side_value is negative inside.
    inwards = -wp.sign(o[2])
    if s.pinhole == 0:
        o = row(s, b, p, 3)
        d = row(s, b, p, 0)
        inwards = wp.sign(d[2])
    by_o, by_d, _by_size = side_slopes(s, p, i, o, d, size)
    gx, gy = screen_slope(s, b, p, by_o, by_d)
    scale = inwards / wp.max(wp.sqrt(gx * gx + gy * gy), TINY)
    at = s.corners[p, 0] + i
    s.lines[b, at, 0] = gx * scale
    s.lines[b, at, 1] = gy * scale
    s.lines[b, at, 2] = side_value(s, p, i, o, d, size) * scale


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def prepare(s: Scene):
    b, p = wp.tid()
    left, top, right, bottom = bound(s, b, p)
    s.bounds[b, p, 0] = left
    s.bounds[b, p, 1] = top
    s.bounds[b, p, 2] = right
    s.bounds[b, p, 3] = bottom
    if s.kinds[p] == POLYGON and left < right:
        for i in range(s.corners[p, 1]):
            put_side(s, b, p, i)
