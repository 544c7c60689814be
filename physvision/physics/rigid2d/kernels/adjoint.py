"""The adjoint of a flow and of an impact, by the implicit function theorem at the solution.

Both stages and the impact have one form: x = x° + W Cᵀ λ with rows R x + ρ = 0 over the equations that hold. With
F = R W Cᵀ (C sliding contacts' columns with their friction) and a cotangent x̄ (and λ̄ where λ is used by itself),
    Fᵀ κ = C W x̄ + λ̄,    z = x̄ − Rᵀ κ,
    x̄° = z,    C̄_i = λ_i W z,    W̄ = z ∘ Cᵀ λ,    ρ̄ = −κ,    R̄_i = −κ_i x:
one solve with the transposed factors. In the first stage x = q₁ is found by Newton's method, R = ∂φ/∂q at q₁ and
ρ̄ = φ̄; its multipliers also enter v½ = … + W Cᵀ Λ₀/h, so there λ̄ = C W v̄½/h.

A flow that ends by an event has its duration from G(q₁, v₁) = 0. With ġ = dG/dh along the flow and h̄ the cotangent of
the duration, the event adds −(h̄/ġ) ∇G to the cotangent of (q₁, v₁): the time of impact carries its gradient,
∂h/∂x = −(∂G/∂x)/ġ. Both ġ and h̄ come from the adjoint itself: ġ is the duration's cotangent for the seed ∇G.
References: de Avila Belbute-Peres et al. 2018 (LCP); Kong et al. 2024, "Saltation matrices" (events).
"""

import warp as wp

from physvision.physics.lcp.kernels.linear import solve_transposed

from . import scalar
from .complementarity import assemble, choose, compliance_of, factor_chosen, solutions
from .data import (
    BODY_A,
    BODY_B,
    CUT,
    EDGE_ENDED,
    GAP_CLOSED,
    KIND,
    LEFT,
    LEFT_BAR,
    LIMIT,
    NOTHING,
    OPEN,
    SLIDES,
    WANTED,
    Parts,
    Workspace,
    clear,
    copy,
)
from .edges import past_end
from .flow import mixed_rows
from .forces import accelerate_adjoint, weight_adjoint
from .geometry import add_property, add_row, contact_rows, contact_rows_adjoint
from .joints import joint_row_adjoint


@wp.func
def weighted_speed(t: Workspace, rows: wp.array(dtype=scalar), r: wp.int32, x: wp.array(dtype=scalar)):
    """Row r times W times x."""
    total = scalar(0.0)
    a = 3 * t.row_a[r]
    b = 3 * t.row_b[r]
    for k in range(3):
        total += rows[6 * r + k] * t.weight[a + k] * x[a + k]
        total += rows[6 * r + 3 + k] * t.weight[b + k] * x[b + k]
    return total


@wp.func
def solve_adjoint(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    x_bar: wp.array(dtype=scalar),
):
    """Set κ of all rows (zero where a row is no equation) from Fᵀ κ = C W x̄; return the number of equations."""
    size = s.joint_rows + 2 * contacts
    assemble(s, t, rows, columns, size)
    n = choose(s, t, contacts, mode)
    factor_chosen(s, t, n, mode, slide, size)
    for r in range(size):
        t.kappa[r] = scalar(0.0)
    for again in range(solutions(s, n)):
        for i in range(n):
            r = t.chosen[i]
            t.x[i] = weighted_speed(t, columns, r, x_bar)
            if r >= s.joint_rows:
                contact = (r - s.joint_rows) // 2
                if mode[contact] == SLIDES and slide[contact] != scalar(0.0):
                    t.x[i] = t.x[i] + slide[contact] * weighted_speed(t, columns, r + 1, x_bar)
                if again > 0:
                    t.x[i] = t.x[i] + compliance_of(s, t, r, size) * t.kappa[r]
        solve_transposed(t.factors, t.order, t.x, n)
        for i in range(n):
            t.kappa[t.chosen[i]] = t.x[i]
    return n


@wp.func
def subtract_rows(t: Workspace, rows: wp.array(dtype=scalar), size: wp.int32, z: wp.array(dtype=scalar)):
    """Z −= Rᵀ κ."""
    for r in range(size):
        if t.kappa[r] != scalar(0.0):
            add_row(t, rows, r, -t.kappa[r], z)


@wp.func
def columns_adjoint(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    columns: wp.array(dtype=scalar),
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    multipliers: wp.array(dtype=scalar),
    z: wp.array(dtype=scalar),
    bar: wp.array(dtype=scalar),
):
    """Set `bar` to the cotangent of the columns, C̄ = λ W z, and add those of masses and friction.

    A sliding contact's multipliers are (λ, slide λ), so ∂/∂slide = λ T W z.
    """
    for r in range(s.joint_rows + 2 * contacts):
        a = t.row_a[r]
        b = t.row_b[r]
        force = multipliers[r]
        for k in range(3):
            bar[6 * r + k] = force * t.weight[3 * a + k] * z[3 * a + k]
            bar[6 * r + 3 + k] = force * t.weight[3 * b + k] * z[3 * b + k]
        if force != scalar(0.0):
            c = 6 * r
            if t.weight[3 * a] > scalar(0.0):
                linear = force * (columns[c] * z[3 * a] + columns[c + 1] * z[3 * a + 1])
                weight_adjoint(s, t, a, linear, force * columns[c + 2] * z[3 * a + 2])
            if t.weight[3 * b] > scalar(0.0):
                linear = force * (columns[c + 3] * z[3 * b] + columns[c + 4] * z[3 * b + 1])
                weight_adjoint(s, t, b, linear, force * columns[c + 5] * z[3 * b + 2])
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        if mode[i] == SLIDES and t.coefficient[i] > scalar(0.0) and t.contact[5 * i + KIND] != LIMIT:
            friction_bar = wp.sign(slide[i]) * multipliers[r] * weighted_speed(t, columns, r + 1, z) * scalar(0.5)
            add_property(t, s.friction + t.contact[5 * i + BODY_A], friction_bar)
            add_property(t, s.friction + t.contact[5 * i + BODY_B], friction_bar)


@wp.func
def rows_adjoint(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    q: wp.array(dtype=scalar),
    bar: wp.array(dtype=scalar),
    q_bar: wp.array(dtype=scalar),
):
    """Carry the cotangent of all rows at the pose q to the pose and the properties."""
    for r in range(s.joint_rows):
        joint_row_adjoint(s, t, q, r, bar, scalar(0.0), q_bar)
    for i in range(contacts):
        contact_rows_adjoint(s, t, q, i, bar, s.joint_rows + 2 * i, scalar(0.0), q_bar)


@wp.func
def velocities_adjoint(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """The adjoint of the second stage: from v1_bar to half_bar and v0_bar, added to q1_bar; returns h's cotangent."""
    n = 3 * (s.bodies + 1)
    size = s.joint_rows + 2 * contacts
    copy(t.v1_bar, t.z, n)
    if size > 0:
        solve_adjoint(s, t, contacts, t.rows1, t.rows1, t.mode1, t.slide1, t.v1_bar)
        subtract_rows(t, t.rows1, size, t.z)
        columns_adjoint(s, t, contacts, t.rows1, t.mode1, t.slide1, t.lambda1, t.z, t.columns_bar)
        for r in range(size):
            if t.kappa[r] != scalar(0.0):
                for k in range(3):
                    c = 6 * r + k
                    t.columns_bar[c] = t.columns_bar[c] - t.kappa[r] * t.v1[3 * t.row_a[r] + k]
                    t.columns_bar[c + 3] = t.columns_bar[c + 3] - t.kappa[r] * t.v1[3 * t.row_b[r] + k]
        rows_adjoint(s, t, contacts, t.q1, t.columns_bar, t.q1_bar)
    duration_bar = scalar(0.0)
    for k in range(n):
        t.half_bar[k] = t.z[k]
        t.a_bar[k] = scalar(0.5) * h * t.z[k]
        t.predicted_bar[k] = scalar(0.0)
        duration_bar += scalar(0.5) * t.z[k] * t.a1[k]
    accelerate_adjoint(s, t, t.q1, t.predicted, t.a_bar, t.q1_bar, t.predicted_bar)
    for k in range(n):
        t.half_bar[k] = t.half_bar[k] + scalar(2.0) * t.predicted_bar[k]
        t.v0_bar[k] = -t.predicted_bar[k]
    return duration_bar


@wp.func
def positions_adjoint(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """The adjoint of the first stage: from q1_bar and half_bar to q0_bar, added to v0_bar; returns h's cotangent."""
    n = 3 * (s.bodies + 1)
    size = s.joint_rows + 2 * contacts
    copy(t.q1_bar, t.z, n)
    clear(t.q0_bar, n)
    duration_bar = scalar(0.0)
    if size > 0:
        for k in range(n):
            t.predicted_bar[k] = t.q1_bar[k] + t.half_bar[k] / h
        mixed_rows(s, t, contacts)
        solve_adjoint(s, t, contacts, t.mixed, t.rows0, t.mode0, t.slide0, t.predicted_bar)
        equations_adjoint(s, t, contacts)
        for k in range(n):
            t.predicted_bar[k] = t.z[k] + t.half_bar[k] / h
        columns_adjoint(s, t, contacts, t.rows0, t.mode0, t.slide0, t.lambda0, t.predicted_bar, t.columns_bar)
        for i in range(contacts):
            # A sticking tangent asks T(q₀)·(q₁ − q₀) = 0: its row is the start's.
            r = s.joint_rows + 2 * i + 1
            if t.kappa[r] != scalar(0.0):
                for k in range(3):
                    a = 3 * t.row_a[r] + k
                    b = 3 * t.row_b[r] + k
                    c = 6 * r + k
                    t.columns_bar[c] = t.columns_bar[c] - t.kappa[r] * (t.q1[a] - t.q0[a])
                    t.columns_bar[c + 3] = t.columns_bar[c + 3] - t.kappa[r] * (t.q1[b] - t.q0[b])
                add_row(t, t.rows0, r, t.kappa[r], t.q0_bar)
        rows_adjoint(s, t, contacts, t.q0, t.columns_bar, t.q0_bar)
        for r in range(size):
            if t.lambda0[r] != scalar(0.0):
                duration_bar -= t.lambda0[r] / (h * h) * weighted_speed(t, t.rows0, r, t.half_bar)
    for k in range(n):
        t.q0_bar[k] = t.q0_bar[k] + t.z[k]
        t.v0_bar[k] = t.v0_bar[k] + h * t.z[k] + t.half_bar[k]
        t.a_bar[k] = scalar(0.5) * h * (h * t.z[k] + t.half_bar[k])
        duration_bar += t.z[k] * (t.v0[k] + h * t.a0[k]) + scalar(0.5) * t.half_bar[k] * t.a0[k]
    accelerate_adjoint(s, t, t.q0, t.v0, t.a_bar, t.q0_bar, t.v0_bar)
    return duration_bar


@wp.func
def equations_adjoint(s: Parts, t: Workspace, contacts: wp.int32):
    """Carry −κ, the cotangent of the first stage's equations at q1, to z and the properties; overlaps also to q0."""
    size = s.joint_rows + 2 * contacts
    clear(t.columns_bar, 6 * size)
    for r in range(s.joint_rows):
        joint_row_adjoint(s, t, t.q1, r, t.columns_bar, -t.kappa[r], t.z)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        if t.mode0[i] != OPEN:
            contact_rows_adjoint(s, t, t.q1, i, t.columns_bar, r, -t.kappa[r], t.z)
            if t.target[r] != scalar(0.0):
                contact_rows_adjoint(s, t, t.q0, i, t.columns_bar, r, t.kappa[r], t.q0_bar)
            if t.kappa[r + 1] != scalar(0.0):
                add_row(t, t.rows0, r + 1, -t.kappa[r + 1], t.z)


@wp.func
def flow_adjoint(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    h: scalar,
    seed_q: wp.array(dtype=scalar),
    seed_v: wp.array(dtype=scalar),
    wanted: scalar,
):
    """From seeds at the end of the flow at hand to (q0_bar, v0_bar); returns the duration's cotangent."""
    n = 3 * (s.bodies + 1)
    t.keep[WANTED] = wanted
    copy(seed_q, t.q1_bar, n)
    copy(seed_v, t.v1_bar, n)
    late = velocities_adjoint(s, t, contacts, h)
    return late + positions_adjoint(s, t, contacts, h)


@wp.func
def event_gradient(
    s: Parts, t: Workspace, contacts: wp.int32, event: wp.int32, about: wp.int32, factor: scalar, wanted: scalar
):
    """Set (event_q, event_v) to `factor` ∇G, G the gap that closed or what ended, at (q1, v1).

    Where wanted, G's own share of the properties' cotangents is added: a radius moves the moment of contact.
    """
    n = 3 * (s.bodies + 1)
    clear(t.event_q, n)
    clear(t.event_v, n)
    t.keep[WANTED] = wanted
    if event == GAP_CLOSED:
        r = s.joint_rows + 2 * contacts
        clear(t.columns_bar, 6 * (r + 2))
        contact_rows_adjoint(s, t, t.q1, s.capacity, t.columns_bar, r, factor, t.event_q)
    elif event == EDGE_ENDED:
        r = s.joint_rows + 2 * contacts
        past_end(s, t, t.q1, about // 2, about % 2, t.rows1, r)
        add_row(t, t.rows1, r, factor, t.event_q)
    else:
        # Written anew: a contact that is open has no rows in the flow's own problem.
        r = s.joint_rows + 2 * contacts
        contact_rows(s, t, t.q1, about, t.rows1, r)
        clear(t.columns_bar, 6 * (r + 2))
        add_row(t, t.rows1, r + 1, factor, t.event_v)
        for k in range(3):
            t.columns_bar[6 * r + 6 + k] = factor * t.v1[3 * t.row_a[r] + k]
            t.columns_bar[6 * r + 9 + k] = factor * t.v1[3 * t.row_b[r] + k]
        contact_rows_adjoint(s, t, t.q1, about, t.columns_bar, r, scalar(0.0), t.event_q)


@wp.func
def flow_backward(s: Parts, t: Workspace, contacts: wp.int32, h: scalar, event: wp.int32, about: wp.int32):
    """The adjoint of the flow at hand, from (seed_q, seed_v) to (q0_bar, v0_bar), its end by an event included.

    `keep` holds the cotangent of the time that is left after the flow, and then before it.
    """
    if event == CUT:
        # The flow takes a share of the time left.
        share = h / t.keep[LEFT]
        bar = flow_adjoint(s, t, contacts, h, t.seed_q, t.seed_v, scalar(1.0))
        t.keep[LEFT_BAR] = share * bar + (scalar(1.0) - share) * t.keep[LEFT_BAR]
    elif event == NOTHING:
        t.keep[LEFT_BAR] = flow_adjoint(s, t, contacts, h, t.seed_q, t.seed_v, scalar(1.0))
    else:
        total = flow_adjoint(s, t, contacts, h, t.seed_q, t.seed_v, scalar(0.0)) - t.keep[LEFT_BAR]
        event_gradient(s, t, contacts, event, about, scalar(1.0), scalar(0.0))
        rate = flow_adjoint(s, t, contacts, h, t.event_q, t.event_v, scalar(0.0))
        factor = scalar(0.0)
        if wp.abs(rate) > s.rest_speed:
            factor = -total / rate
        event_gradient(s, t, contacts, event, about, factor, scalar(1.0))
        for k in range(3 * (s.bodies + 1)):
            t.event_q[k] = t.event_q[k] + t.seed_q[k]
            t.event_v[k] = t.event_v[k] + t.seed_v[k]
        flow_adjoint(s, t, contacts, h, t.event_q, t.event_v, scalar(1.0))
