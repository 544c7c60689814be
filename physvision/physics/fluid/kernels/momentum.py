"""∇·(u u) at the faces, by central differences of the conservative form, which keeps energy; and its adjoint.

With A = a² and B = b² of means in the cells, and C = s t of means at their lower left corners,

    n_u = (A − A_left)/hx + (C_above − C)/hy          n_v = (B − B_below)/hy + (C_right − C)/hx

n is a sum of products, so its adjoint needs nothing but the fields; it gathers, from what A, B and C have to do with.
Rows are loops of C++ over memory without gaps, which compilers make into instructions on several numbers at once:
several times as quick as a thread for each cell.
"""

import warp as wp

from physvision.kernels.precision import start_warp

start_warp()
wp.set_module_options({"enable_backward": False})

Real = wp.float64
Reals = wp.array(dtype=Real)
Pairs = wp.array2d(dtype=Real)
Fields = wp.array4d(dtype=Real)

# Rows of both fields, at i and on both sides. `each(j, below, above)` is done for the cells of the row's part.
_ROWS = """
    const int nx = x.shape[2], ny = x.shape[3];
    const int below_i = i ? i - 1 : nx - 1, above_i = i + 1 < nx ? i + 1 : 0;
    const double* u = x.data + 2 * (size_t)w * nx * ny;
    const double* v = u + (size_t)nx * ny;
    const double *u0 = u + (size_t)i * ny, *ul = u + (size_t)below_i * ny, *ur = u + (size_t)above_i * ny;
    const double *v0 = v + (size_t)i * ny, *vl = v + (size_t)below_i * ny, *vr = v + (size_t)above_i * ny;
    const double px = 1.0 / hx, py = 1.0 / hy;
"""
_EACH = """
    const int begin = (int)((long long)ny * part / parts), end = (int)((long long)ny * (part + 1) / parts);
    if (begin == 0) each(0, ny - 1, 1);
    for (int j = begin > 1 ? begin : 1; j < (end < ny - 1 ? end : ny - 1); ++j) each(j, j - 1, j + 1);
    if (end == ny) each(ny - 1, ny - 2, 0);
"""
_RATES = """
    auto rate_u = [&](int j, int b, int a) {
        const double right = u0[j] + ur[j], left = u0[j] + ul[j];
        const double above = (u0[j] + u0[a]) * (v0[a] + vl[a]), below = (u0[j] + u0[b]) * (v0[j] + vl[j]);
        return 0.25 * ((right * right - left * left) * px + (above - below) * py);
    };
    auto rate_v = [&](int j, int b, int a) {
        const double up = v0[j] + v0[a], down = v0[j] + v0[b];
        const double ahead = (v0[j] + vr[j]) * (ur[j] + ur[b]), behind = (v0[j] + vl[j]) * (u0[j] + u0[b]);
        return 0.25 * ((up * up - down * down) * py + (ahead - behind) * px);
    };
"""


@wp.func_native(
    _ROWS
    + _RATES
    + """
    double* __restrict__ nu = n.data + (2 * (size_t)w * nx + i) * ny;
    double* __restrict__ nv = nu + (size_t)nx * ny;
    auto each = [&](int j, int b, int a) { nu[j] += k * rate_u(j, b, a); nv[j] += k * rate_v(j, b, a); };
"""
    + _EACH
)
def _convect(x: Fields, k: Real, hx: Real, hy: Real, n: Fields, w: int, i: int, part: int, parts: int): ...


@wp.kernel
def convect(first: int, x: Fields, k: Real, hx: Real, hy: Real, parts: int, n: Fields):
    """Add k n to what is there."""
    world, i, part = wp.tid()
    _convect(x, k, hx, hy, n, first + world, i, part, parts)


@wp.func_native(
    _ROWS
    + """
    const double c = 0.25 * k;
    const double *p0 = n_bar.data + (2 * (size_t)w * nx + i) * ny;
    const double *pl = p0 + (below_i - i) * ny, *pr = p0 + (above_i - i) * ny;
    const size_t apart = (size_t)nx * ny;
    const double *q0 = p0 + apart, *ql = pl + apart;
    double* __restrict__ us = x_bar.data + (2 * (size_t)w * nx + i) * ny;
    double* __restrict__ vs = us + apart;
    auto each = [&](int j, int b, int a) {
        const double corner = (p0[b] - p0[j]) * py + (ql[j] - q0[j]) * px;
        const double above = (p0[j] - p0[a]) * py + (ql[a] - q0[a]) * px;
        const double right = (pr[b] - pr[j]) * py + (q0[j] - (q0 + (above_i - i) * ny)[j]) * px;
        us[j] += c * (2.0 * px * ((u0[j] + ur[j]) * (p0[j] - pr[j]) + (ul[j] + u0[j]) * (pl[j] - p0[j]))
                      + corner * (v0[j] + vl[j]) + above * (v0[a] + vl[a]));
        vs[j] += c * (2.0 * py * ((v0[j] + v0[a]) * (q0[j] - q0[a]) + (v0[b] + v0[j]) * (q0[b] - q0[j]))
                      + corner * (u0[j] + u0[b]) + right * (ur[j] + ur[b]));
    };
"""
    + _EACH
)
def _convect_backward(
    x: Fields, k: Real, hx: Real, hy: Real, n_bar: Fields, x_bar: Fields, w: int, i: int, part: int, parts: int
): ...


@wp.kernel
def convect_backward(first: int, x: Fields, n_bar: Fields, k: Real, hx: Real, hy: Real, parts: int, x_bar: Fields):
    """Add k times the cotangents of the fields to what is there."""
    world, i, part = wp.tid()
    _convect_backward(x, k, hx, hy, n_bar, x_bar, first + world, i, part, parts)


@wp.func_native(
    _ROWS
    + _RATES
    + """
    double* __restrict__ hu = half.data + (2 * (size_t)w * nx + i) * ny;
    double* __restrict__ hv = hu + (size_t)nx * ny;
    double* __restrict__ wu = whole.data + (2 * (size_t)w * nx + i) * ny;
    double* __restrict__ wv = wu + (size_t)nx * ny;
    const double gx = shift.data[2 * w], gy = shift.data[2 * w + 1];
    const double kx = viscous.data[w] * px * px, ky = viscous.data[w] * py * py;
    auto each = [&](int j, int b, int a) {
        const double n_u = k * rate_u(j, b, a), n_v = k * rate_v(j, b, a);
        hu[j] = gx + u0[j] + kx * (ul[j] + ur[j] - 2.0 * u0[j]) + ky * (u0[b] + u0[a] - 2.0 * u0[j]) - n_u;
        hv[j] = gy + v0[j] + kx * (vl[j] + vr[j] - 2.0 * v0[j]) + ky * (v0[b] + v0[a] - 2.0 * v0[j]) - n_v;
        wu[j] = hu[j] - n_u;
        wv[j] = hv[j] - n_v;
    };
"""
    + _EACH
)
def _started(
    x: Fields,
    viscous: Reals,
    shift: Pairs,
    k: Real,
    hx: Real,
    hy: Real,
    half: Fields,
    whole: Fields,
    w: int,
    i: int,
    part: int,
    parts: int,
): ...


@wp.kernel
def started(
    first: int,
    x: Fields,
    viscous: Reals,
    shift: Pairs,
    k: Real,
    hx: Real,
    hy: Real,
    parts: int,
    half: Fields,
    whole: Fields,
):
    """Compute (1 + s ∇²) x + g − k n in `half`, with s and g of each world, and that less k n in `whole`."""
    world, i, part = wp.tid()
    _started(x, viscous, shift, k, hx, hy, half, whole, first + world, i, part, parts)
