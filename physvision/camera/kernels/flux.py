"""What the motion of a coloured surface adds to a part of a pixel: what flows in over its borders.

With v the velocity on the screen of what is seen, and any colour c*, Gauss' theorem makes of the integral of the change

    ∫ ∂c/∂θ dA = −∫ v · ∇c dA = −∮ (c − c*) v · n ds + ∫ (c − c*) div v dA,

without a derivative of c, which on a limb is infinite, and on a face seen from the side changes many times in a pixel.
The last integral is zero for c* the mean of c where v is linear, as it is on flat patches; towards a limb, where v and
c are linear in the depth and div v is the inverse of it, for c* the colour halfway in depth: see `level`.

A layer's own outline moves with it, and there the edge's ∮ (c − c_out) v · n ds leaves ∮ (c* − c_out) v · n ds of the
two. So it has borders on the sides of the pixel, which the next pixel counts as the same amount, and where others hide
it: `borders` lists them.
"""

import warp as wp

from .precision import scalar
from .scene import CAPSULE, SPHERE, TINY, ZERO, Contents, Gradients, Patch, Pixel, vec3
from .shading import Hit, look, moved_look, side_look, weighed_color
from .surfaces import depth_by_size

# By this part the slant of a curved surface changes from pixel to pixel before that counts, ...
BEND = wp.constant(scalar(0.1))
# ... and below this squared cosine of the slant that of a flat one does.
STEEP = wp.constant(scalar(0.3))


@wp.func
def varies(patch: Patch):
    """Whether the colour is not the same all over the patch."""
    return patch.rows * patch.columns > 1 or (patch.diffuse > ZERO and patch.kind >= SPHERE)


@wp.func
def bends(patch: Patch, hit: Hit):
    """Whether the velocity, or the texture's coordinates, change within the pixel by a part that counts."""
    toward = wp.dot(hit.n, hit.d)
    square = wp.dot(hit.d, hit.d)
    if patch.kind < SPHERE:
        return toward * toward < STEEP * square
    width = wp.length(patch.by_x)
    if patch.pinhole != 0:
        width = width * hit.t
    return patch.diffuse > ZERO or width * wp.length(hit.n) * square > BEND * toward * toward


@wp.func
def level(s: Contents, at: Pixel, patch: Patch, hit: Hit, mean: scalar, g: Gradients):
    """The colour c*: the mean, but on curved patches that where n · d has its mean."""
    color = mean
    if patch.kind >= SPHERE and bends(patch, hit):
        square = wp.dot(hit.d, hit.d)
        if patch.kind > CAPSULE or (patch.kind == CAPSULE and hit.n[2] == ZERO):
            square -= hit.d[2] * hit.d[2]
        halfway = moved_look(patch, hit, (hit.slant - wp.dot(hit.n, hit.d)) / square)
        color = weighed_color(s.texels, g, at, patch, halfway)
    return color


@wp.func
def stretch_adjoint(patch: Patch, point: vec3, point_bar: vec3):
    """Adjoint of the size of what is flat, given that of a point on it: a texture is as large as what it is on."""
    size_bar = vec3()
    if patch.kind < SPHERE:
        size = patch.size
        size_bar = vec3(-point_bar[0] * point[0] / size[0], -point_bar[1] * point[1] / size[1], ZERO)
    return size_bar


@wp.func
def motion_adjoint(patch: Patch, hit: Hit, slope_x: scalar, slope_y: scalar):
    """Adjoints of origin, direction and size, given the slopes along x and y of a colour that moves with the patch.

    What is seen does not change when o moves along d. So ō is the vector normal to d whose change along x and y is
    the colour's, and d̄ = t ō; there is no division by n · d. The size moves the point that is hit by as much as ō
    tells of n · d: see `surfaces.hit_adjoint`.
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
def border_look(patch: Patch, x: scalar, y: scalar, across_x: scalar, across_y: scalar, taps: int):
    """How a border sees a patch, given its middle and n ds."""
    return look(patch, x, y, vec3(across_y, -across_x, ZERO), taps)


@wp.func
def whole_slopes(s: Contents, at: Pixel, patch: Patch, hit: Hit, g: Gradients):
    """Slopes along x and y of the colour of a patch that fills a pixel and does not bend in it."""
    slopes = vec3()
    for side in range(4):
        sign = scalar(2 * (side % 2) - 1)
        border = side_look(hit, side, sign)
        slopes[side / 2] += sign * weighed_color(s.texels, g, at, patch, border)
    return slopes[0], slopes[1]
