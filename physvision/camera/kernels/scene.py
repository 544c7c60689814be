"""What the kernels see: patches (convex pieces of surface, each in a frame of its own), rays, textures.

A shape is one patch, but for a box (six rectangles) and a closed cylinder (two discs and the body). All lengths are
metres; screen coordinates are pixels from the middle of the image, x to the right and y down. A ray is o + t d with t
the depth, so that t orders what is seen. One of o and d is the same for all pixels, the other is linear in them:

    pinhole:       o = rays[0],                              d = rays[1] x + rays[2] y + rays[3]
    orthographic:  o = rays[1] x + rays[2] y + rays[3],      d = rays[0]
"""

import warp as wp

from . import scalar

vec3 = wp.types.vector(length=3, dtype=scalar)

# Kinds of patches.
POLYGON = wp.constant(0)
DISC = wp.constant(1)
PLANE = wp.constant(2)
SPHERE = wp.constant(3)
CAPSULE = wp.constant(4)
CYLINDER = wp.constant(5)

# How a texture goes on beyond its borders.
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
# Two depths closer than this part of themselves are the same depth.
SAME_DEPTH = wp.constant(scalar(1.0e-5))


@wp.struct
class Scene:
    """All that the kernels read, and the two tables that `prepare` fills: bounds and lines."""

    rays: wp.array4d(dtype=scalar)  # (batch, patches, 4, 3)
    extents: wp.array3d(dtype=scalar)  # (batch, patches, 3): width or radius, height, length
    light: wp.array3d(dtype=scalar)  # (batch, patches, 3): towards the light
    bounds: wp.array3d(dtype=scalar)  # (batch, patches, 4): left, top, right, bottom; right < left where unseen
    lines: wp.array3d(dtype=scalar)  # (batch, corners, 3): the side that leaves a corner is a x + b y + c ≥ 0
    kinds: wp.array(dtype=int)  # (patches,)
    shapes: wp.array(dtype=int)  # (patches,): the shape it belongs to
    group: wp.array2d(dtype=int)  # (patches, 2): first patch of its shape, sign of its outward normal (0: both)
    corners: wp.array2d(dtype=int)  # (patches, 2): first corner, number of corners
    vertices: wp.array2d(dtype=scalar)  # (corners, 2): in units of the extents
    mapping: wp.array2d(dtype=scalar)  # (patches, 4): u = m0 + m1 x/width, v = m2 + m3 y/height
    wraps: wp.array(dtype=int)  # (patches,)
    textures: wp.array2d(dtype=int)  # (patches, 3): first texel, height, width
    texels: wp.array3d(dtype=scalar)  # (batch, channels, all texels)
    background: wp.array4d(dtype=scalar)  # (batch, channels, height, width)
    patches: int
    channels: int
    width: int
    height: int
    pinhole: int
    soft: int
    lit: int
    taps: int
    near: scalar
    ambient: scalar
    diffuse: scalar


@wp.func
def row(s: Scene, b: int, p: int, i: int):
    return vec3(s.rays[b, p, i, 0], s.rays[b, p, i, 1], s.rays[b, p, i, 2])


@wp.func
def moving(s: Scene, b: int, p: int, x: scalar, y: scalar):
    return row(s, b, p, 3) + row(s, b, p, 1) * x + row(s, b, p, 2) * y


@wp.func
def ray(s: Scene, b: int, p: int, x: scalar, y: scalar):
    """Origin and direction of the ray through (x, y), in the frame of the patch."""
    fixed = row(s, b, p, 0)
    changing = moving(s, b, p, x, y)
    o = fixed
    d = changing
    if s.pinhole == 0:
        o = changing
        d = fixed
    return o, d


@wp.func
def screen_slope(s: Scene, b: int, p: int, by_origin: vec3, by_direction: vec3):
    """Change along x and y of what changes so with the ray's origin and direction."""
    g = by_direction
    if s.pinhole == 0:
        g = by_origin
    return wp.dot(g, row(s, b, p, 1)), wp.dot(g, row(s, b, p, 2))


@wp.func
def extent(s: Scene, b: int, p: int):
    return vec3(s.extents[b, p, 0], s.extents[b, p, 1], s.extents[b, p, 2])


@wp.func
def center_x(s: Scene, column: int):
    return scalar(column) - HALF * scalar(s.width - 1)


@wp.func
def center_y(s: Scene, line: int):
    return scalar(line) - HALF * scalar(s.height - 1)


@wp.func
def in_bounds(s: Scene, b: int, p: int, x: scalar, y: scalar):
    return x >= s.bounds[b, p, 0] and x <= s.bounds[b, p, 2] and y >= s.bounds[b, p, 1] and y <= s.bounds[b, p, 3]
