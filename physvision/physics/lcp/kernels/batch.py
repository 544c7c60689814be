"""Kernels of batches of contact problems and of their adjoints: one thread a problem."""

import warp as wp

from .active_set import complementarity_residual, update_row_velocities
from .contact_solver import close_contact, solve_contacts, solve_contacts_adjoint, velocity_tolerance
from .precision import Array1d, Array2d, IntArray1d, IntArray2d, scalar
from .problem import Problem, Settings, carve_problem
from .rows import apply_impulse, row_velocity
from .sparse_system import delassus_diagonal, number_unknowns

OPTIONS = {"max_unroll": 6, "cpu_compiler_flags": "-march=native"}


@wp.func
def fill_problem(p: Problem, row_bodies: IntArray2d, inverse_mass: Array1d, friction: Array1d, contacts: int):
    """Set bodies, masses and friction of a problem; nothing sleeps, and no contact slides from the start."""
    p.work_budget = 1 << 29
    p.restitution_threshold = scalar(0.0)
    for k in range(3 * (p.bodies + 1)):
        p.inverse_mass[k] = inverse_mass[k]
    for body in range(p.bodies + 1):
        p.awake[body] = 1
    for r in range(p.joint_rows + 2 * contacts):
        p.row_a[r] = row_bodies[r, 0]
        p.row_b[r] = row_bodies[r, 1]
    for i in range(contacts):
        p.friction[i] = friction[i]
        p.sliding[i] = 0


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def solve_problems(
    first: int,
    settings: Settings,
    bodies: int,
    joint_rows: int,
    contacts: int,
    row_bodies: IntArray2d,
    inverse_mass: Array2d,
    rows: Array2d,
    offset: Array2d,
    friction: Array2d,
    velocity: Array2d,
    multipliers: Array2d,
    ratio: Array2d,
    mode: IntArray2d,
    residual: Array1d,
    iterations: IntArray1d,
    real: Array2d,
    integer: IntArray2d,
):
    """Replace the free velocities by the solution, and set multipliers, friction ratios and contact modes."""
    world = first + wp.tid()
    p = carve_problem(settings, bodies, joint_rows, joint_rows, contacts, contacts, real[world], integer[world])
    fill_problem(p, row_bodies, inverse_mass[world], friction[world], contacts)
    size = joint_rows + 2 * contacts
    scale = scalar(1.0e-300)
    for r in range(size):
        p.offset[r] = offset[world, r] + row_velocity(p, rows[world], r, velocity[world])
        scale = wp.max(scale, wp.abs(p.offset[r]))
    min_velocity = velocity_tolerance(p, size, scalar(1.0))
    for i in range(contacts):
        r = joint_rows + 2 * i
        close_contact(p, i, p.offset[r], p.offset[r + 1], min_velocity, mode[world], ratio[world])
    if size > 0:
        solve_contacts(
            p, contacts, rows[world], rows[world], mode[world], ratio[world], multipliers[world], scalar(1.0)
        )
        number_unknowns(p, contacts)
        delassus_diagonal(p, contacts)
        p.softness = scalar(0.0)
        p.relaxation = scalar(0.0)
        update_row_velocities(p, contacts, multipliers[world])
        residual[world] = complementarity_residual(p, contacts, multipliers[world]) / scale
    for r in range(size):
        apply_impulse(p, rows[world], r, multipliers[world, r], velocity[world])
    iterations[world] = p.iterations


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def solve_adjoints(
    first: int,
    settings: Settings,
    bodies: int,
    joint_rows: int,
    contacts: int,
    row_bodies: IntArray2d,
    inverse_mass: Array2d,
    rows: Array2d,
    friction: Array2d,
    velocity_bar: Array2d,
    ratio: Array2d,
    mode: IntArray2d,
    kappa: Array2d,
    real: Array2d,
    integer: IntArray2d,
):
    """Set the adjoint multipliers κ of all rows from the cotangent of the velocities."""
    world = first + wp.tid()
    p = carve_problem(settings, bodies, joint_rows, joint_rows, contacts, contacts, real[world], integer[world])
    fill_problem(p, row_bodies, inverse_mass[world], friction[world], contacts)
    if joint_rows + contacts > 0:
        solve_contacts_adjoint(p, contacts, rows[world], rows[world], mode[world], ratio[world], velocity_bar[world])
    for r in range(joint_rows + 2 * contacts):
        kappa[world, r] = p.row_adjoint[r]
