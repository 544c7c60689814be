"""One complementarity problem over everything that touches or may touch: the step of a world too busy for events.

With duration h, rows C at the start, free accelerations a and v° = v₀ + h a, velocities are
    v₁ = v° + W Cᵀ λ,    joints C v₁ = 0,    normals 0 ≤ λ ⟂ C v₁ + ρ ≥ 0,    tangents inside or on the friction bound,
where ρ = gap/h for what is apart (it may close in h and no sooner), and ρ = e C v₀ for what touches and strikes. Then
q₁ = q₀ + h v₁, or the parabola for what nothing touched. What still overlaps, and joints that are off, are put right
by the least displacement that does it, in the norm of the masses: q += W Rᵀ π with R W Rᵀ π + gap ≥ 0, a few times.

What contacts do is found by `interior`. An island in which nothing moves is left where it is. No answer adds kinetic
energy: where one would, restitution is dropped, and the impulse scaled back.
"""

import warp as wp

from . import scalar
from .data import CONTACTS, FACTORED, FAILED, OPEN, SLIDES, STICKS, WORST, Parts, Workspace, clear, copy
from .detect import find_near, properties_of
from .forces import accelerate
from .geometry import add_force, contact_rows, row_speed
from .islands import come_to_rest, find_calm, wake_all, wake_touched
from .joints import joint_row
from .modes import find_modes
from .remembered import recall_modes, remember_modes

# Corrections of positions at most.
CORRECTIONS = wp.constant(10)
# The last of them are about joints alone, which are to hold exactly.
LAST = wp.constant(3)
# Factorisations after which corrections are about joints alone, too.
CORRECTING = wp.constant(60)

# What compliant contacts may sink under their load, as a share of what free acceleration gives bodies in the step.
SINKS = wp.constant(wp.float64(2.0e-4))


@wp.func
def apply_multipliers(
    s: Parts, t: Workspace, contacts: wp.int32, rows: wp.array(dtype=scalar), x: wp.array(dtype=scalar)
):
    """Set x to its free value, in `free`, moved by the multipliers in lambda0."""
    copy(t.free, x, 3 * (s.bodies + 1))
    for r in range(s.joint_rows + 2 * contacts):
        if t.lambda0[r] != scalar(0.0):
            add_force(t, rows, r, t.lambda0[r], x)


@wp.func
def solve_crowd(s: Parts, t: Workspace, contacts: wp.int32, rows: wp.array(dtype=scalar), x: wp.array(dtype=scalar)):
    """Find x = free + W Rᵀ λ with the rows complementary: multipliers in lambda0, what contacts do in mode0, slide0.

    Given are x without multipliers in `free`, what is added to a row's speed in `target`, friction in `coefficient`,
    and a guess at what contacts do.
    """
    for r in range(s.joint_rows + 2 * contacts):
        t.offset[r] = row_speed(t, rows, r, t.free) + t.target[r]
    missed = find_modes(s, t, contacts, rows, rows, t.mode0, t.slide0, t.lambda0, 1)
    t.keep[WORST] = wp.max(t.keep[WORST], missed)
    apply_multipliers(s, t, contacts, rows, x)


@wp.func
def island_of(t: Workspace, r: wp.int32):
    """The island of a row; −1 where it moves nothing."""
    return wp.max(t.island[t.row_a[r]], t.island[t.row_b[r]])


@wp.func
def work_on_driven(t: Workspace, r: wp.int32):
    """The work that a row's multiplier does on bodies that keep their velocity, such as platforms."""
    work = scalar(0.0)
    for k in range(6):
        i = 3 * t.row_a[r] + k
        if k >= 3:
            i = 3 * t.row_b[r] + k - 3
        if t.weight[i] == scalar(0.0):
            work += t.lambda0[r] * t.rows0[6 * r + k] * t.v0[i]
    return work


@wp.func
def energies(s: Parts, t: Workspace, contacts: wp.int32):
    """Set, for each island, twice its kinetic energy at `free` in `before`, at v1 in `after`; whether one gained.

    What driven bodies put in is no gain.
    """
    clear(t.before, s.bodies)
    clear(t.after, s.bodies)
    for k in range(3 * s.bodies):
        island = t.island[k // 3]
        if island >= 0:
            t.before[island] = t.before[island] + t.free[k] * t.free[k] / t.weight[k]
            t.after[island] = t.after[island] + t.v1[k] * t.v1[k] / t.weight[k]
    if s.platforms > 0:
        for r in range(s.joint_rows + 2 * contacts):
            if island_of(t, r) >= 0:
                t.after[island_of(t, r)] = t.after[island_of(t, r)] + scalar(2.0) * work_on_driven(t, r)
    found = wp.int32(0)
    for island in range(s.bodies):
        if t.after[island] > t.before[island] * (scalar(1.0) + scalar(1.0e-10)):
            found = wp.int32(1)
    return found


@wp.func
def drop_restitution(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """Let contacts of islands that gained energy strike without restitution."""
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        island = wp.max(island_of(t, r), 0)
        if t.rebound[i] > scalar(0.0) and t.after[island] > t.before[island] * (scalar(1.0) + scalar(1.0e-10)):
            t.rebound[i] = scalar(0.0)
            t.target[r] = wp.max(t.gap[i], scalar(0.0)) / h


@wp.func
def take_no_energy(s: Parts, t: Workspace, contacts: wp.int32):
    """Scale the multipliers of islands that gained back to where their energy is least: E(θ) = E + θ b + ½ θ² c."""
    clear(t.before, s.bodies)
    clear(t.after, s.bodies)
    for k in range(3 * s.bodies):
        island = t.island[k // 3]
        if island >= 0:
            push = t.v1[k] - t.free[k]
            t.before[island] = t.before[island] + t.free[k] * push / t.weight[k]
            t.after[island] = t.after[island] + push * push / t.weight[k]
    if s.platforms > 0:
        for r in range(s.joint_rows + 2 * contacts):
            if island_of(t, r) >= 0:
                t.before[island_of(t, r)] = t.before[island_of(t, r)] + work_on_driven(t, r)
    for r in range(s.joint_rows + 2 * contacts):
        island = wp.max(island_of(t, r), 0)
        linear = t.before[island]
        square = t.after[island]
        if linear + scalar(0.5) * square > scalar(0.0):
            t.lambda0[r] = t.lambda0[r] * wp.clamp(-linear / square, scalar(0.0), scalar(1.0))
    apply_multipliers(s, t, contacts, t.rows0, t.v1)


@wp.func
def guess(s: Parts, t: Workspace, i: wp.int32, speed: scalar, slip: scalar, most: scalar):
    """Guess what contact i does: it is open if it parts with `speed`, slides if it slips by more than `most`."""
    t.mode0[i] = OPEN
    t.slide0[i] = scalar(0.0)
    if speed <= scalar(0.0):
        t.mode0[i] = STICKS
        if t.coefficient[i] == scalar(0.0):
            t.mode0[i] = SLIDES
        elif wp.abs(slip) > most:
            t.mode0[i] = SLIDES
            t.slide0[i] = -wp.sign(slip) * t.coefficient[i]


@wp.func
def prepare_crowd(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """Rows at the start, what is added to their speeds, friction, restitution; velocities without contact in `free`.

    Accelerations are at hand.
    """
    n = 3 * (s.bodies + 1)
    most = scalar(0.0)
    for k in range(n):
        t.free[k] = t.v0[k]
        if t.awake[k // 3] == 1:
            t.free[k] = t.v0[k] + h * t.a0[k]
        if k % 3 != 2:
            most = wp.max(most, wp.abs(t.a0[k]))
    brisk = wp.max(s.rest_speed, scalar(4.0) * h * most)
    # What a compliant contact sinks under its load in a step carries it in the next, so that nothing creeps.
    lift = SINKS * h * most
    for r in range(s.joint_rows):
        joint_row(s, t, t.q0, r, t.rows0)
        t.target[r] = scalar(0.0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        gap = contact_rows(s, t, t.q0, i, t.rows0, r)
        restitution, friction = properties_of(s, t, i)
        t.gap[i] = gap
        t.coefficient[i] = friction
        t.sliding[i] = 0
        t.rebound[i] = scalar(0.0)
        t.target[r] = wp.max(gap / h, -lift)
        t.target[r + 1] = scalar(0.0)
        approach = row_speed(t, t.rows0, r, t.v0)
        if gap <= s.tolerance and approach < -brisk:
            t.rebound[i] = restitution
            t.target[r] = restitution * approach
        slip = row_speed(t, t.rows0, r + 1, t.v0)
        guess(s, t, i, approach + gap / h - lift, slip, friction * h * most)


@wp.func
def crowd_velocities(s: Parts, t: Workspace, h: scalar):
    """The first stage: v1, and q1 without corrections; returns the number of contacts."""
    n = 3 * (s.bodies + 1)
    accelerate(s, t, t.q0, t.v0, t.a0)
    contacts = find_near(s, t, t.q0, h)
    prepare_crowd(s, t, contacts, h)
    recall_modes(s, t, contacts)
    solve_crowd(s, t, contacts, t.rows0, t.v1)
    remember_modes(s, t, contacts)
    if energies(s, t, contacts) == 1:
        drop_restitution(s, t, contacts, h)
        solve_crowd(s, t, contacts, t.rows0, t.v1)
        if energies(s, t, contacts) == 1:
            take_no_energy(s, t, contacts)
    clear(t.half, n)
    for r in range(s.joint_rows + 2 * contacts):
        # Whether what bears nothing counts as open is a matter of rounding.
        if wp.abs(t.own[r] * t.lambda0[r]) > s.rest_speed:
            t.half[3 * t.row_a[r]] = scalar(1.0)
            t.half[3 * t.row_b[r]] = scalar(1.0)
    for k in range(n):
        t.q1[k] = t.q0[k] + h * t.v1[k]
        if t.half[3 * (k // 3)] == scalar(0.0):
            t.q1[k] = t.q0[k] + scalar(0.5) * h * (t.v0[k] + t.v1[k])
    return contacts


@wp.func
def worst_error(s: Parts, t: Workspace, contacts: wp.int32):
    """Set rows and `target` at q1; return the deepest overlap, or a hundred times the most that a joint is off."""
    worst = scalar(0.0)
    for r in range(s.joint_rows):
        t.target[r] = joint_row(s, t, t.q1, r, t.rows1)
        worst = wp.max(worst, scalar(100.0) * wp.abs(t.target[r]))
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        t.target[r] = contact_rows(s, t, t.q1, i, t.rows1, r)
        t.target[r + 1] = scalar(0.0)
        t.coefficient[i] = scalar(0.0)
        t.sliding[i] = 0
        if -t.target[r] > s.slop:
            worst = wp.max(worst, -t.target[r])
        elif t.target[r] < scalar(0.0):
            # So little is left as it is: what rests is not to be moved because something elsewhere overlaps.
            t.target[r] = scalar(0.0)
        guess(s, t, i, t.target[r], scalar(0.0), scalar(0.0))
    return worst


@wp.func
def correct_positions(s: Parts, t: Workspace, contacts: wp.int32):
    """Move q1 by the least displacement, in `half`, that puts joints and overlaps right, linearised at q1."""
    n = 3 * (s.bodies + 1)
    clear(t.free, n)
    solve_crowd(s, t, contacts, t.rows1, t.half)
    for k in range(n):
        t.q1[k] = t.q1[k] + t.half[k]


@wp.func
def crowd(s: Parts, t: Workspace, h: scalar, most: wp.int32):
    """Set (q1, v1) after h, with at most so many corrections of positions; returns how many there were.

    Where the duration is zero, positions alone are corrected.
    """
    n = 3 * (s.bodies + 1)
    if h > scalar(0.0):
        crowd_velocities(s, t, h)
        find_calm(s, t, h)
    else:
        copy(t.q0, t.q1, n)
        copy(t.v0, t.v1, n)
    t.counts[FACTORED] = 0
    done = wp.int32(0)
    going = wp.int32(1)
    while going == 1:
        going = wp.int32(0)
        if done < most:
            contacts = wp.int32(0)
            if done < CORRECTIONS - LAST and t.counts[FACTORED] < CORRECTING:
                contacts = find_near(s, t, t.q1, scalar(0.0))
                if wake_touched(s, t, contacts) == 1:
                    # The caller does all of it again.
                    wake_all(s, t)
            t.counts[CONTACTS] = contacts
            error = worst_error(s, t, contacts)
            if error > s.tolerance:
                correct_positions(s, t, contacts)
                done += 1
                going = wp.int32(1)
    if h > scalar(0.0) and most == CORRECTIONS:
        come_to_rest(s, t)
    for k in range(n):
        if not (wp.isfinite(t.q1[k]) and wp.isfinite(t.v1[k])):
            t.counts[FAILED] = 1
    return done
