"""The backward pass of iLQR: the best affine policy for a linear motion and a quadratic cost, one thread a world.

With the motion δx′ = F z of z = (δx, δu), F = [A B], the step's cost |r + J z|² (Gauss–Newton) and the value
V(δx) = V_xᵀ δx + ½ δxᵀ V_xx δx of what follows, the cost from here is Q_zᵀ z + ½ zᵀ Q_zz z with

    Q_z = 2 Jᵀ r + Fᵀ V_x,          Q_zz = 2 Jᵀ J + Fᵀ V_xx F,

whose blocks are called Q_x, Q_u, Q_xx, Q_ux and Q_uu; at the end V_x = 2 Jᵀ r and V_xx = 2 Jᵀ J. Its least over the
controls within their bounds is at δu = k + K δx, where k solves the bounded problem of Q_uu + ρ and Q_u, and
K = −(Q_uu + ρ)⁻¹ Q_ux on what is free and zero on what is held at a bound. The value of that policy is

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
        # The step's F and a row of J, for arrays of one dimension are read faster.
        "motion": "n * (n + m)",
        "row": "n + m",
        # The value of what follows, and V_xx F.
        "value_x": "n",
        "value_xx": "n * n",
        "value_motion": "n * (n + m)",
        "q_z": "n + m",
        "q_zz": "(n + m) * (n + m)",
        **dict.fromkeys(("q_u", "k", "low", "high", "step", "trial"), "m"),
        **dict.fromkeys(("damped", "factors"), "m * m"),
        # K, and Q_uu K + Q_ux.
        **dict.fromkeys(("gain", "slope"), "m * n"),
    },
    whole={"held": "m"},
)
Workspace = wp.ref[layout.Workspace]
carve = layout.carve


@wp.struct
class ExpansionStruct:
    """Motion and residuals of the cost about a trajectory, [world, step, …], and those of its end, [world, …]."""

    A: wp.array4d(dtype=scalar)
    B: wp.array4d(dtype=scalar)
    residual: wp.array3d(dtype=scalar)
    jacobian: wp.array4d(dtype=scalar)  # columns: x, then u
    final_residual: wp.array2d(dtype=scalar)
    final_jacobian: wp.array3d(dtype=scalar)
    controls: wp.array3d(dtype=scalar)
    low: wp.array(dtype=scalar)
    high: wp.array(dtype=scalar)


Expansion = wp.ref[ExpansionStruct]


@wp.func
def end(e: Expansion, t: Workspace, world: int, n: int):
    """The value of the last state."""
    for i in range(n):
        total = scalar(0.0)
        for r in range(e.final_residual.shape[1]):
            total += e.final_jacobian[world, r, i] * e.final_residual[world, r]
        t.value_x[i] = scalar(2.0) * total
        for j in range(n):
            entry = scalar(0.0)
            for r in range(e.final_residual.shape[1]):
                entry += e.final_jacobian[world, r, i] * e.final_jacobian[world, r, j]
            t.value_xx[i * n + j] = scalar(2.0) * entry


@wp.func
def load(e: Expansion, t: Workspace, world: int, step: int, n: int, m: int):
    """The step's F, and 2 Jᵀ r and the lower half of 2 Jᵀ J in the place of Q_z and Q_zz."""
    c = n + m
    for i in range(n):
        for j in range(n):
            t.motion[i * c + j] = e.A[world, step, i, j]
        for j in range(m):
            t.motion[i * c + n + j] = e.B[world, step, i, j]
    for i in range(c):
        t.q_z[i] = scalar(0.0)
        for j in range(i + 1):
            t.q_zz[i * c + j] = scalar(0.0)
    for s in range(e.residual.shape[2]):
        doubled = scalar(2.0) * e.residual[world, step, s]
        for i in range(c):
            slope = e.jacobian[world, step, s, i]
            t.row[i] = slope
            if slope != scalar(0.0):  # many are zero
                t.q_z[i] = t.q_z[i] + doubled * slope
                for j in range(i + 1):
                    t.q_zz[i * c + j] = t.q_zz[i * c + j] + scalar(2.0) * slope * t.row[j]


@wp.func
def expand(t: Workspace, n: int, c: int):
    """Q_z and Q_zz, c wide, from the value of what follows and what `load` left."""
    for i in range(n):
        for j in range(c):
            total = scalar(0.0)
            for s in range(n):
                total += t.value_xx[i * n + s] * t.motion[s * c + j]
            t.value_motion[i * c + j] = total
    for i in range(c):
        slope = t.q_z[i]
        for s in range(n):
            slope += t.motion[s * c + i] * t.value_x[s]
        t.q_z[i] = slope
        for j in range(i + 1):
            total = t.q_zz[i * c + j]
            for s in range(n):
                total += t.motion[s * c + i] * t.value_motion[s * c + j]
            t.q_zz[i * c + j] = total
            t.q_zz[j * c + i] = total


@wp.func
def choose(e: Expansion, t: Workspace, world: int, step: int, n: int, m: int, rho: scalar):
    """The step's k and K; whether the damped Q_uu is positive definite."""
    c = n + m
    for i in range(m):
        t.low[i] = e.low[i] - e.controls[world, step, i]
        t.high[i] = e.high[i] - e.controls[world, step, i]
        t.q_u[i] = t.q_z[n + i]
        for j in range(m):
            t.damped[i * m + j] = t.q_zz[(n + i) * c + n + j]
        t.damped[i * m + i] = t.damped[i * m + i] + rho
    definite = least(t.damped, t.q_u, t.low, t.high, t.k, t.held, t.factors, t.step, t.trial, m)
    for j in range(n):
        for i in range(m):
            t.step[i] = scalar(wp.where(t.held[i] == 1, scalar(0.0), -t.q_zz[(n + i) * c + j]))
        solve(t.factors, t.step, m)
        for i in range(m):
            t.gain[i * n + j] = t.step[i]
    return definite


@wp.func
def evaluate(t: Workspace, n: int, m: int):
    """Replace the value of what follows by that from this step on; the change of cost that k promises."""
    c = n + m
    promise = scalar(0.0)
    for i in range(m):
        total = t.q_u[i]
        for s in range(m):
            total += t.q_zz[(n + i) * c + n + s] * t.k[s]
        t.step[i] = total  # Q_u + Q_uu k
        promise += scalar(0.5) * t.k[i] * (t.q_u[i] + total)
        for j in range(n):
            total = t.q_zz[(n + i) * c + j]
            for s in range(m):
                total += t.q_zz[(n + i) * c + n + s] * t.gain[s * n + j]
            t.slope[i * n + j] = total
    for i in range(n):
        total = t.q_z[i]
        for s in range(m):
            total += t.gain[s * n + i] * t.step[s] + t.q_zz[(n + s) * c + i] * t.k[s]
        t.value_x[i] = total
        for j in range(i + 1):
            # The mean of an entry and the one across, which rounding parts.
            total = scalar(0.0)
            for s in range(m):
                total += t.gain[s * n + i] * t.slope[s * n + j] + t.q_zz[(n + s) * c + i] * t.gain[s * n + j]
                total += t.gain[s * n + j] * t.slope[s * n + i] + t.q_zz[(n + s) * c + j] * t.gain[s * n + i]
            total = t.q_zz[i * c + j] + scalar(0.5) * total
            t.value_xx[i * n + j] = total
            t.value_xx[j * n + i] = total
    return promise


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def backward(
    first: int,
    A: wp.array4d(dtype=scalar),
    B: wp.array4d(dtype=scalar),
    residual: wp.array3d(dtype=scalar),
    jacobian: wp.array4d(dtype=scalar),
    final_residual: wp.array2d(dtype=scalar),
    final_jacobian: wp.array3d(dtype=scalar),
    controls: wp.array3d(dtype=scalar),
    low: wp.array(dtype=scalar),
    high: wp.array(dtype=scalar),
    rho: wp.array(dtype=scalar),
    real: wp.array2d(dtype=scalar),
    whole: wp.array2d(dtype=wp.int32),
    change: wp.array3d(dtype=scalar),
    gains: wp.array4d(dtype=scalar),
    promise: wp.array(dtype=scalar),
    found: wp.array(dtype=wp.int32),
):
    """Fill δu = change + gains δx, [world, step, …], the change of cost that it promises, and whether it exists.

    From the last step to the first; a world stops where Q_uu + ρ is not positive definite.
    """
    world = first + wp.tid()
    steps, n, m = B.shape[1], B.shape[2], B.shape[3]
    t = carve(n, m, real[world], whole[world])
    e = ExpansionStruct()  # an array costs less as an argument than as a field of one
    e.A = A
    e.B = B
    e.residual = residual
    e.jacobian = jacobian
    e.final_residual = final_residual
    e.final_jacobian = final_jacobian
    e.controls = controls
    e.low = low
    e.high = high
    end(e, t, world, n)
    exists = wp.int32(1)
    total = scalar(0.0)
    for back in range(steps):
        step = steps - 1 - back
        if exists == 1:
            load(e, t, world, step, n, m)
            expand(t, n, n + m)
            if not choose(e, t, world, step, n, m, rho[world]):
                exists = 0
        if exists == 1:
            total += evaluate(t, n, m)
        for i in range(m):
            change[world, step, i] = wp.where(exists == 1, t.k[i], scalar(0.0))
            for j in range(n):
                gains[world, step, i, j] = wp.where(exists == 1, t.gain[i * n + j], scalar(0.0))
    promise[world] = total
    found[world] = exists
