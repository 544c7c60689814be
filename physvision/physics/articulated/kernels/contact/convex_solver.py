"""Accelerations that minimize the cost of convex contact, by Newton's method, and the response to forces.

With M⁻¹ = Wᵀ D⁻¹ W of `delassus`, let a = a₀ + Wᵀ D⁻½ y and H = D⁻½ W Jᵀ, so that a contact lags by s = s₀ − Hᵀ y and
the cost is

    ½ |y|² + Σ φ(s),    its gradient y − H F,    its Hessian Q = 1 + H K Hᵀ,    with ∂φ/∂s = F.

It is a parabola while all blocks keep their modes, unless a force is on an elliptic cone: a full Newton step after
which they still do ends at the minimum, and any other is shortened by a line search. Q is positive definite, and its
factor is block diagonal over independent trees. The adjoint of an additional force f is (M + Jᵀ K J)⁻¹ f, which is the
same solve.
"""

import warp as wp

from ..precision import Array2d, scalar, vec3
from ..spatial.vectors import zero3
from ..structs import Contact, Tree, Workspace
from .convex_contact import (
    COMPANION,
    ELLIPTIC,
    ON_CONE,
    PYRAMID,
    active_edges,
    block_force,
    block_mode,
    block_product,
    companion_entry,
    stiffness_matrix,
    stiffness_product,
)
from .settings import SOLVER

MAX_STEPS = wp.constant(SOLVER.max_convex_steps)
MAX_LINE_SEARCH = wp.constant(SOLVER.max_line_search)
SLOPE_TOLERANCE = wp.constant(scalar(SOLVER.slope_tolerance))
STEP_TOLERANCE = wp.constant(scalar(SOLVER.step_tolerance))
QUADRATIC_STEP = wp.constant(scalar(SOLVER.quadratic_step))


@wp.func
def scale_half_jacobian(tree: Tree, work: Workspace, contact: Contact, world: int, c: int):
    """Scale W Jᵀ of contact c to D⁻½ W Jᵀ."""
    for k in range(contact.blocks.path_length[world, c]):
        i = contact.blocks.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            contact.blocks.half_jacobian[world, c, d] = (
                wp.sqrt(work.inverse_pivot[world, d]) * contact.blocks.half_jacobian[world, c, d]
            )


@wp.func
def lag_change(tree: Tree, contact: Contact, world: int, c: int, x: Array2d):
    """Return Hᵀ x of contact c."""
    total = vec3(scalar(0.0), scalar(0.0), scalar(0.0))
    for k in range(contact.blocks.path_length[world, c]):
        i = contact.blocks.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            total = total + x[world, d] * contact.blocks.half_jacobian[world, c, d]
    return total


@wp.func
def assemble_pyramid(tree: Tree, contact: Contact, world: int, c: int, bits: int):
    """Add a contact with a pyramid to the descent direction and to the lower part of Q."""
    stiffness = contact.convex.edge_stiffness[world, c]
    friction = contact.blocks.friction[world, c]
    force = stiffness_product(stiffness, friction, bits, contact.convex.lag[world, c])
    matrix = stiffness_matrix(stiffness, friction, bits)
    length = contact.blocks.path_length[world, c]
    for k in range(length):
        i = contact.blocks.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            column = contact.blocks.half_jacobian[world, c, d]
            contact.convex.descent[world, d] = contact.convex.descent[world, d] + wp.dot(column, force)
            product = matrix * column
            for m in range(k, length):
                j = contact.blocks.path[world, c, m]
                end = wp.min(tree.first_velocity[j + 1], d + 1)
                for e in range(tree.first_velocity[j], end):
                    entry = wp.dot(product, contact.blocks.half_jacobian[world, c, e])
                    contact.convex.hessian[world, d, e] = contact.convex.hessian[world, d, e] + entry


@wp.func
def assemble_block(tree: Tree, contact: Contact, world: int, c: int, ratio: scalar, mode: int):
    """Add a block of any law, with its rotational friction, to the descent direction and to the lower part of Q."""
    lag = contact.convex.lag[world, c]
    angular = companion_entry(contact, world, c, contact.convex.lag)
    force, moment = block_force(contact, world, c, ratio, mode, lag, angular)
    companion = contact.convex.companion[world, c]
    length = contact.blocks.path_length[world, c]
    for k in range(length):
        i = contact.blocks.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            column = contact.blocks.half_jacobian[world, c, d]
            angular_column = zero3()
            if companion >= 0:
                angular_column = contact.blocks.half_jacobian[world, companion, d]
            drive = wp.dot(column, force) + wp.dot(angular_column, moment)
            contact.convex.descent[world, d] = contact.convex.descent[world, d] + drive
            product, angular_product = block_product(
                contact, world, c, ratio, mode, lag, angular, column, angular_column
            )
            for m in range(k, length):
                j = contact.blocks.path[world, c, m]
                end = wp.min(tree.first_velocity[j + 1], d + 1)
                for e in range(tree.first_velocity[j], end):
                    entry = wp.dot(product, contact.blocks.half_jacobian[world, c, e])
                    if companion >= 0:
                        entry += wp.dot(angular_product, contact.blocks.half_jacobian[world, companion, e])
                    contact.convex.hessian[world, d, e] = contact.convex.hessian[world, d, e] + entry


@wp.func
def assemble_hessian(tree: Tree, contact: Contact, world: int, count: int, ratio: scalar):
    """Compute the descent direction H F − y, the lower part of Q with its row starts, and the modes of all blocks.

    Return 1 if a force is on an elliptic cone, where the cost is no parabola, else 0.
    """
    is_curved = wp.int32(0)
    for d in range(tree.velocities):
        contact.convex.descent[world, d] = -contact.convex.solution[world, d]
        contact.convex.row_start[world, d] = d
        contact.convex.hessian[world, d, d] = scalar(1.0)
    for c in range(count):
        mode = wp.int32(0)
        if contact.blocks.law[world, c] != COMPANION and contact.blocks.path_length[world, c] > 0:
            lag = contact.convex.lag[world, c]
            mode = block_mode(contact, world, c, ratio, lag, companion_entry(contact, world, c, contact.convex.lag))
            if contact.blocks.law[world, c] == ELLIPTIC and mode == ON_CONE:
                is_curved = 1
        contact.solver.mode[world, c] = mode
        if mode != 0:
            length = contact.blocks.path_length[world, c]
            root = tree.first_velocity[contact.blocks.path[world, c, length - 1]]
            for k in range(length):
                i = contact.blocks.path[world, c, k]
                for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                    # New entries of a row that started later are zero so far.
                    for e in range(root, contact.convex.row_start[world, d]):
                        contact.convex.hessian[world, d, e] = scalar(0.0)
                    contact.convex.row_start[world, d] = wp.min(contact.convex.row_start[world, d], root)
    for c in range(count):
        mode = contact.solver.mode[world, c]
        if mode != 0:
            if contact.blocks.law[world, c] == PYRAMID and contact.convex.companion[world, c] < 0:
                assemble_pyramid(tree, contact, world, c, mode)
            else:
                assemble_block(tree, contact, world, c, ratio, mode)
    return is_curved


@wp.func
def factor_hessian(tree: Tree, contact: Contact, world: int):
    """Factor Q = L Lᵀ in place, by rows from their starts; 1/L_ii is on the diagonal."""
    for i in range(tree.velocities):
        start = contact.convex.row_start[world, i]
        remainder = contact.convex.hessian[world, i, i]
        for j in range(start, i):
            entry = contact.convex.hessian[world, i, j]
            for k in range(wp.max(start, contact.convex.row_start[world, j]), j):
                entry -= contact.convex.hessian[world, i, k] * contact.convex.hessian[world, j, k]
            entry *= contact.convex.hessian[world, j, j]
            contact.convex.hessian[world, i, j] = entry
            remainder -= entry * entry
        contact.convex.hessian[world, i, i] = scalar(1.0) / wp.sqrt(remainder)


@wp.func
def solve_hessian(tree: Tree, contact: Contact, world: int, x: Array2d):
    """Replace x by Q⁻¹ x."""
    for i in range(tree.velocities):
        entry = x[world, i]
        for k in range(contact.convex.row_start[world, i], i):
            entry -= contact.convex.hessian[world, i, k] * x[world, k]
        x[world, i] = entry * contact.convex.hessian[world, i, i]
    for back in range(tree.velocities):
        i = tree.velocities - 1 - back
        entry = x[world, i] * contact.convex.hessian[world, i, i]
        x[world, i] = entry
        for k in range(contact.convex.row_start[world, i], i):
            x[world, k] = x[world, k] - contact.convex.hessian[world, i, k] * entry


@wp.func
def block_slope(contact: Contact, world: int, c: int, ratio: scalar, length: scalar):
    """Return F · (change of the lag) of a block after a step of a length, and the curvature of its cost."""
    law = contact.blocks.law[world, c]
    force_product = scalar(0.0)
    curvature = scalar(0.0)
    if law != COMPANION:
        change = contact.solver.vector[world, c]
        lag = contact.convex.lag[world, c] - length * change
        if law == PYRAMID and contact.convex.companion[world, c] < 0:
            friction = contact.blocks.friction[world, c]
            stiffness = contact.convex.edge_stiffness[world, c]
            bits = active_edges(friction, lag)
            force_product = wp.dot(stiffness_product(stiffness, friction, bits, lag), change)
            curvature = wp.dot(stiffness_product(stiffness, friction, bits, change), change)
        else:
            angular_change = companion_entry(contact, world, c, contact.solver.vector)
            angular = companion_entry(contact, world, c, contact.convex.lag) - length * angular_change
            mode = block_mode(contact, world, c, ratio, lag, angular)
            force, moment = block_force(contact, world, c, ratio, mode, lag, angular)
            product, angular_product = block_product(
                contact, world, c, ratio, mode, lag, angular, change, angular_change
            )
            force_product = wp.dot(force, change) + wp.dot(moment, angular_change)
            curvature = wp.dot(product, change) + wp.dot(angular_product, angular_change)
    return force_product, curvature


@wp.func
def line_search(tree: Tree, contact: Contact, world: int, count: int, ratio: scalar):
    """Return the step length along `descent` at which the cost is minimal, at most one."""
    square = scalar(0.0)
    offset_product = scalar(0.0)
    for d in range(tree.velocities):
        square += contact.convex.descent[world, d] * contact.convex.descent[world, d]
        offset_product += contact.convex.descent[world, d] * contact.convex.solution[world, d]
    low = scalar(0.0)
    high = scalar(1.0)
    length = scalar(1.0)
    steepest = scalar(0.0)
    is_searching = bool(True)
    tries = wp.int32(0)
    while is_searching:
        slope = offset_product + length * square
        curve = square
        for c in range(count):
            force_product, curvature = block_slope(contact, world, c, ratio, length)
            slope -= force_product
            curve += curvature
        steepest = wp.max(steepest, wp.abs(slope))
        if (
            (tries == 0 and slope <= scalar(0.0))
            or wp.abs(slope) <= SLOPE_TOLERANCE * steepest * length
            or tries == MAX_LINE_SEARCH
        ):
            is_searching = bool(False)
        else:
            if slope > scalar(0.0):
                high = length
            else:
                low = length
            next_length = length - slope / curve
            # If the parabola leads out of the interval that contains the minimum, its midpoint is next.
            if not (next_length > low and next_length < high):
                next_length = scalar(0.5) * (low + high)
            length = next_length
            tries += 1
    return length


@wp.func
def keeps_modes(contact: Contact, world: int, count: int, ratio: scalar):
    """Return True if all blocks are in the same mode after a full step."""
    is_unchanged = bool(True)
    for c in range(count):
        law = contact.blocks.law[world, c]
        lag = contact.convex.lag[world, c] - contact.solver.vector[world, c]
        mode = contact.solver.mode[world, c]
        if law == PYRAMID and contact.convex.companion[world, c] < 0:
            mode = active_edges(contact.blocks.friction[world, c], lag)
        elif law != COMPANION and contact.blocks.path_length[world, c] > 0:
            angular = companion_entry(contact, world, c, contact.convex.lag)
            angular = angular - companion_entry(contact, world, c, contact.solver.vector)
            mode = block_mode(contact, world, c, ratio, lag, angular)
        if mode != contact.solver.mode[world, c]:
            is_unchanged = bool(False)
    return is_unchanged


@wp.func
def minimize_cost(tree: Tree, contact: Contact, world: int, count: int, ratio: scalar):
    """Compute y, the lags and the factor of Q at the minimum; returns the remaining gradient relative to y.

    On entry `lag` holds the lags for y = 0.
    """
    for d in range(tree.velocities):
        contact.convex.solution[world, d] = scalar(0.0)
    residual = scalar(1.0)
    is_searching = bool(True)
    is_curved = wp.int32(0)
    step = wp.int32(0)
    while is_searching:
        is_curved = assemble_hessian(tree, contact, world, count, ratio)
        factor_hessian(tree, contact, world)
        largest = scalar(0.0)
        max_gradient = scalar(0.0)
        for d in range(tree.velocities):
            max_gradient = wp.max(max_gradient, wp.abs(contact.convex.descent[world, d]))
        solve_hessian(tree, contact, world, contact.convex.descent)
        for c in range(count):
            contact.solver.vector[world, c] = lag_change(tree, contact, world, c, contact.convex.descent)
        is_unchanged = keeps_modes(contact, world, count, ratio)
        length = scalar(1.0)
        if is_curved != 0 or not is_unchanged:
            length = line_search(tree, contact, world, count, ratio)
        max_change = scalar(0.0)
        for d in range(tree.velocities):
            change = length * contact.convex.descent[world, d]
            contact.convex.solution[world, d] = contact.convex.solution[world, d] + change
            max_change = wp.max(max_change, wp.abs(change))
            largest = wp.max(largest, wp.abs(contact.convex.solution[world, d]))
        for c in range(count):
            contact.convex.lag[world, c] = contact.convex.lag[world, c] - length * contact.solver.vector[world, c]
        step += 1
        if is_unchanged and is_curved == 0:
            residual = scalar(0.0)
            is_searching = bool(False)
        elif max_change <= STEP_TOLERANCE * largest or step == MAX_STEPS:
            residual = max_gradient / wp.max(largest, max_gradient)
            is_searching = bool(False)
        elif is_unchanged and length == scalar(1.0) and max_change <= QUADRATIC_STEP * largest:
            # Newton's method squares an error of this size to one below rounding.
            residual = max_change * max_change / (largest * largest)
            is_searching = bool(False)
    if is_curved != 0:
        is_curved = assemble_hessian(tree, contact, world, count, ratio)
        factor_hessian(tree, contact, world)
    return residual


@wp.func
def write_solution(tree: Tree, work: Workspace, contact: Contact, world: int):
    """Write D½ y to `rhs`, from which `solve_inertia_outward` computes M⁻¹ Jᵀ F."""
    for d in range(tree.velocities):
        work.rhs[world, d] = contact.convex.solution[world, d] / wp.sqrt(work.inverse_pivot[world, d])


@wp.func
def solution_backward(tree: Tree, work: Workspace, contact: Contact, world: int):
    """Turn `rhs` from W f into D½ Q⁻¹ D⁻½ W f, from which `solve_inertia_outward` computes (M + Jᵀ K J)⁻¹ f."""
    for d in range(tree.velocities):
        contact.convex.descent[world, d] = wp.sqrt(work.inverse_pivot[world, d]) * work.rhs[world, d]
    solve_hessian(tree, contact, world, contact.convex.descent)
    for d in range(tree.velocities):
        work.rhs[world, d] = contact.convex.descent[world, d] / wp.sqrt(work.inverse_pivot[world, d])
