"""Which of the contacts that touch rest or slide through the next flow, which part, and which strike.

A contact that parts, or would rebound, but is back within a hundredth of a step, rests: bounces that short would go on
without end. Whether it is back is seen by trying: a flow of that duration, with the contacts that rest for certain. In
one step a ball of restitution e then bounces at most ln((1 − e)/0.01)/(1 − e) < 37 times before it rests, whatever e.
Likewise a slip that friction would end at once counts as ended.
"""

import warp as wp

from . import scalar
from .data import CONTACTS, DEEPEST, FAILED, OPEN, OVERFLOW, WORST, Parts, Workspace
from .detect import deepest, find_touching, properties_of
from .flow import advance, positions, prepare_flow
from .forces import accelerate
from .geometry import contact_rows, row_speed

# Bounces, and ends of slip, within these shares of a step are over at once.
BRIEF_BOUNCE = wp.constant(wp.float64(1.0e-2))
BRIEF_SLIP = wp.constant(wp.float64(1.0e-4))


@wp.func
def exchange(t: Workspace, i: wp.int32, j: wp.int32):
    """Exchange two lines of the table of contacts."""
    if i != j:
        for k in range(5):
            number = t.contact[5 * i + k]
            t.contact[5 * i + k] = t.contact[5 * j + k]
            t.contact[5 * j + k] = number
        for k in range(6):
            value = t.feature[6 * i + k]
            t.feature[6 * i + k] = t.feature[6 * j + k]
            t.feature[6 * j + k] = value


@wp.func
def return_soon(s: Parts, t: Workspace, resting: wp.int32, count: wp.int32):
    """Move contacts that are back after a brief flow to those that rest; return how many rest then."""
    h = BRIEF_BOUNCE * s.dt
    prepare_flow(s, t, resting)
    positions(s, t, resting, h)
    kept = resting
    for i in range(resting, count):
        r = s.joint_rows + 2 * i
        gap = contact_rows(s, t, t.q0, i, t.rows0, r)
        speed = row_speed(t, t.rows0, r, t.v0)
        restitution, _friction = properties_of(s, t, i)
        lift = scalar(0.0)
        if speed < scalar(0.0):
            # A contact without restitution strikes, too: only what is slow is left to the flow.
            lift = -(scalar(1.0) + wp.max(restitution, scalar(0.5))) * speed * h
        if contact_rows(s, t, t.q1, i, t.rows1, r) + lift <= gap:
            exchange(t, i, kept)
            kept += 1
    return kept


@wp.func
def settle_slip(s: Parts, t: Workspace, contacts: wp.int32):
    """Let contacts stick whose slip turns round within a brief flow; the flow of all `contacts` is prepared.

    One that is open through it, since what counts as touching may be apart by a tolerance, strikes as it closes: that
    may turn its slip round at once, so that the problem decides how it slides.
    """
    most = scalar(0.0)
    for k in range(3 * (s.bodies + 1)):
        most = wp.max(most, wp.abs(t.a0[k]))
    slow = wp.int32(0)
    for i in range(contacts):
        if t.sliding[i] == 1:
            # Friction of a load a hundred times the heaviest at hand: only a filter for what is worth trying.
            slip = row_speed(t, t.rows0, s.joint_rows + 2 * i + 1, t.v0)
            if wp.abs(slip) < scalar(100.0) * BRIEF_SLIP * s.dt * most:
                slow = wp.int32(1)
    if slow == 1:
        advance(s, t, contacts, BRIEF_SLIP * s.dt)
        for i in range(contacts):
            r = s.joint_rows + 2 * i + 1
            if t.sliding[i] == 1:
                turned = row_speed(t, t.rows0, r, t.v0) * row_speed(t, t.rows1, r, t.v1) <= scalar(0.0)
                if turned or t.mode1[i] == OPEN:
                    t.sliding[i] = 0
                    t.slide0[i] = scalar(0.0)


@wp.func
def sort_touching(s: Parts, t: Workspace):
    """Fill the table with the contacts that touch, those that rest or slide first; return how many rest, and touch."""
    count = find_touching(s, t)
    t.keep[DEEPEST] = deepest(s, t, count)
    failed = t.counts[FAILED]
    worst = t.keep[WORST]
    resting = wp.int32(0)
    for i in range(count):
        if wp.abs(row_speed(t, t.rows0, s.joint_rows + 2 * i, t.v0)) <= s.rest_speed:
            exchange(t, i, resting)
            resting += 1
    before = wp.int32(-1)
    if t.counts[OVERFLOW] == 1:
        # More touch than can be followed: nobody asks what rests.
        before = resting
    while resting < count and resting > before:
        before = resting
        resting = return_soon(s, t, resting, count)
    t.counts[CONTACTS] = resting
    # What fails here was a trial.
    t.counts[FAILED] = failed
    t.keep[WORST] = worst
    return resting, count


@wp.func
def first_striking(s: Parts, t: Workspace, resting: wp.int32, count: wp.int32):
    """The first of the touching contacts that approaches and does not rest; −1 if none does."""
    found = wp.int32(-1)
    for i in range(resting, count):
        r = s.joint_rows + 2 * i
        t.gap[i] = contact_rows(s, t, t.q0, i, t.rows0, r)
        if found < 0 and row_speed(t, t.rows0, r, t.v0) < -s.rest_speed:
            found = i
    return found


@wp.func
def closed_on_the_grid(s: Parts, t: Workspace, i: wp.int32):
    """Whether contact i, which strikes as a step begins, closed there, so that its time moves with its gap.

    What overlaps, or strikes no faster than after a fall through the tolerance, is what crowded steps left in contact:
    it strikes at once, wherever it is.
    """
    accelerate(s, t, t.q0, t.v0, t.a0)
    most = scalar(0.0)
    for k in range(3 * (s.bodies + 1)):
        if k % 3 != 2:
            most = wp.max(most, wp.abs(t.a0[k]))
    speed = row_speed(t, t.rows0, s.joint_rows + 2 * i, t.v0)
    found = wp.int32(0)
    if wp.abs(t.gap[i]) <= scalar(1.0e-3) * s.tolerance and speed * speed > scalar(2.0) * most * s.tolerance:
        found = wp.int32(1)
    return found


@wp.func
def prepare_resting(s: Parts, t: Workspace, resting: wp.int32):
    """Prepare the flow of the contacts that rest or slide."""
    failed = t.counts[FAILED]
    worst = t.keep[WORST]
    prepare_flow(s, t, resting)
    settle_slip(s, t, resting)
    t.counts[FAILED] = failed
    t.keep[WORST] = worst
