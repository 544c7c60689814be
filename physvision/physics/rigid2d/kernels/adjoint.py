"""Adjoint of a smooth step, by the implicit function theorem at the solution.

Both stages and the impact have one form: x = x° + W Cᵀ λ with rows R x + ρ = 0 over the active rows. With
F = R W Cᵀ (in C, columns of sliding contacts include friction) and a cotangent x̄ (and λ̄ where λ itself is used),
    Fᵀ κ = C W x̄ + λ̄,    z = x̄ − Rᵀ κ,
    x̄° = z,    C̄_i = λ_i W z,    W̄ = z ∘ Cᵀ λ,    ρ̄ = −κ,    R̄_i = −κ_i x;
this takes one solve with the transposed factors. In the position stage x = q₁ comes from Newton's method, R = ∂φ/∂q at
q₁ and ρ̄ = φ̄; its multipliers also enter v½ = … + W Cᵀ Λ₀/h, so there λ̄ = C W v̄½/h.

A smooth step that ends by an event has its duration from G(q₁, v₁) = 0. With ġ = dG/dh along the step and h̄ the
cotangent of the duration, the event adds −(h̄/ġ) ∇G to the cotangent of (q₁, v₁), the saltation term: the time of
impact carries its gradient, ∂h/∂x = −(∂G/∂x)/ġ. Both ġ and h̄ come from the adjoint itself: ġ is the duration's
cotangent for the seed ∇G.
References: de Avila Belbute-Peres et al. 2018 (LCP); Kong et al. 2024, "Saltation matrices" (events).
"""

import warp as wp

from physvision.physics.lcp.kernels.contact_solver import solve_contacts_adjoint, subtract_row_forces
from physvision.physics.lcp.kernels.problem import OPEN, SLIDE, clear, copy
from physvision.physics.lcp.kernels.rows import add_row, weighted_velocity

from .data import BODY_A, BODY_B, CONTACT_CLOSED, EDGE_ENDED, KIND, LIMIT, NO_EVENT, STEP_CUT, Data, Model
from .feature_changes import edge_end_overshoot
from .forces import free_acceleration_adjoint, inverse_mass_adjoint
from .geometry import add_property_cotangent, contact_rows, contact_rows_adjoint
from .joints import joint_row_adjoint
from .precision import Array1d, IntArray1d, scalar
from .smooth_step import set_mixed_rows


@wp.func
def columns_adjoint(
    m: Model,
    d: Data,
    contacts: int,
    columns: Array1d,
    mode: IntArray1d,
    ratio: Array1d,
    multipliers: Array1d,
    z: Array1d,
    bar: Array1d,
):
    """Set `bar` to the cotangent of the columns, C̄ = λ W z, and add the cotangents of masses and friction.

    The multipliers of a sliding contact are (λ, ratio λ), so ∂/∂ratio = λ T W z.
    """
    for r in range(m.joint_rows + 2 * contacts):
        a = d.lcp.row_a[r]
        b = d.lcp.row_b[r]
        force = multipliers[r]
        for k in range(3):
            bar[6 * r + k] = force * d.lcp.inverse_mass[3 * a + k] * z[3 * a + k]
            bar[6 * r + 3 + k] = force * d.lcp.inverse_mass[3 * b + k] * z[3 * b + k]
        if force != scalar(0.0):
            c = 6 * r
            if d.lcp.inverse_mass[3 * a] > scalar(0.0):
                linear = force * (columns[c] * z[3 * a] + columns[c + 1] * z[3 * a + 1])
                inverse_mass_adjoint(m, d, a, linear, force * columns[c + 2] * z[3 * a + 2])
            if d.lcp.inverse_mass[3 * b] > scalar(0.0):
                linear = force * (columns[c + 3] * z[3 * b] + columns[c + 4] * z[3 * b + 1])
                inverse_mass_adjoint(m, d, b, linear, force * columns[c + 5] * z[3 * b + 2])
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        if mode[i] == SLIDE and d.lcp.friction[i] > scalar(0.0) and d.contact_features[5 * i + KIND] != LIMIT:
            friction_bar = (
                wp.sign(ratio[i]) * multipliers[r] * weighted_velocity(d.lcp, columns, r + 1, z) * scalar(0.5)
            )
            add_property_cotangent(d, m.friction + d.contact_features[5 * i + BODY_A], friction_bar)
            add_property_cotangent(d, m.friction + d.contact_features[5 * i + BODY_B], friction_bar)


@wp.func
def rows_adjoint(m: Model, d: Data, contacts: int, q: Array1d, bar: Array1d, q_bar: Array1d):
    """Propagate the cotangent of all rows at the pose q to the pose and the properties."""
    for r in range(m.joint_rows):
        joint_row_adjoint(m, d, q, r, bar, scalar(0.0), q_bar)
    for i in range(contacts):
        contact_rows_adjoint(m, d, q, i, bar, m.joint_rows + 2 * i, scalar(0.0), q_bar)


@wp.func
def velocity_stage_adjoint(m: Model, d: Data, contacts: int, h: scalar):
    """Propagate v1_bar to v_mid_bar and v0_bar, and add to q1_bar; return the duration's cotangent."""
    n = 3 * (m.bodies + 1)
    size = m.joint_rows + 2 * contacts
    copy(d.v1_bar, d.z, n)
    if size > 0:
        solve_contacts_adjoint(d.lcp, contacts, d.rows1, d.rows1, d.mode1, d.ratio1, d.v1_bar)
        subtract_row_forces(d.lcp, d.rows1, size, d.z)
        columns_adjoint(m, d, contacts, d.rows1, d.mode1, d.ratio1, d.lambda1, d.z, d.rows_bar)
        for r in range(size):
            if d.lcp.row_adjoint[r] != scalar(0.0):
                for k in range(3):
                    c = 6 * r + k
                    d.rows_bar[c] = d.rows_bar[c] - d.lcp.row_adjoint[r] * d.v1[3 * d.lcp.row_a[r] + k]
                    d.rows_bar[c + 3] = d.rows_bar[c + 3] - d.lcp.row_adjoint[r] * d.v1[3 * d.lcp.row_b[r] + k]
        rows_adjoint(m, d, contacts, d.q1, d.rows_bar, d.q1_bar)
    duration_bar = scalar(0.0)
    for k in range(n):
        d.v_mid_bar[k] = d.z[k]
        d.a_bar[k] = scalar(0.5) * h * d.z[k]
        d.predicted_bar[k] = scalar(0.0)
        duration_bar += scalar(0.5) * d.z[k] * d.a1[k]
    free_acceleration_adjoint(m, d, d.q1, d.predicted, d.a_bar, d.q1_bar, d.predicted_bar)
    for k in range(n):
        d.v_mid_bar[k] = d.v_mid_bar[k] + scalar(2.0) * d.predicted_bar[k]
        d.v0_bar[k] = -d.predicted_bar[k]
    return duration_bar


@wp.func
def position_stage_adjoint(m: Model, d: Data, contacts: int, h: scalar):
    """Propagate q1_bar and v_mid_bar to q0_bar, and add to v0_bar; return the duration's cotangent."""
    n = 3 * (m.bodies + 1)
    size = m.joint_rows + 2 * contacts
    copy(d.q1_bar, d.z, n)
    clear(d.q0_bar, n)
    duration_bar = scalar(0.0)
    if size > 0:
        for k in range(n):
            d.predicted_bar[k] = d.q1_bar[k] + d.v_mid_bar[k] / h
        set_mixed_rows(m, d, contacts)
        solve_contacts_adjoint(d.lcp, contacts, d.rows_mixed, d.rows0, d.mode0, d.ratio0, d.predicted_bar)
        position_equations_adjoint(m, d, contacts)
        for k in range(n):
            d.predicted_bar[k] = d.z[k] + d.v_mid_bar[k] / h
        columns_adjoint(m, d, contacts, d.rows0, d.mode0, d.ratio0, d.lambda0, d.predicted_bar, d.rows_bar)
        for i in range(contacts):
            # A sticking contact requires T(q₀)·(q₁ − q₀) = 0: its tangential row is evaluated at the start.
            r = m.joint_rows + 2 * i + 1
            if d.lcp.row_adjoint[r] != scalar(0.0):
                for k in range(3):
                    a = 3 * d.lcp.row_a[r] + k
                    b = 3 * d.lcp.row_b[r] + k
                    c = 6 * r + k
                    d.rows_bar[c] = d.rows_bar[c] - d.lcp.row_adjoint[r] * (d.q1[a] - d.q0[a])
                    d.rows_bar[c + 3] = d.rows_bar[c + 3] - d.lcp.row_adjoint[r] * (d.q1[b] - d.q0[b])
                add_row(d.lcp, d.rows0, r, d.lcp.row_adjoint[r], d.q0_bar)
        rows_adjoint(m, d, contacts, d.q0, d.rows_bar, d.q0_bar)
        for r in range(size):
            if d.lambda0[r] != scalar(0.0):
                duration_bar -= d.lambda0[r] / (h * h) * weighted_velocity(d.lcp, d.rows0, r, d.v_mid_bar)
    for k in range(n):
        d.q0_bar[k] = d.q0_bar[k] + d.z[k]
        d.v0_bar[k] = d.v0_bar[k] + h * d.z[k] + d.v_mid_bar[k]
        d.a_bar[k] = scalar(0.5) * h * (h * d.z[k] + d.v_mid_bar[k])
        duration_bar += d.z[k] * (d.v0[k] + h * d.a0[k]) + scalar(0.5) * d.v_mid_bar[k] * d.a0[k]
    free_acceleration_adjoint(m, d, d.q0, d.v0, d.a_bar, d.q0_bar, d.v0_bar)
    return duration_bar


@wp.func
def position_equations_adjoint(m: Model, d: Data, contacts: int):
    """Propagate −κ, the cotangent of the position stage's equations at q1, to z and the properties.

    For contacts that penetrate at the start, also propagate it to q0.
    """
    size = m.joint_rows + 2 * contacts
    clear(d.rows_bar, 6 * size)
    for r in range(m.joint_rows):
        joint_row_adjoint(m, d, d.q1, r, d.rows_bar, -d.lcp.row_adjoint[r], d.z)
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        if d.mode0[i] != OPEN:
            contact_rows_adjoint(m, d, d.q1, i, d.rows_bar, r, -d.lcp.row_adjoint[r], d.z)
            if d.target[r] != scalar(0.0):
                contact_rows_adjoint(m, d, d.q0, i, d.rows_bar, r, d.lcp.row_adjoint[r], d.q0_bar)
            if d.lcp.row_adjoint[r + 1] != scalar(0.0):
                add_row(d.lcp, d.rows0, r + 1, -d.lcp.row_adjoint[r + 1], d.z)


@wp.func
def smooth_step_adjoint(m: Model, d: Data, contacts: int, h: scalar, seed_q: Array1d, seed_v: Array1d, mask: scalar):
    """Propagate seeds at the end of the smooth step to (q0_bar, v0_bar); return the duration's cotangent."""
    n = 3 * (m.bodies + 1)
    d.property_mask = mask
    copy(seed_q, d.q1_bar, n)
    copy(seed_v, d.v1_bar, n)
    velocity_part = velocity_stage_adjoint(m, d, contacts, h)
    return velocity_part + position_stage_adjoint(m, d, contacts, h)


@wp.func
def event_gradient(m: Model, d: Data, contacts: int, event: int, index: int, factor: scalar, mask: scalar):
    """Set (event_q, event_v) to `factor` ∇G at (q1, v1).

    G is the separation that reached zero, or the function whose zero ended a contact mode.

    If `mask` is one, the properties' cotangents of G are added: a radius moves the time of contact.
    """
    n = 3 * (m.bodies + 1)
    clear(d.event_q, n)
    clear(d.event_v, n)
    d.property_mask = mask
    if event == CONTACT_CLOSED:
        r = m.joint_rows + 2 * contacts
        clear(d.rows_bar, 6 * (r + 2))
        contact_rows_adjoint(m, d, d.q1, m.max_contacts, d.rows_bar, r, factor, d.event_q)
    elif event == EDGE_ENDED:
        r = m.joint_rows + 2 * contacts
        edge_end_overshoot(m, d, d.q1, index // 2, index % 2, d.rows1, r)
        add_row(d.lcp, d.rows1, r, factor, d.event_q)
    else:
        # The rows are written again, since an open contact has none in the problem of the step.
        r = m.joint_rows + 2 * contacts
        contact_rows(m, d, d.q1, index, d.rows1, r)
        clear(d.rows_bar, 6 * (r + 2))
        add_row(d.lcp, d.rows1, r + 1, factor, d.event_v)
        for k in range(3):
            d.rows_bar[6 * r + 6 + k] = factor * d.v1[3 * d.lcp.row_a[r] + k]
            d.rows_bar[6 * r + 9 + k] = factor * d.v1[3 * d.lcp.row_b[r] + k]
        contact_rows_adjoint(m, d, d.q1, index, d.rows_bar, r, scalar(0.0), d.event_q)


@wp.func
def smooth_step_backward(m: Model, d: Data, contacts: int, h: scalar, event: int, index: int):
    """Propagate (seed_q, seed_v) through the current smooth step and the event that ends it to (q0_bar, v0_bar).

    `time_left_bar` is the cotangent of the time left: after the step on entry, before the step on return.
    """
    if event == STEP_CUT:
        # The step takes a fraction of the time left.
        fraction = h / d.time_left
        bar = smooth_step_adjoint(m, d, contacts, h, d.seed_q, d.seed_v, scalar(1.0))
        d.time_left_bar = fraction * bar + (scalar(1.0) - fraction) * d.time_left_bar
    elif event == NO_EVENT:
        d.time_left_bar = smooth_step_adjoint(m, d, contacts, h, d.seed_q, d.seed_v, scalar(1.0))
    else:
        duration_bar = smooth_step_adjoint(m, d, contacts, h, d.seed_q, d.seed_v, scalar(0.0)) - d.time_left_bar
        event_gradient(m, d, contacts, event, index, scalar(1.0), scalar(0.0))
        rate = smooth_step_adjoint(m, d, contacts, h, d.event_q, d.event_v, scalar(0.0))
        factor = wp.where(wp.abs(rate) > m.restitution_threshold, -duration_bar / rate, scalar(0.0))
        event_gradient(m, d, contacts, event, index, factor, scalar(1.0))
        for k in range(3 * (m.bodies + 1)):
            d.event_q[k] = d.event_q[k] + d.seed_q[k]
            d.event_v[k] = d.event_v[k] + d.seed_v[k]
        smooth_step_adjoint(m, d, contacts, h, d.event_q, d.event_v, scalar(1.0))
