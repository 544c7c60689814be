"""The equations of many contacts and joints, solved for the bodies: sparse where each touches a few others.

With x = x° + W Cᵀ λ and rows R x + ρ, let a contact's multipliers answer what its rows miss by λ = K (r − R dx), K of
2 × 2, the inverse of what it yields by, zero where it is open; joints have R dx + ε λ = r. Then
    (W⁻¹ + Cᵀ K R) dx − C_jᵀ λ_j = Cᵀ K r,    R_j dx + ε λ_j = r_j,
three unknowns a moving body and one a row of a joint. Bodies are numbered as a walk through their contacts meets them
(Cuthill and McKee, 1969), joints right after their bodies: the factors L U fill no more than each row's envelope.
Given x̄, the transposed system gives y = W z and κ_j, and κ = Kᵀ C y: the adjoint of `adjoint`, z = x̄ − Rᵀ κ.
"""

import warp as wp

from physvision.physics.lcp.kernels.linear import add_multiple, dot

from . import scalar
from .data import COMPLIANCE, FACTORED, OPEN, RELAXED, SOFTNESS, STICKS, Parts, Workspace, clear
from .geometry import add_force, couple, row_speed


@wp.func
def own_couplings(
    s: Parts, t: Workspace, contacts: wp.int32, rows: wp.array(dtype=scalar), columns: wp.array(dtype=scalar)
):
    """Set in `own` how fast each row moves for a unit of its own multiplier; one for a row without effect."""
    for r in range(s.joint_rows + 2 * contacts):
        t.own[r] = couple(t, rows, columns, r, r)
        if not (t.own[r] > scalar(0.0)):
            t.own[r] = scalar(1.0)


@wp.func
def visit(t: Workspace, body: wp.int32, island: wp.int32, count: wp.int32):
    """Put a body into the queue if it moves, is awake and new; return how many are in it."""
    found = count
    if t.weight[3 * body] > scalar(0.0) and t.island[body] < 0 and t.awake[body] == 1:
        t.island[body] = island
        t.queue[count] = body
        found = count + 1
    return found


@wp.func
def walk(s: Parts, t: Workspace, contacts: wp.int32):
    """List the moving bodies in `queue`, neighbours after each other, and number their islands; return how many."""
    for body in range(s.bodies + 1):
        t.island[body] = -1
    count = wp.int32(0)
    done = wp.int32(0)
    for start in range(s.bodies):
        count = visit(t, start, start, count)
        while done < count:
            body = t.queue[done]
            done += 1
            for k in range(s.joint_rows + contacts):
                r = k
                if k >= s.joint_rows:
                    r = 2 * k - s.joint_rows
                if t.row_a[r] == body:
                    count = visit(t, t.row_b[r], t.island[body], count)
                elif t.row_b[r] == body:
                    count = visit(t, t.row_a[r], t.island[body], count)
    return count


@wp.func
def number_unknowns(s: Parts, t: Workspace, contacts: wp.int32):
    """Number the unknowns, in `place` and `joint_place`, and set where each row begins; return how many there are."""
    bodies = walk(s, t, contacts)
    for body in range(s.bodies + 1):
        t.place[body] = -1
    for r in range(s.joint_rows):
        t.joint_place[r] = -1
    n = wp.int32(0)
    for k in range(bodies):
        # Backwards, as George (1971) found, the rows begin later.
        body = t.queue[bodies - 1 - k]
        t.place[body] = n
        for i in range(3):
            t.first[n + i] = n
        n += 3
        for r in range(s.joint_rows):
            a = t.row_a[r]
            b = t.row_b[r]
            if a == body or b == body:
                other = a + b - body
                if t.weight[3 * other] == scalar(0.0) or t.place[other] >= 0:
                    t.joint_place[r] = n
                    t.first[n] = t.place[body]
                    if t.place[other] >= 0:
                        t.first[n] = wp.min(t.place[other], t.place[body])
                    n += 1
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        a = t.place[t.row_a[r]]
        b = t.place[t.row_b[r]]
        if a >= 0 and b >= 0:
            for k in range(3):
                late = wp.max(a, b) + k
                t.first[late] = wp.min(t.first[late], wp.min(a, b))
    return n


@wp.func
def add_entry(t: Workspace, n: wp.int32, i: wp.int32, j: wp.int32, value: scalar):
    """Add to the system's entry (i, j): below its diagonal row after row in `lower`, else column after column."""
    if i > j:
        t.lower[i * n + j] = t.lower[i * n + j] + value
    else:
        t.upper[j * n + i] = t.upper[j * n + i] + value


@wp.func
def add_block(
    t: Workspace,
    n: wp.int32,
    row: wp.int32,
    column: wp.int32,
    at_row: wp.int32,
    at_column: wp.int32,
    i: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
):
    """Add Cᵀ K R of contact i, between the bodies whose unknowns begin at `row` and `column`, to the system.

    Their parts of the contact's rows begin at `at_row` of the columns, and at `at_column` of the rows.
    """
    for k in range(3):
        push = columns[at_row + k] * t.stiff[4 * i] + columns[at_row + 6 + k] * t.stiff[4 * i + 2]
        drag = columns[at_row + k] * t.stiff[4 * i + 1] + columns[at_row + 6 + k] * t.stiff[4 * i + 3]
        for m in range(3):
            value = push * rows[at_column + m] + drag * rows[at_column + 6 + m]
            add_entry(t, n, row + k, column + m, value)


@wp.func
def add_contact(
    s: Parts,
    t: Workspace,
    i: wp.int32,
    n: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
):
    """Add Cᵀ K R of contact i to the system."""
    r = s.joint_rows + 2 * i
    a = t.place[t.row_a[r]]
    b = t.place[t.row_b[r]]
    if a >= 0:
        add_block(t, n, a, a, 6 * r, 6 * r, i, rows, columns)
    if b >= 0:
        add_block(t, n, b, b, 6 * r + 3, 6 * r + 3, i, rows, columns)
    if a >= 0 and b >= 0:
        add_block(t, n, a, b, 6 * r, 6 * r + 3, i, rows, columns)
        add_block(t, n, b, a, 6 * r + 3, 6 * r, i, rows, columns)


@wp.func
def factor_system(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    n: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
):
    """Factorise the system with the contacts' K in `stiff`, within the envelope; no rows are exchanged."""
    t.counts[FACTORED] = t.counts[FACTORED] + 1
    for i in range(n):
        for j in range(t.first[i], i + 1):
            t.lower[i * n + j] = scalar(0.0)
            t.upper[i * n + j] = scalar(0.0)
    for body in range(s.bodies):
        if t.place[body] >= 0:
            for k in range(3):
                add_entry(t, n, t.place[body] + k, t.place[body] + k, scalar(1.0) / t.weight[3 * body + k])
    for i in range(contacts):
        if t.stiff[4 * i] > scalar(0.0):
            add_contact(s, t, i, n, rows, columns)
    for r in range(s.joint_rows):
        row = t.joint_place[r]
        if row >= 0:
            add_entry(t, n, row, row, COMPLIANCE * t.own[r])
            for k in range(6):
                column = t.place[t.row_a[r]]
                if k >= 3:
                    column = t.place[t.row_b[r]]
                if column >= 0:
                    add_entry(t, n, row, column + k % 3, rows[6 * r + k])
                    add_entry(t, n, column + k % 3, row, -columns[6 * r + k])
    for i in range(n):
        start = t.first[i]
        for j in range(start, i):
            k = wp.max(start, t.first[j])
            below = t.lower[i * n + j] - dot(t.lower, i * n + k, t.upper, j * n + k, j - k)
            above = t.upper[i * n + j] - dot(t.lower, j * n + k, t.upper, i * n + k, j - k)
            t.lower[i * n + j] = below / t.upper[j * n + j]
            t.upper[i * n + j] = above
        pivot = t.upper[i * n + i] - dot(t.lower, i * n + start, t.upper, i * n + start, i - start)
        if wp.abs(pivot) < scalar(1.0e-30):
            pivot = scalar(1.0e-30)
        t.upper[i * n + i] = pivot


@wp.func
def solve_system(t: Workspace, n: wp.int32):
    """Replace `unknown`, the right-hand side, by the solution."""
    for i in range(n):
        start = t.first[i]
        t.unknown[i] = t.unknown[i] - dot(t.lower, i * n + start, t.unknown, start, i - start)
    for back in range(n):
        i = n - 1 - back
        start = t.first[i]
        t.unknown[i] = t.unknown[i] / t.upper[i * n + i]
        add_multiple(t.unknown, start, -t.unknown[i], t.upper, i * n + start, i - start)


@wp.func
def solve_system_transposed(t: Workspace, n: wp.int32):
    """Replace `unknown`, the right-hand side, by the solution of the transposed system."""
    for i in range(n):
        start = t.first[i]
        total = t.unknown[i] - dot(t.upper, i * n + start, t.unknown, start, i - start)
        t.unknown[i] = total / t.upper[i * n + i]
    for back in range(n):
        i = n - 1 - back
        start = t.first[i]
        add_multiple(t.unknown, start, -t.unknown[i], t.lower, i * n + start, i - start)


@wp.func
def displace(
    s: Parts, t: Workspace, size: wp.int32, columns: wp.array(dtype=scalar), multipliers: wp.array(dtype=scalar)
):
    """Set `shift` = W Cᵀ λ."""
    clear(t.shift, 3 * (s.bodies + 1))
    for r in range(size):
        if multipliers[r] != scalar(0.0):
            add_force(t, columns, r, multipliers[r], t.shift)


@wp.func
def answer(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    n: wp.int32,
    rows: wp.array(dtype=scalar),
    columns: wp.array(dtype=scalar),
    turns: wp.int32,
):
    """Set the multipliers in `change` that make rows move by what is in `wanted`, from the factors at hand.

    Stiff contacts magnify rounding: what the rows still miss is answered again in each further turn.
    """
    size = s.joint_rows + 2 * contacts
    clear(t.change, size)
    clear(t.shift, 3 * (s.bodies + 1))
    for turn in range(turns):
        if turn > 0:
            displace(s, t, size, columns, t.change)
        clear(t.unknown, n)
        for r in range(s.joint_rows):
            if t.joint_place[r] >= 0:
                t.unknown[t.joint_place[r]] = t.wanted[r] - row_speed(t, rows, r, t.shift)
        for i in range(contacts):
            r = s.joint_rows + 2 * i
            miss = t.wanted[r]
            slip = t.wanted[r + 1]
            if turn > 0:
                miss -= row_speed(t, rows, r, t.shift) + t.soft[2 * i] * t.change[r]
                slip -= row_speed(t, rows, r + 1, t.shift) + t.soft[2 * i + 1] * t.change[r + 1]
            t.answered[r] = t.stiff[4 * i] * miss + t.stiff[4 * i + 1] * slip
            t.answered[r + 1] = t.stiff[4 * i + 2] * miss + t.stiff[4 * i + 3] * slip
            a = t.place[t.row_a[r]]
            b = t.place[t.row_b[r]]
            for k in range(3):
                c = 6 * r + k
                if a >= 0:
                    force = columns[c] * t.answered[r] + columns[c + 6] * t.answered[r + 1]
                    t.unknown[a + k] = t.unknown[a + k] + force
                if b >= 0:
                    force = columns[c + 3] * t.answered[r] + columns[c + 9] * t.answered[r + 1]
                    t.unknown[b + k] = t.unknown[b + k] + force
        solve_system(t, n)
        spread(s, t)
        for r in range(s.joint_rows):
            if t.joint_place[r] >= 0:
                t.change[r] = t.change[r] + t.unknown[t.joint_place[r]]
        for i in range(contacts):
            r = s.joint_rows + 2 * i
            move = row_speed(t, rows, r, t.shift)
            drag = row_speed(t, rows, r + 1, t.shift)
            push = t.stiff[4 * i] * move + t.stiff[4 * i + 1] * drag
            pull = t.stiff[4 * i + 2] * move + t.stiff[4 * i + 3] * drag
            t.change[r] = t.change[r] + t.answered[r] - push
            t.change[r + 1] = t.change[r + 1] + t.answered[r + 1] - pull


@wp.func
def spread(s: Parts, t: Workspace):
    """Set `shift` to the bodies' part of the solution; zero for what does not move."""
    for body in range(s.bodies + 1):
        for k in range(3):
            t.shift[3 * body + k] = scalar(0.0)
            if t.place[body] >= 0:
                t.shift[3 * body + k] = t.unknown[t.place[body] + k]


@wp.func
def stiffen(s: Parts, t: Workspace, contacts: wp.int32, mode: wp.array(dtype=wp.int32), slide: wp.array(dtype=scalar)):
    """Set `soft` and `stiff` to what contacts are that do what `mode` and `slide` say.

    What sticks stops both rows, what slides its normal row, with friction along; relaxed, N + slide T, on both sides.
    """
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        for k in range(4):
            t.stiff[4 * i + k] = scalar(0.0)
        t.soft[2 * i] = t.keep[SOFTNESS] * t.own[r]
        t.soft[2 * i + 1] = t.keep[SOFTNESS] * t.own[r + 1]
        if mode[i] == STICKS:
            t.stiff[4 * i] = scalar(1.0) / t.soft[2 * i]
            t.stiff[4 * i + 3] = scalar(1.0) / t.soft[2 * i + 1]
        elif mode[i] != OPEN:
            along = slide[i]
            across = slide[i] * t.keep[RELAXED] * scalar(1 - t.sliding[i])
            t.stiff[4 * i] = scalar(1.0) / (t.soft[2 * i] + along * across * t.soft[2 * i + 1])
            t.stiff[4 * i + 1] = across * t.stiff[4 * i]
            t.stiff[4 * i + 2] = along * t.stiff[4 * i]
            t.stiff[4 * i + 3] = along * across * t.stiff[4 * i]
