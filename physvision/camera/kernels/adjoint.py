"""What one sample of colour and one piece of outline add to the adjoints of rays, sizes and light."""

import warp as wp

from . import scalar
from .edges import DEPTH_EDGE, LINE_EDGE, edge_slopes, side_slopes
from .scene import ONE, TINY, ZERO, Scene, ray, screen_slope, vec3
from .shading import look, look_adjoint, texture_adjoint
from .surfaces import depth, depth_adjoint, depth_normal, point_slopes, slant


@wp.func
def add_bars(
    pinhole: int,
    b: int,
    p: int,
    x: scalar,
    y: scalar,
    o_bar: vec3,
    d_bar: vec3,
    size_bar: vec3,
    bars: wp.array3d(dtype=scalar),
):
    """The rays are linear in x and y, and so are their adjoints."""
    fixed = d_bar
    moving = o_bar
    if pinhole != 0:
        fixed = o_bar
        moving = d_bar
    for i in range(3):
        wp.atomic_add(bars, b, p, i, fixed[i])
        wp.atomic_add(bars, b, p, 3 + i, moving[i] * x)
        wp.atomic_add(bars, b, p, 6 + i, moving[i] * y)
        wp.atomic_add(bars, b, p, 9 + i, moving[i])
        wp.atomic_add(bars, b, p, 12 + i, size_bar[i])


@wp.func
def add_look_adjoint(
    s: Scene,
    b: int,
    line: int,
    column: int,
    p: int,
    x: scalar,
    y: scalar,
    weight: scalar,
    image_bar: wp.array4d(dtype=scalar),
    bars: wp.array3d(dtype=scalar),
    texels_bar: wp.array3d(dtype=scalar),
):
    """Add what `weight` of the pixel, seen at (x, y), makes.

    Returns Σ over channels of the pixel's adjoint times the colour there, and its slopes along x and y.
    """
    color = vec3()
    patch = s.patches[b, p]
    moves = patch.diffuse > ZERO or patch.rows * patch.columns > 1
    if not moves and weight == ONE and texels_bar.shape[0] == 0:
        return color
    hit = look(patch, x, y, weight, s.taps)
    u_bar, v_bar, shade_bar = texture_adjoint(s.texels, image_bar, texels_bar, b, line, column, patch, hit, weight)
    color[0] = hit.shade * shade_bar
    if not moves:
        return color
    o_bar, d_bar, size_bar, light_bar = look_adjoint(patch, hit, u_bar, v_bar, shade_bar)
    add_bars(patch.pinhole, b, p, x, y, weight * o_bar, weight * d_bar, weight * size_bar, bars)
    if patch.diffuse > ZERO:
        for i in range(3):
            wp.atomic_add(bars, b, p, 15 + i, weight * light_bar[i])
    gx, gy = screen_slope(patch, o_bar, d_bar)
    color[1] = gx
    color[2] = gy
    return color


@wp.func
def add_depth_adjoint(s: Scene, b: int, p: int, x: scalar, y: scalar, t_bar: scalar, bars: wp.array3d(dtype=scalar)):
    patch = s.patches[b, p]
    o, d = ray(patch, x, y)
    size = patch.size
    kind = patch.kind
    t = depth(kind, o, d, size, patch.near)
    point = o + t * d
    n = depth_normal(kind, point, size)
    o_bar, d_bar, size_bar = depth_adjoint(kind, point, n, t, d, size, t_bar)
    add_bars(patch.pinhole, b, p, x, y, o_bar, d_bar, size_bar, bars)
    t_x, t_y, _px, _py = point_slopes(patch, n, t, d, slant(n, d))
    return t_x, t_y


@wp.func
def add_edge_adjoint(
    s: Scene,
    b: int,
    p: int,
    edge: int,
    detail: int,
    x: scalar,
    y: scalar,
    strength: scalar,
    bars: wp.array3d(dtype=scalar),
):
    """Move the line f = 0 at (x, y): strength · ∂f/∂θ / |∇f|, with strength = length · (colour inside − outside)."""
    if edge == DEPTH_EDGE:
        # f is the depth of the other patch minus the depth of this one.
        i_x, i_y = add_depth_adjoint(s, b, p, x, y, ZERO, bars)
        j_x, j_y = add_depth_adjoint(s, b, detail, x, y, ZERO, bars)
        slope = wp.sqrt((j_x - i_x) * (j_x - i_x) + (j_y - i_y) * (j_y - i_y))
        share = strength / wp.max(slope, TINY)
        add_depth_adjoint(s, b, p, x, y, -share, bars)
        add_depth_adjoint(s, b, detail, x, y, share, bars)
        return
    patch = s.patches[b, p]
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
    add_bars(patch.pinhole, b, p, x, y, share * by_o, share * by_d, share * by_size, bars)
