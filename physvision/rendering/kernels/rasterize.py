"""Vertices in the world and on the screen, and the nearest triangle at every sample."""

import warp as wp

from .structs import BLOCK, View


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 4})
def transform(
    first: int,
    local: wp.array(dtype=wp.vec3),
    local_normals: wp.array(dtype=wp.vec3),
    rows: wp.array(dtype=int),
    poses: wp.array(dtype=wp.mat44),
    world: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
):
    """Move vertices and normals with the frames that carry them."""
    i = first + wp.tid()
    pose = poses[rows[i]]
    world[i] = wp.transform_point(pose, local[i])
    normals[i] = wp.transform_vector(pose, local_normals[i])


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 4})
def project(first: int, view: View, near: float, world: wp.array(dtype=wp.vec3), screen: wp.array(dtype=wp.vec3)):
    """Project vertices to pixels and nearness; nearness is negative for those behind the near plane."""
    i = first + wp.tid()
    p = view.rotation * world[i] + view.translation
    if view.orthographic != 0:
        screen[i] = wp.vec3(view.focal * p[0] + view.center_x, view.focal * p[1] + view.center_y, view.far - p[2])
    elif p[2] < near:
        screen[i] = wp.vec3(0.0, 0.0, -1.0)
    else:
        scale = view.focal / p[2]
        screen[i] = wp.vec3(scale * p[0] + view.center_x, scale * p[1] + view.center_y, 1.0 / p[2])


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 4})
def find_rows(
    first: int,
    count: int,
    width: int,
    height: int,
    screen: wp.array(dtype=wp.vec3),
    faces: wp.array2d(dtype=int),
    one_sided: wp.array(dtype=int),
    corners: wp.array2d(dtype=wp.vec3),
    rows: wp.array2d(dtype=int),
):
    """Gather the corners of triangles, counterclockwise on the screen, and the rows of pixels that they touch.

    The first `count` triangles are those of the faces; the corners of others are there already.
    """
    i = first + wp.tid()
    if i < count:
        for k in range(3):
            corners[i, k] = screen[faces[i, k]]
    a = corners[i, 0]
    b = corners[i, 1]
    c = corners[i, 2]
    rows[i, 0] = 1
    rows[i, 1] = 0
    if a[2] <= 0.0 or b[2] <= 0.0 or c[2] <= 0.0:
        return
    area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    # With y down, a triangle whose front faces the camera turns clockwise in these coordinates.
    if area == 0.0 or (area > 0.0 and one_sided[i] != 0):
        return
    left = wp.min(a[0], wp.min(b[0], c[0]))
    right = wp.max(a[0], wp.max(b[0], c[0]))
    if right < -0.5 or left > float(width) - 0.5:
        return
    if area < 0.0:
        corners[i, 1] = c
        corners[i, 2] = b
    top = wp.min(a[1], wp.min(b[1], c[1]))
    bottom = wp.max(a[1], wp.max(b[1], c[1]))
    rows[i, 0] = int(wp.max(wp.ceil(wp.min(top, 1.0e6) - 0.5), 0.0))
    rows[i, 1] = int(wp.min(wp.floor(wp.max(bottom, -1.0e6) + 0.5), float(height - 1)))


@wp.func
def interval(a: float, rest: float, slack: float, left: float, right: float):
    """Narrow an interval of x to a x + rest ≥ −slack."""
    low = left
    high = right
    bound = -(rest + slack)
    if a > 1.0e-12:
        low = wp.max(low, bound / a)
    elif a < -1.0e-12:
        high = wp.min(high, bound / a)
    elif bound > 0.0:
        high = low - 1.0
    return low, high


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 4})
def rasterize(
    first: int,
    band: int,
    count: int,
    corners: wp.array2d(dtype=wp.vec3),
    rows: wp.array2d(dtype=int),
    source: wp.array(dtype=int),
    offsets: wp.array(dtype=wp.vec2),
    nearness: wp.array3d(dtype=float),
    ids: wp.array3d(dtype=int),
):
    """Draw all triangles into a band of rows: keep the number of the nearest one at each sample."""
    begin = (first + wp.tid()) * band
    end = wp.min(begin + band, nearness.shape[0])
    width = nearness.shape[1]
    samples = nearness.shape[2]
    for i in range(count):
        top = wp.max(rows[i, 0], begin)
        bottom = wp.min(rows[i, 1], end - 1)
        if top <= bottom:
            a = corners[i, 0]
            b = corners[i, 1]
            c = corners[i, 2]
            scale = 1.0 / ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
            # Barycentric coordinates of b and c are affine on the screen: about a, they are b_x dx + b_y dy.
            b_x = (c[1] - a[1]) * scale
            b_y = -(c[0] - a[0]) * scale
            c_x = -(b[1] - a[1]) * scale
            c_y = (b[0] - a[0]) * scale
            n_x = (b[2] - a[2]) * b_x + (c[2] - a[2]) * c_x
            n_y = (b[2] - a[2]) * b_y + (c[2] - a[2]) * c_y
            reach_b = 0.5 * (wp.abs(b_x) + wp.abs(b_y))
            reach_c = 0.5 * (wp.abs(c_x) + wp.abs(c_y))
            reach_a = 0.5 * (wp.abs(b_x + c_x) + wp.abs(b_y + c_y))
            for y in range(top, bottom + 1):
                dy = float(y) - a[1]
                low, high = interval(b_x, b_y * dy, reach_b, -0.5 - a[0], float(width) - 0.5 - a[0])
                low, high = interval(c_x, c_y * dy, reach_c, low, high)
                low, high = interval(-b_x - c_x, 1.0 - (b_y + c_y) * dy, reach_a, low, high)
                x = int(wp.max(wp.ceil(low + a[0]), 0.0))
                last = int(wp.min(wp.floor(high + a[0]), float(width - 1)))
                while x <= last:
                    dx = float(x) - a[0]
                    for s in range(samples):
                        offset = offsets[s]
                        sx = dx + offset[0]
                        sy = dy + offset[1]
                        u = b_x * sx + b_y * sy
                        v = c_x * sx + c_y * sy
                        if u >= 0.0 and v >= 0.0 and u + v <= 1.0:
                            n = a[2] + n_x * sx + n_y * sy
                            if n > nearness[y, x, s]:
                                nearness[y, x, s] = n
                                ids[y, x, s] = source[i]
                    x += 1


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 4})
def find_extremes(
    first: int, nearness: wp.array3d(dtype=float), highest: wp.array2d(dtype=float), lowest: wp.array2d(dtype=float)
):
    """Find the largest and the smallest nearness in each block of a depth picture."""
    i = first + wp.tid()
    for j in range(highest.shape[1]):
        high = float(0.0)
        low = float(1.0e30)
        for y in range(i * BLOCK, i * BLOCK + BLOCK):
            for x in range(j * BLOCK, j * BLOCK + BLOCK):
                high = wp.max(high, nearness[y, x, 0])
                low = wp.min(low, nearness[y, x, 0])
        highest[i, j] = high
        lowest[i, j] = low
