"""From a scene to an image, and from the adjoint of the image to those of everything in the scene.

The image is I = ∫ c dA over each pixel. By Reynolds' transport theorem its derivative has two parts,

    dI/dθ = ∫ ∂c/∂θ dA + Σ over outlines ∫ (c_in − c_out) v_n ds,     v_n = ∂f/∂θ / |∇f|,

v_n being the speed at which the line f = 0 moves outwards along its normal. The first is taken at the centroid of
what is seen of each layer, the second at the middle of every visible piece of outline: both are exact for colours and
speeds that are linear within the pixel. Reference: Li et al., "Differentiable Monte Carlo ray tracing through edge
sampling" (2018), where the second integral is sampled; here the pieces are known.
"""

import warp as wp

from . import scalar
from .adjoint import add_edge_adjoint, add_look_adjoint
from .hard import hard_front
from .layers import MIXED, NOTHING, front, put_layers
from .scene import ONE, Scene, center_x, center_y
from .shading import add_color, look, weighed_color
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
    x = center_x(s, column)
    y = center_y(s, line)
    lines = wp.zeros(shape=(LINE_NUMBERS,), dtype=scalar)
    codes = wp.zeros(shape=(LINE_CODES,), dtype=int)
    layers = wp.zeros(shape=(LAYER_CODES,), dtype=int)
    spans = wp.zeros(shape=(LAYER_SPANS,), dtype=scalar)
    moments = wp.zeros(shape=(LAYER_MOMENTS,), dtype=scalar)
    pieces = wp.zeros(shape=(PIECE_NUMBERS,), dtype=scalar)
    sides = wp.zeros(shape=(PIECE_NUMBERS,), dtype=int)
    n = put_layers(s, b, x, y, lines, codes, layers)
    measure(lines, layers, n, spans, moments, pieces, sides)
    rest = scalar(ONE)
    for layer in range(n):
        area = wp.min(moments[3 * layer], rest)
        if area > LEAST_AREA:
            p = layers[3 * layer]
            hit = look(s, b, p, x + moments[3 * layer + 1], y + moments[3 * layer + 2], s.taps)
            add_color(s, b, p, hit, area, line, column, image)
            rest -= area
    for channel in range(s.channels):
        image[b, channel, line, column] += rest * s.background[b, channel, line, column]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def render(s: Scene, image: wp.array4d(dtype=scalar)):
    """Add the scene to an image of zeros."""
    b, line, column = wp.tid()
    x = center_x(s, column)
    y = center_y(s, line)
    taps = s.taps
    patch = int(NOTHING)
    if s.soft != 0:
        patch = front(s, b, x, y)
    else:
        patch = hard_front(s, b, x, y)
        taps = 1
    if patch == MIXED:
        paint(s, b, line, column, image)
    elif patch == NOTHING:
        for channel in range(s.channels):
            image[b, channel, line, column] = s.background[b, channel, line, column]
    else:
        add_color(s, b, patch, look(s, b, patch, x, y, taps), ONE, line, column, image)


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
    x = center_x(s, column)
    y = center_y(s, line)
    lines = wp.zeros(shape=(LINE_NUMBERS,), dtype=scalar)
    codes = wp.zeros(shape=(LINE_CODES,), dtype=int)
    layers = wp.zeros(shape=(LAYER_CODES,), dtype=int)
    spans = wp.zeros(shape=(LAYER_SPANS,), dtype=scalar)
    moments = wp.zeros(shape=(LAYER_MOMENTS,), dtype=scalar)
    pieces = wp.zeros(shape=(PIECE_NUMBERS,), dtype=scalar)
    sides = wp.zeros(shape=(PIECE_NUMBERS,), dtype=int)
    n = put_layers(s, b, x, y, lines, codes, layers)
    used = measure(lines, layers, n, spans, moments, pieces, sides)
    rest = scalar(ONE)
    for layer in range(n):
        area = wp.min(moments[3 * layer], rest)
        if area > LEAST_AREA:
            p = layers[3 * layer]
            hit = look(s, b, p, x + moments[3 * layer + 1], y + moments[3 * layer + 2], s.taps)
            add_look_adjoint(
                s,
                b,
                p,
                hit,
                area,
                x + moments[3 * layer + 1],
                y + moments[3 * layer + 2],
                line,
                column,
                image_bar,
                bars,
                texels_bar,
            )
            rest -= area
    if background_bar.shape[0] > 0:
        for channel in range(s.channels):
            wp.atomic_add(background_bar, b, channel, line, column, rest * image_bar[b, channel, line, column])
    for k in range(used):
        inside = layers[3 * sides[3 * k + 1]]
        outside = int(NOTHING)
        if sides[3 * k + 2] < n:
            outside = layers[3 * sides[3 * k + 2]]
        if inside != outside:
            px = x + pieces[3 * k]
            py = y + pieces[3 * k + 1]
            jump = weighed_color(s, b, inside, px, py, line, column, image_bar) - weighed_color(
                s, b, outside, px, py, line, column, image_bar
            )
            code = 2 * sides[3 * k]
            add_edge_adjoint(s, b, inside, codes[code], codes[code + 1], px, py, jump * pieces[3 * k + 2], bars)


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def render_adjoint(
    s: Scene,
    image_bar: wp.array4d(dtype=scalar),
    bars: wp.array3d(dtype=scalar),
    texels_bar: wp.array3d(dtype=scalar),
    background_bar: wp.array4d(dtype=scalar),
):
    """Add to the adjoints: bars (batch, patches, 18) of rays (12), extents (3) and light (3)."""
    b, line, column = wp.tid()
    x = center_x(s, column)
    y = center_y(s, line)
    taps = s.taps
    patch = int(NOTHING)
    if s.soft != 0:
        patch = front(s, b, x, y)
    else:
        patch = hard_front(s, b, x, y)
        taps = 1
    if patch == MIXED:
        paint_adjoint(s, b, line, column, image_bar, bars, texels_bar, background_bar)
    elif patch == NOTHING:
        if background_bar.shape[0] > 0:
            for channel in range(s.channels):
                wp.atomic_add(background_bar, b, channel, line, column, image_bar[b, channel, line, column])
    else:
        hit = look(s, b, patch, x, y, taps)
        add_look_adjoint(s, b, patch, hit, ONE, x, y, line, column, image_bar, bars, texels_bar)
