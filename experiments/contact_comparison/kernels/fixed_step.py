"""Contact that is solved once in each step of fixed length, by semi-implicit Euler, and its adjoint.

Contacts at the start of a step take part: with the step length h, M (a − a₀) = Jᵀ λ / h and the velocities

    u = J (v + h a) + e J_n v               of impacts, with the normal part n (Newton's restitution),
    u = J (v + h a) + κ separation / h      of other contacts, so that a fraction κ of a penetration is recovered,

the impulses λ follow from u by a law that the caller solves, and then v′ = v + h a and q′ = q ⊕ h v′. An impact within
a step takes effect at the next point of the time grid; neither the motion nor the derivative sees when it happened.

The adjoint is that of a flight in `event_adjoint`, with the restitution of an impact in the same u.
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
from physvision.physics.articulated.kernels.contact.delassus import (
    add_half_jacobian,
    add_jacobian_transpose,
    apply_impulses,
    build_delassus,
    contact_velocity,
    delassus_response,
)
from physvision.physics.articulated.kernels.contact.events import PENETRATION_RECOVERY
from physvision.physics.articulated.kernels.contact.solver import MAX_RESIDUAL
from physvision.physics.articulated.kernels.contact.time_of_impact import CONTACT_TOLERANCE
from physvision.physics.articulated.kernels.dynamics.forward import (
    solve_forward_dynamics,
    solve_inertia_inward,
    solve_inertia_outward,
)
from physvision.physics.articulated.kernels.dynamics.inverse import dynamics_residual_backward, propagate_accelerations
from physvision.physics.articulated.kernels.dynamics.joints import integrate_positions
from physvision.physics.articulated.kernels.dynamics.kinematics import forward_kinematics
from physvision.physics.articulated.kernels.precision import Array3d, scalar, vec3
from physvision.physics.articulated.kernels.rollouts.template import rollout_kernels
from physvision.physics.articulated.kernels.spatial.vectors import transpose_product, zero3
from physvision.physics.articulated.kernels.structs import CONTACT, Contact, System, Tree, Workspace

from .euler import euler_backward


@wp.func(inline=True)
def detect_contacts(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, h: scalar):
    """Add the candidates that touch, or that slow contacts can reach in a step.

    Returns their number, beyond the limit or not.
    """
    threshold = wp.max(CONTACT_TOLERANCE, s.model.restitution_threshold * h)
    count = wp.int32(0)
    pair = first_candidate(contact, s, world, threshold)
    while pair < s.model.candidates:
        separation = scalar(0.0)
        if pair < s.model.pairs.count:
            primitive = pair_primitive(contact, s, world, pair)
            separation = primitive.separation
            if separation <= threshold and count < s.model.max_blocks:
                contact.blocks.friction[world, count] = s.model.pairs.friction[world, pair]
                contact.blocks.restitution[world, count] = s.model.pairs.restitution[world, pair]
                write_contact_jacobian(tree, work, contact, s, world, count, pair, primitive)
        else:
            separation = limit_separation(contact, s, world, pair)
            if separation <= threshold and count < s.model.max_blocks:
                contact.blocks.friction[world, count] = scalar(0.0)
                contact.blocks.restitution[world, count] = scalar(0.0)
                write_limit_jacobian(tree, contact, s, world, count, pair)
        contact.detection.separation[world, pair] = separation
        contact.status.penetration[world] = wp.max(contact.status.penetration[world], -separation)
        if separation <= threshold and count >= s.model.max_blocks:
            count = s.model.max_blocks + 1
        elif separation <= threshold:
            velocity = contact_velocity(tree, contact, world, count, work.v, 0)
            if separation <= CONTACT_TOLERANCE or wp.abs(velocity[0]) <= s.model.restitution_threshold:
                contact.blocks.pair[world, count] = pair
                contact.blocks.law[world, count] = CONTACT
                contact.blocks.initial_velocity[world, count] = velocity
                count += 1
        pair = next_candidate(contact, s, world, pair + 1, threshold)
    return count


@wp.func
def is_impact(contact: Contact, s: System, world: int, c: int):
    """Return True if contact c has restitution, which there is only above a speed."""
    return contact.blocks.initial_velocity[world, c][0] < -s.model.restitution_threshold


@wp.func
def update_free_velocities(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, h: scalar, count: int):
    """Compute the velocities u of the contacts without impulses."""
    for c in range(count):
        initial_velocity = contact.blocks.initial_velocity[world, c]
        bias = PENETRATION_RECOVERY * contact.detection.separation[world, contact.blocks.pair[world, c]] / h
        if is_impact(contact, s, world, c):
            bias = contact.blocks.restitution[world, c] * initial_velocity[0]
        velocity = initial_velocity + h * contact_velocity(tree, contact, world, c, work.a, 0)
        contact.blocks.free_velocity[world, c] = vec3(velocity[0] + bias, velocity[1], velocity[2])


@wp.func
def record_impulses(contact: Contact, s: System, world: int, count: int):
    """Store the impulse of the step on each pair's first shape."""
    for pair in range(s.model.pairs.count):
        contact.status.pair_impulse[world, pair] = zero3()
    for c in range(count):
        if contact.blocks.pair[world, c] < s.model.pairs.count:
            impulse = transpose_product(contact.blocks.frame[world, c], contact.solver.impulse[world, c])
            contact.status.pair_impulse[world, contact.blocks.pair[world, c]] = impulse


@wp.func(inline=True)
def velocities_backward(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, h: scalar, count: int):
    """Propagate ū, in velocity_bar, to q_bar[0] and the gradients; v + h a and the multiplier are in rows 1 and 2."""
    for c in range(count):
        pair = contact.blocks.pair[world, c]
        velocity_bar = contact.adjoint.velocity_bar[world, c]
        has_impact = is_impact(contact, s, world, c)
        restitution_bar = scalar(0.0)
        separation_bar = PENETRATION_RECOVERY / h * velocity_bar[0]
        if has_impact:
            restitution_bar = contact.blocks.restitution[world, c] * velocity_bar[0]
            separation_bar = scalar(0.0)
            add_jacobian_transpose(
                tree, contact, world, c, vec3(restitution_bar, scalar(0.0), scalar(0.0)), work.v_bar, 0
            )
        forces = wp.matrix_from_rows(
            velocity_bar,
            scalar(-1.0) / h * contact.solver.impulse[world, c],
            vec3(restitution_bar, scalar(0.0), scalar(0.0)),
        )
        weights = WeightedForces(1, 2, 0, forces, scalar(0.0), zero3(), zero3())
        contact_power_backward(tree, work, contact, s, world, 0, pair, weights, separation_bar)
        if s.contact_gradients.is_requested != 0 and pair < s.model.pairs.count:
            s.contact_gradients.pairs.friction[world, pair] = (
                s.contact_gradients.pairs.friction[world, pair] + contact.adjoint.friction_bar[world, c]
            )
            if has_impact:
                coefficient_bar = velocity_bar[0] * contact.blocks.initial_velocity[world, c][0]
                s.contact_gradients.pairs.restitution[world, pair] = (
                    s.contact_gradients.pairs.restitution[world, pair] + coefficient_bar
                )


def kernels(Law, solve, solve_backward):
    """Make the kernels of a law: the rollout and its adjoint.

    Args:
        Law: Struct of the parameters of the law, with the length of a step, `dt`.
        solve: Warp function (law, memory, world, count) that solves for the impulses; returns the residual relative to
            the largest velocity.
        solve_backward: Warp function (law, memory, world, count) that turns the adjoint of the impulses, `impulse_bar`,
            into that of the contact velocities, `slip_bar`.
    """

    @wp.func(inline=True)
    def solve_step(law: Law, tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int):
        """Write the velocity after the step to row 1; returns the number of contacts, or -1 if the solve fails."""
        h = law.dt
        forward_kinematics(tree, work, world, 0)
        update_poses_from_links(tree, work, contact, s, world, 0)
        copy_link_rotations(tree, work, contact, world)
        count = detect_contacts(tree, work, contact, s, world, h)
        solve_forward_dynamics(tree, work, s.forces, world, step, 0, h)
        if count > s.model.max_blocks:
            count = -1
        if count > 0:
            build_delassus(tree, work, contact, world, count)
            update_free_velocities(tree, work, contact, s, world, h, count)
            residual = solve(law, contact, world, count)
            apply_impulses(tree, work, contact, world, 0, count)
            for d in range(tree.velocities):
                work.a[world, 0, d] = work.a[world, 0, d] + contact.solver.velocity_change[world, 0, d] / h
            contact.status.residual[world] = wp.max(contact.status.residual[world], residual)
            # NaN fails this comparison.
            if not (residual < MAX_RESIDUAL):
                count = -1
        for d in range(tree.velocities):
            work.v[world, 1, d] = work.v[world, 0, d] + h * work.a[world, 0, d]
        return count

    @wp.func(inline=True)
    def take_step(
        law: Law, tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, is_last: int
    ):
        count = solve_step(law, tree, work, contact, s, world, step)
        integrate_positions(tree, world, work.q, 0, 1, work.v, 1, law.dt)
        if is_last != 0:
            record_impulses(contact, s, world, count)
        row = wp.int32(1)
        if count < 0:
            row = -1
        return row

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
        h = law.dt
        count = solve_step(law, tree, work, contact, s, world, step)
        euler_backward(tree, work, world, step, steps, truncate, h, q, trajectory_q_bar, trajectory_v_bar)
        solve_inertia_inward(tree, work, world, work.a_bar, 0)
        if count > 0:
            for c in range(count):
                contact.adjoint.impulse_bar[world, c] = (
                    scalar(-1.0) / h * delassus_response(tree, work, contact, world, c)
                )
            solve_backward(law, contact, world, count)
            for c in range(count):
                add_jacobian_transpose(tree, contact, world, c, contact.adjoint.velocity_bar[world, c], work.v_bar, 0)
                add_half_jacobian(tree, work, contact, world, c, -h * contact.adjoint.velocity_bar[world, c])
        solve_inertia_outward(tree, work, world, work.multiplier, 0)
        if count > 0:
            for d in range(tree.velocities):
                work.step_velocity[world, 0, d] = work.v[world, 0, d]
                work.step_velocity[world, 1, d] = work.v[world, 1, d]
                work.step_velocity[world, 2, d] = work.multiplier[world, 0, d]
            velocities_backward(tree, work, contact, s, world, h, count)
            propagate_accelerations(tree, work, world, 0)
        dynamics_residual_backward(tree, work, s.forces, s.gradients, world, step, 0, 0, h)

    return rollout_kernels(Law, take_step, step_backward, backward_options={"max_unroll": 1})
