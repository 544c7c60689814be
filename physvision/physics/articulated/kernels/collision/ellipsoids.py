"""Closest points with an ellipsoid: of a plane, a point, a line's part, another ellipsoid.

An ellipsoid with radii r, in its own axes, has its outward normal n at x = r² n / h, h = |r n|; H = ∂x/∂n is its
support's curvature. The closest point to y lies at x = r² y / (t + r²), t being the largest root of
Σ (r y / (t + r²))² = 1: y is outside where t > 0, and what they are apart has the sign of t.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.root_finding import bracket, guess, narrowed
from physvision.physics.articulated.kernels.spatial.vectors import transposed

from .contact_primitives import (
    LEAST,
    LINE_SMOOTH,
    SMOOTH,
    SMOOTH_FACE,
    Closest,
    across_solve,
    axis_of,
    scaled,
)

ROUNDING = wp.constant(scalar(1.0e-15 if DOUBLE else 1.0e-6))
ROOT_STEPS = wp.constant(60)
TURNS = wp.constant(50)


@wp.func
def support(turn: mat33, radii: vec3, normal: vec3):
    """From the centre to the point of an ellipsoid that is farthest along a direction."""
    local = transposed(turn, normal)
    stretched = scaled(radii, local)
    return turn * (scaled(radii, stretched) / wp.max(wp.length(stretched), LEAST))


@wp.func
def share_of(turn: mat33, radii: vec3, away: vec3):
    """How a point of an ellipsoid, told from its centre, moves as the radii grow."""
    local = transposed(turn, away)
    return vec3(local[0] / radii[0], local[1] / radii[1], local[2] / radii[2])


@wp.func
def curvature(turn: mat33, radii: vec3, normal: vec3):
    """H: how the point that `support` gives moves with the direction."""
    local = transposed(turn, normal)
    stretched = scaled(radii, local)
    size = wp.max(wp.length(stretched), LEAST)
    x = scaled(radii, stretched) / size
    z = scalar(0.0)
    squares = scaled(radii, radii)
    own = mat33(squares[0], z, z, z, squares[1], z, z, z, squares[2]) - wp.outer(x, x)
    return turn * (own / size) * wp.transpose(turn)


@wp.func
def root_of(y: vec3, radii: vec3):
    """The largest root t, by Newton's method from where it rises to it without ever passing it."""
    low = scalar(-1.0e30)
    for k in range(3):
        low = wp.max(low, radii[k] * wp.abs(y[k]) - radii[k] * radii[k])
    t = low
    change = scalar(1.0)
    for _step in range(ROOT_STEPS):
        if change > ROUNDING * wp.dot(radii, radii):
            value = scalar(-1.0)
            slope = scalar(0.0)
            for k in range(3):
                under = wp.max(t + radii[k] * radii[k], LEAST)
                part = radii[k] * y[k] / under
                value += part * part
                slope += scalar(2.0) * part * part / under
            change = scalar(0.0)
            if value > scalar(0.0) and slope > scalar(0.0):
                change = value / slope
            t = t + change
    return t


@wp.func
def normal_to(y: vec3, radii: vec3):
    """The outward normal, in the ellipsoid's axes, at its point closest to y."""
    t = root_of(y, radii)
    found = vec3(scalar(0.0), scalar(0.0), scalar(1.0))
    z = scalar(0.0)
    n = vec3(z, z, z)
    for k in range(3):
        n[k] = y[k] / wp.max(t + radii[k] * radii[k], LEAST)
    length = wp.length(n)
    if length > LEAST:
        found = n / length
    return found


@wp.func
def to_ellipsoid(near: Closest, turn: mat33, origin: vec3, radii: vec3):
    """What is left to tell once `first` is the point of the first core, and the second shape is an ellipsoid."""
    near.normal = turn * normal_to(transposed(turn, near.first - origin), radii)
    near.second = origin + support(turn, radii, near.normal)
    near.second_curve = curvature(turn, radii, near.normal)
    near.second_share = share_of(turn, radii, near.second - origin)
    near.gap = wp.dot(near.normal, near.first - near.second) - near.first_radius
    near.form = SMOOTH
    return near


@wp.func
def along_of(s: scalar, middle: vec3, axis: vec3, turn: mat33, origin: vec3, radii: vec3):
    """How fast the distance to the ellipsoid grows along a line, at s; it never falls with s."""
    return wp.dot(axis, turn * normal_to(transposed(turn, middle + s * axis - origin), radii))


@wp.func
def segment_ellipsoid(
    near: Closest, turn_a: mat33, origin_a: vec3, size_a: vec3, turn: mat33, origin: vec3, radii: vec3
):
    """The axis of a capsule: the place along it, by a bracketed root, where it does not come nearer either way."""
    axis = axis_of(turn_a, 2)
    low = scalar(-0.5) * size_a[2]
    high = scalar(0.5) * size_a[2]
    value_low = along_of(low, origin_a, axis, turn, origin, radii)
    value_high = along_of(high, origin_a, axis, turn, origin, radii)
    s = low
    inside = wp.int32(0)
    if value_high <= scalar(0.0):
        s = high
    elif value_low < scalar(0.0):
        inside = 1
        between = bracket(low, high, value_low, value_high)
        value = scalar(1.0)
        for _step in range(TURNS):
            if wp.abs(value) > ROUNDING and between.high - between.low > ROUNDING * size_a[2]:
                s = guess(between)
                value = along_of(s, origin_a, axis, turn, origin, radii)
                between = narrowed(between, s, value, value < scalar(0.0))
    near.first = origin_a + s * axis
    near.first_radius = size_a[0]
    near = to_ellipsoid(near, turn, origin, radii)
    near.first_axis = axis
    z = scalar(0.0)
    near.first_share = vec3(z, z, z)
    if inside != 0:
        near.form = LINE_SMOOTH
    else:
        near.first_share = vec3(z, z, wp.sign(s) * scalar(0.5))
    return near


@wp.func
def ellipsoid_ellipsoid(
    near: Closest, turn_a: mat33, origin_a: vec3, radii_a: vec3, turn: mat33, origin: vec3, radii: vec3
):
    """The normal along which they are farthest apart, by Newton's method on the sphere of normals.

    f(n) = n · (Δ − x_a − x_b), x being the points farthest towards the other; its slope is Δ − x_a − x_b across n, and
    its curvature there −(H_a + H_b) − f.
    """
    away = origin_a - origin
    n = away / wp.max(wp.length(away), LEAST)
    moved = scalar(1.0)
    for _step in range(TURNS):
        if moved > ROUNDING:
            between = away - support(turn_a, radii_a, n) - support(turn, radii, n)
            apart = wp.dot(n, between)
            slope = between - apart * n
            curve = curvature(turn_a, radii_a, n) + curvature(turn, radii, n)
            step = across_solve(curve, apart, n, slope)
            moved = wp.length(step)
            step = step * wp.min(scalar(1.0), scalar(0.5) / wp.max(moved, LEAST))
            n = wp.normalize(n + step)
    near.normal = n
    near.first = origin_a - support(turn_a, radii_a, n)
    near.second = origin + support(turn, radii, n)
    near.first_curve = curvature(turn_a, radii_a, n)
    near.second_curve = curvature(turn, radii, n)
    near.first_share = share_of(turn_a, radii_a, near.first - origin_a)
    near.second_share = share_of(turn, radii, near.second - origin)
    near.gap = wp.dot(n, near.first - near.second)
    near.form = SMOOTH
    return near


@wp.func
def ellipsoid_plane(near: Closest, turn_a: mat33, origin_a: vec3, radii: vec3, turn: mat33, origin: vec3):
    near.normal = axis_of(turn, 2)
    near.first = origin_a - support(turn_a, radii, near.normal)
    near.first_curve = curvature(turn_a, radii, near.normal)
    near.first_share = share_of(turn_a, radii, near.first - origin_a)
    near.gap = wp.dot(near.normal, near.first - origin)
    near.second = near.first - near.gap * near.normal
    near.form = SMOOTH_FACE
    return near
