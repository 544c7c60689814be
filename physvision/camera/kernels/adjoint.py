"""Adjoints of rays, sizes and light from one sample of color and from one piece of outline."""

import warp as wp

from .edges import DEPTH_EDGE, LINE_EDGE, edge_slopes, side_slopes
from .flux import (
    covering_color_slopes,
    has_varying_color,
    is_bent,
    motion_adjoint,
    reference_color,
    sample_border,
    stretch_adjoint,
)
from .lists import Lists, int2, vec5
from .precision import scalar
from .scene import HALF, ONE, SPHERE, TINY, ZERO, Contents, Gradients, Patch, Pixel, ray, screen_slope, vec3
from .shading import Hit, sample_patch, shading_adjoint, texture_adjoint, weighted_color
from .surfaces import depth, depth_adjoint, depth_by_size, depth_normal, hit_adjoint, point_slopes, slant

# Distance of the two points of Gauss' rule from the center of a border: 1 / √12.
GAUSS = wp.constant(scalar(0.28867513459481288))


@wp.func
def add_ray_cotangents(
    pinhole: int, row: int, p: int, x: scalar, y: scalar, o_bar: vec3, d_bar: vec3, size_bar: vec3, g: Gradients
):
    """Add to the cotangents of the rays, which are linear in x and y, and of the size."""
    fixed = wp.where(pinhole != 0, o_bar, d_bar)
    moving = wp.where(pinhole != 0, d_bar, o_bar)
    for i in range(3):
        wp.atomic_add(g.patches, row, p, i, fixed[i])
        wp.atomic_add(g.patches, row, p, 3 + i, moving[i] * x)
        wp.atomic_add(g.patches, row, p, 6 + i, moving[i] * y)
        wp.atomic_add(g.patches, row, p, 9 + i, moving[i])
        wp.atomic_add(g.patches, row, p, 12 + i, size_bar[i])


@wp.struct
class PatchSample:
    """Sample of a patch in a part of a pixel, with adjoints.

    hit: the sample. color: sum over channels of the pixel's adjoint times the mean color. point_bar, size_bar: adjoints
    of the point that is hit, and of the size where that does not move it on the screen.
    """

    hit: Hit
    color: scalar
    point_bar: vec3
    size_bar: vec3


@wp.func
def sample_adjoint(s: Contents, at: Pixel, p: int, x: scalar, y: scalar, spread: vec3, weight: scalar, g: Gradients):
    """Sample a part of a pixel about (x, y); add `weight` of the adjoints of texture and light."""
    sample = PatchSample()
    patch = s.patches[at.b, p]
    hit = sample_patch(patch, x, y, spread, s.taps)
    u_bar, v_bar, shade_bar = texture_adjoint(s.texels, g, at, patch, hit, weight)
    sample.hit = hit
    sample.color = hit.shade * shade_bar
    if patch.diffuse > ZERO or patch.rows * patch.columns > 1:
        point_bar, size_bar, light_bar = shading_adjoint(patch, hit, u_bar, v_bar, shade_bar)
        sample.point_bar = point_bar
        sample.size_bar = size_bar
        if patch.diffuse > ZERO:
            for i in range(3):
                wp.atomic_add(g.patches, at.row, p, 15 + i, weight * light_bar[i])
    return sample


@wp.func
def add_point(patch: Patch, row: int, p: int, x: scalar, y: scalar, weight: scalar, sample: PatchSample, g: Gradients):
    """Add the gradients of a color by the motion of the point that is hit."""
    hit = sample.hit
    o_bar, d_bar, size_bar = hit_adjoint(
        patch.kind, hit.point, hit.n, hit.t, hit.d, patch.size, hit.slant, sample.point_bar
    )
    size_bar = weight * (size_bar + sample.size_bar + stretch_adjoint(patch, hit.point, sample.point_bar))
    add_ray_cotangents(patch.pinhole, row, p, x, y, weight * o_bar, weight * d_bar, size_bar, g)


@wp.func
def add_motion(
    patch: Patch, row: int, p: int, x: scalar, y: scalar, hit: Hit, slope_x: scalar, slope_y: scalar, g: Gradients
):
    """Add the gradients of a color that has these slopes at (x, y) and moves with the patch."""
    o_bar, d_bar, size_bar = motion_adjoint(patch, hit, slope_x, slope_y)
    add_ray_cotangents(patch.pinhole, row, p, x, y, o_bar, d_bar, size_bar, g)


@wp.func
def add_size(patch: Patch, row: int, p: int, weight: scalar, sample: PatchSample, g: Gradients):
    """Add the gradients of a color by the size, without motion on the screen."""
    n = sample.hit.n
    beyond = wp.dot(sample.point_bar, n) / wp.max(wp.dot(n, n), TINY)
    size_bar = sample.size_bar - beyond * depth_by_size(patch.kind, sample.hit.point, n, patch.size)
    if patch.kind >= SPHERE:
        for i in range(3):
            wp.atomic_add(g.patches, row, p, 12 + i, weight * size_bar[i])


@wp.func
def add_border_flux(
    s: Contents, at: Pixel, p: int, x: scalar, y: scalar, nx: scalar, ny: scalar, color: scalar, g: Gradients
):
    """Add the flux over a border from one sample, given its center, n ds and the reference color; return its color."""
    patch = s.patches[at.b, p]
    hit = sample_border(patch, x, y, nx, ny, s.taps)
    color_there = weighted_color(s.texels, g, at, patch, hit)
    jump = color_there - color
    add_motion(patch, at.row, p, x, y, hit, jump * nx, jump * ny, g)
    return color_there


@wp.func
def border_adjoint(s: Contents, at: Pixel, p: int, border: vec5, color: scalar, bent: bool, g: Gradients):
    """Add the flux over a border, given its center, its n ds and the reference color; return its mean color.

    If color and velocity change along it, they are sampled at the two points of Gauss' rule.
    """
    x = at.x + border[0]
    y = at.y + border[1]
    if not bent:
        return add_border_flux(s, at, p, x, y, border[2], border[3], color, g)
    mean = scalar(0.0)
    for half in range(2):
        away = GAUSS * scalar(2 * half - 1)
        px = x + away * border[3]
        py = y - away * border[2]
        mean += HALF * add_border_flux(s, at, p, px, py, HALF * border[2], HALF * border[3], color, g)
    return mean


@wp.func
def covering_adjoint(s: Contents, at: Pixel, p: int, g: Gradients):
    """Add the gradients of a patch that fills the pixel."""
    patch = s.patches[at.b, p]
    if patch.diffuse == ZERO and patch.rows * patch.columns == 1 and g.texels.shape[0] == 0:
        return
    sample = sample_adjoint(s, at, p, at.x, at.y, vec3(ONE, ZERO, ONE), ONE, g)
    if not has_varying_color(patch):
        return
    if s.soft == 0:
        add_point(patch, at.row, p, at.x, at.y, ONE, sample, g)
        return
    add_size(patch, at.row, p, ONE, sample, g)
    if is_bent(patch, sample.hit):
        color = reference_color(s, at, patch, sample.hit, sample.color, g)
        for side in range(4):
            across_x = scalar((2 * (side % 2) - 1) * (1 - side / 2))
            across_y = scalar((2 * (side % 2) - 1) * (side / 2))
            border = vec5(HALF * across_x, HALF * across_y, across_x, across_y, ZERO)
            border_adjoint(s, at, p, border, color, True, g)
    else:
        slope_x, slope_y = covering_color_slopes(s, at, patch, sample.hit, g)
        add_motion(patch, at.row, p, at.x, at.y, sample.hit, slope_x, slope_y, g)


@wp.func
def flat_color_adjoint(s: Contents, at: Pixel, p: int, weight: scalar, g: Gradients):
    """Add the gradients of a patch of one color that fills `weight` of the pixel; return its color."""
    lit = s.patches[at.b, p].diffuse > ZERO
    color = scalar(0.0)
    if lit:
        sample = sample_adjoint(s, at, p, at.x, at.y, vec3(), weight, g)
        color = sample.color
    else:
        texel = s.patches[at.b, p].texel
        for channel in range(s.channels):
            bar = g.image[at.b, channel, at.line, at.column]
            color += bar * s.texels[at.b, channel, texel]
            if g.texels.shape[0] > 0:
                wp.atomic_add(g.texels, at.b, channel, texel, weight * bar * s.patches[at.b, p].ambient)
        color = color * s.patches[at.b, p].ambient
    return color


@wp.func
def layer_adjoint(
    s: Contents,
    at: Pixel,
    lists: Lists,
    layer: int,
    borders: wp.array(dtype=vec5),
    owners: wp.array(dtype=int2),
    listed: int,
    g: Gradients,
):
    """Add the gradients of a layer that fills a part of the pixel; set its borders' colors, return the reference color.

    borders, owners, listed: see `borders`.
    """
    p = lists.layers[layer][0]
    moment = lists.moments[layer]
    spread = lists.spreads[layer]
    sample = sample_adjoint(s, at, p, at.x + moment[1], at.y + moment[2], spread, moment[0], g)
    patch = s.patches[at.b, p]
    color = sample.color
    changes = moment[0] > ZERO and has_varying_color(patch)
    bent = bool(False)
    if changes:
        bent = is_bent(patch, sample.hit)
        add_size(patch, at.row, p, moment[0], sample, g)
        color = reference_color(s, at, patch, sample.hit, sample.color, g)
    for k in range(listed):
        if owners[k][0] == layer:
            border = borders[k]
            border[4] = color
            if changes:
                border[4] = border_adjoint(s, at, p, border, color, bent, g)
            borders[k] = border
    return color


@wp.func
def add_depth_adjoint(s: Contents, at: Pixel, p: int, x: scalar, y: scalar, t_bar: scalar, g: Gradients):
    """Add the gradients of a patch's depth at (x, y); return its slopes."""
    patch = s.patches[at.b, p]
    o, d = ray(patch, x, y)
    size = patch.size
    kind = patch.kind
    t = depth(kind, o, d, size, patch.near)
    point = o + t * d
    n = depth_normal(kind, point, size)
    o_bar, d_bar, size_bar = depth_adjoint(kind, point, n, t, d, size, t_bar)
    add_ray_cotangents(patch.pinhole, at.row, p, x, y, o_bar, d_bar, size_bar, g)
    t_x, t_y, _px, _py = point_slopes(patch, n, t, d, slant(n, d))
    return t_x, t_y


@wp.func
def add_edge_adjoint(
    s: Contents, at: Pixel, p: int, edge: int, detail: int, x: scalar, y: scalar, strength: scalar, g: Gradients
):
    """Move the line f = 0 at (x, y): strength · ∂f/∂θ / |∇f|, strength = length · (color inside − outside)."""
    if edge == DEPTH_EDGE:
        # f is the depth of the other patch minus the depth of this one.
        i_x, i_y = add_depth_adjoint(s, at, p, x, y, ZERO, g)
        j_x, j_y = add_depth_adjoint(s, at, detail, x, y, ZERO, g)
        slope = wp.sqrt((j_x - i_x) * (j_x - i_x) + (j_y - i_y) * (j_y - i_y))
        factor = strength / wp.max(slope, TINY)
        add_depth_adjoint(s, at, p, x, y, -factor, g)
        add_depth_adjoint(s, at, detail, x, y, factor, g)
        return
    patch = s.patches[at.b, p]
    o, d = ray(patch, x, y)
    size = patch.size
    by_o = vec3()
    by_d = vec3()
    by_size = vec3()
    sign = ONE
    if edge == LINE_EDGE:
        by_o, by_d, by_size = side_slopes(s.vertices, patch, detail, o, d)
        # The sign of side_value inside depends on the visible side of the polygon.
        sign = wp.sign(d[2])
    else:
        by_o, by_d, by_size = edge_slopes(edge, detail, o, d, size)
    gx, gy = screen_slope(patch, by_o, by_d)
    factor = sign * strength / wp.max(wp.sqrt(gx * gx + gy * gy), TINY)
    add_ray_cotangents(patch.pinhole, at.row, p, x, y, factor * by_o, factor * by_d, factor * by_size, g)
