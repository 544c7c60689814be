"""What many contacts do: a primal–dual interior-point method for contact and friction, and the answer it leads to.

A contact has a normal multiplier λ ≥ 0 and a speed u ≥ 0 of which one is zero, and, with friction μ and tangent τ,
    α = μ λ − τ ≥ 0,  q ≥ 0,  α q = 0        β = μ λ + τ ≥ 0,  p ≥ 0,  β p = 0        slip = p − q:
it slips forward (p > 0) with all friction backward (β = 0), and the other way round. Newton's method on these, with all
products held at a common value that falls to zero (Mehrotra, 1992), eliminates to a compliance of each contact,
    [u/λ, 0; μ (p/β − q/α), p/β + q/α],
and so to the system of `system`. Contacts have a small compliance of their own, so that the answer is one.
What contacts do is read off on the way, and tried; see `trial`.
"""

import warp as wp

from . import scalar
from .data import ITERATIONS, OPEN, SLIDES, SOFTNESS, STICKS, Parts, Workspace
from .system import answer, factor_system, number_unknowns, own_couplings
from .trial import disagreement, find_rates, rubs, try_modes

# How often what contacts do is put right by the answer to it: of a guess, and of what is read off on the way.
GUESSES = wp.constant(3)
TRIALS = wp.constant(3)

# Steps at most with one compliance; the largest miss of an answer that is taken, as a share of the problem.
STEPS = wp.constant(40)
AGREES = wp.constant(wp.float64(1.0e-9))

# The compliance of a contact, as a share of its own coupling: redundant contacts share their load by it.
FIRMEST = wp.constant(wp.float64(1.0e-6))

# With friction the problem is not monotone, and the way to an answer may end where it folds back. Then another way is
# tried, which begins nearer to the bounds; then, with ten times the compliance, both again, so often in all.
ATTEMPTS = wp.constant(8)
NEARER = wp.constant(wp.float64(0.1))

# Where a step is shorter than this share, some product is far below the others: the step goes towards their mean. Two
# such steps in a row lead nowhere.
JAMMED = wp.constant(wp.float64(0.1))
JAMS = wp.constant(2)

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
    """Start inside all bounds, at multipliers and speeds of a share of the problem's size; return that size."""
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
def measure(s: Parts, t: Workspace, contacts: wp.int32):
    """The mean of the products, and how far from complementary the contacts are, in units of the problem's size."""
    total = scalar(0.0)
    count = wp.int32(0)
    worst = scalar(0.0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        w = WIDTH * i
        for k in range(1 + 2 * rubs(t, i)):
            total += t.inside[w + k] * t.inside[w + 3 + k]
            count += 1
            unit = wp.sqrt(t.own[r + wp.min(k, 1)])
            worst = wp.max(worst, wp.min(t.inside[w + k] * unit, t.inside[w + 3 + k] / unit))
        worst = wp.max(worst, wp.abs(t.inside[w + 3] - t.rate[r]) / wp.sqrt(t.own[r]))
        if rubs(t, i) == 1:
            slip = t.inside[w + 5] - t.inside[w + 4]
            worst = wp.max(worst, wp.abs(slip - t.rate[r + 1]) / wp.sqrt(t.own[r + 1]))
    return total / scalar(wp.max(count, 1)), worst


@wp.func
def soften(s: Parts, t: Workspace, contacts: wp.int32):
    """Set `soft` to the compliances that contacts have inside, and `stiff` to their inverses."""
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        w = WIDTH * i
        normal = t.inside[w + 3] / t.inside[w] + t.keep[SOFTNESS] * t.own[r]
        t.soft[3 * i] = normal
        t.soft[3 * i + 1] = scalar(0.0)
        t.soft[3 * i + 2] = scalar(0.0)
        t.stiff[3 * i] = scalar(1.0) / normal
        t.stiff[3 * i + 1] = scalar(0.0)
        t.stiff[3 * i + 2] = scalar(0.0)
        if rubs(t, i) == 1:
            back = t.inside[w + 4] / t.inside[w + 1]
            forth = t.inside[w + 5] / t.inside[w + 2]
            tangent = forth + back + t.keep[SOFTNESS] * t.own[r + 1]
            t.soft[3 * i + 1] = t.coefficient[i] * (forth - back)
            t.soft[3 * i + 2] = tangent
            t.stiff[3 * i + 1] = -t.soft[3 * i + 1] / (normal * tangent)
            t.stiff[3 * i + 2] = scalar(1.0) / tangent
        elif t.sliding[i] == 1:
            t.stiff[3 * i + 1] = t.pull[i] / normal


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
        t.wanted[r] = t.inside[w + 3] - t.rate[r] + t.inside[w + 12] / t.inside[w]
        t.wanted[r + 1] = scalar(0.0)
        if rubs(t, i) == 1:
            aim = t.inside[w + 14] / t.inside[w + 2] - t.inside[w + 13] / t.inside[w + 1]
            t.wanted[r + 1] = t.inside[w + 5] - t.inside[w + 4] - t.rate[r + 1] + aim
    answer(s, t, contacts, n, rows, columns, 1)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        w = WIDTH * i
        t.inside[w + 6] = t.change[r]
        t.inside[w + 7] = t.coefficient[i] * t.change[r] - t.change[r + 1]
        t.inside[w + 8] = t.coefficient[i] * t.change[r] + t.change[r + 1]
        for k in range(1 + 2 * rubs(t, i)):
            t.inside[w + 9 + k] = (t.inside[w + 12 + k] - t.inside[w + 3 + k] * t.inside[w + 6 + k]) / t.inside[w + k]


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
        for k in range(1 + 2 * rubs(t, i)):
            count += 1
            ahead = t.inside[w + k] + length * t.inside[w + 6 + k]
            total += ahead * (t.inside[w + 3 + k] + length * t.inside[w + 9 + k])
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
                if t.inside[w + 1] * t.own[r + 1] < t.inside[w + 4]:
                    mode[i] = SLIDES
                    slide[i] = t.coefficient[i]
                elif t.inside[w + 2] * t.own[r + 1] < t.inside[w + 5]:
                    mode[i] = SLIDES
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
):
    """Follow the method until what contacts do is found, with an answer in `change`; return whether it was."""
    unit = begin_inside(s, t, contacts, rows, columns, multipliers, share)
    near = scalar(1.0e-5)
    found = wp.int32(0)
    taken = wp.int32(0)
    jams = wp.int32(0)
    going = wp.int32(1)
    while going == 1:
        find_rates(s, t, contacts, rows, columns, multipliers)
        mean, off = measure(s, t, contacts)
        if off <= near * unit or jams == JAMS:
            near *= scalar(1.0e-2)
            inside_modes(s, t, contacts, mode, slide)
            found = try_modes(s, t, contacts, n, rows, columns, mode, slide, enough, TRIALS)
            find_rates(s, t, contacts, rows, columns, multipliers)
        going = wp.int32(0)
        if found == 0 and taken < STEPS and jams < JAMS and off > scalar(1.0e-11) * unit:
            length = go_inside(s, t, contacts, n, rows, columns, mean, multipliers)
            jams += 1
            if length >= JAMMED:
                jams = wp.int32(0)
            taken += 1
            going = wp.int32(1)
    t.counts[ITERATIONS] = wp.max(t.counts[ITERATIONS], taken)
    return found


@wp.func
def find_modes(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    multipliers: wp.array(dtype=scalar),
    guessed: wp.int32,
):
    """Find what contacts do, and the multipliers of all rows, given the rows without multipliers in `offset`.

    Where it was guessed, the guess is tried first. Contacts that slide already do so as `slide` says. Returns by how
    much the answer misses, as a share of the problem.
    """
    size = s.joint_rows + 2 * contacts
    n = number_unknowns(s, t, contacts)
    own_couplings(s, t, contacts, rows, columns)
    scale = scalar(1.0e-300)
    for r in range(size):
        multipliers[r] = scalar(0.0)
        t.rate[r] = t.offset[r]
        scale = wp.max(scale, wp.abs(t.offset[r]))
    for i in range(contacts):
        t.pull[i] = scalar(0.0)
        if t.sliding[i] == 1:
            t.pull[i] = slide[i]
        elif guessed == 0:
            slide[i] = scalar(0.0)
    found = wp.int32(0)
    t.keep[SOFTNESS] = FIRMEST
    if contacts == 0 or guessed == 1:
        found = try_modes(s, t, contacts, n, rows, columns, mode, slide, AGREES * scale, GUESSES)
    attempt = wp.int32(0)
    while found == 0 and attempt < ATTEMPTS:
        share = scalar(1.0)
        if attempt % 2 == 1:
            share = NEARER
        elif attempt > 0:
            t.keep[SOFTNESS] = t.keep[SOFTNESS] * scalar(10.0)
        found = search_inside(s, t, contacts, n, rows, columns, mode, slide, multipliers, AGREES * scale, share)
        attempt += 1
    if found == 0:
        inside_modes(s, t, contacts, mode, slide)
    if found == 1:
        for r in range(size):
            multipliers[r] = t.change[r]
    find_rates(s, t, contacts, rows, columns, multipliers)
    return disagreement(s, t, contacts, multipliers) / scale
