"""Adjoints of flights and of impacts.

The acceleration a of a flight and its impulses λ over the remaining time h solve, with f = λ / h and w = v + h a,

    R = ID(q, v, a) + B (v + h a) + K(q) − τ − J(q)ᵀ f = 0,      F(λ, u) = 0 with u = J(q) w + separation / h₀,
where h₀ is the whole step's time. ID and J are those of the midpoint where the flight has one, and u contains the
drift of the contact to it (`midpoint_step`).

For an incoming ā the adjoint of the impulses is λ̄ = (M⁻¹ Jᵀ)ᵀ ā / h; `solve_contacts_backward` turns it into ū, and
with ā + h Jᵀ ū instead of ā the implicit function theorem on R gives the rest. An impact solves M (v′ − v) = J(q)ᵀ λ
and F(λ, u) = 0 with u = J v′ + e J_n v in the same way.
"""

import warp as wp

from ..collision.contact_power_adjoint import contact_power_backward
from ..collision.contact_primitives import WeightedForces
from ..collision.narrow_phase import copy_link_rotations, update_poses, update_poses_from_links
from ..collision.narrow_phase_adjoint import separation_backward
from ..dynamics.forward import solve_inertia_inward, solve_inertia_outward
from ..dynamics.joints import integrate_positions_backward
from ..dynamics.kinematics import forward_kinematics
from ..dynamics.transmissions import transmission_backward
from ..precision import scalar, vec3
from ..spatial.vectors import transpose_product, zero3
from ..structs import BOUNDED, CONTACT, EQUALITY, TORSIONAL_ROLLING, Contact, System, Tree, Workspace
from .delassus import add_half_jacobian, add_jacobian_transpose, contact_velocity, delassus_response
from .equality import equality_backward
from .event_dynamics_adjoint import dynamics_backward
from .events import FLIGHT, PENETRATION_RECOVERY, has_restitution, penetration_recovery, separation_velocity
from .midpoint_step import (
    CONTACT_MIDPOINT,
    clear_midpoint_adjoint,
    go_to_midpoint_backward,
    update_midpoint_velocity_backward,
)
from .solver import solve_contacts_backward

# Poses for which adjoints of blocks are computed, in this order: at the start, or at the midpoint and then the start.
AT_START = wp.constant(0)
AT_MIDPOINT = wp.constant(1)
BACK_AT_START = wp.constant(2)


@wp.func
def time_derivative(
    tree: Tree, work: Workspace, world: int, row: int, bar_row: int, spare_row: int, t: scalar, with_velocity: int
):
    """Return the derivative with respect to the duration t of the flight from `row`, for the adjoints of its end.

    The adjoints of the end are in row `bar_row`; those of the velocity are left out without `with_velocity`.
    """
    for d in range(tree.velocities):
        work.step_velocity_bar[world, spare_row, d] = scalar(0.0)
    integrate_positions_backward(
        tree,
        world,
        work.q_bar,
        bar_row,
        work.step_velocity,
        row + 1,
        work.step_velocity_bar,
        spare_row,
        work.q_bar,
        row,
        t,
    )
    total = scalar(0.0)
    for d in range(tree.velocities):
        total += work.q_bar[world, bar_row, d] * work.step_velocity[world, row + 1, d]
        total += scalar(0.5) * work.step_velocity_bar[world, spare_row, d] * work.a[world, row, d]
        if with_velocity != 0:
            total += work.v_bar[world, bar_row, d] * work.a[world, row, d]
    return total


@wp.func(inline=True)
def drift_backward(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, c: int, weights: WeightedForces
):
    """Return `weights` with those of the power of −(ū₀ n₀ + F) in v, by which contact c drifts to the midpoint.

    Adds the derivative with respect to the velocity v to v_bar[row].
    """
    velocity_bar = contact.adjoint.velocity_bar[world, c]
    tangential = drift_force(contact, world, c)
    frame = contact.blocks.start_frame[world, c]
    normal_bar = velocity_bar[0] - separation_bar(contact, world, c)
    force = -transpose_product(frame, vec3(normal_bar, scalar(0.0), scalar(0.0))) - tangential
    z = scalar(0.0)
    weights.forces = wp.matrix_from_rows(vec3(z, z, z), vec3(z, z, z), frame * force)
    weights.frame_bar = wp.cross(tangential, transpose_product(frame, contact.blocks.start_velocity[world, c]))
    pair = contact.blocks.pair[world, c]
    for side in range(2):
        shape = s.model.pairs.first[pair]
        if side == 1:
            shape = s.model.pairs.second[pair]
        i = s.model.shapes.link[shape]
        body_force = scalar(1 - 2 * side) * force
        while i >= 0:
            arm = contact.blocks.start_point[world, c] - contact.detection.link_origin[world, i]
            moment = wp.cross(arm, body_force)
            for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                along = wp.dot(work.axis_linear[world, d], body_force) + wp.dot(work.axis_angular[world, d], moment)
                work.v_bar[world, row, d] = work.v_bar[world, row, d] + along
            i = tree.parent[i]
    return weights


@wp.func
def separation_bar(contact: Contact, world: int, c: int):
    """Return the adjoint of the normal velocity at the start of a flight that `separation_velocity` adds."""
    bar = scalar(0.0)
    if contact.blocks.law[world, c] == CONTACT and separation_velocity(contact, world, c) > scalar(0.0):
        bar = contact.adjoint.velocity_bar[world, c][0]
    return bar


@wp.func
def drift_force(contact: Contact, world: int, c: int):
    """Return F = t ū_t, the tangential part of the adjoint of a contact's velocity, in world axes."""
    velocity_bar = contact.adjoint.velocity_bar[world, c]
    return transpose_product(contact.blocks.frame[world, c], vec3(scalar(0.0), velocity_bar[1], velocity_bar[2]))


@wp.func(inline=True)
def blocks_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    row: int,
    state_row: int,
    pose: int,
    scale: scalar,
    is_impact: int,
):
    """Add ū · J w + scale · λ · J m to q_bar[state_row] and the gradients, for the blocks at `pose`.

    The motions w and m are in step_velocity, rows row + 1 and spare. In an impact restitution contributes, with v in
    step_velocity[row]; in a flight, the penetration and errors in u, and the drift to the midpoint.
    """
    spare = s.model.max_events + 1
    recovery = scalar(1 - is_impact) * PENETRATION_RECOVERY / contact.events.remaining_time[world, 0]
    for c in range(contact.events.count[world, row]):
        pair = contact.blocks.pair[world, c]
        law = contact.blocks.law[world, c]
        is_moved = wp.int32(pose != AT_START and contact.blocks.is_midpoint[world, c] != 0)
        velocity_bar = contact.adjoint.velocity_bar[world, c]
        start_bar = separation_bar(contact, world, c)
        if is_impact != 0:
            start_bar = contact.adjoint.restitution_bar[world, c]
        forces = wp.matrix_from_rows(
            velocity_bar, scale * contact.solver.impulse[world, c], vec3(start_bar, scalar(0.0), scalar(0.0))
        )
        is_rotational = scalar(wp.int32(law == TORSIONAL_ROLLING))
        weights = WeightedForces(row + 1, spare, row, forces, is_rotational, zero3(), zero3())
        if pose == AT_MIDPOINT:
            if is_moved != 0:
                weights.forces = wp.matrix_from_rows(
                    velocity_bar, scale * contact.solver.impulse[world, c], velocity_bar
                )
                along = transpose_product(contact.blocks.start_frame[world, c], contact.blocks.start_velocity[world, c])
                weights.frame_bar = -wp.cross(drift_force(contact, world, c), along)
        elif is_moved != 0:
            weights = drift_backward(tree, work, contact, s, world, row, c, weights)
        if law == EQUALITY and pose != AT_MIDPOINT:
            equality_backward(tree, work, contact, s, world, state_row, pair, weights, recovery * velocity_bar)
        elif law != BOUNDED and (pose != AT_MIDPOINT or is_moved != 0):
            fraction = (
                penetration_recovery(contact, s, world, c)
                * scalar(1 - is_impact)
                / contact.events.remaining_time[world, 0]
            )
            pair_separation_bar = (scalar(1.0) - is_rotational) * fraction * velocity_bar[0]
            if pose == AT_MIDPOINT:
                pair_separation_bar = scalar(0.0)
            contact_power_backward(tree, work, contact, s, world, state_row, pair, weights, pair_separation_bar)
        if s.contact_gradients.is_requested != 0 and pose != AT_MIDPOINT and law == TORSIONAL_ROLLING:
            s.contact_gradients.pairs.torsional_friction[world, pair] = (
                s.contact_gradients.pairs.torsional_friction[world, pair] + contact.adjoint.lower_bar[world, c]
            )
            s.contact_gradients.pairs.rolling_friction[world, pair] = (
                s.contact_gradients.pairs.rolling_friction[world, pair] + contact.adjoint.upper_bar[world, c]
            )
        elif s.contact_gradients.is_requested != 0 and pose != AT_MIDPOINT and pair < s.model.pairs.count:
            s.contact_gradients.pairs.friction[world, pair] = (
                s.contact_gradients.pairs.friction[world, pair] + contact.adjoint.friction_bar[world, c]
            )


@wp.func(inline=True)
def flight_backward(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, next_remaining_bar: scalar
):
    """Propagate the adjoints at a flight's end to its start and to its acceleration.

    Returns that of the remaining time.
    """
    t = contact.events.duration[world, row]
    impact_pair = contact.events.impact_pair[world, row]
    spare = s.model.max_events + 1
    for d in range(tree.velocities):
        work.step_velocity[world, row + 1, d] = work.v[world, row, d] + scalar(0.5) * t * work.a[world, row, d]
    remaining_bar = scalar(0.0)
    if row > 0 or impact_pair >= 0:
        # The remaining time at the start of a step is its length, which has no adjoint.
        remaining_bar = time_derivative(tree, work, world, row, row + 1, spare, t, 1)
    if impact_pair >= 0:
        for d in range(tree.velocities):
            work.q_bar[world, spare, d] = scalar(0.0)
        update_poses(tree, contact, s, world, work.q, row + 1)
        weight = scalar(1.0)
        for sweep in range(2):
            # First the gradient of the separation, which gives its weight, then everything with that weight.
            separation_backward(tree, work, contact, s, world, spare, row, weight, 1 - sweep)
            if sweep == 0:
                approach = time_derivative(tree, work, world, row, spare, spare, t, 0)
                weight = -(remaining_bar - next_remaining_bar) / approach
                for d in range(tree.velocities):
                    weighted_bar = weight * work.q_bar[world, spare, d]
                    work.q_bar[world, row + 1, d] = work.q_bar[world, row + 1, d] + weighted_bar
        remaining_bar = next_remaining_bar
    for d in range(tree.velocities):
        work.step_velocity_bar[world, row + 1, d] = scalar(0.0)
        work.q_bar[world, row, d] = scalar(0.0)
    integrate_positions_backward(
        tree,
        world,
        work.q_bar,
        row + 1,
        work.step_velocity,
        row + 1,
        work.step_velocity_bar,
        row + 1,
        work.q_bar,
        row,
        t,
    )
    for d in range(tree.velocities):
        end_bar = work.v_bar[world, row + 1, d]
        rate_bar = work.step_velocity_bar[world, row + 1, d]
        work.v_bar[world, row, d] = end_bar + rate_bar
        work.a_bar[world, row, d] = -(t * end_bar + scalar(0.5) * t * rate_bar)
    return remaining_bar


@wp.func(inline=True)
def impulses_backward(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, row: int, scale: scalar
):
    """Compute the adjoints of the impulses and of u from W times the adjoint of the velocity change, which is in `rhs`.

    Returns the adjoint of the time h in u. Impulses change a by scale λ, up to its sign, and u contains a times h; in
    an impact, v′ and one. Adds the result, Jᵀ ū times this factor, to `rhs`, and Jᵀ ū to v_bar[row].
    """
    count = contact.events.count[world, row]
    remaining_bar = scalar(0.0)
    for c in range(count):
        contact.adjoint.impulse_bar[world, c] = scale * delassus_response(tree, work, contact, world, c)
    solve_contacts_backward(contact, world, count)
    for c in range(count):
        velocity_bar = contact.adjoint.velocity_bar[world, c]
        start_bar = vec3(separation_bar(contact, world, c), scalar(0.0), scalar(0.0))
        if contact.events.kind[world, row] != FLIGHT:
            start_bar = zero3()
        if contact.events.uses_midpoint[world, row] == CONTACT_MIDPOINT:
            if contact.blocks.is_midpoint[world, c] != 0:
                start_bar = velocity_bar  # the drift contains J v once more
        add_jacobian_transpose(tree, contact, world, c, velocity_bar + start_bar, work.v_bar, row)
        add_half_jacobian(tree, work, contact, world, c, velocity_bar / scale)
        if contact.events.kind[world, row] == FLIGHT:
            remaining_bar += wp.dot(velocity_bar, contact_velocity(tree, contact, world, c, work.a, row))
            if contact.blocks.law[world, c] == BOUNDED:
                remaining_bar += transmission_backward(
                    tree, work, contact, s, world, step, row, c, PENETRATION_RECOVERY
                )
    return remaining_bar


@wp.func(inline=True)
def restitution_backward(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int):
    """Compute the adjoint of e J_n v in the velocity of an impact."""
    for c in range(contact.events.count[world, row]):
        pair = contact.blocks.pair[world, c]
        contact.adjoint.restitution_bar[world, c] = scalar(0.0)
        if contact.blocks.law[world, c] == CONTACT and has_restitution(contact, s, world, row, c):
            velocity_bar = contact.events.restitution_scale[world, row] * contact.adjoint.velocity_bar[world, c][0]
            restitution_bar = velocity_bar * contact.blocks.restitution[world, c]
            contact.adjoint.restitution_bar[world, c] = restitution_bar
            add_jacobian_transpose(
                tree, contact, world, c, vec3(restitution_bar, scalar(0.0), scalar(0.0)), work.v_bar, row
            )
            if s.contact_gradients.is_requested != 0 and pair < s.model.pairs.count:
                coefficient_bar = velocity_bar * contact.blocks.initial_velocity[world, c][0]
                s.contact_gradients.pairs.restitution[world, pair] = (
                    s.contact_gradients.pairs.restitution[world, pair] + coefficient_bar
                )


@wp.func(inline=True)
def event_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    row: int,
    visit: int,
    next_remaining_bar: scalar,
):
    """Propagate the adjoints in row + 1 to `row`, for a flight or an impact.

    A flight with contacts at its midpoint is visited twice: for its second evaluation, and for the first, whose
    accelerations are then in the workspace. Returns the adjoint of the remaining time at the start.
    """
    is_flight = contact.events.kind[world, row] == FLIGHT
    remaining = contact.events.remaining_time[world, row]
    count = contact.events.count[world, row]
    spare = s.model.max_events + 1
    midpoint = s.model.max_events + 2
    is_moved = contact.events.uses_midpoint[world, row] == CONTACT_MIDPOINT
    remaining_bar = scalar(next_remaining_bar)
    scale = scalar(1.0)
    if is_flight:
        scale = scalar(-1.0) / remaining
    if visit == 1:
        pass
    elif is_flight:
        remaining_bar = flight_backward(tree, work, contact, s, world, row, next_remaining_bar)
    else:
        for d in range(tree.velocities):
            work.q_bar[world, row, d] = work.q_bar[world, row + 1, d]
            work.v_bar[world, row, d] = work.v_bar[world, row + 1, d]
            work.a_bar[world, row, d] = work.v_bar[world, row + 1, d]
    solve_inertia_inward(tree, work, world, work.a_bar, row)
    if count > 0:
        if is_moved:
            update_poses_from_links(tree, work, contact, s, world, midpoint)
        elif is_flight and contact.events.monitored_count[world, row] != 0:
            update_poses_from_links(tree, work, contact, s, world, row)
        copy_link_rotations(tree, work, contact, world)
        remaining_bar += impulses_backward(tree, work, contact, s, world, step, row, scale)
    solve_inertia_outward(tree, work, world, work.multiplier, row)
    if count > 0:
        for d in range(tree.velocities):
            work.step_velocity[world, row, d] = work.v[world, row, d]
            work.step_velocity[world, spare, d] = work.multiplier[world, row, d]
            work.step_velocity[world, row + 1, d] = work.v[world, row + 1, d]
            if is_flight:
                work.step_velocity[world, row + 1, d] = work.v[world, row, d] + remaining * work.a[world, row, d]
        if is_flight:
            for c in range(count):
                virtual_velocity = contact_velocity(tree, contact, world, c, work.multiplier, row)
                remaining_bar += wp.dot(virtual_velocity, contact.solver.impulse[world, c]) / (remaining * remaining)
        else:
            restitution_backward(tree, work, contact, s, world, row)
    is_impact = wp.int32(not is_flight)
    pose = wp.int32(AT_START)
    state_row = wp.int32(row)
    last = wp.int32(AT_START)
    if is_moved:
        pose = wp.int32(AT_MIDPOINT)
        state_row = midpoint
        last = wp.int32(BACK_AT_START)
        if visit == 0:
            clear_midpoint_adjoint(tree, work, world, midpoint)
    while pose <= last:
        if pose == BACK_AT_START:
            state_row = row
            forward_kinematics(tree, work, world, row)
            update_poses_from_links(tree, work, contact, s, world, row)
            copy_link_rotations(tree, work, contact, world)
        if count > 0:
            blocks_backward(tree, work, contact, s, world, row, state_row, pose, scale, is_impact)
        if pose != BACK_AT_START:
            remaining_bar += dynamics_backward(tree, work, contact, s, world, step, row)
        pose += 1
    if is_moved and visit == 0:
        remaining_bar += update_midpoint_velocity_backward(tree, work, contact, world, row, midpoint, remaining)
    elif is_moved:
        remaining_bar += go_to_midpoint_backward(tree, work, contact, world, row, midpoint, remaining)
    return remaining_bar
