"""Kernels from a scene to an image, and from the adjoint of the image to those of the scene.

The image is I = ∫ c dA over each pixel. By Reynolds' transport theorem its derivative has two parts,

    dI/dθ = ∫ ∂c/∂θ dA + Σ over outlines ∫ (c_in − c_out) v_n ds,     v_n = ∂f/∂θ / |∇f|,

v_n being the speed at which the line f = 0 moves outwards along its normal. The visible parts of the layers and the
visible pieces of outline are known. `flux` has the first integral; where a layer's own outline moves, it leaves of c_in
a constant, the reference color, and where another layer hides it, the color there.

Reference: Li et al., "Differentiable Monte Carlo ray tracing through edge sampling" (2018), where the second integral
is sampled; here the pieces are known.
"""

import warp as wp

from .adjoint import add_edge_adjoint, covering_adjoint, flat_color_adjoint, layer_adjoint
from .borders import append_outline_pieces, append_pixel_sides
from .edges import DEPTH_EDGE
from .flux import has_varying_color
from .front import MIXED, covering_patch
from .hard import nearest_patch
from .layers import list_layers
from .lists import (
    MAX_AREAS,
    MAX_BORDERS,
    MAX_LAYERS,
    MAX_LINES,
    MAX_PIECES,
    Lists,
    int2,
    int3,
    lists_of,
    vec2,
    vec5,
)
from .precision import scalar
from .scene import NO_PATCH, ONE, ZERO, Contents, Gradients, Pixel, pixel_at, vec3
from .shading import add_color, sample_patch
from .visible import MIN_AREA, measure_visibility


@wp.func
def render_mixed_pixel(s: Contents, at: Pixel, image: wp.array4d(dtype=scalar)):
    """Render a pixel that several layers share."""
    lines = wp.zeros(shape=(MAX_LINES,), dtype=vec3)
    codes = wp.zeros(shape=(MAX_LINES,), dtype=int2)
    layers = wp.zeros(shape=(MAX_LAYERS,), dtype=int3)
    spans = wp.zeros(shape=(MAX_LAYERS,), dtype=vec2)
    moments = wp.zeros(shape=(MAX_AREAS,), dtype=vec3)
    spreads = wp.zeros(shape=(MAX_AREAS,), dtype=vec3)
    pieces = wp.zeros(shape=(MAX_PIECES,), dtype=vec3)
    sides = wp.zeros(shape=(MAX_PIECES,), dtype=int3)
    lists = lists_of(lines, codes, layers, spans, moments, spreads, pieces, sides)
    n = list_layers(s, at, lists)
    measure_visibility(lists, n)
    rest = normalize_areas(lists, n)
    for channel in range(s.channels):
        image[at.b, channel, at.line, at.column] *= rest
    for layer in range(n):
        moment = lists.moments[layer]
        if moment[0] > ZERO:
            patch = s.patches[at.b, lists.layers[layer][0]]
            hit = sample_patch(patch, at.x + moment[1], at.y + moment[2], lists.spreads[layer], s.taps)
            add_color(s.texels, image, at, patch, hit, moment[0])


@wp.func
def normalize_areas(lists: Lists, n: int):
    """Make the areas of layers and background sum to one; return the background's; drop tiny ones."""
    rest = scalar(ONE)
    for layer in range(n):
        moment = lists.moments[layer]
        area = wp.min(moment[0], rest)
        if area < MIN_AREA:
            area = ZERO
        lists.moments[layer] = vec3(area, moment[1], moment[2])
        rest -= area
    return rest


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def render(first: int, stripe: int, s: Contents, image: wp.array4d(dtype=scalar), front_patches: wp.array3d(dtype=int)):
    """Render the scene over an image of the background, `stripe` pixels a thread; store the front patches."""
    row, k = wp.tid()
    for column in range(k * stripe, wp.min((k + 1) * stripe, s.width)):
        at = pixel_at(s, first + row, column)
        p = int(NO_PATCH)
        if s.soft != 0:
            p = covering_patch(s, at.b, at.x, at.y)
        else:
            p = nearest_patch(s, at.b, at.x, at.y)
        front_patches[at.b, at.line, column] = p
        if p == MIXED:
            render_mixed_pixel(s, at, image)
        elif p != NO_PATCH:
            patch = s.patches[at.b, p]
            for channel in range(s.channels):
                image[at.b, channel, at.line, column] = ZERO
            add_color(s.texels, image, at, patch, sample_patch(patch, at.x, at.y, vec3(ONE, ZERO, ONE), s.taps), ONE)


@wp.func
def add_background(g: Gradients, at: Pixel, fraction: scalar):
    """Add the gradient of the background's fraction of a pixel."""
    if g.background.shape[0] > 0:
        for channel in range(g.image.shape[1]):
            gradient = fraction * g.image[at.b, channel, at.line, at.column]
            wp.atomic_add(g.background, at.b, channel, at.line, at.column, gradient)


@wp.func
def mixed_pixel_adjoint(s: Contents, at: Pixel, g: Gradients):
    """Add the gradients of a pixel that several layers share."""
    lines = wp.zeros(shape=(MAX_LINES,), dtype=vec3)
    codes = wp.zeros(shape=(MAX_LINES,), dtype=int2)
    layers = wp.zeros(shape=(MAX_LAYERS,), dtype=int3)
    spans = wp.zeros(shape=(MAX_LAYERS,), dtype=vec2)
    moments = wp.zeros(shape=(MAX_AREAS,), dtype=vec3)
    spreads = wp.zeros(shape=(MAX_AREAS,), dtype=vec3)
    pieces = wp.zeros(shape=(MAX_PIECES,), dtype=vec3)
    sides = wp.zeros(shape=(MAX_PIECES,), dtype=int3)
    lists = lists_of(lines, codes, layers, spans, moments, spreads, pieces, sides)
    n = list_layers(s, at, lists)
    used = measure_visibility(lists, n)
    add_background(g, at, normalize_areas(lists, n))
    # Color inside each piece of outline less that outside.
    jumps = wp.zeros(shape=(MAX_PIECES,), dtype=scalar)
    varied = bool(False)
    for layer in range(n):
        varied = varied or has_varying_color(s.patches[at.b, lists.layers[layer][0]])
    if varied:
        varying_color_jumps(s, at, lists, n, used, g, jumps)
    else:
        flat_color_jumps(s, at, lists, n, used, g, jumps)
    for k in range(used):
        side = lists.sides[k]
        if side[2] == n:
            for channel in range(s.channels):
                ground = s.background[at.b, channel, at.line, at.column]
                jumps[k] -= g.image[at.b, channel, at.line, at.column] * ground
        # An edge between two parts of a patch that another one intersects is invisible.
        if side[2] == n or lists.layers[side[2]][0] != lists.layers[side[1]][0]:
            code = lists.codes[side[0]]
            piece = lists.pieces[k]
            x = at.x + piece[0]
            y = at.y + piece[1]
            add_edge_adjoint(s, at, lists.layers[side[1]][0], code[0], code[1], x, y, jumps[k] * piece[2], g)


@wp.func
def flat_color_jumps(
    s: Contents, at: Pixel, lists: Lists, n: int, used: int, g: Gradients, jumps: wp.array(dtype=scalar)
):
    """Add to gradients, and to the jumps between layers, where each layer has one color."""
    for layer in range(n):
        color = flat_color_adjoint(s, at, lists.layers[layer][0], lists.moments[layer][0], g)
        for k in range(used):
            if lists.sides[k][1] == layer:
                jumps[k] += color
            elif lists.sides[k][2] == layer:
                jumps[k] -= color


@wp.func
def varying_color_jumps(
    s: Contents, at: Pixel, lists: Lists, n: int, used: int, g: Gradients, jumps: wp.array(dtype=scalar)
):
    """Add to gradients, and to the jumps between layers, where some have textures or shades."""
    borders = wp.zeros(shape=(MAX_BORDERS,), dtype=vec5)
    owners = wp.zeros(shape=(MAX_BORDERS,), dtype=int2)
    listed = append_outline_pieces(lists, n, used, borders, owners, 0)
    listed = append_pixel_sides(lists, n, borders, owners, listed)
    for layer in range(n):
        color = layer_adjoint(s, at, lists, layer, borders, owners, listed, g)
        for k in range(used):
            if lists.sides[k][1] == layer and lists.codes[lists.sides[k][0]][0] != DEPTH_EDGE:
                jumps[k] += color
    for i in range(listed):
        k = owners[i][1]
        if k != NO_PATCH:
            if lists.sides[k][2] == owners[i][0]:
                jumps[k] -= borders[i][4]
            else:
                jumps[k] += borders[i][4]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def render_adjoint(first: int, stripe: int, s: Contents, front_patches: wp.array3d(dtype=int), g: Gradients):
    """Add the gradients that follow from that of the image."""
    row, k = wp.tid()
    for column in range(k * stripe, wp.min((k + 1) * stripe, s.width)):
        at = pixel_at(s, first + row, column)
        p = front_patches[at.b, at.line, column]
        if p == MIXED:
            mixed_pixel_adjoint(s, at, g)
        elif p == NO_PATCH:
            add_background(g, at, ONE)
        else:
            covering_adjoint(s, at, p, g)
