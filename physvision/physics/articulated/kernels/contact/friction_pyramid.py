"""Friction as a pyramid: along each tangent by itself, in place of the cone of `impulses`.

    |λ_i| ≤ μ λ_n,    u_i = 0 within,    against the sign of u_i at either bound,    i = 1, 2,

along the tangents that `touching.frame_of` chooses for a normal. What slides askew is held by up to √2 times the
cone's friction. A closed contact's mode is STICKS + first + 3 second, of each tangent 0 where it sticks, 1 where
λ_i = μ λ_n and 2 where λ_i = −μ λ_n. The equations F(λ, u) = 0 are linear; with w the largest of A's diagonal, s = ±1:

    sticks  u_i = 0,      rubs  w (λ_i − s μ λ_n) = 0,

so that Newton's method needs one step for each choice of modes.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import mat33, scalar, vec3
from physvision.physics.articulated.kernels.structs import OPEN, STICKS, ContactMemory


@wp.func
def stiffest(block: mat33):
    """w: how much velocity an impulse gives along the direction in which that is most."""
    return wp.max(block[0, 0], wp.max(block[1, 1], block[2, 2]))


@wp.func
def side(mode: int, k: int):
    """Of the first or second tangent: 0 where it sticks, else the sign of its friction."""
    code = (mode - STICKS) % 3
    if k == 2:
        code = (mode - STICKS) / 3
    found = scalar(0.0)
    if code == 1:
        found = scalar(1.0)
    if code == 2:
        found = scalar(-1.0)
    return found


@wp.func
def code_of(towards: scalar):
    """That of a tangent which rubs in a direction."""
    found = wp.int32(1)
    if towards < scalar(0.0):
        found = 2
    return found


@wp.func
def rubbing_mode(first: scalar, second: scalar):
    """Both tangents rub in these directions."""
    return STICKS + code_of(first) + 3 * code_of(second)


@wp.func
def project(normal: scalar, first: scalar, second: scalar, bound: scalar):
    """The impulse in the pyramid that is nearest along the tangents."""
    return vec3(normal, wp.clamp(first, -bound, bound), wp.clamp(second, -bound, bound))


@wp.func
def projected_mode(normal: scalar, first: scalar, second: scalar, bound: scalar):
    """The mode of an impulse that is to be projected."""
    mode = wp.int32(STICKS)
    if wp.abs(first) >= bound:
        mode += code_of(first)
    if wp.abs(second) >= bound:
        mode += 3 * code_of(second)
    if normal <= scalar(0.0):
        mode = wp.int32(OPEN)
    return mode


@wp.func
def pyramid_slip_rate(mode: int):
    """F_u."""
    z = scalar(0.0)
    one = scalar(1.0)
    first = one - wp.abs(side(mode, 1))
    second = one - wp.abs(side(mode, 2))
    return mat33(one, z, z, z, first, z, z, z, second)


@wp.func
def pyramid_impulse_rate(mode: int, weight: scalar, friction: scalar):
    """F_λ."""
    z = scalar(0.0)
    first = side(mode, 1)
    second = side(mode, 2)
    return mat33(
        z, z, z,
        -weight * friction * first, weight * wp.abs(first), z,
        -weight * friction * second, z, weight * wp.abs(second),
    )  # fmt: skip


@wp.func
def pyramid_equations(mode: int, weight: scalar, friction: scalar, impulse: vec3, slip: vec3):
    """F."""
    return pyramid_slip_rate(mode) * slip + pyramid_impulse_rate(mode, weight, friction) * impulse


@wp.func
def pyramid_backward(mode: int, weight: scalar, impulse: vec3, y: vec3):
    """The adjoint of μ from that of F."""
    return weight * impulse[0] * (side(mode, 1) * y[1] + side(mode, 2) * y[2])


@wp.func
def beyond(mode: int, k: int, weight: scalar, friction: scalar, impulse: vec3, slip: vec3):
    """By how much a tangent is not where its mode says, as a velocity: beyond its bound, or with its slip."""
    sign = side(mode, k)
    found = wp.abs(weight * impulse[k] - slip[k]) - weight * friction * impulse[0]
    if sign != scalar(0.0):
        found = scalar(0.0)
        if friction > scalar(0.0):
            found = sign * slip[k]
    return found


@wp.func
def judged_mode(mode: int, weight: scalar, friction: scalar, impulse: vec3, slip: vec3, tolerance: scalar):
    """The mode to try next of a closed contact whose normal impulse is above zero."""
    first = (mode - STICKS) % 3
    second = (mode - STICKS) / 3
    if beyond(mode, 1, weight, friction, impulse, slip) > tolerance:
        if first != 0:
            first = 0
        else:
            first = code_of(weight * impulse[1] - slip[1])
    if beyond(mode, 2, weight, friction, impulse, slip) > tolerance:
        if second != 0:
            second = 0
        else:
            second = code_of(weight * impulse[2] - slip[2])
    return STICKS + first + 3 * second


@wp.func
def held_still(memory: ContactMemory, world: int, c: int, least: scalar):
    """Take a contact's tangents to stick that rub and stand still; whether any of them did."""
    mode = memory.mode[world, c]
    first = (mode - STICKS) % 3
    second = (mode - STICKS) / 3
    slip = memory.slip[world, c]
    if wp.abs(slip[1]) < least:
        first = 0
    if wp.abs(slip[2]) < least:
        second = 0
    still = STICKS + first + 3 * second
    memory.mode[world, c] = still
    return still != mode
