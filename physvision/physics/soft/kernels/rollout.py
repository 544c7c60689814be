"""Rollouts of soft bodies and their adjoint, one thread per world.

A step of backward Euler solves ∂W/∂x = 0, with symmetric H = ∂²W/∂x². An adjoint x̄ of the new positions (with v̄/h, for
v = (x − x₀)/h) gives κ = H⁻¹ x̄ on the free nodes, and every quantity y that W depends on has −∂(κ · ∂W/∂x)/∂y;
kinematic nodes are such quantities too. Symplectic Euler's forces are the same function, with κ = h v̄/m.
"""

import warp as wp

from .cholesky import solve
from .elements import inner_gradient, pull_back
from .precision import Integers, Nodes, Nodes2d, Nodes3d, Reals, Reals3d, Vec, real
from .steps import factorize_step, newton, symplectic
from .structs import BodyStruct, MemoryStruct, NumbersStruct, StepStruct, step_of

wp.set_module_options({"enable_backward": False, "max_unroll": 6})


@wp.func
def implicit(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, known: int, v: Nodes):
    """Step of backward Euler, with its velocity in v; returns the result of `newton`."""
    went = newton(body, numbers, s, known)
    for node in range(body.kinematic.shape[0]):
        v[node] = s.v0[node]
        if body.kinematic[node] == 0:
            v[node] = (s.x[node] - s.x0[node]) / body.h
    return went


@wp.func
def explicit(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, x: Nodes, v: Nodes):
    """Step of symplectic Euler; returns zeros, or infinity if the state is not finite."""
    symplectic(body, numbers, s, x, v)
    for node in range(body.kinematic.shape[0]):
        if not wp.isfinite(x[node]):
            return wp.vec2d(real(wp.inf), real(0.0))
    return wp.vec2d()


@wp.kernel
def forward(
    first: int,
    body: BodyStruct,
    numbers: NumbersStruct,
    workspace: MemoryStruct,
    controls: Reals3d,
    q: Nodes3d,
    v: Nodes3d,
    residual: Reals,
    iterations: Integers,
    failed: Integers,
):
    """Compute the states after the first; a world whose step fails is NaN from there on."""
    world = first + wp.tid()
    failed[world] = -1
    residual[world] = real(0.0)
    iterations[world] = 0
    known = wp.int32(0)
    for step in range(controls.shape[1]):
        x0 = q[world, step]
        x = q[world, step + 1]
        v0 = v[world, step]
        u = controls[world, step]
        went = wp.vec2d(real(wp.inf), real(0.0))
        if wp.isfinite(residual[world]):
            if body.implicit == 1:
                went = implicit(body, numbers, step_of(workspace, world, u, x, x0, v0), known, v[world, step + 1])
                known = body.constant
            else:
                s = step_of(workspace, world, u, x0, workspace.before[world], v0)
                went = explicit(body, numbers, s, x, v[world, step + 1])
        residual[world] = wp.max(residual[world], went[0])
        iterations[world] = wp.max(iterations[world], wp.int32(went[1]))
        if failed[world] < 0 and not went[0] < real(1.0):
            failed[world] = step + 1
        if not wp.isfinite(went[0]):
            for node in range(body.kinematic.shape[0]):
                q[world, step + 1, node] = real(wp.nan) * x0[node]
                v[world, step + 1, node] = real(wp.nan) * x0[node]


@wp.func
def implicit_back(
    body: BodyStruct,
    numbers: NumbersStruct,
    s: StepStruct,
    known: int,
    q_bar: Nodes,
    v_bar: Nodes,
    bars: NumbersStruct,
    controls_bar: Reals,
):
    """Replace the adjoints of (x, v) by those of (x₀, v₀); see the module for the derivation."""
    for node in range(body.kinematic.shape[0]):
        s.move[node] = Vec()
        if body.kinematic[node] == 0:
            s.move[node] = q_bar[node] + v_bar[node] / body.h
    positive = bool(True)
    if known == 0:
        positive = factorize_step(body, numbers, s, real(0.0))
    solve(body, s)
    pull_back(body, numbers, s, bars, controls_bar)
    for node in range(body.kinematic.shape[0]):
        k = s.move[node]
        if body.kinematic[node] == 1:
            pulled = q_bar[node] - s.force[node]
            q_bar[node] = pulled - s.old[node]
            v_bar[node] = v_bar[node] + body.h * pulled
        else:
            m = numbers.mass[s.world, node] / body.h
            alpha = numbers.whole[s.world, 0]
            d = s.x[node] - s.x0[node]
            late = (d - body.h * s.v0[node]) / body.h
            bars.mass[s.world, node] -= wp.dot(k, late + alpha * d) / body.h
            bars.whole[s.world, 0] -= m * wp.dot(k, d)
            q_bar[node] = m * (real(1.0) / body.h + alpha) * k - v_bar[node] / body.h - s.old[node]
            v_bar[node] = m * k
        if not positive:
            q_bar[node] = real(wp.nan) * k


@wp.func
def explicit_back(
    body: BodyStruct,
    numbers: NumbersStruct,
    s: StepStruct,
    q_bar: Nodes,
    v_bar: Nodes,
    bars: NumbersStruct,
    controls_bar: Reals,
):
    """Replace the adjoints of v = v₀ − h (r/m + α v₀) and x = x₀ + h v; r depends on x₀ and, in `s.x0`, x₀ − h v₀."""
    for node in range(body.kinematic.shape[0]):
        s.x0[node] = s.x[node] - body.h * s.v0[node]
        v_bar[node] = v_bar[node] + body.h * q_bar[node]
        s.move[node] = Vec()
        if body.kinematic[node] == 0:
            s.move[node] = (body.h / numbers.mass[s.world, node]) * v_bar[node]
    inner_gradient(body, numbers, s, s.old)
    for node in range(body.kinematic.shape[0]):
        k = s.move[node]
        m = numbers.mass[s.world, node]
        bars.mass[s.world, node] += wp.dot(k, s.old[node]) / m
        bars.whole[s.world, 0] -= m * wp.dot(k, s.v0[node])
        v_bar[node] = v_bar[node] - (numbers.whole[s.world, 0] * m) * k
    pull_back(body, numbers, s, bars, controls_bar)
    for node in range(body.kinematic.shape[0]):
        q_bar[node] = q_bar[node] - s.force[node] - s.old[node]
        v_bar[node] = v_bar[node] + body.h * s.old[node]


@wp.kernel
def backward(
    first: int,
    body: BodyStruct,
    numbers: NumbersStruct,
    workspace: MemoryStruct,
    controls: Reals3d,
    q: Nodes3d,
    v: Nodes3d,
    q_seed: Nodes3d,
    v_seed: Nodes3d,
    q_bar: Nodes2d,
    v_bar: Nodes2d,
    bars: NumbersStruct,
    controls_bar: Reals3d,
):
    """Propagate the adjoints from the last state to the first; `bars` and `controls_bar` start at zero."""
    world = first + wp.tid()
    steps = controls.shape[1]
    x_bar = q_bar[world]
    w_bar = v_bar[world]
    for node in range(body.kinematic.shape[0]):
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
            s = step_of(workspace, world, u, q[world, step + 1], x0, v0)
            implicit_back(body, numbers, s, known, x_bar, w_bar, bars, u_bar)
            known = body.constant
        else:
            e = step_of(workspace, world, u, x0, workspace.before[world], v0)
            explicit_back(body, numbers, e, x_bar, w_bar, bars, u_bar)
        for node in range(body.kinematic.shape[0]):
            x_bar[node] = x_bar[node] + q_seed[world, step, node]
            w_bar[node] = w_bar[node] + v_seed[world, step, node]
