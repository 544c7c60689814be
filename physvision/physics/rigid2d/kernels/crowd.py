"""One complementarity problem over everything that touches or may touch: the step of a world too busy for events.

With duration h, rows C at the start, free accelerations a and v° = v₀ + h a, velocities are
    v₁ = v° + W Cᵀ λ,    joints C v₁ = 0,    normals 0 ≤ λ ⟂ C v₁ + ρ ≥ 0,    tangents inside or on the friction bound,
where ρ = gap/h for what is apart (it may close in h and no sooner), and ρ = e C v₀ for what touches and strikes. Then
q₁ = q₀ + h v₁, or the parabola for what nothing touched. What still overlaps, and joints that are off, are put right
by the least displacement that does it, in the norm of the masses: q += W Rᵀ π with R W Rᵀ π + gap ≥ 0, a few times.

Projected Gauss–Seidel finds what each contact does; one linear system then gives the exact answer, where it is small
enough and agrees. Neither adds kinetic energy: where an answer would, it is scaled back.
"""

import warp as wp

from physvision.physics.lcp.kernels.linear import factor, solve

from . import scalar
from .complementarity import COMPLIANCE, choose, couple
from .data import CONTACTS, FAILED, OPEN, SLIDES, STICKS, Parts, Workspace, clear, copy
from .detect import find_near, properties_of, reach_of
from .forces import accelerate
from .geometry import add_force, contact_rows, row_speed
from .joints import joint_row

# Rounds at most, sweeps in each, and the largest system that is solved exactly.
ROUNDS = wp.constant(8)
SWEEPS = wp.constant(12)
LARGEST = wp.constant(130)

# The compliance of a row in that system, as a share of its own: the solution next to the sweeps' is asked for.
NEARNESS = wp.constant(wp.float64(1.0e-4))
# Corrections of positions at most.
CORRECTIONS = wp.constant(10)
# The last of them are about joints alone, which are to hold exactly.
LAST = wp.constant(3)
SETTLED = wp.constant(wp.float64(1.0e-11))

# More contacts than these are solved less exactly, in half the rounds.
FEW = wp.constant(30)
SETTLED_MANY = wp.constant(wp.float64(1.0e-7))

# Bodies that are slower than this share of what free acceleration gives them in the step are at rest.
REST = wp.constant(wp.float64(2.0e-4))


@wp.func
def own_coupling(t: Workspace, rows: wp.array(dtype=scalar), r: wp.int32):
    """How fast row r moves for a unit of its own multiplier; one for a row without effect."""
    total = couple(t, rows, rows, r, r)
    if not (total > scalar(0.0)):
        total = scalar(1.0)
    return total


@wp.func
def sweep(s: Parts, t: Workspace, contacts: wp.int32, rows: wp.array(dtype=scalar), x: wp.array(dtype=scalar)):
    """Put every row right in turn, there and back; return the largest change of a row's speed.

    The multipliers are in lambda0, what is added to a row's speed in `target`, own couplings in `missed`.
    """
    most = scalar(0.0)
    count = s.joint_rows + contacts
    for k in range(2 * count):
        item = k
        if k >= count:
            item = 2 * count - 1 - k
        if item < s.joint_rows:
            change = -(row_speed(t, rows, item, x) + t.target[item]) / t.missed[item]
            t.lambda0[item] = t.lambda0[item] + change
            add_force(t, rows, item, change, x)
            most = wp.max(most, wp.abs(change) * t.missed[item])
        else:
            i = item - s.joint_rows
            r = s.joint_rows + 2 * i
            before = t.lambda0[r]
            after = wp.max(before - (row_speed(t, rows, r, x) + t.target[r]) / t.missed[r], scalar(0.0))
            if after != before:
                t.lambda0[r] = after
                add_force(t, rows, r, after - before, x)
                most = wp.max(most, wp.abs(after - before) * t.missed[r])
            bound = t.coefficient[i] * after
            before = t.lambda0[r + 1]
            if bound > scalar(0.0) or before != scalar(0.0):
                after = wp.clamp(before - row_speed(t, rows, r + 1, x) / t.missed[r + 1], -bound, bound)
                t.lambda0[r + 1] = after
                add_force(t, rows, r + 1, after - before, x)
                most = wp.max(most, wp.abs(after - before) * t.missed[r + 1])
    return most


@wp.func
def read_modes(s: Parts, t: Workspace, contacts: wp.int32):
    """What contacts do, from their multipliers in lambda0."""
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        t.mode0[i] = OPEN
        t.slide0[i] = scalar(0.0)
        if t.lambda0[r] > scalar(0.0):
            t.mode0[i] = SLIDES
            bound = t.coefficient[i] * t.lambda0[r]
            if bound > scalar(0.0):
                if wp.abs(t.lambda0[r + 1]) < bound:
                    t.mode0[i] = STICKS
                else:
                    t.slide0[i] = wp.sign(t.lambda0[r + 1]) * t.coefficient[i]


@wp.func
def factor_active(s: Parts, t: Workspace, n: wp.int32, rows: wp.array(dtype=scalar), compliance: scalar):
    """Factorise the system of the chosen rows, each with a compliance, so that redundant ones share their load."""
    for i in range(n):
        row = t.chosen[i]
        for j in range(n):
            column = t.chosen[j]
            entry = couple(t, rows, rows, row, column)
            if i == j:
                entry += compliance * t.missed[row]
            if column >= s.joint_rows:
                slide = t.slide0[(column - s.joint_rows) // 2]
                if (column - s.joint_rows) % 2 == 0 and slide != scalar(0.0):
                    entry += slide * couple(t, rows, rows, row, column + 1)
            t.factors[i * n + j] = entry
    factor(t.factors, t.order, n)


@wp.func
def apply_multipliers(
    s: Parts, t: Workspace, contacts: wp.int32, rows: wp.array(dtype=scalar), x: wp.array(dtype=scalar)
):
    """Set x to its free value, in `free`, moved by the multipliers in lambda0."""
    copy(t.free, x, 3 * (s.bodies + 1))
    for r in range(s.joint_rows + 2 * contacts):
        if t.lambda0[r] != scalar(0.0):
            add_force(t, rows, r, t.lambda0[r], x)


@wp.func
def move_to_solution(
    s: Parts, t: Workspace, n: wp.int32, contacts: wp.int32, rows: wp.array(dtype=scalar), x: wp.array(dtype=scalar)
):
    """Move the multipliers in lambda0 as little as solves the chosen rows; what is out of its bounds is put on them."""
    for i in range(n):
        r = t.chosen[i]
        t.x[i] = -(row_speed(t, rows, r, x) + t.target[r])
    solve(t.factors, t.order, t.x, n)
    for i in range(n):
        r = t.chosen[i]
        t.lambda0[r] = t.lambda0[r] + t.x[i]
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        t.lambda0[r] = wp.max(t.lambda0[r], scalar(0.0))
        bound = t.coefficient[i] * t.lambda0[r]
        if t.mode0[i] == SLIDES:
            t.lambda0[r + 1] = t.slide0[i] * t.lambda0[r]
        t.lambda0[r + 1] = wp.clamp(t.lambda0[r + 1], -bound, bound)
    apply_multipliers(s, t, contacts, rows, x)


@wp.func
def hold_joints(s: Parts, t: Workspace, contacts: wp.int32, rows: wp.array(dtype=scalar), x: wp.array(dtype=scalar)):
    """Put the joints right at once, whatever the contacts do."""
    n = s.joint_rows
    for i in range(n):
        for j in range(n):
            t.factors[i * n + j] = couple(t, rows, rows, i, j)
        t.factors[i * n + i] = t.factors[i * n + i] * (scalar(1.0) + COMPLIANCE)
        t.x[i] = -(row_speed(t, rows, i, x) + t.target[i])
    factor(t.factors, t.order, n)
    solve(t.factors, t.order, t.x, n)
    for i in range(n):
        t.lambda0[i] = t.lambda0[i] + t.x[i]
        add_force(t, rows, i, t.x[i], x)


@wp.func
def solve_crowd(s: Parts, t: Workspace, contacts: wp.int32, rows: wp.array(dtype=scalar), x: wp.array(dtype=scalar)):
    """Find x = free + W Rᵀ λ with the rows complementary: multipliers in lambda0, what contacts do in mode0, slide0.

    Given are x without multipliers in `free`, what is added to a row's speed in `target`, friction in `coefficient`.
    """
    size = s.joint_rows + 2 * contacts
    scale = scalar(0.0)
    for r in range(size):
        t.missed[r] = own_coupling(t, rows, r)
        t.lambda0[r] = scalar(0.0)
        scale = wp.max(scale, wp.abs(row_speed(t, rows, r, t.free) + t.target[r]))
    copy(t.free, x, 3 * (s.bodies + 1))
    if s.joint_rows > 0:
        hold_joints(s, t, contacts, rows, x)
    rounds = wp.int32(0)
    most = wp.int32(ROUNDS)
    enough = SETTLED * scale
    if contacts > FEW:
        most = ROUNDS // 2
        enough = SETTLED_MANY * scale
    n = wp.int32(0)
    change = scalar(1.0e30)
    compliance = scalar(NEARNESS)
    while contacts > 0 and rounds < most and change > enough:
        tries = wp.int32(0)
        while tries < (rounds + 1) * SWEEPS and change > enough:
            change = sweep(s, t, contacts, rows, x)
            tries += 1
        read_modes(s, t, contacts)
        n = choose(s, t, contacts, t.mode0)
        rounds += 1
        if n <= LARGEST and change > enough:
            before = change
            copy(t.lambda0, t.lambda1, size)
            factor_active(s, t, n, rows, compliance)
            move_to_solution(s, t, n, contacts, rows, x)
            move_to_solution(s, t, n, contacts, rows, x)
            change = sweep(s, t, contacts, rows, x)
            if change < before:
                compliance *= scalar(0.03)
            else:
                copy(t.lambda1, t.lambda0, size)
                apply_multipliers(s, t, contacts, rows, x)
                change = before
                compliance *= scalar(30.0)
    read_modes(s, t, contacts)
    if s.joint_rows > 0 and contacts > 0:
        hold_joints(s, t, contacts, rows, x)


@wp.func
def square_norm(s: Parts, t: Workspace, x: wp.array(dtype=scalar)):
    """Twice the kinetic energy of velocities x."""
    total = scalar(0.0)
    for k in range(3 * (s.bodies + 1)):
        if t.weight[k] > scalar(0.0):
            total += x[k] * x[k] / t.weight[k]
    return total


@wp.func
def take_no_energy(s: Parts, t: Workspace, contacts: wp.int32):
    """Scale the multipliers back to where the kinetic energy is least, if it grew: E(θ) = E + θ b + ½ θ² c."""
    n = 3 * (s.bodies + 1)
    linear = scalar(0.0)
    square = scalar(0.0)
    for k in range(n):
        if t.weight[k] > scalar(0.0):
            push = t.v1[k] - t.free[k]
            linear += t.free[k] * push / t.weight[k]
            square += push * push / t.weight[k]
    if linear + scalar(0.5) * square > scalar(0.0):
        share = wp.clamp(-linear / square, scalar(0.0), scalar(1.0))
        for r in range(s.joint_rows + 2 * contacts):
            t.lambda0[r] = t.lambda0[r] * share
        apply_multipliers(s, t, contacts, t.rows0, t.v1)


@wp.func
def prepare_crowd(s: Parts, t: Workspace, contacts: wp.int32, h: scalar):
    """Rows at the start, what is added to their speeds, friction, restitution; velocities without contact in `free`."""
    n = 3 * (s.bodies + 1)
    accelerate(s, t, t.q0, t.v0, t.a0)
    brisk = s.rest_speed
    for k in range(n):
        t.free[k] = t.v0[k] + h * t.a0[k]
        if k % 3 != 2:
            brisk = wp.max(brisk, scalar(4.0) * h * wp.abs(t.a0[k]))
    for r in range(s.joint_rows):
        joint_row(s, t, t.q0, r, t.rows0)
        t.target[r] = scalar(0.0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        gap = contact_rows(s, t, t.q0, i, t.rows0, r)
        restitution, friction = properties_of(s, t, i)
        t.gap[i] = gap
        t.coefficient[i] = friction
        t.sliding[i] = 0
        t.rebound[i] = scalar(0.0)
        t.target[r] = wp.max(gap, scalar(0.0)) / h
        t.target[r + 1] = scalar(0.0)
        approach = row_speed(t, t.rows0, r, t.v0)
        if gap <= s.tolerance and approach < -brisk:
            t.rebound[i] = restitution
            t.target[r] = restitution * approach


@wp.func
def crowd_velocities(s: Parts, t: Workspace, h: scalar):
    """The first stage: v1, and q1 without corrections; returns the number of contacts."""
    n = 3 * (s.bodies + 1)
    contacts = find_near(s, t, t.q0, h)
    prepare_crowd(s, t, contacts, h)
    solve_crowd(s, t, contacts, t.rows0, t.v1)
    if square_norm(s, t, t.v1) > square_norm(s, t, t.free) * (scalar(1.0) + scalar(1.0e-10)):
        for i in range(contacts):
            r = s.joint_rows + 2 * i
            if t.rebound[i] > scalar(0.0):
                t.rebound[i] = scalar(0.0)
                t.target[r] = wp.max(t.gap[i], scalar(0.0)) / h
        solve_crowd(s, t, contacts, t.rows0, t.v1)
        take_no_energy(s, t, contacts)
    clear(t.half, n)
    for r in range(s.joint_rows + 2 * contacts):
        if t.lambda0[r] != scalar(0.0):
            t.half[3 * t.row_a[r]] = scalar(1.0)
            t.half[3 * t.row_b[r]] = scalar(1.0)
    for k in range(n):
        t.q1[k] = t.q0[k] + h * t.v1[k]
        if t.half[3 * (k // 3)] == scalar(0.0):
            t.q1[k] = t.q0[k] + scalar(0.5) * h * (t.v0[k] + t.v1[k])
    return contacts


@wp.func
def worst_error(s: Parts, t: Workspace, contacts: wp.int32):
    """Set rows and `target` at q1; return the deepest overlap, or the most that a joint is off."""
    worst = scalar(0.0)
    for r in range(s.joint_rows):
        t.target[r] = joint_row(s, t, t.q1, r, t.rows1)
        worst = wp.max(worst, wp.abs(t.target[r]))
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        t.target[r] = contact_rows(s, t, t.q1, i, t.rows1, r)
        t.target[r + 1] = scalar(0.0)
        t.coefficient[i] = scalar(0.0)
        if -t.target[r] > s.slop:
            worst = wp.max(worst, -t.target[r])
    return worst


@wp.func
def correct_positions(s: Parts, t: Workspace, contacts: wp.int32):
    """Move q1 by the least displacement, in `half`, that puts joints and overlaps right, linearised at q1."""
    n = 3 * (s.bodies + 1)
    clear(t.free, n)
    solve_crowd(s, t, contacts, t.rows1, t.half)
    for k in range(n):
        t.q1[k] = t.q1[k] + t.half[k]


@wp.func
def come_to_rest(s: Parts, t: Workspace, h: scalar):
    """Leave the world where it was, without velocity, where the step only moved it as far as its solution is exact."""
    most = scalar(0.0)
    fastest = scalar(0.0)
    for k in range(3 * (s.bodies + 1)):
        size = scalar(1.0)
        if k % 3 == 2:
            size = reach_of(s, t, wp.min(k // 3, s.bodies - 1))
        most = wp.max(most, size * wp.abs(t.a0[k]))
        fastest = wp.max(fastest, size * wp.max(wp.abs(t.v0[k]), wp.abs(t.v1[k])))
    if fastest <= REST * h * most:
        for k in range(3 * (s.bodies + 1)):
            t.q1[k] = t.q0[k]
            t.v1[k] = scalar(0.0)


@wp.func
def crowd(s: Parts, t: Workspace, h: scalar, most: wp.int32):
    """Set (q1, v1) after h, with at most so many corrections of positions; returns how many there were.

    Where the duration is zero, positions alone are corrected.
    """
    n = 3 * (s.bodies + 1)
    if h > scalar(0.0):
        crowd_velocities(s, t, h)
    else:
        copy(t.q0, t.q1, n)
        copy(t.v0, t.v1, n)
    done = wp.int32(0)
    going = wp.int32(1)
    while going == 1:
        going = wp.int32(0)
        if done < most:
            contacts = wp.int32(0)
            if done < CORRECTIONS - LAST:
                contacts = find_near(s, t, t.q1, scalar(0.0))
            t.counts[CONTACTS] = contacts
            error = worst_error(s, t, contacts)
            if error > s.tolerance:
                correct_positions(s, t, contacts)
                done += 1
                going = wp.int32(1)
    if h > scalar(0.0) and done == 0:
        come_to_rest(s, t, h)
    for k in range(n):
        if not (wp.isfinite(t.q1[k]) and wp.isfinite(t.v1[k])):
            t.counts[FAILED] = 1
    return done
