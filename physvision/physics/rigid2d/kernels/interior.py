"""What many contacts do: a primal–dual interior-point method for contact and friction, and the answer it leads to.

A contact has a normal multiplier λ ≥ 0 and a speed u ≥ 0 of which one is zero, and, with friction μ and tangent τ,
    α = μ λ − τ ≥ 0,  q ≥ 0,  α q = 0        β = μ λ + τ ≥ 0,  p ≥ 0,  β p = 0        slip = p − q:
it slips forward (p > 0) with all friction backward (β = 0), and the other way round. Newton's method on these, with all
products held at a common value that falls to zero (Mehrotra, 1992), eliminates to a compliance of each contact,
    [u/λ, 0; μ (p/β − q/α), p/β + q/α],
and so to the system of `system`. Contacts have a small compliance of their own, so that the answer is one.
What contacts do is read off on the way, and tried; see `trial`. In the relaxed problem of `modes` a contact parts by
μ (p + q − w) besides u: then the compliance is [u/λ + μ² (p/β + q/α), μ (p/β − q/α); μ (p/β − q/α), p/β + q/α].
"""

import warp as wp

from . import scalar
from .data import FACTORED, OPEN, RELAXED, SLIDES, SOFTNESS, STICKS, Parts, Workspace
from .geometry import row_speed
from .system import answer, factor_system
from .trial import find_rates, rubs, try_modes

# How often what is read off on the way is put right by the answer to it.
TRIALS = wp.constant(3)

# Where a step is shorter than this share, some product is far below the others: the step goes towards their mean. So
# many such steps in a row lead nowhere; of a relaxed problem, which has an answer, more are taken.
JAMMED = wp.constant(wp.float64(0.1))
JAMS = wp.constant(2)
RELAXED_JAMS = wp.constant(4)

# Numbers a contact: λ, α, β, then u, q, p, then the directions of these six, then what the three products aim at.
WIDTH = wp.constant(15)


@wp.func
def begin_inside(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    multipliers: wp.array(dtype=scalar),
    share: scalar,
):
    """Start inside all bounds, at multipliers and speeds of a multiple of the problem's size, which is returned."""
    size = scalar(0.0)
    for r in range(s.joint_rows + 2 * contacts):
        multipliers[r] = scalar(0.0)
        size = wp.max(size, wp.abs(t.offset[r]) / wp.sqrt(t.own[r]))
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        multipliers[r] = share * size / wp.sqrt(t.own[r])
        if t.sliding[i] == 1:
            multipliers[r + 1] = t.pull[i] * multipliers[r]
    find_rates(s, t, contacts, rows, columns, multipliers)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        w = WIDTH * i
        least = share * size * wp.sqrt(t.own[r + 1])
        t.inside[w] = multipliers[r]
        t.inside[w + 3] = wp.max(t.rate[r], share * size * wp.sqrt(t.own[r]))
        for k in range(1, 3):
            t.inside[w + k] = t.coefficient[i] * multipliers[r]
        t.inside[w + 4] = wp.max(-t.rate[r + 1], scalar(0.0)) + least
        t.inside[w + 5] = wp.max(t.rate[r + 1], scalar(0.0)) + least
    return size


@wp.func
def parting(t: Workspace, i: wp.int32):
    """The speed at which relaxed contact i, at the numbers inside, parts beyond that which complements its load."""
    speed = scalar(0.0)
    if t.keep[RELAXED] > scalar(0.0) and rubs(t, i) == 1:
        speed = t.coefficient[i] * (t.inside[WIDTH * i + 4] + t.inside[WIDTH * i + 5] - t.parting[i])
    return speed


@wp.func
def measure(s: Parts, t: Workspace, contacts: wp.int32):
    """The mean of the products, and how far from complementary the contacts are, in units of the problem's size."""
    total = scalar(0.0)
    count = wp.int32(0)
    worst = scalar(0.0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        w = WIDTH * i
        total += t.inside[w] * t.inside[w + 3]
        count += 1 + 2 * rubs(t, i)
        if rubs(t, i) == 1:
            # Both ways to slip together, so that the sum is the same from the other side.
            total += t.inside[w + 1] * t.inside[w + 4] + t.inside[w + 2] * t.inside[w + 5]
        for k in range(1 + 2 * rubs(t, i)):
            unit = wp.sqrt(t.own[r + wp.min(k, 1)])
            worst = wp.max(worst, wp.min(t.inside[w + k] * unit, t.inside[w + 3 + k] / unit))
        worst = wp.max(worst, wp.abs(t.inside[w + 3] + parting(t, i) - t.rate[r]) / wp.sqrt(t.own[r]))
        if rubs(t, i) == 1:
            slip = t.inside[w + 5] - t.inside[w + 4]
            worst = wp.max(worst, wp.abs(slip - t.rate[r + 1]) / wp.sqrt(t.own[r + 1]))
    return total / scalar(wp.max(count, 1)), worst


@wp.func
def soften(s: Parts, t: Workspace, contacts: wp.int32):
    """Set `stiff` to the inverse of what contacts yield by inside: [n, m; k, f], m zero where not relaxed."""
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        w = WIDTH * i
        normal = t.inside[w + 3] / t.inside[w] + t.keep[SOFTNESS] * t.own[r]
        t.stiff[4 * i] = scalar(1.0) / normal
        for k in range(1, 4):
            t.stiff[4 * i + k] = scalar(0.0)
        if rubs(t, i) == 1:
            back = t.inside[w + 4] / t.inside[w + 1]
            forth = t.inside[w + 5] / t.inside[w + 2]
            tangent = forth + back + t.keep[SOFTNESS] * t.own[r + 1]
            across = t.coefficient[i] * (forth - back)
            relaxed = t.keep[RELAXED] * across
            square = t.keep[RELAXED] * t.coefficient[i] * t.coefficient[i]
            # Written out, since the squares of what is large cancel.
            least = scalar(4.0) * forth * back + t.keep[SOFTNESS] * t.own[r + 1] * (forth + back)
            determinant = normal * tangent + square * least
            normal += square * (forth + back)
            t.stiff[4 * i] = tangent / determinant
            t.stiff[4 * i + 1] = -relaxed / determinant
            t.stiff[4 * i + 2] = -across / determinant
            t.stiff[4 * i + 3] = normal / determinant
        elif t.sliding[i] == 1:
            t.stiff[4 * i + 2] = t.pull[i] / normal


@wp.func
def turn_tangent(t: Workspace, i: wp.int32, r: wp.int32, rows: wp.array(dtype=scalar)):
    """The tangential part of a direction of contact i, at row r, from the rows' changes.

    At the bound that is nearer, what is left of it is the small difference of large loads: there the slip is taken
    from what the row does, and the bound's part from that.
    """
    w = WIDTH * i
    slip = t.rate[r + 1] + row_speed(t, rows, r + 1, t.shift) + t.keep[SOFTNESS] * t.own[r + 1] * t.change[r + 1]
    slip += t.inside[w + 4] - t.inside[w + 5]
    side = wp.int32(1)
    sign = scalar(1.0)
    if t.inside[w + 4] * t.inside[w + 2] > t.inside[w + 5] * t.inside[w + 1]:
        side = wp.int32(2)
        sign = scalar(-1.0)
    far = w + side
    near = w + 3 - side
    t.inside[far + 6] = t.coefficient[i] * t.change[r] - sign * t.change[r + 1]
    t.inside[far + 9] = (t.inside[far + 12] - t.inside[far + 3] * t.inside[far + 6]) / t.inside[far]
    t.inside[near + 9] = sign * slip + t.inside[far + 9]
    t.inside[near + 6] = (t.inside[near + 12] - t.inside[near] * t.inside[near + 9]) / t.inside[near + 3]


@wp.func
def find_direction(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    n: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    center: scalar,
    corrected: wp.int32,
):
    """Set the direction in which all products become `center`; if corrected, by the last direction's own products."""
    for r in range(s.joint_rows):
        t.wanted[r] = -t.rate[r]
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        w = WIDTH * i
        for k in range(1 + 2 * rubs(t, i)):
            product = t.inside[w + k] * t.inside[w + 3 + k]
            if corrected == 1:
                product += t.inside[w + 6 + k] * t.inside[w + 9 + k]
            t.inside[w + 12 + k] = center - product
        t.wanted[r] = t.inside[w + 3] + parting(t, i) - t.rate[r] + t.inside[w + 12] / t.inside[w]
        t.wanted[r + 1] = scalar(0.0)
        if rubs(t, i) == 1:
            forth = t.inside[w + 14] / t.inside[w + 2]
            back = t.inside[w + 13] / t.inside[w + 1]
            t.wanted[r] = t.wanted[r] + t.keep[RELAXED] * t.coefficient[i] * (forth + back)
            t.wanted[r + 1] = (t.inside[w + 5] - t.inside[w + 4] - t.rate[r + 1]) + (forth - back)
    answer(s, t, contacts, n, rows, columns, 1)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        w = WIDTH * i
        t.inside[w + 6] = t.change[r]
        t.inside[w + 9] = (t.inside[w + 12] - t.inside[w + 3] * t.change[r]) / t.inside[w]
        if rubs(t, i) == 1:
            turn_tangent(t, i, r, rows)


@wp.func
def longest_step(t: Workspace, contacts: wp.int32):
    """How far one can go in the direction at hand without leaving the bounds, one at most."""
    length = scalar(1.0)
    for i in range(contacts):
        w = WIDTH * i
        for k in range(1 + 2 * rubs(t, i)):
            for side in range(2):
                value = t.inside[w + k + 3 * side]
                move = t.inside[w + 6 + k + 3 * side]
                if value + length * move < scalar(0.0):
                    length = -value / move
    return length


@wp.func
def product_ahead(t: Workspace, at: wp.int32, length: scalar):
    """What a product at `at` becomes where so much of the direction at hand is taken."""
    ahead = t.inside[at] + length * t.inside[at + 6]
    return ahead * (t.inside[at + 3] + length * t.inside[at + 9])


@wp.func
def go_inside(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    n: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    mean: scalar,
    multipliers: wp.array(dtype=scalar),
):
    """One step of the method: a direction that predicts, one that corrects it, and most of the way along it.

    Returns which share of that direction was taken.
    """
    soften(s, t, contacts)
    factor_system(s, t, contacts, n, rows, columns)
    find_direction(s, t, contacts, n, rows, columns, scalar(0.0), 0)
    length = longest_step(t, contacts)
    total = scalar(0.0)
    count = wp.int32(0)
    for i in range(contacts):
        w = WIDTH * i
        count += 1 + 2 * rubs(t, i)
        total += product_ahead(t, w, length)
        if rubs(t, i) == 1:
            total += product_ahead(t, w + 1, length) + product_ahead(t, w + 2, length)
    share = total / (scalar(count) * mean)
    center = mean * wp.max(share * share * share, scalar(1.0e-8))
    find_direction(s, t, contacts, n, rows, columns, center, 1)
    length = longest_step(t, contacts)
    if length < JAMMED:
        find_direction(s, t, contacts, n, rows, columns, mean, 0)
        length = longest_step(t, contacts)
    length = wp.min(scalar(0.995) * length, scalar(1.0))
    for r in range(s.joint_rows + 2 * contacts):
        multipliers[r] = multipliers[r] + length * t.change[r]
    for i in range(contacts):
        w = WIDTH * i
        for k in range(6):
            t.inside[w + k] = t.inside[w + k] + length * t.inside[w + 6 + k]
    return length


@wp.func
def inside_modes(
    s: Parts, t: Workspace, contacts: wp.int32, mode: wp.array(dtype=wp.int32), slide: wp.array(dtype=scalar)
):
    """Set what contacts do by which of each pair inside is larger."""
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        w = WIDTH * i
        mode[i] = OPEN
        if t.inside[w] * t.own[r] > t.inside[w + 3]:
            mode[i] = SLIDES
            if rubs(t, i) == 1:
                mode[i] = STICKS
                back = t.inside[w + 1] * t.own[r + 1] < t.inside[w + 4]
                forth = t.inside[w + 2] * t.own[r + 1] < t.inside[w + 5]
                if back and forth:
                    # Where the load is light, both may seem so.
                    back = t.inside[w + 4] > t.inside[w + 5]
                if back or forth:
                    mode[i] = SLIDES
                    slide[i] = t.coefficient[i]
                    if not back:
                        slide[i] = -t.coefficient[i]


@wp.func
def search_inside(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    n: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    multipliers: wp.array(dtype=scalar),
    enough: scalar,
    share: scalar,
    most: wp.int32,
):
    """Follow the method until what contacts do is found, with an answer in `change`; return whether it was.

    What they do is tried as the numbers inside come near an answer, and where the way to it ends.
    The count of factorisations may grow to `most`.
    """
    unit = begin_inside(s, t, contacts, rows, columns, multipliers, share)
    near = scalar(1.0e-5)
    found = wp.int32(0)
    jams = wp.int32(0)
    patience = wp.int32(JAMS)
    if t.keep[RELAXED] > scalar(0.0):
        patience = wp.int32(RELAXED_JAMS)
    going = wp.int32(1)
    while going == 1:
        find_rates(s, t, contacts, rows, columns, multipliers)
        mean, off = measure(s, t, contacts)
        inside_modes(s, t, contacts, mode, slide)
        if off <= near * unit or jams == patience:
            near *= scalar(1.0e-2)
            found = try_modes(s, t, contacts, n, rows, columns, mode, slide, enough, TRIALS)
            find_rates(s, t, contacts, rows, columns, multipliers)
        going = wp.int32(0)
        if found == 0 and t.counts[FACTORED] < most and jams < patience and off > scalar(1.0e-11) * unit:
            length = go_inside(s, t, contacts, n, rows, columns, mean, multipliers)
            jams += 1
            if length >= JAMMED:
                jams = wp.int32(0)
            going = wp.int32(1)
    return found
