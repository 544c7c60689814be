"""From a scene to an image, and from the adjoint of the image to those of everything in the scene.

The image is I = ∫ c dA over each pixel. By Reynolds' transport theorem its derivative has two parts,

    dI/dθ = ∫ ∂c/∂θ dA + Σ over outlines ∫ (c_in − c_out) v_n ds,     v_n = ∂f/∂θ / |∇f|,

v_n being the speed at which the line f = 0 moves outwards along its normal. The colour of each layer is taken
as linear about the centroid of what is seen of it, ∂c/∂θ there and v_n at the middle of every visible piece of outline.
That is exact where colours and speeds are linear within the pixel, and where they are not (at limbs, and on faces seen
from the side) the two parts still add up to the derivative of the frame, for both use the same colours.

Reference: Li et al., "Differentiable Monte Carlo ray tracing through edge sampling" (2018), where the second integral
is sampled; here the pieces are known.
"""

import warp as wp

from . import scalar
from .adjoint import add_edge_adjoint, add_look_adjoint
from .front import MIXED, front
from .hard import hard_front
from .layers import put_layers
from .scene import NOTHING, ONE, ZERO, Scene, center
from .shading import add_color, look
from .visible import measure

LEAST_AREA = wp.constant(scalar(1.0e-5))
LINE_NUMBERS = wp.constant(120)
LINE_CODES = wp.constant(80)
LAYER_CODES = wp.constant(30)
LAYER_SPANS = wp.constant(20)
LAYER_MOMENTS = wp.constant(33)
PIECE_NUMBERS = wp.constant(144)


@wp.func
def paint(s: Scene, b: int, line: int, column: int, image: wp.array4d(dtype=scalar)):
    """A pixel that several layers share."""
    x = center(column, s.width)
    y = center(line, s.height)
    lines = wp.zeros(shape=(LINE_NUMBERS,), dtype=scalar)
    codes = wp.zeros(shape=(LINE_CODES,), dtype=int)
    layers = wp.zeros(shape=(LAYER_CODES,), dtype=int)
    spans = wp.zeros(shape=(LAYER_SPANS,), dtype=scalar)
    moments = wp.zeros(shape=(LAYER_MOMENTS,), dtype=scalar)
    pieces = wp.zeros(shape=(PIECE_NUMBERS,), dtype=scalar)
    sides = wp.zeros(shape=(PIECE_NUMBERS,), dtype=int)
    n = put_layers(s, b, x, y, lines, codes, layers)
    measure(lines, layers, n, spans, moments, pieces, sides)
    rest = share_out(moments, n)
    for channel in range(s.channels):
        image[b, channel, line, column] *= rest
    for layer in range(n):
        area = moments[3 * layer]
        if area > ZERO:
            patch = s.patches[b, layers[3 * layer]]
            hit = look(patch, x + moments[3 * layer + 1], y + moments[3 * layer + 2], area, s.taps)
            add_color(s.texels, image, b, line, column, patch, hit, area)


@wp.func
def share_out(moments: wp.array(dtype=scalar), n: int):
    """Make the areas of the layers sum to one with that of the background, which is returned; drop the least."""
    rest = scalar(ONE)
    for layer in range(n):
        area = wp.min(moments[3 * layer], rest)
        if area < LEAST_AREA:
            area = ZERO
        moments[3 * layer] = area
        rest -= area
    return rest


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def render(first: int, stripe: int, s: Scene, image: wp.array4d(dtype=scalar), fronts: wp.array3d(dtype=int)):
    """Draw the scene over an image of the background, `stripe` pixels a thread; keep what is in front in each."""
    world, line, k = wp.tid()
    b = first + world
    y = center(line, s.height)
    for column in range(k * stripe, wp.min((k + 1) * stripe, s.width)):
        x = center(column, s.width)
        p = int(NOTHING)
        if s.soft != 0:
            p = front(s, b, x, y)
        else:
            p = hard_front(s, b, x, y)
        fronts[b, line, column] = p
        if p == MIXED:
            paint(s, b, line, column, image)
        elif p != NOTHING:
            patch = s.patches[b, p]
            for channel in range(s.channels):
                image[b, channel, line, column] = ZERO
            add_color(s.texels, image, b, line, column, patch, look(patch, x, y, ONE, s.taps), ONE)


@wp.func
def add_background_bar(
    image_bar: wp.array4d(dtype=scalar),
    background_bar: wp.array4d(dtype=scalar),
    b: int,
    line: int,
    column: int,
    share: scalar,
):
    if background_bar.shape[0] > 0:
        for channel in range(image_bar.shape[1]):
            wp.atomic_add(background_bar, b, channel, line, column, share * image_bar[b, channel, line, column])


@wp.func
def paint_adjoint(
    s: Scene,
    b: int,
    line: int,
    column: int,
    image_bar: wp.array4d(dtype=scalar),
    bars: wp.array3d(dtype=scalar),
    texels_bar: wp.array3d(dtype=scalar),
    background_bar: wp.array4d(dtype=scalar),
):
    x = center(column, s.width)
    y = center(line, s.height)
    lines = wp.zeros(shape=(LINE_NUMBERS,), dtype=scalar)
    codes = wp.zeros(shape=(LINE_CODES,), dtype=int)
    layers = wp.zeros(shape=(LAYER_CODES,), dtype=int)
    spans = wp.zeros(shape=(LAYER_SPANS,), dtype=scalar)
    moments = wp.zeros(shape=(LAYER_MOMENTS,), dtype=scalar)
    pieces = wp.zeros(shape=(PIECE_NUMBERS,), dtype=scalar)
    sides = wp.zeros(shape=(PIECE_NUMBERS,), dtype=int)
    n = put_layers(s, b, x, y, lines, codes, layers)
    used = measure(lines, layers, n, spans, moments, pieces, sides)
    add_background_bar(image_bar, background_bar, b, line, column, share_out(moments, n))
    # The colours of the layers, and last that of the background, about their centroids: value and slopes.
    colors = wp.zeros(shape=(LAYER_MOMENTS,), dtype=scalar)
    for layer in range(n):
        px = x + moments[3 * layer + 1]
        py = y + moments[3 * layer + 2]
        p = layers[3 * layer]
        color = add_look_adjoint(s, b, line, column, p, px, py, moments[3 * layer], image_bar, bars, texels_bar)
        for i in range(3):
            colors[3 * layer + i] = color[i]
    for channel in range(s.channels):
        colors[3 * n] += image_bar[b, channel, line, column] * s.background[b, channel, line, column]
    for k in range(used):
        inside = sides[3 * k + 1]
        outside = sides[3 * k + 2]
        px = pieces[3 * k]
        py = pieces[3 * k + 1]
        jump = color_at(colors, moments, inside, px, py) - color_at(colors, moments, outside, px, py)
        if outside < n and layers[3 * outside] == layers[3 * inside]:
            # Two parts of a patch that another passes through.
            jump = ZERO
        code = 2 * sides[3 * k]
        strength = jump * pieces[3 * k + 2]
        add_edge_adjoint(s, b, layers[3 * inside], codes[code], codes[code + 1], x + px, y + py, strength, bars)


@wp.func
def color_at(colors: wp.array(dtype=scalar), moments: wp.array(dtype=scalar), layer: int, x: scalar, y: scalar):
    dx = x - moments[3 * layer + 1]
    dy = y - moments[3 * layer + 2]
    return colors[3 * layer] + colors[3 * layer + 1] * dx + colors[3 * layer + 2] * dy


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def render_adjoint(
    first: int,
    stripe: int,
    s: Scene,
    fronts: wp.array3d(dtype=int),
    image_bar: wp.array4d(dtype=scalar),
    bars: wp.array3d(dtype=scalar),
    texels_bar: wp.array3d(dtype=scalar),
    background_bar: wp.array4d(dtype=scalar),
):
    """Add to the adjoints: bars (batch, patches, 18) of rays (12), extents (3) and light (3)."""
    world, line, k = wp.tid()
    b = first + world
    y = center(line, s.height)
    for column in range(k * stripe, wp.min((k + 1) * stripe, s.width)):
        p = fronts[b, line, column]
        if p == MIXED:
            paint_adjoint(s, b, line, column, image_bar, bars, texels_bar, background_bar)
        elif p == NOTHING:
            add_background_bar(image_bar, background_bar, b, line, column, ONE)
        else:
            x = center(column, s.width)
            add_look_adjoint(s, b, line, column, p, x, y, ONE, image_bar, bars, texels_bar)
