"""What one sample of colour and one piece of outline add to the adjoints of rays, sizes and light."""

import warp as wp

from .edges import DEPTH_EDGE, LINE_EDGE, edge_slopes, side_slopes
from .flux import bends, border_look, level, motion_adjoint, stretch_adjoint, varies, whole_slopes
from .precision import scalar
from .scene import HALF, ONE, SPHERE, TINY, ZERO, Contents, Gradients, Patch, Pixel, ray, screen_slope, vec3
from .shading import Hit, look, look_adjoint, texture_adjoint, weighed_color
from .surfaces import depth, depth_adjoint, depth_by_size, depth_normal, hit_adjoint, point_slopes, slant

# From the middle of a border to the places of Gauss' rule with two of them: 1 / √12.
GAUSS = wp.constant(scalar(0.28867513459481288))


@wp.func
def add_bars(
    pinhole: int, row: int, p: int, x: scalar, y: scalar, o_bar: vec3, d_bar: vec3, size_bar: vec3, g: Gradients
):
    """The rays are linear in x and y, and so are their adjoints."""
    fixed = d_bar
    moving = o_bar
    if pinhole != 0:
        fixed = o_bar
        moving = d_bar
    for i in range(3):
        wp.atomic_add(g.patches, row, p, i, fixed[i])
        wp.atomic_add(g.patches, row, p, 3 + i, moving[i] * x)
        wp.atomic_add(g.patches, row, p, 6 + i, moving[i] * y)
        wp.atomic_add(g.patches, row, p, 9 + i, moving[i])
        wp.atomic_add(g.patches, row, p, 12 + i, size_bar[i])


@wp.struct
class Shown:
    """What a patch shows of itself in a part of a pixel.

    hit: how it is seen. color: Σ over channels of the pixel's adjoint times the mean colour. point_bar, size_bar:
    adjoints of the point that is hit, and of the size where that does not move it on the screen.
    """

    hit: Hit
    color: scalar
    point_bar: vec3
    size_bar: vec3


@wp.func
def show_adjoint(s: Contents, at: Pixel, p: int, x: scalar, y: scalar, spread: vec3, weight: scalar, g: Gradients):
    """What a part of a pixel about (x, y) shows; adds what `weight` of it makes of the texture and of the light."""
    shown = Shown()
    patch = s.patches[at.b, p]
    hit = look(patch, x, y, spread, s.taps)
    u_bar, v_bar, shade_bar = texture_adjoint(s.texels, g, at, patch, hit, weight)
    shown.hit = hit
    shown.color = hit.shade * shade_bar
    if patch.diffuse > ZERO or patch.rows * patch.columns > 1:
        point_bar, size_bar, light_bar = look_adjoint(patch, hit, u_bar, v_bar, shade_bar)
        shown.point_bar = point_bar
        shown.size_bar = size_bar
        if patch.diffuse > ZERO:
            for i in range(3):
                wp.atomic_add(g.patches, at.row, p, 15 + i, weight * light_bar[i])
    return shown


@wp.func
def add_point(patch: Patch, row: int, p: int, x: scalar, y: scalar, weight: scalar, shown: Shown, g: Gradients):
    """Add what moves the point that is hit makes of a colour."""
    hit = shown.hit
    o_bar, d_bar, size_bar = hit_adjoint(
        patch.kind, hit.point, hit.n, hit.t, hit.d, patch.size, hit.slant, shown.point_bar
    )
    size_bar = weight * (size_bar + shown.size_bar + stretch_adjoint(patch, hit.point, shown.point_bar))
    add_bars(patch.pinhole, row, p, x, y, weight * o_bar, weight * d_bar, size_bar, g)


@wp.func
def add_motion(
    patch: Patch, row: int, p: int, x: scalar, y: scalar, hit: Hit, slope_x: scalar, slope_y: scalar, g: Gradients
):
    """Add what a colour makes that has these slopes at (x, y) and moves with the patch."""
    o_bar, d_bar, size_bar = motion_adjoint(patch, hit, slope_x, slope_y)
    add_bars(patch.pinhole, row, p, x, y, o_bar, d_bar, size_bar, g)


@wp.func
def add_size(patch: Patch, row: int, p: int, weight: scalar, shown: Shown, g: Gradients):
    """Add what the size makes of a colour without moving it on the screen."""
    n = shown.hit.n
    beyond = wp.dot(shown.point_bar, n) / wp.max(wp.dot(n, n), TINY)
    size_bar = shown.size_bar - beyond * depth_by_size(patch.kind, shown.hit.point, n, patch.size)
    if patch.kind >= SPHERE:
        for i in range(3):
            wp.atomic_add(g.patches, row, p, 12 + i, weight * size_bar[i])


@wp.func
def border_adjoint(
    s: Contents,
    at: Pixel,
    p: int,
    x: scalar,
    y: scalar,
    across_x: scalar,
    across_y: scalar,
    color: scalar,
    bent: bool,
    g: Gradients,
):
    """Add what flows over a border, given its middle, its n ds and the level; its mean colour.

    Where colour and velocity change along it, at the two places by which Gauss integrates the product of two lines.
    """
    patch = s.patches[at.b, p]
    if not bent:
        hit = border_look(patch, x, y, across_x, across_y, s.taps)
        there = weighed_color(s.texels, g, at, patch, hit)
        jump = there - color
        add_motion(patch, at.row, p, x, y, hit, jump * across_x, jump * across_y, g)
        return there
    mean = scalar(0.0)
    for half in range(2):
        away = GAUSS * scalar(2 * half - 1)
        px = x + away * across_y
        py = y - away * across_x
        nx = HALF * across_x
        ny = HALF * across_y
        hit = border_look(patch, px, py, nx, ny, s.taps)
        there = weighed_color(s.texels, g, at, patch, hit)
        jump = there - color
        add_motion(patch, at.row, p, px, py, hit, jump * nx, jump * ny, g)
        mean += HALF * there
    return mean


@wp.func
def whole_adjoint(s: Contents, at: Pixel, p: int, g: Gradients):
    """Add what a patch makes that fills the pixel."""
    patch = s.patches[at.b, p]
    if patch.diffuse == ZERO and patch.rows * patch.columns == 1 and g.texels.shape[0] == 0:
        return
    shown = show_adjoint(s, at, p, at.x, at.y, vec3(ONE, ZERO, ONE), ONE, g)
    if not varies(patch):
        return
    if s.soft == 0:
        add_point(patch, at.row, p, at.x, at.y, ONE, shown, g)
        return
    add_size(patch, at.row, p, ONE, shown, g)
    if bends(patch, shown.hit):
        color = level(s, at, patch, shown.hit, shown.color, g)
        for side in range(4):
            across_x = scalar((2 * (side % 2) - 1) * (1 - side / 2))
            across_y = scalar((2 * (side % 2) - 1) * (side / 2))
            bx = at.x + HALF * across_x
            by = at.y + HALF * across_y
            border_adjoint(s, at, p, bx, by, across_x, across_y, color, True, g)
    else:
        slope_x, slope_y = whole_slopes(s, at, patch, shown.hit, g)
        add_motion(patch, at.row, p, at.x, at.y, shown.hit, slope_x, slope_y, g)


@wp.func
def plain_adjoint(s: Contents, at: Pixel, p: int, weight: scalar, g: Gradients):
    """Add what a patch of one colour makes that fills `weight` of the pixel; its colour as in `Shown`."""
    lit = s.patches[at.b, p].diffuse > ZERO
    color = scalar(0.0)
    if lit:
        shown = show_adjoint(s, at, p, at.x, at.y, vec3(), weight, g)
        color = shown.color
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
def part_adjoint(
    s: Contents,
    at: Pixel,
    p: int,
    layer: int,
    moment: vec3,
    spread: vec3,
    borders: wp.array(dtype=scalar),
    owners: wp.array(dtype=int),
    listed: int,
    g: Gradients,
):
    """Add what a layer makes that fills a part of the pixel; fill in the colours of its borders, return its level.

    moment, spread: area and centroid, and extent, of the part. borders, owners, listed: see `borders`.
    """
    shown = show_adjoint(s, at, p, at.x + moment[1], at.y + moment[2], spread, moment[0], g)
    patch = s.patches[at.b, p]
    color = shown.color
    changes = moment[0] > ZERO and varies(patch)
    bent = bool(False)
    if changes:
        bent = bends(patch, shown.hit)
        add_size(patch, at.row, p, moment[0], shown, g)
        color = level(s, at, patch, shown.hit, shown.color, g)
    for k in range(listed):
        if owners[2 * k] == layer:
            borders[5 * k + 4] = color
            if changes:
                bx = at.x + borders[5 * k]
                by = at.y + borders[5 * k + 1]
                across_x = borders[5 * k + 2]
                across_y = borders[5 * k + 3]
                borders[5 * k + 4] = border_adjoint(s, at, p, bx, by, across_x, across_y, color, bent, g)
    return color


@wp.func
def add_depth_adjoint(s: Contents, at: Pixel, p: int, x: scalar, y: scalar, t_bar: scalar, g: Gradients):
    patch = s.patches[at.b, p]
    o, d = ray(patch, x, y)
    size = patch.size
    kind = patch.kind
    t = depth(kind, o, d, size, patch.near)
    point = o + t * d
    n = depth_normal(kind, point, size)
    o_bar, d_bar, size_bar = depth_adjoint(kind, point, n, t, d, size, t_bar)
    add_bars(patch.pinhole, at.row, p, x, y, o_bar, d_bar, size_bar, g)
    t_x, t_y, _px, _py = point_slopes(patch, n, t, d, slant(n, d))
    return t_x, t_y


@wp.func
def add_edge_adjoint(
    s: Contents, at: Pixel, p: int, edge: int, detail: int, x: scalar, y: scalar, strength: scalar, g: Gradients
):
    """Move the line f = 0 at (x, y): strength · ∂f/∂θ / |∇f|, with strength = length · (colour inside − outside)."""
    if edge == DEPTH_EDGE:
        # f is the depth of the other patch minus the depth of this one.
        i_x, i_y = add_depth_adjoint(s, at, p, x, y, ZERO, g)
        j_x, j_y = add_depth_adjoint(s, at, detail, x, y, ZERO, g)
        slope = wp.sqrt((j_x - i_x) * (j_x - i_x) + (j_y - i_y) * (j_y - i_y))
        share = strength / wp.max(slope, TINY)
        add_depth_adjoint(s, at, p, x, y, -share, g)
        add_depth_adjoint(s, at, detail, x, y, share, g)
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
        # side_value is positive or negative inside, depending on which side of the polygon is seen.
        sign = wp.sign(d[2])
    else:
        by_o, by_d, by_size = edge_slopes(edge, detail, o, d, size)
    gx, gy = screen_slope(patch, by_o, by_d)
    share = sign * strength / wp.max(wp.sqrt(gx * gx + gy * gy), TINY)
    add_bars(patch.pinhole, at.row, p, x, y, share * by_o, share * by_d, share * by_size, g)
