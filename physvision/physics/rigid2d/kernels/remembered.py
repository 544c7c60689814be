"""What contacts did in the step before: the first guess at what they do in this one; and who was asleep.

Where a problem has several answers, which is found may hang on the guess and on who sleeps: a rollout notes both for
each step, so that the adjoint is that of the answer that was taken. A list has its length first. Each entry stands for
a contact, by a number made of its bodies and features, and what it did; where two contacts have the same number, which
needs thousands of them, one is guessed wrong. Pairs are in one order in all lists, so that each contact is looked for
near the one that was found last.
"""

import warp as wp

from . import scalar
from .data import (
    ASLEEP,
    BODY_A,
    BODY_B,
    FEATURE_A,
    FEATURE_B,
    KIND,
    SLIDES,
    Parts,
    Workspace,
)

# How many contacts are looked at in search of one.
NEAR_BY = wp.constant(12)
# What slides backward; other modes are as in `data`.
BACKWARD = wp.constant(3)


@wp.func
def number_of(s: Parts, t: Workspace, i: wp.int32):
    """A number that stands for contact i, below 2²⁹."""
    line = 5 * i
    pair = wp.uint32(t.contact[line + BODY_A] * (s.bodies + 1) + t.contact[line + BODY_B])
    features = wp.uint32(t.contact[line + FEATURE_A] * 64 + t.contact[line + FEATURE_B])
    number = (pair * wp.uint32(4096) + features) * wp.uint32(3) + wp.uint32(t.contact[line + KIND])
    return wp.int32(number % wp.uint32(536870909))


@wp.func
def remember_modes(s: Parts, t: Workspace, contacts: wp.int32):
    """Write down, in `kept`, the contacts at hand and what they do, as far as there is room."""
    count = wp.min(contacts, s.remembered)
    t.kept[0] = count
    for i in range(count):
        mode = t.mode0[i]
        if mode == SLIDES and t.slide0[i] < scalar(0.0):
            mode = wp.int32(BACKWARD)
        t.kept[1 + i] = 4 * number_of(s, t, i) + mode


@wp.func
def recall_modes(s: Parts, t: Workspace, contacts: wp.int32):
    """Let contacts that there were before do, in `mode0` and `slide0`, what they did then, as is `known`."""
    count = t.known[0]
    at = wp.int32(0)
    for i in range(contacts):
        number = number_of(s, t, i)
        found = wp.int32(-1)
        looked = wp.int32(0)
        while found < 0 and looked < wp.min(NEAR_BY, count):
            other = (at + looked) % count
            if t.known[1 + other] // 4 == number:
                found = other
            looked += 1
        if found >= 0:
            at = (found + 1) % count
            mode = t.known[1 + found] % 4
            t.slide0[i] = scalar(0.0)
            if mode == SLIDES:
                t.slide0[i] = t.coefficient[i]
            elif mode == BACKWARD:
                t.slide0[i] = -t.coefficient[i]
                mode = wp.int32(SLIDES)
            t.mode0[i] = mode


@wp.func
def write_note(s: Parts, t: Workspace, note: wp.array(dtype=wp.int32)):
    """Note what contacts did in the last crowd, and who was awake."""
    note[0] = t.kept[0]
    for i in range(t.kept[0]):
        note[1 + i] = t.kept[1 + i]
    for body in range(s.bodies):
        note[1 + s.remembered + body] = t.awake[body]


@wp.func
def wake_as_noted(s: Parts, t: Workspace, note: wp.array(dtype=wp.int32)):
    """Let be awake who was."""
    t.counts[ASLEEP] = 0
    for body in range(s.bodies):
        t.awake[body] = note[1 + s.remembered + body]
        if s.slot[body] >= 0:
            t.counts[ASLEEP] = t.counts[ASLEEP] + 1 - t.awake[body]
