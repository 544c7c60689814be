"""Contact forces of `laws.Penalty` and `laws.Soft`, and their rollout by semi-implicit Euler.

For the contact velocity u = (u_n, u_t) and a separation g the force is F = (N, −μ N u_t / s), s = √(|u_t|² + ε²), with
N = max(0, −k g − c u_n) for g < 0, or N = k δ log(1 + exp(−g / δ)). For weights w, the derivatives of w · F are

    N̄ = w_n − μ w_t · u_t / s,    ū_t = −μ N (w_t − (w_t · u_t) u_t / s²) / s,    μ̄ = −N w_t · u_t / s,
    ḡ = −k N̄, ū_n = −c N̄ where there is a force, or ḡ = −k N̄ / (1 + exp(g / δ)).
"""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import first_candidate, next_candidate
from physvision.physics.articulated.kernels.collision.contact_power_adjoint import contact_power_backward
from physvision.physics.articulated.kernels.collision.contact_primitives import WeightedForces
from physvision.physics.articulated.kernels.collision.joint_limits import limit_separation, write_limit_jacobian
from physvision.physics.articulated.kernels.collision.narrow_phase import (
    copy_link_rotations,
    pair_primitive,
    update_poses_from_links,
    write_contact_jacobian,
)
from physvision.physics.articulated.kernels.contact.delassus import add_jacobian_transpose, contact_velocity
from physvision.physics.articulated.kernels.dynamics.forward import solve_forward_dynamics, solve_inertia
from physvision.physics.articulated.kernels.dynamics.inverse import dynamics_residual_backward, propagate_accelerations
from physvision.physics.articulated.kernels.dynamics.joints import integrate_positions
from physvision.physics.articulated.kernels.dynamics.kinematics import forward_kinematics
from physvision.physics.articulated.kernels.precision import Array3d, scalar, vec3
from physvision.physics.articulated.kernels.rollouts.template import rollout_kernels
from physvision.physics.articulated.kernels.spatial.vectors import transpose_product, zero3
from physvision.physics.articulated.kernels.structs import Contact, System, Tree, Workspace

from .euler import euler_backward

MAX_FORCE_DISTANCES = wp.constant(scalar(40.0))  # distances at which a soft force is less than rounding


@wp.struct
class Law:
    """Parameters of `Penalty` (distance 0) or `Soft`, and the length of a step."""

    dt: scalar
    stiffness: scalar
    damping: scalar
    distance: scalar
    slip_speed: scalar


@wp.func
def pressure(law: Law, separation: scalar, speed: scalar):
    """Return the normal force N."""
    force = scalar(0.0)
    if law.distance > scalar(0.0):
        depth = -separation / law.distance
        # log(1 + exp x) = max(x, 0) + log(1 + exp −|x|)
        spread = wp.max(depth, scalar(0.0)) + wp.log(scalar(1.0) + wp.exp(-wp.abs(depth)))
        force = law.stiffness * law.distance * spread
    elif separation < scalar(0.0):
        force = wp.max(scalar(0.0), -law.stiffness * separation - law.damping * speed)
    return force


@wp.func
def contact_force(law: Law, separation: scalar, velocity: vec3, friction: scalar):
    """Return F along the normal and the tangents."""
    force = pressure(law, separation, velocity[0])
    friction_factor = (
        -friction
        * force
        / wp.sqrt(velocity[1] * velocity[1] + velocity[2] * velocity[2] + law.slip_speed * law.slip_speed)
    )
    return vec3(force, friction_factor * velocity[1], friction_factor * velocity[2])


@wp.func
def force_backward(law: Law, separation: scalar, velocity: vec3, friction: scalar, force: vec3, weight: vec3):
    """Return ū, ḡ and μ̄ of w · F."""
    unit = scalar(1.0)
    size = wp.sqrt(velocity[1] * velocity[1] + velocity[2] * velocity[2] + law.slip_speed * law.slip_speed)
    sliding_power = weight[1] * velocity[1] + weight[2] * velocity[2]
    force_bar = weight[0] - friction * sliding_power / size
    friction_factor = -friction * force[0] / size
    sliding_share = sliding_power / (size * size)
    separation_bar = scalar(0.0)
    speed_bar = scalar(0.0)
    if law.distance > scalar(0.0):
        separation_bar = -law.stiffness * force_bar / (unit + wp.exp(separation / law.distance))
    elif force[0] > scalar(0.0):
        separation_bar = -law.stiffness * force_bar
        speed_bar = -law.damping * force_bar
    velocity_bar = vec3(
        speed_bar,
        friction_factor * (weight[1] - sliding_share * velocity[1]),
        friction_factor * (weight[2] - sliding_share * velocity[2]),
    )
    return velocity_bar, separation_bar, -force[0] * sliding_power / size


@wp.func
def detect_contact(tree: Tree, work: Workspace, contact: Contact, s: System, law: Law, world: int, row: int, pair: int):
    """Write separation, velocity, friction and Jacobian of a candidate to slot 0.

    Returns True if it is near enough for a force.
    """
    max_separation = MAX_FORCE_DISTANCES * law.distance
    contact.blocks.friction[world, 0] = scalar(0.0)
    separation = scalar(0.0)
    if pair < s.model.pairs.count:
        primitive = pair_primitive(contact, s, world, pair)
        separation = primitive.separation
        if separation < max_separation:
            contact.blocks.friction[world, 0] = s.model.pairs.friction[world, pair]
            write_contact_jacobian(tree, work, contact, s, world, 0, pair, primitive)
    else:
        separation = limit_separation(contact, s, world, pair)
        if separation < max_separation:
            write_limit_jacobian(tree, contact, s, world, 0, pair)
    contact.detection.separation[world, pair] = separation
    if separation < max_separation:
        contact.solver.velocity[world, 0] = contact_velocity(tree, contact, world, 0, work.v, row)
    return separation < max_separation


@wp.func
def add_contact_forces(
    tree: Tree, work: Workspace, contact: Contact, s: System, law: Law, world: int, row: int, h: scalar
):
    """Compute velocity_change[row] = Σ Jᵀ F, the largest penetration, and the impulses of a step of length h."""
    for d in range(tree.velocities):
        contact.solver.velocity_change[world, row, d] = scalar(0.0)
    for pair in range(s.model.pairs.count):
        contact.status.pair_impulse[world, pair] = zero3()
    threshold = MAX_FORCE_DISTANCES * law.distance
    pair = first_candidate(contact, s, world, threshold)
    while pair < s.model.candidates:
        if detect_contact(tree, work, contact, s, law, world, row, pair):
            force = contact_force(
                law,
                contact.detection.separation[world, pair],
                contact.solver.velocity[world, 0],
                contact.blocks.friction[world, 0],
            )
            add_jacobian_transpose(tree, contact, world, 0, force, contact.solver.velocity_change, row)
            contact.status.penetration[world] = wp.max(
                contact.status.penetration[world], -contact.detection.separation[world, pair]
            )
            if pair < s.model.pairs.count:
                contact.status.pair_impulse[world, pair] = h * transpose_product(contact.blocks.frame[world, 0], force)
        pair = next_candidate(contact, s, world, pair + 1, threshold)


@wp.func
def add_contact_forces_backward(
    tree: Tree, work: Workspace, contact: Contact, s: System, law: Law, world: int, row: int
):
    """Compute the adjoint of −λᵀ Σ Jᵀ F for λ = multiplier[row]: add to q_bar[row], v_bar[row] and the gradients."""
    for d in range(tree.velocities):
        work.step_velocity[world, 0, d] = work.v[world, row, d]
        work.step_velocity[world, 1, d] = work.multiplier[world, row, d]
    threshold = MAX_FORCE_DISTANCES * law.distance
    pair = first_candidate(contact, s, world, threshold)
    while pair < s.model.candidates:
        if detect_contact(tree, work, contact, s, law, world, row, pair):
            separation = contact.detection.separation[world, pair]
            velocity = contact.solver.velocity[world, 0]
            friction = contact.blocks.friction[world, 0]
            force = contact_force(law, separation, velocity, friction)
            weight = -contact_velocity(tree, contact, world, 0, work.multiplier, row)
            velocity_bar, separation_bar, friction_bar = force_backward(
                law, separation, velocity, friction, force, weight
            )
            add_jacobian_transpose(tree, contact, world, 0, velocity_bar, work.v_bar, row)
            forces = wp.matrix_from_rows(velocity_bar, -force, zero3())
            weights = WeightedForces(0, 1, 1, forces, scalar(0.0), zero3(), zero3())
            contact_power_backward(tree, work, contact, s, world, row, pair, weights, separation_bar)
            if s.contact_gradients.is_requested != 0 and pair < s.model.pairs.count:
                s.contact_gradients.pairs.friction[world, pair] = (
                    s.contact_gradients.pairs.friction[world, pair] + friction_bar
                )
        pair = next_candidate(contact, s, world, pair + 1, threshold)


@wp.func(inline=True)
def accelerate(tree: Tree, work: Workspace, contact: Contact, s: System, law: Law, world: int, step: int, h: scalar):
    """Compute work.a[0] = q̈ with contact forces at (work.q[0], work.v[0]), and the velocity after the step."""
    forward_kinematics(tree, work, world, 0)
    update_poses_from_links(tree, work, contact, s, world, 0)
    copy_link_rotations(tree, work, contact, world)
    solve_forward_dynamics(tree, work, s.forces, world, step, 0, h)
    add_contact_forces(tree, work, contact, s, law, world, 0, h)
    solve_inertia(tree, work, world, contact.solver.velocity_change, 0, contact.solver.velocity_change, 0)
    for d in range(tree.velocities):
        work.a[world, 0, d] = work.a[world, 0, d] + contact.solver.velocity_change[world, 0, d]
        work.v[world, 1, d] = work.v[world, 0, d] + h * work.a[world, 0, d]


@wp.func(inline=True)
def take_step(law: Law, tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, is_last: int):
    """Advance row 0 by a step; returns the row of the state after it."""
    accelerate(tree, work, contact, s, law, world, step, law.dt)
    integrate_positions(tree, world, work.q, 0, 1, work.v, 1, law.dt)
    return wp.int32(1)


@wp.func(inline=True)
def step_backward(
    law: Law,
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    steps: int,
    truncate: int,
    q: Array3d,
    trajectory_q_bar: Array3d,
    trajectory_v_bar: Array3d,
):
    """Add the contact forces to the residual of inverse dynamics as −Σ Jᵀ F."""
    h = law.dt
    accelerate(tree, work, contact, s, law, world, step, h)
    euler_backward(tree, work, world, step, steps, truncate, h, q, trajectory_q_bar, trajectory_v_bar)
    solve_inertia(tree, work, world, work.a_bar, 0, work.multiplier, 0)
    propagate_accelerations(tree, work, world, 0)
    add_contact_forces_backward(tree, work, contact, s, law, world, 0)
    dynamics_residual_backward(tree, work, s.forces, s.gradients, world, step, 0, 0, h)


rollout, rollout_backward = rollout_kernels(Law, take_step, step_backward)
