"""Viscosity and projection of waves of velocity on periodic axes."""

import warp as wp

from physvision.kernels.precision import start_warp

start_warp()
wp.set_module_options({"enable_backward": False})

Flat = wp.array(dtype=wp.float64)
Rows = wp.array2d(dtype=wp.float64)


@wp.func_native("""
    double* __restrict__ a = z.data + 4 * (size_t)w * count;
    double* __restrict__ b = a + 2 * (size_t)count;
    const double* __restrict__ s = t.data;
    const double* __restrict__ r = s + 2 * (size_t)count;
    const double* __restrict__ f = factor.data + (size_t)w * count;
    for (int k = 1; k < count; ++k) {
        const double s0 = s[2 * k], s1 = s[2 * k + 1], r0 = r[2 * k], r1 = r[2 * k + 1];
        const double real = f[k] * (s0 * a[2 * k] + s1 * a[2 * k + 1] + r0 * b[2 * k] + r1 * b[2 * k + 1]);
        const double other = f[k] * (s0 * a[2 * k + 1] - s1 * a[2 * k] + r0 * b[2 * k + 1] - r1 * b[2 * k]);
        a[2 * k] = s0 * real - s1 * other;
        a[2 * k + 1] = s0 * other + s1 * real;
        b[2 * k] = r0 * real - r1 * other;
        b[2 * k + 1] = r0 * other + r1 * real;
    }
""")
def _filtered(t: Flat, factor: Rows, z: Rows, w: int, count: int): ...


@wp.kernel
def filtered(first: int, t: Flat, factor: Rows, count: int, z: Rows):
    """Project each wave of velocity, except the mean flow, to t, and multiply it by a factor."""
    _filtered(t, factor, z, first + wp.tid(), count)
