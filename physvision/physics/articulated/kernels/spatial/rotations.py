"""Rotations and quaternions (w, x, y, z), as Warp functions."""

from math import factorial

import warp as wp

from ..precision import DOUBLE, mat33, scalar, vec2, vec3, vec4

# Squared angle below which short series of sine and cosine are exact to rounding, also in float64.
SMALL_ANGLE_SQUARED = wp.constant(scalar(1.0e-6))

MAX_SERIES_ANGLE = wp.constant(scalar(1.0e6))  # rad
ROUNDING_SHIFT = wp.constant(scalar(1.5 * 2.0**52))  # adding and subtracting it rounds to an integer
INVERSE_3 = wp.constant(scalar(1.0 / factorial(3)))
INVERSE_4 = wp.constant(scalar(1.0 / factorial(4)))
INVERSE_5 = wp.constant(scalar(1.0 / factorial(5)))
INVERSE_6 = wp.constant(scalar(1.0 / factorial(6)))
INVERSE_7 = wp.constant(scalar(1.0 / factorial(7)))
INVERSE_8 = wp.constant(scalar(1.0 / factorial(8)))
INVERSE_9 = wp.constant(scalar(1.0 / factorial(9)))
INVERSE_10 = wp.constant(scalar(1.0 / factorial(10)))
INVERSE_11 = wp.constant(scalar(1.0 / factorial(11)))
INVERSE_12 = wp.constant(scalar(1.0 / factorial(12)))
INVERSE_13 = wp.constant(scalar(1.0 / factorial(13)))
INVERSE_14 = wp.constant(scalar(1.0 / factorial(14)))
INVERSE_15 = wp.constant(scalar(1.0 / factorial(15)))
INVERSE_16 = wp.constant(scalar(1.0 / factorial(16)))


@wp.func
def sine_and_cosine(angle: scalar):
    """Return the sine and the cosine of an angle, within 3e-16.

    The series in r, the difference from the nearest multiple of π/2, is used: |r| ≤ π/4, where the first omitted term
    is below 5e-17. π/2 is split into three parts; a multiple of up to 2²⁰ of the first two is exact.
    """
    s = scalar(0.0)
    c = scalar(0.0)
    if wp.static(not DOUBLE):
        s = wp.sin(angle)
        c = wp.cos(angle)
    elif wp.abs(angle) < MAX_SERIES_ANGLE:
        quarters = (angle * scalar(0.6366197723675814) + ROUNDING_SHIFT) - ROUNDING_SHIFT
        r = angle - quarters * scalar(1.5707963267341256)
        r = r - quarters * scalar(6.077100506303966e-11)
        r = r - quarters * scalar(2.0222662487959506e-21)
        z = r * r
        odd = INVERSE_15 * z - INVERSE_13
        odd = odd * z + INVERSE_11
        odd = odd * z - INVERSE_9
        odd = odd * z + INVERSE_7
        odd = odd * z - INVERSE_5
        odd = odd * z + INVERSE_3
        even = INVERSE_14 - INVERSE_16 * z
        even = even * z - INVERSE_12
        even = even * z + INVERSE_10
        even = even * z - INVERSE_8
        even = even * z + INVERSE_6
        even = even * z - INVERSE_4
        sine = r - r * z * odd
        cosine = scalar(1.0) - z * (scalar(0.5) + z * even)
        quarter = wp.int32(quarters) & 3
        s = wp.where((quarter & 1) == 0, sine, cosine)
        c = wp.where((quarter & 1) == 0, cosine, sine)
        s = wp.where(quarter >= 2, -s, s)
        c = wp.where(quarter == 1 or quarter == 2, -c, c)
    else:
        s = wp.sin(angle)
        c = wp.cos(angle)
    return vec2(s, c)


@wp.func
def rotated_about_z(m: mat33, angle: scalar):
    """Return Rz(angle)ᵀ m for a matrix m."""
    sine_cosine = sine_and_cosine(angle)
    s = sine_cosine[0]
    c = sine_cosine[1]
    return mat33(
        c * m[0, 0] + s * m[1, 0], c * m[0, 1] + s * m[1, 1], c * m[0, 2] + s * m[1, 2],
        c * m[1, 0] - s * m[0, 0], c * m[1, 1] - s * m[0, 1], c * m[1, 2] - s * m[0, 2],
        m[2, 0], m[2, 1], m[2, 2],
    )  # fmt: skip


@wp.func
def quaternion_matrix(p: vec4):
    """Return the rotation matrix of a unit quaternion, from the rotated frame to the original one."""
    w = p[0]
    x = p[1]
    y = p[2]
    z = p[3]
    unit = scalar(1.0)
    double = scalar(2.0)
    return mat33(
        unit - double * (y * y + z * z), double * (x * y - w * z), double * (x * z + w * y),
        double * (x * y + w * z), unit - double * (x * x + z * z), double * (y * z - w * x),
        double * (x * z - w * y), double * (y * z + w * x), unit - double * (x * x + y * y),
    )  # fmt: skip


@wp.func
def quaternion_product(a: vec4, b: vec4):
    """Return the Hamilton product of two quaternions."""
    return vec4(
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@wp.func
def quaternion_conjugate(p: vec4):
    """Return the conjugate of a quaternion."""
    return vec4(p[0], -p[1], -p[2], -p[3])


@wp.func
def quaternion_exp(a: vec3):
    """Return the unit quaternion of the rotation vector a."""
    squared = wp.dot(a, a)
    c = scalar(1.0) - squared / scalar(8.0)
    s = scalar(0.5) - squared / scalar(48.0)
    if squared > SMALL_ANGLE_SQUARED:
        angle = wp.sqrt(squared)
        sine_cosine = sine_and_cosine(scalar(0.5) * angle)
        s = sine_cosine[0] / angle
        c = sine_cosine[1]
    return vec4(c, s * a[0], s * a[1], s * a[2])


@wp.func
def quaternion_log(p: vec4):
    """Return the rotation vector, at most π long, of a unit quaternion."""
    imaginary = vec3(p[1], p[2], p[3])
    real = p[0]
    if real < scalar(0.0):  # p and −p are one rotation
        real = -real
        imaginary = -imaginary
    sine = wp.length(imaginary)
    factor = scalar(2.0) + sine * sine / scalar(3.0)
    if sine * sine > SMALL_ANGLE_SQUARED:
        factor = scalar(2.0) * wp.atan2(sine, real) / sine
    return factor * imaginary


@wp.func
def quaternion_tangent(p: vec4, gradient: vec4):
    """Convert the gradient with respect to the coordinates of p to that with respect to δ in p ⊗ exp(δ)."""
    g = quaternion_product(quaternion_conjugate(p), gradient)
    return scalar(0.5) * vec3(g[1], g[2], g[3])


@wp.func
def quaternion_lift(p: vec4, tangent: vec3):
    """Invert `quaternion_tangent` on the tangent space of the unit sphere."""
    two = scalar(2.0)
    return quaternion_product(p, vec4(scalar(0.0), two * tangent[0], two * tangent[1], two * tangent[2]))


@wp.func
def rotate_vector(a: vec3, x: vec3):
    """Return exp([a]×) x for a rotation vector a."""
    p = quaternion_exp(a)
    u = vec3(p[1], p[2], p[3])
    t = scalar(2.0) * wp.cross(u, x)
    return x + p[0] * t + wp.cross(u, t)


@wp.func
def left_jacobian(a: vec3, x: vec3):
    """Return J_l(a) x = x + (1 − cos α)/α² a × x + (α − sin α)/α³ a × (a × x), which is J_r(a)ᵀ x."""
    squared = wp.dot(a, a)
    first = scalar(0.5) - squared / scalar(24.0)
    second = scalar(1.0) / scalar(6.0) - squared / scalar(120.0)
    if squared > SMALL_ANGLE_SQUARED:
        angle = wp.sqrt(squared)
        first = (scalar(1.0) - wp.cos(angle)) / squared
        second = (angle - wp.sin(angle)) / (squared * angle)
    y = wp.cross(a, x)
    return x + first * y + second * wp.cross(a, y)


@wp.func
def right_jacobian_inverse(a: vec3, x: vec3):
    """Return J_r(a)⁻¹ x = x + ½ a × x + c a × (a × x), with c = 1/α² − (1 + cos α)/(2 α sin α)."""
    squared = wp.dot(a, a)
    factor = scalar(1.0) / scalar(12.0) + squared / scalar(720.0)
    if squared > SMALL_ANGLE_SQUARED:
        half = scalar(0.5) * wp.sqrt(squared)
        # (1 + cos α)/sin α = cot(α/2), which stays finite at α = π.
        factor = (scalar(1.0) - half * wp.cos(half) / wp.sin(half)) / squared
    y = wp.cross(a, x)
    return x + scalar(0.5) * y + factor * wp.cross(a, y)


@wp.func
def right_jacobian_inverse_backward(a: vec3, x: vec3, bar: vec3):
    """Return the derivative of bar · J_r(a)⁻¹ x with respect to a."""
    squared = wp.dot(a, a)
    factor = scalar(1.0) / scalar(12.0) + squared / scalar(720.0)
    slope = scalar(1.0) / scalar(720.0) + squared / scalar(15120.0)  # of c, with respect to α²
    if squared > SMALL_ANGLE_SQUARED:
        half = scalar(0.5) * wp.sqrt(squared)
        cotangent = wp.cos(half) / wp.sin(half)
        factor = (scalar(1.0) - half * cotangent) / squared
        change = scalar(0.125) * (half + half * cotangent * cotangent - cotangent) / half  # of 1 − ½ α cot(α/2)
        slope = (change - factor) / squared
    along = wp.dot(a, x)
    across = wp.dot(a, bar)
    power = wp.dot(bar, x)
    y = scalar(0.5) * wp.cross(x, bar) + factor * (along * bar + across * x - (scalar(2.0) * power) * a)
    return y + (scalar(2.0) * slope * (across * along - squared * power)) * a
