"""Where a flow ends: at the first gap that closes, where a slip or an edge ends, or after the time that is left."""

import warp as wp

from . import scalar
from .collision_time import NEVER, next_contact
from .data import EDGE_ENDED, FAILED, GAP_CLOSED, NOTHING, OPEN, SLIP_ENDED, Parts, Workspace
from .edges import end_of_edge, past_end
from .flow import advance, path, place_bodies, positions, velocities
from .geometry import contact_rows, row_speed

# The shortest durations, as shares of dt: of a flow of bodies that nothing holds, of one whose multipliers are divided
# by it, and of one that is cut short to look again.
SHORTEST_FREE = wp.constant(wp.float64(1.0e-12))
SHORTEST = wp.constant(wp.float64(1.0e-9))
SHORTEST_CUT = wp.constant(wp.float64(1.0e-3))
CUTS = wp.constant(wp.float64(64.0))


@wp.func
def close_gap(s: Parts, t: Workspace, contacts: wp.int32, guess: scalar, most: scalar):
    """The duration after which the contact on the last line touches, with joints and contacts kept; Newton's method.

    Returns a number beyond `most` if it does not touch after all. Leaves q1 there.
    """
    h = guess
    r = s.joint_rows + 2 * contacts
    tries = wp.int32(0)
    before = scalar(1.0e30)
    going = wp.int32(1)
    while going == 1:
        positions(s, t, contacts, h)
        path(s, t, contacts, h)
        for k in range(3 * (s.bodies + 1)):
            t.v1[k] = t.v0[k] + h * t.a1[k]
        gap = contact_rows(s, t, t.q1, s.capacity, t.rows1, r)
        rate = row_speed(t, t.rows1, r, t.v1)
        tries += 1
        stalls = wp.abs(gap) <= s.tolerance and wp.abs(gap) >= before
        if wp.abs(gap) <= scalar(1.0e-5) * s.tolerance or stalls or tries > 20 or not (rate < scalar(0.0)):
            going = wp.int32(0)
            if wp.abs(gap) > s.tolerance:
                h = NEVER
        else:
            before = wp.abs(gap)
            h -= gap / rate
            if h > most or h <= scalar(0.0):
                going = wp.int32(0)
                if h <= scalar(0.0):
                    h = guess
    return h


@wp.func
def end_of_slip(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """Which contact's slip turns round first in the flow at hand, after what share of h, and slips; −1 for none."""
    which = wp.int32(-1)
    share = scalar(1.0)
    first = scalar(0.0)
    last = scalar(0.0)
    for i in range(contacts):
        if t.sliding[i] == 1 and t.mode1[i] != OPEN:
            r = s.joint_rows + 2 * i + 1
            before = row_speed(t, t.rows0, r, t.v0)
            after = row_speed(t, t.rows1, r, t.v1)
            if before * after < scalar(0.0) and wp.abs(after) > scalar(5.0) * s.rest_speed:
                if before / (before - after) < share:
                    share = before / (before - after)
                    which = i
                    first = before
                    last = after
    return which, share, first, last


@wp.func
def first_end(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """What ends first in the flow at hand, the slip of a contact or its edge: the event, the contact, and when.

    Returns what is zero there, a slip or G of `edges`, at the start and at the end, too.
    """
    event = int(SLIP_ENDED)
    which, share, first, last = end_of_slip(s, t, contacts, h)
    ended, sooner, before, after = end_of_edge(s, t, contacts)
    if ended >= 0 and (which < 0 or sooner < share):
        event = EDGE_ENDED
        which = ended
        share = sooner
        first = before
        last = after
    if which < 0:
        event = NOTHING
    return event, which, share, first, last


@wp.func
def stop_early(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    event: wp.int32,
    which: wp.int32,
    first: scalar,
    last: scalar,
    most: scalar,
    guess: scalar,
):
    """The duration after which a slip or an edge ends, by false position with memory; leaves (q1, v1) there.

    A contact that is still open by a rounding may stay so through a short flow: it slips all the same.
    """
    i = which
    enough = s.rest_speed * scalar(1.0e-3)
    if event == EDGE_ENDED:
        i = which // 2
        enough = s.tolerance * scalar(1.0e-3)
    r = s.joint_rows + 2 * contacts
    low = s.dt * SHORTEST
    high = most
    at_low = first
    at_high = last
    h = wp.max(guess, low)
    tries = wp.int32(0)
    going = wp.int32(1)
    while going == 1:
        advance(s, t, contacts, h)
        value = scalar(0.0)
        if event == EDGE_ENDED:
            value = past_end(s, t, t.q1, i, which % 2, t.rows1, r)
        else:
            contact_rows(s, t, t.q1, i, t.rows1, r)
            value = row_speed(t, t.rows1, r + 1, t.v1)
        tries += 1
        if wp.abs(value) <= enough or tries > 40 or t.counts[FAILED] == 1:
            going = wp.int32(0)
        else:
            if value * at_low > scalar(0.0):
                low = h
                at_low = value
                at_high = at_high * scalar(0.5)
            else:
                high = h
                at_high = value
                at_low = at_low * scalar(0.5)
            # Halving the end that stays is the Illinois rule: it keeps the false position from stalling.
            step = low + (high - low) * at_low / (at_low - at_high)
            if not (step > low and step < high):
                going = wp.int32(0)
            else:
                h = step
    return h


@wp.func
def flow_to_contact(s: Parts, t: Workspace, contacts: wp.int32, most: scalar):
    """Shorten the flow at hand, of duration `most`, until no gap closes on its way; returns duration and event.

    Where bodies are held, the way to q1 is a parabola only in the mean: when a gap closes is found by Newton's method
    on whole flows, and each shorter flow is looked at again. A gap that closed on the mean way alone cuts the flow
    short where it is still open: the next one looks again.
    """
    h = most
    event = int(NOTHING)
    size = s.joint_rows + 2 * contacts
    tries = wp.int32(0)
    going = wp.int32(1)
    while going == 1:
        path(s, t, contacts, h)
        time = next_contact(s, t, h)
        going = wp.int32(0)
        if time < h - s.dt * SHORTEST:
            tries += 1
            if size == 0:
                h = wp.max(time, s.dt * SHORTEST_FREE)
                event = GAP_CLOSED
            else:
                closed = close_gap(s, t, contacts, wp.max(time, s.dt * SHORTEST), h)
                if closed < h - s.dt * SHORTEST:
                    h = closed
                    event = GAP_CLOSED
                else:
                    # Whole parts of the time left: where one cuts does not depend on the state, nor does its gradient.
                    parts = wp.floor(wp.max(time, s.dt * SHORTEST_CUT) / most * CUTS)
                    h = wp.min(h, wp.max(parts / CUTS * most, s.dt * SHORTEST_CUT))
                    event = NOTHING
                if tries < 8:
                    going = wp.int32(1)
            positions(s, t, contacts, h)
    return h, event


@wp.func
def flow(s: Parts, t: Workspace, contacts: wp.int32, most: scalar):
    """Move to the next event, or for `most` if there is none; returns duration, event and the contact it is about.

    The flow is prepared.
    """
    h = most
    event = int(NOTHING)
    about = wp.int32(0)
    positions(s, t, contacts, h)
    if t.counts[FAILED] == 0:
        h, event = flow_to_contact(s, t, contacts, most)
        # Looking ahead used the end of the flow as its own.
        place_bodies(s, t, s.joint_rows + 2 * contacts, 3 * (s.bodies + 1))
    velocities(s, t, contacts, h)
    if t.counts[FAILED] == 0:
        ended, which, share, first, last = first_end(s, t, contacts, h)
        tries = wp.int32(0)
        while which >= 0 and tries < 8 and t.counts[FAILED] == 0:
            event = ended
            about = which
            h = stop_early(s, t, contacts, ended, which, first, last, h, h * share)
            ended, which, share, first, last = first_end(s, t, contacts, h)
            tries += 1
        if h > most - s.dt * SHORTEST and h < most:
            h = most
            event = NOTHING
            advance(s, t, contacts, h)
    return h, event, about
