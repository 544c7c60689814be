"""Dense mixed complementarity problem of few contacts: active set, with an interior point where it fails.

The multipliers λ in x = x° + W Cᵀ λ (W the inverse masses, C the rows by which forces act) are such that the row values
r = b + A λ, A = R W Cᵀ the Delassus matrix, are zero for joints, non-negative and complementary for normals, and zero
for tangents or at the friction bound. Given the contact modes this is a linear system
    F λ = −b  over the joints, the closed normals and the sticking tangents,
where the column of a sliding contact carries its friction with it: C = N + ratio T. Guessed modes are updated by the
signs of the solution, which nearly always converges; else the mode search with its interior point decides.
"""

import warp as wp

from .linear import band_end, band_start, border_start, clear_bordered, factor_bordered, solve, solve_transposed
from .mode_search import search_modes
from .precision import Array1d, IntArray1d, scalar
from .problem import OPEN, SLIDE, STICK, Problem, bind_contacts, clear
from .rows import add_row, link_row_ends, row_body, weighted_velocity


@wp.func
def assemble_delassus(p: Problem, n: int):
    """Set the n×n Delassus matrix A = R W Cᵀ."""
    link_row_ends(p, n)
    clear_bordered(p.delassus, n, p.joint_rows, p.joint_band)
    rows = p.rows
    columns = p.columns
    for end in range(2 * n):
        body = row_body(p, end // 2, end % 2)
        partner = p.first_end[body]
        while partner >= 0:
            total = p.delassus[end // 2 * n + partner // 2]
            for k in range(3):
                total += rows[3 * end + k] * p.inverse_mass[3 * body + k] * columns[3 * partner + k]
            p.delassus[end // 2 * n + partner // 2] = total
            partner = p.next_end[partner]


@wp.func
def is_work_exhausted(p: Problem):
    """Return 1 if the step has used up its work budget.

    Refinements, whose number depends on rounding, have a budget of their own, twice as large: nearly always the
    first one ends the step, and it does not depend on the order of bodies.
    """
    return wp.where(p.work > p.work_budget or p.refinement_work > 2 * p.work_budget, 1, 0)


@wp.func
def charge_work(p: Problem, contacts: int):
    """Count the work of a smooth step or an impact of so many contacts: about ten solutions of all rows."""
    contact_rows = 2 * contacts
    n = p.joint_rows + contact_rows
    p.work = p.work + (n * n + 20 * n * p.joint_band) // 100 + (contact_rows * n * n) // 200


@wp.func
def select_active_rows(p: Problem, contacts: int):
    """List the rows that are equations for these contact modes; return their number."""
    n = p.joint_rows
    for i in range(n):
        p.active_rows[i] = i
    for i in range(contacts):
        if p.mode[i] != OPEN:
            p.active_rows[n] = p.joint_rows + 2 * i
            n += 1
            if p.mode[i] == STICK:
                p.active_rows[n] = p.joint_rows + 2 * i + 1
                n += 1
    return n


@wp.func
def row_compliance(p: Problem, row: int, size: int):
    """Return the compliance of a row, a fraction of its diagonal."""
    fraction = wp.where(row >= p.joint_rows, p.settings.contact_compliance, p.settings.joint_compliance)
    return fraction * wp.abs(p.delassus[row * size + row])


@wp.func
def factor_active(p: Problem, n: int, size: int):
    """Factorize the system F of the active rows; the Delassus matrix, size × size, is at hand."""
    joints = p.joint_rows
    for i in range(n):
        row = p.active_rows[i]
        for j in range(band_start(i, joints, p.joint_band), band_end(i, n, joints, p.joint_band)):
            p.factors[i * n + j] = active_entry(p, row, p.active_rows[j], size)
        for j in range(border_start(i, n, joints), n):
            p.factors[i * n + j] = active_entry(p, row, p.active_rows[j], size)
        p.factors[i * n + i] = p.factors[i * n + i] + row_compliance(p, row, size)
    contact_rows = n - joints
    p.refinement_work = (
        p.refinement_work + (size * size + 20 * n * p.joint_band) // 1000 + (contact_rows * n * n) // 2000
    )
    factor_bordered(p.factors, p.pivots, n, joints, p.joint_band)


@wp.func
def active_entry(p: Problem, row: int, column: int, size: int):
    """Return an entry of F: that of the Delassus matrix, with the friction of a sliding column."""
    entry = p.delassus[row * size + column]
    if column >= p.joint_rows:
        contact = (column - p.joint_rows) // 2
        if p.mode[contact] == SLIDE and p.ratio[contact] != scalar(0.0):
            entry += p.ratio[contact] * p.delassus[row * size + column + 1]
    return entry


@wp.func
def solve_count(p: Problem, n: int):
    """Return the number of solutions with refinements; joints alone are stiff enough for one."""
    return wp.where(n > p.joint_rows, p.settings.contact_refinements + 1, 1)


@wp.func
def solve_active(p: Problem, n: int, contacts: int, multipliers: Array1d):
    """Set the multipliers of all rows to the solution of F λ = −b, b in `offset`.

    Redundant contacts share their load by their compliance D: the factors are those of F + D. Refinements remove it,
    (F + D) λ′ = −b + D λ: the remaining error falls by the compliance's size each time, and the distribution stays.
    """
    size = p.joint_rows + 2 * contacts
    clear(multipliers, size)
    for refinement in range(solve_count(p, n)):
        for i in range(n):
            p.active_solution[i] = -p.offset[p.active_rows[i]]
            if refinement > 0 and p.active_rows[i] >= p.joint_rows:
                p.active_solution[i] = (
                    p.active_solution[i] + row_compliance(p, p.active_rows[i], size) * multipliers[p.active_rows[i]]
                )
        solve(p.factors, p.pivots, p.active_solution, n, p.joint_rows, p.joint_band)
        for i in range(n):
            multipliers[p.active_rows[i]] = p.active_solution[i]
    for i in range(contacts):
        if p.mode[i] == SLIDE:
            r = p.joint_rows + 2 * i
            multipliers[r + 1] = p.ratio[i] * multipliers[r]


@wp.func
def velocity_tolerance(p: Problem, size: int, unit: scalar):
    """Return the row value above rounding, given the unit of time of the rows.

    Positions are rounded as well as velocities, and dominate where everything is slow.
    """
    largest = scalar(0.0)
    for r in range(size):
        largest = wp.max(largest, wp.abs(p.offset[r]))
    return wp.max(p.settings.rounding * largest, p.settings.min_velocity * p.restitution_threshold * unit)


@wp.func
def close_contact(
    p: Problem, i: int, normal: scalar, tangent: scalar, min_velocity: scalar, mode: IntArray1d, ratio: Array1d
):
    """Close contact i; it sticks if friction seems enough to stop its tangent while the normal is stopped.

    A slip below `min_velocity`, which is rounding, sticks: the loads decide the direction of such a slip.
    """
    mode[i] = SLIDE
    if p.sliding[i] == 0 and p.friction[i] > scalar(0.0):
        if wp.abs(tangent) > wp.max(p.friction[i] * wp.abs(normal), min_velocity):
            ratio[i] = -wp.sign(tangent) * p.friction[i]
        else:
            mode[i] = STICK


@wp.func
def update_modes(p: Problem, contacts: int, multipliers: Array1d, size: int, min_velocity: scalar, rounding: scalar):
    """Change contact modes that the solution contradicts by more than rounding; return the number of changes.

    Rounding is given as a velocity, and as a fraction of the largest multiplier.
    """
    min_multiplier = scalar(0.0)
    for r in range(size):
        min_multiplier = wp.max(min_multiplier, rounding * wp.abs(multipliers[r]))
    changed = wp.int32(0)
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        normal = p.offset[r]
        tangent = p.offset[r + 1]
        for j in range(size):
            normal += p.delassus[r * size + j] * multipliers[j]
            tangent += p.delassus[(r + 1) * size + j] * multipliers[j]
        bound = p.friction[i] * multipliers[r]
        if p.mode[i] == OPEN:
            if normal < -min_velocity:
                changed += 1
                close_contact(p, i, normal, tangent, min_velocity, p.mode, p.ratio)
        elif multipliers[r] < -min_multiplier:
            changed += 1
            p.mode[i] = OPEN
        elif p.mode[i] == STICK:
            if wp.abs(multipliers[r + 1]) > bound + min_multiplier:
                changed += 1
                p.mode[i] = SLIDE
                p.ratio[i] = wp.sign(multipliers[r + 1]) * p.friction[i]
        elif p.sliding[i] == 0 and p.ratio[i] * tangent > min_velocity * p.friction[i]:
            changed += 1
            p.mode[i] = STICK
    return changed


@wp.func
def solve_contacts(
    p: Problem,
    contacts: int,
    rows: Array1d,
    columns: Array1d,
    mode: IntArray1d,
    ratio: Array1d,
    multipliers: Array1d,
    unit: scalar,
):
    """Solve for the multipliers from guessed modes, with b in `offset`; the factors stay at hand.

    Returns the number of equations.
    """
    bind_contacts(p, rows, columns, mode, ratio)
    size = p.joint_rows + 2 * contacts
    assemble_delassus(p, size)
    min_velocity = velocity_tolerance(p, size, unit)
    rounding = wp.float64(1.0) * p.settings.rounding
    n = wp.int32(0)
    running = wp.int32(1)
    updates = wp.int32(0)
    while running == 1:
        n = select_active_rows(p, contacts)
        factor_active(p, n, size)
        solve_active(p, n, contacts, multipliers)
        running = wp.int32(0)
        if contacts > 0 and update_modes(p, contacts, multipliers, size, min_velocity, rounding) > 0:
            if is_work_exhausted(p) == 1 or updates > p.settings.max_mode_updates:
                p.failed = 1
            else:
                running = wp.int32(1)
                if updates == p.settings.max_mode_updates:
                    p.refinement_work = p.refinement_work + 30 * size
                    residual = search_modes(p, contacts, rows, columns, mode, ratio, multipliers, 0)
                    if not (residual < p.settings.max_search_residual):
                        p.failed = 1
                        p.residual = wp.max(p.residual, residual)
                    min_velocity = p.settings.mode_slack * min_velocity
                    rounding = p.settings.mode_slack * p.settings.rounding
        updates += 1
    return n


@wp.func
def solve_contacts_adjoint(
    p: Problem, contacts: int, rows: Array1d, columns: Array1d, mode: IntArray1d, ratio: Array1d, x_bar: Array1d
):
    """Set κ of all rows (zero for inactive ones) from Fᵀ κ = C W x̄; return the number of equations."""
    bind_contacts(p, rows, columns, mode, ratio)
    size = p.joint_rows + 2 * contacts
    assemble_delassus(p, size)
    n = select_active_rows(p, contacts)
    factor_active(p, n, size)
    clear(p.row_adjoint, size)
    for refinement in range(solve_count(p, n)):
        for i in range(n):
            r = p.active_rows[i]
            p.active_solution[i] = weighted_velocity(p, columns, r, x_bar)
            if r >= p.joint_rows:
                contact = (r - p.joint_rows) // 2
                if mode[contact] == SLIDE and ratio[contact] != scalar(0.0):
                    p.active_solution[i] = p.active_solution[i] + ratio[contact] * weighted_velocity(
                        p, columns, r + 1, x_bar
                    )
                if refinement > 0:
                    p.active_solution[i] = p.active_solution[i] + row_compliance(p, r, size) * p.row_adjoint[r]
        solve_transposed(p.factors, p.pivots, p.active_solution, n, p.joint_rows, p.joint_band)
        for i in range(n):
            p.row_adjoint[p.active_rows[i]] = p.active_solution[i]
    return n


@wp.func
def subtract_row_forces(p: Problem, rows: Array1d, size: int, z: Array1d):
    """Set z to z − Rᵀ κ, with κ in `row_adjoint`."""
    for r in range(size):
        if p.row_adjoint[r] != scalar(0.0):
            add_row(p, rows, r, -p.row_adjoint[r], z)
