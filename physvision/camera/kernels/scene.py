"""Data of the kernels: patches (convex pieces of surface, each in a frame of its own), rays and textures.

A shape is one patch, except a box (six rectangles) and a closed cylinder (two discs and the body). All lengths are
meters; screen coordinates are pixels from the center of the image, x to the right and y down. A ray is o + t d with t
the depth, by which surfaces are ordered. One of o and d is the same for all pixels, the other is linear in them:

    pinhole:       o = fixed,                        d = by_x x + by_y y + middle
    orthographic:  o = by_x x + by_y y + middle,     d = fixed
"""

import warp as wp

from .precision import scalar

vec3 = wp.types.vector(length=3, dtype=scalar)
vec4 = wp.types.vector(length=4, dtype=scalar)

# Kinds of patches.
POLYGON = wp.constant(0)
DISC = wp.constant(1)
PLANE = wp.constant(2)
SPHERE = wp.constant(3)
CAPSULE = wp.constant(4)
CYLINDER = wp.constant(5)

# Continuation of a texture beyond its borders.
CLAMP = wp.constant(0)
AROUND = wp.constant(1)
REPEAT = wp.constant(2)

ZERO = wp.constant(scalar(0.0))
HALF = wp.constant(scalar(0.5))
ONE = wp.constant(scalar(1.0))
TWO = wp.constant(scalar(2.0))
HUGE = wp.constant(scalar(1.0e18))
TINY = wp.constant(scalar(1.0e-30))
PI = wp.constant(scalar(3.141592653589793))
# Size, as a fraction of the distance, that is lost in rounding.
ROUNDING = wp.constant(scalar(16.0 * (1.2e-7 if scalar == wp.float32 else 2.2e-16)))
# Relative difference below which two depths are equal.
DEPTH_TOLERANCE = wp.constant(scalar(1.0e-5))
NO_PATCH = wp.constant(-1)


@wp.struct
class Patch:
    """One patch of one world, as `prepare` gathers it. It is small, since functions take it by value."""

    fixed: vec3
    by_x: vec3
    by_y: vec3
    middle: vec3
    size: vec3  # width or radius, height, length
    light: vec3  # towards the light
    mapping: vec4  # u = m0 + m1 x/width, v = m2 + m3 y/height
    left: scalar  # bounds on the screen; right < left where it is invisible
    top: scalar
    right: scalar
    bottom: scalar
    near: scalar
    ambient: scalar  # Lambert's light; 1 and 0 for none
    diffuse: scalar
    pinhole: int
    kind: int
    shape: int  # of the patch
    first: int  # patch of its shape
    sign: int  # of its outward normal (0: visible from both sides)
    corner: int  # the first one, in `vertices` and `lines`
    corners: int
    wrap: int
    texel: int  # the first one
    rows: int
    columns: int


@wp.struct
class Contents:
    """Everything that the kernels read."""

    patches: wp.array2d(dtype=Patch)  # (batch, patches)
    lines: wp.array3d(dtype=scalar)  # (batch, corners, 3): the side that leaves a corner is a x + b y + c ≥ 0
    vertices: wp.array2d(dtype=scalar)  # (corners, 2): in units of the extents
    texels: wp.array3d(dtype=scalar)  # (batch, channels, all texels)
    background: wp.array4d(dtype=scalar)  # (batch, channels, height, width)
    count: int
    channels: int
    width: int
    height: int
    soft: int
    taps: int


@wp.struct
class Pixel:
    """Index and center of a pixel of one world."""

    row: int  # of all lines of all worlds
    b: int
    line: int
    column: int
    x: scalar  # of its center, from the center of the image
    y: scalar


@wp.struct
class Gradients:
    """Cotangent of the image, and those that follow from it."""

    image: wp.array4d(dtype=scalar)
    patches: wp.array3d(dtype=scalar)  # (rows, patches, 18), of each line: rays (12), extents (3) and light (3)
    texels: wp.array3d(dtype=scalar)  # empty where it is not needed
    background: wp.array4d(dtype=scalar)  # likewise


@wp.func
def ray(patch: Patch, x: scalar, y: scalar):
    """Return origin and direction of the ray through (x, y), in the frame of the patch."""
    moving = patch.middle + patch.by_x * x + patch.by_y * y
    return wp.where(patch.pinhole == 0, moving, patch.fixed), wp.where(patch.pinhole == 0, patch.fixed, moving)


@wp.func
def screen_slope(patch: Patch, by_origin: vec3, by_direction: vec3):
    """Return the change along x and y of a quantity with these derivatives by the ray's origin and direction."""
    g = wp.where(patch.pinhole == 0, by_origin, by_direction)
    return wp.dot(g, patch.by_x), wp.dot(g, patch.by_y)


@wp.func
def center(index: int, size: int):
    """Return the center of a pixel, counted from the center of the image."""
    return scalar(index) - HALF * scalar(size - 1)


@wp.func
def pixel_at(s: Contents, row: int, column: int):
    """Return the pixel in a row, of the lines of all worlds, and a column."""
    at = Pixel()
    at.row = row
    at.b = row // s.height
    at.line = row % s.height
    at.column = column
    at.x = center(column, s.width)
    at.y = center(at.line, s.height)
    return at


@wp.func
def in_bounds(s: Contents, b: int, p: int, x: scalar, y: scalar):
    """Return true if (x, y) is within the patch's bounds on the screen."""
    return (
        x >= s.patches[b, p].left
        and x <= s.patches[b, p].right
        and y >= s.patches[b, p].top
        and y <= s.patches[b, p].bottom
    )
