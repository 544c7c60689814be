"""Fallback step of a world with too many events: one complementarity problem over all contacts that may close.

With duration h, rows C at the start, free accelerations a and v° = v₀ + h a, velocities are
    v₁ = v° + W Cᵀ λ,    joints C v₁ = 0,    normals 0 ≤ λ ⟂ C v₁ + ρ ≥ 0,    tangents within the friction bound,
where ρ = separation/h for open separations (they may close in h and no sooner), and ρ = e C v₀ for touching contacts
that impact. Then q₁ = q₀ + h v₁, or a parabola for bodies without contact load. The least displacement in the mass norm
removes the remaining penetrations and joint errors: q += W Rᵀ π with R W Rᵀ π + separation ≥ 0, repeated a few times.

The mode search of `physvision.physics.lcp` finds the contact modes. Islands at rest are frozen. No solution adds
kinetic energy: if one would, restitution is set to zero and then, if necessary, the impulse is scaled down.
"""

import warp as wp

from physvision.physics.lcp.kernels.mode_search import search_modes
from physvision.physics.lcp.kernels.problem import OPEN, SLIDE, STICK, clear, copy
from physvision.physics.lcp.kernels.rows import apply_impulses, row_body, row_velocity

from .data import Data, Model
from .forces import free_acceleration
from .geometry import contact_rows
from .joints import joint_row
from .narrow_phase import contact_properties, find_speculative_contacts
from .precision import Array1d, scalar
from .sleeping import freeze_resting_bodies, set_rest_thresholds, wake_all, wake_contacted
from .warm_start import store_modes, warm_start_modes


@wp.func
def apply_multipliers(m: Model, d: Data, contacts: int, rows: Array1d, x: Array1d):
    """Set x to `unconstrained` plus the effect of the multipliers in lambda0."""
    copy(d.unconstrained, x, 3 * (m.bodies + 1))
    apply_impulses(d.lcp, rows, d.lambda0, m.joint_rows + 2 * contacts, x)


@wp.func
def solve_fallback(m: Model, d: Data, contacts: int, rows: Array1d, x: Array1d):
    """Solve x = unconstrained + W Rᵀ λ: multipliers in lambda0, contact modes and friction ratios in mode0, ratio0.

    Inputs are x without multipliers in `unconstrained`, the offset of each row in `target`, friction and initial modes.
    """
    for r in range(m.joint_rows + 2 * contacts):
        d.lcp.offset[r] = row_velocity(d.lcp, rows, r, d.unconstrained) + d.target[r]
    residual = search_modes(d.lcp, contacts, rows, rows, d.mode0, d.ratio0, d.lambda0, 1)
    d.lcp.residual = wp.max(d.lcp.residual, residual)
    apply_multipliers(m, d, contacts, rows, x)


@wp.func
def island_of_row(d: Data, r: int):
    """Return the island of a row; −1 if it moves no body."""
    return wp.max(d.lcp.island[d.lcp.row_a[r]], d.lcp.island[d.lcp.row_b[r]])


@wp.func
def work_on_kinematic_bodies(d: Data, r: int):
    """Return the work of a row's multiplier on bodies that keep their velocity, such as platforms."""
    work = scalar(0.0)
    for k in range(6):
        i = 3 * row_body(d.lcp, r, k // 3) + k % 3
        if d.lcp.inverse_mass[i] == scalar(0.0):
            work += d.lambda0[r] * d.rows0[6 * r + k] * d.v0[i]
    return work


@wp.func
def gains_energy(d: Data, island: int):
    """Return True if an island has more energy after the step than before, beyond rounding."""
    return d.energy_after[island] > d.energy_before[island] * (scalar(1.0) + scalar(1.0e-10))


@wp.func
def island_energies(m: Model, d: Data, contacts: int):
    """Set twice the kinetic energy of each island, unconstrained and at v1; return 1 if one gained.

    The work of kinematic bodies does not count as a gain.
    """
    clear(d.energy_before, m.bodies)
    clear(d.energy_after, m.bodies)
    for k in range(3 * m.bodies):
        island = d.lcp.island[k // 3]
        if island >= 0:
            d.energy_before[island] = (
                d.energy_before[island] + d.unconstrained[k] * d.unconstrained[k] / d.lcp.inverse_mass[k]
            )
            d.energy_after[island] = d.energy_after[island] + d.v1[k] * d.v1[k] / d.lcp.inverse_mass[k]
    if m.kinematic_bodies > 0:
        for r in range(m.joint_rows + 2 * contacts):
            if island_of_row(d, r) >= 0:
                d.energy_after[island_of_row(d, r)] = d.energy_after[island_of_row(d, r)] + scalar(
                    2.0
                ) * work_on_kinematic_bodies(d, r)
    gained = wp.int32(0)
    for island in range(m.bodies):
        if gains_energy(d, island):
            gained = wp.int32(1)
    return gained


@wp.func
def drop_restitution(m: Model, d: Data, contacts: int, h: scalar):
    """Remove the restitution of contacts in islands that gained energy."""
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        island = wp.max(island_of_row(d, r), 0)
        if d.restitution[i] > scalar(0.0) and gains_energy(d, island):
            d.restitution[i] = scalar(0.0)
            d.target[r] = wp.max(d.separation[i], scalar(0.0)) / h


@wp.func
def minimize_island_energy(m: Model, d: Data, contacts: int):
    """Scale the multipliers of islands that gained energy so as to minimize it: E(θ) = E + θ b + ½ θ² c.

    The coefficients b and c of each island take the memory of the energies, which are no longer needed.
    """
    clear(d.energy_before, m.bodies)
    clear(d.energy_after, m.bodies)
    for k in range(3 * m.bodies):
        island = d.lcp.island[k // 3]
        if island >= 0:
            velocity_change = d.v1[k] - d.unconstrained[k]
            d.energy_before[island] = (
                d.energy_before[island] + d.unconstrained[k] * velocity_change / d.lcp.inverse_mass[k]
            )
            d.energy_after[island] = d.energy_after[island] + velocity_change * velocity_change / d.lcp.inverse_mass[k]
    if m.kinematic_bodies > 0:
        for r in range(m.joint_rows + 2 * contacts):
            if island_of_row(d, r) >= 0:
                d.energy_before[island_of_row(d, r)] = d.energy_before[island_of_row(d, r)] + work_on_kinematic_bodies(
                    d, r
                )
    for r in range(m.joint_rows + 2 * contacts):
        island = wp.max(island_of_row(d, r), 0)
        linear = d.energy_before[island]
        square = d.energy_after[island]
        if linear + scalar(0.5) * square > scalar(0.0):
            d.lambda0[r] = d.lambda0[r] * wp.clamp(-linear / square, scalar(0.0), scalar(1.0))
    apply_multipliers(m, d, contacts, d.rows0, d.v1)


@wp.func
def guess_mode(d: Data, i: int, speed: scalar, slip: scalar, max_slip: scalar):
    """Guess the mode of contact i: open if it separates with `speed`, sliding if it slips by more than `max_slip`."""
    d.mode0[i] = OPEN
    d.ratio0[i] = scalar(0.0)
    if speed <= scalar(0.0):
        d.mode0[i] = STICK
        if d.lcp.friction[i] == scalar(0.0):
            d.mode0[i] = SLIDE
        elif wp.abs(slip) > max_slip:
            d.mode0[i] = SLIDE
            d.ratio0[i] = -wp.sign(slip) * d.lcp.friction[i]


@wp.func
def prepare_fallback(m: Model, d: Data, contacts: int, h: scalar):
    """Set rows at the start, their targets, friction, restitution, and velocities in `unconstrained`.

    The accelerations a0 must be set beforehand.
    """
    n = 3 * (m.bodies + 1)
    max_acceleration = scalar(0.0)
    for k in range(n):
        d.unconstrained[k] = wp.where(d.lcp.awake[k // 3] == 1, d.v0[k] + h * d.a0[k], d.v0[k])
        if k % 3 != 2:
            max_acceleration = wp.max(max_acceleration, wp.abs(d.a0[k]))
    min_impact_velocity = wp.max(m.restitution_threshold, scalar(4.0) * h * max_acceleration)
    # A compliant contact that sinks under its load in one step supports it in the next, so that bodies do not creep.
    sink_velocity = m.settings.sink_fraction * h * max_acceleration
    for r in range(m.joint_rows):
        joint_row(m, d, d.q0, r, d.rows0)
        d.target[r] = scalar(0.0)
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        separation = contact_rows(m, d, d.q0, i, d.rows0, r)
        restitution, friction = contact_properties(m, d, i)
        d.separation[i] = separation
        d.lcp.friction[i] = friction
        d.lcp.sliding[i] = 0
        d.restitution[i] = scalar(0.0)
        d.target[r] = wp.max(separation / h, -sink_velocity)
        d.target[r + 1] = scalar(0.0)
        approach = row_velocity(d.lcp, d.rows0, r, d.v0)
        if separation <= m.tolerance and approach < -min_impact_velocity:
            d.restitution[i] = restitution
            d.target[r] = restitution * approach
        slip = row_velocity(d.lcp, d.rows0, r + 1, d.v0)
        guess_mode(d, i, approach + separation / h - sink_velocity, slip, friction * h * max_acceleration)


@wp.func
def fallback_velocities(m: Model, d: Data, h: scalar):
    """Set v1, and q1 without corrections; return the number of contacts."""
    n = 3 * (m.bodies + 1)
    free_acceleration(m, d, d.q0, d.v0, d.a0)
    contacts = find_speculative_contacts(m, d, d.q0, h)
    prepare_fallback(m, d, contacts, h)
    warm_start_modes(m, d, contacts)
    solve_fallback(m, d, contacts, d.rows0, d.v1)
    store_modes(m, d, contacts)
    if island_energies(m, d, contacts) == 1:
        drop_restitution(m, d, contacts, h)
        solve_fallback(m, d, contacts, d.rows0, d.v1)
        if island_energies(m, d, contacts) == 1:
            minimize_island_energy(m, d, contacts)
    # Bodies under a load, marked in v_mid, move by v1; the others move on a parabola. A load must exceed rounding,
    # which decides whether contacts without load are open.
    clear(d.v_mid, n)
    for r in range(m.joint_rows + 2 * contacts):
        if wp.abs(d.lcp.diagonal[r] * d.lambda0[r]) > m.restitution_threshold:
            d.v_mid[3 * d.lcp.row_a[r]] = scalar(1.0)
            d.v_mid[3 * d.lcp.row_b[r]] = scalar(1.0)
    for k in range(n):
        d.q1[k] = d.q0[k] + h * d.v1[k]
        if d.v_mid[3 * (k // 3)] == scalar(0.0):
            d.q1[k] = d.q0[k] + scalar(0.5) * h * (d.v0[k] + d.v1[k])
    return contacts


@wp.func
def max_position_error(m: Model, d: Data, contacts: int):
    """Set rows and `target` at q1; return the deepest penetration, or a hundred times the largest joint error."""
    max_error = scalar(0.0)
    for r in range(m.joint_rows):
        d.target[r] = joint_row(m, d, d.q1, r, d.rows1)
        max_error = wp.max(max_error, scalar(100.0) * wp.abs(d.target[r]))
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        d.target[r] = contact_rows(m, d, d.q1, i, d.rows1, r)
        d.target[r + 1] = scalar(0.0)
        d.lcp.friction[i] = scalar(0.0)
        d.lcp.sliding[i] = 0
        if -d.target[r] > m.penetration_slop:
            max_error = wp.max(max_error, -d.target[r])
        elif d.target[r] < scalar(0.0):
            # Small penetrations stay: resting bodies must not move because others penetrate.
            d.target[r] = scalar(0.0)
        guess_mode(d, i, d.target[r], scalar(0.0), scalar(0.0))
    return max_error


@wp.func
def correct_positions(m: Model, d: Data, contacts: int):
    """Move q1 by the least displacement, in `v_mid`, that removes joint errors and penetrations at q1."""
    n = 3 * (m.bodies + 1)
    clear(d.unconstrained, n)
    solve_fallback(m, d, contacts, d.rows1, d.v_mid)
    for k in range(n):
        d.q1[k] = d.q1[k] + d.v_mid[k]


@wp.func
def fallback_step(m: Model, d: Data, h: scalar, max_corrections: int):
    """Set (q1, v1) after h, with at most `max_corrections` position corrections; return their number.

    With zero duration, positions alone are corrected.
    """
    n = 3 * (m.bodies + 1)
    if h > scalar(0.0):
        fallback_velocities(m, d, h)
        set_rest_thresholds(m, d, h)
    else:
        copy(d.q0, d.q1, n)
        copy(d.v0, d.v1, n)
    d.lcp.factorizations = 0
    corrections = wp.int32(0)
    running = wp.int32(1)
    while running == 1:
        running = wp.int32(0)
        if corrections < max_corrections:
            contacts = wp.int32(0)
            if (
                corrections < m.settings.max_corrections - m.settings.joint_corrections
                and d.lcp.factorizations < m.settings.correction_factorizations
            ):
                contacts = find_speculative_contacts(m, d, d.q1, scalar(0.0))
                if wake_contacted(m, d, contacts) == 1:
                    # The caller repeats the step.
                    wake_all(m, d)
            d.contacts = contacts
            error = max_position_error(m, d, contacts)
            if error > m.tolerance:
                correct_positions(m, d, contacts)
                corrections += 1
                running = wp.int32(1)
    if h > scalar(0.0) and max_corrections == m.settings.max_corrections:
        freeze_resting_bodies(m, d)
    for k in range(n):
        if not (wp.isfinite(d.q1[k]) and wp.isfinite(d.v1[k])):
            d.lcp.failed = 1
    return corrections
