"""How the closest point of the first core, and the normal, move with both cores: adjoints of the forms of `closest`.

With q the point on the first core, n the normal and L = n · (q − q₂), given q̄ and n̄ (of which only the part g̃ across
n matters), each form's cores take a pull at their closest points, x̄ for the first and x̄₂ for the second, and d̄ for the
axes of lines, which turn about these points: a turn of d × d̄. P = 1 − d dᵀ, and Δ is what the points are apart.

    points          n = Δ/L                     g = g̃/L,  x̄ = q̄ + g,  x̄₂ = −g
    face            n turns with the second     x̄ = q̄,    turn₂ = n × n̄
    point, line     n ∥ P Δ                     x̄ = q̄ + P g,  x̄₂ = −P g,  d̄₂ = −L n (d₂ · g)
    line, point     q = x + d d·(x₂ − x)        x̄ = P (q̄ + g),  x̄₂ = d d·q̄ − P g,  d̄ = −L n (d · (q̄ + g))
    lines           n = κ d × d₂/S, S² = 1 − c², c = d · d₂;  g = κ g̃/S,  σ = q̄ · d/S²
                    x̄ = q̄ − σ (d − c d₂),  x̄₂ = σ (d − c d₂),  d̄ = d₂ × g − σ L n,  d̄₂ = g × d + σ c L n
    ellipsoids      n = S⁻¹ (Δ …), S = H + H₂ + L; N = n̄ − H q̄, g = S⁻¹ N across n; c, c₂ weigh how each
                    one's normal at its point turns:  x̄ = q̄ + g,  x̄₂ = −g,  c = H (q̄ + g),  c₂ = H₂ g
    line, ellipsoid e = n × d, N = n̄ + (L + H₂) q̄, g = e (N · e)/(e · S e)
                    x̄ = n n·q̄ + g,  x̄₂ = q̄ − x̄,  d̄ = n × d d · (N − S g),  c₂ = H₂ (g − q̄)
    ellipsoid, face x̄ = q̄,  c = H q̄,  turn₂ = n × (n̄ − H q̄)
    rim             q = x + ρ e, e = cos φ w/|w| + sin φ d × w/|w| with w = d (d · n) − n, n as of a face

The gap moves as if its two points were part of their shapes, whatever the form, for they are closest; the points of a
rim beside its lowest are not.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import zero3

from .closest_points import UPRIGHT
from .contact_primitives import (
    FACE,
    LEAST,
    LINE_POINT,
    LINE_SMOOTH,
    LINES,
    POINT_LINE,
    POINTS,
    RIM,
    SMOOTH,
    SMOOTH_FACE,
    Closest,
    across_solve,
)


@wp.struct
class Pull:
    """Adjoints of two cores: of a shift of each, and of a turn about its closest point."""

    first: vec3
    first_turn: vec3
    second: vec3
    second_turn: vec3
    rim_radius: scalar
    first_tilt: vec3  # adjoint of a turn of the direction below, as sizes that grow give it
    second_tilt: vec3
    first_upright: vec3  # the surface's normal at the point of an ellipsoid, that of a face; an edge's counts from it
    second_upright: vec3


@wp.func
def across(a: vec3, axis: vec3):
    """The part of a that is perpendicular to a unit axis."""
    return a - wp.dot(a, axis) * axis


@wp.func
def rim_backward(near: Closest, point_bar: vec3, normal_bar: vec3):
    pull = Pull()
    axis = near.first_axis
    normal = near.normal
    down = wp.dot(axis, normal) * axis - normal
    length = wp.length(down)
    pull.first = point_bar
    pull.rim_radius = wp.dot(point_bar, near.second_axis)
    moved = normal_bar
    if length > UPRIGHT:
        unit = down / length
        bar = near.rim[2] * point_bar
        unit_bar = near.rim[0] * bar + near.rim[1] * wp.cross(bar, axis)
        h = across(unit_bar, unit) / length
        moved = moved - h + wp.dot(axis, h) * axis
        axis_bar = near.rim[1] * wp.cross(unit, bar) + wp.dot(axis, normal) * h + wp.dot(axis, h) * normal
        # The circle's centre carries the pull, not the point.
        lever = -near.rim[2] * near.second_axis
        pull.first_turn = wp.cross(axis, axis_bar) + wp.cross(lever, point_bar)
    pull.second_turn = wp.cross(normal, moved)
    return pull


@wp.func
def ellipsoids_backward(near: Closest, point_bar: vec3, normal_bar: vec3):
    pull = Pull()
    wanted = zero3()
    g = zero3()
    n = near.normal
    pull.first_upright = n
    pull.second_upright = n
    apart = wp.dot(n, near.first - near.second)
    if near.form == SMOOTH:
        wanted = normal_bar - near.first_curve * point_bar
        g = across_solve(near.first_curve + near.second_curve, apart, n, wanted)
        pull.first = point_bar + g
        pull.second = -g
        pull.first_tilt = across(near.first_curve * pull.first, n)
        pull.second_tilt = across(near.second_curve * g, n)
    elif near.form == LINE_SMOOTH:
        axis = near.first_axis
        e = wp.cross(n, axis)
        wanted = normal_bar + apart * point_bar + near.second_curve * point_bar
        g = wp.dot(wanted, e) / (wp.dot(e, near.second_curve * e) + apart) * e
        pull.first = wp.dot(point_bar, n) * n + g
        pull.second = point_bar - pull.first
        pull.first_turn = wp.dot(axis, wanted - near.second_curve * g) * wp.cross(n, axis)
        pull.second_tilt = across(near.second_curve * (g - point_bar), n)
    else:
        pull.first = point_bar
        pull.first_tilt = across(near.first_curve * point_bar, n)
        pull.second_turn = wp.cross(n, normal_bar - near.first_curve * point_bar)
    pull.first_turn = pull.first_turn + wp.cross(n, pull.first_tilt)
    pull.second_turn = pull.second_turn + wp.cross(n, pull.second_tilt)
    # As a rim grows, its normals do not turn.
    if wp.length_sq(near.first_rim) > scalar(0.0):
        pull.first_tilt = zero3()
    if wp.length_sq(near.second_rim) > scalar(0.0):
        pull.second_tilt = zero3()
    if near.form == LINE_SMOOTH and near.first_stretches != 0:
        pull.first_tilt = wp.dot(near.first_axis, wanted - near.second_curve * g) * n
        pull.first_upright = near.first_axis
    elif near.form == SMOOTH_FACE and near.second_stretches != 0:
        pull.second_tilt = across(normal_bar - near.first_curve * point_bar, n)
    return pull


@wp.func
def form_backward(near: Closest, point_bar: vec3, normal_bar: vec3):
    """What q̄ and n̄ pull at both cores, of a form told of the first shape and the second."""
    pull = Pull()
    n = near.normal
    apart = wp.dot(n, near.first - near.second)
    if wp.abs(apart) < LEAST:
        apart = LEAST
    g = across(normal_bar, n) / apart  # of a string, whose normal is turned round, `apart` is below zero
    if near.form == POINTS:
        pull.first = point_bar + g
        pull.second = -g
    elif near.form == FACE:
        pull.first = point_bar
        pull.second_turn = wp.cross(n, normal_bar)
    elif near.form == POINT_LINE:
        axis = near.second_axis
        moved = across(g, axis)
        pull.first = point_bar + moved
        pull.second = -moved
        pull.second_turn = wp.cross(axis, -apart * wp.dot(axis, g) * n)
    elif near.form == LINE_POINT:
        axis = near.first_axis
        whole = point_bar + g
        pull.first = across(whole, axis)
        pull.second = wp.dot(axis, point_bar) * axis - across(g, axis)
        pull.first_turn = wp.cross(axis, -apart * wp.dot(axis, whole) * n)
    elif near.form == LINES:
        crossed = wp.cross(near.first_axis, near.second_axis)
        sine = wp.length(crossed)
        cosine = wp.dot(near.first_axis, near.second_axis)
        side = wp.sign(wp.dot(n, crossed)) / sine
        g = side * across(normal_bar, n)
        sigma = wp.dot(point_bar, near.first_axis) / (sine * sine)
        slide = sigma * (near.first_axis - cosine * near.second_axis)
        pull.first = point_bar - slide
        pull.second = slide
        first_bar = wp.cross(near.second_axis, g) - sigma * apart * n
        second_bar = wp.cross(g, near.first_axis) + sigma * cosine * apart * n
        pull.first_turn = wp.cross(near.first_axis, first_bar)
        pull.second_turn = wp.cross(near.second_axis, second_bar)
        if near.first_stretches != 0:
            pull.first_tilt = -across(first_bar, near.first_axis)
            pull.first_upright = near.first_axis
        if near.second_stretches != 0:
            pull.second_tilt = -across(second_bar, near.second_axis)
            pull.second_upright = near.second_axis
    elif near.form == RIM:
        pull = rim_backward(near, point_bar, normal_bar)
    elif near.form >= SMOOTH:
        pull = ellipsoids_backward(near, point_bar, normal_bar)
    return pull


@wp.func
def sum_of(one: Pull, other: Pull):
    one.first = one.first + other.first
    one.first_turn = one.first_turn + other.first_turn
    one.second = one.second + other.second
    one.second_turn = one.second_turn + other.second_turn
    one.rim_radius = one.rim_radius + other.rim_radius
    one.first_tilt = one.first_tilt + other.first_tilt
    one.second_tilt = one.second_tilt + other.second_tilt
    one.first_upright = one.first_upright + other.first_upright
    one.second_upright = one.second_upright + other.second_upright
    return one


@wp.func
def gap_pull(near: Closest, bar: scalar):
    """What an adjoint of the gap pulls at both cores."""
    pull = Pull()
    pull.first = bar * near.normal
    if near.form == RIM:
        pull = rim_backward(near, bar * near.normal, zero3())
    pull.second = -bar * near.normal
    return pull


@wp.func
def exchanged(near: Closest):
    """The same told of the second shape and the first."""
    other = near
    other.normal = -near.normal
    other.first = near.second
    other.second = near.first
    other.first_axis = near.second_axis
    other.second_axis = near.first_axis
    other.first_curve = near.second_curve
    other.second_curve = near.first_curve
    other.first_rim = near.second_rim
    other.second_rim = near.first_rim
    other.first_stretches = near.second_stretches
    other.second_stretches = near.first_stretches
    return other


@wp.func
def cores_backward(near: Closest, point_bar: vec3, normal_bar: vec3):
    """What q̄ and n̄ pull at both cores.

    Of a form that is turned round, q = q₂ + L n is a sum of what the form tells of the second shape, the first in it.
    """
    if near.turned == 0:
        return form_backward(near, point_bar, normal_bar)
    other = exchanged(near)
    apart = wp.dot(near.normal, near.first - near.second)
    pull = form_backward(other, point_bar, -(normal_bar + apart * point_bar))
    pull = sum_of(pull, gap_pull(other, wp.dot(point_bar, near.normal)))
    back = pull
    back.first = pull.second
    back.first_turn = pull.second_turn
    back.first_tilt = pull.second_tilt
    back.first_upright = pull.second_upright
    back.second = pull.first
    back.second_turn = pull.first_turn
    back.second_tilt = pull.first_tilt
    back.second_upright = pull.first_upright
    return back
