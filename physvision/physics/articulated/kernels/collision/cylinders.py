"""Closest points with a solid cylinder: of a point, and of a line's part.

Outside, the closest point lies on the side, on a cap, or on a rim; a point inside goes to the nearer of side and cap.
The side is a line with a ball about each of its points. A rim of radius ρ about the axis a has, for a normal n, its
point at ρ w/|w|, w = n − a (a · n), which moves with n by H = ρ/|w| τ τᵀ, τ = a × w/|w|.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.root_finding import bracket, guess, narrowed
from physvision.physics.articulated.kernels.spatial.vectors import zero3

from .contact_primitives import (
    FACE,
    LEAST,
    LINE_SMOOTH,
    LINES,
    POINT_LINE,
    SMOOTH,
    Closest,
    axis_of,
)

ROUNDING = wp.constant(scalar(1.0e-15 if DOUBLE else 1.0e-6))
TURNS = wp.constant(50)


@wp.func
def to_cylinder(near: Closest, turn: mat33, origin: vec3, size: vec3):
    """What is left to tell once `first` is the point of the first core, and the second shape is a cylinder."""
    axis = axis_of(turn, 2)
    away = near.first - origin
    along = wp.dot(axis, away)
    radial = away - along * axis
    length = wp.length(radial)
    outward = axis_of(turn, 0)
    if length > LEAST:
        outward = radial / length
    end = wp.sign(along)
    above = wp.abs(along) - scalar(0.5) * size[2]
    beside = length - size[0]
    near.second_axis = axis
    near.second_share = zero3()
    near.second_radius = scalar(0.0)
    near.second_rim = zero3()
    half = vec3(scalar(0.0), scalar(0.0), scalar(0.5) * end)
    if above > scalar(0.0) and beside > scalar(0.0):
        near.form = SMOOTH
        near.second = origin + scalar(0.5) * size[2] * end * axis + size[0] * outward
        apart = near.first - near.second
        near.normal = apart / wp.length(apart)
        across = near.normal - wp.dot(near.normal, axis) * axis
        round = wp.cross(axis, outward)
        near.second_curve = size[0] / wp.max(wp.length(across), LEAST) * wp.outer(round, round)
        near.second_share = half
        near.second_rim = outward
        near.gap = wp.length(apart) - near.first_radius
    elif above > beside:
        near.form = FACE
        near.normal = end * axis
        near.second = near.first - above * near.normal
        near.second_share = half
        near.gap = above - near.first_radius
    else:
        near.form = POINT_LINE
        near.normal = outward
        near.second = origin + along * axis
        near.second_radius = size[0]
        near.gap = beside - near.first_radius
    return near


@wp.func
def along_of(near: Closest, s: scalar, middle: vec3, axis: vec3, turn: mat33, origin: vec3, size: vec3):
    """How fast the distance to the cylinder grows along a line, at s; outside it never falls with s."""
    near.first = middle + s * axis
    found = to_cylinder(near, turn, origin, size)
    return wp.dot(axis, found.normal)


@wp.func
def segment_cylinder(near: Closest, turn_a: mat33, origin_a: vec3, size_a: vec3, turn: mat33, origin: vec3, size: vec3):
    """The axis of a capsule: the place along it, by a bracketed root, where it does not come nearer either way."""
    axis = axis_of(turn_a, 2)
    low = scalar(-0.5) * size_a[2]
    high = scalar(0.5) * size_a[2]
    value_low = along_of(near, low, origin_a, axis, turn, origin, size)
    value_high = along_of(near, high, origin_a, axis, turn, origin, size)
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
                value = along_of(near, s, origin_a, axis, turn, origin, size)
                between = narrowed(between, s, value, value < scalar(0.0))
    near.first = origin_a + s * axis
    near.first_radius = size_a[0]
    near = to_cylinder(near, turn, origin, size)
    near.first_axis = axis
    near.first_share = zero3()
    if inside != 0:
        if near.form == POINT_LINE:
            near.form = LINES
        elif near.form == SMOOTH:
            near.form = LINE_SMOOTH
    else:
        near.first_share = vec3(scalar(0.0), scalar(0.0), wp.sign(s) * scalar(0.5))
    return near
