"""What contacts do and the answer to it: a guess, ways through the inside, and a problem that always has an answer.

With friction the problem is not monotone, and a way through the inside may end where it folds back. Then others are
tried, and at last the relaxed problem (Anitescu, 2006), in which what slides parts as well, λ ⟂ u − μ (|slip| − w) with
a given w: the conditions of a convex programme, which always has an answer. With w = |slip| it is the answer sought, so
w becomes the slip found, again and again (Cadoux, 2009), until what contacts do is an answer without relaxing. The work
of all this is bounded together; where the bound ends it, the first relaxed answer stands, w = 0: that of later ones
would hang on all before it, and so would its gradient.
"""

import warp as wp

from . import scalar
from .data import FACTORED, ITERATIONS, RELAXED, SOFTNESS, Parts, Workspace, copy
from .interior import TRIALS, inside_modes, search_inside
from .system import number_unknowns, own_couplings
from .trial import disagreement, find_rates, read_modes, rubs, try_modes

# How often a guess is put right by the answer to it; the largest miss of an answer, as a share of the problem.
GUESSES = wp.constant(5)
AGREES = wp.constant(wp.float64(1.0e-9))

# Factorisations at most, for all ways to an answer together and for each; what a relaxed problem takes, about.
WORK = wp.constant(150)
WAY = wp.constant(36)
RESERVE = wp.constant(30)

# The compliance of a contact, as a share of its own coupling: redundant contacts share their load by it. Where the way
# to an answer folds back, another is tried that begins nearer to the bounds, then others with softer contacts.
FIRMEST = wp.constant(wp.float64(1.0e-6))
SOFTER = wp.constant(wp.float64(1.0e-4))
SOFTEST = wp.constant(wp.float64(1.0e-3))
NEARER = wp.constant(wp.float64(0.1))
ATTEMPTS = wp.constant(5)


@wp.func
def search_relaxed(
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
    most: wp.int32,
):
    """Solve relaxed problems until what contacts do in one is an answer without relaxing; return whether it is.

    The count of factorisations may grow to `most`. Where none was found, the first relaxed answer's multipliers are in
    `multipliers`, and the problem stays relaxed, with w = 0.
    """
    size = s.joint_rows + 2 * contacts
    copy(multipliers, t.kappa, size)
    copy(multipliers, t.relaxed, size)
    first = wp.int32(1)
    share = scalar(1.0)
    found = wp.int32(0)
    solved = wp.int32(0)
    while found == 0 and t.counts[FACTORED] <= most - RESERVE + solved * (RESERVE - 2 * TRIALS):
        t.keep[RELAXED] = scalar(1.0)
        if solved == 1:
            # The slip changed, what contacts do hardly.
            find_rates(s, t, contacts, rows, columns, t.kappa)
            read_modes(s, t, contacts, t.kappa, mode, slide)
            solved = try_modes(s, t, contacts, n, rows, columns, mode, slide, enough, TRIALS)
        if solved == 0 and t.counts[FACTORED] <= most - RESERVE:
            solved = search_inside(s, t, contacts, n, rows, columns, mode, slide, multipliers, enough, share, most)
            share = scalar(10.0) * share
        if solved == 1:
            share = scalar(1.0)
            copy(t.change, t.kappa, size)
            if first == 1:
                copy(t.change, t.relaxed, size)
                first = wp.int32(0)
            find_rates(s, t, contacts, rows, columns, t.kappa)
            for i in range(contacts):
                if rubs(t, i) == 1:
                    t.parting[i] = wp.abs(t.rate[s.joint_rows + 2 * i + 1])
            t.keep[RELAXED] = scalar(0.0)
            found = try_modes(s, t, contacts, n, rows, columns, mode, slide, enough, TRIALS)
    if found == 0:
        t.keep[RELAXED] = scalar(1.0)
        copy(t.relaxed, multipliers, size)
        for i in range(contacts):
            t.parting[i] = scalar(0.0)
        find_rates(s, t, contacts, rows, columns, multipliers)
        read_modes(s, t, contacts, multipliers, mode, slide)
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
        t.parting[i] = scalar(0.0)
        if t.sliding[i] == 1:
            t.pull[i] = slide[i]
        elif guessed == 0:
            slide[i] = scalar(0.0)
    enough = AGREES * scale
    found = wp.int32(0)
    t.keep[RELAXED] = scalar(0.0)
    t.keep[SOFTNESS] = FIRMEST
    before = t.counts[FACTORED]
    most = before + WORK
    if contacts == 0 or guessed == 1:
        found = try_modes(s, t, contacts, n, rows, columns, mode, slide, enough, GUESSES)
    attempt = wp.int32(0)
    while found == 0 and attempt < ATTEMPTS and t.counts[FACTORED] < most - 2 * RESERVE:
        share = scalar(1.0)
        if attempt == 1 or attempt == 4:
            share = scalar(NEARER)
        if attempt == 2:
            t.keep[SOFTNESS] = SOFTER
        elif attempt == 3:
            t.keep[SOFTNESS] = SOFTEST
        end = wp.min(most - RESERVE, t.counts[FACTORED] + WAY)
        found = search_inside(s, t, contacts, n, rows, columns, mode, slide, multipliers, enough, share, end)
        attempt += 1
    if found == 0:
        if guessed == 1:
            found = search_relaxed(s, t, contacts, n, rows, columns, mode, slide, multipliers, enough, most)
        else:
            inside_modes(s, t, contacts, mode, slide)
    if found == 1:
        for r in range(size):
            multipliers[r] = t.change[r]
    t.counts[ITERATIONS] = wp.max(t.counts[ITERATIONS], t.counts[FACTORED] - before)
    find_rates(s, t, contacts, rows, columns, multipliers)
    relaxed = t.keep[RELAXED]
    t.keep[RELAXED] = scalar(0.0)
    missed = disagreement(s, t, contacts, multipliers) / scale
    t.keep[RELAXED] = relaxed
    return missed
