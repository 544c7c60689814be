"""The mixed linear complementarity problem of one stage: joints, contacts and friction, in their multipliers.

Every stage asks for multipliers λ in x = x° + W Cᵀ λ (W the inverse masses, C the rows by which forces act) such that
the rows r = b + A λ, A = R W Cᵀ, are zero for joints, non-negative and complementary for normals, and zero for
tangents or at the friction bound. Given what each contact does (open, slides, sticks), this is a linear system
    F λ = −b  over the joints, the closed normals and the sticking tangents,
where a sliding contact's column carries its friction with it: C = N + coefficient T. What the contacts do is first
guessed and corrected a few times, which finds nearly all answers; else the interior-point method decides.
"""

import warp as wp

from physvision.physics.lcp.kernels.interior import solve_scaled
from physvision.physics.lcp.kernels.linear import factor, solve
from physvision.physics.lcp.kernels.workspace import carve_inside

from . import scalar
from .data import EFFORT, FAILED, ITERATIONS, OPEN, SLIDES, STICKS, WORST, Parts, Workspace

# A share of each row's own compliance, so that redundant rows share their load.
COMPLIANCE = wp.constant(wp.float64(1.0e-12))
ROUNDING = wp.constant(wp.float64(1.0e-10))


@wp.func
def couple(t: Workspace, rows: wp.array(dtype=scalar), columns: wp.array(dtype=scalar), i: wp.int32, j: wp.int32):
    """The entry A_ij: how fast row i moves for a unit of multiplier j."""
    total = scalar(0.0)
    for side_i in range(2):
        body = t.row_a[i]
        if side_i == 1:
            body = t.row_b[i]
        for side_j in range(2):
            other = t.row_a[j]
            if side_j == 1:
                other = t.row_b[j]
            if body == other:
                for k in range(3):
                    total += rows[6 * i + 3 * side_i + k] * t.weight[3 * body + k] * columns[6 * j + 3 * side_j + k]
    return total


@wp.func
def assemble(t: Workspace, rows: wp.array(dtype=scalar), columns: wp.array(dtype=scalar), n: wp.int32):
    """Set the n×n matrix A = R W Cᵀ."""
    for i in range(n):
        for j in range(n):
            t.matrix[i * n + j] = couple(t, rows, columns, i, j)


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
def factor_chosen(
    s: Parts,
    t: Workspace,
    n: wp.int32,
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    size: wp.int32,
):
    """Factorise the system F of the chosen rows; the matrix A, size × size, is at hand."""
    for i in range(n):
        row = t.chosen[i]
        for j in range(n):
            column = t.chosen[j]
            entry = t.matrix[row * size + column]
            contact = (column - s.joint_rows) // 2
            if column >= s.joint_rows:
                if mode[contact] == SLIDES and slide[contact] != scalar(0.0):
                    entry += slide[contact] * t.matrix[row * size + column + 1]
            if i == j:
                entry += COMPLIANCE * wp.abs(t.matrix[row * size + row])
            t.factors[i * n + j] = entry
    others = n - s.joint_rows
    t.counts[EFFORT] = t.counts[EFFORT] + (size * size + n * s.joint_rows) // 200 + (others * n * n) // 3000
    factor(t.factors, t.order, n)


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
    """Set the multipliers of all rows to the solution of F λ = −b, b in `offset`."""
    for i in range(n):
        t.x[i] = -t.offset[t.chosen[i]]
    solve(t.factors, t.order, t.x, n)
    for i in range(s.joint_rows + 2 * contacts):
        multipliers[i] = scalar(0.0)
    for i in range(n):
        multipliers[t.chosen[i]] = t.x[i]
    for i in range(contacts):
        if mode[i] == SLIDES:
            r = s.joint_rows + 2 * i
            multipliers[r + 1] = slide[i] * multipliers[r]


@wp.func
def guess_mode(
    t: Workspace,
    i: wp.int32,
    normal: scalar,
    tangent: scalar,
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
):
    """Close contact i; it sticks if friction seems enough to stop its tangent while the normal is stopped."""
    mode[i] = SLIDES
    if t.sliding[i] == 0 and t.coefficient[i] > scalar(0.0):
        if wp.abs(tangent) > t.coefficient[i] * wp.abs(normal):
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
    most: wp.int32,
):
    """Change what contacts do where the solution contradicts it, the first `most` of them; return how many changed."""
    largest = scalar(0.0)
    fastest = scalar(0.0)
    for r in range(size):
        largest = wp.max(largest, wp.abs(multipliers[r]))
        fastest = wp.max(fastest, wp.abs(t.offset[r]))
    changed = wp.int32(0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        normal = t.offset[r]
        tangent = t.offset[r + 1]
        for j in range(size):
            normal += t.matrix[r * size + j] * multipliers[j]
            tangent += t.matrix[(r + 1) * size + j] * multipliers[j]
        bound = t.coefficient[i] * multipliers[r]
        if changed >= most:
            changed = most
        elif mode[i] == OPEN:
            if normal < -ROUNDING * fastest:
                changed += 1
                guess_mode(t, i, normal, tangent, mode, slide)
        elif multipliers[r] < -ROUNDING * largest:
            changed += 1
            mode[i] = OPEN
        elif mode[i] == STICKS:
            if wp.abs(multipliers[r + 1]) > bound + ROUNDING * largest:
                changed += 1
                mode[i] = SLIDES
                slide[i] = wp.sign(multipliers[r + 1]) * t.coefficient[i]
        elif t.sliding[i] == 0 and slide[i] * tangent > ROUNDING * fastest * t.coefficient[i]:
            changed += 1
            mode[i] = STICKS
    return changed


@wp.func
def reduce_to_contacts(s: Parts, t: Workspace, contacts: wp.int32, size: wp.int32):
    """Eliminate the joints: A and b become the contacts' own, A_cc − A_ce A_ee⁻¹ A_ec, in place."""
    ne = s.joint_rows
    for i in range(ne):
        for j in range(ne):
            t.factors[i * ne + j] = t.matrix[i * size + j]
        t.factors[i * ne + i] = t.factors[i * ne + i] + COMPLIANCE * t.matrix[i * size + i]
    factor(t.factors, t.order, ne)
    for column in range(ne, size + 1):
        for i in range(ne):
            if column == size:
                t.x[i] = t.offset[i]
            else:
                t.x[i] = t.matrix[i * size + column]
        solve(t.factors, t.order, t.x, ne)
        for i in range(ne, size):
            change = scalar(0.0)
            for j in range(ne):
                change += t.matrix[i * size + j] * t.x[j]
            if column == size:
                t.offset[i] = t.offset[i] - change
            else:
                t.matrix[i * size + column] = t.matrix[i * size + column] - change


@wp.func
def row_of(s: Parts, unknown: wp.int32):
    """The row that unknown 4 i + k of the problem of contacts stands for, k one of normal, two tangents, slip."""
    row = s.joint_rows + 2 * (unknown // 4)
    if unknown % 4 != 0:
        row += 1
    return row


@wp.func
def decide_modes(
    s: Parts,
    t: Workspace,
    contacts: wp.int32,
    mode: wp.array(dtype=wp.int32),
    slide: wp.array(dtype=scalar),
    size: wp.int32,
):
    """Decide what the contacts do by the interior-point method; unknowns: normal, friction either way, slip."""
    reduce_to_contacts(s, t, contacts, size)
    n = 4 * contacts
    m = carve_inside(n, t.inside, t.inside_order)
    scale = scalar(0.0)
    for i in range(s.joint_rows, size):
        scale = wp.max(scale, wp.abs(t.matrix[i * size + i]))
    for i in range(n):
        contact = i // 4
        frictional = t.sliding[contact] == 0 and t.coefficient[contact] > scalar(0.0)
        for j in range(n):
            entry = scalar(0.0)
            if i % 4 != 3 and j % 4 != 3:
                row = row_of(s, i)
                entry = t.matrix[row * size + row_of(s, j)]
                if j % 4 == 0 and t.sliding[j // 4] == 1:
                    entry += slide[j // 4] * t.matrix[row * size + row_of(s, j) + 1]
                if (i % 4 == 2) != (j % 4 == 2):
                    entry = -entry
            elif contact == j // 4:
                if j % 4 == 3 and i % 4 != 0 and i % 4 != 3:
                    entry = scale
                elif i % 4 == 3 and j % 4 == 0:
                    entry = scale * t.coefficient[contact]
                elif i % 4 == 3 and j % 4 != 3:
                    entry = -scale
            ours = i % 4 == 0 or frictional
            theirs = j % 4 == 0 or (t.sliding[j // 4] == 0 and t.coefficient[j // 4] > scalar(0.0))
            if not (ours and theirs):
                entry = scalar(0.0)
                if i == j:
                    entry = scale
            m.matrix[i * n + j] = entry
        m.vector[i] = scalar(0.0)
        if i % 4 != 3 and (i % 4 == 0 or frictional):
            m.vector[i] = t.offset[row_of(s, i)]
            if i % 4 == 2:
                m.vector[i] = -m.vector[i]
        if i % 4 != 0 and not frictional:
            m.vector[i] = scale
    iterations, residual = solve_scaled(m, n, scalar(1.0e-13))
    t.counts[ITERATIONS] = wp.max(t.counts[ITERATIONS], iterations)
    for i in range(contacts):
        mode[i] = OPEN
        if m.z[4 * i] > m.w[4 * i] / scale:
            mode[i] = SLIDES
            if t.sliding[i] == 0 and t.coefficient[i] > scalar(0.0):
                if m.z[4 * i + 3] > m.w[4 * i + 3] / scale:
                    slide[i] = wp.sign(m.z[4 * i + 1] - m.z[4 * i + 2]) * t.coefficient[i]
                else:
                    mode[i] = STICKS
    return residual


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
):
    """Solve for the multipliers, from the modes guessed, with b in `offset`; the factors stay at hand.

    Returns the number of equations.
    """
    size = s.joint_rows + 2 * contacts
    assemble(t, rows, columns, size)
    last = 6 * contacts + 12
    n = wp.int32(0)
    going = wp.int32(1)
    tries = wp.int32(0)
    residual = scalar(0.0)
    while going == 1:
        n = choose(s, t, contacts, mode)
        factor_chosen(s, t, n, mode, slide, size)
        solve_chosen(s, t, n, contacts, mode, slide, multipliers)
        going = wp.int32(0)
        if contacts > 0:
            # All at once goes fast; one at a time, the first each time (Murty's rule), seldom goes round in circles.
            most = contacts
            if tries > 4:
                most = 1
            wrong = correct_modes(s, t, contacts, mode, slide, multipliers, size, most)
            if wrong > 0 and t.counts[EFFORT] > s.effort:
                t.counts[FAILED] = 1
            elif wrong > 0 and tries < last:
                going = wp.int32(1)
            elif wrong > 0 and tries == last:
                t.counts[EFFORT] = t.counts[EFFORT] + contacts * contacts * contacts
                going = wp.int32(1)
                for i in range(size):
                    t.offset_kept[i] = t.offset[i]
                residual = decide_modes(s, t, contacts, mode, slide, size)
                for i in range(size):
                    t.offset[i] = t.offset_kept[i]
                assemble(t, rows, columns, size)
            elif wrong > 0 and not (residual < scalar(1.0e-6)):
                t.counts[FAILED] = 1
                t.keep[WORST] = wp.max(t.keep[WORST], residual)
        tries += 1
    return n
