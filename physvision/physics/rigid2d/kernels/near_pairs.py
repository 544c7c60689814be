"""Which pairs of bodies may meet: a sweep along the axis on which bodies are spread farthest.

Each body fills an interval of that axis; sorted by where intervals begin, those that overlap follow each other closely,
so that cost grows with what is near and not with all pairs. The pairs found are those that a loop over all would find,
in the same order.
"""

import warp as wp

from . import scalar, vec2
from .data import CIRCLE, Parts, Workspace
from .geometry import place, round_of

# What is nearer than this share of the smaller body's reach is looked after when positions are corrected.
NEAR = wp.constant(wp.float64(1.0e-2))
# So few pairs are looked at one by one.
FEW = wp.constant(64)


@wp.func
def reach_of(s: Parts, t: Workspace, body: wp.int32):
    """The radius about a body's frame that holds all of it."""
    reach = s.reach[body]
    if s.kind[body] == CIRCLE:
        reach = round_of(s, t, body)
    return reach


@wp.func
def travel(s: Parts, t: Workspace, body: wp.int32, a: wp.array(dtype=scalar), duration: scalar):
    """How far a point of a body gets within `duration`, from the velocity at the start and the acceleration in `a`."""
    linear = wp.length(place(t.v0, body)) + duration * wp.length(place(a, body))
    angular = wp.abs(t.v0[3 * body + 2]) + duration * wp.abs(a[3 * body + 2])
    return duration * (linear + reach_of(s, t, body) * angular)


@wp.func
def widest_axis(s: Parts, q: wp.array(dtype=scalar)):
    """The axis, x or y, along which the moving bodies are spread farthest."""
    low = vec2(scalar(1.0e300), scalar(1.0e300))
    high = -low
    for body in range(s.bodies):
        if s.slot[body] >= 0:
            low = wp.min(low, place(q, body))
            high = wp.max(high, place(q, body))
    axis = wp.int32(0)
    if high[1] - low[1] > high[0] - low[0]:
        axis = wp.int32(1)
    return axis


@wp.func
def sort_bodies(s: Parts, t: Workspace):
    """Sort `sweep` by where intervals begin; from one time to the next there is little to do."""
    for i in range(1, s.bodies):
        body = t.sweep[i]
        k = i
        while k > 0 and t.low[t.sweep[wp.max(k - 1, 0)]] > t.low[body]:
            t.sweep[k] = t.sweep[k - 1]
            k -= 1
        t.sweep[k] = body


@wp.func
def sort_pairs(t: Workspace, count: wp.int32):
    """Sort the first `count` numbers of `near` (Shell, 1959)."""
    apart = count // 2
    while apart > 0:
        for i in range(apart, count):
            pair = t.near[i]
            k = i
            while k >= apart and t.near[wp.max(k - apart, 0)] > pair:
                t.near[k] = t.near[k - apart]
                k -= apart
            t.near[k] = pair
        apart = apart // 2


@wp.func
def add_pair(s: Parts, t: Workspace, pair: wp.int32, count: wp.int32):
    """Add a pair to `near` if one of its bodies is awake; return how many there are."""
    found = count
    if pair >= 0:
        if t.awake[s.pair_bodies[pair, 0]] + t.awake[s.pair_bodies[pair, 1]] > 0:
            t.near[count] = pair
            found = count + 1
    return found


@wp.func
def find_pairs(s: Parts, t: Workspace, q: wp.array(dtype=scalar), a: wp.array(dtype=scalar), duration: scalar):
    """List in `near` the pairs that may come near each other within `duration`, at poses q; return how many."""
    count = wp.int32(0)
    if s.pairs <= FEW:
        for pair in range(s.pairs):
            count = add_pair(s, t, pair, count)
    else:
        axis = widest_axis(s, q)
        for body in range(s.bodies):
            wide = (scalar(1.0) + NEAR) * reach_of(s, t, body) + s.tolerance
            if duration > scalar(0.0):
                wide += travel(s, t, body, a, duration)
            t.low[body] = q[3 * body + axis] - wide
            t.high[body] = q[3 * body + axis] + wide
        sort_bodies(s, t)
        for i in range(s.bodies):
            body = t.sweep[i]
            k = i + 1
            while k < s.bodies:
                other = t.sweep[k]
                k += 1
                if t.low[other] > t.high[body]:
                    k = s.bodies
                else:
                    count = add_pair(s, t, s.pair_number[body * s.bodies + other], count)
        sort_pairs(t, count)
    return count
