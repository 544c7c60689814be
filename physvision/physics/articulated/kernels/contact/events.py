"""Steps with contact by events: flights to the next event, in which resting and rolling contacts are held, and impacts.

A flight has one acceleration, that of its midpoint (`midpoint_step`): v(t) = v + t a, q(t) = q ⊕ t (v + t a / 2), which
is exact for constant forces. Contacts at its start take part: their forces are those for which the velocities at the
end of the step obey the complementarity of `solver`, with a recovery of penetration. Another separation that reaches
zero ends the flight, at the time of impact given by a bracketed root to rounding. Contacts that touch and approach
make an impact, with Newton's restitution.
"""

import warp as wp

from ..collision.broad_phase import first_listed_candidate, next_candidate
from ..collision.contact_primitives import is_ambiguous
from ..collision.joint_limits import limit_separation, write_limit_jacobian
from ..collision.narrow_phase import (
    contact_point,
    contact_primitive,
    copy_link_rotations,
    first_shape_origin,
    update_poses,
    update_poses_from_links,
    write_contact_jacobian,
)
from ..dynamics.forward import solve_forward_dynamics
from ..dynamics.kinematics import forward_kinematics
from ..dynamics.transmissions import add_compliance, add_transmission_blocks
from ..precision import convex_pairs, scalar, vec3
from ..spatial.vectors import transpose_product, zero3
from ..structs import CONTACT, Contact, System, Tree, Workspace
from .delassus import apply_impulses, build_delassus, contact_velocity
from .equality import add_equality_blocks
from .flight import integrate_flight
from .midpoint_step import (
    CONTACT_MIDPOINT,
    NO_MIDPOINT,
    find_midpoint_trees,
    go_to_midpoint,
    move_blocks_to_midpoint,
    update_midpoint_velocity,
)
from .rotational_friction import add_rotational_friction
from .settings import SOLVER
from .solver import MAX_RESIDUAL, solve_contacts
from .time_of_impact import CONTACT_TOLERANCE, contact_threshold, find_event
from .undetermined_contacts import is_undetermined, is_within_flat_sides

FLIGHT = wp.constant(0)
IMPACT = wp.constant(1)

MAX_ENERGY_GAIN = wp.constant(scalar(SOLVER.max_energy_gain))
PENETRATION_RECOVERY = wp.constant(scalar(SOLVER.penetration_recovery))
SEPARATING_SPEED = wp.constant(scalar(SOLVER.separating_speed))
MIN_NORMAL_SHARE = wp.constant(scalar(SOLVER.min_normal_share))
RESTITUTION_TRIALS = wp.constant(SOLVER.restitution_trials)


@wp.func(inline=True)
def add_contact(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    row: int,
    pair: int,
    is_without_derivative: bool,
    is_needed: bool,
):
    """Add the candidate whose Jacobian was written last, if it touches or is near and slow.

    One that is not needed is only marked. The event is an impact if it approaches. A candidate that reaches contact at
    the start of a step has to fly there first, even for no time: the time of impact depends on the state, and a flight
    that an event ends carries that gradient. A deeper penetration is not due to this separation: another part of the
    shapes has taken over.
    """
    count = contact.events.count[world, row]
    threshold = s.model.restitution_threshold
    velocity = contact_velocity(tree, contact, world, count, work.v, row)
    separation = contact.detection.separation[world, pair]
    is_impact = velocity[0] < -threshold
    is_arriving = is_impact and row == 0 and separation >= -CONTACT_TOLERANCE
    if wp.abs(velocity[0]) <= threshold or (separation <= CONTACT_TOLERANCE and not is_arriving):
        contact.detection.is_active[world, pair] = 1
        if is_needed:
            contact.blocks.pair[world, count] = pair
            contact.blocks.law[world, count] = CONTACT
            contact.blocks.initial_velocity[world, count] = velocity
            contact.blocks.start_velocity[world, count] = velocity
            if is_without_derivative:
                contact.events.is_grazing[world] = 1
            contact.events.count[world, row] = count + 1
            if is_impact:
                contact.events.kind[world, row] = IMPACT


@wp.func(inline=True)
def detect_contacts(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int):
    """Add the candidates that touch, with their Jacobians and velocities."""
    contact.events.count[world, row] = 0
    contact.events.kind[world, row] = FLIGHT
    contact.detection.penetration[world] = scalar(0.0)
    threshold = contact_threshold(contact, s, world)
    pair = first_listed_candidate(contact, s, world, threshold)
    while pair < s.model.candidates:
        contact.detection.is_active[world, pair] = 0
        slot = contact.events.count[world, row]
        is_without_derivative = bool(False)
        is_needed = bool(True)
        if pair < s.model.pairs.count:
            primitive = contact_primitive(contact, s, world, pair)
            if wp.static(convex_pairs):
                is_without_derivative = is_ambiguous(primitive)
                is_needed = not is_within_flat_sides(contact, s, world, pair, primitive)
            contact.detection.separation[world, pair] = primitive.separation
            contact.detection.penetration[world] = wp.max(contact.detection.penetration[world], -primitive.separation)
            if primitive.separation <= threshold and slot < s.model.max_blocks:
                contact.blocks.friction[world, slot] = s.model.pairs.friction[world, pair]
                contact.blocks.restitution[world, slot] = s.model.pairs.restitution[world, pair]
                point = contact_point(primitive, s.model.pairs.margin[pair])
                contact.blocks.start_point[world, slot] = point
                contact.blocks.start_arm[world, slot] = point - first_shape_origin(contact, s, world, pair)
                write_contact_jacobian(tree, work, contact, s, world, slot, pair, primitive)
        else:
            separation = limit_separation(contact, s, world, pair)
            contact.detection.separation[world, pair] = separation
            if separation <= threshold and slot < s.model.max_blocks:
                contact.blocks.friction[world, slot] = scalar(0.0)
                contact.blocks.restitution[world, slot] = scalar(0.0)
                write_limit_jacobian(tree, contact, s, world, slot, pair)
        if contact.detection.separation[world, pair] <= threshold:
            if slot < s.model.max_blocks:
                add_contact(tree, work, contact, s, world, row, pair, is_without_derivative, is_needed)
                if pair < s.model.pairs.count:
                    add_rotational_friction(tree, work, contact, s, world, row, pair, slot)
            elif contact.detection.separation[world, pair] <= CONTACT_TOLERANCE:
                contact.events.count[world, row] = slot + 1
        pair = next_candidate(contact, s, world, pair + 1, threshold)


@wp.func
def has_restitution(contact: Contact, s: System, world: int, row: int, c: int):
    """Return True if contact c has restitution: not below a speed, and not late in a step with many events.

    Contacts that bounce in turn would go on forever; in the second half of a step's events there is no restitution.
    """
    return (
        contact.blocks.initial_velocity[world, c][0] < -s.model.restitution_threshold and row < s.model.max_events / 2
    )


@wp.func
def separation_velocity(contact: Contact, world: int, c: int):
    """Return the normal velocity with which contact c separates at the start of a flight, zero if it does not.

    It is added to that at the end, u: with 0 ≤ λ ⟂ u + u₀ ≥ 0 what separates is pushed only if it would be back at the
    end of the flight, and leaves with −u₀ then, so that the push adds no energy.
    """
    return wp.max(contact.blocks.start_velocity[world, c][0] - SEPARATING_SPEED, scalar(0.0))


@wp.func
def penetration_recovery(contact: Contact, s: System, world: int, c: int):
    """Return the fraction of a penetration that is recovered in a step.

    Zero if no joint moves contact c along its normal, and of a pair that penetrates in the model's reference pose.
    """
    fraction = scalar(1.0) * PENETRATION_RECOVERY
    delassus_block = contact.solver.delassus[world, c, c]
    if delassus_block[0, 0] <= MIN_NORMAL_SHARE * wp.trace(delassus_block):
        fraction = scalar(0.0)
    pair = contact.blocks.pair[world, c]
    if pair < s.model.pairs.count:
        if s.model.pairs.is_held[pair] != 0:
            fraction = scalar(0.0)
    return fraction


@wp.func
def update_free_velocities(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, count: int):
    """Compute the contact velocities, with bias, that there would be without impulses."""
    z = scalar(0.0)
    for c in range(count):
        pair = contact.blocks.pair[world, c]
        velocity = contact.blocks.initial_velocity[world, c]
        is_contact = contact.blocks.law[world, c] == CONTACT
        # Each branch writes its own result: a vector that some of them replace is copied through memory.
        if contact.events.kind[world, row] == FLIGHT:
            remaining = contact.events.remaining_time[world, row]
            flight_velocity = velocity + remaining * contact_velocity(tree, contact, world, c, work.a, row)
            if is_contact:
                fraction = penetration_recovery(contact, s, world, c)
                bias = fraction * contact.detection.separation[world, pair] / contact.events.remaining_time[world, 0]
                contact.blocks.free_velocity[world, c] = flight_velocity + vec3(
                    bias + separation_velocity(contact, world, c), z, z
                )
            else:
                contact.blocks.free_velocity[world, c] = flight_velocity + contact.blocks.velocity_bias[world, c]
        elif is_contact and has_restitution(contact, s, world, row, c):
            scale = contact.events.restitution_scale[world, row]
            contact.blocks.free_velocity[world, c] = velocity + vec3(
                scale * contact.blocks.restitution[world, c] * velocity[0], z, z
            )
        else:
            contact.blocks.free_velocity[world, c] = velocity


@wp.func
def energy_gain(contact: Contact, world: int, count: int):
    """Return the kinetic energy that the impact adds beyond rounding."""
    gain = scalar(0.0)
    size = scalar(0.0)
    for c in range(count):
        velocity_before = contact.blocks.initial_velocity[world, c]
        velocity_after = velocity_before + contact.solver.velocity[world, c] - contact.blocks.free_velocity[world, c]
        half_impulse = scalar(0.5) * contact.solver.impulse[world, c]
        gain += wp.dot(half_impulse, velocity_before + velocity_after)
        for k in range(3):
            size += wp.abs(half_impulse[k]) * (wp.abs(velocity_before[k]) + wp.abs(velocity_after[k]))
    return gain - MAX_ENERGY_GAIN * size


@wp.func(inline=True)
def detect_blocks(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, row: int):
    """Add all blocks of the event that starts at `row`, which is a flight or an impact."""
    detect_contacts(tree, work, contact, s, world, row)
    is_flight = wp.int32(contact.events.kind[world, row] == FLIGHT)
    if s.model.equalities.count > 0:
        add_equality_blocks(tree, work, contact, s, world, row, is_flight, PENETRATION_RECOVERY)
    if s.model.transmissions.count > 0:
        add_transmission_blocks(tree, work, contact, s, world, step, row, is_flight, PENETRATION_RECOVERY)


@wp.func(inline=True)
def solve_event(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, count: int, is_factored: int
):
    """Compute the impulses of an event, and add what they change to its acceleration; returns the residual.

    With `is_factored` the Delassus matrix is up to date.
    """
    if is_factored == 0:
        build_delassus(tree, work, contact, world, count)
        if s.model.transmissions.count > 0:
            add_compliance(contact, world, count)
    residual = scalar(0.0)
    scale = scalar(1.0)
    gain = scalar(1.0)
    for _trial in range(RESTITUTION_TRIALS):
        # An impact with friction may add energy, λ · (u⁻ + u⁺) / 2: its restitution is halved until it does not.
        if gain > scalar(0.0):
            contact.events.restitution_scale[world, row] = scale
            update_free_velocities(tree, work, contact, s, world, row, count)
            residual = solve_contacts(contact, world, count)
            gain = scalar(0.0)
            if contact.events.kind[world, row] == IMPACT:
                gain = energy_gain(contact, world, count)
            scale = scalar(0.5) * scale
            if _trial == RESTITUTION_TRIALS - 2:
                scale = scalar(0.0)
    if is_undetermined(contact, s, world, count, contact.events.kind[world, row] == IMPACT):
        contact.events.is_grazing[world] = 1
    apply_impulses(tree, work, contact, world, row, count)
    if contact.events.kind[world, row] == FLIGHT:
        remaining = contact.events.remaining_time[world, row]
        for d in range(tree.velocities):
            work.a[world, row, d] = work.a[world, row, d] + contact.solver.velocity_change[world, row, d] / remaining
    return residual


@wp.func(inline=True)
def begin_event(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, row: int, evaluations: int
):
    """Compute accelerations and impulses of the event that starts at `row`; returns the residual of the solver.

    Of a flight with contacts at its midpoint only the first `evaluations` of two are computed.
    """
    remaining = contact.events.remaining_time[world, row]
    midpoint = s.model.max_events + 2
    interval = scalar(0.0)
    residual = scalar(0.0)
    count = wp.int32(0)
    state_row = wp.int32(row)
    uses_midpoint = wp.int32(NO_MIDPOINT)
    evaluation = wp.int32(0)
    last_evaluation = wp.int32(0)
    while evaluation <= last_evaluation:
        forward_kinematics(tree, work, world, state_row)
        if evaluation == 0:
            update_poses_from_links(tree, work, contact, s, world, row)
            if s.model.equalities.count > 0:
                copy_link_rotations(tree, work, contact, world)
            detect_blocks(tree, work, contact, s, world, step, row)
            count = wp.min(contact.events.count[world, row], s.model.max_blocks)
            if contact.events.kind[world, row] == FLIGHT:
                interval = remaining
                if tree.varying_trees > 0:
                    uses_midpoint = find_midpoint_trees(tree, work, contact, world, row, count, remaining)
                if uses_midpoint != NO_MIDPOINT:
                    state_row = midpoint
                    last_evaluation = wp.where(uses_midpoint == CONTACT_MIDPOINT, evaluations, 2)
                    go_to_midpoint(tree, work, contact, world, row, state_row, remaining)
            contact.events.uses_midpoint[world, row] = uses_midpoint
        elif evaluation == 1 and uses_midpoint == CONTACT_MIDPOINT:
            move_blocks_to_midpoint(tree, work, contact, s, world, row, midpoint, count)
        if evaluation > 0 or last_evaluation == 0:
            solve_forward_dynamics(tree, work, s.forces, world, step, row, interval)
            if count > 0 and (evaluation == last_evaluation or uses_midpoint == CONTACT_MIDPOINT):
                is_factored = wp.int32(evaluation == 2 and uses_midpoint == CONTACT_MIDPOINT)
                evaluation_residual = solve_event(tree, work, contact, s, world, row, count, is_factored)
                if not (evaluation_residual <= residual):  # NaN is kept
                    residual = evaluation_residual
        if evaluation == 1 and last_evaluation == 2:
            update_midpoint_velocity(tree, work, contact, world, row, state_row, remaining)
        evaluation += 1
    return residual


@wp.func(inline=True)
def end_event(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int):
    """Write the state at the end of the event that starts at `row` to the next row."""
    remaining = contact.events.remaining_time[world, row]
    if contact.events.kind[world, row] == IMPACT:
        contact.events.duration[world, row] = scalar(0.0)
        contact.events.impact_pair[world, row] = -1
        for k in range(tree.positions):
            work.q[world, row + 1, k] = work.q[world, row, k]
        for d in range(tree.velocities):
            work.v[world, row + 1, d] = work.v[world, row, d] + contact.solver.velocity_change[world, row, d]
        contact.events.remaining_time[world, row + 1] = remaining
    else:
        if contact.events.uses_midpoint[world, row] == CONTACT_MIDPOINT:
            update_poses(tree, contact, s, world, work.q, row)
        find_event(tree, work, contact, s, world, row)
        t = contact.events.duration[world, row]
        integrate_flight(tree, work, world, row, t)
        for d in range(tree.velocities):
            work.v[world, row + 1, d] = work.v[world, row, d] + t * work.a[world, row, d]
        contact.events.remaining_time[world, row + 1] = remaining - t
        if contact.events.impact_pair[world, row] < 0:
            contact.events.remaining_time[world, row + 1] = scalar(0.0)


@wp.func
def accumulate_impulses(contact: Contact, s: System, world: int, row: int):
    """Add the impulses of the event to those of the step; a flight that an event ends contributes its fraction."""
    fraction = scalar(1.0)
    if contact.events.kind[world, row] == FLIGHT:
        fraction = contact.events.duration[world, row] / contact.events.remaining_time[world, row]
    for c in range(contact.events.count[world, row]):
        pair = contact.blocks.pair[world, c]
        if pair < s.model.pairs.count and contact.blocks.law[world, c] == CONTACT:
            impulse = fraction * transpose_product(contact.blocks.frame[world, c], contact.solver.impulse[world, c])
            contact.status.pair_impulse[world, pair] = contact.status.pair_impulse[world, pair] + impulse


@wp.func
def record_quality(contact: Contact, world: int, row: int):
    """Record penetrations at the start of an event, and impacts with reduced restitution."""
    contact.status.penetration[world] = wp.max(contact.status.penetration[world], contact.detection.penetration[world])
    if contact.events.kind[world, row] == IMPACT and contact.events.restitution_scale[world, row] < scalar(1.0):
        contact.status.regularized_impacts[world] = contact.status.regularized_impacts[world] + 1


@wp.func(inline=True)
def run_events(
    h: scalar, tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, is_last: int
):
    """Run all events of a step from row 0; returns their number, or -1 if the step fails.

    In the last step of a rollout the impulses are summed up.
    """
    contact.events.remaining_time[world, 0] = h
    contact.events.is_grazing[world] = 0
    if is_last != 0:
        for pair in range(s.model.pairs.count):
            contact.status.pair_impulse[world, pair] = zero3()
    event = wp.int32(0)
    has_failed = wp.int32(0)
    while event < s.model.max_events and contact.events.remaining_time[world, event] > scalar(0.0) and has_failed == 0:
        residual = begin_event(tree, work, contact, s, world, step, event, 2)
        # NaN fails this comparison.
        if contact.events.count[world, event] > s.model.max_blocks or not (residual < MAX_RESIDUAL):
            has_failed = 1
            if contact.events.count[world, event] > s.model.max_blocks:
                contact.status.block_count[world] = contact.events.count[world, event]
        else:
            contact.status.residual[world] = wp.max(contact.status.residual[world], residual)
            record_quality(contact, world, event)
            end_event(tree, work, contact, s, world, event)
            if is_last != 0:
                accumulate_impulses(contact, s, world, event)
            event += 1
    if event > s.model.max_events / 2:
        contact.status.fallback_steps[world] = contact.status.fallback_steps[world] + 1
    if contact.events.is_grazing[world] != 0 and contact.status.first_grazing_step[world] < 0:
        contact.status.first_grazing_step[world] = step + 1
    if has_failed != 0 or contact.events.remaining_time[world, event] > scalar(0.0):
        event = -1
    return event
