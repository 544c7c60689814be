"""Active-set solution of the sparse problem: one linear system gives the multipliers of given contact modes.

Every contact is open (its multipliers are zero), sticks (both its rows are equations) or slides (its normal row is an
equation, and friction follows from the normal multiplier). Modes are verified if multipliers and row velocities then
have the signs and bounds that the modes ask for.
"""

import warp as wp

from .precision import Array1d, scalar
from .problem import OPEN, SLIDE, STICK, Problem
from .rows import row_velocity
from .sparse_system import factor_system, row_displacement, set_contact_stiffness, solve_rows


@wp.func
def has_free_friction(p: Problem, i: int):
    """Return 1 if the friction of contact i is unknown: it has some, and does not slide from the start."""
    return wp.where(p.sliding[i] == 0 and p.friction[i] > scalar(0.0), 1, 0)


@wp.func
def update_row_velocities(p: Problem, contacts: int, multipliers: Array1d):
    """Set `row_velocity` from these multipliers, the compliance of contacts included."""
    row_displacement(p, p.joint_rows + 2 * contacts, multipliers)
    for r in range(p.joint_rows + 2 * contacts):
        p.row_velocity[r] = p.offset[r] + row_velocity(p, p.rows, r, p.displacement)
        if r >= p.joint_rows:
            p.row_velocity[r] = p.row_velocity[r] + p.softness * p.diagonal[r] * multipliers[r]


@wp.func
def complementary_velocity(p: Problem, i: int, r: int):
    """Return the velocity that is zero where contact i, at row r, bears a load.

    It is the normal velocity; in the relaxed problem less the velocity by which sliding contacts part.
    """
    speed = p.row_velocity[r]
    if p.relaxation > scalar(0.0) and has_free_friction(p, i) == 1:
        speed += p.friction[i] * (p.slip_target[i] - wp.abs(p.row_velocity[r + 1]))
    return speed


@wp.func
def complementarity_residual(p: Problem, contacts: int, multipliers: Array1d):
    """Return the largest violation of the problem by multipliers and row velocities, as a velocity."""
    worst = scalar(0.0)
    for r in range(p.joint_rows):
        if p.joint_unknown[r] >= 0:
            worst = wp.max(worst, wp.abs(p.row_velocity[r]))
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        worst = wp.max(worst, wp.abs(wp.min(p.diagonal[r] * multipliers[r], complementary_velocity(p, i, r))))
        if has_free_friction(p, i) == 1:
            bound = p.friction[i] * wp.max(multipliers[r], scalar(0.0))
            unbounded = multipliers[r + 1] - p.row_velocity[r + 1] / p.diagonal[r + 1]
            error = multipliers[r + 1] - wp.clamp(unbounded, -bound, bound)
            worst = wp.max(worst, wp.abs(p.diagonal[r + 1] * error))
    return worst


@wp.func
def modes_from_solution(p: Problem, contacts: int, multipliers: Array1d):
    """Set the contact modes from multipliers and row velocities; return 1 if a mode changed."""
    changed = wp.int32(0)
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        previous_mode = p.mode[i]
        previous_ratio = p.ratio[i]
        load = multipliers[r] - complementary_velocity(p, i, r) / p.diagonal[r]
        if load <= scalar(0.0):
            p.mode[i] = OPEN
        elif has_free_friction(p, i) == 1:
            unbounded = multipliers[r + 1] - p.row_velocity[r + 1] / p.diagonal[r + 1]
            p.mode[i] = STICK
            if wp.abs(unbounded) > p.friction[i] * load:
                p.mode[i] = SLIDE
                p.ratio[i] = wp.sign(unbounded) * p.friction[i]
        else:
            p.mode[i] = SLIDE
        if p.mode[i] != previous_mode or (p.mode[i] == SLIDE and p.ratio[i] != previous_ratio):
            changed = wp.int32(1)
    return changed


@wp.func
def solve_active_set(p: Problem, contacts: int, n: int, tolerance: scalar, max_solves: int):
    """Solve for given contact modes and update them by the solution until they are verified; return 1 if they are.

    There are at most `max_solves` solutions; the last is in `solution`.
    """
    verified = wp.int32(0)
    running = wp.int32(1)
    solves = wp.int32(0)
    while running == 1:
        set_contact_stiffness(p, contacts)
        factor_system(p, contacts, n)
        for r in range(p.joint_rows + 2 * contacts):
            p.row_target[r] = -p.offset[r]
        if p.relaxation > scalar(0.0):
            for i in range(contacts):
                r = p.joint_rows + 2 * i
                p.row_target[r] = p.row_target[r] - p.friction[i] * p.slip_target[i]
        solve_rows(p, contacts, n, 2)
        update_row_velocities(p, contacts, p.solution)
        solves += 1
        running = wp.int32(0)
        if complementarity_residual(p, contacts, p.solution) <= tolerance:
            verified = wp.int32(1)
        elif solves < max_solves:
            running = modes_from_solution(p, contacts, p.solution)
    return verified
