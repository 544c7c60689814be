"""Outline of a patch inside one pixel, as half-planes a x + b y + c ≥ 0 about the pixel's center.

Sides of polygons and horizons are lines of the screen. A conic is replaced by a few of its tangents near the pixel:
exact where they touch, and straight in between. A tangent of a convex outline never cuts it, so one more can only be
better.
"""

import warp as wp

from .edges import (
    HORIZON_EDGE,
    LINE_EDGE,
    TUBE_EDGE,
    axis_coordinate,
    bounding_edge,
    edge_slopes,
    edge_value,
    end_edge,
    end_of_body,
    inside_body,
)
from .lists import MAX_LINES, Lists, int2
from .precision import scalar
from .scene import CAPSULE, HALF, ONE, PI, POLYGON, TINY, TWO, ZERO, Patch, ray, screen_slope, vec3

OUTSIDE = wp.constant(0)
COVERED = wp.constant(1)
CROSSED = wp.constant(2)
# Half the diagonal of a pixel.
HALF_DIAGONAL = wp.constant(scalar(0.70710678118654752))
# Half-axes, in pixels: below the first an ellipse becomes a polygon, above the second its outline is straight.
POLYGON_AXIS = wp.constant(scalar(2.0))
STRAIGHT_AXIS = wp.constant(scalar(300.0))
# An ellipse longer than a thousand times its width has two straight sides.
FLAT_RATIO = wp.constant(scalar(1.0e-6))
# Scale of the regular polygon of sixteen sides that has the area of its circle.
EQUAL_AREA = wp.constant(scalar(0.99356))


@wp.func
def edge_at(patch: Patch, edge: int, end: int, x: scalar, y: scalar):
    """Return value and slope along x and y of an edge function."""
    o, d = ray(patch, x, y)
    size = patch.size
    by_o, by_d, _by_size = edge_slopes(edge, end, o, d, size)
    gx, gy = screen_slope(patch, by_o, by_d)
    return edge_value(edge, end, o, d, size), gx, gy


@wp.func
def value_at(patch: Patch, edge: int, end: int, x: scalar, y: scalar):
    """Return the value of an edge function at (x, y)."""
    o, d = ray(patch, x, y)
    return edge_value(edge, end, o, d, patch.size)


@wp.func
def axis_coordinate_at(patch: Patch, x: scalar, y: scalar):
    """Return the axis coordinate of the ray through (x, y)."""
    o, d = ray(patch, x, y)
    return axis_coordinate(o, d)


@wp.func
def polygon_state(lines: wp.array3d(dtype=scalar), b: int, patch: Patch, x: scalar, y: scalar):
    """Return the state of a polygon in a pixel, see `pixel_state`."""
    state = int(COVERED)
    first = patch.corner
    for i in range(patch.corners):
        a = lines[b, first + i, 0]
        c = lines[b, first + i, 1]
        value = a * x + c * y + lines[b, first + i, 2]
        half = HALF * (wp.abs(a) + wp.abs(c))
        if value <= -half:
            return OUTSIDE
        if value < half:
            state = CROSSED
    return state


@wp.func
def curved_state(patch: Patch, x: scalar, y: scalar):
    """Bound an edge function: within r it is at least f − |∇f| r − M r² / 2, at most f + |∇f| r if concave."""
    kind = patch.kind
    o, d = ray(patch, x, y)
    size = patch.size
    if kind >= CAPSULE and patch.pinhole != 0:
        if inside_body(kind, o, size):
            return COVERED
    edge, end = bounding_edge(kind, o, d, size)
    f = edge_value(edge, end, o, d, size)
    by_o, by_d, _by_size = edge_slopes(edge, end, o, d, size)
    gx, gy = screen_slope(patch, by_o, by_d)
    slope = wp.sqrt(gx * gx + gy * gy)
    if f + HALF_DIAGONAL * slope <= ZERO:
        return OUTSIDE
    fixed = wp.where(patch.pinhole != 0, o, d)
    bend = ZERO
    if edge != HORIZON_EDGE:
        across = patch.by_x
        bend = TWO * (wp.dot(fixed, fixed) + HALF * size[2] * size[2]) * wp.dot(across, across)
    state = CROSSED
    if f - HALF_DIAGONAL * slope - HALF * HALF * bend >= ZERO and f > ZERO:
        state = COVERED
        if edge == TUBE_EDGE:
            # The rim of an end may still be near.
            here = axis_coordinate(o, d)
            change = HALF * (
                wp.abs(axis_coordinate_at(patch, x + ONE, y) - here)
                + wp.abs(axis_coordinate_at(patch, x, y + ONE) - here)
            )
            if wp.abs(here) + change > HALF * size[2]:
                state = CROSSED
    return state


@wp.func
def pixel_state(lines: wp.array3d(dtype=scalar), b: int, patch: Patch, x: scalar, y: scalar):
    """Return OUTSIDE if a patch misses a pixel, COVERED if it covers it, CROSSED if it may cross it."""
    if patch.kind == POLYGON:
        return polygon_state(lines, b, patch, x, y)
    return curved_state(patch, x, y)


@wp.func
def append_line(lists: Lists, n: int, a: scalar, b: scalar, c: scalar, edge: int, end: int):
    """Append a line with its code; return the number of lines."""
    if n >= MAX_LINES:
        return n
    lists.lines[n] = vec3(a, b, c)
    lists.codes[n] = int2(edge, end)
    return n + 1


@wp.func
def append_clipped_line(lists: Lists, n: int, a: scalar, b: scalar, c: scalar, edge: int, end: int):
    """Append a line if it cuts the pixel; return −1 if the whole pixel is outside."""
    if n < 0:
        return n
    length = wp.sqrt(a * a + b * b)
    reach = HALF * (wp.abs(a) + wp.abs(b))
    if length < TINY or c >= reach:
        return n
    if c <= -reach:
        return -1
    return append_line(lists, n, a / length, b / length, c / length, edge, end)


@wp.func
def append_tangent(patch: Patch, edge: int, end: int, x: scalar, y: scalar, steps: int, lists: Lists, n: int):
    """Append the tangent at the point that Newton's method finds along the slope."""
    dx = scalar(ZERO)
    dy = scalar(ZERO)
    f, gx, gy = edge_at(patch, edge, end, x, y)
    for _step in range(steps):
        square = wp.max(gx * gx + gy * gy, TINY)
        dx -= wp.clamp(f * gx / square, -TWO, TWO)
        dy -= wp.clamp(f * gy / square, -TWO, TWO)
        f, gx, gy = edge_at(patch, edge, end, x + dx, y + dy)
    return append_clipped_line(lists, n, gx, gy, f - gx * dx - gy * dy, edge, end)


@wp.func
def roots(f: scalar, slope: scalar, bend: scalar):
    """Return the two roots of f + slope s + bend s², in order, and true if they exist, for bend < 0."""
    square = slope * slope - scalar(4.0) * f * bend
    if bend >= ZERO or square <= ZERO:
        return ZERO, ZERO, False
    root = wp.sqrt(square)
    # Without the cancellation of -slope ± root.
    q = -HALF * (slope + root)
    first = q / bend
    second = f / q
    return wp.min(first, second), wp.max(first, second), True


@wp.func
def append_tangent_pair(
    patch: Patch, edge: int, end: int, x: scalar, y: scalar, nx: scalar, ny: scalar, lists: Lists, n: int, missed: int
):
    """Append tangents where the line along (nx, ny) through the center enters and leaves; `missed` if it misses."""
    f, gx, gy = edge_at(patch, edge, end, x, y)
    slope = gx * nx + gy * ny
    near, far, real = roots(f, slope, value_at(patch, edge, end, x + nx, y + ny) - f - slope)
    if not real:
        return missed
    for k in range(2):
        root = wp.where(k == 1, far, near)
        value, hx, hy = edge_at(patch, edge, end, x + root * nx, y + root * ny)
        n = append_clipped_line(lists, n, hx, hy, value - root * (hx * nx + hy * ny), edge, end)
    return n


@wp.func
def is_on_outline(patch: Patch, end: int, x: scalar, y: scalar):
    """Return true if a point of the outline of one end is on the outline of the whole body."""
    if end == 0:
        return True
    o, d = ray(patch, x, y)
    return end_of_body(o, d, patch.size[2]) == end


@wp.func
def append_conic(patch: Patch, edge: int, end: int, x: scalar, y: scalar, lists: Lists, n: int):
    """Append tangents of a conic f = f0 + g · x + x · Q x about the pixel's center; −1 if the pixel is outside.

    With Q negative definite it is the ellipse of center −Q⁻¹ g / 2 whose half-axes are √(peak / λ), the image of the
    unit circle. A large one gets three tangents about the point in the pixel's direction, a small one a polygon of
    sixteen sides with the ellipse's area.
    """
    f, gx, gy = edge_at(patch, edge, end, x, y)
    qxx = value_at(patch, edge, end, x + ONE, y) - f - gx
    qyy = value_at(patch, edge, end, x, y + ONE) - f - gy
    qxy = HALF * (value_at(patch, edge, end, x + ONE, y + ONE) - f - gx - gy - qxx - qyy)
    det = qxx * qyy - qxy * qxy
    spread = wp.sqrt(scalar(0.25) * (qxx - qyy) * (qxx - qyy) + qxy * qxy)
    steep = spread - HALF * (qxx + qyy)
    if edge == HORIZON_EDGE or qxx >= ZERO or qyy >= ZERO:
        return append_tangent(patch, edge, end, x, y, 2, lists, n)
    angle = HALF * wp.atan2(-TWO * qxy, qyy - qxx)
    ex = wp.cos(angle)
    ey = wp.sin(angle)
    if det <= FLAT_RATIO * steep * steep:
        return append_tangent_pair(patch, edge, end, x, y, ex, ey, lists, n, -1)
    cx = -HALF * (qyy * gx - qxy * gy) / det
    cy = -HALF * (qxx * gy - qxy * gx) / det
    peak = f + HALF * (gx * cx + gy * cy)
    if peak <= ZERO:
        return -1
    minor = wp.sqrt(peak / steep)
    major = wp.sqrt(peak * steep / det)
    if minor > STRAIGHT_AXIS:
        return append_tangent(patch, edge, end, x, y, 2, lists, n)
    across = -(cx * ex + cy * ey) / minor
    along = -(cy * ex - cx * ey) / major
    start = wp.atan2(along, across)
    count = 3
    scale = ONE
    step = wp.min(
        scalar(0.6)
        / wp.sqrt(minor * minor * wp.sin(start) * wp.sin(start) + major * major * wp.cos(start) * wp.cos(start)),
        HALF,
    )
    if minor < POLYGON_AXIS:
        count = 16
        scale = EQUAL_AREA
        step = PI / scalar(8.0)
    for k in range(count):
        turn = start + scalar(k - 1) * step
        tx = scale * minor * wp.cos(turn)
        ty = scale * major * wp.sin(turn)
        px = cx + tx * ex - ty * ey
        py = cy + tx * ey + ty * ex
        if is_on_outline(patch, end, x + px, y + py):
            nx = -wp.cos(turn) / minor
            ny = -wp.sin(turn) / major
            lx = nx * ex - ny * ey
            ly = nx * ey + ny * ex
            n = append_clipped_line(lists, n, lx, ly, -lx * px - ly * py, edge, end)
    return n


@wp.func
def project(patch: Patch, point: vec3):
    """Return the image of a point of a patch's frame, and true if it is in front of the camera."""
    # Cramer's rule on the three columns that multiply x, y and 1 (or, without a vanishing point, x, y and −t).
    cx = patch.by_x
    cy = patch.by_y
    c1 = patch.middle
    target = point - patch.fixed
    if patch.pinhole == 0:
        target = point - c1
        c1 = patch.fixed
    scale = wp.dot(cx, wp.cross(cy, c1))
    px = wp.dot(target, wp.cross(cy, c1)) / scale
    py = wp.dot(cx, wp.cross(target, c1)) / scale
    depth = wp.dot(cx, wp.cross(cy, target)) / scale
    if patch.pinhole != 0:
        px = px / depth
        py = py / depth
    return px, py, depth > patch.near


@wp.func
def append_body(patch: Patch, x: scalar, y: scalar, lists: Lists, n: int):
    """Append lines of capsules and cylinders: the two lines of the tube, and the nearer end."""
    size = patch.size
    _f, gx, gy = edge_at(patch, TUBE_EDGE, 0, x, y)
    slope = wp.sqrt(gx * gx + gy * gy)
    if slope > TINY:
        n = append_tangent_pair(patch, TUBE_EDGE, 0, x, y, gx / slope, gy / slope, lists, n, n)
    o, d = ray(patch, x, y)
    here = axis_coordinate(o, d)
    change = wp.abs(axis_coordinate_at(patch, x + ONE, y) - here) + wp.abs(axis_coordinate_at(patch, x, y + ONE) - here)
    if n >= 0 and wp.abs(here) + change > HALF * size[2]:
        end = wp.where(here < ZERO, -1, 1)
        n = append_conic(patch, end_edge(patch.kind), end, x, y, lists, n)
    return n


@wp.func
def append_outline(sides: wp.array3d(dtype=scalar), b: int, patch: Patch, x: scalar, y: scalar, lists: Lists, n: int):
    """Append the lines of a patch that may cross the pixel; −1 if it turns out to miss it."""
    kind = patch.kind
    if kind == POLYGON:
        first = patch.corner
        for i in range(patch.corners):
            a = sides[b, first + i, 0]
            c = sides[b, first + i, 1]
            value = a * x + c * y + sides[b, first + i, 2]
            if value < HALF * (wp.abs(a) + wp.abs(c)):
                n = append_line(lists, n, a, c, value, LINE_EDGE, i)
        return n
    o, d = ray(patch, x, y)
    size = patch.size
    edge, end = bounding_edge(kind, o, d, size)
    used = int(n)
    if kind >= CAPSULE:
        used = append_body(patch, x, y, lists, n)
    else:
        used = append_conic(patch, edge, end, x, y, lists, n)
    # The center is outside, and no line is near enough to be listed.
    if used == n and edge_value(edge, end, o, d, size) <= ZERO:
        used = -1
    return used
