"""Change of a pixel by the motion of a colored surface: the flux over the borders of its visible part.

With v the velocity on the screen of the surface, and any color c*, Gauss' theorem turns the integral of the change into

    ∫ ∂c/∂θ dA = −∫ v · ∇c dA = −∮ (c − c*) v · n ds + ∫ (c − c*) div v dA,

without a derivative of c, which on a limb is infinite, and on a face seen from the side changes many times in a pixel.
The last integral is zero for c* the mean of c where v is linear, as it is on flat patches; towards a limb, where v and
c are linear in the depth and div v is its inverse, for c* the color halfway in depth: see `reference_color`.

A layer's own outline moves with it, and there the edge's ∮ (c − c_out) v · n ds leaves ∮ (c* − c_out) v · n ds of the
two. So it has borders on the sides of the pixel, which the next pixel counts with opposite sign, and where other layers
hide it: `borders` lists them.
"""

import warp as wp

from .precision import scalar
from .scene import CAPSULE, SPHERE, TINY, ZERO, Contents, Gradients, Patch, Pixel, vec3
from .shading import Hit, sample_along_ray, sample_patch, sample_side, weighted_color
from .surfaces import depth_by_size

# Relative change of a curved surface's slant from pixel to pixel that counts, ...
SLANT_CHANGE = wp.constant(scalar(0.1))
# ... and squared cosine of the slant of a flat one below which it counts.
STEEP_COSINE = wp.constant(scalar(0.3))


@wp.func
def has_varying_color(patch: Patch):
    """Return true if the color varies over the patch."""
    return patch.rows * patch.columns > 1 or (patch.diffuse > ZERO and patch.kind >= SPHERE)


@wp.func
def is_bent(patch: Patch, hit: Hit):
    """Return true if the velocity, or the texture's coordinates, change considerably within the pixel."""
    toward = wp.dot(hit.n, hit.d)
    square = wp.dot(hit.d, hit.d)
    if patch.kind < SPHERE:
        return toward * toward < STEEP_COSINE * square
    width = wp.length(patch.by_x)
    if patch.pinhole != 0:
        width = width * hit.t
    return patch.diffuse > ZERO or width * wp.length(hit.n) * square > SLANT_CHANGE * toward * toward


@wp.func
def reference_color(s: Contents, at: Pixel, patch: Patch, hit: Hit, mean: scalar, g: Gradients):
    """Return the color c*: the mean, but on curved patches that where n · d has its mean."""
    color = mean
    if patch.kind >= SPHERE and is_bent(patch, hit):
        square = wp.dot(hit.d, hit.d)
        if patch.kind > CAPSULE or (patch.kind == CAPSULE and hit.n[2] == ZERO):
            square -= hit.d[2] * hit.d[2]
        halfway = sample_along_ray(patch, hit, (hit.slant - wp.dot(hit.n, hit.d)) / square)
        color = weighted_color(s.texels, g, at, patch, halfway)
    return color


@wp.func
def stretch_adjoint(patch: Patch, point: vec3, point_bar: vec3):
    """Return the adjoint of a flat patch's size from that of a point on it: textures scale with the patch."""
    size_bar = vec3()
    if patch.kind < SPHERE:
        size = patch.size
        size_bar = vec3(-point_bar[0] * point[0] / size[0], -point_bar[1] * point[1] / size[1], ZERO)
    return size_bar


@wp.func
def motion_adjoint(patch: Patch, hit: Hit, slope_x: scalar, slope_y: scalar):
    """Return adjoints of origin, direction and size, from slopes along x and y of a color that moves with the patch.

    The image does not change when o moves along d. So ō is the vector normal to d whose change along x and y is the
    color's, and d̄ = t ō; there is no division by n · d. The size moves the point that is hit like the component of ō
    along n: see `surfaces.hit_adjoint`.
    """
    across = wp.cross(patch.by_y, hit.d)
    down = wp.cross(hit.d, patch.by_x)
    o_bar = (slope_x * across + slope_y * down) / wp.dot(patch.by_x, across)
    if patch.pinhole != 0:
        o_bar = o_bar / hit.t
    size_bar = stretch_adjoint(patch, hit.point, o_bar)
    if patch.kind >= SPHERE:
        pull = wp.dot(o_bar, hit.n) / wp.max(wp.dot(hit.n, hit.n), TINY)
        size_bar = pull * depth_by_size(patch.kind, hit.point, hit.n, patch.size)
    return o_bar, hit.t * o_bar, size_bar


@wp.func
def sample_border(patch: Patch, x: scalar, y: scalar, across_x: scalar, across_y: scalar, taps: int):
    """Sample a patch along a border, given its center and n ds."""
    return sample_patch(patch, x, y, vec3(across_y, -across_x, ZERO), taps)


@wp.func
def covering_color_slopes(s: Contents, at: Pixel, patch: Patch, hit: Hit, g: Gradients):
    """Return slopes along x and y of the color of a patch that fills a pixel and is not bent in it."""
    slopes = vec3()
    for side in range(4):
        sign = scalar(2 * (side % 2) - 1)
        border = sample_side(hit, side, sign)
        slopes[side / 2] += sign * weighted_color(s.texels, g, at, patch, border)
    return slopes[0], slopes[1]
