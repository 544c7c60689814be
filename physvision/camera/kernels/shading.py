"""Color of a patch where a ray hits it: its texture and Lambert's light.

A texture that is finer than the pixels is averaged over several taps, spread over the pixel's image on the texture.
"""

import warp as wp

from .precision import scalar
from .scene import CYLINDER, HALF, ONE, PI, SPHERE, TINY, TWO, ZERO, Gradients, Patch, Pixel, ray, vec3, vec4
from .surfaces import axis_point, mean_slant, normal, point_slopes, side_depth, slant
from .texture import add_texel_cotangents, footprint, texel, weighted_texel

# Cosine above which a surface shows its back.
BACKFACE_COSINE = wp.constant(scalar(0.01))


# A curved patch's normal is as long as its radius. Below this fraction of its square, rounding has lost the hit point,
# and the patch is taken to face the eye.
MIN_NORMAL_RATIO = wp.constant(scalar(0.25))


@wp.struct
class Hit:
    """Hit of a ray on a patch, with texture coordinates and shade.

    u, v: texture coordinates in texels. taps_x, taps_y: along the two sides of the part of the pixel. step: change of u
    along the first side and along the second, then of v, in texels. shade: factor of the light on the color.
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
def texture_coordinates(patch: Patch, point: vec3):
    """Return texture coordinates in [0, 1] and their slopes along the surface."""
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
            inverse = ONE / wp.max(texture_length(kind, size), TINY)
            v = HALF - point[2] * inverse
            by_v = vec3(ZERO, ZERO, -inverse)
    return u, v, by_u, by_v


@wp.func
def texture_length(kind: int, size: vec3):
    """Return the length along the axis that v spans."""
    return wp.where(kind != CYLINDER, size[2] + TWO * size[0], size[2])


@wp.func
def texture_coordinates_by_size(kind: int, v: scalar, point: vec3, size: vec3):
    """Return the adjoint of a curved patch's size from that of v, at a fixed point."""
    result = vec3()
    if kind > SPHERE:
        height = wp.max(texture_length(kind, size), TINY)
        by_height = v * point[2] / (height * height)
        by_radius = wp.where(kind != CYLINDER, TWO * by_height, ZERO)
        result = vec3(by_radius, ZERO, by_height)
    return result


@wp.func
def lambert(patch: Patch, n: vec3, d: vec3):
    """Return the factor on the color, and the visible side of the surface (1: the one its normal points to)."""
    facing = ONE
    # On a limb n · d is zero up to rounding, and the outside is visible.
    if wp.dot(n, d) > BACKFACE_COSINE * wp.length(n) * wp.length(d):
        facing = -ONE
    shade = patch.ambient
    if patch.diffuse > ZERO:
        cosine = facing * wp.dot(n, patch.light) / wp.max(wp.length(n), TINY)
        shade = patch.ambient + patch.diffuse * wp.max(cosine, ZERO)
    return shade, facing


@wp.func
def sample_patch(patch: Patch, x: scalar, y: scalar, spread: vec3, max_taps: int):
    """Sample a patch over a part of a pixel about (x, y); for max_taps = 0, along one ray.

    The part is a parallelogram with the sides (spread[0], spread[1]) and (0, spread[2]).
    """
    hit = Hit()
    o, d = ray(patch, x, y)
    hit.o = o
    hit.d = d
    hit.taps_x = 1
    hit.taps_y = 1
    hit.shade = patch.ambient
    is_flat_color = patch.rows * patch.columns == 1
    if is_flat_color and patch.diffuse == ZERO:
        return hit
    hit.t = side_depth(patch.kind, o, d, patch.size, patch.near)
    hit.point = o + hit.t * d
    hit.n = normal(patch.kind, hit.point, patch.size)
    if patch.kind >= SPHERE and wp.dot(hit.n, hit.n) < MIN_NORMAL_RATIO * patch.size[0] * patch.size[0]:
        hit.n = -(patch.size[0] / wp.length(d)) * d
    if max_taps > 0:
        hit.slant = mean_slant(patch, hit.point, hit.n, o, d, spread)
    else:
        hit.slant = slant(hit.n, d)
    return set_texture_coordinates(patch, hit, spread, max_taps)


@wp.func
def set_texture_coordinates(patch: Patch, hit: Hit, spread: vec3, max_taps: int):
    """Set the light and the texture's coordinates at the point that is hit."""
    result = hit
    shade, facing = lambert(patch, hit.n, hit.d)
    result.shade = shade
    result.facing = facing
    if patch.rows * patch.columns == 1:
        return result
    u, v, by_u, by_v = texture_coordinates(patch, hit.point)
    width = scalar(patch.columns)
    height = scalar(patch.rows)
    result.u = u * width
    result.v = v * height
    if max_taps > 0:
        _tx, _ty, along_x, along_y = point_slopes(patch, hit.n, hit.t, hit.d, hit.slant)
        across = along_x * spread[0] + along_y * spread[1]
        down = along_y * spread[2]
        result.step = vec4(
            wp.dot(by_u, across) * width,
            wp.dot(by_u, down) * width,
            wp.dot(by_v, across) * height,
            wp.dot(by_v, down) * height,
        )
        result.taps_x = num_taps(result.step[0], result.step[2], max_taps)
        result.taps_y = num_taps(result.step[1], result.step[3], max_taps)
    return result


@wp.func
def sample_along_ray(patch: Patch, hit: Hit, change: scalar):
    """Sample the same part of a pixel at a point farther along the ray."""
    moved = hit
    moved.point = hit.point + change * hit.d
    moved.n = normal(patch.kind, moved.point, patch.size)
    shade, _facing = lambert(patch, moved.n, hit.d)
    moved.shade = shade
    if patch.rows * patch.columns > 1:
        u, v, _by_u, _by_v = texture_coordinates(patch, moved.point)
        u = u * scalar(patch.columns)
        # Around a curved patch the coordinate jumps back after a full turn.
        turns = wp.round((u - hit.u) / scalar(patch.columns))
        moved.u = u - turns * scalar(patch.columns)
        moved.v = v * scalar(patch.rows)
    return moved


@wp.func
def sample_side(hit: Hit, side: int, sign: scalar):
    """Sample one side of the pixel (left, right, upper, lower), from the sample at its center."""
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
def num_taps(along_u: scalar, along_v: scalar, max_taps: int):
    """Return the number of taps: as many as texels, up to the limit."""
    texels = wp.max(wp.abs(along_u), wp.abs(along_v))
    return wp.clamp(int(wp.ceil(wp.min(texels, scalar(max_taps)))), 1, max_taps)


@wp.func
def tap_half_widths(hit: Hit):
    """Return half-widths, in texels, of the box with the variances along u and v of one tap's area."""
    x = HALF / scalar(hit.taps_x)
    y = HALF / scalar(hit.taps_y)
    u = vec3(hit.step[0] * x, hit.step[1] * y, ZERO)
    v = vec3(hit.step[2] * x, hit.step[3] * y, ZERO)
    return wp.length(u), wp.length(v)


@wp.func
def tap_position(hit: Hit, tap: int):
    """Return the texture coordinates of a tap, in texels."""
    x = (scalar(tap % hit.taps_x) + HALF) / scalar(hit.taps_x) - HALF
    y = (scalar(tap / hit.taps_x) + HALF) / scalar(hit.taps_y) - HALF
    return hit.u + hit.step[0] * x + hit.step[1] * y, hit.v + hit.step[2] * x + hit.step[3] * y


@wp.func
def add_color(
    texels: wp.array3d(dtype=scalar), image: wp.array4d(dtype=scalar), at: Pixel, patch: Patch, hit: Hit, weight: scalar
):
    """Add `weight` of the patch's color to the pixel."""
    taps = hit.taps_x * hit.taps_y
    factor = weight * hit.shade / scalar(taps)
    if patch.rows * patch.columns == 1:
        for channel in range(image.shape[1]):
            image[at.b, channel, at.line, at.column] += factor * texels[at.b, channel, patch.texel]
        return
    reach_u, reach_v = tap_half_widths(hit)
    for tap in range(taps):
        u, v = tap_position(hit, tap)
        c = footprint(patch, u, v, reach_u, reach_v)
        for channel in range(image.shape[1]):
            image[at.b, channel, at.line, at.column] += factor * texel(texels, at.b, channel, c)


@wp.func
def weighted_color(texels: wp.array3d(dtype=scalar), g: Gradients, at: Pixel, patch: Patch, hit: Hit):
    """Return the sum over channels of the pixel's adjoint times the color."""
    total = scalar(ZERO)
    if patch.rows * patch.columns == 1:
        for channel in range(g.image.shape[1]):
            total += g.image[at.b, channel, at.line, at.column] * texels[at.b, channel, patch.texel]
        return total * hit.shade
    taps = hit.taps_x * hit.taps_y
    reach_u, reach_v = tap_half_widths(hit)
    for tap in range(taps):
        u, v = tap_position(hit, tap)
        c = footprint(patch, u, v, reach_u, reach_v)
        for channel in range(g.image.shape[1]):
            total += g.image[at.b, channel, at.line, at.column] * texel(texels, at.b, channel, c)
    return total * hit.shade / scalar(taps)


@wp.func
def texture_adjoint(texels: wp.array3d(dtype=scalar), g: Gradients, at: Pixel, patch: Patch, hit: Hit, weight: scalar):
    """Add `weight` of the pixel to the adjoints of the texels; return those of u, v and the shade."""
    u_bar = scalar(ZERO)
    v_bar = scalar(ZERO)
    shade_bar = scalar(ZERO)
    taps = hit.taps_x * hit.taps_y
    factor = ONE / scalar(taps)
    reach_u, reach_v = tap_half_widths(hit)
    # Beyond the limit of taps a texture is blurred: its slope falls as the inverse of a tap's width.
    slope_u = factor * hit.shade * wp.min(ONE, HALF / wp.max(reach_u, TINY))
    slope_v = factor * hit.shade * wp.min(ONE, HALF / wp.max(reach_v, TINY))
    for tap in range(taps):
        u, v = tap_position(hit, tap)
        c = footprint(patch, u, v, reach_u, reach_v)
        value, by_u, by_v = weighted_texel(texels, g, at, c)
        u_bar += slope_u * by_u
        v_bar += slope_v * by_v
        shade_bar += factor * value
        if g.texels.shape[0] > 0:
            for channel in range(g.image.shape[1]):
                bar = g.image[at.b, channel, at.line, at.column] * weight * factor * hit.shade
                add_texel_cotangents(g, at.b, channel, c, bar)
    return u_bar, v_bar, shade_bar


@wp.func
def shading_adjoint(patch: Patch, hit: Hit, u_bar: scalar, v_bar: scalar, shade_bar: scalar):
    """Return adjoints of the hit point, the size at that point, and the light, from those of u, v and the shade.

    The shade is a + d n̂ · l with n̂ = n / |n|; a curved surface's n is P minus its center of curvature.
    """
    kind = patch.kind
    size = patch.size
    point_bar = vec3()
    size_bar = vec3()
    light_bar = vec3()
    if patch.rows * patch.columns > 1:
        _u, _v, by_u, by_v = texture_coordinates(patch, hit.point)
        u = u_bar * scalar(patch.columns)
        v = v_bar * scalar(patch.rows)
        point_bar = u * by_u + v * by_v
        size_bar = texture_coordinates_by_size(kind, v, hit.point, size)
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
