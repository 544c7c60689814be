"""Equations of many contacts and joints, solved for the bodies: sparse where a body touches few others.

With x = x° + W Cᵀ λ and row values R x + ρ, let the multipliers of a contact be λ = K (r − R dx), with K of 2 × 2 the
inverse of its compliance, zero where it is open; joints have R dx + ε λ = r. Then
    (W⁻¹ + Cᵀ K R) dx − C_jᵀ λ_j = Cᵀ K r,    R_j dx + ε λ_j = r_j,
three unknowns a moving body and one a joint row. Bodies are numbered by a breadth-first walk through their contacts
(Cuthill and McKee, 1969), joints right after their bodies: the factors L U fill no more than each row's envelope.
Given x̄, the transposed system gives y = W z and κ_j, and κ = Kᵀ C y: the adjoint z = x̄ − Rᵀ κ.
"""

import warp as wp

from .linear import add_multiple, dot
from .precision import Array1d, scalar
from .problem import OPEN, STICK, Problem, clear
from .rows import apply_impulse, link_row_ends, row_body, row_velocity


@wp.func
def delassus_diagonal(p: Problem, contacts: int):
    """Set `diagonal` to that of the Delassus matrix; one for a row without effect."""
    for r in range(p.joint_rows + 2 * contacts):
        entry = scalar(0.0)
        for k in range(6 * r, 6 * r + 6):
            entry += p.rows[k] * p.inverse_mass[3 * row_body(p, r, k // 3 % 2) + k % 3] * p.columns[k]
        p.diagonal[r] = wp.where(entry > scalar(0.0), entry, scalar(1.0))


@wp.func
def enqueue_body(p: Problem, body: int, island: int, count: int):
    """Append a body to the queue if it moves, is awake and is new; return the length of the queue."""
    length = count
    if p.inverse_mass[3 * body] > scalar(0.0) and p.island[body] < 0 and p.awake[body] == 1:
        p.island[body] = island
        p.queue[count] = body
        length = count + 1
    return length


@wp.func
def order_bodies(p: Problem, contacts: int):
    """List the moving bodies in `queue`, breadth first, and number their islands; return their number."""
    link_row_ends(p, p.joint_rows + 2 * contacts)
    for body in range(p.bodies + 1):
        p.island[body] = -1
    count = wp.int32(0)
    processed = wp.int32(0)
    for start in range(p.bodies):
        count = enqueue_body(p, start, start, count)
        while processed < count:
            body = p.queue[processed]
            processed += 1
            end = p.first_end[body]
            while end >= 0:
                count = enqueue_body(p, row_body(p, end // 2, 1 - end % 2), p.island[body], count)
                end = p.next_end[end]
    return count


@wp.func
def number_unknowns(p: Problem, contacts: int):
    """Number the unknowns of bodies and joints, set the envelope of each row, and return their number."""
    bodies = order_bodies(p, contacts)
    for body in range(p.bodies + 1):
        p.body_unknown[body] = -1
    for r in range(p.joint_rows):
        p.joint_unknown[r] = -1
    n = wp.int32(0)
    for k in range(bodies):
        # In reverse order (George, 1971) the envelope is smaller.
        body = p.queue[bodies - 1 - k]
        p.body_unknown[body] = n
        for i in range(3):
            p.envelope[n + i] = n
        n += 3
        end = p.first_end[body]
        while end >= 0:
            r = end // 2
            neighbor = row_body(p, r, 1 - end % 2)
            is_numbered = p.inverse_mass[3 * neighbor] == scalar(0.0) or p.body_unknown[neighbor] >= 0
            if r < p.joint_rows and is_numbered:
                p.joint_unknown[r] = n
                p.envelope[n] = p.body_unknown[body]
                if p.body_unknown[neighbor] >= 0:
                    p.envelope[n] = wp.min(p.body_unknown[neighbor], p.body_unknown[body])
                n += 1
            end = p.next_end[end]
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        a = p.body_unknown[p.row_a[r]]
        b = p.body_unknown[p.row_b[r]]
        if a >= 0 and b >= 0:
            for k in range(3):
                row = wp.max(a, b) + k
                p.envelope[row] = wp.min(p.envelope[row], wp.min(a, b))
    return n


@wp.func
def add_entry(p: Problem, n: int, i: int, j: int, value: scalar):
    """Add to entry (i, j): below the diagonal row by row in `lower`, else column by column in `upper`."""
    if i > j:
        p.lower[i * n + j] = p.lower[i * n + j] + value
    else:
        p.upper[j * n + i] = p.upper[j * n + i] + value


@wp.func
def add_block(p: Problem, n: int, row: int, column: int, columns_offset: int, rows_offset: int, i: int):
    """Add Cᵀ K R of contact i, between the bodies whose unknowns begin at `row` and `column`, to the system.

    The bodies' parts of the contact begin at `columns_offset` of the columns C, and at `rows_offset` of the rows R.
    """
    for k in range(3):
        normal = (
            p.columns[columns_offset + k] * p.stiffness[4 * i]
            + p.columns[columns_offset + 6 + k] * p.stiffness[4 * i + 2]
        )
        tangential = (
            p.columns[columns_offset + k] * p.stiffness[4 * i + 1]
            + p.columns[columns_offset + 6 + k] * p.stiffness[4 * i + 3]
        )
        for m in range(3):
            value = normal * p.rows[rows_offset + m] + tangential * p.rows[rows_offset + 6 + m]
            add_entry(p, n, row + k, column + m, value)


@wp.func
def add_contact(p: Problem, i: int, n: int):
    """Add Cᵀ K R of contact i to the system."""
    r = p.joint_rows + 2 * i
    a = p.body_unknown[p.row_a[r]]
    b = p.body_unknown[p.row_b[r]]
    if a >= 0:
        add_block(p, n, a, a, 6 * r, 6 * r, i)
    if b >= 0:
        add_block(p, n, b, b, 6 * r + 3, 6 * r + 3, i)
    if a >= 0 and b >= 0:
        add_block(p, n, a, b, 6 * r, 6 * r + 3, i)
        add_block(p, n, b, a, 6 * r + 3, 6 * r, i)


@wp.func
def factor_system(p: Problem, contacts: int, n: int):
    """Factorize the system with the contacts' K in `stiffness`, within the envelope, without row exchanges."""
    p.factorizations = p.factorizations + 1
    for i in range(n):
        for j in range(p.envelope[i], i + 1):
            p.lower[i * n + j] = scalar(0.0)
            p.upper[i * n + j] = scalar(0.0)
    for body in range(p.bodies):
        if p.body_unknown[body] >= 0:
            for k in range(3):
                add_entry(
                    p, n, p.body_unknown[body] + k, p.body_unknown[body] + k, scalar(1.0) / p.inverse_mass[3 * body + k]
                )
    for i in range(contacts):
        if p.stiffness[4 * i] > scalar(0.0):
            add_contact(p, i, n)
    for r in range(p.joint_rows):
        row = p.joint_unknown[r]
        if row >= 0:
            add_entry(p, n, row, row, p.settings.joint_compliance * p.diagonal[r])
            for k in range(6):
                column = p.body_unknown[row_body(p, r, k // 3)]
                if column >= 0:
                    add_entry(p, n, row, column + k % 3, p.rows[6 * r + k])
                    add_entry(p, n, column + k % 3, row, -p.columns[6 * r + k])
    for i in range(n):
        start = p.envelope[i]
        for j in range(start, i):
            k = wp.max(start, p.envelope[j])
            below = p.lower[i * n + j] - dot(p.lower, i * n + k, p.upper, j * n + k, j - k)
            above = p.upper[i * n + j] - dot(p.lower, j * n + k, p.upper, i * n + k, j - k)
            p.lower[i * n + j] = below / p.upper[j * n + j]
            p.upper[i * n + j] = above
        pivot = p.upper[i * n + i] - dot(p.lower, i * n + start, p.upper, i * n + start, i - start)
        p.upper[i * n + i] = wp.where(wp.abs(pivot) < scalar(1.0e-30), scalar(1.0e-30), pivot)


@wp.func
def solve_system(p: Problem, n: int):
    """Replace `unknowns`, the right-hand side, by the solution."""
    for i in range(n):
        start = p.envelope[i]
        p.unknowns[i] = p.unknowns[i] - dot(p.lower, i * n + start, p.unknowns, start, i - start)
    for i in range(n - 1, -1, -1):
        start = p.envelope[i]
        p.unknowns[i] = p.unknowns[i] / p.upper[i * n + i]
        add_multiple(p.unknowns, start, -p.unknowns[i], p.upper, i * n + start, i - start)


@wp.func
def solve_system_transposed(p: Problem, n: int):
    """Replace `unknowns`, the right-hand side, by the solution of the transposed system."""
    for i in range(n):
        start = p.envelope[i]
        total = p.unknowns[i] - dot(p.upper, i * n + start, p.unknowns, start, i - start)
        p.unknowns[i] = total / p.upper[i * n + i]
    for i in range(n - 1, -1, -1):
        start = p.envelope[i]
        add_multiple(p.unknowns, start, -p.unknowns[i], p.lower, i * n + start, i - start)


@wp.func
def row_displacement(p: Problem, size: int, multipliers: Array1d):
    """Set `displacement` to W Cᵀ λ."""
    clear(p.displacement, 3 * (p.bodies + 1))
    for r in range(size):
        if multipliers[r] != scalar(0.0):
            apply_impulse(p, p.columns, r, multipliers[r], p.displacement)


@wp.func
def solve_rows(p: Problem, contacts: int, n: int, solves: int):
    """Set the multipliers in `solution` that move the rows by `row_target`, from the factors at hand.

    Stiff contacts magnify rounding: each solve after the first removes the error of the one before.
    """
    size = p.joint_rows + 2 * contacts
    clear(p.solution, size)
    clear(p.displacement, 3 * (p.bodies + 1))
    for solve in range(solves):
        if solve > 0:
            row_displacement(p, size, p.solution)
        clear(p.unknowns, n)
        for r in range(p.joint_rows):
            if p.joint_unknown[r] >= 0:
                p.unknowns[p.joint_unknown[r]] = p.row_target[r] - row_velocity(p, p.rows, r, p.displacement)
        for i in range(contacts):
            r = p.joint_rows + 2 * i
            normal = p.row_target[r]
            tangent = p.row_target[r + 1]
            if solve > 0:
                normal -= row_velocity(p, p.rows, r, p.displacement) + p.compliance[2 * i] * p.solution[r]
                tangent -= row_velocity(p, p.rows, r + 1, p.displacement) + p.compliance[2 * i + 1] * p.solution[r + 1]
            p.contact_impulse[r] = p.stiffness[4 * i] * normal + p.stiffness[4 * i + 1] * tangent
            p.contact_impulse[r + 1] = p.stiffness[4 * i + 2] * normal + p.stiffness[4 * i + 3] * tangent
            a = p.body_unknown[p.row_a[r]]
            b = p.body_unknown[p.row_b[r]]
            for k in range(3):
                c = 6 * r + k
                if a >= 0:
                    force = p.columns[c] * p.contact_impulse[r] + p.columns[c + 6] * p.contact_impulse[r + 1]
                    p.unknowns[a + k] = p.unknowns[a + k] + force
                if b >= 0:
                    force = p.columns[c + 3] * p.contact_impulse[r] + p.columns[c + 9] * p.contact_impulse[r + 1]
                    p.unknowns[b + k] = p.unknowns[b + k] + force
        solve_system(p, n)
        scatter_solution(p)
        for r in range(p.joint_rows):
            if p.joint_unknown[r] >= 0:
                p.solution[r] = p.solution[r] + p.unknowns[p.joint_unknown[r]]
        for i in range(contacts):
            r = p.joint_rows + 2 * i
            normal_velocity = row_velocity(p, p.rows, r, p.displacement)
            slip = row_velocity(p, p.rows, r + 1, p.displacement)
            normal_part = p.stiffness[4 * i] * normal_velocity + p.stiffness[4 * i + 1] * slip
            tangential_part = p.stiffness[4 * i + 2] * normal_velocity + p.stiffness[4 * i + 3] * slip
            p.solution[r] = p.solution[r] + p.contact_impulse[r] - normal_part
            p.solution[r + 1] = p.solution[r + 1] + p.contact_impulse[r + 1] - tangential_part


@wp.func
def scatter_solution(p: Problem):
    """Set `displacement` to the bodies' part of the solution; zero for bodies without unknowns."""
    for body in range(p.bodies + 1):
        for k in range(3):
            p.displacement[3 * body + k] = scalar(0.0)
            if p.body_unknown[body] >= 0:
                p.displacement[3 * body + k] = p.unknowns[p.body_unknown[body] + k]


@wp.func
def set_contact_stiffness(p: Problem, contacts: int):
    """Set `compliance` and `stiffness` of all contacts from their modes and friction ratios.

    Sticking contacts stop both rows, sliding ones the normal row, with friction along; the relaxed
    problem has N + ratio T on both sides.
    """
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        for k in range(4):
            p.stiffness[4 * i + k] = scalar(0.0)
        p.compliance[2 * i] = p.softness * p.diagonal[r]
        p.compliance[2 * i + 1] = p.softness * p.diagonal[r + 1]
        if p.mode[i] == STICK:
            p.stiffness[4 * i] = scalar(1.0) / p.compliance[2 * i]
            p.stiffness[4 * i + 3] = scalar(1.0) / p.compliance[2 * i + 1]
        elif p.mode[i] != OPEN:
            along = p.ratio[i]
            across = p.ratio[i] * p.relaxation * scalar(1 - p.sliding[i])
            p.stiffness[4 * i] = scalar(1.0) / (p.compliance[2 * i] + along * across * p.compliance[2 * i + 1])
            p.stiffness[4 * i + 1] = across * p.stiffness[4 * i]
            p.stiffness[4 * i + 2] = along * p.stiffness[4 * i]
            p.stiffness[4 * i + 3] = along * across * p.stiffness[4 * i]
