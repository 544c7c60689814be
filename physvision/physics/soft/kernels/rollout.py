"""Rollouts and their adjoint, one thread a world.

Backward Euler's step is where ∂W/∂x = 0, with H = ∂²W/∂x², symmetric. A cotangent x̄ of the new places (with v̄/h, for
v = (x − x₀)/h) gives κ = H⁻¹ x̄ on the free nodes, and every quantity y that W depends on has −∂(κ · ∂W/∂x)/∂y; held
nodes, which are given, are such quantities too. Symplectic Euler's forces are the same function, with κ = h v̄/m.
"""

import warp as wp

from . import Vec, real
from .cholesky import solve
from .elements import inner_gradient, pull_back
from .steps import factorise_step, newton, symplectic
from .structs import BodyStruct, GradientsStruct, MemoryStruct, NumbersStruct

wp.set_module_options({"enable_backward": False, "max_unroll": 6})


@wp.func
def is_finite(x: wp.array(dtype=Vec)):
    for node in range(x.shape[0]):
        if not wp.isfinite(x[node]):
            return False
    return True


@wp.kernel
def forward(
    first: int,
    body: BodyStruct,
    numbers: NumbersStruct,
    memory: MemoryStruct,
    controls: wp.array3d(dtype=wp.float64),
    q: wp.array3d(dtype=Vec),
    v: wp.array3d(dtype=Vec),
    residual: wp.array(dtype=wp.float64),
    iterations: wp.array(dtype=wp.int32),
    bad: wp.array(dtype=wp.int32),
):
    """Fill in the states after the first; what cannot be solved at all is not a number from there on."""
    world = first + wp.tid()
    bad[world] = -1
    residual[world] = real(0.0)
    iterations[world] = 0
    known = wp.int32(0)
    for step in range(controls.shape[1]):
        x0 = q[world, step]
        v0 = v[world, step]
        x = q[world, step + 1]
        went = wp.vec2d(real(wp.inf), real(0.0))
        if bad[world] < 0 or wp.isfinite(residual[world]):
            if body.implicit == 1:
                went = newton(body, numbers, world, controls[world, step], x, x0, v0, known, memory)
                known = body.constant
                for node in range(x.shape[0]):
                    v[world, step + 1, node] = v0[node]
                    if body.held[node] == 0:
                        v[world, step + 1, node] = (x[node] - x0[node]) / body.h
            else:
                symplectic(body, numbers, world, controls[world, step], x0, v0, x, v[world, step + 1], memory)
                went = wp.vec2d()
                if not is_finite(x):
                    went = wp.vec2d(real(wp.inf), real(0.0))
        residual[world] = wp.max(residual[world], went[0])
        iterations[world] = wp.max(iterations[world], wp.int32(went[1]))
        if bad[world] < 0 and not went[0] < real(1.0):
            bad[world] = step + 1
        if not wp.isfinite(went[0]):
            for node in range(x.shape[0]):
                nothing = real(wp.nan) * x0[node]
                q[world, step + 1, node] = nothing
                v[world, step + 1, node] = nothing


@wp.func
def implicit_back(
    body: BodyStruct,
    numbers: NumbersStruct,
    memory: MemoryStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x0: wp.array(dtype=Vec),
    v0: wp.array(dtype=Vec),
    x: wp.array(dtype=Vec),
    known: int,
    q_bar: wp.array(dtype=Vec),
    v_bar: wp.array(dtype=Vec),
    bars: GradientsStruct,
    controls_bar: wp.array(dtype=wp.float64),
):
    """Turn the cotangents of (x, v) into those of (x₀, v₀); the derivation stands above."""
    kappa = memory.move[world]
    for node in range(body.held.shape[0]):
        kappa[node] = Vec()
        if body.held[node] == 0:
            kappa[node] = q_bar[node] + v_bar[node] / body.h
    positive = bool(True)
    if known == 0:
        positive = factorise_step(body, numbers, world, controls, x, x0, real(0.0), memory)
    solve(body, memory.diagonal[world], memory.below[world], kappa)
    new = memory.force[world]
    old = memory.old[world]
    pull_back(body, numbers, world, controls, x, x0, kappa, new, old, bars, controls_bar)
    for node in range(body.held.shape[0]):
        k = kappa[node]
        if body.held[node] == 1:
            pulled = q_bar[node] - new[node]
            q_bar[node] = pulled - old[node]
            v_bar[node] = v_bar[node] + body.h * pulled
        else:
            m = numbers.mass[world, node] / body.h
            alpha = numbers.whole[world, 0]
            d = x[node] - x0[node]
            late = (d - body.h * v0[node]) / body.h
            bars.mass[world, node] -= wp.dot(k, late + alpha * d) / body.h
            bars.whole[world, 0] -= m * wp.dot(k, d)
            q_bar[node] = m * (real(1.0) / body.h + alpha) * k - v_bar[node] / body.h - old[node]
            v_bar[node] = m * k
        if not positive:
            q_bar[node] = real(wp.nan) * k


@wp.func
def symplectic_back(
    body: BodyStruct,
    numbers: NumbersStruct,
    memory: MemoryStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x0: wp.array(dtype=Vec),
    v0: wp.array(dtype=Vec),
    q_bar: wp.array(dtype=Vec),
    v_bar: wp.array(dtype=Vec),
    bars: GradientsStruct,
    controls_bar: wp.array(dtype=wp.float64),
):
    """As `implicit_back`, of v = v₀ − h (r/m + α v₀) and x = x₀ + h v, with r of places x₀ and x₀ − h v₀."""
    kappa = memory.move[world]
    before = memory.trial[world]
    old = memory.old[world]
    new = memory.force[world]
    for node in range(body.held.shape[0]):
        before[node] = x0[node] - body.h * v0[node]
        v_bar[node] = v_bar[node] + body.h * q_bar[node]
        kappa[node] = Vec()
        if body.held[node] == 0:
            kappa[node] = (body.h / numbers.mass[world, node]) * v_bar[node]
    inner_gradient(body, numbers, world, controls, x0, before, old)
    for node in range(body.held.shape[0]):
        k = kappa[node]
        bars.mass[world, node] += wp.dot(k, old[node]) / numbers.mass[world, node]
        bars.whole[world, 0] -= numbers.mass[world, node] * wp.dot(k, v0[node])
        v_bar[node] = v_bar[node] - (numbers.whole[world, 0] * numbers.mass[world, node]) * k
    pull_back(body, numbers, world, controls, x0, before, kappa, new, old, bars, controls_bar)
    for node in range(body.held.shape[0]):
        q_bar[node] = q_bar[node] - new[node] - old[node]
        v_bar[node] = v_bar[node] + body.h * old[node]


@wp.kernel
def backward(
    first: int,
    body: BodyStruct,
    numbers: NumbersStruct,
    memory: MemoryStruct,
    controls: wp.array3d(dtype=wp.float64),
    q: wp.array3d(dtype=Vec),
    v: wp.array3d(dtype=Vec),
    q_seed: wp.array3d(dtype=Vec),
    v_seed: wp.array3d(dtype=Vec),
    q_bar: wp.array2d(dtype=Vec),
    v_bar: wp.array2d(dtype=Vec),
    bars: GradientsStruct,
    controls_bar: wp.array3d(dtype=wp.float64),
):
    """Add the cotangents of all states up, from the last to the first; `bars` and `controls_bar` start at zero."""
    world = first + wp.tid()
    steps = controls.shape[1]
    x_bar = q_bar[world]
    w_bar = v_bar[world]
    for node in range(body.held.shape[0]):
        x_bar[node] = q_seed[world, steps, node]
        w_bar[node] = v_seed[world, steps, node]
    known = wp.int32(0)
    for back in range(steps):
        step = steps - 1 - back
        u = controls[world, step]
        u_bar = controls_bar[world, step]
        x0 = q[world, step]
        v0 = v[world, step]
        if body.implicit == 1:
            x = q[world, step + 1]
            implicit_back(body, numbers, memory, world, u, x0, v0, x, known, x_bar, w_bar, bars, u_bar)
            known = body.constant
        else:
            symplectic_back(body, numbers, memory, world, u, x0, v0, x_bar, w_bar, bars, u_bar)
        for node in range(body.held.shape[0]):
            x_bar[node] = x_bar[node] + q_seed[world, step, node]
            w_bar[node] = w_bar[node] + v_seed[world, step, node]
