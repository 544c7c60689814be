"""Broad phase: a sweep along the axis on which bodies are spread farthest.

Each body fills an interval of that axis. Sorted by their lower ends, intervals that overlap follow each other closely,
so that cost grows with the number of neighbors and not with all pairs. The result is what a test of every pair gives,
in the same order.
"""

import warp as wp

from .data import CIRCLE, Data, Model
from .geometry import position, radius_of
from .precision import Array1d, scalar, vec2


@wp.func
def bounding_radius(m: Model, d: Data, body: int):
    """Return the radius about a body's frame that holds all of it."""
    radius = m.radii[body]
    if m.shape_type[body] == CIRCLE:
        radius = radius_of(m, d, body)
    return radius


@wp.func
def max_travel(m: Model, d: Data, body: int, a: Array1d, duration: scalar):
    """Return the farthest that a point of a body gets within `duration`.

    It starts with the velocity at the start, and has the acceleration in `a`.
    """
    linear = wp.length(position(d.v0, body)) + duration * wp.length(position(a, body))
    angular = wp.abs(d.v0[3 * body + 2]) + duration * wp.abs(a[3 * body + 2])
    return duration * (linear + bounding_radius(m, d, body) * angular)


@wp.func
def sweep_axis(m: Model, q: Array1d):
    """Return the axis, x or y, along which the moving bodies are spread farthest."""
    low = vec2(scalar(1.0e300), scalar(1.0e300))
    high = -low
    for body in range(m.bodies):
        if m.state_index[body] >= 0:
            low = wp.min(low, position(q, body))
            high = wp.max(high, position(q, body))
    return wp.where(high[1] - low[1] > high[0] - low[0], 1, 0)


@wp.func
def sort_bodies(m: Model, d: Data):
    """Sort `sweep_order` by the intervals' lower ends: an insertion sort, for nearly sorted input."""
    for i in range(1, m.bodies):
        body = d.sweep_order[i]
        k = i
        while k > 0 and d.interval_min[d.sweep_order[wp.max(k - 1, 0)]] > d.interval_min[body]:
            d.sweep_order[k] = d.sweep_order[k - 1]
            k -= 1
        d.sweep_order[k] = body


@wp.func
def sort_pairs(d: Data, count: int):
    """Sort the first `count` entries of `candidate_pairs` (Shell, 1959)."""
    gap = count // 2
    while gap > 0:
        for i in range(gap, count):
            pair = d.candidate_pairs[i]
            k = i
            while k >= gap and d.candidate_pairs[wp.max(k - gap, 0)] > pair:
                d.candidate_pairs[k] = d.candidate_pairs[k - gap]
                k -= gap
            d.candidate_pairs[k] = pair
        gap = gap // 2


@wp.func
def add_pair(m: Model, d: Data, pair: int, count: int):
    """Append a pair to `candidate_pairs` if one of its bodies is awake; return the number of pairs."""
    pairs = count
    if pair >= 0:
        if d.lcp.awake[m.pair_bodies[pair, 0]] + d.lcp.awake[m.pair_bodies[pair, 1]] > 0:
            d.candidate_pairs[count] = pair
            pairs = count + 1
    return pairs


@wp.func
def broad_phase(m: Model, d: Data, q: Array1d, a: Array1d, duration: scalar):
    """List in `candidate_pairs` the pairs that may touch within `duration`, at poses q; return their number."""
    count = wp.int32(0)
    if m.pairs <= m.settings.max_unsorted_pairs:
        for pair in range(m.pairs):
            count = add_pair(m, d, pair, count)
    else:
        axis = sweep_axis(m, q)
        for body in range(m.bodies):
            half_width = (scalar(1.0) + m.settings.speculative_margin) * bounding_radius(m, d, body) + m.tolerance
            if duration > scalar(0.0):
                half_width += max_travel(m, d, body, a, duration)
            d.interval_min[body] = q[3 * body + axis] - half_width
            d.interval_max[body] = q[3 * body + axis] + half_width
        sort_bodies(m, d)
        for i in range(m.bodies):
            body = d.sweep_order[i]
            k = i + 1
            while k < m.bodies:
                neighbor = d.sweep_order[k]
                k += 1
                if d.interval_min[neighbor] > d.interval_max[body]:
                    k = m.bodies
                else:
                    count = add_pair(m, d, m.pair_index[body * m.bodies + neighbor], count)
        sort_pairs(d, count)
    return count
