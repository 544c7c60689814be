"""Before the pixels: gather what belongs to a patch, where on the screen it can be, and the lines of its sides."""

import warp as wp

from .edges import side, side_slopes, side_value
from .outline import project
from .precision import scalar
from .scene import (
    CAPSULE,
    CYLINDER,
    DISC,
    HALF,
    HUGE,
    PLANE,
    POLYGON,
    ROUNDING,
    SPHERE,
    TINY,
    ZERO,
    Contents,
    Patch,
    screen_slope,
    vec3,
    vec4,
)

# Pixels about a patch's corners that may still be touched by it.
MARGIN = wp.constant(scalar(1.5))
# Metres whose squares are no zeros yet.
LEAST_SIZE = wp.constant(scalar(1.0e-12))
# Metres whose fourth powers are finite.
MOST = wp.constant(scalar(1.0e9 if scalar == wp.float32 else 1.0e18))


@wp.struct
class Numbers:
    """The patches of all worlds in tables, as they come from outside."""

    rays: wp.array4d(dtype=scalar)  # (batch, patches, 4, 3): fixed, by_x, by_y, middle
    extents: wp.array3d(dtype=scalar)  # (batch, patches, 3)
    light: wp.array3d(dtype=scalar)  # (batch, patches, 3)
    mapping: wp.array2d(dtype=scalar)  # (patches, 4)
    whole: wp.array2d(dtype=int)  # (patches, 10): kind, shape, first, sign, corner, corners, wrap, texel, rows, columns
    near: scalar
    ambient: scalar
    diffuse: scalar
    wide: scalar  # beyond the image, pixels; no constant, for four constants side by side are miscompiled on a CPU
    pinhole: int


@wp.func
def row(rays: wp.array4d(dtype=scalar), b: int, p: int, i: int):
    return vec3(rays[b, p, i, 0], rays[b, p, i, 1], rays[b, p, i, 2])


@wp.func
def gather(n: Numbers, b: int, p: int):
    patch = Patch()
    patch.fixed = row(n.rays, b, p, 0)
    patch.by_x = row(n.rays, b, p, 1)
    patch.by_y = row(n.rays, b, p, 2)
    patch.middle = row(n.rays, b, p, 3)
    patch.size = vec3(n.extents[b, p, 0], n.extents[b, p, 1], n.extents[b, p, 2])
    patch.light = vec3(n.light[b, p, 0], n.light[b, p, 1], n.light[b, p, 2])
    patch.mapping = vec4(n.mapping[p, 0], n.mapping[p, 1], n.mapping[p, 2], n.mapping[p, 3])
    patch.near = n.near
    patch.ambient = n.ambient
    patch.diffuse = n.diffuse
    patch.pinhole = n.pinhole
    patch.kind = n.whole[p, 0]
    patch.shape = n.whole[p, 1]
    patch.first = n.whole[p, 2]
    patch.sign = n.whole[p, 3]
    patch.corner = n.whole[p, 4]
    patch.corners = n.whole[p, 5]
    patch.wrap = n.whole[p, 6]
    patch.texel = n.whole[p, 7]
    patch.rows = n.whole[p, 8]
    patch.columns = n.whole[p, 9]
    return patch


@wp.func
def magnitude(v: vec3):
    return wp.abs(v[0]) + wp.abs(v[1]) + wp.abs(v[2])


@wp.func
def is_finite(patch: Patch):
    """Whether nothing of the patch is NaN or infinite, or will be when it is raised to the fourth power."""
    rays = magnitude(patch.fixed) + magnitude(patch.by_x) + magnitude(patch.by_y) + magnitude(patch.middle)
    return rays + magnitude(patch.size) < MOST


@wp.func
def has_size(patch: Patch):
    """Whether a patch is larger than what rounding makes of it at its distance; a capsule may have no length."""
    size = patch.size
    away = wp.length(patch.fixed)
    if patch.pinhole == 0:
        away = wp.length(wp.cross(patch.middle, patch.fixed))
    least = wp.max(ROUNDING * away, LEAST_SIZE)
    result = size[0] > least
    if patch.kind == PLANE:
        # Its origin may be anywhere.
        result = size[0] > LEAST_SIZE and size[1] > LEAST_SIZE
    elif patch.kind == POLYGON:
        result = size[0] > least and size[1] > least
    elif patch.kind == CAPSULE:
        result = size[0] > least and size[2] >= ZERO
    elif patch.kind == CYLINDER:
        result = size[0] > least and size[2] > least
    return result


@wp.func
def faces_eye(sign: int, pinhole: int, fixed_z: scalar):
    """Whether the outward side of a face is turned to the eye."""
    result = scalar(sign) * fixed_z > ZERO
    if pinhole == 0:
        result = scalar(sign) * fixed_z < ZERO
    return result


@wp.func
def seen(n: Numbers, patch: Patch, b: int):
    """False for a face that is turned away, unless the eye is inside and sees all faces from behind."""
    if patch.sign == 0 or faces_eye(patch.sign, patch.pinhole, patch.fixed[2]):
        return True
    if patch.pinhole == 0:
        return False
    inside = bool(True)
    for other in range(patch.first, n.whole.shape[0]):
        if n.whole[other, 2] == patch.first and n.whole[other, 3] != 0:
            if faces_eye(n.whole[other, 3], patch.pinhole, n.rays[b, other, 0, 2]):
                inside = False
    if inside and patch.kind == DISC:
        # Between the two caps of a cylinder, but inside only if also within its radius.
        inside = patch.fixed[0] * patch.fixed[0] + patch.fixed[1] * patch.fixed[1] < patch.size[0] * patch.size[0]
    return inside


@wp.func
def half_extents(vertices: wp.array2d(dtype=scalar), patch: Patch):
    """Half the edges of a box about the patch, and its middle in x and y."""
    size = patch.size
    half = vec3(size[0], size[0], ZERO)
    middle = vec3()
    if patch.kind == SPHERE:
        half = vec3(size[0], size[0], size[0])
    elif patch.kind > SPHERE:
        half = vec3(size[0], size[0], HALF * size[2] + size[0])
    elif patch.kind == POLYGON:
        low_x = scalar(HUGE)
        low_y = scalar(HUGE)
        high_x = scalar(-HUGE)
        high_y = scalar(-HUGE)
        for i in range(patch.corners):
            at, _along = side(vertices, patch, i)
            low_x = wp.min(low_x, at[0])
            high_x = wp.max(high_x, at[0])
            low_y = wp.min(low_y, at[1])
            high_y = wp.max(high_y, at[1])
        half = vec3(HALF * (high_x - low_x), HALF * (high_y - low_y), ZERO)
        middle = vec3(HALF * (high_x + low_x), HALF * (high_y + low_y), ZERO)
    return half, middle


@wp.func
def bound(vertices: wp.array2d(dtype=scalar), patch: Patch, wide: scalar):
    """A rectangle of the screen about the patch: all of it where some corner of its box is behind the camera."""
    if patch.kind == PLANE:
        return -wide, -wide, wide, wide
    half, middle = half_extents(vertices, patch)
    left = scalar(wide)
    top = scalar(wide)
    right = scalar(-wide)
    bottom = scalar(-wide)
    ahead = int(0)
    for i in range(8):
        across = half[0] * scalar(1 - 2 * (i % 2))
        along = half[1] * scalar(1 - 2 * ((i / 2) % 2))
        x, y, in_front = project(patch, middle + vec3(across, along, half[2] * scalar(1 - 2 * (i / 4))))
        if in_front:
            ahead += 1
            left = wp.min(left, x - MARGIN)
            right = wp.max(right, x + MARGIN)
            top = wp.min(top, y - MARGIN)
            bottom = wp.max(bottom, y + MARGIN)
    if ahead > 0 and ahead < 8:
        return -wide, -wide, wide, wide
    return left, top, right, bottom


@wp.func
def put_side(s: Contents, b: int, patch: Patch, i: int):
    """The line of one side, its normal of length 1 and pointing inwards."""
    o = patch.fixed
    d = patch.middle
    # Seen from the front the corners go anticlockwise, and side_value is negative inside.
    inwards = -wp.sign(o[2])
    if patch.pinhole == 0:
        o = patch.middle
        d = patch.fixed
        inwards = wp.sign(d[2])
    by_o, by_d, _by_size = side_slopes(s.vertices, patch, i, o, d)
    gx, gy = screen_slope(patch, by_o, by_d)
    scale = inwards / wp.max(wp.sqrt(gx * gx + gy * gy), TINY)
    at = patch.corner + i
    s.lines[b, at, 0] = gx * scale
    s.lines[b, at, 1] = gy * scale
    s.lines[b, at, 2] = side_value(s.vertices, patch, i, o, d) * scale


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def prepare(n: Numbers, s: Contents):
    b, p = wp.tid()
    patch = gather(n, b, p)
    patch.left = n.wide
    patch.right = -n.wide
    if is_finite(patch):
        if has_size(patch) and seen(n, patch, b):
            left, top, right, bottom = bound(s.vertices, patch, n.wide)
            patch.left = left
            patch.top = top
            patch.right = right
            patch.bottom = bottom
            if patch.kind == POLYGON and left < right:
                for i in range(patch.corners):
                    put_side(s, b, patch, i)
    s.patches[b, p] = patch
