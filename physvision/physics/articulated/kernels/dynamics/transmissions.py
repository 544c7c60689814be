"""Transmissions: bounded rows along fixed linear combinations of joint velocities.

The row of a transmission with coefficients s has the velocity u = s · q̇ and, for revolute and prismatic joints, the
displacement p = s · q − reference. Its force f acts on the joints as s f. Over the remaining time T of a step, with the
acceleration a and the impulse λ = T f:

    DRY_FRICTION     min ≤ f ≤ max against all motion: u + T s·a = 0 within the bounds.
    SERVO            f = g − k p′ − c u′ between the bounds, at the end of the step: p′ = p + T u′, u′ = u + T s·a, thus
                     u′ + ε λ + b = 0 with B = c + T k, ε = 1/(T B), b = −(g − k p)/B.
                     With a speed limit w the spring acts at the start of the flight, so that the demanded speed is
                     known: f = c (z − u′), z = (g − k p)/c clamped to ±w; that is B = c and b = −z.
    JOINT_EQUALITY   p = 0 at any force, in impacts too; a fraction of the error is recovered, as of a penetration:
                     u′ + κ p/h = 0.
    LENGTH_LIMIT     p ≥ 0: no row here, but a candidate for a contact (`collision/joint_limits.py`).

They enter the contact problem as blocks with one direction. The chain rule on ε, b, T · min and T · max completes the
adjoint, given ū of u′ and the adjoints of the bounds of λ.
"""

import warp as wp

from ..precision import scalar, vec3
from ..structs import BOUNDED, Contact, System, Tree, Workspace

DRY_FRICTION = wp.constant(0)
SERVO = wp.constant(1)
JOINT_EQUALITY = wp.constant(2)
LENGTH_LIMIT = wp.constant(3)

UNLIMITED = wp.constant(scalar(1.0e30))


@wp.func
def transmission_displacement(work: Workspace, s: System, world: int, row: int, t: int):
    """Return the displacement s · q − reference."""
    total = -s.model.transmissions.reference[world, t]
    for k in range(s.model.transmissions.start[t], s.model.transmissions.start[t + 1]):
        total += s.model.transmissions.coefficient[k] * work.q[world, row, s.model.transmissions.position[k]]
    return total


@wp.func
def write_transmission_jacobian(tree: Tree, contact: Contact, s: System, world: int, slot: int, t: int):
    """Write the Jacobian of block `slot`: the links on its path, outermost first, and s along the first direction."""
    z = scalar(0.0)
    first = s.model.transmissions.path_start[t]
    length = s.model.transmissions.path_start[t + 1] - first
    for k in range(length):
        i = s.model.transmissions.path[first + k]
        contact.blocks.path[world, slot, k] = i
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            contact.blocks.jacobian[world, slot, d] = vec3(z, z, z)
    contact.blocks.path_length[world, slot] = length
    for k in range(s.model.transmissions.start[t], s.model.transmissions.start[t + 1]):
        contact.blocks.jacobian[world, slot, s.model.transmissions.velocity[k]] = vec3(
            s.model.transmissions.coefficient[k], z, z
        )


@wp.func
def add_transmission_blocks(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    row: int,
    is_flight: int,
    recovery: scalar,
):
    """Add the blocks of transmissions: all but limits in a flight, only equality constraints in an impact."""
    remaining = contact.events.remaining_time[world, row]
    for t in range(s.model.transmissions.count):
        kind = s.model.transmissions.kind[t]
        slot = contact.events.count[world, row]
        if (is_flight != 0 and kind != LENGTH_LIMIT) or kind == JOINT_EQUALITY:
            contact.events.count[world, row] = slot + 1
            if slot < s.model.max_blocks:
                write_transmission_jacobian(tree, contact, s, world, slot, t)
                bias = scalar(0.0)
                compliance = scalar(0.0)
                lower = remaining * s.model.transmissions.min_force[world, t]
                upper = remaining * s.model.transmissions.max_force[world, t]
                if kind == SERVO:
                    stiffness = s.model.transmissions.stiffness[world, t]
                    damping = s.model.transmissions.damping[world, t]
                    demand = s.forces.torque[world, step, tree.velocities + t]
                    demand -= stiffness * transmission_displacement(work, s, world, row, t)
                    for k in range(tree.couplings):
                        if tree.coupling_target[k] == tree.velocities + t:
                            demand += tree.coupling_gain[k] * work.v[world, row, tree.coupling_source[k]]
                    speed = s.model.transmissions.max_speed[world, t]
                    if speed < UNLIMITED:
                        demand = wp.clamp(demand, -speed * damping, speed * damping)
                    else:
                        damping += remaining * stiffness
                    bias = -demand / damping
                    compliance = scalar(1.0) / (remaining * damping)
                elif kind == JOINT_EQUALITY:
                    lower = scalar(-UNLIMITED)
                    upper = scalar(UNLIMITED)
                    if is_flight != 0:
                        error = transmission_displacement(work, s, world, row, t)
                        bias = recovery * error / contact.events.remaining_time[world, 0]
                velocity = scalar(0.0)
                for k in range(s.model.transmissions.start[t], s.model.transmissions.start[t + 1]):
                    d = s.model.transmissions.velocity[k]
                    velocity += s.model.transmissions.coefficient[k] * work.v[world, row, d]
                contact.blocks.pair[world, slot] = s.model.candidates + t
                contact.blocks.law[world, slot] = BOUNDED
                contact.blocks.friction[world, slot] = scalar(0.0)
                contact.blocks.restitution[world, slot] = scalar(0.0)
                contact.blocks.initial_velocity[world, slot] = vec3(velocity, scalar(0.0), scalar(0.0))
                contact.blocks.velocity_bias[world, slot] = vec3(bias, scalar(0.0), scalar(0.0))
                contact.blocks.compliance[world, slot] = compliance
                contact.blocks.lower[world, slot] = lower
                contact.blocks.upper[world, slot] = upper


@wp.func
def add_compliance(contact: Contact, world: int, count: int):
    """Add the compliance of bounded rows to the diagonal of the Delassus matrix."""
    for c in range(count):
        if contact.blocks.law[world, c] == BOUNDED and contact.blocks.compliance[world, c] > scalar(0.0):
            block = contact.solver.delassus[world, c, c]
            block[0, 0] = block[0, 0] + contact.blocks.compliance[world, c]
            contact.solver.delassus[world, c, c] = block


@wp.func
def transmission_backward(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, row: int, c: int, recovery: scalar
):
    """Propagate the adjoints of block c in a flight to positions, controls and parameters; returns that of T."""
    t = contact.blocks.pair[world, c] - s.model.candidates
    kind = s.model.transmissions.kind[t]
    remaining = contact.events.remaining_time[world, row]
    velocity_bar = contact.adjoint.velocity_bar[world, c][0]
    lower_bar = contact.adjoint.lower_bar[world, c]
    upper_bar = contact.adjoint.upper_bar[world, c]
    remaining_bar = scalar(0.0)
    position_bar = scalar(0.0)
    if kind == JOINT_EQUALITY:
        position_bar = recovery * velocity_bar / contact.events.remaining_time[world, 0]
    else:
        if lower_bar != scalar(0.0):
            remaining_bar += s.model.transmissions.min_force[world, t] * lower_bar
        if upper_bar != scalar(0.0):
            remaining_bar += s.model.transmissions.max_force[world, t] * upper_bar
        if s.contact_gradients.is_requested != 0:
            s.contact_gradients.transmissions.min_force[world, t] = (
                s.contact_gradients.transmissions.min_force[world, t] + remaining * lower_bar
            )
            s.contact_gradients.transmissions.max_force[world, t] = (
                s.contact_gradients.transmissions.max_force[world, t] + remaining * upper_bar
            )
    if kind == SERVO:
        stiffness = s.model.transmissions.stiffness[world, t]
        position = transmission_displacement(work, s, world, row, t)
        compliance = contact.blocks.compliance[world, c]
        damping = scalar(1.0) / (remaining * compliance)
        compliance_bar = velocity_bar * contact.solver.impulse[world, c][0]
        damping_bar = (
            -(compliance * compliance_bar + contact.blocks.velocity_bias[world, c][0] * velocity_bar) / damping
        )
        demand_bar = -velocity_bar / damping
        remaining_bar -= compliance / remaining * compliance_bar
        stiffness_bar = scalar(0.0)
        speed = s.model.transmissions.max_speed[world, t]
        if speed < UNLIMITED:
            demanded_speed = -contact.blocks.velocity_bias[world, c][0]
            if wp.abs(demanded_speed) >= scalar(1.0 - 1.0e-6) * speed:
                # Up to rounding the demand is ±w c, independent of the spring and the control.
                side = wp.sign(demanded_speed)
                damping_bar += side * speed * demand_bar
                if s.contact_gradients.is_requested != 0:
                    s.contact_gradients.transmissions.max_speed[world, t] = (
                        s.contact_gradients.transmissions.max_speed[world, t] + side * damping * demand_bar
                    )
                demand_bar = scalar(0.0)
        else:
            remaining_bar += stiffness * damping_bar
            stiffness_bar = remaining * damping_bar
        position_bar = -stiffness * demand_bar
        column = tree.velocities + t
        s.gradients.torque[world, step, column] = s.gradients.torque[world, step, column] + demand_bar
        for k in range(tree.couplings):
            if tree.coupling_target[k] == column:
                d = tree.coupling_source[k]
                work.v_bar[world, row, d] = work.v_bar[world, row, d] + tree.coupling_gain[k] * demand_bar
        if s.contact_gradients.is_requested != 0:
            s.contact_gradients.transmissions.damping[world, t] = (
                s.contact_gradients.transmissions.damping[world, t] + damping_bar
            )
            stiffness_bar -= position * demand_bar
            s.contact_gradients.transmissions.stiffness[world, t] = (
                s.contact_gradients.transmissions.stiffness[world, t] + stiffness_bar
            )
    if position_bar != scalar(0.0):
        for k in range(s.model.transmissions.start[t], s.model.transmissions.start[t + 1]):
            d = s.model.transmissions.velocity[k]
            work.q_bar[world, row, d] = work.q_bar[world, row, d] + s.model.transmissions.coefficient[k] * position_bar
        if s.contact_gradients.is_requested != 0:
            s.contact_gradients.transmissions.reference[world, t] = (
                s.contact_gradients.transmissions.reference[world, t] - position_bar
            )
    return remaining_bar
