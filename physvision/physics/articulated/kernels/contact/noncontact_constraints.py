"""Blocks that are no contacts in the problem of `solver`: bounded rows, rotational friction and equality constraints.

A bounded row has one direction, whose impulse λ and velocity u, with its bias, obey

    lower ≤ λ ≤ upper,    u = 0 within,    u ≥ 0 at λ = lower,    u ≤ 0 at λ = upper:

dry friction of a joint, a servo with a force limit, an equality constraint between joints (infinite bounds). A
compliance ε, u + ε λ = 0, is on the diagonal of the Delassus matrix.

Rotational friction belongs to a contact with the normal impulse λ_n. Its three directions are the rotations about the
normal and about both tangents, with the lengths ρ and σ: |λ_0| ≤ ρ λ_n, against the sign of the spin u_0, and |(λ_1,
λ_2)| ≤ σ λ_n, against the rolling velocity (u_1, u_2), like the tangents of a contact.

An equality constraint between bodies has three rows that always stick.

Equations F(λ, u) = 0 of the modes, with a diagonal entry w of the Delassus matrix and y = w λ − u:

    sticks  u = 0      at a bound  w (λ − bound) = 0      spins or rolls  w (λ − ρ λ_n y/|y|) = 0.

F_u = 1 if it sticks, 0 at a bound; if it rolls w σ λ_n (1 − ŷ ŷᵀ)/|y|, and F_λ = w (1 − F_u). The dependence on λ_n is
−w ρ ŷ in the column of the contact.
"""

import warp as wp

from ..precision import mat33, scalar, vec3
from ..spatial.vectors import transpose_product, zero3
from ..structs import BOUNDED, LOWER, OPEN, STICK, TORSIONAL_ROLLING, UPPER, Contact
from .rotational_friction import MIN_WEIGHT, is_rolling, is_spinning, rolling_direction, rotational_mode, sign_or_one


@wp.func
def diagonal(x: scalar, y: scalar, z: scalar):
    """Return a diagonal matrix of three numbers."""
    o = scalar(0.0)
    return mat33(x, o, o, o, y, o, o, o, z)


@wp.func
def diagonal_weights(contact: Contact, world: int, c: int):
    """Return the diagonal entries of the block's Delassus matrix; the two tangents share their mean."""
    delassus_block = contact.solver.delassus[world, c, c]
    across = wp.max(scalar(0.5) * (delassus_block[1, 1] + delassus_block[2, 2]), MIN_WEIGHT)
    return vec3(wp.max(delassus_block[0, 0], MIN_WEIGHT), across, across)


@wp.func
def friction_drive(contact: Contact, world: int, c: int):
    """Return the velocity w λ − u, along which friction acts."""
    weight = diagonal_weights(contact, world, c)
    impulse = contact.solver.impulse[world, c]
    velocity = contact.solver.velocity[world, c]
    return vec3(
        weight[0] * impulse[0] - velocity[0], weight[1] * impulse[1] - velocity[1], weight[2] * impulse[2] - velocity[2]
    )


@wp.func
def rigid_share(contact: Contact, world: int, c: int):
    """Return the fraction of a bounded row's velocity that is not due to its compliance."""
    fraction = scalar(1.0)
    if contact.blocks.law[world, c] == BOUNDED:
        compliant_fraction = contact.blocks.compliance[world, c] / contact.solver.delassus[world, c, c][0, 0]
        fraction = wp.max(scalar(1.0) - compliant_fraction, scalar(0.0))
    return fraction


@wp.func
def initialize_noncontact(contact: Contact, world: int, c: int):
    """Set the initial mode without impulse; the mode of a contact is known before that of its rotational friction."""
    mode = wp.int32(STICK)
    if contact.blocks.law[world, c] == TORSIONAL_ROLLING:
        mode = rotational_mode(
            contact.blocks.torsional_friction[world, c] <= scalar(0.0),
            contact.blocks.rolling_friction[world, c] <= scalar(0.0),
        )
        if contact.solver.mode[world, contact.blocks.parent[world, c]] == OPEN:
            mode = OPEN
    contact.solver.mode[world, c] = mode


@wp.func
def sweep_noncontact(contact: Contact, world: int, c: int, friction_scale: scalar, velocity: vec3):
    """Project the impulse of a block with this velocity; returns the largest velocity change."""
    weight = diagonal_weights(contact, world, c)
    previous = contact.solver.impulse[world, c]
    projected = vec3(
        previous[0] - velocity[0] / weight[0],
        previous[1] - velocity[1] / weight[1],
        previous[2] - velocity[2] / weight[2],
    )
    mode = wp.int32(STICK)
    if contact.blocks.law[world, c] == BOUNDED:
        target = projected[0]
        projected = vec3(
            wp.clamp(target, contact.blocks.lower[world, c], contact.blocks.upper[world, c]), scalar(0.0), scalar(0.0)
        )
        if target <= contact.blocks.lower[world, c]:
            mode = LOWER
        elif target >= contact.blocks.upper[world, c]:
            mode = UPPER
    elif contact.blocks.law[world, c] == TORSIONAL_ROLLING:
        normal = friction_scale * contact.solver.impulse[world, contact.blocks.parent[world, c]][0]
        torsional_bound = contact.blocks.torsional_friction[world, c] * normal
        length = wp.sqrt(projected[1] * projected[1] + projected[2] * projected[2])
        rolling_bound = contact.blocks.rolling_friction[world, c] * normal
        spins = bool(wp.abs(projected[0]) >= torsional_bound)
        rolls = bool(length >= rolling_bound)
        factor = scalar(1.0)
        if rolls:
            factor = rolling_bound / wp.max(length, MIN_WEIGHT)
        mode = rotational_mode(spins, rolls)
        if contact.solver.mode[world, contact.blocks.parent[world, c]] == OPEN:
            mode = OPEN
        projected = vec3(
            wp.clamp(projected[0], -torsional_bound, torsional_bound), factor * projected[1], factor * projected[2]
        )
    contact.solver.impulse[world, c] = projected
    contact.solver.mode[world, c] = mode
    change = projected - previous
    return wp.max(weight[0] * wp.abs(change[0]), weight[1] * wp.max(wp.abs(change[1]), wp.abs(change[2])))


@wp.func
def noncontact_residual(contact: Contact, world: int, c: int, friction_scale: scalar):
    """Return F of a block that is not open."""
    weight = diagonal_weights(contact, world, c)
    impulse = contact.solver.impulse[world, c]
    residual = contact.solver.velocity[world, c]
    mode = contact.solver.mode[world, c]
    if contact.blocks.law[world, c] == BOUNDED:
        residual = vec3(residual[0], weight[0] * impulse[1], weight[0] * impulse[2])
        if mode == LOWER:
            residual[0] = weight[0] * (impulse[0] - contact.blocks.lower[world, c])
        elif mode == UPPER:
            residual[0] = weight[0] * (impulse[0] - contact.blocks.upper[world, c])
    elif contact.blocks.law[world, c] == TORSIONAL_ROLLING:
        y = friction_drive(contact, world, c)
        normal = friction_scale * contact.solver.impulse[world, contact.blocks.parent[world, c]][0]
        if is_spinning(mode):
            residual[0] = weight[0] * (
                impulse[0] - contact.blocks.torsional_friction[world, c] * normal * sign_or_one(y[0])
            )
        if is_rolling(mode):
            along = rolling_direction(y)
            bound = contact.blocks.rolling_friction[world, c] * normal
            residual[1] = weight[1] * (impulse[1] - bound * along[1])
            residual[2] = weight[2] * (impulse[2] - bound * along[2])
    return residual


@wp.func
def noncontact_velocity_derivative(contact: Contact, world: int, c: int, friction_scale: scalar):
    """Return F_u of a block that is not open."""
    z = scalar(0.0)
    unit = scalar(1.0)
    mode = contact.solver.mode[world, c]
    velocity_derivative = diagonal(unit, unit, unit)
    if contact.blocks.law[world, c] == BOUNDED:
        velocity_derivative = diagonal(unit, z, z)
        if mode != STICK:
            velocity_derivative = diagonal(z, z, z)
    elif contact.blocks.law[world, c] == TORSIONAL_ROLLING:
        first = unit
        if is_spinning(mode):
            first = z
        velocity_derivative = diagonal(first, unit, unit)
        if is_rolling(mode):
            along = rolling_direction(friction_drive(contact, world, c))
            normal = friction_scale * contact.solver.impulse[world, contact.blocks.parent[world, c]][0]
            bound = diagonal_weights(contact, world, c)[1] * contact.blocks.rolling_friction[world, c] * normal
            direction_rate = wp.clamp(bound / along[0], z, unit)
            cross = -direction_rate * along[1] * along[2]
            velocity_derivative = mat33(
                first, z, z,
                z, direction_rate * (unit - along[1] * along[1]), cross,
                z, cross, direction_rate * (unit - along[2] * along[2]),
            )  # fmt: skip
    return velocity_derivative


@wp.func
def noncontact_impulse_derivative(contact: Contact, world: int, c: int, velocity_derivative: mat33):
    """Return F_λ of a block that is not open, in its own impulse: w (1 − F_u) in the directions that do not stick."""
    weight = diagonal_weights(contact, world, c)
    unit = scalar(1.0)
    mode = contact.solver.mode[world, c]
    impulse_derivative = diagonal(weight[0] * (unit - velocity_derivative[0, 0]), weight[0], weight[0])
    if contact.blocks.law[world, c] != BOUNDED:
        impulse_derivative = diagonal(impulse_derivative[0, 0], scalar(0.0), scalar(0.0))
        if is_rolling(mode):
            w = weight[1]
            impulse_derivative = mat33(
                impulse_derivative[0, 0], scalar(0.0), scalar(0.0),
                scalar(0.0), w * (unit - velocity_derivative[1, 1]), -w * velocity_derivative[1, 2],
                scalar(0.0), -w * velocity_derivative[2, 1], w * (unit - velocity_derivative[2, 2]),
            )  # fmt: skip
    return impulse_derivative


@wp.func
def normal_coupling(contact: Contact, world: int, c: int, friction_scale: scalar):
    """Return the column of F_λ in the normal impulse of the contact that rotational friction belongs to."""
    coupling = zero3()
    if contact.blocks.law[world, c] == TORSIONAL_ROLLING:
        weight = diagonal_weights(contact, world, c)
        mode = contact.solver.mode[world, c]
        y = friction_drive(contact, world, c)
        if is_spinning(mode):
            coupling[0] = -friction_scale * weight[0] * contact.blocks.torsional_friction[world, c] * sign_or_one(y[0])
        if is_rolling(mode):
            along = rolling_direction(y)
            slope = -friction_scale * weight[1] * contact.blocks.rolling_friction[world, c]
            coupling[1] = slope * along[1]
            coupling[2] = slope * along[2]
    return coupling


@wp.func
def assemble_noncontact(
    contact: Contact, world: int, row: int, start: int, end: int, friction_scale: scalar, compliance: scalar
):
    """Write row number `row` of Newton's matrix, that of an active block, from column `start` to `end`."""
    c = contact.solver.active[world, row]
    velocity_derivative = noncontact_velocity_derivative(contact, world, c, friction_scale)
    for column in range(start, end):
        k = contact.solver.active[world, column]
        contact.solver.matrix[world, row, column] = velocity_derivative * contact.solver.delassus[world, c, k]
    impulse_derivative = noncontact_impulse_derivative(contact, world, c, velocity_derivative) + diagonal(
        compliance, compliance, compliance
    )
    contact.solver.matrix[world, row, row] = contact.solver.matrix[world, row, row] + impulse_derivative
    if contact.blocks.law[world, c] == TORSIONAL_ROLLING:
        coupling = normal_coupling(contact, world, c, friction_scale)
        z = scalar(0.0)
        for column in range(start, row):
            if contact.solver.active[world, column] == contact.blocks.parent[world, c]:
                contact.solver.matrix[world, row, column] = contact.solver.matrix[world, row, column] + mat33(
                    coupling[0], z, z, coupling[1], z, z, coupling[2], z, z
                )


@wp.func
def verify_bounded(contact: Contact, world: int, c: int, tolerance: scalar):
    """Return the violation of a bounded row's mode, as a velocity, and store the mode to try next."""
    mode = contact.solver.mode[world, c]
    weight = diagonal_weights(contact, world, c)[0] * rigid_share(contact, world, c)
    velocity = contact.solver.velocity[world, c][0] * rigid_share(contact, world, c)
    impulse = contact.solver.impulse[world, c][0]
    lower = contact.blocks.lower[world, c]
    upper = contact.blocks.upper[world, c]
    violation = scalar(0.0)
    residual = scalar(0.0)
    next_mode = wp.int32(STICK)
    if mode == STICK:
        residual = wp.abs(velocity)
        violation = weight * (lower - impulse)
        next_mode = LOWER
        if impulse > upper:
            violation = weight * (impulse - upper)
            next_mode = UPPER
    elif mode == LOWER:
        residual = weight * wp.abs(impulse - lower)
        violation = -velocity
    else:
        residual = weight * wp.abs(impulse - upper)
        violation = velocity
    contact.solver.next_mode[world, c] = mode
    if violation > tolerance:
        contact.solver.next_mode[world, c] = next_mode
    return wp.max(violation, residual)


@wp.func
def verify_rotational(contact: Contact, world: int, c: int, friction_scale: scalar, tolerance: scalar):
    """Return the violation of rotational friction, after that of its contact, and store the mode to try next."""
    mode = contact.solver.mode[world, c]
    parent = contact.blocks.parent[world, c]
    velocity = contact.solver.velocity[world, c]
    violation = scalar(0.0)
    torsional_friction = contact.blocks.torsional_friction[world, c]
    rolling_friction = contact.blocks.rolling_friction[world, c]
    if mode == OPEN:
        if contact.solver.mode[world, parent] != OPEN:
            if torsional_friction > scalar(0.0):
                violation = wp.abs(velocity[0])
            if rolling_friction > scalar(0.0):
                violation = wp.max(violation, wp.max(wp.abs(velocity[1]), wp.abs(velocity[2])))
        contact.solver.next_mode[world, c] = rotational_mode(
            torsional_friction <= scalar(0.0), rolling_friction <= scalar(0.0)
        )
    else:
        residual = noncontact_residual(contact, world, c, friction_scale)
        violation = wp.max(wp.abs(residual[0]), wp.max(wp.abs(residual[1]), wp.abs(residual[2])))
        weight = diagonal_weights(contact, world, c)
        y = friction_drive(contact, world, c)
        normal = friction_scale * contact.solver.impulse[world, parent][0]
        excess = wp.abs(y[0]) - weight[0] * torsional_friction * normal
        spins = bool(is_spinning(mode))
        if spins:
            excess = -excess
            if torsional_friction <= scalar(0.0):
                excess = scalar(0.0)
        violation = wp.max(violation, excess)
        if excess > tolerance:
            spins = not spins
        excess = rolling_direction(y)[0] - weight[1] * rolling_friction * normal
        rolls = bool(is_rolling(mode))
        if rolls:
            excess = -excess
            if rolling_friction <= scalar(0.0):
                excess = scalar(0.0)
        violation = wp.max(violation, excess)
        if excess > tolerance:
            rolls = not rolls
        contact.solver.next_mode[world, c] = rotational_mode(spins, rolls)
    if contact.solver.next_mode[world, parent] == OPEN:
        contact.solver.next_mode[world, c] = OPEN
    return violation


@wp.func
def verify_noncontact(contact: Contact, world: int, c: int, friction_scale: scalar, tolerance: scalar):
    """Return the violation of a block's mode, as a velocity, and store the mode to try next."""
    violation = scalar(0.0)
    if contact.blocks.law[world, c] == BOUNDED:
        violation = verify_bounded(contact, world, c, tolerance)
    elif contact.blocks.law[world, c] == TORSIONAL_ROLLING:
        violation = verify_rotational(contact, world, c, friction_scale, tolerance)
    else:
        velocity = contact.solver.velocity[world, c]
        violation = wp.max(wp.abs(velocity[0]), wp.max(wp.abs(velocity[1]), wp.abs(velocity[2])))
        contact.solver.next_mode[world, c] = STICK
    return violation


@wp.func
def clear_noncontact_adjoint(contact: Contact, world: int, c: int):
    """Clear the adjoints of a block's own parameters."""
    contact.adjoint.lower_bar[world, c] = scalar(0.0)
    contact.adjoint.upper_bar[world, c] = scalar(0.0)


@wp.func
def noncontact_backward(contact: Contact, world: int, c: int, y: vec3):
    """Compute velocity_bar and the adjoints of the parameters (two frictions or bounds) from the adjoint y of F.

    F falls by w with a bound, and by w λ_n times the direction with a length of rotational friction.
    """
    contact.adjoint.velocity_bar[world, c] = -transpose_product(
        noncontact_velocity_derivative(contact, world, c, scalar(1.0)), y
    )
    weight = diagonal_weights(contact, world, c)
    mode = contact.solver.mode[world, c]
    if contact.blocks.law[world, c] == BOUNDED:
        if mode == LOWER:
            contact.adjoint.lower_bar[world, c] = weight[0] * y[0]
        elif mode == UPPER:
            contact.adjoint.upper_bar[world, c] = weight[0] * y[0]
    elif contact.blocks.law[world, c] == TORSIONAL_ROLLING:
        normal = contact.solver.impulse[world, contact.blocks.parent[world, c]][0]
        drive = friction_drive(contact, world, c)
        if is_spinning(mode):
            contact.adjoint.lower_bar[world, c] = weight[0] * normal * sign_or_one(drive[0]) * y[0]
        if is_rolling(mode):
            along = rolling_direction(drive)
            contact.adjoint.upper_bar[world, c] = weight[1] * normal * (along[1] * y[1] + along[2] * y[2])
