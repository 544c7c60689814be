"""The colour of a patch where a ray meets it: its texture and Lambert's light.

A texture that is finer than the pixels is averaged over several taps, spread over the pixel's image on the texture.
"""

import warp as wp

from .precision import scalar
from .scene import CYLINDER, HALF, ONE, PI, SPHERE, TINY, TWO, ZERO, Gradients, Patch, Pixel, ray, vec3, vec4
from .surfaces import axis_point, mean_slant, normal, point_slopes, side_depth, slant
from .texture import add_texel_bars, footprint, texel, weighed_texel

# The cosine from which on a surface is seen from behind.
FROM_BEHIND = wp.constant(scalar(0.01))


# A curved patch's normal is as long as its radius. Where its square is less than this part of that, rounding has lost
# the place that is hit, and the patch faces the eye.
LOST = wp.constant(scalar(0.25))


@wp.struct
class Hit:
    """Where and how a patch is seen.

    u, v: texture coordinates in texels. taps_x, taps_y: along the two sides of the part of the pixel. step: of u along
    the first, u along the second, v along the first, v along the second, in texels. shade: what the light makes of
    the colour.
    """

    o: vec3
    d: vec3
    t: scalar
    point: vec3
    n: vec3
    slant: scalar
    u: scalar
    v: scalar
    step: vec4
    taps_x: int
    taps_y: int
    shade: scalar
    facing: scalar


@wp.func
def unwrapped(patch: Patch, point: vec3):
    """Texture coordinates in [0, 1] and their slopes along the surface."""
    kind = patch.kind
    size = patch.size
    u = ZERO
    v = ZERO
    by_u = vec3()
    by_v = vec3()
    if kind < SPHERE:
        by_u = vec3(patch.mapping[1] / size[0], ZERO, ZERO)
        by_v = vec3(ZERO, patch.mapping[3] / size[1], ZERO)
        u = patch.mapping[0] + by_u[0] * point[0]
        v = patch.mapping[2] + by_v[1] * point[1]
    else:
        square = wp.max(point[0] * point[0] + point[1] * point[1], TINY)
        u = HALF + wp.atan2(point[1], point[0]) / (TWO * PI)
        by_u = vec3(-point[1], point[0], ZERO) / (TWO * PI * square)
        if kind == SPHERE:
            radius = wp.sqrt(square)
            v = wp.atan2(radius, point[2]) / PI
            whole = PI * wp.max(square + point[2] * point[2], HALF * size[0] * size[0])
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
def unwrapped_by_size(kind: int, v: scalar, point: vec3, size: vec3):
    """Adjoint of the size of what is curved, given that of the texture coordinate v, at a fixed point."""
    result = vec3()
    if kind > SPHERE:
        height = wp.max(tall(kind, size), TINY)
        by_height = v * point[2] / (height * height)
        by_radius = ZERO
        if kind != CYLINDER:
            by_radius = TWO * by_height
        result = vec3(by_radius, ZERO, by_height)
    return result


@wp.func
def lambert(patch: Patch, n: vec3, d: vec3):
    """The factor on the colour, and the side of the surface that is seen (1: the one its normal points to)."""
    facing = ONE
    # On a limb n · d is zero up to rounding, and it is the outside that is seen.
    if wp.dot(n, d) > FROM_BEHIND * wp.length(n) * wp.length(d):
        facing = -ONE
    shade = patch.ambient
    if patch.diffuse > ZERO:
        cosine = facing * wp.dot(n, patch.light) / wp.max(wp.length(n), TINY)
        shade = patch.ambient + patch.diffuse * wp.max(cosine, ZERO)
    return shade, facing


@wp.func
def look(patch: Patch, x: scalar, y: scalar, spread: vec3, most_taps: int):
    """How a part of a pixel about (x, y) sees a patch; for most_taps = 0, how one ray does.

    The part is a parallelogram with the sides (spread[0], spread[1]) and (0, spread[2]).
    """
    hit = Hit()
    o, d = ray(patch, x, y)
    hit.o = o
    hit.d = d
    hit.taps_x = 1
    hit.taps_y = 1
    hit.shade = patch.ambient
    plain = patch.rows * patch.columns == 1
    if plain and patch.diffuse == ZERO:
        return hit
    hit.t = side_depth(patch.kind, o, d, patch.size, patch.near)
    hit.point = o + hit.t * d
    hit.n = normal(patch.kind, hit.point, patch.size)
    if patch.kind >= SPHERE and wp.dot(hit.n, hit.n) < LOST * patch.size[0] * patch.size[0]:
        hit.n = -(patch.size[0] / wp.length(d)) * d
    if most_taps > 0:
        hit.slant = mean_slant(patch, hit.point, hit.n, o, d, spread)
    else:
        hit.slant = slant(hit.n, d)
    return unwrap(patch, hit, spread, most_taps)


@wp.func
def unwrap(patch: Patch, hit: Hit, spread: vec3, most_taps: int):
    """Fill in the light and the texture's coordinates at the point that is hit."""
    result = hit
    shade, facing = lambert(patch, hit.n, hit.d)
    result.shade = shade
    result.facing = facing
    if patch.rows * patch.columns == 1:
        return result
    u, v, by_u, by_v = unwrapped(patch, hit.point)
    width = scalar(patch.columns)
    height = scalar(patch.rows)
    result.u = u * width
    result.v = v * height
    if most_taps > 0:
        _tx, _ty, along_x, along_y = point_slopes(patch, hit.n, hit.t, hit.d, hit.slant)
        across = along_x * spread[0] + along_y * spread[1]
        down = along_y * spread[2]
        result.step = vec4(
            wp.dot(by_u, across) * width,
            wp.dot(by_u, down) * width,
            wp.dot(by_v, across) * height,
            wp.dot(by_v, down) * height,
        )
        result.taps_x = taps_of(result.step[0], result.step[2], most_taps)
        result.taps_y = taps_of(result.step[1], result.step[3], most_taps)
    return result


@wp.func
def moved_look(patch: Patch, hit: Hit, change: scalar):
    """The same part of a pixel, looked up as far along the ray."""
    moved = hit
    moved.point = hit.point + change * hit.d
    moved.n = normal(patch.kind, moved.point, patch.size)
    shade, _facing = lambert(patch, moved.n, hit.d)
    moved.shade = shade
    if patch.rows * patch.columns > 1:
        u, v, _by_u, _by_v = unwrapped(patch, moved.point)
        u = u * scalar(patch.columns)
        # Around a curved patch the coordinate jumps back where it has gone all the way.
        turns = wp.round((u - hit.u) / scalar(patch.columns))
        moved.u = u - turns * scalar(patch.columns)
        moved.v = v * scalar(patch.rows)
    return moved


@wp.func
def side_look(hit: Hit, side: int, sign: scalar):
    """How one side of the pixel (left, right, upper, lower) sees what is seen so in the middle."""
    border = hit
    step = hit.step
    if side < 2:
        border.u = hit.u + HALF * sign * step[0]
        border.v = hit.v + HALF * sign * step[2]
        border.step = vec4(ZERO, step[1], ZERO, step[3])
        border.taps_x = 1
    else:
        border.u = hit.u + HALF * sign * step[1]
        border.v = hit.v + HALF * sign * step[3]
        border.step = vec4(step[0], ZERO, step[2], ZERO)
        border.taps_y = 1
    return border


@wp.func
def taps_of(along_u: scalar, along_v: scalar, most: int):
    """As many taps as texels."""
    texels = wp.max(wp.abs(along_u), wp.abs(along_v))
    return wp.clamp(int(wp.ceil(wp.min(texels, scalar(most)))), 1, most)


@wp.func
def reaches(hit: Hit):
    """Half-widths, in texels, of the box that has the variances along u and v of what one tap covers."""
    x = HALF / scalar(hit.taps_x)
    y = HALF / scalar(hit.taps_y)
    u = vec3(hit.step[0] * x, hit.step[1] * y, ZERO)
    v = vec3(hit.step[2] * x, hit.step[3] * y, ZERO)
    return wp.length(u), wp.length(v)


@wp.func
def tap_position(hit: Hit, tap: int):
    """Texture coordinates of a tap, in texels."""
    x = (scalar(tap % hit.taps_x) + HALF) / scalar(hit.taps_x) - HALF
    y = (scalar(tap / hit.taps_x) + HALF) / scalar(hit.taps_y) - HALF
    return hit.u + hit.step[0] * x + hit.step[1] * y, hit.v + hit.step[2] * x + hit.step[3] * y


@wp.func
def add_color(
    texels: wp.array3d(dtype=scalar), image: wp.array4d(dtype=scalar), at: Pixel, patch: Patch, hit: Hit, weight: scalar
):
    """Add `weight` of the patch's colour to the pixel."""
    taps = hit.taps_x * hit.taps_y
    share = weight * hit.shade / scalar(taps)
    if patch.rows * patch.columns == 1:
        for channel in range(image.shape[1]):
            image[at.b, channel, at.line, at.column] += share * texels[at.b, channel, patch.texel]
        return
    reach_u, reach_v = reaches(hit)
    for tap in range(taps):
        u, v = tap_position(hit, tap)
        c = footprint(patch, u, v, reach_u, reach_v)
        for channel in range(image.shape[1]):
            image[at.b, channel, at.line, at.column] += share * texel(texels, at.b, channel, c)


@wp.func
def weighed_color(texels: wp.array3d(dtype=scalar), g: Gradients, at: Pixel, patch: Patch, hit: Hit):
    """Σ over channels of the pixel's adjoint times the colour."""
    total = scalar(ZERO)
    if patch.rows * patch.columns == 1:
        for channel in range(g.image.shape[1]):
            total += g.image[at.b, channel, at.line, at.column] * texels[at.b, channel, patch.texel]
        return total * hit.shade
    taps = hit.taps_x * hit.taps_y
    reach_u, reach_v = reaches(hit)
    for tap in range(taps):
        u, v = tap_position(hit, tap)
        c = footprint(patch, u, v, reach_u, reach_v)
        for channel in range(g.image.shape[1]):
            total += g.image[at.b, channel, at.line, at.column] * texel(texels, at.b, channel, c)
    return total * hit.shade / scalar(taps)


@wp.func
def texture_adjoint(texels: wp.array3d(dtype=scalar), g: Gradients, at: Pixel, patch: Patch, hit: Hit, weight: scalar):
    """Add to the adjoints of the texels what `weight` of the pixel makes; of all of it those of u, v and the shade."""
    u_bar = scalar(ZERO)
    v_bar = scalar(ZERO)
    shade_bar = scalar(ZERO)
    taps = hit.taps_x * hit.taps_y
    share = ONE / scalar(taps)
    reach_u, reach_v = reaches(hit)
    # Beyond the most taps a texture is a blur: its slope falls as the inverse of what a tap should cover.
    slope_u = share * hit.shade * wp.min(ONE, HALF / wp.max(reach_u, TINY))
    slope_v = share * hit.shade * wp.min(ONE, HALF / wp.max(reach_v, TINY))
    for tap in range(taps):
        u, v = tap_position(hit, tap)
        c = footprint(patch, u, v, reach_u, reach_v)
        value, by_u, by_v = weighed_texel(texels, g, at, c)
        u_bar += slope_u * by_u
        v_bar += slope_v * by_v
        shade_bar += share * value
        if g.texels.shape[0] > 0:
            for channel in range(g.image.shape[1]):
                bar = g.image[at.b, channel, at.line, at.column] * weight * share * hit.shade
                add_texel_bars(g, at.b, channel, c, bar)
    return u_bar, v_bar, shade_bar


@wp.func
def look_adjoint(patch: Patch, hit: Hit, u_bar: scalar, v_bar: scalar, shade_bar: scalar):
    """Adjoints of the point that is hit, the size at that point, and the light, given those of u, v and the shade.

    The shade is a + d n̂ · l with n̂ = n / |n|; a curved surface's n is P minus its centre of curvature.
    """
    kind = patch.kind
    size = patch.size
    point_bar = vec3()
    size_bar = vec3()
    light_bar = vec3()
    if patch.rows * patch.columns > 1:
        _u, _v, by_u, by_v = unwrapped(patch, hit.point)
        u = u_bar * scalar(patch.columns)
        v = v_bar * scalar(patch.rows)
        point_bar = u * by_u + v * by_v
        size_bar = unwrapped_by_size(kind, v, hit.point, size)
    if patch.diffuse > ZERO and hit.shade > patch.ambient:
        light = patch.light
        length = wp.max(wp.length(hit.n), TINY)
        unit = hit.n / length
        pull = shade_bar * patch.diffuse * hit.facing
        light_bar = pull * unit
        if kind >= SPHERE:
            n_bar = pull * (light - wp.dot(light, unit) * unit) / length
            center = axis_point(kind, hit.point, size)
            if kind == CYLINDER or (kind != SPHERE and center[2] == hit.point[2]):
                n_bar = vec3(n_bar[0], n_bar[1], ZERO)
            elif kind != SPHERE:
                size_bar = size_bar + vec3(ZERO, ZERO, -HALF * wp.sign(center[2]) * n_bar[2])
            point_bar = point_bar + n_bar
    return point_bar, size_bar, light_bar
