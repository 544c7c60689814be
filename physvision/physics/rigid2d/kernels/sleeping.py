"""Islands at rest and sleeping bodies; an island is connected by contacts and joints.

An island at rest is frozen in place. It repeats its step as long as nothing comes near and no control changes, so it is
not computed again: its bodies sleep. Whether a step falls back must not depend on sleeping bodies. Therefore bodies
sleep only while the contacts among them and with static bodies alone exceed the table of events.
"""

import warp as wp

from .broad_phase import bounding_radius
from .data import BODY_A, Data, Model
from .forces import free_acceleration
from .narrow_phase import find_speculative_contacts, narrow_phase
from .precision import Array1d, scalar


@wp.func
def length_scale(m: Model, d: Data, k: int):
    """Return the factor from coordinate k to a length: the body's bounding radius for an angle, else one."""
    size = scalar(1.0)
    if k % 3 == 2:
        size = scalar(0.0)
        if k // 3 < m.bodies:
            size = bounding_radius(m, d, k // 3)
    return size


@wp.func
def set_rest_thresholds(m: Model, d: Data, h: scalar):
    """Set, for every body, the motion below which it is frozen: zero unless its island is at rest.

    An island at rest moves no faster than the accuracy of its contacts; its number is that of its first body.
    """
    for body in range(m.bodies):
        d.rest_threshold[body] = scalar(0.0)
        island = d.lcp.island[body]
        if island >= 0:
            d.sleep_group[body] = island
        if island >= 0 and island < body:
            d.rest_threshold[body] = d.rest_threshold[island]
        elif island == body:
            max_acceleration = scalar(0.0)
            max_velocity = scalar(0.0)
            for k in range(3 * body, 3 * m.bodies):
                if d.lcp.island[k // 3] == island:
                    max_acceleration = wp.max(max_acceleration, length_scale(m, d, k) * wp.abs(d.a0[k]))
                    max_velocity = wp.max(
                        max_velocity, length_scale(m, d, k) * wp.max(wp.abs(d.v0[k]), wp.abs(d.v1[k]))
                    )
            if max_velocity <= m.settings.sleep_velocity * h * max_acceleration:
                d.rest_threshold[body] = m.settings.sleep_velocity * h * h * max_acceleration


@wp.func
def freeze_resting_bodies(m: Model, d: Data):
    """Undo the motion of bodies of islands at rest that were hardly moved, and of sleeping ones."""
    for body in range(m.bodies):
        motion = scalar(0.0)
        for k in range(3 * body, 3 * body + 3):
            motion = wp.max(motion, length_scale(m, d, k) * wp.abs(d.q1[k] - d.q0[k]))
        if (d.rest_threshold[body] > scalar(0.0) and motion <= d.rest_threshold[body]) or d.lcp.awake[body] == 0:
            for k in range(3 * body, 3 * body + 3):
                d.q1[k] = d.q0[k]
                d.v1[k] = scalar(0.0)


@wp.func
def is_frozen(d: Data, body: int):
    """Return 1 if `freeze_resting_bodies` froze a body; it freezes all sleeping ones that are not kinematic."""
    result = wp.int32(0)
    sleeping = d.lcp.awake[body] == 0 and d.lcp.inverse_mass[3 * body] > scalar(0.0)
    if d.rest_threshold[body] > scalar(0.0) or sleeping:
        result = wp.int32(1)
        for k in range(3 * body, 3 * body + 3):
            if d.q1[k] != d.q0[k] or d.v1[k] != scalar(0.0):
                result = wp.int32(0)
    return result


@wp.func
def wake_all(m: Model, d: Data):
    """Wake every body that can move."""
    for body in range(m.bodies + 1):
        d.lcp.awake[body] = 0
        if body < m.bodies:
            if m.state_index[body] >= 0:
                d.lcp.awake[body] = 1
    d.sleeping_bodies = 0


@wp.func
def is_sleeping(m: Model, d: Data, body: int):
    """Return 1 if a body that could move sleeps."""
    result = wp.int32(0)
    if body < m.bodies:
        if m.state_index[body] >= 0:
            result = 1 - d.lcp.awake[body]
    return result


@wp.func
def wake_island(m: Model, d: Data, island: int):
    """Wake all bodies that were of this island when they fell asleep."""
    for body in range(m.bodies):
        if d.sleep_group[body] == island and is_sleeping(m, d, body) == 1:
            d.lcp.awake[body] = 1
            d.sleeping_bodies = d.sleeping_bodies - 1


@wp.func
def wake_contacted(m: Model, d: Data, contacts: int):
    """Wake the islands that contacts in the table connect with awake bodies; return 1 if there are any."""
    result = wp.int32(0)
    if d.sleeping_bodies > 0:
        for i in range(contacts):
            for side in range(2):
                body = d.contact_features[5 * i + BODY_A + side]
                # A kinematic body at rest is like a static one: contacts do not move it.
                if is_sleeping(m, d, body) == 1 and d.lcp.inverse_mass[3 * body] > scalar(0.0):
                    result = wp.int32(1)
                    wake_island(m, d, d.sleep_group[body])
    return result


@wp.func
def sleeping_contacts_overflow(m: Model, d: Data):
    """Return 1 if the contacts among sleeping and static bodies exceed the table of events."""
    for body in range(m.bodies):
        # The broad phase keeps pairs whose sum is positive.
        if d.lcp.awake[body] == 1:
            d.lcp.awake[body] = -9
        elif m.state_index[body] >= 0:
            d.lcp.awake[body] = 1
    d.overflow = 0
    narrow_phase(m, d)
    result = d.overflow
    d.overflow = 0
    for body in range(m.bodies):
        if d.lcp.awake[body] == 1:
            d.lcp.awake[body] = 0
        elif d.lcp.awake[body] < 0:
            d.lcp.awake[body] = 1
    return result


@wp.func
def put_to_sleep(m: Model, d: Data, q: Array1d, v: Array1d):
    """Put islands to sleep that rested in a step of one fallback operation that began at (q, v)."""
    count_before = d.sleeping_bodies
    for body in range(m.bodies):
        slot = m.state_index[body]
        if slot >= 0 and d.lcp.awake[body] == 1:
            moved = wp.int32(0)
            for k in range(3):
                if d.q0[3 * body + k] != q[3 * slot + k] or v[3 * slot + k] != scalar(0.0):
                    moved = wp.int32(1)
                if d.v0[3 * body + k] != scalar(0.0):
                    moved = wp.int32(1)
            if d.rest_threshold[body] == scalar(0.0) or moved == 1:
                # The whole island stays awake.
                d.rest_threshold[d.sleep_group[body]] = scalar(-1.0)
    for body in range(m.bodies):
        if m.state_index[body] >= 0 and d.lcp.awake[body] == 1:
            resting = wp.int32(0)
            if d.lcp.inverse_mass[3 * body] > scalar(0.0):
                if d.rest_threshold[d.sleep_group[body]] > scalar(0.0):
                    resting = wp.int32(1)
            elif d.v0[3 * body] == scalar(0.0) and d.v0[3 * body + 1] == scalar(0.0):
                if d.v0[3 * body + 2] == scalar(0.0):
                    resting = wp.int32(1)
            if resting == 1:
                d.lcp.awake[body] = 0
                d.sleeping_bodies = d.sleeping_bodies + 1
    if d.sleeping_bodies > count_before:
        if sleeping_contacts_overflow(m, d) == 0:
            wake_all(m, d)


@wp.func
def wake_near(m: Model, d: Data, h: scalar):
    """Wake the islands that a body may touch within h; all, if their contacts fit the table of events again."""
    running = wp.int32(1)
    any_woken = wp.int32(0)
    while running == 1:
        free_acceleration(m, d, d.q0, d.v0, d.a0)
        running = wake_contacted(m, d, find_speculative_contacts(m, d, d.q0, h))
        any_woken = wp.max(any_woken, running)
    if any_woken == 1:
        if sleeping_contacts_overflow(m, d) == 0:
            wake_all(m, d)
