"""Warm start: contact modes of the previous fallback step as the initial guess of the next, and the sleeping bodies.

Where a problem has several solutions, the guess and the sleeping bodies may decide which one is found: a rollout stores
both for each step, so that the adjoint is that of the solution in use. A list begins with its length. Each entry holds
a key, made of the contact's bodies and features, and the mode; if two contacts have equal keys, which is likely only
among thousands, one guess is wrong. All lists have the same order of pairs, so that each contact is searched near the
previous match.
"""

import warp as wp

from physvision.physics.lcp.kernels.problem import SLIDE

from .data import BODY_A, BODY_B, FEATURE_A, FEATURE_B, KIND, Data, Model
from .precision import IntArray1d, scalar

# Stored mode of a contact that slides backward; the other modes are those of `problem`.
SLIDE_BACKWARD = wp.constant(3)


@wp.func
def contact_key(m: Model, d: Data, i: int):
    """Return a hash key of contact i, less than 2²⁹."""
    entry = 5 * i
    pair = wp.uint32(d.contact_features[entry + BODY_A] * (m.bodies + 1) + d.contact_features[entry + BODY_B])
    features = wp.uint32(d.contact_features[entry + FEATURE_A] * 64 + d.contact_features[entry + FEATURE_B])
    key = (pair * wp.uint32(4096) + features) * wp.uint32(3) + wp.uint32(d.contact_features[entry + KIND])
    return wp.int32(key % wp.uint32(536870909))


@wp.func
def store_modes(m: Model, d: Data, contacts: int):
    """Store the keys and modes of the current contacts, up to the capacity of the list."""
    count = wp.min(contacts, m.max_stored_modes)
    d.stored_modes[0] = count
    for i in range(count):
        mode = d.mode0[i]
        if mode == SLIDE and d.ratio0[i] < scalar(0.0):
            mode = wp.int32(SLIDE_BACKWARD)
        d.stored_modes[1 + i] = 4 * contact_key(m, d, i) + mode


@wp.func
def warm_start_modes(m: Model, d: Data, contacts: int):
    """Set mode0 and ratio0 of contacts that existed in the previous step from their modes in that step."""
    count = d.previous_modes[0]
    start = wp.int32(0)
    for i in range(contacts):
        key = contact_key(m, d, i)
        match = wp.int32(-1)
        tested = wp.int32(0)
        while match < 0 and tested < wp.min(m.settings.warm_start_window, count):
            candidate = (start + tested) % count
            if d.previous_modes[1 + candidate] // 4 == key:
                match = candidate
            tested += 1
        if match >= 0:
            start = (match + 1) % count
            mode = d.previous_modes[1 + match] % 4
            d.ratio0[i] = scalar(0.0)
            if mode == SLIDE:
                d.ratio0[i] = d.lcp.friction[i]
            elif mode == SLIDE_BACKWARD:
                d.ratio0[i] = -d.lcp.friction[i]
                mode = wp.int32(SLIDE)
            d.mode0[i] = mode


@wp.func
def write_warm_start(m: Model, d: Data, record: IntArray1d):
    """Write the stored modes of the last fallback step, and which bodies are awake."""
    record[0] = d.stored_modes[0]
    for i in range(d.stored_modes[0]):
        record[1 + i] = d.stored_modes[1 + i]
    for body in range(m.bodies):
        record[1 + m.max_stored_modes + body] = d.lcp.awake[body]


@wp.func
def restore_sleep_state(m: Model, d: Data, record: IntArray1d):
    """Wake the bodies that were awake in the record, and put the others to sleep."""
    d.sleeping_bodies = 0
    for body in range(m.bodies):
        d.lcp.awake[body] = record[1 + m.max_stored_modes + body]
        if m.state_index[body] >= 0:
            d.sleeping_bodies = d.sleeping_bodies + 1 - d.lcp.awake[body]
