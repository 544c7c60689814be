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
from .collision_time import NEVER, next_contact
from .complementarity import assemble, factor_chosen, guess_mode, solve_chosen, solve_stage
from .data import FAILED, GAP_CLOSED, NOTHING, OPEN, SLIP_ENDED, WORST, Scene, Work
from .detect import properties_of
from .forces import accelerate
from .geometry import add_force, contact_rows, row_speed
from .joints import joint_row

# The shortest duration, as a share of dt: multipliers of positions are divided by it.
SHORTEST_FREE = wp.constant(wp.float64(1.0e-12))
SHORTEST = wp.constant(wp.float64(1.0e-9))


@wp.func
def prepare_flow(s: Scene, t: Work, contacts: wp.int32):
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
        if friction > scalar(0.0) and wp.abs(slip) > scalar(10.0) * s.rest_speed:
            t.sliding[i] = 1
            t.slide0[i] = -wp.sign(slip) * friction


@wp.func
def guess_modes(s: Scene, t: Work, contacts: wp.int32, mode: wp.array(dtype=wp.int32), slide: wp.array(dtype=scalar)):
    """Guess that every contact holds, from what its rows are without multipliers, in `offset`."""
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        guess_mode(t, i, t.offset[r], t.offset[r + 1], mode, slide)


@wp.func
def end_rows(s: Scene, t: Work, contacts: wp.int32):
    """Set the rows at q1, and in `kappa` by how much each gap or joint misses its target there."""
    for r in range(s.joint_rows):
        t.kappa[r] = joint_row(s, t, t.q1, r, t.rows1)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        t.kappa[r] = contact_rows(s, t, t.q1, i, t.rows1, r) - t.target[r]
        t.kappa[r + 1] = scalar(0.0)


@wp.func
def place_bodies(s: Scene, t: Work, size: wp.int32, n: wp.int32):
    """Set q1 to the free positions, moved by the multipliers of the first stage."""
    for k in range(n):
        t.q1[k] = t.q0[k] + t.free[k]
    for r in range(size):
        if t.lambda0[r] != scalar(0.0):
            add_force(t, t.rows0, r, t.lambda0[r], t.q1)


@wp.func
def mixed_rows(s: Scene, t: Work, contacts: wp.int32):
    """Rows of the first stage: normals and joints at the end, tangents at the start; kept in `rows_bar`."""
    for r in range(s.joint_rows + 2 * contacts):
        tangent = r >= s.joint_rows and (r - s.joint_rows) % 2 == 1
        for k in range(6):
            if tangent:
                t.rows_bar[6 * r + k] = t.rows0[6 * r + k]
            else:
                t.rows_bar[6 * r + k] = t.rows1[6 * r + k]


@wp.func
def positions(s: Scene, t: Work, contacts: wp.int32, h: scalar):
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
        guess_modes(s, t, contacts, t.mode0, t.slide0)
        equations = solve_stage(s, t, contacts, t.rows0, t.rows0, t.mode0, t.slide0, t.lambda0)
        place_bodies(s, t, size, n)
        end_rows(s, t, contacts)
        tries = wp.int32(0)
        worst = scalar(1.0e30)
        going = wp.int32(1)
        while going == 1:
            error = scalar(0.0)
            for i in range(equations):
                error = wp.max(error, wp.abs(t.kappa[t.chosen[i]]))
            if error <= scalar(1.0e-3) * s.tolerance or error >= worst or tries >= 12:
                going = wp.int32(0)
            else:
                worst = error
                tries += 1
                for k in range(n):
                    t.predicted[k] = t.q0[k] - t.q1[k] + t.free[k]
                mixed_rows(s, t, contacts)
                for r in range(size):
                    t.offset[r] = t.kappa[r] + row_speed(t, t.rows_bar, r, t.predicted)
                for i in range(contacts):
                    r = s.joint_rows + 2 * i + 1
                    t.offset[r] = row_speed(t, t.rows0, r, t.free)
                assemble(t, t.rows_bar, t.rows0, size)
                factor_chosen(s, t, equations, t.mode0, t.slide0, size)
                solve_chosen(s, t, equations, contacts, t.mode0, t.slide0, t.lambda0)
                place_bodies(s, t, size, n)
                end_rows(s, t, contacts)
        if worst > s.tolerance and tries >= 12:
            t.counts[FAILED] = 1
            t.keep[WORST] = wp.max(t.keep[WORST], worst)


@wp.func
def velocities(s: Scene, t: Work, contacts: wp.int32, h: scalar):
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
        guess_modes(s, t, contacts, t.mode1, t.slide1)
        for i in range(contacts):
            if t.mode0[i] == OPEN:
                # Rows without effect cannot close: they move nothing and nothing moves them.
                r = s.joint_rows + 2 * i
                t.mode1[i] = OPEN
                for k in range(12):
                    t.rows1[6 * r + k] = scalar(0.0)
                t.offset[r] = scalar(1.0)
                t.offset[r + 1] = scalar(0.0)
        solve_stage(s, t, contacts, t.rows1, t.rows1, t.mode1, t.slide1, t.lambda1)
        for r in range(size):
            if t.lambda1[r] != scalar(0.0):
                add_force(t, t.rows1, r, t.lambda1[r], t.v1)


@wp.func
def advance(s: Scene, t: Work, contacts: wp.int32, h: scalar):
    """Both stages: (q1, v1) after h."""
    positions(s, t, contacts, h)
    velocities(s, t, contacts, h)


@wp.func
def path(s: Scene, t: Work, contacts: wp.int32, h: scalar):
    """Set a1 to the constant accelerations that lead from (q0, v0) to q1 in h."""
    for k in range(3 * (s.bodies + 1)):
        t.a1[k] = t.a0[k]
    for r in range(s.joint_rows + 2 * contacts):
        if t.lambda0[r] != scalar(0.0):
            add_force(t, t.rows0, r, t.lambda0[r] * scalar(2.0) / (h * h), t.a1)


@wp.func
def close_gap(s: Scene, t: Work, contacts: wp.int32, guess: scalar, most: scalar):
    """The duration after which the contact on the last line touches, with joints and contacts kept; Newton's method.

    Returns a number beyond `most` if it does not touch after all. Leaves q1 there.
    """
    h = guess
    r = s.joint_rows + 2 * contacts
    tries = wp.int32(0)
    going = wp.int32(1)
    while going == 1:
        positions(s, t, contacts, h)
        path(s, t, contacts, h)
        for k in range(3 * (s.bodies + 1)):
            t.v1[k] = t.v0[k] + h * t.a1[k]
        gap = contact_rows(s, t, t.q1, s.capacity, t.rows1, r)
        rate = row_speed(t, t.rows1, r, t.v1)
        tries += 1
        if wp.abs(gap) <= scalar(1.0e-3) * s.tolerance or tries > 20 or not (rate < scalar(0.0)):
            going = wp.int32(0)
            if wp.abs(gap) > s.tolerance:
                h = NEVER
        else:
            h -= gap / rate
            if h > most or h <= scalar(0.0):
                going = wp.int32(0)
                if h <= scalar(0.0):
                    h = guess
    return h


@wp.func
def end_of_slip(s: Scene, t: Work, contacts: wp.int32, h: scalar):
    """Which contact's slip turns round first in the flow at hand, and the share of h after which; −1 for none."""
    which = wp.int32(-1)
    share = scalar(1.0)
    for i in range(contacts):
        if t.sliding[i] == 1 and t.mode1[i] != OPEN:
            r = s.joint_rows + 2 * i + 1
            before = row_speed(t, t.rows0, r, t.v0)
            after = row_speed(t, t.rows1, r, t.v1)
            if before * after < scalar(0.0) and wp.abs(after) > scalar(5.0) * s.rest_speed:
                if before / (before - after) < share:
                    share = before / (before - after)
                    which = i
    return which, share


@wp.func
def stop_slip(s: Scene, t: Work, contacts: wp.int32, which: wp.int32, most: scalar, guess: scalar):
    """The duration after which a contact's slip ends, by false position with memory; leaves (q1, v1) there."""
    r = s.joint_rows + 2 * which + 1
    low = scalar(0.0)
    high = most
    at_low = row_speed(t, t.rows0, r, t.v0)
    at_high = row_speed(t, t.rows1, r, t.v1)
    h = guess
    tries = wp.int32(0)
    going = wp.int32(1)
    while going == 1:
        advance(s, t, contacts, h)
        slip = row_speed(t, t.rows1, r, t.v1)
        tries += 1
        if wp.abs(slip) <= s.rest_speed * scalar(1.0e-3) or tries > 40 or t.mode1[which] == OPEN:
            going = wp.int32(0)
        else:
            if slip * at_low > scalar(0.0):
                low = h
                at_low = slip
                at_high = at_high * scalar(0.5)
            else:
                high = h
                at_high = slip
                at_low = at_low * scalar(0.5)
            # Halving the end that stays is the Illinois rule: it keeps the false position from stalling.
            step = low + (high - low) * at_low / (at_low - at_high)
            if not (step > low and step < high):
                going = wp.int32(0)
            else:
                h = step
    return h


@wp.func
def flow(s: Scene, t: Work, contacts: wp.int32, most: scalar, look: wp.int32):
    """Move to the next event, or for `most` if there is none; returns duration, event and the contact it is about.

    The flow is prepared.
    Without `look`, events are not looked for: a fallback for worlds with more events than can be kept.
    """
    h = most
    event = int(NOTHING)
    about = wp.int32(0)
    size = s.joint_rows + 2 * contacts
    positions(s, t, contacts, h)
    if look == 1:
        path(s, t, contacts, h)
        time = next_contact(s, t, h)
        if time < h - s.dt * SHORTEST:
            h = wp.max(time, s.dt * SHORTEST_FREE)
            event = GAP_CLOSED
            if size > 0:
                h = close_gap(s, t, contacts, wp.max(h, s.dt * SHORTEST), most)
                if h >= most - s.dt * SHORTEST:
                    h = most
                    event = NOTHING
            positions(s, t, contacts, h)
        else:
            place_bodies(s, t, size, 3 * (s.bodies + 1))
    velocities(s, t, contacts, h)
    if look == 1:
        which, share = end_of_slip(s, t, contacts, h)
        tries = wp.int32(0)
        while which >= 0 and tries < 8:
            event = SLIP_ENDED
            about = which
            h = stop_slip(s, t, contacts, which, h, h * share)
            which, share = end_of_slip(s, t, contacts, h)
            tries += 1
        if h > most - s.dt * SHORTEST and h < most:
            h = most
            event = NOTHING
            advance(s, t, contacts, h)
    return h, event, about
