"""The adjoint of an impact; the derivation stands in `adjoint`, with ρ = e R v⁻ besides."""

import warp as wp

from . import scalar
from .adjoint import columns_adjoint, rows_adjoint, solve_adjoint, subtract_rows
from .data import BODY_A, BODY_B, LEFT_BAR, WANTED, Parts, Workspace, clear, copy
from .detect import properties_of
from .flow import advance, prepare_flow
from .forces import accelerate
from .geometry import add_property, add_row, contact_rows_adjoint, row_speed


@wp.func
def impact_adjoint(s: Parts, t: Workspace, contacts: wp.int32):
    """The adjoint of the impact at hand, from (seed_q, seed_v) after it to (q0_bar, v0_bar) before it."""
    n = 3 * (s.bodies + 1)
    size = s.joint_rows + 2 * contacts
    t.keep[WANTED] = scalar(1.0)
    copy(t.seed_q, t.q0_bar, n)
    copy(t.seed_v, t.z, n)
    solve_adjoint(s, t, contacts, t.rows0, t.rows0, t.mode0, t.slide0, t.seed_v)
    subtract_rows(t, t.rows0, size, t.z)
    columns_adjoint(s, t, contacts, t.rows0, t.mode0, t.slide0, t.lambda0, t.z, t.columns_bar)
    copy(t.z, t.v0_bar, n)
    for r in range(size):
        if t.kappa[r] != scalar(0.0):
            restitution = scalar(0.0)
            if r >= s.joint_rows and (r - s.joint_rows) % 2 == 0:
                contact = (r - s.joint_rows) // 2
                restitution = t.rebound[contact]
                if restitution > scalar(0.0):
                    # What an impact keeps of the pair's own restitution is a factor that does not change.
                    own, _friction = properties_of(s, t, contact)
                    bar = scalar(-0.5) * restitution / own * t.kappa[r] * row_speed(t, t.rows0, r, t.v0)
                    add_property(t, s.restitution + t.contact[5 * contact + BODY_A], bar)
                    add_property(t, s.restitution + t.contact[5 * contact + BODY_B], bar)
            for k in range(3):
                a = 3 * t.row_a[r] + k
                b = 3 * t.row_b[r] + k
                c = 6 * r + k
                t.columns_bar[c] = t.columns_bar[c] - t.kappa[r] * (t.v1[a] + restitution * t.v0[a])
                t.columns_bar[c + 3] = t.columns_bar[c + 3] - t.kappa[r] * (t.v1[b] + restitution * t.v0[b])
            add_row(t, t.rows0, r, -restitution * t.kappa[r], t.v0_bar)
    rows_adjoint(s, t, contacts, t.q0, t.columns_bar, t.q0_bar)


@wp.func
def event_adjoint(s: Parts, t: Workspace, about: wp.int32):
    """Add, to (q0_bar, v0_bar) before an impact that fell on the grid, that its time moves with its contact's gap.

    A flow of no duration, ended by the gap: h̄ = q̄·v + v̄·a less the cotangent of the time left, ġ = ∇gap·v, and
    −(h̄/ġ) ∇gap. With joints, a is their acceleration: that of a short flow, to first order in its duration.
    """
    n = 3 * (s.bodies + 1)
    r = s.joint_rows + 2 * about
    rate = row_speed(t, t.rows0, r, t.v0)
    total = -t.keep[LEFT_BAR]
    accelerate(s, t, t.q0, t.v0, t.a0)
    for k in range(n):
        total += t.q0_bar[k] * t.v0[k] + t.v0_bar[k] * t.a0[k]
    if s.joint_rows > 0:
        clear(t.lambda0, s.joint_rows)
        h = scalar(1.0e-4) * s.dt
        prepare_flow(s, t, 0)
        advance(s, t, 0, h)
        for k in range(n):
            total += t.v0_bar[k] * ((t.v1[k] - t.v0[k]) / h - t.a0[k])
    t.keep[WANTED] = scalar(1.0)
    clear(t.columns_bar, 6 * (r + 2))
    contact_rows_adjoint(s, t, t.q0, about, t.columns_bar, r, -total / rate, t.q0_bar)
