"""The mixed linear complementarity problem of one stage: joints, contacts and friction, in their multipliers.

Every stage asks for multipliers λ in x = x° + W Cᵀ λ (W the inverse masses, C the rows by which forces act) such that
the rows r = b + A λ, A = R W Cᵀ, are zero for joints, non-negative and complementary for normals, and zero for
tangents or at the friction bound. Given what each contact does (open, slides, sticks), this is a linear system
    F λ = −b  over the joints, the closed normals and the sticking tangents,
where a sliding contact's column carries its friction with it: C = N + coefficient T. What the contacts do is first
guessed and corrected a few times, which finds nearly all answers; else the interior-point method decides.
"""

import warp as wp

from physvision.physics.lcp.kernels.linear import factor_bordered, solve

from . import scalar
from .data import COMPLIANCE, EFFORT, FAILED, LABOUR, OPEN, SLIDES, STICKS, WORST, Parts, Workspace, clear
from .modes import find_modes

# The compliance of a contact's row, as a share of its own, and how often what it yields is taken back. Rounding moves
# the shares of redundant contacts by its own size over the compliance.
SHARING = wp.constant(wp.float64(1.0e-6))
REFINEMENTS = wp.constant(2)

ROUNDING = wp.constant(wp.float64(1.0e-10))

# How often a guess is corrected by its answer, before `interior` decides; what it decides is kept where the answer
# contradicts it by less than so many times rounding, since its contacts yield.
GUESSES = wp.constant(5)
DECIDED = wp.constant(wp.float64(1.0e4))


@wp.func
def assemble(s: Parts, t: Workspace, rows: wp.array(dtype=scalar), columns: wp.array(dtype=scalar), n: wp.int32):
    """Set the n×n matrix A = R W Cᵀ: each row meets those alone that act on its bodies, which are chained together."""
    for body in range(s.bodies + 1):
        t.head[body] = -1
    for back in range(2 * n):
        end = 2 * n - 1 - back
        body = body_at(t, end)
        if t.weight[3 * body] > scalar(0.0):
            t.chain[end] = t.head[body]
            t.head[body] = end
    clear(t.matrix, n * n)
    for end in range(2 * n):
        body = body_at(t, end)
        other = t.head[body]
        while other >= 0:
            total = t.matrix[end // 2 * n + other // 2]
            for k in range(3):
                total += rows[3 * end + k] * t.weight[3 * body + k] * columns[3 * other + k]
            t.matrix[end // 2 * n + other // 2] = total
            other = t.chain[other]


@wp.func
def is_spent(s: Parts, t: Workspace):
    """Whether the step has taken all the work that it may.

    How often guesses and places are corrected is a matter of rounding. It counts as labour, of which there may be
    twice as much: the bound is nearly always reached by what any order of bodies would take, too.
    """
    spent = wp.int32(0)
    if t.counts[EFFORT] > s.effort or t.counts[LABOUR] > 2 * s.effort:
        spent = wp.int32(1)
    return spent


@wp.func
def charge(s: Parts, t: Workspace, contacts: wp.int32):
    """Count what a flow or an impact of so many contacts takes, about: ten solutions of all rows."""
    others = 2 * contacts
    n = s.joint_rows + others
    t.counts[EFFORT] = t.counts[EFFORT] + (n * n + 20 * n * s.joint_band) // 100 + (others * n * n) // 200


@wp.func
def body_at(t: Workspace, end: wp.int32):
    """The body at an end of a row: ends are numbered 2 r and 2 r + 1."""
    body = t.row_a[end // 2]
    if end % 2 == 1:
        body = t.row_b[end // 2]
    return body


@wp.func
def choose(s: Parts, t: Workspace, contacts: wp.int32, mode: wp.array(dtype=wp.int32)):
    """List the rows that are equations, given what the contacts do; return how many."""
    n = s.joint_rows
    for i in range(n):
        t.chosen[i] = i
    for i in range(contacts):
        if mode[i] != OPEN:
            t.chosen[n] = s.joint_rows + 2 * i
            n += 1
            if mode[i] == STICKS:
                t.chosen[n] = s.joint_rows + 2 * i + 1
                n += 1
    return n


@wp.func
def compliance_of(s: Parts, t: Workspace, row: wp.int32, size: wp.int32):
    """How much a row yields to its own multiplier."""
    share = COMPLIANCE
    if row >= s.joint_rows:
        share = SHARING
    return share * wp.abs(t.matrix[row * size + row])


@wp.func
def factor_chosen(
    s: Parts,
    t: Workspace,
    n: wp.int32,
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    size: wp.int32,
):
    """Factorise the system F of the chosen rows; the matrix A, size × size, is at hand."""
    joints = s.joint_rows
    clear(t.factors, n * n)
    for i in range(n):
        row = t.chosen[i]
        first = wp.int32(0)
        last = n
        if i < joints:
            first = wp.max(i - s.joint_band, 0)
            last = wp.min(i + s.joint_band + 1, joints)
        for j in range(first, last):
            t.factors[i * n + j] = entry_of(s, t, row, t.chosen[j], mode, slide, size)
        if i < joints:
            for j in range(joints, n):
                t.factors[i * n + j] = entry_of(s, t, row, t.chosen[j], mode, slide, size)
        t.factors[i * n + i] = t.factors[i * n + i] + compliance_of(s, t, row, size)
    others = n - joints
    t.counts[LABOUR] = t.counts[LABOUR] + (size * size + 20 * n * s.joint_band) // 1000 + (others * n * n) // 2000
    factor_bordered(t.factors, t.order, n, joints, s.joint_band)


@wp.func
def entry_of(
    s: Parts,
    t: Workspace,
    row: wp.int32,
    column: wp.int32,
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    size: wp.int32,
):
    """How fast a row moves for a unit of another's multiplier, with the friction that slides along."""
    entry = t.matrix[row * size + column]
    if column >= s.joint_rows:
        contact = (column - s.joint_rows) // 2
        if mode[contact] == SLIDES and slide[contact] != scalar(0.0):
            entry += slide[contact] * t.matrix[row * size + column + 1]
    return entry


@wp.func
def solutions(s: Parts, n: wp.int32):
    """How many solutions a system of n equations takes: joints alone are stiff enough to need one."""
    count = wp.int32(1)
    if n > s.joint_rows:
        count = REFINEMENTS + 1
    return count


@wp.func
def solve_chosen(
    s: Parts,
    t: Workspace,
    n: wp.int32,
    contacts: wp.int32,
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    multipliers: wp.array(dtype=scalar),
):
    """Set the multipliers of all rows to the solution of F λ = −b, b in `offset`.

    Contacts that are redundant share their load by their compliance D: the factors are those of F + D. What it lets
    them yield is then taken back, (F + D) λ′ = −b + D λ: each time what is left of it falls by the compliance's size,
    and the shares stay.
    """
    size = s.joint_rows + 2 * contacts
    for i in range(size):
        multipliers[i] = scalar(0.0)
    for again in range(solutions(s, n)):
        for i in range(n):
            t.x[i] = -t.offset[t.chosen[i]]
            if again > 0 and t.chosen[i] >= s.joint_rows:
                t.x[i] = t.x[i] + compliance_of(s, t, t.chosen[i], size) * multipliers[t.chosen[i]]
        solve(t.factors, t.order, t.x, n)
        for i in range(n):
            multipliers[t.chosen[i]] = t.x[i]
    for i in range(contacts):
        if mode[i] == SLIDES:
            r = s.joint_rows + 2 * i
            multipliers[r + 1] = slide[i] * multipliers[r]


@wp.func
def least_speed(s: Parts, t: Workspace, size: wp.int32, unit: scalar):
    """What rows move by that is more than rounding, given the unit of time that they move in.

    Places are rounded as well as speeds: where everything is slow it is they that matter.
    """
    fastest = scalar(0.0)
    for r in range(size):
        fastest = wp.max(fastest, wp.abs(t.offset[r]))
    return wp.max(ROUNDING * fastest, scalar(1.0e-4) * s.rest_speed * unit)


@wp.func
def guess_mode(
    t: Workspace,
    i: wp.int32,
    normal: scalar,
    tangent: scalar,
    least: scalar,
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
):
    """Close contact i; it sticks if friction seems enough to stop its tangent while the normal is stopped.

    What slips by less than `least`, which is rounding, sticks: how it would slip is for the loads to say.
    """
    mode[i] = SLIDES
    if t.sliding[i] == 0 and t.coefficient[i] > scalar(0.0):
        if wp.abs(tangent) > wp.max(t.coefficient[i] * wp.abs(normal), least):
            slide[i] = -wp.sign(tangent) * t.coefficient[i]
        else:
            mode[i] = STICKS


@wp.func
def correct_modes(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    multipliers: wp.array(dtype=scalar),
    size: wp.int32,
    least: scalar,
    rounding: scalar,
):
    """Change what contacts do where the solution contradicts it by more than rounding; return how many changed.

    Rounding is given as a speed, and as a share of the largest multiplier.
    """
    smallest = scalar(0.0)
    for r in range(size):
        smallest = wp.max(smallest, rounding * wp.abs(multipliers[r]))
    changed = wp.int32(0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        normal = t.offset[r]
        tangent = t.offset[r + 1]
        for j in range(size):
            normal += t.matrix[r * size + j] * multipliers[j]
            tangent += t.matrix[(r + 1) * size + j] * multipliers[j]
        bound = t.coefficient[i] * multipliers[r]
        if mode[i] == OPEN:
            if normal < -least:
                changed += 1
                guess_mode(t, i, normal, tangent, least, mode, slide)
        elif multipliers[r] < -smallest:
            changed += 1
            mode[i] = OPEN
        elif mode[i] == STICKS:
            if wp.abs(multipliers[r + 1]) > bound + smallest:
                changed += 1
                mode[i] = SLIDES
                slide[i] = wp.sign(multipliers[r + 1]) * t.coefficient[i]
        elif t.sliding[i] == 0 and slide[i] * tangent > least * t.coefficient[i]:
            changed += 1
            mode[i] = STICKS
    return changed


@wp.func
def solve_stage(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    multipliers: wp.array(dtype=scalar),
    unit: scalar,
):
    """Solve for the multipliers, from the modes guessed, with b in `offset`; the factors stay at hand.

    Returns the number of equations.
    """
    size = s.joint_rows + 2 * contacts
    assemble(s, t, rows, columns, size)
    least = least_speed(s, t, size, unit)
    rounding = wp.float64(1.0) * ROUNDING
    n = wp.int32(0)
    going = wp.int32(1)
    tries = wp.int32(0)
    while going == 1:
        n = choose(s, t, contacts, mode)
        factor_chosen(s, t, n, mode, slide, size)
        solve_chosen(s, t, n, contacts, mode, slide, multipliers)
        going = wp.int32(0)
        if contacts > 0 and correct_modes(s, t, contacts, mode, slide, multipliers, size, least, rounding) > 0:
            if is_spent(s, t) == 1 or tries > GUESSES:
                t.counts[FAILED] = 1
            else:
                going = wp.int32(1)
                if tries == GUESSES:
                    t.counts[LABOUR] = t.counts[LABOUR] + 30 * size
                    residual = find_modes(s, t, contacts, rows, columns, mode, slide, multipliers, 0)
                    if not (residual < scalar(1.0e-6)):
                        t.counts[FAILED] = 1
                        t.keep[WORST] = wp.max(t.keep[WORST], residual)
                    least = DECIDED * least
                    rounding = DECIDED * ROUNDING
        tries += 1
    return n
