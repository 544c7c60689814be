"""Transmissions: bounded rows along fixed linear combinations of joint velocities.

The row of a transmission with coefficients s has the velocity u = s · q̇ and, for revolute and prismatic joints, the
displacement p = s · q − reference. Its force f acts on the joints as s f. Over the remaining time T of a step, with the
acceleration a and the impulse λ = T f:

    DRY_FRICTION     min ≤ f ≤ max against all motion: u + T s·a = 0 within the bounds.
    SERVO            f = g − k p′ − c u′ between the bounds, at the end of the step: p′ = p + T u′, u′ = u + T s·a, thus
                     u′ + ε λ + b = 0 with B = c + T k, ε = 1/(T B), b = −(g − k p)/B.
                     With a speed limit w the spring acts at the start of the flight, so that the demanded speed is
                     known: f = c (z − u′), z = (g − k p)/c clamped to ±w; that is B = c and b = −z.
                     With smooth saturation f = S(x′), x = g − k p − c u, linearized about the start of the flight: f =
                     S(x) + S′(x) (x′ − x), thus B = S′(x) (c + T k), b = −(S(x) + S′(x) c u)/B, within the bounds.
    JOINT_EQUALITY   p = 0 at any force, in impacts too; a fraction of the error is recovered, as of a penetration:
                     u′ + κ p/h = 0.
    LENGTH_LIMIT     p ≥ 0: no row here, but a candidate for a contact (`collision/joint_limits.py`).

S(x) = x / √(1 + (x/max)²), with min where x < 0. The rows enter the contact problem as blocks with one direction. The
chain rule on ε, b, T · min and T · max completes the adjoint, given ū of u′ and the adjoints of the bounds of λ.
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
def saturate(x: scalar, low: scalar, high: scalar):
    """Return S(x) between low < 0 < high with its first and second derivative, and ∂S and ∂S′ by the bound's size."""
    unit = scalar(1.0)
    size = wp.where(x > scalar(0.0), high, -low)
    ratio = x / size
    shrinkage = unit / wp.sqrt(unit + ratio * ratio)
    cube = shrinkage * shrinkage * shrinkage
    curvature = scalar(-3.0) * ratio * cube * shrinkage * shrinkage / size
    return x * shrinkage, cube, curvature, ratio * ratio * ratio * cube, -ratio * curvature


@wp.func
def servo_demand(tree: Tree, work: Workspace, s: System, world: int, step: int, row: int, t: int):
    """Return the force g − k p that a servo demands, before the limit of its speed, without its damping."""
    demand = s.forces.torque[world, step, tree.velocities + t]
    demand -= s.model.transmissions.stiffness[world, t] * transmission_displacement(work, s, world, row, t)
    for k in range(tree.couplings):
        if tree.coupling_target[k] == tree.velocities + t:
            demand += tree.coupling_gain[k] * work.v[world, row, tree.coupling_source[k]]
    return demand


@wp.func
def limit_demand(s: System, world: int, t: int, demand: scalar):
    """Return the demand of a servo within the limit of its speed."""
    limited = scalar(demand)
    speed = s.model.transmissions.max_speed[world, t]
    if speed < UNLIMITED:
        bound = speed * s.model.transmissions.damping[world, t]
        if s.model.transmissions.is_smooth[t] != 0:
            limited, _slope, _curvature, _bound, _slope_bound = saturate(demand, -bound, bound)
        else:
            limited = wp.clamp(demand, -bound, bound)
    return limited


@wp.func
def servo_force(s: System, world: int, t: int, demand: scalar, velocity: scalar):
    """Return the force of a servo at the start of a flight, before hard bounds, and its derivative by g − k p − c u."""
    force = demand - s.model.transmissions.damping[world, t] * velocity
    slope = scalar(1.0)
    if s.model.transmissions.is_smooth[t] != 0:
        low = s.model.transmissions.min_force[world, t]
        force, slope, _curvature, _bound, _slope_bound = saturate(force, low, s.model.transmissions.max_force[world, t])
    return force, slope


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
                velocity = scalar(0.0)
                for k in range(s.model.transmissions.start[t], s.model.transmissions.start[t + 1]):
                    d = s.model.transmissions.velocity[k]
                    velocity += s.model.transmissions.coefficient[k] * work.v[world, row, d]
                if kind == SERVO:
                    damping = s.model.transmissions.damping[world, t]
                    demand = limit_demand(s, world, t, servo_demand(tree, work, s, world, step, row, t))
                    slope = scalar(1.0)
                    if s.model.transmissions.is_smooth[t] != 0:
                        demand, slope = servo_force(s, world, t, demand, velocity)
                        demand += slope * damping * velocity
                    if s.model.transmissions.max_speed[world, t] >= UNLIMITED:
                        damping += remaining * s.model.transmissions.stiffness[world, t]
                    bias = -demand / (slope * damping)
                    compliance = scalar(1.0) / (remaining * slope * damping)
                elif kind == JOINT_EQUALITY:
                    lower = scalar(-UNLIMITED)
                    upper = scalar(UNLIMITED)
                    if is_flight != 0:
                        error = transmission_displacement(work, s, world, row, t)
                        bias = recovery * error / contact.events.remaining_time[world, 0]
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
def add_bound_gradients(s: System, world: int, t: int, lower_bar: scalar, upper_bar: scalar):
    """Add the derivatives with respect to the bounds of the force."""
    if s.contact_gradients.is_requested != 0:
        s.contact_gradients.transmissions.min_force[world, t] = (
            s.contact_gradients.transmissions.min_force[world, t] + lower_bar
        )
        s.contact_gradients.transmissions.max_force[world, t] = (
            s.contact_gradients.transmissions.max_force[world, t] + upper_bar
        )


@wp.func
def add_velocity_gradient(work: Workspace, s: System, world: int, row: int, t: int, velocity_bar: scalar):
    """Add the adjoint of the velocity of a transmission to v_bar[row]."""
    for k in range(s.model.transmissions.start[t], s.model.transmissions.start[t + 1]):
        d = s.model.transmissions.velocity[k]
        bar = s.model.transmissions.coefficient[k] * velocity_bar
        work.v_bar[world, row, d] = work.v_bar[world, row, d] + bar


@wp.func
def add_position_gradient(work: Workspace, s: System, world: int, row: int, t: int, position_bar: scalar):
    """Add the adjoint of the displacement of a transmission to q_bar[row] and to its reference."""
    if position_bar != scalar(0.0):
        for k in range(s.model.transmissions.start[t], s.model.transmissions.start[t + 1]):
            d = s.model.transmissions.velocity[k]
            work.q_bar[world, row, d] = work.q_bar[world, row, d] + s.model.transmissions.coefficient[k] * position_bar
        if s.contact_gradients.is_requested != 0:
            s.contact_gradients.transmissions.reference[world, t] = (
                s.contact_gradients.transmissions.reference[world, t] - position_bar
            )


@wp.func
def servo_force_backward(
    s: System, world: int, t: int, demand: scalar, velocity: scalar, force_bar: scalar, slope_bar: scalar
):
    """Propagate the adjoints of `servo_force` to the bounds; returns that of g − k p − c u."""
    bar = scalar(force_bar)
    if s.model.transmissions.is_smooth[t] != 0:
        _force, slope, curvature, bound_force, bound_slope = saturate(
            demand - s.model.transmissions.damping[world, t] * velocity,
            s.model.transmissions.min_force[world, t],
            s.model.transmissions.max_force[world, t],
        )
        bar = slope * force_bar + curvature * slope_bar
        bound_bar = bound_force * force_bar + bound_slope * slope_bar
        if demand > s.model.transmissions.damping[world, t] * velocity:
            add_bound_gradients(s, world, t, scalar(0.0), bound_bar)
        else:
            add_bound_gradients(s, world, t, -bound_bar, scalar(0.0))
    return bar


@wp.func
def demand_backward(
    tree: Tree,
    work: Workspace,
    s: System,
    world: int,
    step: int,
    row: int,
    t: int,
    demand: scalar,
    limited_bar: scalar,
):
    """Propagate the adjoint of a limited demand to control, couplings, stiffness and the largest speed.

    Returns the adjoints of the damping, in the limit of the speed, and of the displacement.
    """
    demand_bar = scalar(limited_bar)
    damping_bar = scalar(0.0)
    damping = s.model.transmissions.damping[world, t]
    speed = s.model.transmissions.max_speed[world, t]
    if speed < UNLIMITED:
        bound = speed * damping
        bound_bar = scalar(0.0)
        if s.model.transmissions.is_smooth[t] != 0:
            _value, slope, _curvature, bound_slope, _change = saturate(demand, -bound, bound)
            bound_bar = bound_slope * limited_bar
            demand_bar = slope * limited_bar
        elif wp.abs(demand) >= bound:
            bound_bar = wp.sign(demand) * limited_bar
            demand_bar = scalar(0.0)
        damping_bar = speed * bound_bar
        if s.contact_gradients.is_requested != 0:
            s.contact_gradients.transmissions.max_speed[world, t] = (
                s.contact_gradients.transmissions.max_speed[world, t] + damping * bound_bar
            )
    column = tree.velocities + t
    s.gradients.torque[world, step, column] = s.gradients.torque[world, step, column] + demand_bar
    for k in range(tree.couplings):
        if tree.coupling_target[k] == column:
            d = tree.coupling_source[k]
            work.v_bar[world, row, d] = work.v_bar[world, row, d] + tree.coupling_gain[k] * demand_bar
    if s.contact_gradients.is_requested != 0:
        position = transmission_displacement(work, s, world, row, t)
        s.contact_gradients.transmissions.stiffness[world, t] = (
            s.contact_gradients.transmissions.stiffness[world, t] - position * demand_bar
        )
    return damping_bar, -s.model.transmissions.stiffness[world, t] * demand_bar


@wp.func
def add_servo_gradients(s: System, world: int, t: int, stiffness_bar: scalar, damping_bar: scalar):
    """Add the derivatives with respect to stiffness and damping."""
    if s.contact_gradients.is_requested != 0:
        s.contact_gradients.transmissions.stiffness[world, t] = (
            s.contact_gradients.transmissions.stiffness[world, t] + stiffness_bar
        )
        s.contact_gradients.transmissions.damping[world, t] = (
            s.contact_gradients.transmissions.damping[world, t] + damping_bar
        )


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
        add_bound_gradients(s, world, t, remaining * lower_bar, remaining * upper_bar)
    if kind == SERVO:
        stiffness = s.model.transmissions.stiffness[world, t]
        damping = s.model.transmissions.damping[world, t]
        # b = −G/B and ε = 1/(T B), with the force G + … at the start and B = S′ (c + T k).
        compliance = contact.blocks.compliance[world, c]
        total = scalar(1.0) / (remaining * compliance)
        compliance_bar = velocity_bar * contact.solver.impulse[world, c][0]
        total_bar = -(compliance * compliance_bar + contact.blocks.velocity_bias[world, c][0] * velocity_bar) / total
        remaining_bar -= compliance / remaining * compliance_bar
        force_bar = -velocity_bar / total
        demand = servo_demand(tree, work, s, world, step, row, t)
        limited_bar = force_bar
        damping_bar = scalar(0.0)
        slope = scalar(1.0)
        if s.model.transmissions.is_smooth[t] != 0:
            velocity = contact.blocks.initial_velocity[world, c][0]
            limited = limit_demand(s, world, t, demand)
            _force, slope = servo_force(s, world, t, limited, velocity)
            slope_bar = damping * velocity * force_bar + total / slope * total_bar
            limited_bar = servo_force_backward(s, world, t, limited, velocity, force_bar, slope_bar)
            damping_bar = (slope * force_bar - limited_bar) * velocity
            add_velocity_gradient(work, s, world, row, t, (slope * force_bar - limited_bar) * damping)
        damping_bar += slope * total_bar
        stiffness_bar = scalar(0.0)
        if s.model.transmissions.max_speed[world, t] >= UNLIMITED:
            remaining_bar += slope * stiffness * total_bar
            stiffness_bar = slope * remaining * total_bar
        limit_bar, position_bar = demand_backward(tree, work, s, world, step, row, t, demand, limited_bar)
        add_servo_gradients(s, world, t, stiffness_bar, damping_bar + limit_bar)
    add_position_gradient(work, s, world, row, t, position_bar)
    return remaining_bar
