"""Adjoint of the forces of convex contact at the solution, for weights w = −J λ (`rollouts/convex_contact.py`).

Each function adds the derivative of w · F(q, v, parameters) at fixed accelerations, with F and its derivatives of
`convex_contact`: F depends on the velocity u and the acceleration α of its rows, on the error and on parameters. The
Jacobian enters through u, α and w, which are motions of the tree: their derivatives are those of powers of forces
(`contact_power_adjoint`), with −b K w for u, −K w for α and −F for λ.

For a weld with E = B* ⊗ A and forces N in its rows (`compliant_rows`), the moments are τ = Gᵀ N in world axes, and a
rotation φ_a, φ_b of the frames changes N · G ω and g · e with β = Bᵀ (φ_a − φ_b) and y = Bᵀ ω by

    σ/4 (−(N · y) vec(E) + E_w N × y + vec(E) × (N × y)) · β + (τ × ω) · φ_b,    σ/2 (E_w g + vec(E) × g) · β.
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
from ..precision import mat33, scalar, vec3
from ..spatial.vectors import transpose_product, zero3
from ..structs import Contact, System, Tree, Workspace
from .compliant_rows import loop_errors, servo_demand, weld_quaternion, weld_rate
from .convex_contact import (
    AT_LOWER,
    AT_UPPER,
    FREE_FORCE,
    block_force,
    block_product,
    companion_entry,
    error_gradient,
    friction_gradient,
    impedance,
)
from .delassus import add_jacobian_transpose, contact_velocity
from .equality import equality_power_backward


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


@wp.func(inline=True)
def frame_rotation(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, t: int, motion: int):
    """Return ω_a − ω_b of the frames of equality constraint t in a motion, a row of `step_velocity`."""
    total = zero3()
    for side in range(2):
        shape = s.model.equalities.first[t]
        if side == 1:
            shape = s.model.equalities.second[t]
        i = s.model.shapes.link[shape]
        while i >= 0:
            for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                rate = scalar(1 - 2 * side) * work.step_velocity[world, motion, d]
                total = total + rate * work.axis_angular[world, d]
            i = tree.parent[i]
    return total


@wp.func(inline=True)
def loop_rows_backward(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, c: int):
    """Propagate through the forces of a loop constraint: block c of its positions and, of a weld, the next block."""
    number = contact.blocks.pair[world, c] - s.model.candidates - s.model.transmissions.count
    t = number / 2
    is_weld = s.model.equalities.is_weld[t]
    if number % 2 == 0:
        parameters = s.model.candidates + s.model.transmissions.count + t
        reference = s.model.convex.reference[parameters]
        distance, orientation, size = loop_errors(contact, s, world, t)
        ratio, slope = impedance(
            reference, s.model.convex.impedance[parameters], s.model.convex.curve[parameters], size
        )
        pull = scalar(0.0)  # derivative with respect to the length of the errors
        for part in range(1 + is_weld):
            stiffness = contact.convex.edge_stiffness[world, c + part]
            product = -stiffness * contact_velocity(tree, contact, world, c + part, work.multiplier, row)
            error = distance
            if part == 1:
                error = orientation
            pull += wp.dot(product, contact.convex.lag[world, c + part]) / (ratio * (scalar(1.0) - ratio))
            pull -= reference[0] * wp.dot(product, error)
        pull = pull * slope
        if size > scalar(0.0):
            pull = pull / size
        for part in range(1 + is_weld):
            stiffness = contact.convex.edge_stiffness[world, c + part]
            product = -stiffness * contact_velocity(tree, contact, world, c + part, work.multiplier, row)
            error = distance
            if part == 1:
                error = orientation
            error_bar = pull * error - (reference[0] * ratio) * product
            velocity_bar = -reference[1] * product
            add_jacobian_transpose(tree, contact, world, c + part, velocity_bar, work.v_bar, row)
            forces = wp.matrix_from_rows(velocity_bar, -product, -stiffness * contact.convex.lag[world, c + part])
            first_bar = zero3()
            second_bar = zero3()
            if part == 1:
                quaternion = weld_quaternion(contact, s, world, t)
                vector = vec3(quaternion[1], quaternion[2], quaternion[3])
                rate = weld_rate(contact, s, world, t, quaternion)
                second = contact.detection.shape_rotation[world, s.model.equalities.second[t]]
                half_scale = scalar(0.5) * s.model.equalities.torque_scale[t]
                local_bar = half_scale * (quaternion[0] * error_bar + wp.cross(vector, error_bar))
                moments = mat33()
                for motion in range(3):
                    rotation = frame_rotation(tree, work, contact, s, world, t, motion)
                    local = transpose_product(second, rotation)
                    force = vec3(forces[motion, 0], forces[motion, 1], forces[motion, 2])
                    crossed = wp.cross(force, local)
                    change = quaternion[0] * crossed + wp.cross(vector, crossed) - wp.dot(force, local) * vector
                    local_bar = local_bar + (scalar(0.5) * half_scale) * change
                    moment = transpose_product(rate, force)
                    second_bar = second_bar + wp.cross(moment, rotation)
                    for k in range(3):
                        moments[motion, k] = moment[k]
                first_bar = second * local_bar
                second_bar = second_bar - first_bar
                forces = moments
                error_bar = zero3()
            weights = WeightedForces(0, 1, 2, forces, scalar(part), zero3(), zero3())
            equality_power_backward(tree, work, contact, s, world, row, t, weights, error_bar, first_bar, second_bar)
