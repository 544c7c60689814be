"""What each contact does (open, stick or slide), how far that is from the truth, and sweeps that find it roughly.

All functions are about one island, the contacts from `start` to `end` in `member`.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, pyramidal, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import zero3
from physvision.physics.articulated.kernels.structs import OPEN, SLIDES, STICKS, TOUCHES, TURNS, ContactMemory

from .friction_pyramid import (
    beyond,
    judged_mode,
    project,
    projected_mode,
    pyramid_equations,
    rubbing_mode,
    stiffest,
)
from .noncontact_constraints import (
    begin_beside,
    judge_beside,
    sweep_beside,
)

# What `take_modes` tells.
CHANGED = wp.constant(0)
SETTLED = wp.constant(1)
LINEAR = wp.constant(2)

EXACT = wp.constant(scalar(1.0e-11 if DOUBLE else 1.0e-4))  # residual of velocities, of the largest there is
RELAXED = wp.constant(scalar(0.7))  # below one, or a foot that friction presses down is pushed and left in turn
LEAST = wp.constant(scalar(1.0e-300 if DOUBLE else 1.0e-30))


@wp.func
def largest(a: vec3):
    return wp.max(wp.abs(a[0]), wp.max(wp.abs(a[1]), wp.abs(a[2])))


@wp.func
def find_slip(memory: ContactMemory, world: int, start: int, end: int):
    """Slip = A λ + b."""
    for m in range(start, end):
        c = memory.member[world, m]
        total = memory.drive[world, c]
        for n in range(start, end):
            k = memory.member[world, n]
            total = total + memory.delassus[world, c, k] * memory.impulse[world, k]
        memory.slip[world, c] = total


@wp.func
def sweep(memory: ContactMemory, world: int, start: int, end: int, share: scalar):
    """One projected sweep over all contacts; notes the mode each was left in. How much velocities changed at most."""
    change = scalar(0.0)
    for m in range(start, end):
        c = memory.member[world, m]
        bound = share * memory.friction[world, c]
        own = memory.delassus[world, c, c]
        was = memory.impulse[world, c]
        slip = memory.drive[world, c]
        for n in range(start, end):
            k = memory.member[world, n]
            slip = slip + memory.delassus[world, c, k] * memory.impulse[world, k]
        if memory.law[world, c] != TOUCHES:
            change = wp.max(change, sweep_beside(memory, world, c, share, slip))
            continue
        normal = wp.max(scalar(0.0), was[0] - RELAXED * slip[0] / own[0, 0])
        slip = slip + (normal - was[0]) * vec3(own[0, 0], own[1, 0], own[2, 0])
        stiff = wp.max(own[1, 1] + own[2, 2], LEAST)  # nothing where there is no tangent
        first = was[1] - slip[1] / stiff
        second = was[2] - slip[2] / stiff
        length = wp.sqrt(first * first + second * second)
        bound = bound * normal
        mode = wp.int32(STICKS)
        found = vec3(normal, first, second)
        if wp.static(pyramidal):
            mode = projected_mode(normal, first, second, bound)
            found = project(normal, first, second, bound)
        else:
            if length > bound or bound <= scalar(0.0):
                mode = SLIDES
                factor_to_cone = bound / wp.max(length, LEAST)
                found = vec3(normal, first * factor_to_cone, second * factor_to_cone)
            if normal <= scalar(0.0):
                mode = OPEN
        change = wp.max(change, wp.max(own[0, 0], stiff) * largest(found - was))
        memory.impulse[world, c] = found
        memory.mode[world, c] = mode
    return change


@wp.func
def projected(memory: ContactMemory, world: int, c: int):
    """Direction (second and third number) and length (first) of A_nn λ_t − u_t, along which a contact rubs."""
    weight = memory.delassus[world, c, c][0, 0]
    y = weight * memory.impulse[world, c] - memory.slip[world, c]
    length = wp.max(wp.sqrt(y[1] * y[1] + y[2] * y[2]), LEAST)
    return vec3(length, y[1] / length, y[2] / length)


@wp.func
def closed_mode(friction: scalar):
    """The mode that a contact is taken to have when it closes."""
    mode = wp.int32(STICKS)
    if friction <= scalar(0.0):
        mode = SLIDES
        if wp.static(pyramidal):
            mode = rubbing_mode(friction, friction)
    return mode


@wp.func
def judge(memory: ContactMemory, world: int, start: int, end: int, share: scalar, tolerance: scalar):
    """How far the contacts are from what their modes ask for, as a velocity; notes the modes to try next."""
    worst = scalar(0.0)
    for m in range(start, end):
        c = memory.member[world, m]
        if memory.law[world, c] != TOUCHES:
            beside = judge_beside(memory, world, c, share, tolerance)
            memory.wrong[world, c] = beside
            if not (beside <= worst):
                worst = beside
            continue
        friction = share * memory.friction[world, c]
        weight = memory.delassus[world, c, c][0, 0]
        mode = memory.mode[world, c]
        impulse = memory.impulse[world, c]
        slip = memory.slip[world, c]
        wrong = scalar(0.0)
        off = scalar(0.0)
        other = mode
        if mode == OPEN:
            wrong = -slip[0]
            other = closed_mode(friction)
        else:
            if wp.static(pyramidal):
                weight = stiffest(memory.delassus[world, c, c])
                off = largest(pyramid_equations(mode, weight, friction, impulse, slip))
                wrong = wp.max(
                    beyond(mode, 1, weight, friction, impulse, slip), beyond(mode, 2, weight, friction, impulse, slip)
                )
                other = judged_mode(mode, weight, friction, impulse, slip, tolerance)
            else:
                # Sliding friction lies on the cone, sticking friction within it.
                along = projected(memory, world, c)
                bound = weight * friction * impulse[0]
                if mode == STICKS:
                    off = largest(slip)
                    wrong = along[0] - bound
                    other = SLIDES
                else:
                    rubbing = weight * impulse - bound * along
                    off = wp.max(wp.abs(slip[0]), wp.max(wp.abs(rubbing[1]), wp.abs(rubbing[2])))
                    if friction > scalar(0.0):
                        wrong = bound - along[0]
                    other = STICKS
            if impulse[0] < scalar(0.0):
                wrong = -weight * impulse[0]
                other = OPEN
        memory.next_mode[world, c] = mode
        memory.wrong[world, c] = wrong
        if wrong > tolerance:
            memory.next_mode[world, c] = other
        # Not a number is larger than any.
        if not (wp.max(wrong, off) <= worst):
            worst = wp.max(wrong, off)
    return worst


@wp.func
def take_modes(memory: ContactMemory, world: int, start: int, end: int, following: bool, alone: bool):
    """Take the modes that `judge` noted, or only that of the contact that is farthest off, where it goes `alone`.

    What closes while a solution is followed slides at first: it has slipped and bears nothing yet. Taken to stick it
    may pull, open again, and so for ever. Tells whether any changed, and if none did, whether the equations are linear,
    and so are the same as before.
    """
    farthest = wp.int32(-1)
    if alone:
        for m in range(start, end):
            c = memory.member[world, m]
            if memory.next_mode[world, c] != memory.mode[world, c]:
                if farthest < 0 or memory.wrong[world, c] > memory.wrong[world, wp.max(farthest, 0)]:
                    farthest = c
    changed = wp.int32(0)
    sliding = wp.int32(0)
    for m in range(start, end):
        c = memory.member[world, m]
        mode = memory.mode[world, c]
        if memory.next_mode[world, c] != mode and (not alone or c == farthest):
            closes = mode == OPEN and memory.law[world, c] == TOUCHES
            mode = memory.next_mode[world, c]
            if following and closes:
                mode = SLIDES
                if wp.static(pyramidal):
                    mode = rubbing_mode(-memory.slip[world, c][1], -memory.slip[world, c][2])
            memory.mode[world, c] = mode
            changed = 1
        if wp.static(not pyramidal):
            if mode == SLIDES and memory.friction[world, c] > scalar(0.0):
                sliding = 1
        if memory.law[world, c] == TURNS and mode > STICKS:
            sliding = 1
    found = wp.int32(LINEAR)
    if sliding != 0:
        found = SETTLED
    if changed != 0:
        found = CHANGED
    return found


@wp.func
def keep(memory: ContactMemory, world: int, start: int, end: int):
    """Note the present impulse and modes as the best."""
    for m in range(start, end):
        c = memory.member[world, m]
        memory.best_impulse[world, c] = memory.impulse[world, c]
        memory.best_mode[world, c] = memory.mode[world, c]


@wp.func
def guess(memory: ContactMemory, world: int, start: int, end: int, share: scalar):
    """No impulse, and closed what would approach."""
    for m in range(start, end):
        c = memory.member[world, m]
        memory.impulse[world, c] = zero3()
        memory.slip[world, c] = memory.drive[world, c]
        memory.mode[world, c] = OPEN
        if memory.law[world, c] != TOUCHES:
            begin_beside(memory, world, c)
        elif memory.drive[world, c][0] < scalar(0.0):
            memory.mode[world, c] = closed_mode(share * memory.friction[world, c])
