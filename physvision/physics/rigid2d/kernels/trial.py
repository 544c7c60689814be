"""Whether contacts can do what they are said to do: one system gives the answer, which says what is wrong with it.

Every contact is open (its multipliers are zero), sticks (its rows are equations) or slides (its normal row is one, and
friction goes along). An answer agrees if multipliers and rates then have the signs and bounds that were asked for.
"""

import warp as wp

from . import scalar
from .data import OPEN, RELAXED, SLIDES, SOFTNESS, STICKS, Parts, Workspace
from .geometry import row_speed
from .system import answer, displace, factor_system, stiffen


@wp.func
def rubs(t: Workspace, i: wp.int32):
    """Whether friction of contact i is to be found: it has some, and does not slide already."""
    found = wp.int32(0)
    if t.sliding[i] == 0 and t.coefficient[i] > scalar(0.0):
        found = wp.int32(1)
    return found


@wp.func
def find_rates(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    multipliers: wp.array(dtype=scalar),
):
    """Set `rate` to the rows' speeds with these multipliers, the contacts' compliance included."""
    displace(s, t, s.joint_rows + 2 * contacts, columns, multipliers)
    for r in range(s.joint_rows + 2 * contacts):
        t.rate[r] = t.offset[r] + row_speed(t, rows, r, t.shift)
        if r >= s.joint_rows:
            t.rate[r] = t.rate[r] + t.keep[SOFTNESS] * t.own[r] * multipliers[r]


@wp.func
def parting_speed(t: Workspace, i: wp.int32, r: wp.int32):
    """The speed that is zero where contact i, at row r, bears a load: its normal one, relaxed less what it parts by."""
    speed = t.rate[r]
    if t.keep[RELAXED] > scalar(0.0) and rubs(t, i) == 1:
        speed += t.coefficient[i] * (t.parting[i] - wp.abs(t.rate[r + 1]))
    return speed


@wp.func
def disagreement(s: Parts, t: Workspace, contacts: wp.int32, multipliers: wp.array(dtype=scalar)):
    """By how much multipliers and rates at hand miss the problem, as a speed."""
    worst = scalar(0.0)
    for r in range(s.joint_rows):
        if t.joint_place[r] >= 0:
            worst = wp.max(worst, wp.abs(t.rate[r]))
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        worst = wp.max(worst, wp.abs(wp.min(t.own[r] * multipliers[r], parting_speed(t, i, r))))
        if rubs(t, i) == 1:
            bound = t.coefficient[i] * wp.max(multipliers[r], scalar(0.0))
            free = multipliers[r + 1] - t.rate[r + 1] / t.own[r + 1]
            off = multipliers[r + 1] - wp.clamp(free, -bound, bound)
            worst = wp.max(worst, wp.abs(t.own[r + 1] * off))
    return worst


@wp.func
def read_modes(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    multipliers: wp.array(dtype=scalar),
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
):
    """Set what contacts do by their multipliers and rates: the piece of the problem that holds there."""
    changed = wp.int32(0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        was = mode[i]
        slid = slide[i]
        load = multipliers[r] - parting_speed(t, i, r) / t.own[r]
        if load <= scalar(0.0):
            mode[i] = OPEN
        elif rubs(t, i) == 1:
            free = multipliers[r + 1] - t.rate[r + 1] / t.own[r + 1]
            mode[i] = STICKS
            if wp.abs(free) > t.coefficient[i] * load:
                mode[i] = SLIDES
                slide[i] = wp.sign(free) * t.coefficient[i]
        else:
            mode[i] = SLIDES
        if mode[i] != was or (mode[i] == SLIDES and slide[i] != slid):
            changed = wp.int32(1)
    return changed


@wp.func
def try_modes(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    n: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    enough: scalar,
    most: wp.int32,
):
    """Solve for what contacts are said to do, and correct that by the answer, until it agrees; whether it does.

    There are at most so many solutions; the last is in `change`.
    """
    agrees = wp.int32(0)
    going = wp.int32(1)
    tries = wp.int32(0)
    while going == 1:
        stiffen(s, t, contacts, mode, slide)
        factor_system(s, t, contacts, n, rows, columns)
        for r in range(s.joint_rows + 2 * contacts):
            t.wanted[r] = -t.offset[r]
        if t.keep[RELAXED] > scalar(0.0):
            for i in range(contacts):
                r = s.joint_rows + 2 * i
                t.wanted[r] = t.wanted[r] - t.coefficient[i] * t.parting[i]
        answer(s, t, contacts, n, rows, columns, 2)
        find_rates(s, t, contacts, rows, columns, t.change)
        tries += 1
        going = wp.int32(0)
        if disagreement(s, t, contacts, t.change) <= enough:
            agrees = wp.int32(1)
        elif tries < most:
            going = read_modes(s, t, contacts, t.change, mode, slide)
    return agrees
