"""From a scene to an image, and from the adjoint of the image to those of everything in the scene.

The image is I = ∫ c dA over each pixel. By Reynolds' transport theorem its derivative has two parts,

    dI/dθ = ∫ ∂c/∂θ dA + Σ over outlines ∫ (c_in − c_out) v_n ds,     v_n = ∂f/∂θ / |∇f|,

v_n being the speed at which the line f = 0 moves outwards along its normal. What is seen of each layer and the visible
pieces of outline are known. `flux` has the first integral; where a layer's own outline moves, it leaves of c_in a
constant, the level, and where another hides it, the colour that is there.

Reference: Li et al., "Differentiable Monte Carlo ray tracing through edge sampling" (2018), where the second integral
is sampled; here the pieces are known.
"""

import warp as wp

from . import scalar
from .adjoint import add_edge_adjoint, part_adjoint, plain_adjoint, whole_adjoint
from .borders import list_pieces, list_sides
from .edges import DEPTH_EDGE
from .flux import varies
from .front import MIXED, front
from .hard import hard_front
from .layers import put_layers
from .scene import NOTHING, ONE, ZERO, Contents, center, vec3
from .shading import add_color, look
from .visible import LEAST_AREA, measure

LINE_NUMBERS = wp.constant(120)
LINE_CODES = wp.constant(80)
LAYER_CODES = wp.constant(30)
LAYER_SPANS = wp.constant(20)
LAYER_MOMENTS = wp.constant(33)
PIECE_NUMBERS = wp.constant(144)
PIECE_JUMPS = wp.constant(48)
BORDER_NUMBERS = wp.constant(400)
BORDER_CODES = wp.constant(160)


@wp.func
def paint(s: Contents, b: int, line: int, column: int, image: wp.array4d(dtype=scalar)):
    """A pixel that several layers share."""
    x = center(column, s.width)
    y = center(line, s.height)
    lines = wp.zeros(shape=(LINE_NUMBERS,), dtype=scalar)
    codes = wp.zeros(shape=(LINE_CODES,), dtype=int)
    layers = wp.zeros(shape=(LAYER_CODES,), dtype=int)
    spans = wp.zeros(shape=(LAYER_SPANS,), dtype=scalar)
    moments = wp.zeros(shape=(LAYER_MOMENTS,), dtype=scalar)
    spreads = wp.zeros(shape=(LAYER_MOMENTS,), dtype=scalar)
    pieces = wp.zeros(shape=(PIECE_NUMBERS,), dtype=scalar)
    sides = wp.zeros(shape=(PIECE_NUMBERS,), dtype=int)
    n = put_layers(s, b, x, y, lines, codes, layers)
    measure(lines, layers, n, spans, moments, spreads, pieces, sides)
    rest = share_out(moments, n)
    for channel in range(s.channels):
        image[b, channel, line, column] *= rest
    for layer in range(n):
        area = moments[3 * layer]
        if area > ZERO:
            patch = s.patches[b, layers[3 * layer]]
            middle = triple(moments, layer)
            hit = look(patch, x + middle[1], y + middle[2], triple(spreads, layer), s.taps)
            add_color(s.texels, image, b, line, column, patch, hit, area)


@wp.func
def triple(numbers: wp.array(dtype=scalar), i: int):
    return vec3(numbers[3 * i], numbers[3 * i + 1], numbers[3 * i + 2])


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
def render(first: int, stripe: int, s: Contents, image: wp.array4d(dtype=scalar), fronts: wp.array3d(dtype=int)):
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
            add_color(s.texels, image, b, line, column, patch, look(patch, x, y, vec3(ONE, ZERO, ONE), s.taps), ONE)


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
    s: Contents,
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
    spreads = wp.zeros(shape=(LAYER_MOMENTS,), dtype=scalar)
    pieces = wp.zeros(shape=(PIECE_NUMBERS,), dtype=scalar)
    sides = wp.zeros(shape=(PIECE_NUMBERS,), dtype=int)
    n = put_layers(s, b, x, y, lines, codes, layers)
    used = measure(lines, layers, n, spans, moments, spreads, pieces, sides)
    add_background_bar(image_bar, background_bar, b, line, column, share_out(moments, n))
    # By how much the colour is greater inside each piece of outline than outside.
    jumps = wp.zeros(shape=(PIECE_JUMPS,), dtype=scalar)
    varied = bool(False)
    for layer in range(n):
        varied = varied or varies(s.patches[b, layers[3 * layer]])
    if varied:
        varied_jumps(
            s,
            b,
            line,
            column,
            lines,
            codes,
            layers,
            n,
            spans,
            moments,
            spreads,
            pieces,
            sides,
            used,
            image_bar,
            bars,
            texels_bar,
            jumps,
        )
    else:
        plain_jumps(s, b, line, column, layers, n, moments, sides, used, image_bar, bars, texels_bar, jumps)
    for k in range(used):
        inside = sides[3 * k + 1]
        outside = sides[3 * k + 2]
        if outside == n:
            for channel in range(s.channels):
                jumps[k] -= image_bar[b, channel, line, column] * s.background[b, channel, line, column]
        # Nothing is seen of an edge between two parts of a patch that another passes through.
        if outside == n or layers[3 * outside] != layers[3 * inside]:
            code = 2 * sides[3 * k]
            strength = jumps[k] * pieces[3 * k + 2]
            px = x + pieces[3 * k]
            py = y + pieces[3 * k + 1]
            add_edge_adjoint(s, b, layers[3 * inside], codes[code], codes[code + 1], px, py, strength, bars)


@wp.func
def plain_jumps(
    s: Contents,
    b: int,
    line: int,
    column: int,
    layers: wp.array(dtype=int),
    n: int,
    moments: wp.array(dtype=scalar),
    sides: wp.array(dtype=int),
    used: int,
    image_bar: wp.array4d(dtype=scalar),
    bars: wp.array3d(dtype=scalar),
    texels_bar: wp.array3d(dtype=scalar),
    jumps: wp.array(dtype=scalar),
):
    """What layers add to adjoints and to the jumps between them where each has one colour."""
    for layer in range(n):
        moment = triple(moments, layer)
        p = layers[3 * layer]
        color = plain_adjoint(s, b, line, column, p, moment[0], image_bar, bars, texels_bar)
        for k in range(used):
            if sides[3 * k + 1] == layer:
                jumps[k] += color
            elif sides[3 * k + 2] == layer:
                jumps[k] -= color


@wp.func
def varied_jumps(
    s: Contents,
    b: int,
    line: int,
    column: int,
    lines: wp.array(dtype=scalar),
    codes: wp.array(dtype=int),
    layers: wp.array(dtype=int),
    n: int,
    spans: wp.array(dtype=scalar),
    moments: wp.array(dtype=scalar),
    spreads: wp.array(dtype=scalar),
    pieces: wp.array(dtype=scalar),
    sides: wp.array(dtype=int),
    used: int,
    image_bar: wp.array4d(dtype=scalar),
    bars: wp.array3d(dtype=scalar),
    texels_bar: wp.array3d(dtype=scalar),
    jumps: wp.array(dtype=scalar),
):
    """What layers add to adjoints and to the jumps between them where some have textures or shades."""
    borders = wp.zeros(shape=(BORDER_NUMBERS,), dtype=scalar)
    owners = wp.zeros(shape=(BORDER_CODES,), dtype=int)
    listed = list_pieces(lines, codes, n, pieces, sides, used, borders, owners, 0)
    listed = list_sides(lines, layers, n, spans, borders, owners, listed)
    for layer in range(n):
        p = layers[3 * layer]
        moment = triple(moments, layer)
        spread = triple(spreads, layer)
        color = part_adjoint(
            s, b, line, column, p, layer, moment, spread, borders, owners, listed, image_bar, bars, texels_bar
        )
        for k in range(used):
            if sides[3 * k + 1] == layer and codes[2 * sides[3 * k]] != DEPTH_EDGE:
                jumps[k] += color
    for i in range(listed):
        k = owners[2 * i + 1]
        if k != NOTHING:
            if sides[3 * k + 2] == owners[2 * i]:
                jumps[k] -= borders[5 * i + 4]
            else:
                jumps[k] += borders[5 * i + 4]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def render_adjoint(
    first: int,
    stripe: int,
    s: Contents,
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
            whole_adjoint(s, b, line, column, p, x, y, image_bar, bars, texels_bar)
