"""Adjoint of the forces of convex contact at the solution, for weights w = −J λ (`rollouts/convex_contact.py`).

Each function adds the derivative of w · F(q, v, parameters) at fixed accelerations, with F and its derivatives of
`convex_contact`: F depends on the velocity u and the acceleration α of its rows, on the error and on parameters. The
Jacobian enters through u, α and w, which are motions of the tree: their derivatives are those of powers of forces
(`contact_power_adjoint`), with −b K w for u, −K w for α and −F for λ.
"""

import warp as wp

from ..collision.contact_power_adjoint import contact_power_backward
from ..collision.contact_primitives import WeightedForces
from ..dynamics.transmissions import (
    DRY_FRICTION,
    JOINT_EQUALITY,
    SERVO,
    UNLIMITED,
    transmission_displacement,
)
from ..precision import scalar, vec3
from ..spatial.vectors import zero3
from ..structs import Contact, System, Tree, Workspace
from .compliant_rows import servo_demand
from .convex_contact import (
    AT_LOWER,
    AT_UPPER,
    FREE_FORCE,
    block_force,
    block_product,
    companion_entry,
    error_gradient,
    friction_gradient,
)
from .delassus import add_jacobian_transpose, contact_velocity


@wp.func(inline=True)
def contact_block_backward(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, c: int):
    """Propagate through the force of a contact, with its rotational friction, or of a joint limit."""
    pair = contact.blocks.pair[world, c]
    companion = contact.convex.companion[world, c]
    mode = contact.solver.mode[world, c]
    ratio = s.model.convex.friction_ratio
    reference = s.model.convex.reference[pair]
    lag = contact.convex.lag[world, c]
    angular = companion_entry(contact, world, c, contact.convex.lag)
    weight = -contact_velocity(tree, contact, world, c, work.multiplier, row)
    angular_weight = zero3()
    if companion >= 0:
        angular_weight = -contact_velocity(tree, contact, world, companion, work.multiplier, row)
    force, moment = block_force(contact, world, c, ratio, mode, lag, angular)
    product, angular_product = block_product(contact, world, c, ratio, mode, lag, angular, weight, angular_weight)
    power = wp.dot(weight, force) + wp.dot(angular_weight, moment)
    separation_bar = error_gradient(
        reference, s.model.convex.impedance[pair], s.model.convex.curve[pair],
        contact.detection.separation[world, pair], product[0], power
    )  # fmt: skip
    for part in range(1 + wp.int32(companion >= 0)):
        block = wp.int32(c)
        if part == 1:
            block = companion
            product = angular_product
            force = moment
            separation_bar = scalar(0.0)
        velocity_bar = -reference[1] * product
        add_jacobian_transpose(tree, contact, world, block, velocity_bar, work.v_bar, row)
        forces = wp.matrix_from_rows(velocity_bar, -product, -force)
        weights = WeightedForces(0, 1, 2, forces, scalar(part), zero3(), zero3())
        contact_power_backward(tree, work, contact, s, world, row, pair, weights, separation_bar)
    if s.contact_gradients.is_requested != 0 and pair < s.model.pairs.count:
        bars = friction_gradient(contact, world, c, ratio, mode, lag, angular, weight, angular_weight, power)
        s.contact_gradients.pairs.friction[world, pair] = s.contact_gradients.pairs.friction[world, pair] + bars[0]
        s.contact_gradients.pairs.torsional_friction[world, pair] = (
            s.contact_gradients.pairs.torsional_friction[world, pair] + bars[1]
        )
        s.contact_gradients.pairs.rolling_friction[world, pair] = (
            s.contact_gradients.pairs.rolling_friction[world, pair] + bars[2]
        )


@wp.func(inline=True)
def servo_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    row: int,
    c: int,
    weight: scalar,
    drag_interval: scalar,
):
    """Propagate through a servo's force within its bounds to parameters; returns the adjoint of its position."""
    t = contact.blocks.pair[world, c] - s.model.candidates
    damping = s.model.transmissions.damping[world, t]
    speed = s.model.transmissions.max_speed[world, t]
    demand = servo_demand(tree, work, s, world, step, row, t)
    velocity = contact_velocity(tree, contact, world, c, work.v, row)[0]
    damping_bar = weight * (drag_interval * contact.convex.lag[world, c][0] - velocity)
    demand_bar = weight
    add_jacobian_transpose(tree, contact, world, c, vec3(-damping * weight, scalar(0.0), scalar(0.0)), work.v_bar, row)
    if speed < UNLIMITED and wp.abs(demand) >= speed * damping:
        side = wp.sign(demand)
        damping_bar += side * speed * weight
        if s.contact_gradients.is_requested != 0:
            s.contact_gradients.transmissions.max_speed[world, t] = (
                s.contact_gradients.transmissions.max_speed[world, t] + side * damping * weight
            )
        demand_bar = scalar(0.0)
    column = tree.velocities + t
    s.gradients.torque[world, step, column] = s.gradients.torque[world, step, column] + demand_bar
    for k in range(tree.couplings):
        if tree.coupling_target[k] == column:
            d = tree.coupling_source[k]
            work.v_bar[world, row, d] = work.v_bar[world, row, d] + tree.coupling_gain[k] * demand_bar
    if s.contact_gradients.is_requested != 0:
        position = transmission_displacement(work, s, world, row, t)
        s.contact_gradients.transmissions.damping[world, t] = (
            s.contact_gradients.transmissions.damping[world, t] + damping_bar
        )
        s.contact_gradients.transmissions.stiffness[world, t] = (
            s.contact_gradients.transmissions.stiffness[world, t] - position * demand_bar
        )
    return -s.model.transmissions.stiffness[world, t] * demand_bar


@wp.func(inline=True)
def transmission_row_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    row: int,
    c: int,
    drag_interval: scalar,
):
    """Propagate through the force of a transmission, whose Jacobian is constant."""
    t = contact.blocks.pair[world, c] - s.model.candidates
    kind = s.model.transmissions.kind[t]
    mode = contact.solver.mode[world, c]
    weight = -contact_velocity(tree, contact, world, c, work.multiplier, row)[0]
    position_bar = scalar(0.0)
    if s.contact_gradients.is_requested != 0 and kind != JOINT_EQUALITY:
        if mode == AT_LOWER:
            s.contact_gradients.transmissions.min_force[world, t] = (
                s.contact_gradients.transmissions.min_force[world, t] + weight
            )
        elif mode == AT_UPPER:
            s.contact_gradients.transmissions.max_force[world, t] = (
                s.contact_gradients.transmissions.max_force[world, t] + weight
            )
    if mode == FREE_FORCE:
        if kind == SERVO:
            position_bar = servo_backward(tree, work, contact, s, world, step, row, c, weight, drag_interval)
        else:
            parameters = s.model.candidates + t
            reference = s.model.convex.reference[parameters]
            product = contact.convex.edge_stiffness[world, c] * weight
            add_jacobian_transpose(
                tree, contact, world, c, vec3(-reference[1] * product, scalar(0.0), scalar(0.0)), work.v_bar, row
            )
            if kind != DRY_FRICTION:
                position_bar = error_gradient(
                    reference,
                    s.model.convex.impedance[parameters],
                    s.model.convex.curve[parameters],
                    transmission_displacement(work, s, world, row, t),
                    product,
                    product * contact.convex.lag[world, c][0],
                )
    if position_bar != scalar(0.0):
        for k in range(s.model.transmissions.start[t], s.model.transmissions.start[t + 1]):
            d = s.model.transmissions.velocity[k]
            work.q_bar[world, row, d] = work.q_bar[world, row, d] + s.model.transmissions.coefficient[k] * position_bar
        if s.contact_gradients.is_requested != 0:
            s.contact_gradients.transmissions.reference[world, t] = (
                s.contact_gradients.transmissions.reference[world, t] - position_bar
            )
