"""Adjoint of a fallback step: of its velocities, and of each position correction, from the last to the first.

Both have the form of `adjoint`: x = x° + W Cᵀ λ with C x + ρ = 0 over the active rows. For velocities x° = v₀ + h a and
ρ = separation/h or e C v₀; for a correction x° = 0, x = dq and ρ = separation. The derivative is that of the problem at
its contact modes; κ comes from the transposed system of `sparse_system`. Frozen bodies stay where they were.
"""

import warp as wp

from physvision.physics.lcp.kernels.active_set import has_free_friction
from physvision.physics.lcp.kernels.contact_solver import subtract_row_forces
from physvision.physics.lcp.kernels.problem import OPEN, SLIDE, bind_contacts, clear, copy
from physvision.physics.lcp.kernels.rows import add_row, row_body, row_velocity
from physvision.physics.lcp.kernels.sparse_system import (
    delassus_diagonal,
    factor_system,
    number_unknowns,
    scatter_solution,
    set_contact_stiffness,
    solve_system_transposed,
)

from .adjoint import columns_adjoint
from .data import BODY_A, BODY_B, STEP_CUT, Data, Model
from .fallback_step import fallback_step
from .forces import free_acceleration_adjoint, inverse_mass_adjoint
from .geometry import add_property_cotangent, contact_rows_adjoint
from .joints import joint_row_adjoint
from .precision import Array1d, scalar
from .sleeping import is_frozen


@wp.func
def compliance_adjoint(m: Model, d: Data, rows: Array1d, r: int):
    """Add the cotangents of row r's compliance, ε (R W Rᵀ) λ, to those of the row and of masses."""
    bar = -d.lcp.row_adjoint[r] * d.lcp.softness * d.lambda0[r]
    for side in range(2):
        body = row_body(d.lcp, r, side)
        c = 6 * r + 3 * side
        for k in range(3):
            d.rows_bar[c + k] = d.rows_bar[c + k] + scalar(2.0) * bar * d.lcp.inverse_mass[3 * body + k] * rows[c + k]
        if d.lcp.inverse_mass[3 * body] > scalar(0.0):
            linear = bar * (rows[c] * rows[c] + rows[c + 1] * rows[c + 1])
            inverse_mass_adjoint(m, d, body, linear, bar * rows[c + 2] * rows[c + 2])


@wp.func
def solution_adjoint(m: Model, d: Data, contacts: int, rows: Array1d, x: Array1d, x_bar: Array1d):
    """Carry the cotangent of x to z, that of x°; −κ is that of ρ, and `rows_bar` that of the rows."""
    size = m.joint_rows + 2 * contacts
    bind_contacts(d.lcp, rows, rows, d.mode0, d.ratio0)
    n = number_unknowns(d.lcp, contacts)
    delassus_diagonal(d.lcp, contacts)
    set_contact_stiffness(d.lcp, contacts)
    factor_system(d.lcp, contacts, n)
    clear(d.lcp.unknowns, n)
    for body in range(m.bodies):
        if d.lcp.body_unknown[body] >= 0:
            for k in range(3):
                d.lcp.unknowns[d.lcp.body_unknown[body] + k] = x_bar[3 * body + k]
    solve_system_transposed(d.lcp, n)
    scatter_solution(d.lcp)
    for r in range(m.joint_rows):
        d.lcp.row_adjoint[r] = scalar(0.0)
        if d.lcp.joint_unknown[r] >= 0:
            d.lcp.row_adjoint[r] = d.lcp.unknowns[d.lcp.joint_unknown[r]]
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        normal = row_velocity(d.lcp, rows, r, d.lcp.displacement)
        tangent = row_velocity(d.lcp, rows, r + 1, d.lcp.displacement)
        d.lcp.row_adjoint[r] = d.lcp.stiffness[4 * i] * normal + d.lcp.stiffness[4 * i + 2] * tangent
        d.lcp.row_adjoint[r + 1] = d.lcp.stiffness[4 * i + 1] * normal + d.lcp.stiffness[4 * i + 3] * tangent
    copy(x_bar, d.z, 3 * (m.bodies + 1))
    subtract_row_forces(d.lcp, rows, size, d.z)
    columns_adjoint(m, d, contacts, rows, d.mode0, d.ratio0, d.lambda0, d.z, d.rows_bar)
    for r in range(size):
        if d.lcp.row_adjoint[r] != scalar(0.0):
            for k in range(3):
                c = 6 * r + k
                d.rows_bar[c] = d.rows_bar[c] - d.lcp.row_adjoint[r] * x[3 * d.lcp.row_a[r] + k]
                d.rows_bar[c + 3] = d.rows_bar[c + 3] - d.lcp.row_adjoint[r] * x[3 * d.lcp.row_b[r] + k]
            if r >= m.joint_rows:
                compliance_adjoint(m, d, rows, r)


@wp.func
def correction_adjoint(m: Model, d: Data, contacts: int):
    """Carry seed_q back through the correction at hand, which started from `event_q`."""
    solution_adjoint(m, d, contacts, d.rows1, d.v_mid, d.seed_q)
    for r in range(m.joint_rows):
        joint_row_adjoint(m, d, d.event_q, r, d.rows_bar, -d.lcp.row_adjoint[r], d.seed_q)
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        if d.mode0[i] != OPEN:
            separation_bar = wp.where(d.target[r] == scalar(0.0), scalar(0.0), -d.lcp.row_adjoint[r])
            contact_rows_adjoint(m, d, d.event_q, i, d.rows_bar, r, separation_bar, d.seed_q)


@wp.func
def velocity_stage_adjoint(m: Model, d: Data, contacts: int, h: scalar):
    """Carry (seed_q, seed_v) after the velocities to (q0_bar, v0_bar)."""
    n = 3 * (m.bodies + 1)
    duration_bar = scalar(0.0)
    copy(d.seed_q, d.q0_bar, n)
    clear(d.v0_bar, n)
    for k in range(n):
        fraction = scalar(1.0)
        if d.v_mid[3 * (k // 3)] == scalar(0.0):
            fraction = scalar(0.5)
            d.v0_bar[k] = scalar(0.5) * h * d.seed_q[k]
            duration_bar += scalar(0.5) * d.seed_q[k] * d.v0[k]
        d.v1_bar[k] = d.seed_v[k] + fraction * h * d.seed_q[k]
        duration_bar += fraction * d.seed_q[k] * d.v1[k]
    solution_adjoint(m, d, contacts, d.rows0, d.v1, d.v1_bar)
    for r in range(m.joint_rows):
        joint_row_adjoint(m, d, d.q0, r, d.rows_bar, scalar(0.0), d.q0_bar)
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        if d.mode0[i] != OPEN:
            separation_bar = scalar(0.0)
            kappa = d.lcp.row_adjoint[r]
            if d.restitution[i] > scalar(0.0):
                bar = scalar(-0.5) * kappa * row_velocity(d.lcp, d.rows0, r, d.v0)
                add_property_cotangent(d, m.restitution + d.contact_features[5 * i + BODY_A], bar)
                add_property_cotangent(d, m.restitution + d.contact_features[5 * i + BODY_B], bar)
                for k in range(3):
                    c = 6 * r + k
                    d.rows_bar[c] = d.rows_bar[c] - kappa * d.restitution[i] * d.v0[3 * d.lcp.row_a[r] + k]
                    d.rows_bar[c + 3] = d.rows_bar[c + 3] - kappa * d.restitution[i] * d.v0[3 * d.lcp.row_b[r] + k]
                add_row(d.lcp, d.rows0, r, -kappa * d.restitution[i], d.v0_bar)
            elif d.target[r] == d.separation[i] / h:
                separation_bar = -kappa / h
                duration_bar += kappa * d.separation[i] / (h * h)
            if d.lcp.relaxation > scalar(0.0) and d.mode0[i] == SLIDE and has_free_friction(d.lcp, i) == 1:
                # Its row is N + ratio T, too, and yields by ratio² of its tangent's compliance.
                slip = wp.sign(d.ratio0[i]) * row_velocity(d.lcp, d.rows0, r + 1, d.v1)
                sinking = d.lcp.softness * d.lcp.diagonal[r + 1] * d.lambda0[r]
                bar = scalar(-0.5) * kappa * (slip + scalar(2.0) * d.lcp.friction[i] * sinking)
                add_property_cotangent(d, m.friction + d.contact_features[5 * i + BODY_A], bar)
                add_property_cotangent(d, m.friction + d.contact_features[5 * i + BODY_B], bar)
            contact_rows_adjoint(m, d, d.q0, i, d.rows_bar, r, separation_bar, d.q0_bar)
    for k in range(n):
        d.v0_bar[k] = d.v0_bar[k] + d.z[k]
        d.a_bar[k] = h * d.z[k]
        duration_bar += d.z[k] * d.a0[k]
    free_acceleration_adjoint(m, d, d.q0, d.v0, d.a_bar, d.q0_bar, d.v0_bar)
    d.time_left_bar = duration_bar


@wp.func
def split_frozen_cotangents(m: Model, d: Data):
    """Move the cotangents of frozen bodies to `event_v`: q₁ = q₀ and v₁ = 0 there."""
    for body in range(m.bodies):
        frozen = is_frozen(d, body)
        for k in range(3 * body, 3 * body + 3):
            d.event_v[k] = scalar(0.0)
            if frozen == 1:
                d.event_v[k] = d.seed_q[k]
                d.seed_q[k] = scalar(0.0)
                d.seed_v[k] = scalar(0.0)


@wp.func
def fallback_step_adjoint(m: Model, d: Data, h: scalar, event: int):
    """Carry (seed_q, seed_v) through the fallback step from the start at hand to (q0_bar, v0_bar).

    Steps are repeated from the same guess: from the solution, the search might end at another.
    """
    n = 3 * (m.bodies + 1)
    d.property_mask = scalar(1.0)
    later_bar = d.time_left_bar
    corrections = fallback_step(m, d, h, m.settings.max_corrections)
    clear(d.event_v, n)
    if h > scalar(0.0):
        split_frozen_cotangents(m, d)
    for back in range(corrections):
        fallback_step(m, d, h, corrections - back)
        for k in range(n):
            d.event_q[k] = d.q1[k] - d.v_mid[k]
        correction_adjoint(m, d, d.contacts)
    if h > scalar(0.0):
        fallback_step(m, d, h, 0)
        velocity_stage_adjoint(m, d, d.contacts, h)
    else:
        copy(d.seed_q, d.q0_bar, n)
        copy(d.seed_v, d.v0_bar, n)
    for k in range(n):
        d.q0_bar[k] = d.q0_bar[k] + d.event_v[k]
    if h == scalar(0.0):
        d.time_left_bar = later_bar
    elif event == STEP_CUT:
        fraction = h / d.time_left
        d.time_left_bar = fraction * d.time_left_bar + (scalar(1.0) - fraction) * later_bar
