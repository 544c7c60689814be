"""How dye is carried: what passes each face is what flows there, times the dye just before it; and the adjoint.

Before a face, upstream, the dye is that of the cell and half its slope, which van Albada's mean of the differences to
both neighbours limits against overshooting. Whatever leaves a cell enters the next: dye is neither made nor lost.
"""

import warp as wp

from physvision.kernels.precision import start_warp

start_warp()
wp.set_module_options({"enable_backward": False})

Field = wp.array3d(dtype=wp.float64)
SMALL = wp.constant(wp.float64(1e-12))


@wp.func
def slope(a: wp.float64, b: wp.float64):
    """Van Albada's mean of two differences, zero where they differ in sign; with its derivatives to both."""
    if a * b <= wp.float64(0.0):
        return wp.vec3d()
    size = a * a + b * b + SMALL
    value = a * b * (a + b) / size
    by_a = (wp.float64(2.0) * a * b + b * b - wp.float64(2.0) * a * value) / size
    by_b = (wp.float64(2.0) * a * b + a * a - wp.float64(2.0) * b * value) / size
    return wp.vec3d(value, by_a, by_b)


@wp.func
def at_face(c: Field, w: int, i: int, j: int, di: int, dj: int, speed: wp.float64):
    """The dye at the face between (i − di, j − dj) and (i, j), and its derivatives to four cells in a row."""
    half = wp.float64(0.5)
    c0 = c[w, i - 2 * di, j - 2 * dj]
    c1 = c[w, i - di, j - dj]
    c2 = c[w, i, j]
    c3 = c[w, i + di, j + dj]
    if speed >= wp.float64(0.0):
        s = slope(c1 - c0, c2 - c1)
        by = half * wp.vec3d(-s[1], s[1] - s[2], s[2])
        return c1 + half * s[0], wp.vec4d(by[0], wp.float64(1.0) + by[1], by[2], wp.float64(0.0))
    s = slope(c2 - c1, c3 - c2)
    by = half * wp.vec3d(s[1], s[2] - s[1], -s[2])
    return c2 - half * s[0], wp.vec4d(wp.float64(0.0), by[0], wp.float64(1.0) + by[1], by[2])


@wp.kernel
def carry(first: int, c: Field, u: Field, v: Field, hx: wp.float64, hy: wp.float64, rate: Field):
    """Add what flows in through each face to the rate of change of the cells, which starts at zero."""
    world, i, j = wp.tid()
    w = first + world
    if j < rate.shape[2]:
        speed = u[w, i + 1, j + 1]
        dye, _ = at_face(c, w, i + 2, j + 2, 1, 0, speed)
        flow = speed * dye / hx
        if i > 0:
            wp.atomic_sub(rate, w, i - 1, j, flow)
        if i < rate.shape[1]:
            wp.atomic_add(rate, w, i, j, flow)
    if i < rate.shape[1]:
        speed = v[w, i + 1, j + 1]
        dye, _ = at_face(c, w, i + 2, j + 2, 0, 1, speed)
        flow = speed * dye / hy
        if j > 0:
            wp.atomic_sub(rate, w, i, j - 1, flow)
        if j < rate.shape[2]:
            wp.atomic_add(rate, w, i, j, flow)


@wp.func
def face_back(c: Field, w: int, i: int, j: int, di: int, dj: int, speed: wp.float64, bar: wp.float64, c_bar: Field):
    """Spread the cotangent of a flow over its four cells; returns that of the speed."""
    dye, by = at_face(c, w, i, j, di, dj, speed)
    for k in range(4):
        wp.atomic_add(c_bar, w, i + (k - 2) * di, j + (k - 2) * dj, bar * speed * by[k])
    return bar * dye


@wp.kernel
def carry_backward(
    first: int,
    c: Field,
    u: Field,
    v: Field,
    hx: wp.float64,
    hy: wp.float64,
    rate_bar: Field,
    c_bar: Field,
    u_bar: Field,
    v_bar: Field,
):
    """Add to the cotangents of c, u and v."""
    world, i, j = wp.tid()
    w = first + world
    if j < rate_bar.shape[2]:
        bar = wp.float64(0.0)
        if i > 0:
            bar = bar - rate_bar[w, i - 1, j]
        if i < rate_bar.shape[1]:
            bar = bar + rate_bar[w, i, j]
        found = face_back(c, w, i + 2, j + 2, 1, 0, u[w, i + 1, j + 1], bar / hx, c_bar)
        wp.atomic_add(u_bar, w, i + 1, j + 1, found)
    if i < rate_bar.shape[1]:
        more = wp.float64(0.0)
        if j > 0:
            more = more - rate_bar[w, i, j - 1]
        if j < rate_bar.shape[2]:
            more = more + rate_bar[w, i, j]
        got = face_back(c, w, i + 2, j + 2, 0, 1, v[w, i + 1, j + 1], more / hy, c_bar)
        wp.atomic_add(v_bar, w, i + 1, j + 1, got)
