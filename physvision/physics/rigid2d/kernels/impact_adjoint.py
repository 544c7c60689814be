"""Adjoint of an impact; the derivation stands in `adjoint`, with ρ = e R v⁻ besides."""

import warp as wp

from physvision.physics.lcp.kernels.contact_solver import solve_contacts_adjoint, subtract_row_forces
from physvision.physics.lcp.kernels.problem import clear, copy
from physvision.physics.lcp.kernels.rows import add_row, row_velocity

from .adjoint import columns_adjoint, rows_adjoint
from .data import BODY_A, BODY_B, Data, Model
from .forces import free_acceleration
from .geometry import add_property_cotangent, contact_rows_adjoint
from .narrow_phase import contact_properties
from .precision import scalar
from .smooth_step import prepare_smooth_step, smooth_step


@wp.func
def impact_adjoint(m: Model, d: Data, contacts: int):
    """Carry (seed_q, seed_v) after the impact at hand to (q0_bar, v0_bar) before it."""
    n = 3 * (m.bodies + 1)
    size = m.joint_rows + 2 * contacts
    d.property_mask = scalar(1.0)
    copy(d.seed_q, d.q0_bar, n)
    copy(d.seed_v, d.z, n)
    solve_contacts_adjoint(d.lcp, contacts, d.rows0, d.rows0, d.mode0, d.ratio0, d.seed_v)
    subtract_row_forces(d.lcp, d.rows0, size, d.z)
    columns_adjoint(m, d, contacts, d.rows0, d.mode0, d.ratio0, d.lambda0, d.z, d.rows_bar)
    copy(d.z, d.v0_bar, n)
    for r in range(size):
        if d.lcp.row_adjoint[r] != scalar(0.0):
            restitution = scalar(0.0)
            if r >= m.joint_rows and (r - m.joint_rows) % 2 == 0:
                contact = (r - m.joint_rows) // 2
                restitution = d.restitution[contact]
                if restitution > scalar(0.0):
                    # The part of the pair's restitution that an impact keeps is a constant factor.
                    pair_restitution, _friction = contact_properties(m, d, contact)
                    bar = (
                        scalar(-0.5)
                        * restitution
                        / pair_restitution
                        * d.lcp.row_adjoint[r]
                        * row_velocity(d.lcp, d.rows0, r, d.v0)
                    )
                    add_property_cotangent(d, m.restitution + d.contact_features[5 * contact + BODY_A], bar)
                    add_property_cotangent(d, m.restitution + d.contact_features[5 * contact + BODY_B], bar)
            for k in range(3):
                a = 3 * d.lcp.row_a[r] + k
                b = 3 * d.lcp.row_b[r] + k
                c = 6 * r + k
                d.rows_bar[c] = d.rows_bar[c] - d.lcp.row_adjoint[r] * (d.v1[a] + restitution * d.v0[a])
                d.rows_bar[c + 3] = d.rows_bar[c + 3] - d.lcp.row_adjoint[r] * (d.v1[b] + restitution * d.v0[b])
            add_row(d.lcp, d.rows0, r, -restitution * d.lcp.row_adjoint[r], d.v0_bar)
    rows_adjoint(m, d, contacts, d.q0, d.rows_bar, d.q0_bar)


@wp.func
def event_adjoint(m: Model, d: Data, index: int):
    """Add the effect of the impact's time to (q0_bar, v0_bar) before an impact at a step's start.

    The time shifts as the separation does. It is a smooth step of no duration h, ended by the separation: h̄ = q̄·v +
    v̄·a less the cotangent of the time left, ġ = ∇separation·v, and −(h̄/ġ) ∇separation. With joints, a is their
    acceleration: that of a short step, to first order in its duration.
    """
    n = 3 * (m.bodies + 1)
    r = m.joint_rows + 2 * index
    rate = row_velocity(d.lcp, d.rows0, r, d.v0)
    duration_bar = -d.time_left_bar
    free_acceleration(m, d, d.q0, d.v0, d.a0)
    for k in range(n):
        duration_bar += d.q0_bar[k] * d.v0[k] + d.v0_bar[k] * d.a0[k]
    if m.joint_rows > 0:
        clear(d.lambda0, m.joint_rows)
        h = scalar(1.0e-4) * m.dt
        prepare_smooth_step(m, d, 0)
        smooth_step(m, d, 0, h)
        for k in range(n):
            duration_bar += d.v0_bar[k] * ((d.v1[k] - d.v0[k]) / h - d.a0[k])
    d.property_mask = scalar(1.0)
    clear(d.rows_bar, 6 * (r + 2))
    contact_rows_adjoint(m, d, d.q0, index, d.rows_bar, r, -duration_bar / rate, d.q0_bar)
