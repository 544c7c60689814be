"""Primal-dual interior-point method for contact and friction (Mehrotra's predictor-corrector, 1992).

A contact has a normal multiplier λ ≥ 0 and a velocity u ≥ 0 of which one is zero, and, with friction μ and tangential
multiplier τ,
    α = μ λ − τ ≥ 0,  q ≥ 0,  α q = 0        β = μ λ + τ ≥ 0,  p ≥ 0,  β p = 0        slip = p − q:
it slips forward (p > 0) with all friction backward (β = 0), and the other way round. Newton's method on these, with all
products held at a common value that falls to zero, eliminates to a compliance of each contact,
    [u/λ, 0; μ (p/β − q/α), p/β + q/α],
and so to the system of `sparse_system`. Contacts have a small compliance of their own, so that the solution is unique.
Contact modes are read off the iterates and verified by `active_set`. In the relaxed problem of `mode_search` a contact
parts by μ (p + q − w) besides u: its compliance is [u/λ + μ² (p/β + q/α), μ (p/β − q/α); μ (p/β − q/α), p/β + q/α].
"""

import warp as wp

from .active_set import has_free_friction, solve_active_set, update_row_velocities
from .precision import Array1d, scalar
from .problem import OPEN, SLIDE, STICK, Problem
from .rows import row_velocity
from .sparse_system import factor_system, solve_rows

# Numbers a contact: λ, α, β, then u, q, p, then the directions of these six, then the targets of the products.
WIDTH = wp.constant(15)


@wp.func
def initialize_iterate(p: Problem, contacts: int, multipliers: Array1d, start_scale: scalar):
    """Start inside all bounds, at `start_scale` times the scale of the problem, which is returned."""
    size = scalar(0.0)
    for r in range(p.joint_rows + 2 * contacts):
        multipliers[r] = scalar(0.0)
        size = wp.max(size, wp.abs(p.offset[r]) / wp.sqrt(p.diagonal[r]))
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        multipliers[r] = start_scale * size / wp.sqrt(p.diagonal[r])
        if p.sliding[i] == 1:
            multipliers[r + 1] = p.fixed_ratio[i] * multipliers[r]
    update_row_velocities(p, contacts, multipliers)
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        offset = WIDTH * i
        min_slip = start_scale * size * wp.sqrt(p.diagonal[r + 1])
        p.iterate[offset] = multipliers[r]
        p.iterate[offset + 3] = wp.max(p.row_velocity[r], start_scale * size * wp.sqrt(p.diagonal[r]))
        for k in range(1, 3):
            p.iterate[offset + k] = p.friction[i] * multipliers[r]
        p.iterate[offset + 4] = wp.max(-p.row_velocity[r + 1], scalar(0.0)) + min_slip
        p.iterate[offset + 5] = wp.max(p.row_velocity[r + 1], scalar(0.0)) + min_slip
    return size


@wp.func
def relaxation_velocity(p: Problem, i: int):
    """Return the velocity by which relaxed contact i parts beyond that which complements its load."""
    speed = scalar(0.0)
    if p.relaxation > scalar(0.0) and has_free_friction(p, i) == 1:
        speed = p.friction[i] * (p.iterate[WIDTH * i + 4] + p.iterate[WIDTH * i + 5] - p.slip_target[i])
    return speed


@wp.func
def complementarity_measure(p: Problem, contacts: int):
    """Return the mean product, and the largest distance from complementarity in the problem's scale."""
    total = scalar(0.0)
    count = wp.int32(0)
    worst = scalar(0.0)
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        offset = WIDTH * i
        total += p.iterate[offset] * p.iterate[offset + 3]
        count += 1 + 2 * has_free_friction(p, i)
        if has_free_friction(p, i) == 1:
            # Both directions of slip in one sum, so that the mirrored problem gives the same.
            total += p.iterate[offset + 1] * p.iterate[offset + 4] + p.iterate[offset + 2] * p.iterate[offset + 5]
        for k in range(1 + 2 * has_free_friction(p, i)):
            unit = wp.sqrt(p.diagonal[r + wp.min(k, 1)])
            worst = wp.max(worst, wp.min(p.iterate[offset + k] * unit, p.iterate[offset + 3 + k] / unit))
        worst = wp.max(
            worst,
            wp.abs(p.iterate[offset + 3] + relaxation_velocity(p, i) - p.row_velocity[r]) / wp.sqrt(p.diagonal[r]),
        )
        if has_free_friction(p, i) == 1:
            slip = p.iterate[offset + 5] - p.iterate[offset + 4]
            worst = wp.max(worst, wp.abs(slip - p.row_velocity[r + 1]) / wp.sqrt(p.diagonal[r + 1]))
    return total / scalar(wp.max(count, 1)), worst


@wp.func
def set_barrier_stiffness(p: Problem, contacts: int):
    """Set `stiffness` to the inverse compliance [n, m; k, f] of the iterate, m zero unless relaxed."""
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        offset = WIDTH * i
        normal = p.iterate[offset + 3] / p.iterate[offset] + p.softness * p.diagonal[r]
        p.stiffness[4 * i] = scalar(1.0) / normal
        for k in range(1, 4):
            p.stiffness[4 * i + k] = scalar(0.0)
        if has_free_friction(p, i) == 1:
            backward = p.iterate[offset + 4] / p.iterate[offset + 1]
            forward = p.iterate[offset + 5] / p.iterate[offset + 2]
            tangent = forward + backward + p.softness * p.diagonal[r + 1]
            across = p.friction[i] * (forward - backward)
            coupling = p.relaxation * across
            square = p.relaxation * p.friction[i] * p.friction[i]
            # Written out, since the squares of large terms cancel.
            squared_terms = scalar(4.0) * forward * backward + p.softness * p.diagonal[r + 1] * (forward + backward)
            determinant = normal * tangent + square * squared_terms
            normal += square * (forward + backward)
            p.stiffness[4 * i] = tangent / determinant
            p.stiffness[4 * i + 1] = -coupling / determinant
            p.stiffness[4 * i + 2] = -across / determinant
            p.stiffness[4 * i + 3] = normal / determinant
        elif p.sliding[i] == 1:
            p.stiffness[4 * i + 2] = p.fixed_ratio[i] / normal


@wp.func
def tangential_direction(p: Problem, i: int, r: int):
    """Set the tangential part of the direction of contact i, at row r, from the changes of its rows.

    At the nearer bound the remainder is a small difference of large loads: there the slip follows from the row
    velocity, and the bound's part from the slip.
    """
    offset = WIDTH * i
    slip = (
        p.row_velocity[r + 1]
        + row_velocity(p, p.rows, r + 1, p.displacement)
        + p.softness * p.diagonal[r + 1] * p.solution[r + 1]
    )
    slip += p.iterate[offset + 4] - p.iterate[offset + 5]
    side = wp.int32(1)
    sign = scalar(1.0)
    if p.iterate[offset + 4] * p.iterate[offset + 2] > p.iterate[offset + 5] * p.iterate[offset + 1]:
        side = wp.int32(2)
        sign = scalar(-1.0)
    passive = offset + side
    binding = offset + 3 - side
    p.iterate[passive + 6] = p.friction[i] * p.solution[r] - sign * p.solution[r + 1]
    p.iterate[passive + 9] = (p.iterate[passive + 12] - p.iterate[passive + 3] * p.iterate[passive + 6]) / p.iterate[
        passive
    ]
    p.iterate[binding + 9] = sign * slip + p.iterate[passive + 9]
    p.iterate[binding + 6] = (p.iterate[binding + 12] - p.iterate[binding] * p.iterate[binding + 9]) / p.iterate[
        binding + 3
    ]


@wp.func
def newton_direction(p: Problem, contacts: int, n: int, center: scalar, corrected: int):
    """Set the direction in which all products become `center`.

    If `corrected` is 1, the products of the previous direction are taken into account.
    """
    for r in range(p.joint_rows):
        p.row_target[r] = -p.row_velocity[r]
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        offset = WIDTH * i
        for k in range(1 + 2 * has_free_friction(p, i)):
            product = p.iterate[offset + k] * p.iterate[offset + 3 + k]
            if corrected == 1:
                product += p.iterate[offset + 6 + k] * p.iterate[offset + 9 + k]
            p.iterate[offset + 12 + k] = center - product
        p.row_target[r] = (
            p.iterate[offset + 3]
            + relaxation_velocity(p, i)
            - p.row_velocity[r]
            + p.iterate[offset + 12] / p.iterate[offset]
        )
        p.row_target[r + 1] = scalar(0.0)
        if has_free_friction(p, i) == 1:
            forward = p.iterate[offset + 14] / p.iterate[offset + 2]
            backward = p.iterate[offset + 13] / p.iterate[offset + 1]
            p.row_target[r] = p.row_target[r] + p.relaxation * p.friction[i] * (forward + backward)
            p.row_target[r + 1] = (p.iterate[offset + 5] - p.iterate[offset + 4] - p.row_velocity[r + 1]) + (
                forward - backward
            )
    solve_rows(p, contacts, n, 1)
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        offset = WIDTH * i
        p.iterate[offset + 6] = p.solution[r]
        p.iterate[offset + 9] = (p.iterate[offset + 12] - p.iterate[offset + 3] * p.solution[r]) / p.iterate[offset]
        if has_free_friction(p, i) == 1:
            tangential_direction(p, i, r)


@wp.func
def max_step(p: Problem, contacts: int):
    """Return the longest step in [0, 1] along the direction that stays within the bounds."""
    step = scalar(1.0)
    for i in range(contacts):
        offset = WIDTH * i
        for k in range(1 + 2 * has_free_friction(p, i)):
            for side in range(2):
                value = p.iterate[offset + k + 3 * side]
                move = p.iterate[offset + 6 + k + 3 * side]
                if value + step * move < scalar(0.0):
                    step = -value / move
    return step


@wp.func
def product_after(p: Problem, offset: int, step: scalar):
    """Return the product at index `offset` after a step of this length."""
    ahead = p.iterate[offset] + step * p.iterate[offset + 6]
    return ahead * (p.iterate[offset + 3] + step * p.iterate[offset + 9])


@wp.func
def interior_point_step(p: Problem, contacts: int, n: int, mean: scalar, multipliers: Array1d):
    """Do one predictor-corrector step; return its length."""
    set_barrier_stiffness(p, contacts)
    factor_system(p, contacts, n)
    newton_direction(p, contacts, n, scalar(0.0), 0)
    step = max_step(p, contacts)
    total = scalar(0.0)
    count = wp.int32(0)
    for i in range(contacts):
        offset = WIDTH * i
        count += 1 + 2 * has_free_friction(p, i)
        total += product_after(p, offset, step)
        if has_free_friction(p, i) == 1:
            total += product_after(p, offset + 1, step) + product_after(p, offset + 2, step)
    ratio = total / (scalar(count) * mean)
    center = mean * wp.max(ratio * ratio * ratio, p.settings.min_centering)
    newton_direction(p, contacts, n, center, 1)
    step = max_step(p, contacts)
    if step < p.settings.min_step:
        newton_direction(p, contacts, n, mean, 0)
        step = max_step(p, contacts)
    step = wp.min(p.settings.boundary_fraction * step, scalar(1.0))
    for r in range(p.joint_rows + 2 * contacts):
        multipliers[r] = multipliers[r] + step * p.solution[r]
    for i in range(contacts):
        offset = WIDTH * i
        for k in range(6):
            p.iterate[offset + k] = p.iterate[offset + k] + step * p.iterate[offset + 6 + k]
    return step


@wp.func
def modes_from_iterate(p: Problem, contacts: int):
    """Set the contact modes by which factor of each complementary pair is larger."""
    for i in range(contacts):
        r = p.joint_rows + 2 * i
        offset = WIDTH * i
        p.mode[i] = OPEN
        if p.iterate[offset] * p.diagonal[r] > p.iterate[offset + 3]:
            p.mode[i] = SLIDE
            if has_free_friction(p, i) == 1:
                p.mode[i] = STICK
                backward = p.iterate[offset + 1] * p.diagonal[r + 1] < p.iterate[offset + 4]
                forward = p.iterate[offset + 2] * p.diagonal[r + 1] < p.iterate[offset + 5]
                if backward and forward:
                    # With a light load, both may hold.
                    backward = p.iterate[offset + 4] > p.iterate[offset + 5]
                if backward or forward:
                    p.mode[i] = SLIDE
                    p.ratio[i] = wp.where(backward, p.friction[i], -p.friction[i])


@wp.func
def interior_point(
    p: Problem,
    contacts: int,
    n: int,
    multipliers: Array1d,
    tolerance: scalar,
    start_scale: scalar,
    max_factorizations: int,
):
    """Iterate until contact modes are verified, with the multipliers in `solution`; return 1 if they are.

    Modes are verified as the iterates come near a solution, and where steps become short. The count of factorizations
    may grow to `max_factorizations`.
    """
    scale = initialize_iterate(p, contacts, multipliers, start_scale)
    check_residual = wp.float64(1.0) * p.settings.first_mode_check
    verified = wp.int32(0)
    short_steps = wp.int32(0)
    is_relaxed = p.relaxation > scalar(0.0)
    max_short_steps = wp.where(is_relaxed, p.settings.max_relaxed_short_steps, p.settings.max_short_steps)
    running = wp.int32(1)
    while running == 1:
        update_row_velocities(p, contacts, multipliers)
        mean, residual = complementarity_measure(p, contacts)
        modes_from_iterate(p, contacts)
        if residual <= check_residual * scale or short_steps == max_short_steps:
            check_residual *= p.settings.mode_check_decrease
            verified = solve_active_set(p, contacts, n, tolerance, p.settings.max_mode_corrections)
            update_row_velocities(p, contacts, multipliers)
        running = wp.int32(0)
        if (
            verified == 0
            and p.factorizations < max_factorizations
            and short_steps < max_short_steps
            and residual > p.settings.min_residual * scale
        ):
            step = interior_point_step(p, contacts, n, mean, multipliers)
            short_steps += 1
            if step >= p.settings.min_step:
                short_steps = wp.int32(0)
            running = wp.int32(1)
    return verified
