"""Events that end a smooth step: a contact closes, or a contact's slip or edge ends."""

import warp as wp

from physvision.physics.lcp.kernels.problem import OPEN
from physvision.physics.lcp.kernels.rows import row_velocity

from .data import CONTACT_CLOSED, EDGE_ENDED, NO_EVENT, SLIP_ENDED, Data, Model
from .feature_changes import edge_end_overshoot, next_edge_end
from .geometry import contact_rows
from .precision import scalar
from .smooth_step import move_bodies, position_stage, set_mean_acceleration, smooth_step, velocity_stage
from .time_of_impact import NEVER, time_of_impact


@wp.func
def refine_contact_time(m: Model, d: Data, contacts: int, initial: scalar, max_duration: scalar):
    """Return the duration after which the contact on the last line touches, by Newton's method.

    Joints and contacts are held. Returns NEVER if the contact does not touch after all; leaves q1 at the end.
    """
    h = initial
    r = m.joint_rows + 2 * contacts
    iterations = wp.int32(0)
    before = scalar(1.0e30)
    running = wp.int32(1)
    while running == 1:
        position_stage(m, d, contacts, h)
        set_mean_acceleration(m, d, contacts, h)
        for k in range(3 * (m.bodies + 1)):
            d.v1[k] = d.v0[k] + h * d.a1[k]
        separation = contact_rows(m, d, d.q1, m.max_contacts, d.rows1, r)
        rate = row_velocity(d.lcp, d.rows1, r, d.v1)
        iterations += 1
        stalled = wp.abs(separation) <= m.tolerance and wp.abs(separation) >= before
        if (
            wp.abs(separation) <= scalar(1.0e-5) * m.tolerance
            or stalled
            or iterations > m.settings.max_contact_iterations
            or not (rate < scalar(0.0))
        ):
            running = wp.int32(0)
            if wp.abs(separation) > m.tolerance:
                h = NEVER
        else:
            before = wp.abs(separation)
            h -= separation / rate
            if h > max_duration or h <= scalar(0.0):
                running = wp.int32(0)
                if h <= scalar(0.0):
                    h = initial
    return h


@wp.func
def next_slip_end(m: Model, d: Data, contacts: int):
    """Return the contact whose slip reverses first, the fraction of the step, and its slip before and after.

    The contact is −1 if there is none.
    """
    index = wp.int32(-1)
    fraction = scalar(1.0)
    first = scalar(0.0)
    last = scalar(0.0)
    for i in range(contacts):
        if d.lcp.sliding[i] == 1 and d.mode1[i] != OPEN:
            r = m.joint_rows + 2 * i + 1
            before = row_velocity(d.lcp, d.rows0, r, d.v0)
            after = row_velocity(d.lcp, d.rows1, r, d.v1)
            if before * after < scalar(0.0) and wp.abs(after) > scalar(5.0) * m.restitution_threshold:
                if before / (before - after) < fraction:
                    fraction = before / (before - after)
                    index = i
                    first = before
                    last = after
    return index, fraction, first, last


@wp.func
def next_mode_end(m: Model, d: Data, contacts: int, h: scalar):
    """Return the event that ends a contact's mode first, its contact, fraction of the step, and values."""
    event = int(SLIP_ENDED)
    index, fraction, first, last = next_slip_end(m, d, contacts)
    edge_end, edge_fraction, before, after = next_edge_end(m, d, contacts)
    if edge_end >= 0 and (index < 0 or edge_fraction < fraction):
        event = EDGE_ENDED
        index = edge_end
        fraction = edge_fraction
        first = before
        last = after
    if index < 0:
        event = NO_EVENT
    return event, index, fraction, first, last


@wp.func
def refine_end_time(
    m: Model,
    d: Data,
    contacts: int,
    event: int,
    index: int,
    first: scalar,
    last: scalar,
    max_duration: scalar,
    initial: scalar,
):
    """Return the duration after which a slip or an edge ends, by the Illinois method; leaves (q1, v1) there.

    A contact that is open by rounding may stay so through a short step: it slips all the same.
    """
    i = index
    accuracy = m.restitution_threshold * scalar(1.0e-3)
    if event == EDGE_ENDED:
        i = index // 2
        accuracy = m.tolerance * scalar(1.0e-3)
    r = m.joint_rows + 2 * contacts
    low = m.dt * m.settings.min_duration
    high = max_duration
    at_low = first
    at_high = last
    h = wp.max(initial, low)
    iterations = wp.int32(0)
    running = wp.int32(1)
    while running == 1:
        smooth_step(m, d, contacts, h)
        value = scalar(0.0)
        if event == EDGE_ENDED:
            value = edge_end_overshoot(m, d, d.q1, i, index % 2, d.rows1, r)
        else:
            contact_rows(m, d, d.q1, i, d.rows1, r)
            value = row_velocity(d.lcp, d.rows1, r + 1, d.v1)
        iterations += 1
        if wp.abs(value) <= accuracy or iterations > m.settings.max_event_iterations or d.lcp.failed == 1:
            running = wp.int32(0)
        else:
            if value * at_low > scalar(0.0):
                low = h
                at_low = value
                at_high = at_high * scalar(0.5)
            else:
                high = h
                at_high = value
                at_low = at_low * scalar(0.5)
            # The Illinois method halves the value at the end that stays, so that false position does not stall.
            step = low + (high - low) * at_low / (at_low - at_high)
            if not (step > low and step < high):
                running = wp.int32(0)
            else:
                h = step
    return h


@wp.func
def shorten_to_contact(m: Model, d: Data, contacts: int, max_duration: scalar):
    """Shorten the smooth step at hand, of `max_duration`, until no contact closes; return duration and event.

    Where bodies are constrained, the path to q1 is a parabola only in the mean: Newton's method on whole steps finds
    the time at which a contact closes, and contacts are searched for again in each shorter step. A separation that
    closed on the mean path alone cuts the step short while it is still open; the next step searches again.
    """
    h = max_duration
    event = int(NO_EVENT)
    size = m.joint_rows + 2 * contacts
    iterations = wp.int32(0)
    running = wp.int32(1)
    while running == 1:
        set_mean_acceleration(m, d, contacts, h)
        time = time_of_impact(m, d, h)
        running = wp.int32(0)
        if time < h - m.dt * m.settings.min_duration:
            iterations += 1
            if size == 0:
                h = wp.max(time, m.dt * m.settings.min_free_duration)
                event = CONTACT_CLOSED
            else:
                contact_time = refine_contact_time(m, d, contacts, wp.max(time, m.dt * m.settings.min_duration), h)
                if contact_time < h - m.dt * m.settings.min_duration:
                    h = contact_time
                    event = CONTACT_CLOSED
                else:
                    # Whole parts of the time left: the cut does not depend on the state, nor does its gradient.
                    parts = wp.floor(wp.max(time, m.dt * m.settings.min_cut) / max_duration * m.settings.cut_divisions)
                    h = wp.min(h, wp.max(parts / m.settings.cut_divisions * max_duration, m.dt * m.settings.min_cut))
                    event = NO_EVENT
                if iterations < m.settings.max_event_retries:
                    running = wp.int32(1)
            position_stage(m, d, contacts, h)
    return h, event


@wp.func
def step_to_event(m: Model, d: Data, contacts: int, max_duration: scalar):
    """Move to the next event, or for `max_duration` if there is none; return duration, event and its contact.

    The smooth step is prepared.
    """
    h = max_duration
    event = int(NO_EVENT)
    contact = wp.int32(0)
    position_stage(m, d, contacts, h)
    if d.lcp.failed == 0:
        h, event = shorten_to_contact(m, d, contacts, max_duration)
        # The search for contacts overwrote the end of the step.
        move_bodies(d, m.joint_rows + 2 * contacts, 3 * (m.bodies + 1))
    velocity_stage(m, d, contacts, h)
    if d.lcp.failed == 0:
        ending, index, fraction, before, after = next_mode_end(m, d, contacts, h)
        iterations = wp.int32(0)
        while index >= 0 and iterations < m.settings.max_event_retries and d.lcp.failed == 0:
            event = ending
            contact = index
            h = refine_end_time(m, d, contacts, ending, index, before, after, h, h * fraction)
            ending, index, fraction, before, after = next_mode_end(m, d, contacts, h)
            iterations += 1
        if h > max_duration - m.dt * m.settings.min_duration and h < max_duration:
            h = max_duration
            event = NO_EVENT
            smooth_step(m, d, contacts, h)
    return h, event, contact
