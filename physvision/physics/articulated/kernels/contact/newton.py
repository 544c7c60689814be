"""Newton's method on the equations of the modes, with adjustable compliance; see `solver`.

All functions work on one island, the blocks from `start` to `end` in `island_member`; its equations have the same rows.
"""

import warp as wp

from ..precision import mat33, pyramidal, scalar, vec3
from ..spatial.vectors import zero3
from ..structs import CONTACT, OPEN, SLIDE, STICK, Contact
from .active_set import (
    CHANGED,
    LINEAR,
    MODE_TOLERANCE,
    accept,
    friction_direction,
    max_abs,
    update_modes,
    update_velocities,
    verify_modes,
)
from .block_lu import factor_blocks, solve_factored
from .friction_pyramid import max_diagonal, pyramid_impulse_derivative, pyramid_residual, pyramid_velocity_derivative
from .noncontact_constraints import assemble_noncontact, noncontact_residual
from .settings import SOLVER

COMPLIANCE = wp.constant(scalar(SOLVER.compliance))
HIGH_COMPLIANCE = wp.constant(scalar(SOLVER.high_compliance))
COMPLIANCE_DECAY = wp.constant(scalar(SOLVER.compliance_decay))
MAX_COMPLIANT_STEPS = wp.constant(SOLVER.max_compliant_steps)
# With a compliance above the matrix itself the solution is unique, and a homotopy follows it to zero compliance: one
# contact changes its mode at a time, and the compliance decays while none does. If more modes change in a row than
# there are contacts, they cycle; then all change at once and the compliance decays, until none changes.
MAX_COMPLIANCE = wp.constant(scalar(SOLVER.max_compliance))
HOMOTOPY_DECAY = wp.constant(scalar(SOLVER.homotopy_decay))
MAX_HOMOTOPY_STEPS = wp.constant(SOLVER.max_homotopy_steps)
CONVERGED_RESIDUAL = wp.constant(scalar(SOLVER.converged_residual))
MAX_PIVOT_RATIO = wp.constant(scalar(SOLVER.max_pivot_ratio))
MAX_NEWTON_STEPS = wp.constant(SOLVER.max_newton_steps)


@wp.func
def velocity_derivative(contact: Contact, world: int, c: int, friction_scale: scalar):
    """Return F_u of a contact that is not open."""
    if wp.static(pyramidal):
        return pyramid_velocity_derivative(contact.solver.mode[world, c])
    z = scalar(0.0)
    unit = scalar(1.0)
    rate = mat33(unit, z, z, z, unit, z, z, z, unit)
    if contact.solver.mode[world, c] == SLIDE:
        along = friction_direction(contact, world, c)
        weight = contact.solver.delassus[world, c, c][0, 0]
        # At most one at a solution; before, and without normal impulse, the direction may be rounding only.
        direction_rate = wp.clamp(
            weight
            * friction_scale
            * contact.blocks.friction[world, c]
            * contact.solver.impulse[world, c][0]
            / along[0],
            z,
            unit,
        )
        cross = -direction_rate * along[1] * along[2]
        first = direction_rate * (unit - along[1] * along[1])
        second = direction_rate * (unit - along[2] * along[2])
        rate = mat33(unit, z, z, z, first, cross, z, cross, second)
    return rate


@wp.func
def assemble_matrix(contact: Contact, world: int, start: int, end: int, friction_scale: scalar, compliance: scalar):
    """Assemble F_λ + F_u A of the blocks that are not open, listed in `active`; returns their number."""
    diagonal = scalar(0.0)
    active_count = wp.int32(0)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        diagonal += wp.trace(contact.solver.delassus[world, c, c])
        if contact.solver.mode[world, c] != OPEN:
            contact.solver.active[world, start + active_count] = c
            active_count += 1
    diagonal = compliance * diagonal / scalar(3 * (end - start))
    z = scalar(0.0)
    for row in range(start, start + active_count):
        c = contact.solver.active[world, row]
        if contact.blocks.law[world, c] != CONTACT:
            assemble_noncontact(contact, world, row, start, start + active_count, friction_scale, diagonal)
        elif contact.solver.mode[world, c] == STICK:
            for column in range(start, start + active_count):
                k = contact.solver.active[world, column]
                contact.solver.matrix[world, row, column] = contact.solver.delassus[world, c, k]
            contact.solver.matrix[world, row, row] = contact.solver.matrix[world, row, row] + mat33(
                diagonal, z, z, z, diagonal, z, z, z, diagonal
            )
        elif wp.static(pyramidal):
            rate = velocity_derivative(contact, world, c, friction_scale)
            for column in range(start, start + active_count):
                k = contact.solver.active[world, column]
                contact.solver.matrix[world, row, column] = rate * contact.solver.delassus[world, c, k]
            weight = max_diagonal(contact.solver.delassus[world, c, c])
            diagonal_block = pyramid_impulse_derivative(
                contact.solver.mode[world, c], weight, friction_scale * contact.blocks.friction[world, c]
            )
            diagonal_block = diagonal_block + mat33(diagonal, z, z, z, diagonal, z, z, z, diagonal)
            contact.solver.matrix[world, row, row] = contact.solver.matrix[world, row, row] + diagonal_block
        else:
            rate = velocity_derivative(contact, world, c, friction_scale)
            for column in range(start, start + active_count):
                k = contact.solver.active[world, column]
                contact.solver.matrix[world, row, column] = rate * contact.solver.delassus[world, c, k]
            along = friction_direction(contact, world, c)
            weight = contact.solver.delassus[world, c, c][0, 0]
            slope = weight * friction_scale * contact.blocks.friction[world, c]
            # F_λ of λ_t − μ λ_n y/|y| times A_nn, where y rotates with λ_t.
            contact.solver.matrix[world, row, row] = contact.solver.matrix[world, row, row] + mat33(
                diagonal, z, z,
                -slope * along[1], diagonal + weight * (scalar(1.0) - rate[1, 1]), -weight * rate[1, 2],
                -slope * along[2], -weight * rate[2, 1], diagonal + weight * (scalar(1.0) - rate[2, 2]),
            )  # fmt: skip
    return active_count


@wp.func
def write_residual(contact: Contact, world: int, start: int, active_count: int, friction_scale: scalar):
    """Write F of the active blocks to `vector`."""
    for row in range(start, start + active_count):
        c = contact.solver.active[world, row]
        velocity = contact.solver.velocity[world, c]
        contact.solver.vector[world, row] = velocity
        if contact.blocks.law[world, c] != CONTACT:
            contact.solver.vector[world, row] = noncontact_residual(contact, world, c, friction_scale)
        elif wp.static(pyramidal):
            weight = max_diagonal(contact.solver.delassus[world, c, c])
            contact.solver.vector[world, row] = pyramid_residual(
                contact.solver.mode[world, c],
                weight,
                friction_scale * contact.blocks.friction[world, c],
                contact.solver.impulse[world, c],
                velocity,
            )
        elif contact.solver.mode[world, c] != STICK:
            along = friction_direction(contact, world, c)
            weight = contact.solver.delassus[world, c, c][0, 0]
            impulse = contact.solver.impulse[world, c]
            residual = (
                weight * impulse - weight * friction_scale * contact.blocks.friction[world, c] * impulse[0] * along
            )
            contact.solver.vector[world, row] = vec3(velocity[0], residual[1], residual[2])


@wp.func
def newton_step(
    contact: Contact, world: int, start: int, end: int, friction_scale: scalar, compliance: scalar, factored: int
):
    """Take one Newton step towards F = 0 in the present modes, and update velocities.

    Returns the number of active blocks.

    `factored` is that number if the factors of the last step are still valid; otherwise it is negative.
    """
    active_count = wp.int32(factored)
    if active_count < 0:
        active_count = assemble_matrix(contact, world, start, end, friction_scale, compliance)
        factor_blocks(contact, world, start, active_count)
        has_opened = bool(False)
        for m in range(start, end):
            c = contact.solver.island_member[world, m]
            if contact.solver.mode[world, c] == OPEN:
                has_opened = has_opened or max_abs(contact.solver.impulse[world, c]) > scalar(0.0)
                contact.solver.impulse[world, c] = zero3()
        if has_opened:
            update_velocities(contact, world, start, end)
    write_residual(contact, world, start, active_count, friction_scale)
    solve_factored(contact, world, start, active_count)
    for row in range(start, start + active_count):
        c = contact.solver.active[world, row]
        contact.solver.impulse[world, c] = contact.solver.impulse[world, c] - contact.solver.vector[world, row]
    update_velocities(contact, world, start, end)
    return active_count


@wp.func
def are_all_approaching(contact: Contact, world: int, start: int, end: int):
    """Return True if the island consists of contacts only, which all approach and have friction."""
    result = bool(True)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        if contact.blocks.law[world, c] != CONTACT or not (contact.blocks.friction[world, c] > scalar(0.0)):
            result = bool(False)
        if not (contact.blocks.free_velocity[world, c][0] < scalar(0.0)):
            result = bool(False)
    return result


@wp.func
def max_inverse_pivot(contact: Contact, world: int, start: int, end: int):
    """Return the largest reciprocal of a pivot that `factor_blocks` left; very large if a pivot vanished."""
    worst = scalar(0.0)
    for row in range(start, end):
        diagonal_block = contact.solver.matrix[world, row, row]
        for k in range(3):
            if diagonal_block[k, k] == scalar(0.0):
                worst = scalar(1.0e30)
            worst = wp.max(worst, wp.abs(diagonal_block[k, k]))
    return worst


@wp.func
def solve_all_sticking(contact: Contact, world: int, start: int, end: int, size: scalar):
    """Compute the impulses that stop all contacts; returns their residual, which is large if some contact has to move.

    This solves most resting stacks with one factorization without compliance, unless rows are linearly dependent.
    """
    residual = scalar(1.0e29)
    if are_all_approaching(contact, world, start, end):
        max_diagonal_entry = scalar(0.0)
        for m in range(start, end):
            c = contact.solver.island_member[world, m]
            contact.solver.active[world, m] = c
            contact.solver.mode[world, c] = STICK
            contact.solver.vector[world, m] = -contact.blocks.free_velocity[world, c]
            for n in range(start, end):
                contact.solver.matrix[world, m, n] = contact.solver.delassus[
                    world, c, contact.solver.island_member[world, n]
                ]
            diagonal_block = contact.solver.delassus[world, c, c]
            max_diagonal_entry = wp.max(
                max_diagonal_entry, wp.max(diagonal_block[0, 0], wp.max(diagonal_block[1, 1], diagonal_block[2, 2]))
            )
        factor_blocks(contact, world, start, end - start)
        if max_inverse_pivot(contact, world, start, end) * max_diagonal_entry < MAX_PIVOT_RATIO:
            solve_factored(contact, world, start, end - start)
            for m in range(start, end):
                contact.solver.impulse[world, contact.solver.island_member[world, m]] = contact.solver.vector[world, m]
            update_velocities(contact, world, start, end)
            residual = verify_modes(contact, world, start, end, scalar(1.0), MODE_TOLERANCE * size) / size
            contact.solver.factored[world, start] = end - start
    return residual


@wp.func
def refine(
    contact: Contact,
    world: int,
    start: int,
    end: int,
    friction_scale: scalar,
    size: scalar,
    compliance: scalar,
    slowness: int,
    initial_residual: scalar,
):
    """Run Newton's method from the present impulses, velocities and modes; returns the residual.

    A homotopy in compliance takes `slowness` times more and smaller steps. If Newton's method does not converge (rows
    that differ by rounding only cannot all stand still), the best iterate is kept, or the start, whose residual is
    `initial_residual`.
    """
    residual = scalar(1.0e30)
    best = initial_residual
    accept(contact, world, start, end)
    steps = wp.int32(MAX_NEWTON_STEPS)
    if compliance >= HIGH_COMPLIANCE:
        steps = MAX_COMPLIANT_STEPS
    decay = scalar(1.0) * COMPLIANCE_DECAY
    is_homotopy = compliance >= MAX_COMPLIANCE
    if is_homotopy:
        steps = slowness * MAX_HOMOTOPY_STEPS
        decay = wp.pow(HOMOTOPY_DECAY, scalar(1.0) / scalar(slowness))
    current_compliance = scalar(1.0) * compliance  # makes a Warp variable of a constant
    changed_steps = wp.int32(0)  # consecutive steps that changed a mode
    factored = wp.int32(-1)
    contact.solver.factored[world, start] = -1
    step = wp.int32(0)
    while step < steps and not (residual <= CONVERGED_RESIDUAL):
        active_count = newton_step(contact, world, start, end, friction_scale, current_compliance, factored)
        residual = verify_modes(contact, world, start, end, friction_scale, MODE_TOLERANCE * size) / size
        if residual < best:
            best = residual
            accept(contact, world, start, end)
        factored = -1
        one_by_one = is_homotopy and changed_steps < end - start
        outcome = update_modes(contact, world, start, end, is_homotopy, one_by_one)
        if outcome == LINEAR and current_compliance <= COMPLIANCE:
            factored = active_count
        if current_compliance > COMPLIANCE and (outcome != CHANGED or not one_by_one):
            current_compliance = decay * current_compliance
        changed_steps += 1
        if outcome != CHANGED:
            changed_steps = 0
        step += 1
    contact.solver.factored[world, start] = factored
    if not (residual <= best):
        contact.solver.factored[world, start] = -1
        for m in range(start, end):
            c = contact.solver.island_member[world, m]
            contact.solver.impulse[world, c] = contact.solver.best_impulse[world, c]
            contact.solver.mode[world, c] = contact.solver.best_mode[world, c]
        update_velocities(contact, world, start, end)
    return best
