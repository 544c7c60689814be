"""Smooth motion from one event to the next: two stages of a symplectic step, each a complementarity problem.

With duration h, free accelerations a(q, v), inverse masses W, rows C at the start and R at the end, a flow is
    q₁ = q₀ + h v₀ + ½h² a(q₀, v₀) + W Cᵀ Λ₀,                     gaps and joints at q₁: zero, or open
    v½ = v₀ + ½h a(q₀, v₀) + W Cᵀ Λ₀ / h
    v₁ = v½ + ½h a(q₁, 2v½ − v₀) + W Rᵀ Λ₁,                       rates at (q₁, v₁): zero, or open
which is RATTLE (Andersen, 1983) with contacts: second order, symplectic for joints, joints exact at q₁, and exact
under constant forces, sliding friction included. A body that touches nothing moves on the parabola.

A contact that slides at the start keeps its friction; the flow ends early where its slip ends (then it may stick),
and where a gap closes. Both instants solve one equation, in h, for the end of the flow.
"""

import warp as wp

from . import scalar
from .complementarity import guess_mode, least_speed, solve_stage
from .data import FAILED, OPEN, WORST, Parts, Workspace
from .detect import properties_of
from .forces import accelerate
from .geometry import add_force, contact_rows, row_speed
from .joints import joint_row


@wp.func
def prepare_flow(s: Parts, t: Workspace, contacts: wp.int32):
    """Rows and accelerations at the start; which contacts slide, and with what friction."""
    accelerate(s, t, t.q0, t.v0, t.a0)
    for r in range(s.joint_rows):
        joint_row(s, t, t.q0, r, t.rows0)
        t.target[r] = scalar(0.0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        gap = contact_rows(s, t, t.q0, i, t.rows0, r)
        _restitution, friction = properties_of(s, t, i)
        slip = row_speed(t, t.rows0, r + 1, t.v0)
        t.gap[i] = gap
        t.coefficient[i] = friction
        t.sliding[i] = 0
        t.slide0[i] = scalar(0.0)
        # An overlap that was there from the start is kept from growing; closing it would take energy from nowhere.
        t.target[r] = scalar(0.0)
        if gap < -s.tolerance:
            t.target[r] = gap
        # A contact that still bounces a little lets the problem decide how it slides: it is not in contact all the way.
        steady = wp.abs(row_speed(t, t.rows0, r, t.v0)) <= scalar(10.0) * s.rest_speed
        if steady and friction > scalar(0.0) and wp.abs(slip) > scalar(10.0) * s.rest_speed:
            t.sliding[i] = 1
            t.slide0[i] = -wp.sign(slip) * friction


@wp.func
def guess_modes(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    unit: scalar,
):
    """Guess that every contact holds, from what its rows are without multipliers, in `offset`."""
    least = least_speed(s, t, s.joint_rows + 2 * contacts, unit)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        guess_mode(t, i, t.offset[r], t.offset[r + 1], least, mode, slide)


@wp.func
def end_rows(s: Parts, t: Workspace, contacts: wp.int32):
    """Set the rows at q1, and in `missed` by how much each gap or joint misses its target there."""
    for r in range(s.joint_rows):
        t.missed[r] = joint_row(s, t, t.q1, r, t.rows1)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        t.missed[r] = contact_rows(s, t, t.q1, i, t.rows1, r) - t.target[r]
        t.missed[r + 1] = scalar(0.0)


@wp.func
def place_bodies(s: Parts, t: Workspace, size: wp.int32, n: wp.int32):
    """Set q1 to the free positions, moved by the multipliers of the first stage."""
    for k in range(n):
        t.q1[k] = t.q0[k] + t.free[k]
    for r in range(size):
        if t.lambda0[r] != scalar(0.0):
            add_force(t, t.rows0, r, t.lambda0[r], t.q1)


@wp.func
def mixed_rows(s: Parts, t: Workspace, contacts: wp.int32):
    """Rows of the first stage: normals and joints at the end, tangents at the start; in `mixed`."""
    for r in range(s.joint_rows + 2 * contacts):
        tangent = r >= s.joint_rows and (r - s.joint_rows) % 2 == 1
        for k in range(6):
            if tangent:
                t.mixed[6 * r + k] = t.rows0[6 * r + k]
            else:
                t.mixed[6 * r + k] = t.rows1[6 * r + k]


@wp.func
def position_error(s: Parts, t: Workspace, contacts: wp.int32):
    """By how much joints are off at q1, gaps that should be closed are open, or open ones overlap."""
    error = scalar(0.0)
    for r in range(s.joint_rows):
        error = wp.max(error, wp.abs(t.missed[r]))
    for i in range(contacts):
        off = t.missed[s.joint_rows + 2 * i]
        if t.mode0[i] != OPEN or off < scalar(0.0):
            error = wp.max(error, wp.abs(off))
    return error


@wp.func
def improve_positions(s: Parts, t: Workspace, contacts: wp.int32):
    """One step of Newton's method: the first stage once more, with the gaps and joints linearised at q1."""
    n = 3 * (s.bodies + 1)
    size = s.joint_rows + 2 * contacts
    for k in range(n):
        t.predicted[k] = t.q0[k] - t.q1[k] + t.free[k]
    mixed_rows(s, t, contacts)
    for r in range(size):
        t.offset[r] = t.missed[r] + row_speed(t, t.mixed, r, t.predicted)
    for i in range(contacts):
        r = s.joint_rows + 2 * i + 1
        t.offset[r] = row_speed(t, t.rows0, r, t.free)
    solve_stage(s, t, contacts, t.mixed, t.rows0, t.mode0, t.slide0, t.lambda0, s.dt)
    place_bodies(s, t, size, n)
    end_rows(s, t, contacts)


@wp.func
def positions(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """The first stage: q1 after h, by Newton's method on gaps and joints; multipliers in lambda0, modes in mode0."""
    n = 3 * (s.bodies + 1)
    size = s.joint_rows + 2 * contacts
    for k in range(n):
        t.free[k] = h * (t.v0[k] + scalar(0.5) * h * t.a0[k])
        t.q1[k] = t.q0[k] + t.free[k]
    if size > 0:
        for r in range(s.joint_rows):
            t.offset[r] = joint_row(s, t, t.q0, r, t.rows0) + row_speed(t, t.rows0, r, t.free)
        for i in range(contacts):
            r = s.joint_rows + 2 * i
            t.offset[r] = t.gap[i] - t.target[r] + row_speed(t, t.rows0, r, t.free)
            t.offset[r + 1] = row_speed(t, t.rows0, r + 1, t.free)
        guess_modes(s, t, contacts, t.mode0, t.slide0, s.dt)
        solve_stage(s, t, contacts, t.rows0, t.rows0, t.mode0, t.slide0, t.lambda0, s.dt)
        place_bodies(s, t, size, n)
        end_rows(s, t, contacts)
        error = position_error(s, t, contacts)
        before = scalar(1.0e30)
        tries = wp.int32(0)
        # What is below the tolerance is improved as long as it gets better: the adjoint takes it for zero, and speeds
        # are off by it over h, which in a short flow is more.
        enough = scalar(1.0e-5) * s.tolerance * wp.min(h / s.dt, scalar(1.0))
        while tries < 12 and error > enough and (error < before or error > s.tolerance):
            before = error
            tries += 1
            improve_positions(s, t, contacts)
            error = position_error(s, t, contacts)
        if not (error <= s.tolerance):
            t.counts[FAILED] = 1
            t.keep[WORST] = wp.max(t.keep[WORST], error)


@wp.func
def velocities(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """The second stage: v1 after h; multipliers in lambda1, modes in mode1. Contacts opened before stay open."""
    n = 3 * (s.bodies + 1)
    size = s.joint_rows + 2 * contacts
    for k in range(n):
        t.half[k] = t.v0[k] + scalar(0.5) * h * t.a0[k]
    for r in range(size):
        if t.lambda0[r] != scalar(0.0):
            add_force(t, t.rows0, r, t.lambda0[r] / h, t.half)
    for k in range(n):
        t.predicted[k] = scalar(2.0) * t.half[k] - t.v0[k]
    accelerate(s, t, t.q1, t.predicted, t.a1)
    for k in range(n):
        t.v1[k] = t.half[k] + scalar(0.5) * h * t.a1[k]
    if size > 0:
        for i in range(contacts):
            t.slide1[i] = t.slide0[i]
            if t.sliding[i] == 0:
                t.slide1[i] = scalar(0.0)
        for r in range(size):
            t.offset[r] = row_speed(t, t.rows1, r, t.v1)
        guess_modes(s, t, contacts, t.mode1, t.slide1, scalar(1.0))
        for i in range(contacts):
            if t.mode0[i] == OPEN:
                # Rows without effect cannot close: they move nothing and nothing moves them.
                r = s.joint_rows + 2 * i
                t.mode1[i] = OPEN
                for k in range(12):
                    t.rows1[6 * r + k] = scalar(0.0)
                t.offset[r] = scalar(1.0)
                t.offset[r + 1] = scalar(0.0)
        solve_stage(s, t, contacts, t.rows1, t.rows1, t.mode1, t.slide1, t.lambda1, scalar(1.0))
        for r in range(size):
            if t.lambda1[r] != scalar(0.0):
                add_force(t, t.rows1, r, t.lambda1[r], t.v1)


@wp.func
def advance(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """Both stages: (q1, v1) after h."""
    positions(s, t, contacts, h)
    velocities(s, t, contacts, h)


@wp.func
def path(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """Set a1 to the constant accelerations that lead from (q0, v0) to q1 in h."""
    for k in range(3 * (s.bodies + 1)):
        t.a1[k] = t.a0[k]
    for r in range(s.joint_rows + 2 * contacts):
        if t.lambda0[r] != scalar(0.0):
            add_force(t, t.rows0, r, t.lambda0[r] * scalar(2.0) / (h * h), t.a1)
