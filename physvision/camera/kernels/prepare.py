"""Preparation before the pixels: patches, their bounds on the screen, and the lines of their sides."""

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
    ray,
    screen_slope,
    vec3,
)

# Pixels about a patch's corners that it may touch.
MARGIN = wp.constant(scalar(1.5))
# Smallest size, in meters, whose square is not zero.
MIN_SIZE = wp.constant(scalar(1.0e-12))
# Largest coordinate, in meters, whose fourth power is finite.
MAX_MAGNITUDE = wp.constant(scalar(1.0e9 if scalar == wp.float32 else 1.0e18))


@wp.struct
class Numbers:
    """Patches of all worlds in tables, as given."""

    rays: wp.array4d(dtype=scalar)  # (batch, patches, 4, 3): fixed, by_x, by_y, middle
    extents: wp.array3d(dtype=scalar)  # (batch, patches, 3)
    light: wp.array3d(dtype=scalar)  # (batch, patches, 3)
    patches: wp.array(dtype=Patch)  # with all fields that are the same in all worlds
    wide: scalar  # pixels beyond the image; not a constant: four equal constants are miscompiled on a CPU


@wp.func
def row(rays: wp.array4d(dtype=scalar), b: int, p: int, i: int):
    """Return row i of a patch's rays."""
    return vec3(rays[b, p, i, 0], rays[b, p, i, 1], rays[b, p, i, 2])


@wp.func
def gather(n: Numbers, b: int, p: int):
    """Return one patch of one world from the tables."""
    patch = n.patches[p]
    patch.fixed = row(n.rays, b, p, 0)
    patch.by_x = row(n.rays, b, p, 1)
    patch.by_y = row(n.rays, b, p, 2)
    patch.middle = row(n.rays, b, p, 3)
    patch.size = vec3(n.extents[b, p, 0], n.extents[b, p, 1], n.extents[b, p, 2])
    patch.light = vec3(n.light[b, p, 0], n.light[b, p, 1], n.light[b, p, 2])
    return patch


@wp.func
def magnitude(v: vec3):
    """Return the sum of absolute components."""
    return wp.abs(v[0]) + wp.abs(v[1]) + wp.abs(v[2])


@wp.func
def is_finite(patch: Patch):
    """Return true if no number of the patch is NaN or infinite, or becomes so in the fourth power."""
    rays = magnitude(patch.fixed) + magnitude(patch.by_x) + magnitude(patch.by_y) + magnitude(patch.middle)
    return rays + magnitude(patch.size) < MAX_MAGNITUDE


@wp.func
def has_size(patch: Patch):
    """Return true if a patch is larger than rounding at its distance; a capsule may have no length."""
    size = patch.size
    away = wp.where(patch.pinhole == 0, wp.length(wp.cross(patch.middle, patch.fixed)), wp.length(patch.fixed))
    min_size = wp.max(ROUNDING * away, MIN_SIZE)
    result = size[0] > min_size
    if patch.kind == PLANE:
        # Its origin may be anywhere.
        result = size[0] > MIN_SIZE and size[1] > MIN_SIZE
    elif patch.kind == POLYGON:
        result = size[0] > min_size and size[1] > min_size
    elif patch.kind == CAPSULE:
        result = size[0] > min_size and size[2] >= ZERO
    elif patch.kind == CYLINDER:
        result = size[0] > min_size and size[2] > min_size
    return result


@wp.func
def faces_eye(sign: int, pinhole: int, fixed_z: scalar):
    """Return true if the outward side of a face is turned to the eye."""
    return wp.where(pinhole == 0, scalar(sign) * fixed_z < ZERO, scalar(sign) * fixed_z > ZERO)


@wp.func
def is_visible(n: Numbers, patch: Patch, b: int):
    """Return false for a face that is turned away, unless the eye is inside and sees all faces from behind."""
    if patch.sign == 0 or faces_eye(patch.sign, patch.pinhole, patch.fixed[2]):
        return True
    if patch.pinhole == 0:
        return False
    inside = bool(True)
    for face in range(patch.first, n.patches.shape[0]):
        if n.patches[face].first == patch.first and n.patches[face].sign != 0:
            if faces_eye(n.patches[face].sign, patch.pinhole, n.rays[b, face, 0, 2]):
                inside = False
    if inside and patch.kind == DISC:
        # Between the two caps of a cylinder, but inside only if also within its radius.
        inside = patch.fixed[0] * patch.fixed[0] + patch.fixed[1] * patch.fixed[1] < patch.size[0] * patch.size[0]
    return inside


@wp.func
def half_extents(vertices: wp.array2d(dtype=scalar), patch: Patch):
    """Return half the edges of a box about the patch, and its center in x and y."""
    size = patch.size
    half = vec3(size[0], size[0], ZERO)
    middle = vec3()
    if patch.kind == SPHERE:
        half = vec3(size[0], size[0], size[0])
    elif patch.kind > SPHERE:
        half = vec3(size[0], size[0], HALF * size[2] + size[0])
    elif patch.kind == POLYGON:
        min_x = scalar(HUGE)
        min_y = scalar(HUGE)
        max_x = scalar(-HUGE)
        max_y = scalar(-HUGE)
        for i in range(patch.corners):
            at, _along = side(vertices, patch, i)
            min_x = wp.min(min_x, at[0])
            max_x = wp.max(max_x, at[0])
            min_y = wp.min(min_y, at[1])
            max_y = wp.max(max_y, at[1])
        half = vec3(HALF * (max_x - min_x), HALF * (max_y - min_y), ZERO)
        middle = vec3(HALF * (max_x + min_x), HALF * (max_y + min_y), ZERO)
    return half, middle


@wp.func
def bound(vertices: wp.array2d(dtype=scalar), patch: Patch, margin: scalar):
    """Return a rectangle of the screen about the patch: all of it if a corner of its box is behind the camera."""
    if patch.kind == PLANE:
        return -margin, -margin, margin, margin
    half, middle = half_extents(vertices, patch)
    left = scalar(margin)
    top = scalar(margin)
    right = scalar(-margin)
    bottom = scalar(-margin)
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
        return -margin, -margin, margin, margin
    return left, top, right, bottom


@wp.func
def write_side(s: Contents, b: int, patch: Patch, i: int):
    """Write the line of one side, with a unit normal that points inwards."""
    o, d = ray(patch, ZERO, ZERO)
    # Seen from the front the corners go anticlockwise, and side_value is negative inside.
    inwards = wp.where(patch.pinhole == 0, wp.sign(d[2]), -wp.sign(o[2]))
    by_o, by_d, _by_size = side_slopes(s.vertices, patch, i, o, d)
    gx, gy = screen_slope(patch, by_o, by_d)
    scale = inwards / wp.max(wp.sqrt(gx * gx + gy * gy), TINY)
    at = patch.corner + i
    s.lines[b, at, 0] = gx * scale
    s.lines[b, at, 1] = gy * scale
    s.lines[b, at, 2] = side_value(s.vertices, patch, i, o, d) * scale


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def prepare(n: Numbers, s: Contents):
    """Gather each patch with its bounds on the screen, and write the lines of its sides."""
    b, p = wp.tid()
    patch = gather(n, b, p)
    patch.left = n.wide
    patch.right = -n.wide
    if is_finite(patch):
        if has_size(patch) and is_visible(n, patch, b):
            left, top, right, bottom = bound(s.vertices, patch, n.wide)
            patch.left = left
            patch.top = top
            patch.right = right
            patch.bottom = bottom
            if patch.kind == POLYGON and left < right:
                for i in range(patch.corners):
                    write_side(s, b, patch, i)
    s.patches[b, p] = patch
