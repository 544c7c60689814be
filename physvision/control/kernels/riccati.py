"""The backward pass of iLQR: the best affine policy for a linear motion and a quadratic cost, one thread a world.

With the motion δx′ = A δx + B δu and the value V(δx) = V_xᵀ δx + ½ δxᵀ V_xx δx of what follows, the cost from here is
quadratic in (δx, δu):

    Q_x = l_x + Aᵀ V_x              Q_xx = l_xx + Aᵀ V_xx A
    Q_u = l_u + Bᵀ V_x              Q_uu = l_uu + Bᵀ V_xx B,  Q_ux = l_ux + Bᵀ V_xx A

Its least over the controls within their bounds is at δu = k + K δx, where k solves the bounded problem of Q_uu + ρ and
Q_u, and K = −(Q_uu + ρ)⁻¹ Q_ux on what is free and zero on what is held at a bound. The value of that policy is

    V_x  = Q_x + Kᵀ Q_uu k + Kᵀ Q_u + Q_uxᵀ k,        V_xx = Q_xx + Kᵀ Q_uu K + Kᵀ Q_ux + Q_uxᵀ K,

and it promises a change of cost of kᵀ Q_u + ½ kᵀ Q_uu k.
"""

import warp as wp

from physvision.kernels.workspace import Layout

from . import scalar
from .bounded import least, solve

layout = Layout(
    __name__,
    scalar,
    {"n": wp.int32, "m": wp.int32},
    real={
        # The value of what follows, and this step's; V_xx A and V_xx B.
        **dict.fromkeys(("value_x", "q_x"), "n"),
        **dict.fromkeys(("value_xx", "q_xx", "value_a"), "n * n"),
        "value_b": "n * m",
        "q_u": "m",
        "q_ux": "m * n",
        **dict.fromkeys(("q_uu", "damped", "factors"), "m * m"),
        **dict.fromkeys(("k", "low", "high", "step", "trial"), "m"),
        "gain": "m * n",
        # Q_uu K + Q_ux.
        "slope": "m * n",
    },
    whole={"held": "m"},
)
Workspace = layout.Workspace
carve = layout.carve


@wp.struct
class Expansion:
    """Motion and cost about a trajectory, [world, step, …], and the final cost, [world, …]."""

    A: wp.array4d(dtype=scalar)
    B: wp.array4d(dtype=scalar)
    cost_x: wp.array3d(dtype=scalar)
    cost_u: wp.array3d(dtype=scalar)
    cost_xx: wp.array4d(dtype=scalar)
    cost_ux: wp.array4d(dtype=scalar)
    cost_uu: wp.array4d(dtype=scalar)
    final_x: wp.array2d(dtype=scalar)
    final_xx: wp.array3d(dtype=scalar)
    controls: wp.array3d(dtype=scalar)
    low: wp.array(dtype=scalar)
    high: wp.array(dtype=scalar)


@wp.struct
class Policy:
    """What the pass finds: δu = k + K δx, [world, step, …]; the change it promises; whether it exists, [world]."""

    k: wp.array3d(dtype=scalar)
    K: wp.array4d(dtype=scalar)
    promise: wp.array(dtype=scalar)
    found: wp.array(dtype=wp.int32)


@wp.func
def expand(e: Expansion, t: Workspace, world: int, step: int, n: int, m: int):
    """The quadratic cost from this step on, from the value of what follows."""
    for i in range(n):
        for j in range(n):
            total = scalar(0.0)
            for r in range(n):
                total += t.value_xx[i * n + r] * e.A[world, step, r, j]
            t.value_a[i * n + j] = total
        for j in range(m):
            total = scalar(0.0)
            for r in range(n):
                total += t.value_xx[i * n + r] * e.B[world, step, r, j]
            t.value_b[i * m + j] = total
    for i in range(n):
        total = e.cost_x[world, step, i]
        for r in range(n):
            total += e.A[world, step, r, i] * t.value_x[r]
        t.q_x[i] = total
        for j in range(n):
            total = e.cost_xx[world, step, i, j]
            for r in range(n):
                total += e.A[world, step, r, i] * t.value_a[r * n + j]
            t.q_xx[i * n + j] = total
    for i in range(m):
        total = e.cost_u[world, step, i]
        for r in range(n):
            total += e.B[world, step, r, i] * t.value_x[r]
        t.q_u[i] = total
        for j in range(n):
            total = e.cost_ux[world, step, i, j]
            for r in range(n):
                total += e.B[world, step, r, i] * t.value_a[r * n + j]
            t.q_ux[i * n + j] = total
        for j in range(m):
            total = e.cost_uu[world, step, i, j]
            for r in range(n):
                total += e.B[world, step, r, i] * t.value_b[r * m + j]
            t.q_uu[i * m + j] = total


@wp.func
def choose(e: Expansion, t: Workspace, world: int, step: int, n: int, m: int, rho: scalar):
    """The step's k and K; whether the damped Q_uu is positive definite."""
    for i in range(m):
        t.low[i] = e.low[i] - e.controls[world, step, i]
        t.high[i] = e.high[i] - e.controls[world, step, i]
        for j in range(m):
            t.damped[i * m + j] = t.q_uu[i * m + j]
        t.damped[i * m + i] = t.q_uu[i * m + i] + rho
    definite = least(t.damped, t.q_u, t.low, t.high, t.k, t.held, t.factors, t.step, t.trial, m)
    for j in range(n):
        for i in range(m):
            t.step[i] = scalar(wp.where(t.held[i] == 1, scalar(0.0), -t.q_ux[i * n + j]))
        solve(t.factors, t.step, m)
        for i in range(m):
            t.gain[i * n + j] = t.step[i]
    return definite


@wp.func
def evaluate(t: Workspace, n: int, m: int):
    """Replace the value of what follows by that from this step on; the change of cost that k promises."""
    promise = scalar(0.0)
    for i in range(m):
        total = t.q_u[i]
        for r in range(m):
            total += t.q_uu[i * m + r] * t.k[r]
        t.step[i] = total  # Q_u + Q_uu k
        promise += scalar(0.5) * t.k[i] * (t.q_u[i] + total)
        for j in range(n):
            total = t.q_ux[i * n + j]
            for r in range(m):
                total += t.q_uu[i * m + r] * t.gain[r * n + j]
            t.slope[i * n + j] = total
    for i in range(n):
        total = t.q_x[i]
        for r in range(m):
            total += t.gain[r * n + i] * t.step[r] + t.q_ux[r * n + i] * t.k[r]
        t.value_x[i] = total
        for j in range(n):
            total = t.q_xx[i * n + j]
            for r in range(m):
                total += t.gain[r * n + i] * t.slope[r * n + j] + t.q_ux[r * n + i] * t.gain[r * n + j]
            t.value_a[i * n + j] = total
    for i in range(n):
        for j in range(n):
            t.value_xx[i * n + j] = scalar(0.5) * (t.value_a[i * n + j] + t.value_a[j * n + i])
    return promise


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def backward(
    first: int,
    e: Expansion,
    rho: wp.array(dtype=scalar),
    steps: int,
    n: int,
    m: int,
    real: wp.array2d(dtype=scalar),
    whole: wp.array2d(dtype=wp.int32),
    policy: Policy,
):
    """The policy of every step, from the last to the first; a world stops where Q_uu + ρ is not positive definite."""
    world = first + wp.tid()
    t = carve(n, m, real[world], whole[world])
    for i in range(n):
        t.value_x[i] = e.final_x[world, i]
        for j in range(n):
            t.value_xx[i * n + j] = e.final_xx[world, i, j]
    found = wp.int32(1)
    promise = scalar(0.0)
    for back in range(steps):
        step = steps - 1 - back
        if found == 1:
            expand(e, t, world, step, n, m)
            if not choose(e, t, world, step, n, m, rho[world]):
                found = 0
        if found == 1:
            promise += evaluate(t, n, m)
            for i in range(m):
                policy.k[world, step, i] = t.k[i]
                for j in range(n):
                    policy.K[world, step, i, j] = t.gain[i * n + j]
    policy.promise[world] = promise
    policy.found[world] = found
