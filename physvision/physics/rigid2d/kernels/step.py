"""One step of the fixed grid: flows and impacts in turn until its time is used up, with a log of them."""

import warp as wp

from . import scalar
from .data import FAILED, FLOW, GAP_CLOSED, IMPACT, NOTHING, OVERFLOW, Scene, Work, copy
from .events import flow
from .impact import impact
from .resting import first_striking, prepare_resting, sort_touching


@wp.func
def load(s: Scene, t: Work, q: wp.array(dtype=scalar), v: wp.array(dtype=scalar)):
    """Set the start from a state of the moving bodies; static bodies and the world stand where they stand."""
    for body in range(s.bodies + 1):
        for k in range(3):
            i = 3 * body + k
            t.v0[i] = scalar(0.0)
            slot = wp.int32(-1)
            if body < s.bodies:
                slot = s.slot[body]
            if slot >= 0:
                t.q0[i] = q[3 * slot + k]
                t.v0[i] = v[3 * slot + k]
            else:
                t.q0[i] = s.fixed[body, k]


@wp.func
def store(s: Scene, t: Work, q: wp.array(dtype=scalar), v: wp.array(dtype=scalar)):
    """Write the start's state of the moving bodies."""
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0:
            for k in range(3):
                q[3 * slot + k] = t.q0[3 * body + k]
                v[3 * slot + k] = t.v0[3 * body + k]


@wp.func
def record(s: Scene, t: Work, at: wp.int32, kind: wp.int32, event: wp.int32, about: wp.int32, h: scalar):
    """Write operation `at` to the log: its start, duration, what ended it and the contact that is about."""
    width = 6 * s.moving + 7
    store(s, t, t.log[at * width : at * width + 3 * s.moving], t.log[at * width + 3 * s.moving : (at + 1) * width])
    base = at * width + 6 * s.moving
    t.log[base] = h
    for k in range(6):
        t.log[base + 1 + k] = t.feature[6 * s.capacity + k]
    t.log_kind[5 * at] = kind + 2 * event
    t.log_kind[5 * at + 1] = about
    if event == GAP_CLOSED and kind == FLOW:
        # Kind, bodies and features of the contact, folded into what is left of the line.
        line = 5 * s.capacity
        t.log_kind[5 * at + 1] = t.contact[line]
        t.log_kind[5 * at + 2] = t.contact[line + 1]
        t.log_kind[5 * at + 3] = t.contact[line + 2]
        t.log_kind[5 * at + 4] = t.contact[line + 3] * 65536 + t.contact[line + 4]


@wp.func
def recall(s: Scene, t: Work, at: wp.int32):
    """Set the start from the log; return kind, what ended it, the contact and the duration."""
    width = 6 * s.moving + 7
    load(s, t, t.log[at * width : at * width + 3 * s.moving], t.log[at * width + 3 * s.moving : (at + 1) * width])
    base = at * width + 6 * s.moving
    for k in range(6):
        t.feature[6 * s.capacity + k] = t.log[base + 1 + k]
    kind = t.log_kind[5 * at] % 2
    event = t.log_kind[5 * at] // 2
    about = t.log_kind[5 * at + 1]
    if event == GAP_CLOSED and kind == FLOW:
        line = 5 * s.capacity
        t.contact[line] = t.log_kind[5 * at + 1]
        t.contact[line + 1] = t.log_kind[5 * at + 2]
        t.contact[line + 2] = t.log_kind[5 * at + 3]
        t.contact[line + 3] = t.log_kind[5 * at + 4] // 65536
        t.contact[line + 4] = t.log_kind[5 * at + 4] % 65536
    return kind, event, about, t.log[base]


@wp.func
def step(s: Scene, t: Work, logged: wp.int32):
    """Advance q0, v0 by one step of the grid; returns the number of operations."""
    n = 3 * (s.bodies + 1)
    left = s.dt
    count = wp.int32(0)
    while left > scalar(0.0):
        last = count >= s.operations - 2
        resting, touching = sort_touching(s, t)
        struck = first_striking(s, t, resting, touching)
        if struck >= 0 and count < s.operations - 1:
            if logged == 1:
                # An impact that no flow of this step led to fell on the grid: it ends a flow of no duration.
                event = int(NOTHING)
                if count == 0 and wp.abs(t.gap[struck]) <= s.tolerance:
                    event = GAP_CLOSED
                record(s, t, count, IMPACT, event, struck, scalar(0.0))
            impact(s, t, touching)
        else:
            look = wp.int32(1)
            if last:
                look = wp.int32(0)
                t.counts[FAILED] = 1
            prepare_resting(s, t, resting)
            h, event, about = flow(s, t, resting, left, look)
            if logged == 1:
                record(s, t, count, FLOW, event, about, h)
            copy(t.q1, t.q0, n)
            left -= h
        copy(t.v1, t.v0, n)
        count += 1
    if t.counts[OVERFLOW] == 1:
        t.counts[FAILED] = 1
    return count
