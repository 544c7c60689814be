"""Color of each pixel: visible surfaces of its samples, each lit once by sun and sky, with shadow and texture."""

import warp as wp

from .structs import BLOCK, SAMPLES, SKY, Frame, Light, Material, Plane, Shadow, Surfel, View

TAPS = wp.constant(16)
# Turn from one tap of a filter to the next, by the golden angle.
GOLDEN_COS = wp.constant(-0.73736888)
GOLDEN_SIN = wp.constant(0.67549029)


@wp.func
def ray_direction(view: View, x: float, y: float):
    """Return the direction of a ray with a depth of one, in the world."""
    if view.orthographic != 0:
        return wp.vec3(view.rotation[2, 0], view.rotation[2, 1], view.rotation[2, 2])
    local = wp.vec3((x - view.center_x) / view.focal, (y - view.center_y) / view.focal, 1.0)
    return wp.transpose(view.rotation) * local


@wp.func
def ray_origin(view: View, x: float, y: float):
    """Return the point of depth zero of a ray, in the world."""
    if view.orthographic == 0:
        return view.eye
    local = wp.vec3((x - view.center_x) / view.focal, (y - view.center_y) / view.focal, 0.0)
    return view.eye + wp.transpose(view.rotation) * local


@wp.func
def depth_of(view: View, nearness: float):
    """Return the depth of a nearness, m."""
    if view.orthographic != 0:
        return view.far - nearness
    return 1.0 / wp.max(nearness, 1.0e-9)


@wp.func
def texel_at(texels: wp.array(dtype=wp.vec3), first: int, width: int, height: int, u: float, v: float):
    """Interpolate a repeated image at (u, v) between its texels."""
    x = (u - wp.floor(u)) * float(width) - 0.5
    y = (v - wp.floor(v)) * float(height) - 0.5
    fx = x - wp.floor(x)
    fy = y - wp.floor(y)
    x0 = int(wp.floor(x))
    y0 = int(wp.floor(y))
    x1 = wp.where(x0 >= width - 1, 0, x0 + 1)
    y1 = wp.where(y0 >= height - 1, 0, y0 + 1)
    x0 = wp.where(x0 < 0, width - 1, wp.min(x0, width - 1))
    y0 = wp.where(y0 < 0, height - 1, wp.min(y0, height - 1))
    above = (1.0 - fx) * texels[first + y0 * width + x0] + fx * texels[first + y0 * width + x1]
    below = (1.0 - fx) * texels[first + y1 * width + x0] + fx * texels[first + y1 * width + x1]
    return (1.0 - fy) * above + fy * below


@wp.func
def texture(texels: wp.array(dtype=wp.vec3), m: Material, u: float, v: float, spread: float):
    """Return the color of a material at (u, v), averaged over `spread` of its image."""
    u = u * m.repeat_x
    v = v * m.repeat_y
    size = float(wp.max(m.width, m.height)) * spread * wp.max(wp.abs(m.repeat_x), wp.abs(m.repeat_y))
    if size <= 1.0:
        return wp.cw_mul(texel_at(texels, m.texel, m.width, m.height, u, v), m.color)
    level = wp.min(wp.log2(size), float(m.levels - 1))
    first = m.texel
    width = m.width
    height = m.height
    k = int(level)
    for _i in range(k):
        first += width * height
        width = wp.max(width / 2, 1)
        height = wp.max(height / 2, 1)
    fine = texel_at(texels, first, width, height, u, v)
    if k < m.levels - 1:
        coarse = texel_at(texels, first + width * height, wp.max(width / 2, 1), wp.max(height / 2, 1), u, v)
        fine = fine + (level - float(k)) * (coarse - fine)
    return wp.cw_mul(fine, m.color)


@wp.func
def line_coverage(x: float, spread: float, width: float):
    """Return the part of a footprint about x that lines at whole numbers cover."""
    half = 0.5 * wp.max(spread, 1.0e-6)
    reach = half + 0.5 * width
    distance = wp.abs(x - wp.round(x))
    covered_length = wp.min(reach - distance, wp.min(2.0 * half, width))
    # A footprint wider than the squares is covered evenly.
    covered = wp.clamp(covered_length / (2.0 * half), 0.0, 1.0)
    even = wp.clamp(spread - 0.5, 0.0, 1.0)
    return covered + even * (width - covered)


@wp.func
def squares(x: float, spread: float):
    """Return the mean over a footprint of a wave that is 1 and −1 on alternating squares of side one."""
    half = wp.max(0.5 * spread, 1.0e-4)
    a = 0.5 * (x - half)
    b = 0.5 * (x + half)
    # The integral of the wave is a triangle of period two.
    fa = 2.0 * wp.abs(a - wp.floor(a) - 0.5)
    fb = 2.0 * wp.abs(b - wp.floor(b) - 0.5)
    return wp.clamp((fa - fb) / (2.0 * half), -1.0, 1.0)


@wp.func
def grid_shade(x: float, y: float, spread_x: float, spread_y: float):
    """Return the brightness of a grid of squares of side one, with lines between them."""
    check = squares(x, spread_x) * squares(y, spread_y)
    lines = wp.max(line_coverage(x, spread_x, 0.02), line_coverage(y, spread_y, 0.02))
    return (1.0 + 0.06 * check) * (1.0 - 0.22 * lines)


@wp.func
def penumbra(shadow: Shadow, x: float, y: float, limit: float, slope_x: float, slope_y: float):
    """Return the fraction of sunlight at a point of the sun's picture, beyond a plane of nearness about `limit`.

    The radius of the filter grows with the distance of what is in front, so that shadows are sharp at contacts. A
    random turn of the filter at each point hides that it is made of few samples.
    """
    turn = wp.randf(wp.rand_init(7, int(x * 64.0) ^ (int(y * 64.0) << 12))) * 0.9
    c = wp.cos(turn)
    s = wp.sin(turn)
    blockers = float(0.0)
    excess = float(0.0)
    for k in range(TAPS):
        r = shadow.max_radius * wp.sqrt((float(k) + 0.5) / float(TAPS))
        dx = r * c
        dy = r * s
        next_c = GOLDEN_COS * c - GOLDEN_SIN * s
        s = GOLDEN_SIN * c + GOLDEN_COS * s
        c = next_c
        i = wp.clamp(int(y + dy + 0.5), 0, shadow.size - 1)
        j = wp.clamp(int(x + dx + 0.5), 0, shadow.size - 1)
        n = shadow.nearness[i, j, 0] - limit - slope_x * dx - slope_y * dy
        if n > 0.0:
            blockers += 1.0
            excess += n
    if blockers == 0.0:
        return 1.0
    spread = wp.clamp(shadow.width * shadow.view.focal * excess / blockers, 1.2, shadow.max_radius)
    lit = float(0.0)
    for k in range(TAPS):
        r = spread * wp.sqrt((float(k) + 0.5) / float(TAPS))
        dx = r * c
        dy = r * s
        next_c = GOLDEN_COS * c - GOLDEN_SIN * s
        s = GOLDEN_SIN * c + GOLDEN_COS * s
        c = next_c
        px = wp.clamp(x + dx, 0.0, float(shadow.size - 2))
        py = wp.clamp(y + dy, 0.0, float(shadow.size - 2))
        bound = limit + slope_x * dx + slope_y * dy
        j = int(px)
        i = int(py)
        fx = px - float(j)
        fy = py - float(i)
        a = wp.where(shadow.nearness[i, j, 0] > bound, 0.0, 1.0)
        b = wp.where(shadow.nearness[i, j + 1, 0] > bound, 0.0, 1.0)
        c = wp.where(shadow.nearness[i + 1, j, 0] > bound, 0.0, 1.0)
        d = wp.where(shadow.nearness[i + 1, j + 1, 0] > bound, 0.0, 1.0)
        lit += (1.0 - fy) * ((1.0 - fx) * a + fx * b) + fy * ((1.0 - fx) * c + fx * d)
    return lit / float(TAPS)


@wp.func
def sunlight(shadow: Shadow, point: wp.vec3, normal: wp.vec3):
    """Return the fraction of sunlight that reaches a point."""
    p = shadow.view.rotation * (point + shadow.bias * normal) + shadow.view.translation
    x = shadow.view.focal * p[0] + shadow.view.center_x
    y = shadow.view.focal * p[1] + shadow.view.center_y
    size = float(shadow.size - 1)
    if x < 0.0 or y < 0.0 or x > size or y > size:
        return 1.0
    limit = shadow.view.far - p[2] + shadow.bias
    i = int(y + 0.5) / BLOCK
    j = int(x + 0.5) / BLOCK
    if shadow.highest[i, j] <= limit:
        return 1.0
    # Nearness of the tangent plane, for each texel: what is below it is no obstacle.
    n = shadow.view.rotation * normal
    rise = -1.0 / (shadow.view.focal * wp.max(-n[2], 0.1))
    slope_x = n[0] * rise
    slope_y = n[1] * rise
    slope = shadow.max_radius * wp.sqrt(slope_x * slope_x + slope_y * slope_y)
    if shadow.lowest[i, j] > limit + slope + shadow.bias:
        return 0.0
    return penumbra(shadow, x, y, limit, slope_x, slope_y)


@wp.func
def lit_color(light: Light, shadow: Shadow, at: Surfel):
    """Return the light that a surface sends along a ray back to the camera: Lambert's and a highlight of Blinn's."""
    facing = wp.dot(at.normal, light.sun)
    upward = 0.5 + 0.5 * wp.dot(at.normal, light.up)
    ambient = upward * light.sky_color + (1.0 - upward) * light.ground_color
    total = wp.cw_mul(at.color, ambient)
    if facing > 0.0:
        fraction = sunlight(shadow, at.point, at.normal)
        total += fraction * facing * wp.cw_mul(at.color, light.sun_color)
        if at.gloss * fraction > 0.0:
            half = wp.normalize(light.sun - at.direction)
            shine = wp.pow(wp.max(wp.dot(at.normal, half), 0.0), 48.0)
            total += fraction * at.gloss * shine * light.sun_color
    return total


@wp.func
def sky_color(light: Light, d: wp.vec3):
    """Return the color of the sky in a direction."""
    rise = wp.clamp(wp.dot(d, light.up), 0.0, 1.0)
    fraction = 1.0 - wp.exp(-3.0 * rise)
    return light.horizon + fraction * (light.zenith - light.horizon)


@wp.func
def plane_at(frame: Frame, view: View, light: Light, k: int, x: float, y: float, at: Surfel):
    """Return the point of plane k at a place on the screen."""
    plane = frame.planes[k]
    nearness = plane.nearness[0] * x + plane.nearness[1] * y + plane.nearness[2]
    depth = depth_of(view, nearness)
    direction = ray_direction(view, x, y)
    p = ray_origin(view, x, y) + depth * direction
    at.point = p
    at.direction = wp.normalize(direction)
    at.u = wp.dot(p - plane.origin, plane.axis_x)
    at.v = wp.dot(p - plane.origin, plane.axis_y)
    # The footprint of the pixel: derivatives of the point along x and y on the screen.
    beside = depth_of(view, nearness + plane.nearness[0])
    right = ray_origin(view, x + 1.0, y) + beside * ray_direction(view, x + 1.0, y) - p
    below = depth_of(view, nearness + plane.nearness[1])
    down = ray_origin(view, x, y + 1.0) + below * ray_direction(view, x, y + 1.0) - p
    spread_u = wp.abs(wp.dot(right, plane.axis_x)) + wp.abs(wp.dot(down, plane.axis_x))
    spread_v = wp.abs(wp.dot(right, plane.axis_y)) + wp.abs(wp.dot(down, plane.axis_y))
    at.spread = wp.max(spread_u, spread_v)
    at.normal = plane.normal
    if wp.dot(plane.normal, direction) > 0.0:
        at.normal = -plane.normal
    at.material = plane.material
    at.shade = 1.0
    if plane.grid > 0.0:
        scale = 1.0 / plane.grid
        at.shade = grid_shade(scale * at.u, scale * at.v, scale * spread_u, scale * spread_v)
    if light.backdrop == 0:
        far = wp.max(depth, 0.0) / light.haze
        at.fade = 1.0 - wp.exp(-far * wp.sqrt(far))
    return at


@wp.func
def triangle_at(frame: Frame, view: View, i: int, x: float, y: float, at: Surfel):
    """Return the point of triangle i at a place on the screen."""
    ia = frame.faces[i, 0]
    ib = frame.faces[i, 1]
    ic = frame.faces[i, 2]
    a = frame.world[ia]
    e1 = frame.world[ib] - a
    e2 = frame.world[ic] - a
    flat = wp.cross(e1, e2)
    area2 = wp.max(wp.dot(flat, flat), 1.0e-30)
    direction = ray_direction(view, x, y)
    slope = wp.dot(direction, flat)
    o = ray_origin(view, x, y)
    depth = wp.dot(a - o, flat) / wp.where(wp.abs(slope) > 1.0e-30, slope, 1.0e-30)
    r = o + depth * direction - a
    v = wp.clamp(wp.dot(wp.cross(r, e2), flat) / area2, 0.0, 1.0)
    w = wp.clamp(wp.dot(wp.cross(e1, r), flat) / area2, 0.0, 1.0)
    excess = wp.max(v + w, 1.0)
    v = v / excess
    w = w / excess
    u = 1.0 - v - w
    at.point = a + v * e1 + w * e2
    n = u * frame.normals[ia] + v * frame.normals[ib] + w * frame.normals[ic]
    d = wp.normalize(direction)
    if slope > 0.0:
        n = -n
    n = wp.normalize(n)
    # An interpolated normal may lean away from the camera at an outline.
    lean = wp.dot(n, d)
    if lean > 0.0:
        n = wp.normalize(n - 1.001 * lean * d)
    at.normal = n
    at.direction = d
    at.material = frame.face_materials[i]
    at.shade = 1.0
    if frame.textured != 0:
        ta = frame.uv[ia]
        tb = frame.uv[ib]
        tc = frame.uv[ic]
        at.u = u * ta[0] + v * tb[0] + w * tc[0]
        at.v = u * ta[1] + v * tb[1] + w * tc[1]
        texture_area = wp.abs((tb[0] - ta[0]) * (tc[1] - ta[1]) - (tb[1] - ta[1]) * (tc[0] - ta[0]))
        pixel = wp.where(view.orthographic != 0, 1.0, wp.max(depth, 0.0)) / view.focal
        slant = wp.max(wp.abs(slope) / wp.sqrt(area2 * wp.dot(direction, direction)), 0.1)
        at.spread = pixel * wp.sqrt(texture_area / (wp.sqrt(area2) * slant))
    return at


@wp.func
def in_rectangle(plane: Plane, view: View, nearness: float, x: float, y: float):
    """Return true if a plane has no bounds, or a ray hits it within them."""
    if plane.half_x <= 0.0:
        return True
    p = ray_origin(view, x, y) + depth_of(view, nearness) * ray_direction(view, x, y) - plane.origin
    return wp.abs(wp.dot(p, plane.axis_x)) <= plane.half_x and wp.abs(wp.dot(p, plane.axis_y)) <= plane.half_y


@wp.func
def group_of(frame: Frame, i: int):
    """Return a number that samples fraction if they are lit together."""
    if i < 0:
        return i
    return frame.groups[i]


@wp.func
def to_byte(x: float):
    """Return a linear value as a byte of a picture, by a gamma of two."""
    return wp.uint8(wp.clamp(255.0 * wp.sqrt(wp.max(x, 0.0)) + 0.5, 0.0, 255.0))


@wp.func
def surface_color(frame: Frame, view: View, light: Light, shadow: Shadow, i: int, x: float, y: float):
    """Return the light from a triangle, a plane or the sky.

    Each function that takes the large structs is called in one place, so that the compiler inlines it: a call would
    copy them.
    """
    if i == SKY:
        return sky_color(light, wp.normalize(ray_direction(view, x, y)))
    at = Surfel()
    if i >= 0:
        at = triangle_at(frame, view, i, x, y, at)
    else:
        at = plane_at(frame, view, light, -2 - i, x, y, at)
    m = frame.materials[at.material]
    at.gloss = m.gloss
    at.color = at.shade * m.color
    if m.texel >= 0:
        at.color = at.shade * texture(frame.texels, m, at.u, at.v, at.spread)
    color = lit_color(light, shadow, at)
    if at.fade > 0.0:
        color += at.fade * (sky_color(light, at.direction) - color)
    return color


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 4})
def shade(first: int, frame: Frame, view: View, light: Light, shadow: Shadow, image: wp.array3d(dtype=wp.uint8)):
    """Light the pixels of a row; samples of one surface in a pixel are lit once, at their center."""
    row = first + wp.tid()
    for column in range(frame.width):
        ids = wp.vec4i(SKY, SKY, SKY, SKY)
        groups = wp.vec4i(SKY, SKY, SKY, SKY)
        bests = wp.vec4(0.0, 0.0, 0.0, 0.0)
        for s in range(SAMPLES):
            bests[s] = frame.nearness[row, column, s]
            ids[s] = frame.ids[row, column, s]
        for k in range(frame.plane_count):
            slopes = frame.planes[k].nearness
            middle = slopes[0] * float(column) + slopes[1] * float(row) + slopes[2]
            reach = 0.5 * (wp.abs(slopes[0]) + wp.abs(slopes[1]))
            if middle + reach > wp.min(bests):
                for s in range(SAMPLES):
                    x = float(column) + frame.offsets[s][0]
                    y = float(row) + frame.offsets[s][1]
                    nearness = slopes[0] * x + slopes[1] * y + slopes[2]
                    if nearness > bests[s] and in_rectangle(frame.planes[k], view, nearness, x, y):
                        bests[s] = nearness
                        ids[s] = -2 - k
        for s in range(SAMPLES):
            groups[s] = group_of(frame, ids[s])
        color = wp.vec3(0.0, 0.0, 0.0)
        s = int(0)
        while s < SAMPLES:
            # Samples of the group of sample s, unless an earlier one has lit it.
            mean_x = float(0.0)
            mean_y = float(0.0)
            count = float(0.0)
            earlier = bool(False)
            for t in range(SAMPLES):
                if groups[t] == groups[s]:
                    earlier = earlier or t < s
                    mean_x += frame.offsets[t][0]
                    mean_y += frame.offsets[t][1]
                    count += 1.0
            if not earlier:
                x = float(column) + mean_x / count
                y = float(row) + mean_y / count
                # Brighter than white is white before the mean is taken, or edges of highlights would be jagged.
                here = surface_color(frame, view, light, shadow, ids[s], x, y)
                color += 0.25 * count * wp.min(here, wp.vec3(1.0, 1.0, 1.0))
            s += 1
            if count == float(SAMPLES):
                s = SAMPLES
        for channel in range(3):
            image[row, column, channel] = to_byte(color[channel])
