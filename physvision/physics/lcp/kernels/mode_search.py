"""Search for contact modes: a guess, interior-point attempts, and a relaxed problem that always has a solution.

With friction the problem is not monotone, and the central path may fold back. Then other starting points and softer
contacts are tried, and at last the relaxed problem (Anitescu, 2006), in which sliding contacts part as well,
λ ⟂ u − μ (|slip| − w) with given w: the optimality conditions of a convex program. With w = |slip| its solution is the
one sought, so w is set to the slip again and again (Cadoux, 2009), until its modes solve the problem itself. The work
of all this is bounded together. Where the bound ends it, the solution of the first relaxed problem, w = 0, is returned:
that of a later one, and its gradient, would depend on all before it.
"""

import warp as wp

from .active_set import (
    complementarity_residual,
    has_free_friction,
    modes_from_solution,
    solve_active_set,
    update_row_velocities,
)
from .interior_point import interior_point, modes_from_iterate
from .precision import Array1d, IntArray1d, scalar
from .problem import Problem, bind_contacts, copy
from .sparse_system import delassus_diagonal, number_unknowns


@wp.func
def solve_relaxed(p: Problem, contacts: int, n: int, multipliers: Array1d, tolerance: scalar, max_factorizations: int):
    """Solve relaxed problems until the modes of one solve the problem itself; return 1 if they do.

    The count of factorizations may grow to `max_factorizations`. On failure the multipliers are those of the first
    relaxed problem, and the problem stays relaxed, with w = 0.
    """
    size = p.joint_rows + 2 * contacts
    copy(multipliers, p.row_adjoint, size)
    copy(multipliers, p.relaxed_solution, size)
    is_first = wp.int32(1)
    start_scale = scalar(1.0)
    verified = wp.int32(0)
    solved = wp.int32(0)
    while verified == 0 and p.factorizations <= max_factorizations - p.settings.relaxed_factorizations + solved * (
        p.settings.relaxed_factorizations - 2 * p.settings.max_mode_corrections
    ):
        p.relaxation = scalar(1.0)
        if solved == 1:
            # The slip target changed, the modes hardly.
            update_row_velocities(p, contacts, p.row_adjoint)
            modes_from_solution(p, contacts, p.row_adjoint)
            solved = solve_active_set(p, contacts, n, tolerance, p.settings.max_mode_corrections)
        if solved == 0 and p.factorizations <= max_factorizations - p.settings.relaxed_factorizations:
            solved = interior_point(p, contacts, n, multipliers, tolerance, start_scale, max_factorizations)
            start_scale = scalar(10.0) * start_scale
        if solved == 1:
            start_scale = scalar(1.0)
            copy(p.solution, p.row_adjoint, size)
            if is_first == 1:
                copy(p.solution, p.relaxed_solution, size)
                is_first = wp.int32(0)
            update_row_velocities(p, contacts, p.row_adjoint)
            for i in range(contacts):
                if has_free_friction(p, i) == 1:
                    p.slip_target[i] = wp.abs(p.row_velocity[p.joint_rows + 2 * i + 1])
            p.relaxation = scalar(0.0)
            verified = solve_active_set(p, contacts, n, tolerance, p.settings.max_mode_corrections)
    if verified == 0:
        p.relaxation = scalar(1.0)
        copy(p.relaxed_solution, multipliers, size)
        for i in range(contacts):
            p.slip_target[i] = scalar(0.0)
        update_row_velocities(p, contacts, multipliers)
        modes_from_solution(p, contacts, multipliers)
    return verified


@wp.func
def search_modes(
    p: Problem,
    contacts: int,
    rows: Array1d,
    columns: Array1d,
    mode: IntArray1d,
    ratio: Array1d,
    multipliers: Array1d,
    guessed: int,
):
    """Find contact modes and the multipliers of all rows, given the row values without multipliers in `offset`.

    If `guessed` is 1, the given modes are tried first. Contacts that slide from the start do so with the given ratio.
    Returns the residual, as a fraction of the largest row value.
    """
    bind_contacts(p, rows, columns, mode, ratio)
    size = p.joint_rows + 2 * contacts
    n = number_unknowns(p, contacts)
    delassus_diagonal(p, contacts)
    scale = scalar(1.0e-300)
    for r in range(size):
        multipliers[r] = scalar(0.0)
        p.row_velocity[r] = p.offset[r]
        scale = wp.max(scale, wp.abs(p.offset[r]))
    for i in range(contacts):
        p.fixed_ratio[i] = scalar(0.0)
        p.slip_target[i] = scalar(0.0)
        if p.sliding[i] == 1:
            p.fixed_ratio[i] = ratio[i]
        elif guessed == 0:
            ratio[i] = scalar(0.0)
    tolerance = p.settings.residual_tolerance * scale
    verified = wp.int32(0)
    p.relaxation = scalar(0.0)
    p.softness = p.settings.contact_compliance
    start = p.factorizations
    max_factorizations = start + p.settings.max_factorizations
    if contacts == 0 or guessed == 1:
        verified = solve_active_set(p, contacts, n, tolerance, p.settings.max_guess_updates)
    attempt = wp.int32(0)
    while (
        verified == 0
        and attempt < p.settings.max_attempts
        and p.factorizations < max_factorizations - 2 * p.settings.relaxed_factorizations
    ):
        start_scale = wp.where(attempt == 1 or attempt == 4, p.settings.near_bounds_scale, scalar(1.0))
        if attempt == 2:
            p.softness = p.settings.softer_compliance
        elif attempt == 3:
            p.softness = p.settings.softest_compliance
        attempt_limit = wp.min(
            max_factorizations - p.settings.relaxed_factorizations,
            p.factorizations + p.settings.max_attempt_factorizations,
        )
        verified = interior_point(p, contacts, n, multipliers, tolerance, start_scale, attempt_limit)
        attempt += 1
    if verified == 0:
        if guessed == 1:
            verified = solve_relaxed(p, contacts, n, multipliers, tolerance, max_factorizations)
        else:
            modes_from_iterate(p, contacts)
    if verified == 1:
        copy(p.solution, multipliers, size)
    p.iterations = wp.max(p.iterations, p.factorizations - start)
    update_row_velocities(p, contacts, multipliers)
    relaxation = p.relaxation
    p.relaxation = scalar(0.0)
    residual = complementarity_residual(p, contacts, multipliers) / scale
    p.relaxation = relaxation
    return residual
