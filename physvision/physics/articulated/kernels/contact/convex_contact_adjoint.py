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
    add_bound_gradients,
    add_position_gradient,
    add_servo_gradients,
    add_velocity_gradient,
    demand_backward,
    limit_demand,
    servo_demand,
    servo_force,
    servo_force_backward,
    transmission_displacement,
)
from ..precision import scalar, vec3
from ..spatial.vectors import zero3
from ..structs import Contact, System, Tree, Workspace
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
    demand = servo_demand(tree, work, s, world, step, row, t)
    limited = limit_demand(s, world, t, demand)
    velocity = contact_velocity(tree, contact, world, c, work.v, row)[0]
    _force, slope = servo_force(s, world, t, limited, velocity)
    drag_bar = drag_interval * contact.convex.lag[world, c][0] * weight  # adjoint of the drag S′ c of the servo
    limited_bar = servo_force_backward(s, world, t, limited, velocity, weight, damping * drag_bar)
    add_velocity_gradient(work, s, world, row, t, -damping * limited_bar)
    limit_bar, position_bar = demand_backward(tree, work, s, world, step, row, t, demand, limited_bar)
    add_servo_gradients(s, world, t, scalar(0.0), slope * drag_bar - velocity * limited_bar + limit_bar)
    return position_bar


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
    if kind != JOINT_EQUALITY:
        z = scalar(0.0)
        add_bound_gradients(s, world, t, wp.where(mode == AT_LOWER, weight, z), wp.where(mode == AT_UPPER, weight, z))
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
    add_position_gradient(work, s, world, row, t, position_bar)
