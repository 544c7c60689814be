"""Islands, bodies that hang together by contacts and joints: which of them rest, and which are asleep.

An island in which nothing moves is left where it is. It does in the next step what it did in this, as long as nothing
comes near and no control changes; so it is not computed again: its bodies are asleep. That a step is crowded must not
hang on who is asleep. So there are sleepers only while those contacts alone that touch between them, or between them
and static bodies, are more than can be followed.
"""

import warp as wp

from . import scalar
from .data import ASLEEP, BODY_A, OVERFLOW, Parts, Workspace
from .detect import find_near, find_touching
from .forces import accelerate
from .near_pairs import reach_of

# Bodies that are slower than this share of what free acceleration gives them in the step are at rest.
REST = wp.constant(wp.float64(1.0e-3))


@wp.func
def scale_of(s: Parts, t: Workspace, k: wp.int32):
    """What turns coordinate k into a length: the reach of its body where it is an angle, else one."""
    size = scalar(1.0)
    if k % 3 == 2:
        size = scalar(0.0)
        if k // 3 < s.bodies:
            size = reach_of(s, t, k // 3)
    return size


@wp.func
def find_calm(s: Parts, t: Workspace, h: scalar):
    """Set, for every body, how far it may move and be left where it was: zero where its island, at hand, is not calm.

    An island is calm that moves no faster than the solution of its contacts is exact; its number is its first body's.
    """
    for body in range(s.bodies):
        t.calm[body] = scalar(0.0)
        island = t.island[body]
        if island >= 0:
            t.group[body] = island
        if island >= 0 and island < body:
            t.calm[body] = t.calm[island]
        elif island == body:
            most = scalar(0.0)
            fastest = scalar(0.0)
            for k in range(3 * body, 3 * s.bodies):
                if t.island[k // 3] == island:
                    most = wp.max(most, scale_of(s, t, k) * wp.abs(t.a0[k]))
                    fastest = wp.max(fastest, scale_of(s, t, k) * wp.max(wp.abs(t.v0[k]), wp.abs(t.v1[k])))
            if fastest <= REST * h * most:
                t.calm[body] = REST * h * h * most


@wp.func
def come_to_rest(s: Parts, t: Workspace):
    """Leave bodies of calm islands where they were, without velocity, where they were not moved; and those asleep."""
    for body in range(s.bodies):
        far = scalar(0.0)
        for k in range(3 * body, 3 * body + 3):
            far = wp.max(far, scale_of(s, t, k) * wp.abs(t.q1[k] - t.q0[k]))
        if (t.calm[body] > scalar(0.0) and far <= t.calm[body]) or t.awake[body] == 0:
            for k in range(3 * body, 3 * body + 3):
                t.q1[k] = t.q0[k]
                t.v1[k] = scalar(0.0)


@wp.func
def came_to_rest(s: Parts, t: Workspace, body: wp.int32):
    """Whether `come_to_rest` left a body where it was; of what is asleep, but for what is driven, all did."""
    found = wp.int32(0)
    asleep = t.awake[body] == 0 and t.weight[3 * body] > scalar(0.0)
    if t.calm[body] > scalar(0.0) or asleep:
        found = wp.int32(1)
        for k in range(3 * body, 3 * body + 3):
            if t.q1[k] != t.q0[k] or t.v1[k] != scalar(0.0):
                found = wp.int32(0)
    return found


@wp.func
def wake_all(s: Parts, t: Workspace):
    """Let no body that moves be asleep."""
    for body in range(s.bodies + 1):
        t.awake[body] = 0
        if body < s.bodies:
            if s.slot[body] >= 0:
                t.awake[body] = 1
    t.counts[ASLEEP] = 0


@wp.func
def is_asleep(s: Parts, t: Workspace, body: wp.int32):
    """Whether a body that could move does not, because its island rests."""
    found = wp.int32(0)
    if body < s.bodies:
        if s.slot[body] >= 0:
            found = 1 - t.awake[body]
    return found


@wp.func
def wake_island(s: Parts, t: Workspace, island: wp.int32):
    """Wake all bodies that were of this island when they fell asleep."""
    for body in range(s.bodies):
        if t.group[body] == island and is_asleep(s, t, body) == 1:
            t.awake[body] = 1
            t.counts[ASLEEP] = t.counts[ASLEEP] - 1


@wp.func
def wake_touched(s: Parts, t: Workspace, contacts: wp.int32):
    """Wake the islands that the contacts in the table connect with bodies that are awake; whether there are any."""
    found = wp.int32(0)
    if t.counts[ASLEEP] > 0:
        for i in range(contacts):
            for side in range(2):
                body = t.contact[5 * i + BODY_A + side]
                # A driven body that stands is no more moved by what touches it than a static one.
                if is_asleep(s, t, body) == 1 and t.weight[3 * body] > scalar(0.0):
                    found = wp.int32(1)
                    wake_island(s, t, t.group[body])
    return found


@wp.func
def overfull_asleep(s: Parts, t: Workspace):
    """Whether the contacts that touch between what is asleep and static bodies are more than can be followed."""
    for body in range(s.bodies):
        # Pairs are looked at whose sum is positive.
        if t.awake[body] == 1:
            t.awake[body] = -9
        elif s.slot[body] >= 0:
            t.awake[body] = 1
    t.counts[OVERFLOW] = 0
    find_touching(s, t)
    found = t.counts[OVERFLOW]
    t.counts[OVERFLOW] = 0
    for body in range(s.bodies):
        if t.awake[body] == 1:
            t.awake[body] = 0
        elif t.awake[body] < 0:
            t.awake[body] = 1
    return found


@wp.func
def fall_asleep(s: Parts, t: Workspace, q: wp.array(dtype=scalar), v: wp.array(dtype=scalar)):
    """Let islands sleep that are calm and did not move in a step of one crowded operation that began at (q, v)."""
    before = t.counts[ASLEEP]
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0 and t.awake[body] == 1:
            moved = wp.int32(0)
            for k in range(3):
                if t.q0[3 * body + k] != q[3 * slot + k] or v[3 * slot + k] != scalar(0.0):
                    moved = wp.int32(1)
                if t.v0[3 * body + k] != scalar(0.0):
                    moved = wp.int32(1)
            if t.calm[body] == scalar(0.0) or moved == 1:
                # Its island stays awake as a whole.
                t.calm[t.group[body]] = scalar(-1.0)
    for body in range(s.bodies):
        if s.slot[body] >= 0 and t.awake[body] == 1:
            rests = wp.int32(0)
            if t.weight[3 * body] > scalar(0.0):
                if t.calm[t.group[body]] > scalar(0.0):
                    rests = wp.int32(1)
            elif t.v0[3 * body] == scalar(0.0) and t.v0[3 * body + 1] == scalar(0.0):
                if t.v0[3 * body + 2] == scalar(0.0):
                    rests = wp.int32(1)
            if rests == 1:
                t.awake[body] = 0
                t.counts[ASLEEP] = t.counts[ASLEEP] + 1
    if t.counts[ASLEEP] > before:
        if overfull_asleep(s, t) == 0:
            wake_all(s, t)


@wp.func
def wake_what_is_near(s: Parts, t: Workspace, h: scalar):
    """Wake the islands that something may touch within h; all, if what touches is not too much any more."""
    going = wp.int32(1)
    woken = wp.int32(0)
    while going == 1:
        accelerate(s, t, t.q0, t.v0, t.a0)
        going = wake_touched(s, t, find_near(s, t, t.q0, h))
        woken = wp.max(woken, going)
    if woken == 1:
        if overfull_asleep(s, t) == 0:
            wake_all(s, t)
