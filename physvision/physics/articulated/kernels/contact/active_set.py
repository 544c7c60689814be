"""Modes of contacts (open, stick or slide): their verification and update, and projected Gauss–Seidel sweeps.

All functions work on one island, the blocks from `start` to `end` in `island_member`.
"""

import warp as wp

from ..precision import pyramidal, scalar, vec3
from ..spatial.vectors import zero3
from ..structs import CONTACT, OPEN, SLIDE, STICK, TORSIONAL_ROLLING, Contact
from .friction_pyramid import (
    max_diagonal,
    next_pyramid_mode,
    project_on_pyramid,
    projected_mode,
    pyramid_residual,
    pyramid_violation,
    sliding_mode,
)
from .noncontact_constraints import initialize_noncontact, sweep_noncontact, verify_noncontact
from .settings import SOLVER

# Results of `update_modes`.
CHANGED = wp.constant(0)
SETTLED = wp.constant(1)
LINEAR = wp.constant(2)

MODE_TOLERANCE = wp.constant(scalar(SOLVER.mode_tolerance))
NORMAL_RELAXATION = wp.constant(scalar(SOLVER.normal_relaxation))
MIN_DIVISOR = wp.constant(scalar(SOLVER.min_divisor))


@wp.func
def max_abs(a: vec3):
    """Return the largest absolute value of a vector's entries."""
    return wp.max(wp.abs(a[0]), wp.max(wp.abs(a[1]), wp.abs(a[2])))


@wp.func
def update_velocities(contact: Contact, world: int, start: int, end: int):
    """Compute velocity = A λ + b of all blocks."""
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        total = contact.blocks.free_velocity[world, c]
        for n in range(start, end):
            k = contact.solver.island_member[world, n]
            total = total + contact.solver.delassus[world, c, k] * contact.solver.impulse[world, k]
        contact.solver.velocity[world, c] = total


@wp.func
def gauss_seidel_sweep(contact: Contact, world: int, start: int, end: int, friction_scale: scalar):
    """Run one projected Gauss–Seidel sweep and store the resulting modes; returns the largest velocity change."""
    change = scalar(0.0)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        bound = friction_scale * contact.blocks.friction[world, c]
        delassus_block = contact.solver.delassus[world, c, c]
        previous = contact.solver.impulse[world, c]
        velocity = contact.blocks.free_velocity[world, c]
        for n in range(start, end):
            k = contact.solver.island_member[world, n]
            velocity = velocity + contact.solver.delassus[world, c, k] * contact.solver.impulse[world, k]
        if contact.blocks.law[world, c] != CONTACT:
            change = wp.max(change, sweep_noncontact(contact, world, c, friction_scale, velocity))
            continue
        normal = wp.max(scalar(0.0), previous[0] - NORMAL_RELAXATION * velocity[0] / delassus_block[0, 0])
        velocity = velocity + (normal - previous[0]) * vec3(
            delassus_block[0, 0], delassus_block[1, 0], delassus_block[2, 0]
        )
        stiffness = wp.max(delassus_block[1, 1] + delassus_block[2, 2], MIN_DIVISOR)  # for contacts without tangents
        first = previous[1] - velocity[1] / stiffness
        second = previous[2] - velocity[2] / stiffness
        length = wp.sqrt(first * first + second * second)
        bound = bound * normal
        mode = wp.int32(STICK)
        projected = vec3(normal, first, second)
        if wp.static(pyramidal):
            mode = projected_mode(normal, first, second, bound)
            projected = project_on_pyramid(normal, first, second, bound)
        else:
            if length > bound or bound <= scalar(0.0):
                mode = SLIDE
                factor_to_cone = bound / wp.max(length, MIN_DIVISOR)
                projected = vec3(normal, first * factor_to_cone, second * factor_to_cone)
            if normal <= scalar(0.0):
                mode = OPEN
        change = wp.max(change, wp.max(delassus_block[0, 0], stiffness) * max_abs(projected - previous))
        contact.solver.impulse[world, c] = projected
        contact.solver.mode[world, c] = mode
    return change


@wp.func
def friction_direction(contact: Contact, world: int, c: int):
    """Return length (first) and direction of A_nn λ_t − u_t, along which a contact slides."""
    weight = contact.solver.delassus[world, c, c][0, 0]
    y = weight * contact.solver.impulse[world, c] - contact.solver.velocity[world, c]
    length = wp.max(wp.sqrt(y[1] * y[1] + y[2] * y[2]), MIN_DIVISOR)
    return vec3(length, y[1] / length, y[2] / length)


@wp.func
def contact_mode(friction: scalar):
    """Return the mode in which a contact closes."""
    mode = wp.int32(STICK)
    if friction <= scalar(0.0):
        mode = SLIDE
        if wp.static(pyramidal):
            mode = sliding_mode(friction, friction)
    return mode


@wp.func
def verify_modes(contact: Contact, world: int, start: int, end: int, friction_scale: scalar, tolerance: scalar):
    """Return the largest violation of the modes, as a velocity, and store the modes to try next."""
    worst = scalar(0.0)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        if contact.blocks.law[world, c] != CONTACT:
            block_violation = verify_noncontact(contact, world, c, friction_scale, tolerance)
            contact.solver.mode_violation[world, c] = block_violation
            if not (block_violation <= worst):
                worst = block_violation
            continue
        friction = friction_scale * contact.blocks.friction[world, c]
        weight = contact.solver.delassus[world, c, c][0, 0]
        mode = contact.solver.mode[world, c]
        impulse = contact.solver.impulse[world, c]
        velocity = contact.solver.velocity[world, c]
        violation = scalar(0.0)
        residual = scalar(0.0)
        next_mode = mode
        if mode == OPEN:
            violation = -velocity[0]
            next_mode = contact_mode(friction)
        else:
            if wp.static(pyramidal):
                weight = max_diagonal(contact.solver.delassus[world, c, c])
                residual = max_abs(pyramid_residual(mode, weight, friction, impulse, velocity))
                violation = wp.max(
                    pyramid_violation(mode, 1, weight, friction, impulse, velocity),
                    pyramid_violation(mode, 2, weight, friction, impulse, velocity),
                )
                next_mode = next_pyramid_mode(mode, weight, friction, impulse, velocity, tolerance)
            else:
                # Sliding friction lies on the cone, sticking friction inside.
                along = friction_direction(contact, world, c)
                bound = weight * friction * impulse[0]
                if mode == STICK:
                    residual = max_abs(velocity)
                    violation = along[0] - bound
                    next_mode = SLIDE
                else:
                    sliding_residual = weight * impulse - bound * along
                    residual = wp.max(
                        wp.abs(velocity[0]), wp.max(wp.abs(sliding_residual[1]), wp.abs(sliding_residual[2]))
                    )
                    if friction > scalar(0.0):
                        violation = bound - along[0]
                    next_mode = STICK
            if impulse[0] < scalar(0.0):
                violation = -weight * impulse[0]
                next_mode = OPEN
        contact.solver.next_mode[world, c] = mode
        contact.solver.mode_violation[world, c] = violation
        if violation > tolerance:
            contact.solver.next_mode[world, c] = next_mode
        # NaN counts as larger.
        if not (wp.max(violation, residual) <= worst):
            worst = wp.max(violation, residual)
    return worst


@wp.func
def update_modes(contact: Contact, world: int, start: int, end: int, is_homotopy: bool, one_by_one: bool):
    """Adopt the modes that `verify_modes` stored, or only that with the largest violation if `one_by_one`.

    A contact that closes during a homotopy slides at first, since it has slipped and bears nothing yet: in sticking
    mode it may pull, open again, and so on forever. Returns CHANGED, SETTLED, or LINEAR if the equations are linear and
    unchanged.
    """
    worst_block = wp.int32(-1)
    if one_by_one:
        for m in range(start, end):
            c = contact.solver.island_member[world, m]
            if contact.solver.next_mode[world, c] != contact.solver.mode[world, c]:
                if (
                    worst_block < 0
                    or contact.solver.mode_violation[world, c]
                    > contact.solver.mode_violation[world, wp.max(worst_block, 0)]
                ):
                    worst_block = c
    changed = wp.int32(0)
    is_nonlinear = wp.int32(0)
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        mode = contact.solver.mode[world, c]
        if contact.solver.next_mode[world, c] != mode and (not one_by_one or c == worst_block):
            closes = mode == OPEN and contact.blocks.law[world, c] == CONTACT
            mode = contact.solver.next_mode[world, c]
            if is_homotopy and closes:
                mode = SLIDE
                if wp.static(pyramidal):
                    mode = sliding_mode(-contact.solver.velocity[world, c][1], -contact.solver.velocity[world, c][2])
            contact.solver.mode[world, c] = mode
            changed = 1
        if wp.static(not pyramidal):
            if mode == SLIDE and contact.blocks.friction[world, c] > scalar(0.0):
                is_nonlinear = 1
        if contact.blocks.law[world, c] == TORSIONAL_ROLLING and mode > STICK:
            is_nonlinear = 1
    result = wp.int32(LINEAR)
    if is_nonlinear != 0:
        result = SETTLED
    if changed != 0:
        result = CHANGED
    return result


@wp.func
def accept(contact: Contact, world: int, start: int, end: int):
    """Store the present impulses and modes as the best."""
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        contact.solver.best_impulse[world, c] = contact.solver.impulse[world, c]
        contact.solver.best_mode[world, c] = contact.solver.mode[world, c]


@wp.func
def initialize_modes(contact: Contact, world: int, start: int, end: int, friction_scale: scalar):
    """Set the impulses to zero, and close the contacts that approach."""
    for m in range(start, end):
        c = contact.solver.island_member[world, m]
        contact.solver.impulse[world, c] = zero3()
        contact.solver.velocity[world, c] = contact.blocks.free_velocity[world, c]
        contact.solver.mode[world, c] = OPEN
        if contact.blocks.law[world, c] != CONTACT:
            initialize_noncontact(contact, world, c)
        elif contact.blocks.free_velocity[world, c][0] < scalar(0.0):
            contact.solver.mode[world, c] = contact_mode(friction_scale * contact.blocks.friction[world, c])
