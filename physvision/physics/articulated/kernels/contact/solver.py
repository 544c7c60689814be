"""Contact solver: the impulses of all blocks as one nonlinear complementarity problem, by an active-set Newton method.

With u = A λ + b, the velocity of the contacts after the impulse with its bias, each contact obeys

    0 ≤ λ_n ⟂ u_n ≥ 0,   λ_t = −μ λ_n u_t / |u_t| if it slides,   |λ_t| ≤ μ λ_n if u_t = 0.

A contact is a block of three: its impulse is a vector (normal, two tangents), the Delassus matrix A has 3×3 blocks.
Blocks of other laws (bounded rows, rotational friction) are in `noncontact_constraints`. Newton's method solves the
equations F(λ, u) = 0 of the modes: λ = 0 (open), u = 0 (stick), u_n = 0 and λ_t = μ λ_n y/|y| with y = A_nn λ_t − u_t
(slide). All approaching contacts are tried in sticking mode first, and modes are verified after each step: a body that
rests on its feet needs one step. Newton's matrix G = F_λ + F_u A has a slight compliance on its diagonal, since several
contacts of one body leave impulses undetermined; velocities do not depend on it. If Newton's method fails, projected
Gauss–Seidel sweeps find the modes to start from; if they fail too (strong coupling of normal and tangents makes sweeps
diverge), a homotopy follows the solution from high compliance to low, and then from zero friction to full friction.

Adjoint at the solution: F(λ, A λ + b) = 0 gives, for an incoming λ̄, one solve Gᵀ y = λ̄, and then ū = −F_uᵀ y, μ̄ =
−yᵀ F_μ.
"""

import warp as wp

from ..precision import pyramidal, scalar
from ..spatial.vectors import transpose_product, zero3
from ..structs import CONTACT, OPEN, SLIDE, STICK, Contact
from .active_set import (
    MIN_DIVISOR,
    MODE_TOLERANCE,
    contact_mode,
    friction_direction,
    gauss_seidel_sweep,
    initialize_modes,
    max_abs,
    update_velocities,
    verify_modes,
)
from .block_lu import factor_blocks, solve_factored_transposed
from .friction_pyramid import max_diagonal, pyramid_backward, sliding_mode, stop_still_tangents
from .newton import (
    COMPLIANCE,
    HIGH_COMPLIANCE,
    MAX_COMPLIANCE,
    assemble_matrix,
    refine,
    solve_all_sticking,
    velocity_derivative,
)
from .noncontact_constraints import clear_noncontact_adjoint, noncontact_backward, rigid_share
from .settings import SOLVER

MAX_RESIDUAL = wp.constant(scalar(SOLVER.max_residual))
FIRST_HOMOTOPY_TRIAL = wp.constant(SOLVER.first_homotopy_trial)
FIRST_FRICTION_TRIAL = wp.constant(SOLVER.first_friction_trial)
SWEEPS = wp.constant(SOLVER.sweeps)
MAX_SWEEPS = wp.constant(SOLVER.max_sweeps)
FRICTION_TRIALS = wp.constant(SOLVER.friction_trials)
MAX_ORDERS = wp.constant(SOLVER.max_orders)


@wp.func
def max_sweeps(trial: int):
    """Return the largest number of sweeps at the start of a trial."""
    sweeps = wp.int32(0)
    if trial == 1 or trial == FIRST_FRICTION_TRIAL:
        sweeps = SWEEPS
    if trial == 2:
        sweeps = 10 * SWEEPS
    if trial == 4:
        sweeps = MAX_SWEEPS
    return sweeps


@wp.func
def reverse_members(contact: Contact, world: int, start: int, end: int):
    """Reverse the order of the members from `start` to `end`."""
    for k in range((end - start) / 2):
        member = contact.solver.island_member[world, start + k]
        contact.solver.island_member[world, start + k] = contact.solver.island_member[world, end - 1 - k]
        contact.solver.island_member[world, end - 1 - k] = member


@wp.func(inline=True)
def solve_island_once(contact: Contact, world: int, start: int, end: int):
    """Solve for the impulses of an island in its present order; returns the residual relative to its largest velocity.

    First all contacts are held still. If that is no solution, trials follow: Newton's method from initial modes, after
    a few sweeps, after more sweeps with high compliance, after many sweeps, each followed by one without extra
    compliance that continues from there; then homotopies from the highest compliance, increasingly slow, and last one
    in friction.
    """
    size = scalar(MIN_DIVISOR)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        size = wp.max(size, rigid_share(contact, world, c) * max_abs(contact.blocks.free_velocity[world, c]))
    residual = solve_all_sticking(contact, world, start, end, size)
    is_friction_homotopy = wp.int32(0)
    tolerance = scalar(1.0) * MODE_TOLERANCE  # makes a Warp variable of a constant
    trial = wp.int32(0)
    while trial < FIRST_FRICTION_TRIAL + FRICTION_TRIALS and (is_friction_homotopy != 0 or not (residual <= tolerance)):
        friction_scale = scalar(1.0)
        if trial >= FIRST_FRICTION_TRIAL:
            is_friction_homotopy = 1
            friction_scale = scalar(trial - FIRST_FRICTION_TRIAL) / scalar(FRICTION_TRIALS - 1)
        if trial <= 2 or (trial >= FIRST_HOMOTOPY_TRIAL and trial <= FIRST_FRICTION_TRIAL):
            initialize_modes(contact, world, start, end, friction_scale)
        initial_residual = scalar(1.0e29)
        if trial >= 1 and trial <= FIRST_FRICTION_TRIAL:
            change = scalar(1.0e29)
            for _sweep in range(max_sweeps(trial)):
                if change > MODE_TOLERANCE * size:
                    change = gauss_seidel_sweep(contact, world, start, end, friction_scale)
            update_velocities(contact, world, start, end)
            initial_residual = verify_modes(contact, world, start, end, friction_scale, MODE_TOLERANCE * size) / size
        compliance = scalar(COMPLIANCE)
        if trial == 2 or trial == 4:
            compliance = scalar(HIGH_COMPLIANCE)
        slowness = wp.int32(1)
        if trial >= FIRST_HOMOTOPY_TRIAL and trial < FIRST_FRICTION_TRIAL:
            compliance = scalar(MAX_COMPLIANCE)
            slowness = 1 << (trial - FIRST_HOMOTOPY_TRIAL)
        residual = refine(contact, world, start, end, friction_scale, size, compliance, slowness, initial_residual)
        trial += 1
        if trial >= FIRST_FRICTION_TRIAL:
            tolerance = scalar(1.0) * MAX_RESIDUAL
    return residual


@wp.func(inline=True)
def solve_island(contact: Contact, world: int, start: int, end: int):
    """Solve for the impulses of an island, and retry with other orders of its blocks if that fails.

    The distribution of load among redundant contacts of one body is undetermined; from one order Newton's steps may
    cycle among solutions that differ only in that, and from another order end at one.
    """
    residual = scalar(1.0e30)
    order = wp.int32(0)
    while order < MAX_ORDERS and not (residual <= MAX_RESIDUAL):
        if order > 0:
            reverse_members(contact, world, start, wp.max(start, end + 1 - order))
        residual = solve_island_once(contact, world, start, end)
        order += 1
    return residual


@wp.func(inline=True)
def solve_contacts(contact: Contact, world: int, count: int):
    """Solve for the impulses of all blocks, island by island; returns the largest residual."""
    worst = scalar(0.0)
    start = wp.int32(0)
    while start < count:
        end = contact.solver.island_end[world, start]
        residual = solve_island(contact, world, start, end)
        # NaN counts as larger.
        if not (residual <= worst):
            worst = residual
        start = end
    return worst


@wp.func(inline=True)
def island_backward(contact: Contact, world: int, start: int, end: int):
    """Propagate the adjoint of an island from impulse_bar to velocity_bar, which is also that of b, and to friction.

    A contact on the verge of sliding that stands still has one-sided derivatives; that of sticking is taken, since
    several such contacts of one body leave their impulses undetermined. For the same reason a contact without impulse
    that does not separate counts as closed: of flat sides any three corners may bear the load, and the derivative is
    that of the motion in which all of them go on touching.
    """
    size = scalar(MIN_DIVISOR)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        size = wp.max(size, rigid_share(contact, world, c) * max_abs(contact.blocks.free_velocity[world, c]))
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        velocity = contact.solver.velocity[world, c]
        if contact.blocks.law[world, c] == CONTACT and contact.solver.mode[world, c] == OPEN:
            if wp.abs(velocity[0]) < MODE_TOLERANCE * size:
                contact.solver.mode[world, c] = contact_mode(contact.blocks.friction[world, c])
                if wp.max(wp.abs(velocity[1]), wp.abs(velocity[2])) >= MODE_TOLERANCE * size:
                    contact.solver.mode[world, c] = SLIDE
                    if wp.static(pyramidal):
                        contact.solver.mode[world, c] = sliding_mode(-velocity[1], -velocity[2])
                contact.solver.factored[world, start] = -1
        if wp.static(pyramidal):
            if contact.blocks.law[world, c] == CONTACT and contact.blocks.friction[world, c] > scalar(0.0):
                if contact.solver.mode[world, c] != OPEN and stop_still_tangents(
                    contact, world, c, MODE_TOLERANCE * size
                ):
                    contact.solver.factored[world, start] = -1
        elif contact.blocks.friction[world, c] > scalar(0.0) and contact.solver.mode[world, c] == SLIDE:
            if wp.max(wp.abs(velocity[1]), wp.abs(velocity[2])) < MODE_TOLERANCE * size:
                contact.solver.mode[world, c] = STICK
    active_count = contact.solver.factored[world, start]
    if active_count < 0:
        active_count = assemble_matrix(contact, world, start, end, scalar(1.0), scalar(COMPLIANCE))
        factor_blocks(contact, world, start, active_count)
    for row in range(start, start + active_count):
        contact.solver.vector[world, row] = contact.adjoint.impulse_bar[world, contact.solver.active[world, row]]
    solve_factored_transposed(contact, world, start, active_count)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        contact.adjoint.velocity_bar[world, c] = zero3()
        contact.adjoint.friction_bar[world, c] = scalar(0.0)
        clear_noncontact_adjoint(contact, world, c)
    for row in range(start, start + active_count):
        c = contact.solver.active[world, row]
        y = contact.solver.vector[world, row]
        if contact.blocks.law[world, c] != CONTACT:
            noncontact_backward(contact, world, c, y)
            continue
        contact.adjoint.velocity_bar[world, c] = -transpose_product(
            velocity_derivative(contact, world, c, scalar(1.0)), y
        )
        if wp.static(pyramidal):
            weight = max_diagonal(contact.solver.delassus[world, c, c])
            contact.adjoint.friction_bar[world, c] = pyramid_backward(
                contact.solver.mode[world, c], weight, contact.solver.impulse[world, c], y
            )
        elif contact.solver.mode[world, c] == SLIDE:
            along = friction_direction(contact, world, c)
            normal = contact.solver.delassus[world, c, c][0, 0] * contact.solver.impulse[world, c][0]
            contact.adjoint.friction_bar[world, c] = normal * (along[1] * y[1] + along[2] * y[2])


@wp.func(inline=True)
def solve_contacts_backward(contact: Contact, world: int, count: int):
    """Propagate the adjoints of all islands from impulse_bar to velocity_bar."""
    start = wp.int32(0)
    while start < count:
        end = contact.solver.island_end[world, start]
        island_backward(contact, world, start, end)
        start = end
