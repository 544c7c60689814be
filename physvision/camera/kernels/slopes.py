"""How a layer's colour changes over the part of a pixel in which it is seen, so that neighbouring pixels agree.

The integral of ∂c/∂θ over a part of a pixel is, with v the velocity on the screen of what is seen there, −∫ v · ∇c dA.
Where v hardly changes, Gauss' theorem makes it −v · ∮ c n ds. On the outline of the layer itself this cancels with what
the moving outline carries; on the sides of the pixel it is what passes to the next pixel, which the next pixel has to
count as the same amount: summed over pixels that have similar weights, hardly anything is left of it. So the slope
of the colour is not its derivative at some point, which on a limb is infinite and on a face seen from the side changes
many times within a pixel. It is the slope of the linear function that has on the sides of the pixel the mean of the
true colour: with g the centroid, c₀ the mean and m the middles of all borders,

    Σ n (c₀ + ∇c · (m − g)) ds = Σ n c(m) ds,

two equations for ∇c. Along directions in which they say little, the derivative at the centroid is kept.
"""

import warp as wp

from . import scalar
from .edges import DEPTH_EDGE
from .scene import HALF, NOTHING, ONE, SPHERE, ZERO, Patch, Scene, screen_slope, vec3
from .shading import Look, look, side_look, weighed_color
from .surfaces import depth_by_size, hit_adjoint
from .visible import STEP, at_place, clip

# By this part the slant of a surface changes from pixel to pixel before that counts.
BEND = wp.constant(scalar(0.1))
MOST_BORDERS = wp.constant(80)
# Below this part of the area the borders say little of a slope.
LITTLE = wp.constant(scalar(0.02))


@wp.func
def varies(patch: Patch):
    """Whether the colour is not the same all over the patch."""
    return patch.rows * patch.columns > 1 or (patch.diffuse > ZERO and patch.kind >= SPHERE)


@wp.func
def border_color(
    s: Scene,
    b: int,
    line: int,
    column: int,
    patch: Patch,
    x: scalar,
    y: scalar,
    across_x: scalar,
    across_y: scalar,
    image_bar: wp.array4d(dtype=scalar),
):
    """Σ over channels of the pixel's adjoint times the mean colour of a border, given its middle and n ds."""
    spread = vec3(across_y, -across_x, ZERO)
    return weighed_color(s.texels, image_bar, b, line, column, patch, look(patch, x, y, spread, s.taps))


@wp.func
def bends(patch: Patch, hit: Look):
    """Whether the texture's coordinates are far from linear in the pixel."""
    if patch.kind < SPHERE:
        return patch.pinhole != 0 and wp.abs(patch.by_x[2]) + wp.abs(patch.by_y[2]) > BEND * wp.abs(hit.d[2])
    width = wp.length(patch.by_x)
    if patch.pinhole != 0:
        width = width * hit.t
    toward = wp.dot(hit.n, hit.d)
    return patch.diffuse > ZERO or width * wp.length(hit.n) * wp.dot(hit.d, hit.d) > BEND * toward * toward


@wp.func
def whole_slopes(
    s: Scene,
    b: int,
    line: int,
    column: int,
    patch: Patch,
    hit: Look,
    x: scalar,
    y: scalar,
    image_bar: wp.array4d(dtype=scalar),
):
    """Slopes along x and y of the colour of a patch that fills the pixel about (x, y), where `hit` is its middle."""
    slopes = vec3()
    straight = not bends(patch, hit)
    for side in range(4):
        sign = scalar(2 * (side % 2) - 1)
        if straight:
            border = side_look(hit, side, sign)
            slopes[side / 2] += sign * weighed_color(s.texels, image_bar, b, line, column, patch, border)
        else:
            across_x = ONE - scalar(side / 2)
            across_y = scalar(side / 2)
            bx = x + HALF * sign * across_x
            by = y + HALF * sign * across_y
            color = border_color(s, b, line, column, patch, bx, by, across_x, across_y, image_bar)
            slopes[side / 2] += sign * color
    return slopes[0], slopes[1]


@wp.func
def put_border(
    borders: wp.array(dtype=scalar),
    owners: wp.array(dtype=int),
    n: int,
    x: scalar,
    y: scalar,
    across_x: scalar,
    across_y: scalar,
    layer: int,
    piece: int,
):
    if n >= MOST_BORDERS:
        return n
    borders[5 * n] = x
    borders[5 * n + 1] = y
    borders[5 * n + 2] = across_x
    borders[5 * n + 3] = across_y
    owners[2 * n] = layer
    owners[2 * n + 1] = piece
    return n + 1


@wp.func
def list_sides(
    lines: wp.array(dtype=scalar),
    layers: wp.array(dtype=int),
    count: int,
    spans: wp.array(dtype=scalar),
    borders: wp.array(dtype=scalar),
    owners: wp.array(dtype=int),
    n: int,
):
    """Append what each layer shows on the four sides of the pixel to its borders: middle, n ds; layer, NOTHING."""
    for side in range(4):
        across_x = scalar(2 * (side % 2) - 1)
        across_y = scalar(ZERO)
        if side > 1:
            across_y = across_x
            across_x = ZERO
        px = HALF * across_x
        py = HALF * across_y
        ux = wp.abs(across_y)
        uy = wp.abs(across_x)
        for k in range(count):
            lo, hi = clip(lines, layers[3 * k + 1], layers[3 * k + 2], -1, px, py, ux, uy, ZERO, -HALF, HALF)
            spans[2 * k] = lo
            spans[2 * k + 1] = hi
        t = scalar(-0.5)
        while t < HALF:
            layer, following = at_place(spans, count, -1, t)
            end = wp.max(wp.min(following, HALF), t + STEP)
            if layer < count:
                at = HALF * (t + end)
                length = end - t
                x = px + at * ux
                y = py + at * uy
                n = put_border(borders, owners, n, x, y, across_x * length, across_y * length, layer, NOTHING)
            t = end
    return n


@wp.func
def list_pieces(
    lines: wp.array(dtype=scalar),
    codes: wp.array(dtype=int),
    count: int,
    pieces: wp.array(dtype=scalar),
    sides: wp.array(dtype=int),
    used: int,
    borders: wp.array(dtype=scalar),
    owners: wp.array(dtype=int),
    n: int,
):
    """Append to the borders of each layer the outlines of others before it: middle, n ds; layer, number of the piece.

    Where two layers pass through each other, that is no outline of the inner one either.
    """
    for k in range(used):
        line = sides[3 * k]
        across_x = lines[3 * line] * pieces[3 * k + 2]
        across_y = lines[3 * line + 1] * pieces[3 * k + 2]
        x = pieces[3 * k]
        y = pieces[3 * k + 1]
        if sides[3 * k + 2] < count:
            n = put_border(borders, owners, n, x, y, across_x, across_y, sides[3 * k + 2], k)
        if codes[2 * line] == DEPTH_EDGE:
            n = put_border(borders, owners, n, x, y, -across_x, -across_y, sides[3 * k + 1], k)
    return n


@wp.func
def fit(borders: wp.array(dtype=scalar), owners: wp.array(dtype=int), n: int, layer: int, moment: vec3, color: vec3):
    """The slopes that a layer's borders tell of, given its area and centroid, its mean colour and the slopes there.

    Of each border: middle, n ds, colour.
    """
    by_xx = scalar(ZERO)
    by_xy = scalar(ZERO)
    by_yx = scalar(ZERO)
    by_yy = scalar(ZERO)
    short_x = scalar(ZERO)
    short_y = scalar(ZERO)
    for k in range(n):
        if owners[2 * k] == layer:
            dx = borders[5 * k] - moment[1]
            dy = borders[5 * k + 1] - moment[2]
            nx = borders[5 * k + 2]
            ny = borders[5 * k + 3]
            short = borders[5 * k + 4] - color[0] - color[1] * dx - color[2] * dy
            by_xx += nx * dx
            by_xy += nx * dy
            by_yx += ny * dx
            by_yy += ny * dy
            short_x += nx * short
            short_y += ny * short
    # Least squares, kept from dividing by what is next to nothing.
    least = LITTLE * LITTLE * moment[0] * moment[0]
    xx = by_xx * by_xx + by_yx * by_yx + least
    yy = by_xy * by_xy + by_yy * by_yy + least
    xy = by_xx * by_xy + by_yx * by_yy
    right_x = by_xx * short_x + by_yx * short_y
    right_y = by_xy * short_x + by_yy * short_y
    inverse = ONE / (xx * yy - xy * xy)
    return color[1] + (yy * right_x - xy * right_y) * inverse, color[2] + (xx * right_y - xy * right_x) * inverse


@wp.func
def point_slope(patch: Patch, hit: Look, point_bar: vec3):
    """Slopes along x and y, at the point that is hit, of what has the gradient `point_bar` on the surface."""
    o_bar, d_bar, _size_bar = hit_adjoint(patch.kind, hit.point, hit.n, hit.t, hit.d, patch.size, hit.slant, point_bar)
    return screen_slope(patch, o_bar, d_bar)


@wp.func
def motion_adjoint(patch: Patch, hit: Look, color: vec3, point_bar: vec3):
    """Adjoints of origin, direction and size, given the slopes along x and y of a colour that moves with the patch.

    What is seen does not change when o moves along d. So ō is the vector normal to d whose change along x and y is
    the colour's, and d̄ = t ō; there is no division by n · d. The size moves the point that is hit by as much as ō,
    beside the gradient on the surface, tells of n · d: see `surfaces.hit_adjoint`.
    """
    across = wp.cross(patch.by_y, hit.d)
    down = wp.cross(hit.d, patch.by_x)
    o_bar = (color[1] * across + color[2] * down) / wp.dot(patch.by_x, across)
    if patch.pinhole != 0:
        o_bar = o_bar / hit.t
    pull = wp.dot(point_bar - o_bar, hit.n) / wp.dot(hit.n, hit.n)
    size = patch.size
    size_bar = -pull * depth_by_size(patch.kind, hit.point, hit.n, size)
    if patch.kind < SPHERE:
        # A texture is as wide and as high as what it is on.
        size_bar = vec3(-o_bar[0] * hit.point[0] / size[0], -o_bar[1] * hit.point[1] / size[1], ZERO)
    return o_bar, hit.t * o_bar, size_bar
