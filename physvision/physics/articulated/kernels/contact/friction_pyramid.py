"""Friction pyramid: each tangent by itself, instead of the cone of `solver`.

    |λ_i| ≤ μ λ_n,    u_i = 0 within,    against the sign of u_i at either bound,    i = 1, 2,

along the tangents that `narrow_phase.contact_frame` chooses for a normal. Oblique sliding is resisted by up to √2 times
the friction of the cone. The mode of a closed contact is STICK + first + 3 second, with 0 for a tangent that sticks, 1
for λ_i = μ λ_n and 2 for λ_i = −μ λ_n. The equations F(λ, u) = 0 are linear; with the largest diagonal entry w of A and
s = ±1:

    sticks  u_i = 0,      slides  w (λ_i − s μ λ_n) = 0,

so that Newton's method needs one step for each choice of modes.
"""

import warp as wp

from ..precision import mat33, scalar, vec3
from ..structs import OPEN, STICK, Contact


@wp.func
def max_diagonal(block: mat33):
    """Return w, the largest diagonal entry of a block of the Delassus matrix."""
    return wp.max(block[0, 0], wp.max(block[1, 1], block[2, 2]))


@wp.func
def tangent_sign(mode: int, k: int):
    """Return 0 for a tangent that sticks, else the sign of its friction; k is 1 or 2."""
    code = (mode - STICK) % 3
    if k == 2:
        code = (mode - STICK) / 3
    sign = scalar(0.0)
    if code == 1:
        sign = scalar(1.0)
    if code == 2:
        sign = scalar(-1.0)
    return sign


@wp.func
def sign_code(direction: scalar):
    """Return the code of a tangent that slides in a direction."""
    code = wp.int32(1)
    if direction < scalar(0.0):
        code = 2
    return code


@wp.func
def sliding_mode(first: scalar, second: scalar):
    """Return the mode in which both tangents slide in these directions."""
    return STICK + sign_code(first) + 3 * sign_code(second)


@wp.func
def project_on_pyramid(normal: scalar, first: scalar, second: scalar, bound: scalar):
    """Return the impulse in the pyramid that is nearest along the tangents."""
    return vec3(normal, wp.clamp(first, -bound, bound), wp.clamp(second, -bound, bound))


@wp.func
def projected_mode(normal: scalar, first: scalar, second: scalar, bound: scalar):
    """Return the mode of an impulse before its projection."""
    mode = wp.int32(STICK)
    if wp.abs(first) >= bound:
        mode += sign_code(first)
    if wp.abs(second) >= bound:
        mode += 3 * sign_code(second)
    if normal <= scalar(0.0):
        mode = wp.int32(OPEN)
    return mode


@wp.func
def pyramid_velocity_derivative(mode: int):
    """Return F_u of a closed contact."""
    z = scalar(0.0)
    unit = scalar(1.0)
    first = unit - wp.abs(tangent_sign(mode, 1))
    second = unit - wp.abs(tangent_sign(mode, 2))
    return mat33(unit, z, z, z, first, z, z, z, second)


@wp.func
def pyramid_impulse_derivative(mode: int, weight: scalar, friction: scalar):
    """Return F_λ of a closed contact."""
    z = scalar(0.0)
    first = tangent_sign(mode, 1)
    second = tangent_sign(mode, 2)
    return mat33(
        z, z, z,
        -weight * friction * first, weight * wp.abs(first), z,
        -weight * friction * second, z, weight * wp.abs(second),
    )  # fmt: skip


@wp.func
def pyramid_residual(mode: int, weight: scalar, friction: scalar, impulse: vec3, velocity: vec3):
    """Return F of a closed contact."""
    return pyramid_velocity_derivative(mode) * velocity + pyramid_impulse_derivative(mode, weight, friction) * impulse


@wp.func
def pyramid_backward(mode: int, weight: scalar, impulse: vec3, y: vec3):
    """Return the adjoint of μ from that of F."""
    return weight * impulse[0] * (tangent_sign(mode, 1) * y[1] + tangent_sign(mode, 2) * y[2])


@wp.func
def pyramid_violation(mode: int, k: int, weight: scalar, friction: scalar, impulse: vec3, velocity: vec3):
    """Return the violation of a tangent's mode, as a velocity: beyond its bound, or sliding the other way."""
    sign = tangent_sign(mode, k)
    violation = wp.abs(weight * impulse[k] - velocity[k]) - weight * friction * impulse[0]
    if sign != scalar(0.0):
        violation = scalar(0.0)
        if friction > scalar(0.0):
            violation = sign * velocity[k]
    return violation


@wp.func
def next_pyramid_mode(mode: int, weight: scalar, friction: scalar, impulse: vec3, velocity: vec3, tolerance: scalar):
    """Return the mode to try next of a closed contact with positive normal impulse."""
    first = (mode - STICK) % 3
    second = (mode - STICK) / 3
    if pyramid_violation(mode, 1, weight, friction, impulse, velocity) > tolerance:
        if first != 0:
            first = 0
        else:
            first = sign_code(weight * impulse[1] - velocity[1])
    if pyramid_violation(mode, 2, weight, friction, impulse, velocity) > tolerance:
        if second != 0:
            second = 0
        else:
            second = sign_code(weight * impulse[2] - velocity[2])
    return STICK + first + 3 * second


@wp.func
def stop_still_tangents(contact: Contact, world: int, c: int, threshold: scalar):
    """Set sliding tangents that stand still to sticking; returns True if there were any."""
    mode = contact.solver.mode[world, c]
    first = (mode - STICK) % 3
    second = (mode - STICK) / 3
    velocity = contact.solver.velocity[world, c]
    if wp.abs(velocity[1]) < threshold:
        first = 0
    if wp.abs(velocity[2]) < threshold:
        second = 0
    next_mode = STICK + first + 3 * second
    contact.solver.mode[world, c] = next_mode
    return next_mode != mode
