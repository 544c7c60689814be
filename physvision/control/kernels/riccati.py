"""The backward pass of iLQR: the optimal affine policy of a linear motion and a quadratic cost, one thread a world.

With the motion δx′ = F z of z = (δx, δu), F = [A B], the step's cost Σ w (r + J z)² + e |u + δu|² (Gauss–Newton) and
the value V(δx) = V_xᵀ δx + ½ δxᵀ V_xx δx of the next state, the cost to go is Q_zᵀ z + ½ zᵀ Q_zz z with

    Q_z = 2 Jᵀ W r + 2 e (0, u) + Fᵀ V_x,        Q_zz = 2 Jᵀ W J + 2 e diag(0, 1) + Fᵀ V_xx F,

with blocks Q_x, Q_u, Q_xx, Q_ux and Q_uu; at the end V_x = 2 Jᵀ W r and V_xx = 2 Jᵀ W J. Its minimum over the controls
within their bounds is at δu = k + K δx, where k solves the bounded problem of Q_uu + ρ and Q_u, and
K = −(Q_uu + ρ)⁻¹ Q_ux for free controls and zero for those clamped at a bound. The value of that policy is

    V_x  = Q_x + Kᵀ Q_uu k + Kᵀ Q_u + Q_uxᵀ k,        V_xx = Q_xx + Kᵀ Q_uu K + Kᵀ Q_ux + Q_uxᵀ K,

and its expected decrease of the cost is −(kᵀ Q_u + ½ kᵀ Q_uu k).

Four neighboring columns of a matrix are added at once: rows of F, Q_zz, K and their products are padded to multiples of
four, in memory that is read both by scalars and by vectors of four. Symmetric matrices are computed in the lower half.
"""

import warp as wp

from physvision.kernels.workspace import Layout

from .box_qp import solve_box_qp
from .precision import scalar

four = wp.types.vector(4, scalar)

# Lengths in vectors of four, of matrices that are read by scalars too. A row of z has (n + m + 3) // 4 of them.
_FOURS = {
    "motion": "n * ((n + m + 3) // 4)",
    "row": "(n + m + 3) // 4",  # of J
    "value_motion": "n * ((n + m + 3) // 4)",  # V_xx F
    "q_zz": "(n + m) * ((n + m + 3) // 4)",
    "value_xx": "n * ((n + 3) // 4)",
    "gain": "m * ((n + 3) // 4)",
    "slope": "m * ((n + 3) // 4)",  # Q_uu K + Q_ux
}
_SIZES = {"n": wp.int32, "m": wp.int32}
fours = Layout(__name__, four, _SIZES, real=_FOURS, whole={})
layout = Layout(
    __name__,
    scalar,
    _SIZES,
    # First the same memory by scalars.
    real={name: f"4 * ({length})" for name, length in _FOURS.items()}
    | {
        "value_x": "n",
        "q_z": "n + m",
        **dict.fromkeys(("q_u", "k", "lower", "upper", "step", "trial"), "m"),
        **dict.fromkeys(("q_uu", "damped", "factors"), "m * m"),
    },
    whole={"clamped": "m"},
)
Workspace = wp.ref[layout.Workspace]
Fours = wp.ref[fours.Workspace]
carve = layout.carve
carve_fours = fours.carve


@wp.struct
class ExpansionStruct:
    """Linearized motion and residuals about a trajectory, [world, step, …], and those of its end, [world, …]."""

    A: wp.array4d(dtype=scalar)
    B: wp.array4d(dtype=scalar)
    residual: wp.array3d(dtype=scalar)
    jacobian: wp.array4d(dtype=scalar)  # columns: x, then u if residuals depend on it
    final_residual: wp.array2d(dtype=scalar)
    final_jacobian: wp.array3d(dtype=scalar)
    weights: wp.array(dtype=scalar)
    final_weights: wp.array(dtype=scalar)
    control_weight: scalar  # weight of |u|²
    controls: wp.array3d(dtype=scalar)
    lower: wp.array(dtype=scalar)
    upper: wp.array(dtype=scalar)


Expansion = wp.ref[ExpansionStruct]


@wp.func
def terminal_value(e: Expansion, t: Workspace, world: int, n: int):
    """Set the value of the final state."""
    x_width = 4 * ((n + 3) // 4)
    for i in range(n):
        total = scalar(0.0)
        for r in range(e.final_residual.shape[1]):
            total += e.final_weights[r] * e.final_jacobian[world, r, i] * e.final_residual[world, r]
        t.value_x[i] = scalar(2.0) * total
        for j in range(n):
            entry = scalar(0.0)
            for r in range(e.final_residual.shape[1]):
                entry += e.final_weights[r] * e.final_jacobian[world, r, i] * e.final_jacobian[world, r, j]
            t.value_xx[i * x_width + j] = scalar(2.0) * entry


@wp.func
def load_step(e: Expansion, t: Workspace, f: Fours, world: int, step: int, n: int, m: int):
    """Load the step's F, and the terms of Q_z and of the lower half of Q_zz that come from the cost."""
    z_fours = (n + m + 3) // 4
    for i in range(n):
        for j in range(n):
            t.motion[i * 4 * z_fours + j] = e.A[world, step, i, j]
        for j in range(m):
            t.motion[i * 4 * z_fours + n + j] = e.B[world, step, i, j]
    for i in range(n + m):
        t.q_z[i] = scalar(0.0)
        for b in range(i // 4 + 1):
            f.q_zz[i * z_fours + b] = four()
    for i in range(m):
        t.q_z[n + i] = scalar(2.0) * e.control_weight * e.controls[world, step, i]
        t.q_zz[(n + i) * 4 * z_fours + n + i] = scalar(2.0) * e.control_weight
    for s in range(e.residual.shape[2]):
        residual = e.residual[world, step, s]
        weight = scalar(2.0) * e.weights[s]
        for i in range(e.jacobian.shape[3]):
            t.row[i] = e.jacobian[world, step, s, i]
        for i in range(e.jacobian.shape[3]):
            slope = weight * t.row[i]
            if slope != scalar(0.0):  # many entries are zero
                t.q_z[i] = t.q_z[i] + slope * residual
                for b in range(i // 4 + 1):
                    f.q_zz[i * z_fours + b] = f.q_zz[i * z_fours + b] + slope * f.row[b]


@wp.func
def expand_q(t: Workspace, f: Fours, n: int, m: int):
    """Add the terms of Q_z and of the lower half of Q_zz that come from the value of the next state."""
    z_fours = (n + m + 3) // 4
    x_width = 4 * ((n + 3) // 4)
    for i in range(n):
        for b in range(z_fours):
            total = four()
            for s in range(n):
                total += t.value_xx[i * x_width + s] * f.motion[s * z_fours + b]
            f.value_motion[i * z_fours + b] = total
    for i in range(n + m):
        slope = t.q_z[i]
        for s in range(n):
            slope += t.motion[s * 4 * z_fours + i] * t.value_x[s]
        t.q_z[i] = slope
        for b in range(i // 4 + 1):
            total = f.q_zz[i * z_fours + b]
            for s in range(n):
                total += t.motion[s * 4 * z_fours + i] * f.value_motion[s * z_fours + b]
            f.q_zz[i * z_fours + b] = total


@wp.func
def solve_controls(e: Expansion, t: Workspace, f: Fours, world: int, step: int, n: int, m: int, rho: scalar):
    """Solve for the step's k and K; true if the damped Q_uu is positive definite."""
    z_fours = (n + m + 3) // 4
    for i in range(m):
        t.lower[i] = e.lower[i] - e.controls[world, step, i]
        t.upper[i] = e.upper[i] - e.controls[world, step, i]
        t.q_u[i] = t.q_z[n + i]
        for j in range(i + 1):
            entry = t.q_zz[(n + i) * 4 * z_fours + n + j]
            t.q_uu[i * m + j] = entry
            t.q_uu[j * m + i] = entry
            t.damped[i * m + j] = entry
            t.damped[j * m + i] = entry
        t.damped[i * m + i] = t.damped[i * m + i] + rho
    definite = solve_box_qp(t.damped, t.q_u, t.lower, t.upper, t.k, t.clamped, t.factors, t.step, t.trial, m)
    for b in range((n + 3) // 4):
        solve_gain_columns(t, f, b, n, m)
    return definite


@wp.func
def solve_gain_columns(t: Workspace, f: Fours, b: int, n: int, m: int):
    """Solve for four columns of K at once; those beyond the n-th are never read."""
    z_fours = (n + m + 3) // 4
    x_fours = (n + 3) // 4
    for i in range(m):
        total = wp.where(t.clamped[i] == 0, -f.q_zz[(n + i) * z_fours + b], four())
        for k in range(i):
            total -= t.factors[i * m + k] * f.gain[k * x_fours + b]
        f.gain[i * x_fours + b] = total * t.factors[i * m + i]
    for back in range(m):
        i = m - 1 - back
        total = f.gain[i * x_fours + b]
        for k in range(i + 1, m):
            total -= t.factors[k * m + i] * f.gain[k * x_fours + b]
        f.gain[i * x_fours + b] = total * t.factors[i * m + i]


@wp.func
def update_value(t: Workspace, f: Fours, n: int, m: int):
    """Replace the value of the next state by that of this step; return the change of cost expected of k."""
    z_fours = (n + m + 3) // 4
    x_fours = (n + 3) // 4
    cost_change = scalar(0.0)
    for i in range(m):
        total = t.q_u[i]
        for s in range(m):
            total += t.q_uu[i * m + s] * t.k[s]
        t.step[i] = total  # Q_u + Q_uu k
        cost_change += scalar(0.5) * t.k[i] * (t.q_u[i] + total)
        for b in range(x_fours):
            slopes = f.q_zz[(n + i) * z_fours + b]
            for s in range(m):
                slopes += t.q_uu[i * m + s] * f.gain[s * x_fours + b]
            f.slope[i * x_fours + b] = slopes
    for i in range(n):
        total = t.q_z[i]
        for s in range(m):
            total += t.gain[s * 4 * x_fours + i] * t.step[s] + t.q_zz[(n + s) * 4 * z_fours + i] * t.k[s]
        t.value_x[i] = total
        for b in range(i // 4 + 1):
            entries = f.q_zz[i * z_fours + b]
            for s in range(m):
                entries += t.gain[s * 4 * x_fours + i] * f.slope[s * x_fours + b]
                entries += t.q_zz[(n + s) * 4 * z_fours + i] * f.gain[s * x_fours + b]
            f.value_xx[i * x_fours + b] = entries
        for j in range(i):
            t.value_xx[j * 4 * x_fours + i] = t.value_xx[i * 4 * x_fours + j]
    return cost_change


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def backward(
    first: int,
    A: wp.array4d(dtype=scalar),
    B: wp.array4d(dtype=scalar),
    residual: wp.array3d(dtype=scalar),
    jacobian: wp.array4d(dtype=scalar),
    final_residual: wp.array2d(dtype=scalar),
    final_jacobian: wp.array3d(dtype=scalar),
    weights: wp.array(dtype=scalar),
    final_weights: wp.array(dtype=scalar),
    controls: wp.array3d(dtype=scalar),
    lower: wp.array(dtype=scalar),
    upper: wp.array(dtype=scalar),
    rho: wp.array(dtype=scalar),
    change: wp.array3d(dtype=scalar),
    gains: wp.array4d(dtype=scalar),
    expected_decrease: wp.array(dtype=scalar),
    status: wp.array(dtype=wp.int32),
    control_weight: scalar,
    scalars: wp.array2d(dtype=scalar),
    scalar_fours: wp.array2d(dtype=four),
    integers: wp.array2d(dtype=wp.int32),
):
    """Compute δu = change + gains δx, its expected decrease of the cost, and 1 if there is a solution.

    It goes from the last step to the first; a world stops where Q_uu + ρ is not positive definite. `scalar_fours` is
    the memory of `scalars` by vectors of four, zero at first.
    """
    world = first + wp.tid()
    steps, n, m = B.shape[1], B.shape[2], B.shape[3]
    x_width = 4 * ((n + 3) // 4)
    t = carve(n, m, scalars[world], integers[world])
    f = carve_fours(n, m, scalar_fours[world], integers[world])
    e = ExpansionStruct()  # an array costs less as an argument than as a field of a struct
    e.A = A
    e.B = B
    e.residual = residual
    e.jacobian = jacobian
    e.final_residual = final_residual
    e.final_jacobian = final_jacobian
    e.weights = weights
    e.final_weights = final_weights
    e.control_weight = control_weight
    e.controls = controls
    e.lower = lower
    e.upper = upper
    terminal_value(e, t, world, n)
    solved = wp.int32(1)
    total = scalar(0.0)
    for back in range(steps):
        step = steps - 1 - back
        if solved == 1:
            load_step(e, t, f, world, step, n, m)
            expand_q(t, f, n, m)
            if not solve_controls(e, t, f, world, step, n, m, rho[world]):
                solved = 0
        if solved == 1:
            total += update_value(t, f, n, m)
        for i in range(m):
            change[world, step, i] = wp.where(solved == 1, t.k[i], scalar(0.0))
            for j in range(n):
                gains[world, step, i, j] = wp.where(solved == 1, t.gain[i * x_width + j], scalar(0.0))
    expected_decrease[world] = -total
    status[world] = solved
