"""Adjoints of the closest point of the first core and of the normal, for all cases of `contact_primitives`.

With the point q on the first core, the normal n and L = n · (q − q₂), given q̄ and n̄ (of which only the part g̃
perpendicular to n matters), the cores of each case take adjoints of their closest points, x̄ for the first and x̄₂ for
the second, and d̄ for the directions of lines, which rotate about these points by d × d̄. P = 1 − d dᵀ, and Δ is the
difference of the points.

    points          n = Δ/L                     g = g̃/L,  x̄ = q̄ + g,  x̄₂ = −g
    face            n rotates with the second   x̄ = q̄,    rotation₂ = n × n̄
    point, line     n ∥ P Δ                     x̄ = q̄ + P g,  x̄₂ = −P g,  d̄₂ = −L n (d₂ · g)
    line, point     q = x + d d·(x₂ − x)        x̄ = P (q̄ + g),  x̄₂ = d d·q̄ − P g,  d̄ = −L n (d · (q̄ + g))
    lines           n = κ d × d₂/S, S² = 1 − c², c = d · d₂;  g = κ g̃/S,  σ = q̄ · d/S²
                    x̄ = q̄ − σ (d − c d₂),  x̄₂ = σ (d − c d₂),  d̄ = d₂ × g − σ L n,  d̄₂ = g × d + σ c L n
    smooth          n = S⁻¹ (Δ …), S = H + H₂ + L; N = n̄ − H q̄, g = S⁻¹ N across n; c, c₂ are the adjoints of the
                    rotation of each surface's normal:  x̄ = q̄ + g,  x̄₂ = −g,  c = H (q̄ + g),  c₂ = H₂ g
    line, smooth    e = n × d, N = n̄ + (L + H₂) q̄, g = e (N · e)/(e · S e)
                    x̄ = n n·q̄ + g,  x̄₂ = q̄ − x̄,  d̄ = n × d d · (N − S g),  c₂ = H₂ (g − q̄)
    smooth, face    x̄ = q̄,  c = H q̄,  rotation₂ = n × (n̄ − H q̄)
    rim             q = x + ρ e, e = cos φ w/|w| + sin φ d × w/|w| with w = d (d · n) − n, n as for a face

In flat contact n rotates with the second shape as for a face, whatever form gives the points.

The separation changes as if its two points were fixed to their shapes, in every case, since they are closest; the
points of a rim beside its lowest one are not.
"""

import warp as wp

from ..precision import scalar, vec3
from ..spatial.vectors import tangential_part, zero3
from .closest_points import MIN_RIM_SINE
from .contact_primitives import (
    FACE,
    LINE_POINT,
    LINE_SMOOTH,
    LINES,
    MIN_LENGTH,
    POINT_LINE,
    POINTS,
    RIM,
    SMOOTH,
    SMOOTH_FACE,
    ContactPrimitive,
    solve_tangential,
)


@wp.struct
class FeatureAdjoint:
    """Adjoints of two cores: of a translation of each, and of a rotation about its closest point."""

    first: vec3
    first_rotation: vec3
    second: vec3
    second_rotation: vec3
    rim_radius: scalar
    # Sizes also rotate a direction of each core: the normal of a surface or a face, or the direction of an edge. The
    # adjoints of its rotation are apart, for the gradient of the sizes.
    first_direction: vec3
    first_direction_rotation: vec3
    second_direction: vec3
    second_direction_rotation: vec3


@wp.func
def rim_backward(primitive: ContactPrimitive, point_bar: vec3, normal_bar: vec3):
    """Return the adjoints of the cores of a rim and a plane."""
    adjoint = FeatureAdjoint()
    axis = primitive.first_axis
    normal = primitive.normal
    lowest = wp.dot(axis, normal) * axis - normal
    length = wp.length(lowest)
    adjoint.first = point_bar
    adjoint.rim_radius = wp.dot(point_bar, primitive.second_axis)
    direction_bar = normal_bar
    if length > MIN_RIM_SINE:
        unit = lowest / length
        bar = primitive.rim[2] * point_bar
        unit_bar = primitive.rim[0] * bar + primitive.rim[1] * wp.cross(bar, axis)
        h = tangential_part(unit_bar, unit) / length
        direction_bar = direction_bar - h + wp.dot(axis, h) * axis
        axis_bar = primitive.rim[1] * wp.cross(unit, bar) + wp.dot(axis, normal) * h + wp.dot(axis, h) * normal
        # The adjoint acts at the center of the circle, not at the point.
        lever = -primitive.rim[2] * primitive.second_axis
        adjoint.first_rotation = wp.cross(axis, axis_bar) + wp.cross(lever, point_bar)
    adjoint.second_rotation = wp.cross(normal, direction_bar)
    return adjoint


@wp.func
def smooth_backward(primitive: ContactPrimitive, point_bar: vec3, normal_bar: vec3):
    """Return the adjoints of the cores of a smooth case: ellipsoids, lines and faces."""
    adjoint = FeatureAdjoint()
    target = zero3()
    g = zero3()
    n = primitive.normal
    adjoint.first_direction = n
    adjoint.second_direction = n
    distance = wp.dot(n, primitive.first_point - primitive.second_point)
    if primitive.form == SMOOTH:
        target = normal_bar - primitive.first_curvature * point_bar
        g = solve_tangential(primitive.first_curvature + primitive.second_curvature, distance, n, target)
        adjoint.first = point_bar + g
        adjoint.second = -g
        adjoint.first_direction_rotation = tangential_part(primitive.first_curvature * adjoint.first, n)
        adjoint.second_direction_rotation = tangential_part(primitive.second_curvature * g, n)
    elif primitive.form == LINE_SMOOTH:
        axis = primitive.first_axis
        e = wp.cross(n, axis)
        target = normal_bar + distance * point_bar + primitive.second_curvature * point_bar
        g = wp.dot(target, e) / (wp.dot(e, primitive.second_curvature * e) + distance) * e
        adjoint.first = wp.dot(point_bar, n) * n + g
        adjoint.second = point_bar - adjoint.first
        adjoint.first_rotation = wp.dot(axis, target - primitive.second_curvature * g) * wp.cross(n, axis)
        adjoint.second_direction_rotation = tangential_part(primitive.second_curvature * (g - point_bar), n)
    else:
        adjoint.first = point_bar
        adjoint.first_direction_rotation = tangential_part(primitive.first_curvature * point_bar, n)
        adjoint.second_rotation = wp.cross(n, normal_bar - primitive.first_curvature * point_bar)
    adjoint.first_rotation = adjoint.first_rotation + wp.cross(n, adjoint.first_direction_rotation)
    adjoint.second_rotation = adjoint.second_rotation + wp.cross(n, adjoint.second_direction_rotation)
    # The normals of a rim do not depend on its radius.
    if wp.length_sq(primitive.first_radius_derivative) > scalar(0.0):
        adjoint.first_direction_rotation = zero3()
    if wp.length_sq(primitive.second_radius_derivative) > scalar(0.0):
        adjoint.second_direction_rotation = zero3()
    if primitive.form == LINE_SMOOTH and primitive.first_is_scaled != 0:
        adjoint.first_direction_rotation = wp.dot(primitive.first_axis, target - primitive.second_curvature * g) * n
        adjoint.first_direction = primitive.first_axis
    elif primitive.form == SMOOTH_FACE and primitive.second_is_scaled != 0:
        adjoint.second_direction_rotation = tangential_part(normal_bar - primitive.first_curvature * point_bar, n)
    return adjoint


@wp.func
def primitive_backward(primitive: ContactPrimitive, point_bar: vec3, normal_bar: vec3):
    """Return the adjoints of the cores from q̄ and n̄, of a primitive that is not swapped."""
    adjoint = FeatureAdjoint()
    n = primitive.normal
    distance = wp.dot(n, primitive.first_point - primitive.second_point)
    if wp.abs(distance) < MIN_LENGTH:
        distance = MIN_LENGTH
    g = tangential_part(normal_bar, n) / distance  # the distance is negative for a tendon, whose normal is reversed
    if primitive.form == POINTS:
        adjoint.first = point_bar + g
        adjoint.second = -g
    elif primitive.form == FACE:
        adjoint.first = point_bar
        adjoint.second_rotation = wp.cross(n, normal_bar)
    elif primitive.form == POINT_LINE:
        axis = primitive.second_axis
        transverse = tangential_part(g, axis)
        adjoint.first = point_bar + transverse
        adjoint.second = -transverse
        adjoint.second_rotation = wp.cross(axis, -distance * wp.dot(axis, g) * n)
    elif primitive.form == LINE_POINT:
        axis = primitive.first_axis
        point_sum = point_bar + g
        adjoint.first = tangential_part(point_sum, axis)
        adjoint.second = wp.dot(axis, point_bar) * axis - tangential_part(g, axis)
        adjoint.first_rotation = wp.cross(axis, -distance * wp.dot(axis, point_sum) * n)
    elif primitive.form == LINES:
        crossed = wp.cross(primitive.first_axis, primitive.second_axis)
        sine = wp.length(crossed)
        cosine = wp.dot(primitive.first_axis, primitive.second_axis)
        side = wp.sign(wp.dot(n, crossed)) / sine
        g = side * tangential_part(normal_bar, n)
        sigma = wp.dot(point_bar, primitive.first_axis) / (sine * sine)
        slide = sigma * (primitive.first_axis - cosine * primitive.second_axis)
        adjoint.first = point_bar - slide
        adjoint.second = slide
        first_bar = wp.cross(primitive.second_axis, g) - sigma * distance * n
        second_bar = wp.cross(g, primitive.first_axis) + sigma * cosine * distance * n
        adjoint.first_rotation = wp.cross(primitive.first_axis, first_bar)
        adjoint.second_rotation = wp.cross(primitive.second_axis, second_bar)
        if primitive.first_is_scaled != 0:
            adjoint.first_direction_rotation = -tangential_part(first_bar, primitive.first_axis)
            adjoint.first_direction = primitive.first_axis
        if primitive.second_is_scaled != 0:
            adjoint.second_direction_rotation = -tangential_part(second_bar, primitive.second_axis)
            adjoint.second_direction = primitive.second_axis
    elif primitive.form == RIM:
        adjoint = rim_backward(primitive, point_bar, normal_bar)
    elif primitive.form >= SMOOTH:
        adjoint = smooth_backward(primitive, point_bar, normal_bar)
    return adjoint


@wp.func
def add_adjoints(total: FeatureAdjoint, added: FeatureAdjoint):
    """Return the sum of the adjoints of two primitives' cores."""
    total.first = total.first + added.first
    total.first_rotation = total.first_rotation + added.first_rotation
    total.second = total.second + added.second
    total.second_rotation = total.second_rotation + added.second_rotation
    total.rim_radius = total.rim_radius + added.rim_radius
    total.first_direction_rotation = total.first_direction_rotation + added.first_direction_rotation
    total.second_direction_rotation = total.second_direction_rotation + added.second_direction_rotation
    total.first_direction = total.first_direction + added.first_direction
    total.second_direction = total.second_direction + added.second_direction
    return total


@wp.func
def core_separation_backward(primitive: ContactPrimitive, bar: scalar):
    """Return the adjoints of the cores from an adjoint of the separation."""
    adjoint = FeatureAdjoint()
    adjoint.first = bar * primitive.normal
    if primitive.form == RIM:
        adjoint = rim_backward(primitive, bar * primitive.normal, zero3())
    adjoint.second = -bar * primitive.normal
    return adjoint


@wp.func
def swap_shapes(primitive: ContactPrimitive):
    """Return the primitive with the first shape and the second exchanged."""
    swapped = primitive
    swapped.normal = -primitive.normal
    swapped.first_point = primitive.second_point
    swapped.second_point = primitive.first_point
    swapped.first_axis = primitive.second_axis
    swapped.second_axis = primitive.first_axis
    swapped.first_curvature = primitive.second_curvature
    swapped.second_curvature = primitive.first_curvature
    swapped.first_radius_derivative = primitive.second_radius_derivative
    swapped.second_radius_derivative = primitive.first_radius_derivative
    swapped.first_is_scaled = primitive.second_is_scaled
    swapped.second_is_scaled = primitive.first_is_scaled
    return swapped


@wp.func
def form_backward(primitive: ContactPrimitive, point_bar: vec3, normal_bar: vec3):
    """Return the adjoints of the cores from q̄ and n̄, of a primitive with the normal of its form.

    For a swapped primitive, q = q₂ + L n is the sum of its values for the second shape and the first.
    """
    if primitive.is_swapped == 0:
        return primitive_backward(primitive, point_bar, normal_bar)
    swapped = swap_shapes(primitive)
    distance = wp.dot(primitive.normal, primitive.first_point - primitive.second_point)
    adjoint = primitive_backward(swapped, point_bar, -(normal_bar + distance * point_bar))
    adjoint = add_adjoints(adjoint, core_separation_backward(swapped, wp.dot(point_bar, primitive.normal)))
    result = adjoint
    result.first = adjoint.second
    result.first_rotation = adjoint.second_rotation
    result.first_direction_rotation = adjoint.second_direction_rotation
    result.first_direction = adjoint.second_direction
    result.second = adjoint.first
    result.second_rotation = adjoint.first_rotation
    result.second_direction_rotation = adjoint.first_direction_rotation
    result.second_direction = adjoint.first_direction
    return result


@wp.func
def closest_points_backward(primitive: ContactPrimitive, point_bar: vec3, normal_bar: vec3):
    """Return the adjoints of the cores from q̄ and n̄; the normal of flat contact rotates with the second shape."""
    if primitive.is_flat == 0 or (primitive.form == SMOOTH_FACE and primitive.is_swapped == 0):
        return form_backward(primitive, point_bar, normal_bar)
    side_bar = normal_bar
    if primitive.is_swapped != 0:
        side_bar = side_bar + wp.dot(primitive.normal, primitive.first_point - primitive.second_point) * point_bar
    adjoint = form_backward(primitive, point_bar, normal_bar - side_bar)
    adjoint.second_rotation = adjoint.second_rotation + wp.cross(primitive.normal, side_bar)
    if primitive.second_is_scaled != 0:
        adjoint.second_direction_rotation = tangential_part(side_bar, primitive.normal)
        adjoint.second_direction = primitive.normal
    return adjoint
