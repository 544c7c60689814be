"""Accelerations that minimize the cost of convex contact, by Newton's method, and the response to forces.

With M⁻¹ = Wᵀ D⁻¹ W of `delassus`, let a = a₀ + Wᵀ D⁻½ y and H = D⁻½ W Jᵀ, so that a contact lags by s = s₀ − Hᵀ y and
the cost is

    ½ |y|² + Σ ½ D max(0, e · s)²,    its gradient y − H F,    its Hessian Q = 1 + H K Hᵀ.

It is a parabola while the same edges push: a full Newton step after which they still do ends at the minimum, and any
other is shortened by a line search. Q is positive definite, and its factor is block diagonal over independent trees.
The adjoint of an additional force f is (M + Jᵀ K J)⁻¹ f, which is the same solve.
"""

import warp as wp

from ..precision import Array2d, scalar, vec3
from ..structs import Contact, Tree, Workspace
from .convex_contact import active_edges, stiffness_matrix, stiffness_product
from .settings import SOLVER

MAX_STEPS = wp.constant(SOLVER.max_convex_steps)
MAX_LINE_SEARCH = wp.constant(SOLVER.max_line_search)
SLOPE_TOLERANCE = wp.constant(scalar(SOLVER.slope_tolerance))
ROUNDING = wp.constant(scalar(SOLVER.step_tolerance))


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
def assemble_hessian(tree: Tree, contact: Contact, world: int, count: int):
    """Compute the descent direction H F − y, the lower part of Q with its row starts, and the edges that push."""
    for d in range(tree.velocities):
        contact.convex.descent[world, d] = -contact.convex.solution[world, d]
        contact.convex.row_start[world, d] = d
        contact.convex.hessian[world, d, d] = scalar(1.0)
    for c in range(count):
        bits = active_edges(contact.blocks.friction[world, c], contact.convex.lag[world, c])
        contact.solver.mode[world, c] = bits
        if bits != 0:
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
        bits = contact.solver.mode[world, c]
        if bits != 0:
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
def line_search(tree: Tree, contact: Contact, world: int, count: int):
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
            friction = contact.blocks.friction[world, c]
            change = contact.solver.vector[world, c]
            lag = contact.convex.lag[world, c] - length * change
            bits = active_edges(friction, lag)
            stiffness = contact.convex.edge_stiffness[world, c]
            slope -= wp.dot(stiffness_product(stiffness, friction, bits, lag), change)
            curve += wp.dot(stiffness_product(stiffness, friction, bits, change), change)
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
def minimize_cost(tree: Tree, contact: Contact, world: int, count: int):
    """Compute y, the lags and the factor of Q at the minimum; returns the remaining gradient relative to y.

    On entry `lag` holds the lags for y = 0.
    """
    for d in range(tree.velocities):
        contact.convex.solution[world, d] = scalar(0.0)
    residual = scalar(1.0)
    is_searching = bool(True)
    step = wp.int32(0)
    while is_searching:
        assemble_hessian(tree, contact, world, count)
        factor_hessian(tree, contact, world)
        largest = scalar(0.0)
        max_gradient = scalar(0.0)
        for d in range(tree.velocities):
            max_gradient = wp.max(max_gradient, wp.abs(contact.convex.descent[world, d]))
        solve_hessian(tree, contact, world, contact.convex.descent)
        for c in range(count):
            contact.solver.vector[world, c] = lag_change(tree, contact, world, c, contact.convex.descent)
        is_unchanged = bool(True)
        for c in range(count):
            lag = contact.convex.lag[world, c] - contact.solver.vector[world, c]
            if active_edges(contact.blocks.friction[world, c], lag) != contact.solver.mode[world, c]:
                is_unchanged = bool(False)
        length = scalar(1.0)
        if not is_unchanged:
            length = line_search(tree, contact, world, count)
        max_change = scalar(0.0)
        for d in range(tree.velocities):
            change = length * contact.convex.descent[world, d]
            contact.convex.solution[world, d] = contact.convex.solution[world, d] + change
            max_change = wp.max(max_change, wp.abs(change))
            largest = wp.max(largest, wp.abs(contact.convex.solution[world, d]))
        for c in range(count):
            contact.convex.lag[world, c] = contact.convex.lag[world, c] - length * contact.solver.vector[world, c]
        step += 1
        if is_unchanged:
            residual = scalar(0.0)
            is_searching = bool(False)
        elif max_change <= ROUNDING * largest or step == MAX_STEPS:
            residual = max_gradient / wp.max(largest, max_gradient)
            is_searching = bool(False)
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
