"""The colour of a patch where a ray meets it: a texture, bilinearly interpolated, and Lambert's light.

A texture that is finer than the pixels is averaged over several taps, spread over the pixel's image on the texture.
"""

import warp as wp

from . import scalar
from .scene import CYLINDER, HALF, ONE, PI, REPEAT, SPHERE, TINY, TWO, ZERO, Scene, extent, ray, vec3
from .surfaces import axis_point, hit_adjoint, normal, point_slopes, side_depth


@wp.struct
class Look:
    """Where and how a patch is seen.

    u, v: texture coordinates in texels. taps: along each of u and v. step: of u along x, u along y, v along x, v along
    y, in texels a pixel. shade: what the light makes of the colour.
    """

    o: vec3
    d: vec3
    t: scalar
    point: vec3
    n: vec3
    u: scalar
    v: scalar
    step: wp.types.vector(length=4, dtype=scalar)
    taps: int
    shade: scalar
    facing: scalar


@wp.struct
class Corner:
    """Four texels and how much of the lower right ones."""

    i00: int
    i01: int
    i10: int
    i11: int
    x: scalar
    y: scalar


@wp.func
def unwrapped(s: Scene, p: int, kind: int, point: vec3, size: vec3):
    """Texture coordinates in [0, 1] and their slopes along the surface."""
    u = ZERO
    v = ZERO
    by_u = vec3()
    by_v = vec3()
    if kind < SPHERE:
        by_u = vec3(s.mapping[p, 1] / size[0], ZERO, ZERO)
        by_v = vec3(ZERO, s.mapping[p, 3] / size[1], ZERO)
        u = s.mapping[p, 0] + by_u[0] * point[0]
        v = s.mapping[p, 2] + by_v[1] * point[1]
    else:
        square = wp.max(point[0] * point[0] + point[1] * point[1], TINY)
        u = HALF + wp.atan2(point[1], point[0]) / (TWO * PI)
        by_u = vec3(-point[1], point[0], ZERO) / (TWO * PI * square)
        if kind == SPHERE:
            radius = wp.sqrt(square)
            v = wp.atan2(radius, point[2]) / PI
            whole = PI * (square + point[2] * point[2])
            by_v = vec3(point[2] * point[0] / radius, point[2] * point[1] / radius, -radius) / whole
        else:
            inverse = ONE / wp.max(tall(kind, size), TINY)
            v = HALF - point[2] * inverse
            by_v = vec3(ZERO, ZERO, -inverse)
    return u, v, by_u, by_v


@wp.func
def tall(kind: int, size: vec3):
    height = size[2]
    if kind != CYLINDER:
        height = size[2] + TWO * size[0]
    return height


@wp.func
def unwrapped_by_size(kind: int, u: scalar, v: scalar, point: vec3, by_u: vec3, by_v: vec3, size: vec3):
    """Adjoint of the size, given those of the texture coordinates (u, v), at a fixed point."""
    result = vec3()
    if kind < SPHERE:
        result = vec3(-u * by_u[0] * point[0] / size[0], -v * by_v[1] * point[1] / size[1], ZERO)
    elif kind != SPHERE:
        height = wp.max(tall(kind, size), TINY)
        by_height = v * point[2] / (height * height)
        by_radius = ZERO
        if kind != CYLINDER:
            by_radius = TWO * by_height
        result = vec3(by_radius, ZERO, by_height)
    return result


@wp.func
def lambert(s: Scene, b: int, p: int, n: vec3, d: vec3):
    """The factor on the colour, and the side of the surface that is seen (1: the one its normal points to)."""
    facing = ONE
    if wp.dot(n, d) > ZERO:
        facing = -ONE
    shade = ONE
    if s.lit != 0:
        light = vec3(s.light[b, p, 0], s.light[b, p, 1], s.light[b, p, 2])
        shade = s.ambient + s.diffuse * wp.max(facing * wp.dot(n, light) / wp.max(wp.length(n), TINY), ZERO)
    return shade, facing


@wp.func
def look(s: Scene, b: int, p: int, x: scalar, y: scalar, most_taps: int):
    """How the ray through (x, y) sees a patch that it hits."""
    hit = Look()
    o, d = ray(s, b, p, x, y)
    hit.o = o
    hit.d = d
    hit.taps = 1
    hit.shade = ONE
    kind = s.kinds[p]
    height = s.textures[p, 1]
    width = s.textures[p, 2]
    plain = height * width == 1
    if plain and s.lit == 0:
        return hit
    size = extent(s, b, p)
    hit.t = side_depth(kind, o, d, size, s.near)
    hit.point = o + hit.t * d
    hit.n = normal(kind, hit.point, size)
    shade, facing = lambert(s, b, p, hit.n, d)
    hit.shade = shade
    hit.facing = facing
    if plain:
        return hit
    u, v, by_u, by_v = unwrapped(s, p, kind, hit.point, size)
    hit.u = u * scalar(width)
    hit.v = v * scalar(height)
    if most_taps > 1:
        _tx, _ty, along_x, along_y = point_slopes(s, b, p, hit.n, hit.t, d)
        hit.step[0] = wp.dot(by_u, along_x) * scalar(width)
        hit.step[1] = wp.dot(by_u, along_y) * scalar(width)
        hit.step[2] = wp.dot(by_v, along_x) * scalar(height)
        hit.step[3] = wp.dot(by_v, along_y) * scalar(height)
        spread = wp.max(wp.abs(hit.step[0]) + wp.abs(hit.step[1]), wp.abs(hit.step[2]) + wp.abs(hit.step[3]))
        hit.taps = wp.clamp(int(wp.ceil(wp.min(spread, scalar(most_taps)) * scalar(1.5))), 1, most_taps)
    return hit


@wp.func
def tap_position(hit: Look, tap: int):
    """Texture coordinates of a tap, in texels."""
    i = tap % hit.taps
    j = tap / hit.taps
    inverse = ONE / scalar(hit.taps)
    x = (scalar(i) + HALF) * inverse - HALF
    y = (scalar(j) + HALF) * inverse - HALF
    return hit.u + hit.step[0] * x + hit.step[1] * y, hit.v + hit.step[2] * x + hit.step[3] * y


@wp.func
def around(i: int, n: int, repeat: bool):
    result = wp.clamp(i, 0, n - 1)
    if repeat:
        result = i % n
        if result < 0:
            result = result + n
    return result


@wp.func
def corner(s: Scene, p: int, u: scalar, v: scalar):
    """The texels about (u, v); the centre of texel i is at i + ½."""
    first = s.textures[p, 0]
    height = s.textures[p, 1]
    width = s.textures[p, 2]
    wrap = s.wraps[p]
    c = Corner()
    # Textures that are far away do not overflow the integers.
    x = wp.clamp(u, scalar(-1.0e9), scalar(1.0e9)) - HALF
    y = wp.clamp(v, scalar(-1.0e9), scalar(1.0e9)) - HALF
    x0 = wp.floor(x)
    y0 = wp.floor(y)
    c.x = x - x0
    c.y = y - y0
    left = around(int(x0), width, wrap != 0)
    right = around(int(x0) + 1, width, wrap != 0)
    top = first + width * around(int(y0), height, wrap == REPEAT)
    bottom = first + width * around(int(y0) + 1, height, wrap == REPEAT)
    c.i00 = top + left
    c.i01 = top + right
    c.i10 = bottom + left
    c.i11 = bottom + right
    return c


@wp.func
def texel(s: Scene, b: int, channel: int, c: Corner):
    top = s.texels[b, channel, c.i00] * (ONE - c.x) + s.texels[b, channel, c.i01] * c.x
    bottom = s.texels[b, channel, c.i10] * (ONE - c.x) + s.texels[b, channel, c.i11] * c.x
    return top * (ONE - c.y) + bottom * c.y


@wp.func
def add_color(
    s: Scene, b: int, p: int, hit: Look, weight: scalar, line: int, column: int, image: wp.array4d(dtype=scalar)
):
    """Add `weight` of the patch's colour to the pixel."""
    if s.textures[p, 1] * s.textures[p, 2] == 1:
        for channel in range(s.channels):
            image[b, channel, line, column] += weight * hit.shade * s.texels[b, channel, s.textures[p, 0]]
        return
    taps = hit.taps * hit.taps
    share = weight * hit.shade / scalar(taps)
    for tap in range(taps):
        u, v = tap_position(hit, tap)
        c = corner(s, p, u, v)
        for channel in range(s.channels):
            image[b, channel, line, column] += share * texel(s, b, channel, c)


@wp.func
def weighed_color(
    s: Scene, b: int, p: int, x: scalar, y: scalar, line: int, column: int, image_bar: wp.array4d(dtype=scalar)
):
    """Σ over channels of the pixel's adjoint times the colour of the patch at (x, y); p < 0: of the background."""
    total = scalar(ZERO)
    if p < 0:
        for channel in range(s.channels):
            total += image_bar[b, channel, line, column] * s.background[b, channel, line, column]
        return total
    hit = look(s, b, p, x, y, 1)
    c = corner(s, p, hit.u, hit.v)
    for channel in range(s.channels):
        total += image_bar[b, channel, line, column] * texel(s, b, channel, c)
    return total * hit.shade


@wp.func
def texture_adjoint(
    s: Scene,
    b: int,
    p: int,
    hit: Look,
    weight: scalar,
    line: int,
    column: int,
    image_bar: wp.array4d(dtype=scalar),
    texels_bar: wp.array3d(dtype=scalar),
):
    """Adjoints of the texels (added), of u and v in texels, and of the shade."""
    u_bar = scalar(ZERO)
    v_bar = scalar(ZERO)
    shade_bar = scalar(ZERO)
    taps = hit.taps * hit.taps
    share = weight / scalar(taps)
    moves = s.textures[p, 1] * s.textures[p, 2] > 1
    for tap in range(taps):
        u, v = tap_position(hit, tap)
        c = corner(s, p, u, v)
        for channel in range(s.channels):
            bar = image_bar[b, channel, line, column] * share
            t00 = s.texels[b, channel, c.i00]
            t01 = s.texels[b, channel, c.i01]
            t10 = s.texels[b, channel, c.i10]
            t11 = s.texels[b, channel, c.i11]
            top = t00 + (t01 - t00) * c.x
            bottom = t10 + (t11 - t10) * c.x
            shade_bar += bar * (top + (bottom - top) * c.y)
            bar = bar * hit.shade
            if moves:
                u_bar += bar * ((t01 - t00) * (ONE - c.y) + (t11 - t10) * c.y)
                v_bar += bar * (bottom - top)
            if texels_bar.shape[0] > 0:
                wp.atomic_add(texels_bar, b, channel, c.i00, bar * (ONE - c.x) * (ONE - c.y))
                wp.atomic_add(texels_bar, b, channel, c.i01, bar * c.x * (ONE - c.y))
                wp.atomic_add(texels_bar, b, channel, c.i10, bar * (ONE - c.x) * c.y)
                wp.atomic_add(texels_bar, b, channel, c.i11, bar * c.x * c.y)
    return u_bar, v_bar, shade_bar


@wp.func
def look_adjoint(s: Scene, b: int, p: int, hit: Look, u_bar: scalar, v_bar: scalar, shade_bar: scalar):
    """Adjoints of origin, direction, size and light, given those of the texture coordinates and of the shade.

    The shade is a + d n̂ · l with n̂ = n / |n|; a curved surface's n is P minus its centre of curvature.
    """
    kind = s.kinds[p]
    size = extent(s, b, p)
    point_bar = vec3()
    size_bar = vec3()
    light_bar = vec3()
    if s.textures[p, 1] * s.textures[p, 2] > 1:
        _u, _v, by_u, by_v = unwrapped(s, p, kind, hit.point, size)
        u = u_bar * scalar(s.textures[p, 2])
        v = v_bar * scalar(s.textures[p, 1])
        point_bar = u * by_u + v * by_v
        size_bar = unwrapped_by_size(kind, u, v, hit.point, by_u, by_v, size)
    if s.lit != 0 and hit.shade > s.ambient:
        light = vec3(s.light[b, p, 0], s.light[b, p, 1], s.light[b, p, 2])
        length = wp.max(wp.length(hit.n), TINY)
        unit = hit.n / length
        pull = shade_bar * s.diffuse * hit.facing
        light_bar = pull * unit
        if kind >= SPHERE:
            n_bar = pull * (light - wp.dot(light, unit) * unit) / length
            center = axis_point(kind, hit.point, size)
            if kind == CYLINDER or (kind != SPHERE and center[2] == hit.point[2]):
                n_bar = vec3(n_bar[0], n_bar[1], ZERO)
            elif kind != SPHERE:
                size_bar = size_bar + vec3(ZERO, ZERO, -HALF * wp.sign(center[2]) * n_bar[2])
            point_bar = point_bar + n_bar
    o_bar, d_bar, hit_size_bar = hit_adjoint(kind, hit.point, hit.n, hit.t, hit.d, size, point_bar)
    return o_bar, d_bar, size_bar + hit_size_bar, light_bar
