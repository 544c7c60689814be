"""The adjoint of a crowded step: of its velocities, and of each correction of positions, from the last to the first.

Both have the form of `adjoint`: x = x° + W Cᵀ λ with C x + ρ = 0 over the rows that hold. For velocities x° = v₀ + h a
and ρ = gap/h or e C v₀; for a correction x° = 0, x = dq and ρ = gap. The derivative is the one of the problem at what
its contacts were found to do; κ comes from the transposed system of `system`. What comes to rest stays where it was.
"""

import warp as wp

from . import scalar
from .adjoint import columns_adjoint, subtract_rows
from .crowd import CORRECTIONS, crowd
from .data import (
    BODY_A,
    BODY_B,
    CONTACTS,
    CUT,
    LEFT,
    LEFT_BAR,
    OPEN,
    RELAXED,
    SLIDES,
    SOFTNESS,
    WANTED,
    Parts,
    Workspace,
    clear,
    copy,
)
from .forces import accelerate_adjoint, weight_adjoint
from .geometry import add_property, add_row, contact_rows_adjoint, row_speed
from .islands import came_to_rest
from .joints import joint_row_adjoint
from .system import factor_system, number_unknowns, own_couplings, solve_system_transposed, spread, stiffen
from .trial import rubs


@wp.func
def compliance_adjoint(s: Parts, t: Workspace, rows: wp.array(dtype=scalar), r: wp.int32):
    """Add to the cotangents of row r and of masses that it yields by a share of its own coupling, ε (R W Rᵀ) λ."""
    bar = -t.kappa[r] * t.keep[SOFTNESS] * t.lambda0[r]
    for side in range(2):
        body = t.row_a[r]
        if side == 1:
            body = t.row_b[r]
        c = 6 * r + 3 * side
        for k in range(3):
            t.columns_bar[c + k] = t.columns_bar[c + k] + scalar(2.0) * bar * t.weight[3 * body + k] * rows[c + k]
        if t.weight[3 * body] > scalar(0.0):
            linear = bar * (rows[c] * rows[c] + rows[c + 1] * rows[c + 1])
            weight_adjoint(s, t, body, linear, bar * rows[c + 2] * rows[c + 2])


@wp.func
def solution_adjoint(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    rows: wp.array(dtype=scalar),
    x: wp.array(dtype=scalar),
    x_bar: wp.array(dtype=scalar),
):
    """From the cotangent of x to z, that of x°; −κ is that of ρ, and `columns_bar` that of the rows."""
    size = s.joint_rows + 2 * contacts
    n = number_unknowns(s, t, contacts)
    own_couplings(s, t, contacts, rows, rows)
    stiffen(s, t, contacts, t.mode0, t.slide0)
    factor_system(s, t, contacts, n, rows, rows)
    clear(t.unknown, n)
    for body in range(s.bodies):
        if t.place[body] >= 0:
            for k in range(3):
                t.unknown[t.place[body] + k] = x_bar[3 * body + k]
    solve_system_transposed(t, n)
    spread(s, t)
    for r in range(s.joint_rows):
        t.kappa[r] = scalar(0.0)
        if t.joint_place[r] >= 0:
            t.kappa[r] = t.unknown[t.joint_place[r]]
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        normal = row_speed(t, rows, r, t.shift)
        tangent = row_speed(t, rows, r + 1, t.shift)
        t.kappa[r] = t.stiff[4 * i] * normal + t.stiff[4 * i + 2] * tangent
        t.kappa[r + 1] = t.stiff[4 * i + 1] * normal + t.stiff[4 * i + 3] * tangent
    copy(x_bar, t.z, 3 * (s.bodies + 1))
    subtract_rows(t, rows, size, t.z)
    columns_adjoint(s, t, contacts, rows, t.mode0, t.slide0, t.lambda0, t.z, t.columns_bar)
    for r in range(size):
        if t.kappa[r] != scalar(0.0):
            for k in range(3):
                c = 6 * r + k
                t.columns_bar[c] = t.columns_bar[c] - t.kappa[r] * x[3 * t.row_a[r] + k]
                t.columns_bar[c + 3] = t.columns_bar[c + 3] - t.kappa[r] * x[3 * t.row_b[r] + k]
            if r >= s.joint_rows:
                compliance_adjoint(s, t, rows, r)


@wp.func
def correction_adjoint(s: Parts, t: Workspace, contacts: wp.int32):
    """Carry seed_q back through the correction at hand, which started from `event_q`."""
    solution_adjoint(s, t, contacts, t.rows1, t.half, t.seed_q)
    for r in range(s.joint_rows):
        joint_row_adjoint(s, t, t.event_q, r, t.columns_bar, -t.kappa[r], t.seed_q)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        if t.mode0[i] != OPEN:
            gap_bar = -t.kappa[r]
            if t.target[r] == scalar(0.0):
                gap_bar = scalar(0.0)
            contact_rows_adjoint(s, t, t.event_q, i, t.columns_bar, r, gap_bar, t.seed_q)


@wp.func
def velocities_adjoint(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """Carry (seed_q, seed_v) after the first stage to (q0_bar, v0_bar)."""
    n = 3 * (s.bodies + 1)
    duration_bar = scalar(0.0)
    copy(t.seed_q, t.q0_bar, n)
    clear(t.v0_bar, n)
    for k in range(n):
        share = scalar(1.0)
        if t.half[3 * (k // 3)] == scalar(0.0):
            share = scalar(0.5)
            t.v0_bar[k] = scalar(0.5) * h * t.seed_q[k]
            duration_bar += scalar(0.5) * t.seed_q[k] * t.v0[k]
        t.v1_bar[k] = t.seed_v[k] + share * h * t.seed_q[k]
        duration_bar += share * t.seed_q[k] * t.v1[k]
    solution_adjoint(s, t, contacts, t.rows0, t.v1, t.v1_bar)
    for r in range(s.joint_rows):
        joint_row_adjoint(s, t, t.q0, r, t.columns_bar, scalar(0.0), t.q0_bar)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        if t.mode0[i] != OPEN:
            gap_bar = scalar(0.0)
            kappa = t.kappa[r]
            if t.rebound[i] > scalar(0.0):
                bar = scalar(-0.5) * kappa * row_speed(t, t.rows0, r, t.v0)
                add_property(t, s.restitution + t.contact[5 * i + BODY_A], bar)
                add_property(t, s.restitution + t.contact[5 * i + BODY_B], bar)
                for k in range(3):
                    c = 6 * r + k
                    t.columns_bar[c] = t.columns_bar[c] - kappa * t.rebound[i] * t.v0[3 * t.row_a[r] + k]
                    t.columns_bar[c + 3] = t.columns_bar[c + 3] - kappa * t.rebound[i] * t.v0[3 * t.row_b[r] + k]
                add_row(t, t.rows0, r, -kappa * t.rebound[i], t.v0_bar)
            elif t.target[r] == t.gap[i] / h:
                gap_bar = -kappa / h
                duration_bar += kappa * t.gap[i] / (h * h)
            if t.keep[RELAXED] > scalar(0.0) and t.mode0[i] == SLIDES and rubs(t, i) == 1:
                # Its row is N + slide T, too, and yields by slide² of what its tangent does, beside the column's slide.
                slip = wp.sign(t.slide0[i]) * row_speed(t, t.rows0, r + 1, t.v1)
                yields = t.keep[SOFTNESS] * t.own[r + 1] * t.lambda0[r]
                bar = scalar(-0.5) * kappa * (slip + scalar(2.0) * t.coefficient[i] * yields)
                add_property(t, s.friction + t.contact[5 * i + BODY_A], bar)
                add_property(t, s.friction + t.contact[5 * i + BODY_B], bar)
            contact_rows_adjoint(s, t, t.q0, i, t.columns_bar, r, gap_bar, t.q0_bar)
    for k in range(n):
        t.v0_bar[k] = t.v0_bar[k] + t.z[k]
        t.a_bar[k] = h * t.z[k]
        duration_bar += t.z[k] * t.a0[k]
    accelerate_adjoint(s, t, t.q0, t.v0, t.a_bar, t.q0_bar, t.v0_bar)
    t.keep[LEFT_BAR] = duration_bar


@wp.func
def set_rest_apart(s: Parts, t: Workspace):
    """Move to `event_v` the cotangents of what came to rest in the step at hand: q₁ = q₀ and v₁ = 0 there."""
    for body in range(s.bodies):
        rests = came_to_rest(s, t, body)
        for k in range(3 * body, 3 * body + 3):
            t.event_v[k] = scalar(0.0)
            if rests == 1:
                t.event_v[k] = t.seed_q[k]
                t.seed_q[k] = scalar(0.0)
                t.seed_v[k] = scalar(0.0)


@wp.func
def crowd_adjoint(s: Parts, t: Workspace, h: scalar, event: wp.int32):
    """The adjoint of the crowded step from the start at hand, from (seed_q, seed_v) to (q0_bar, v0_bar).

    What is done again is done from the same guess: from the answer, the search might end at another.
    """
    n = 3 * (s.bodies + 1)
    t.keep[WANTED] = scalar(1.0)
    later = t.keep[LEFT_BAR]
    corrections = crowd(s, t, h, CORRECTIONS)
    clear(t.event_v, n)
    if h > scalar(0.0):
        set_rest_apart(s, t)
    for back in range(corrections):
        crowd(s, t, h, corrections - back)
        for k in range(n):
            t.event_q[k] = t.q1[k] - t.half[k]
        correction_adjoint(s, t, t.counts[CONTACTS])
    if h > scalar(0.0):
        crowd(s, t, h, 0)
        velocities_adjoint(s, t, t.counts[CONTACTS], h)
    else:
        copy(t.seed_q, t.q0_bar, n)
        copy(t.seed_v, t.v0_bar, n)
    for k in range(n):
        t.q0_bar[k] = t.q0_bar[k] + t.event_v[k]
    if h == scalar(0.0):
        t.keep[LEFT_BAR] = later
    elif event == CUT:
        share = h / t.keep[LEFT]
        t.keep[LEFT_BAR] = share * t.keep[LEFT_BAR] + (scalar(1.0) - share) * later
