"""Impacts: velocities jump by Newton's law of restitution, while joints and Coulomb friction are satisfied.

With v⁻ before and v⁺ = v⁻ + W Rᵀ η after, rows R at the pose: joints R v⁺ = 0; normals 0 ≤ η ⟂ R (v⁺ + e v⁻) ≥ 0 where
they approach, with e = 0 where they do not; tangents R v⁺ = 0 or at the friction bound.
"""

import warp as wp

from physvision.physics.lcp.kernels.contact_solver import solve_contacts
from physvision.physics.lcp.kernels.problem import copy
from physvision.physics.lcp.kernels.rows import apply_impulses, row_velocity

from .data import Data, Model
from .geometry import contact_rows
from .joints import joint_row
from .narrow_phase import contact_properties
from .precision import scalar
from .smooth_step import close_contacts


@wp.func
def prepare_impact(m: Model, d: Data, contacts: int):
    """Set the rows at the pose, and the friction and restitution of each contact."""
    for r in range(m.joint_rows):
        joint_row(m, d, d.q0, r, d.rows0)
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        contact_rows(m, d, d.q0, i, d.rows0, r)
        restitution, friction = contact_properties(m, d, i)
        d.lcp.friction[i] = friction
        d.lcp.sliding[i] = 0
        d.ratio0[i] = scalar(0.0)
        approach = row_velocity(d.lcp, d.rows0, r, d.v0)
        d.restitution[i] = wp.where(approach < scalar(0.0), restitution, scalar(0.0))


@wp.func
def energy_gain(m: Model, d: Data, size: int):
    """Return the gain of kinetic energy in the impact, as a fraction of the energy before.

    The work of kinematic bodies does not count as a gain.
    """
    before = scalar(0.0)
    after = scalar(0.0)
    for k in range(3 * (m.bodies + 1)):
        if d.lcp.inverse_mass[k] > scalar(0.0):
            before += d.v0[k] * d.v0[k] / d.lcp.inverse_mass[k]
            after += d.v1[k] * d.v1[k] / d.lcp.inverse_mass[k]
    for r in range(size):
        for k in range(3):
            a = 3 * d.lcp.row_a[r] + k
            b = 3 * d.lcp.row_b[r] + k
            if d.lcp.inverse_mass[a] == scalar(0.0):
                after += scalar(2.0) * d.lambda0[r] * d.rows0[6 * r + k] * d.v0[a]
            if d.lcp.inverse_mass[b] == scalar(0.0):
                after += scalar(2.0) * d.lambda0[r] * d.rows0[6 * r + 3 + k] * d.v0[b]
    return after / wp.max(before, scalar(1.0e-300)) - scalar(1.0)


@wp.func
def solve_impact(m: Model, d: Data, contacts: int):
    """Set v1 to the velocities after the impact, with the coefficients in `restitution`."""
    size = m.joint_rows + 2 * contacts
    for r in range(m.joint_rows):
        d.lcp.offset[r] = row_velocity(d.lcp, d.rows0, r, d.v0)
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        d.lcp.offset[r] = (scalar(1.0) + d.restitution[i]) * row_velocity(d.lcp, d.rows0, r, d.v0)
        d.lcp.offset[r + 1] = row_velocity(d.lcp, d.rows0, r + 1, d.v0)
    close_contacts(m, d, contacts, d.mode0, d.ratio0, scalar(1.0))
    solve_contacts(d.lcp, contacts, d.rows0, d.rows0, d.mode0, d.ratio0, d.lambda0, scalar(1.0))
    copy(d.v0, d.v1, 3 * (m.bodies + 1))
    apply_impulses(d.lcp, d.rows0, d.lambda0, size, d.v1)


@wp.func
def impact(m: Model, d: Data, contacts: int):
    """Set v1 to the velocities after the impact of all touching contacts.

    With friction, or with contacts of different restitution, Newton's law can add energy (Kane, 1984). Then every
    restitution is halved until it does not; an impact without restitution never adds energy.
    """
    prepare_impact(m, d, contacts)
    solve_impact(m, d, contacts)
    halvings = wp.int32(0)
    while (
        energy_gain(m, d, m.joint_rows + 2 * contacts) > m.settings.max_impact_energy_gain
        and halvings < m.settings.max_restitution_halvings
    ):
        halvings += 1
        for i in range(contacts):
            d.restitution[i] = d.restitution[i] * scalar(0.5)
            if halvings == m.settings.max_restitution_halvings:
                d.restitution[i] = scalar(0.0)
        solve_impact(m, d, contacts)
    copy(d.q0, d.q1, 3 * (m.bodies + 1))
