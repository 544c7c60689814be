"""∇·(u u) at the faces, by central differences of the conservative form, which keeps energy; and its adjoint.

For the face at the left of cell (i, j), with means a at the centres to its right and left, and s of u, t of v at the
corners above and below,

    n = (a_right² − a_left²)/hx + (s_above t_above − s_below t_below)/hy

and the same with x and y exchanged. n is a sum of products, so its adjoint needs nothing but the fields.
"""

import warp as wp

from physvision.kernels.precision import start_warp

start_warp()
wp.set_module_options({"enable_backward": False})

Field = wp.array3d(dtype=wp.float64)
HALF = wp.constant(wp.float64(0.5))


@wp.func
def mean(f: Field, w: int, i: int, j: int, di: int, dj: int):
    """Of f at (i, j) and at (i + di, j + dj)."""
    return HALF * (f[w, i, j] + f[w, i + di, j + dj])


@wp.kernel
def convect(first: int, u: Field, v: Field, hx: wp.float64, hy: wp.float64, nu: Field, nv: Field):
    """Fill in n of all faces, (nx + 1, ny) and (nx, ny + 1)."""
    world, i, j = wp.tid()
    w = first + world
    # Places in the fields with ghosts.
    p = i + 1
    r = j + 1
    if j < nu.shape[2]:
        right = mean(u, w, p, r, 1, 0)
        left = mean(u, w, p, r, -1, 0)
        above = mean(u, w, p, r, 0, 1) * mean(v, w, p, r + 1, -1, 0)
        below = mean(u, w, p, r, 0, -1) * mean(v, w, p, r, -1, 0)
        nu[w, i, j] = (right * right - left * left) / hx + (above - below) / hy
    if i < nv.shape[1]:
        up = mean(v, w, p, r, 0, 1)
        down = mean(v, w, p, r, 0, -1)
        ahead = mean(v, w, p, r, 1, 0) * mean(u, w, p + 1, r, 0, -1)
        behind = mean(v, w, p, r, -1, 0) * mean(u, w, p, r, 0, -1)
        nv[w, i, j] = (up * up - down * down) / hy + (ahead - behind) / hx


@wp.func
def spread(f: Field, w: int, i: int, j: int, di: int, dj: int, bar: wp.float64):
    """The adjoint of `mean`."""
    wp.atomic_add(f, w, i, j, HALF * bar)
    wp.atomic_add(f, w, i + di, j + dj, HALF * bar)


@wp.kernel
def convect_backward(
    first: int,
    u: Field,
    v: Field,
    hx: wp.float64,
    hy: wp.float64,
    nu_bar: Field,
    nv_bar: Field,
    u_bar: Field,
    v_bar: Field,
):
    """Add to the cotangents of u and v."""
    world, i, j = wp.tid()
    w = first + world
    p = i + 1
    r = j + 1
    two = wp.float64(2.0)
    if j < nu_bar.shape[2]:
        x = nu_bar[w, i, j] / hx
        y = nu_bar[w, i, j] / hy
        spread(u_bar, w, p, r, 1, 0, two * x * mean(u, w, p, r, 1, 0))
        spread(u_bar, w, p, r, -1, 0, -two * x * mean(u, w, p, r, -1, 0))
        spread(u_bar, w, p, r, 0, 1, y * mean(v, w, p, r + 1, -1, 0))
        spread(v_bar, w, p, r + 1, -1, 0, y * mean(u, w, p, r, 0, 1))
        spread(u_bar, w, p, r, 0, -1, -y * mean(v, w, p, r, -1, 0))
        spread(v_bar, w, p, r, -1, 0, -y * mean(u, w, p, r, 0, -1))
    if i < nv_bar.shape[1]:
        x = nv_bar[w, i, j] / hx
        y = nv_bar[w, i, j] / hy
        spread(v_bar, w, p, r, 0, 1, two * y * mean(v, w, p, r, 0, 1))
        spread(v_bar, w, p, r, 0, -1, -two * y * mean(v, w, p, r, 0, -1))
        spread(v_bar, w, p, r, 1, 0, x * mean(u, w, p + 1, r, 0, -1))
        spread(u_bar, w, p + 1, r, 0, -1, x * mean(v, w, p, r, 1, 0))
        spread(v_bar, w, p, r, -1, 0, -x * mean(u, w, p, r, 0, -1))
        spread(u_bar, w, p, r, 0, -1, -x * mean(v, w, p, r, -1, 0))
