"""Smooth motion between events: RATTLE (Andersen, 1983) with contacts, two complementarity problems a step.

With duration h, free accelerations a(q, v), inverse masses W, rows C at the start and R at the end, a smooth step is
    q₁ = q₀ + h v₀ + ½h² a(q₀, v₀) + W Cᵀ Λ₀,                     separations and joints at q₁: zero, or open
    v½ = v₀ + ½h a(q₀, v₀) + W Cᵀ Λ₀ / h
    v₁ = v½ + ½h a(q₁, 2v½ − v₀) + W Rᵀ Λ₁,                       rates at (q₁, v₁): zero, or open.
It is of second order, symplectic for joints, holds joints exactly at q₁, and is exact under constant forces, sliding
friction included. A body that touches nothing moves on the parabola.

A contact that slides at the start keeps its friction; the step ends early where its slip ends (then it may stick), and
where a contact closes. Both instants solve one equation, in h, at the end of the step.
"""

import warp as wp

from physvision.physics.lcp.kernels.contact_solver import close_contact, solve_contacts, velocity_tolerance
from physvision.physics.lcp.kernels.problem import OPEN, copy
from physvision.physics.lcp.kernels.rows import apply_impulse, apply_impulses, row_velocity

from .data import Data, Model
from .forces import free_acceleration
from .geometry import contact_rows
from .joints import joint_row
from .narrow_phase import contact_properties
from .precision import Array1d, IntArray1d, scalar


@wp.func
def prepare_smooth_step(m: Model, d: Data, contacts: int):
    """Set rows and accelerations at the start, friction, and the contacts that slide from the start."""
    free_acceleration(m, d, d.q0, d.v0, d.a0)
    for r in range(m.joint_rows):
        joint_row(m, d, d.q0, r, d.rows0)
        d.target[r] = scalar(0.0)
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        separation = contact_rows(m, d, d.q0, i, d.rows0, r)
        _restitution, friction = contact_properties(m, d, i)
        slip = row_velocity(d.lcp, d.rows0, r + 1, d.v0)
        d.separation[i] = separation
        d.lcp.friction[i] = friction
        d.lcp.sliding[i] = 0
        d.ratio0[i] = scalar(0.0)
        # A penetration at the start is kept from growing; removing it would add energy.
        d.target[r] = wp.where(separation < -m.tolerance, separation, scalar(0.0))
        # A contact that still bounces a little is not closed all the way: the problem decides how it slides.
        is_steady = wp.abs(row_velocity(d.lcp, d.rows0, r, d.v0)) <= scalar(10.0) * m.restitution_threshold
        if is_steady and friction > scalar(0.0) and wp.abs(slip) > scalar(10.0) * m.restitution_threshold:
            d.lcp.sliding[i] = 1
            d.ratio0[i] = -wp.sign(slip) * friction


@wp.func
def close_contacts(m: Model, d: Data, contacts: int, mode: IntArray1d, ratio: Array1d, unit: scalar):
    """Guess that every contact is closed, from the row values without multipliers in `offset`."""
    min_velocity = velocity_tolerance(d.lcp, m.joint_rows + 2 * contacts, unit)
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        close_contact(d.lcp, i, d.lcp.offset[r], d.lcp.offset[r + 1], min_velocity, mode, ratio)


@wp.func
def evaluate_end_rows(m: Model, d: Data, contacts: int):
    """Set the rows at q1, and in `row_error` the error of each separation or joint against its target there."""
    for r in range(m.joint_rows):
        d.row_error[r] = joint_row(m, d, d.q1, r, d.rows1)
    for i in range(contacts):
        r = m.joint_rows + 2 * i
        d.row_error[r] = contact_rows(m, d, d.q1, i, d.rows1, r) - d.target[r]
        d.row_error[r + 1] = scalar(0.0)


@wp.func
def move_bodies(d: Data, size: int, n: int):
    """Set q1 to the unconstrained positions, moved by the multipliers of the position stage."""
    for k in range(n):
        d.q1[k] = d.q0[k] + d.unconstrained[k]
    apply_impulses(d.lcp, d.rows0, d.lambda0, size, d.q1)


@wp.func
def set_mixed_rows(m: Model, d: Data, contacts: int):
    """Set the rows of the position stage: normals and joints at the end, tangents at the start."""
    for r in range(m.joint_rows + 2 * contacts):
        tangent = r >= m.joint_rows and (r - m.joint_rows) % 2 == 1
        for k in range(6):
            if tangent:
                d.rows_mixed[6 * r + k] = d.rows0[6 * r + k]
            else:
                d.rows_mixed[6 * r + k] = d.rows1[6 * r + k]


@wp.func
def position_error(m: Model, d: Data, contacts: int):
    """Return the largest error of joints, of closed contacts, and of open contacts that penetrate, at q1."""
    error = scalar(0.0)
    for r in range(m.joint_rows):
        error = wp.max(error, wp.abs(d.row_error[r]))
    for i in range(contacts):
        row_error = d.row_error[m.joint_rows + 2 * i]
        if d.mode0[i] != OPEN or row_error < scalar(0.0):
            error = wp.max(error, wp.abs(row_error))
    return error


@wp.func
def refine_positions(m: Model, d: Data, contacts: int):
    """Do one Newton step: the position stage again, with separations and joints linearized at q1."""
    n = 3 * (m.bodies + 1)
    size = m.joint_rows + 2 * contacts
    for k in range(n):
        d.predicted[k] = d.q0[k] - d.q1[k] + d.unconstrained[k]
    set_mixed_rows(m, d, contacts)
    for r in range(size):
        d.lcp.offset[r] = d.row_error[r] + row_velocity(d.lcp, d.rows_mixed, r, d.predicted)
    for i in range(contacts):
        r = m.joint_rows + 2 * i + 1
        d.lcp.offset[r] = row_velocity(d.lcp, d.rows0, r, d.unconstrained)
    solve_contacts(d.lcp, contacts, d.rows_mixed, d.rows0, d.mode0, d.ratio0, d.lambda0, m.dt)
    move_bodies(d, size, n)
    evaluate_end_rows(m, d, contacts)


@wp.func
def position_stage(m: Model, d: Data, contacts: int, h: scalar):
    """Set q1 after h by Newton's method on separations and joints.

    The multipliers are in lambda0, the contact modes in mode0.
    """
    n = 3 * (m.bodies + 1)
    size = m.joint_rows + 2 * contacts
    for k in range(n):
        d.unconstrained[k] = h * (d.v0[k] + scalar(0.5) * h * d.a0[k])
        d.q1[k] = d.q0[k] + d.unconstrained[k]
    if size > 0:
        for r in range(m.joint_rows):
            d.lcp.offset[r] = joint_row(m, d, d.q0, r, d.rows0) + row_velocity(d.lcp, d.rows0, r, d.unconstrained)
        for i in range(contacts):
            r = m.joint_rows + 2 * i
            d.lcp.offset[r] = d.separation[i] - d.target[r] + row_velocity(d.lcp, d.rows0, r, d.unconstrained)
            d.lcp.offset[r + 1] = row_velocity(d.lcp, d.rows0, r + 1, d.unconstrained)
        close_contacts(m, d, contacts, d.mode0, d.ratio0, m.dt)
        solve_contacts(d.lcp, contacts, d.rows0, d.rows0, d.mode0, d.ratio0, d.lambda0, m.dt)
        move_bodies(d, size, n)
        evaluate_end_rows(m, d, contacts)
        error = position_error(m, d, contacts)
        previous_error = scalar(1.0e30)
        iterations = wp.int32(0)
        # Errors below the tolerance are refined as long as they decrease: the adjoint takes them for zero, and
        # velocities have their error over h, which is more in a short step.
        accuracy = m.settings.position_accuracy * m.tolerance * wp.min(h / m.dt, scalar(1.0))
        while (
            iterations < m.settings.max_position_iterations
            and error > accuracy
            and (error < previous_error or error > m.tolerance)
        ):
            previous_error = error
            iterations += 1
            refine_positions(m, d, contacts)
            error = position_error(m, d, contacts)
        if not (error <= m.tolerance):
            d.lcp.failed = 1
            d.lcp.residual = wp.max(d.lcp.residual, error)


@wp.func
def velocity_stage(m: Model, d: Data, contacts: int, h: scalar):
    """Set v1 after h; multipliers in lambda1, contact modes in mode1.

    Contacts that the position stage opened stay open.
    """
    n = 3 * (m.bodies + 1)
    size = m.joint_rows + 2 * contacts
    for k in range(n):
        d.v_mid[k] = d.v0[k] + scalar(0.5) * h * d.a0[k]
    for r in range(size):
        if d.lambda0[r] != scalar(0.0):
            apply_impulse(d.lcp, d.rows0, r, d.lambda0[r] / h, d.v_mid)
    for k in range(n):
        d.predicted[k] = scalar(2.0) * d.v_mid[k] - d.v0[k]
    free_acceleration(m, d, d.q1, d.predicted, d.a1)
    for k in range(n):
        d.v1[k] = d.v_mid[k] + scalar(0.5) * h * d.a1[k]
    if size > 0:
        for i in range(contacts):
            d.ratio1[i] = wp.where(d.lcp.sliding[i] == 0, scalar(0.0), d.ratio0[i])
        for r in range(size):
            d.lcp.offset[r] = row_velocity(d.lcp, d.rows1, r, d.v1)
        close_contacts(m, d, contacts, d.mode1, d.ratio1, scalar(1.0))
        for i in range(contacts):
            if d.mode0[i] == OPEN:
                # Rows without effect cannot close: they move nothing and nothing moves them.
                r = m.joint_rows + 2 * i
                d.mode1[i] = OPEN
                for k in range(12):
                    d.rows1[6 * r + k] = scalar(0.0)
                d.lcp.offset[r] = scalar(1.0)
                d.lcp.offset[r + 1] = scalar(0.0)
        solve_contacts(d.lcp, contacts, d.rows1, d.rows1, d.mode1, d.ratio1, d.lambda1, scalar(1.0))
        apply_impulses(d.lcp, d.rows1, d.lambda1, size, d.v1)


@wp.func
def smooth_step(m: Model, d: Data, contacts: int, h: scalar):
    """Set (q1, v1) after h by both stages."""
    position_stage(m, d, contacts, h)
    velocity_stage(m, d, contacts, h)


@wp.func
def set_mean_acceleration(m: Model, d: Data, contacts: int, h: scalar):
    """Set a1 to the constant accelerations that lead from (q0, v0) to q1 in h."""
    copy(d.a0, d.a1, 3 * (m.bodies + 1))
    for r in range(m.joint_rows + 2 * contacts):
        if d.lambda0[r] != scalar(0.0):
            apply_impulse(d.lcp, d.rows0, r, d.lambda0[r] * scalar(2.0) / (h * h), d.a1)
