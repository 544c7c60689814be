"""Force laws of MuJoCo's convex contact, which drive constraints toward a reference acceleration, and their adjoint.

A block has the error or penetration, the velocity u and the acceleration α = J a of its rows, and lags behind its
reference by s = −b u − α − k d e. Its force F(s) is the derivative of a convex function of s, its matrix K = ∂F/∂s:

    PYRAMID    edges e = (1, ±μ, 0), (1, 0, ±μ) and, with rotational friction, (1, ±ρ) for each of its rows:
               F = D Σ max(0, e · s) e,   1/D = 2 μ² (1 + μ²) m (1 − d)/(d r);
               without friction one edge n, 1/D = m (1 − d)/d, which serves limits too;
    ELLIPTIC   with T = |(μ_j s_j)| over the rows of friction, ν² = μ²/r, D as without friction: F = 0 if s₀ ≤ −T,
               (D s₀, D (μ_j/ν)² s_j) if T ≤ ν² s₀, and between them D (s₀ + T)/(1 + ν²) (1, μ_j² s_j/T);
    BOUNDED    one row, F = clamp(f + D s, lower, upper): dry friction (f = 0), equality constraints (no bounds), and
               servos, whose force f at the start of the step falls with the acceleration by D = h · damping;
    SPRING     three rows, F = D s: equality constraints of bodies.

Here m is the acceleration of both bodies by a force of 1 N, r is `impratio`, and the impedance d grows with the error:
d = smallest + y (largest − smallest), with x = |e|/width, y = x^p/c^(p − 1) up to the midpoint c, 1 − (1 − x)^p/(1 −
c)^(p − 1) up to 1, and 1 beyond. For each constraint `reference` holds k, b and the width, `impedance` the smallest and
the largest d and m, and `curve` c, p and m of rotations.

All laws but BOUNDED are homogeneous, F = K s. For weights w, the derivatives of w · F are

    ᾱ = −K w,    ū = −b K w,    ē = −k (d + e d′) (K w)_n + w · F d′/(d (1 − d)),

and those with respect to friction are in `friction_gradient`. Rotational friction is a block of its own, COMPANION, in
the slot after its contact; its lag and its force are called angular here.
"""

import warp as wp

from ..precision import Vec3Array2d, mat33, scalar, vec3, vec4
from ..spatial.vectors import zero3
from ..structs import Contact

ONE = wp.constant(scalar(1.0))

PYRAMID = wp.constant(0)
ELLIPTIC = wp.constant(1)
BOUNDED_FORCE = wp.constant(2)
SPRING = wp.constant(3)
COMPANION = wp.constant(4)

# Modes of an elliptic cone, besides zero: all rows are springs, or the force is on the cone.
INSIDE = wp.constant(1)
ON_CONE = wp.constant(2)

# Modes of a bounded force.
FREE_FORCE = wp.constant(1)
AT_LOWER = wp.constant(2)
AT_UPPER = wp.constant(4)


@wp.func
def impedance(reference: vec3, impedances: vec3, curve: vec3, error: scalar):
    """Return the impedance d at an error, and its derivative with respect to the error."""
    x = wp.abs(error) / reference[2]
    power = curve[1]
    y = ONE
    slope = scalar(0.0)
    if x < ONE:
        if power == scalar(2.0):
            if x <= curve[0]:
                y = x * x / curve[0]
                slope = scalar(2.0) * x / curve[0]
            else:
                y = ONE - (ONE - x) * (ONE - x) / (ONE - curve[0])
                slope = scalar(2.0) * (ONE - x) / (ONE - curve[0])
        elif x <= curve[0]:
            slope = power * wp.pow(x / curve[0], power - ONE)
            y = slope * x / power
        else:
            slope = power * wp.pow((ONE - x) / (ONE - curve[0]), power - ONE)
            y = ONE - slope * (ONE - x) / power
    impedance_range = impedances[1] - impedances[0]
    slope = wp.sign(error) * slope * impedance_range / reference[2]
    return impedances[0] + y * impedance_range, slope


@wp.func
def impedance_stiffness(impedance_value: scalar, mobility: scalar):
    """Return the stiffness D of a row without friction."""
    return impedance_value / (mobility * (ONE - impedance_value))


@wp.func
def edge_stiffness(impedance_value: scalar, mobility: scalar, friction: scalar, ratio: scalar):
    """Return the stiffness D of every edge of a pyramid."""
    stiffness = impedance_stiffness(impedance_value, mobility)
    if friction > scalar(0.0):
        stiffness *= ratio / (scalar(2.0) * friction * friction * (ONE + friction * friction))
    return stiffness


@wp.func
def edge_components(friction: scalar, x: vec3):
    """Return x · e of the edges with +μ and −μ along the first tangent, and along the second."""
    first = friction * x[1]
    second = friction * x[2]
    return vec4(x[0] + first, x[0] - first, x[0] + second, x[0] - second)


@wp.func
def active_edges(friction: scalar, lag: vec3):
    """Return a bit mask of the edges that push; a contact without friction has only the first."""
    z = scalar(0.0)
    edges = edge_components(friction, lag)
    bits = wp.int32(0)
    if edges[0] > z:
        bits += 1
    if friction > z:
        if edges[1] > z:
            bits += 2
        if edges[2] > z:
            bits += 4
        if edges[3] > z:
            bits += 8
    return bits


@wp.func
def masked_edges(edges: vec4, bits: int):
    """Return the values of the edges that push, zero for the others."""
    z = scalar(0.0)
    return vec4(
        wp.where(bits & 1, edges[0], z),
        wp.where(bits & 2, edges[1], z),
        wp.where(bits & 4, edges[2], z),
        wp.where(bits & 8, edges[3], z),
    )


@wp.func
def stiffness_product(stiffness: scalar, friction: scalar, bits: int, x: vec3):
    """Return K x for the edges that push."""
    edges = masked_edges(edge_components(friction, x), bits)
    total = edges[0] + edges[1] + edges[2] + edges[3]
    return stiffness * vec3(total, friction * (edges[0] - edges[1]), friction * (edges[2] - edges[3]))


@wp.func
def stiffness_matrix(stiffness: scalar, friction: scalar, bits: int):
    """Return K for the edges that push."""
    edge_mask = masked_edges(vec4(ONE, ONE, ONE, ONE), bits)
    z = scalar(0.0)
    first = friction * (edge_mask[0] - edge_mask[1])
    second = friction * (edge_mask[2] - edge_mask[3])
    square = friction * friction
    return stiffness * mat33(
        edge_mask[0] + edge_mask[1] + edge_mask[2] + edge_mask[3], first, second,
        first, square * (edge_mask[0] + edge_mask[1]), z,
        second, z, square * (edge_mask[2] + edge_mask[3]),
    )  # fmt: skip


@wp.func
def companion_entry(contact: Contact, world: int, c: int, values: Vec3Array2d):
    """Return the entry of the block of rotational friction that belongs to block c, zero without one."""
    entry = zero3()
    if contact.convex.companion[world, c] >= 0:
        entry = values[world, contact.convex.companion[world, c]]
    return entry


@wp.func
def rotational_coefficients(contact: Contact, world: int, c: int):
    """Return torsional and (twice) rolling friction of block c, zero without rotational friction."""
    coefficients = zero3()
    if contact.convex.companion[world, c] >= 0:
        rolling = contact.blocks.rolling_friction[world, c]
        coefficients = vec3(contact.blocks.torsional_friction[world, c], rolling, rolling)
    return coefficients


@wp.func
def scaled_lag(friction: scalar, angular_friction: vec3, lag: vec3, angular: vec3):
    """Return the components μ_j s_j of friction, linear (first entry zero) and angular, and their length T."""
    linear_part = vec3(scalar(0.0), friction * lag[1], friction * lag[2])
    angular_part = wp.cw_mul(angular_friction, angular)
    length = wp.sqrt(wp.length_sq(linear_part) + wp.length_sq(angular_part))
    return linear_part, angular_part, length


@wp.func
def block_mode(contact: Contact, world: int, c: int, ratio: scalar, lag: vec3, angular: vec3):
    """Return the mode of a block at a lag: zero without a force, else the region of its law in which F = K s."""
    law = contact.blocks.law[world, c]
    friction = contact.blocks.friction[world, c]
    mode = wp.int32(0)
    if law == PYRAMID:
        mode = active_edges(friction, lag)
        if contact.convex.companion[world, c] >= 0:
            coefficients = rotational_coefficients(contact, world, c)
            for k in range(3):
                if coefficients[k] > scalar(0.0):
                    if lag[0] + coefficients[k] * angular[k] > scalar(0.0):
                        mode += 16 << (2 * k)
                    if lag[0] - coefficients[k] * angular[k] > scalar(0.0):
                        mode += 32 << (2 * k)
    elif law == ELLIPTIC:
        _linear, _angular, length = scaled_lag(friction, rotational_coefficients(contact, world, c), lag, angular)
        if lag[0] > -length:
            mode = ON_CONE
            if length * ratio <= friction * friction * lag[0]:
                mode = INSIDE
    elif law == BOUNDED_FORCE:
        force = contact.convex.free_force[world, c] + contact.convex.edge_stiffness[world, c] * lag[0]
        mode = FREE_FORCE
        if force <= contact.blocks.lower[world, c]:
            mode = AT_LOWER
        elif force >= contact.blocks.upper[world, c]:
            mode = AT_UPPER
    else:
        mode = FREE_FORCE
    return mode


@wp.func
def cone_product(
    stiffness: scalar, ratio: scalar, friction: scalar, coefficients: vec3, lag: vec3, angular: vec3, x: vec3, y: vec3
):
    """Return K (x, y) of an elliptic cone whose force is on it."""
    linear_part, angular_part, length = scaled_lag(friction, coefficients, lag, angular)
    linear_part = linear_part / length
    angular_part = angular_part / length
    linear_x, angular_x, _length = scaled_lag(friction, coefficients, x, y)
    along = wp.dot(linear_part, linear_x) + wp.dot(angular_part, angular_x)
    normal_stiffness = stiffness / (ONE + friction * friction / ratio)
    tangent_stiffness = normal_stiffness * (lag[0] + length) / length
    radial_factor = normal_stiffness * (x[0] + along) - tangent_stiffness * along
    first = friction * (radial_factor * linear_part + tangent_stiffness * linear_x)
    first[0] = normal_stiffness * (x[0] + along)
    return first, wp.cw_mul(coefficients, radial_factor * angular_part + tangent_stiffness * angular_x)


@wp.func
def block_product(
    contact: Contact, world: int, c: int, ratio: scalar, mode: int, lag: vec3, angular: vec3, x: vec3, y: vec3
):
    """Return K (x, y) of a block at a lag, for its own rows and for those of its rotational friction."""
    law = contact.blocks.law[world, c]
    stiffness = contact.convex.edge_stiffness[world, c]
    friction = contact.blocks.friction[world, c]
    coefficients = rotational_coefficients(contact, world, c)
    first = zero3()
    second = zero3()
    if law == PYRAMID:
        first = stiffness_product(stiffness, friction, mode & 15, x)
        if contact.convex.companion[world, c] >= 0:
            for k in range(3):
                plus = scalar((mode >> (4 + 2 * k)) & 1) * (x[0] + coefficients[k] * y[k])
                minus = scalar((mode >> (5 + 2 * k)) & 1) * (x[0] - coefficients[k] * y[k])
                first[0] = first[0] + stiffness * (plus + minus)
                second[k] = stiffness * coefficients[k] * (plus - minus)
    elif law == ELLIPTIC:
        if mode == INSIDE:
            first = vec3(stiffness * x[0], ratio * stiffness * x[1], ratio * stiffness * x[2])
            angular_stiffness = ratio * stiffness / (friction * friction)
            second = angular_stiffness * wp.cw_mul(wp.cw_mul(coefficients, coefficients), y)
        elif mode == ON_CONE:
            first, second = cone_product(stiffness, ratio, friction, coefficients, lag, angular, x, y)
    elif law == BOUNDED_FORCE:
        if mode == FREE_FORCE:
            first[0] = stiffness * x[0]
    else:
        first = stiffness * x
    return first, second


@wp.func
def block_force(contact: Contact, world: int, c: int, ratio: scalar, mode: int, lag: vec3, angular: vec3):
    """Return the force of a block at a lag, along its own rows and along those of its rotational friction."""
    first, second = block_product(contact, world, c, ratio, mode, lag, angular, lag, angular)
    if contact.blocks.law[world, c] == BOUNDED_FORCE:
        first[0] = first[0] + contact.convex.free_force[world, c]
        if mode == AT_LOWER:
            first[0] = contact.blocks.lower[world, c]
        elif mode == AT_UPPER:
            first[0] = contact.blocks.upper[world, c]
    return first, second


@wp.func
def error_gradient(
    reference: vec3, impedances: vec3, curve: vec3, error: scalar, normal_product: scalar, force_product: scalar
):
    """Return ē from `normal_product` = (K w)_n and `force_product` = w · F."""
    impedance_value, slope = impedance(reference, impedances, curve, error)
    return -reference[0] * (impedance_value + error * slope) * normal_product + force_product * slope / (
        impedance_value * (ONE - impedance_value)
    )


@wp.func
def pyramid_friction_gradient(
    stiffness: scalar, friction: scalar, bits: int, lag: vec3, weight: vec3, force_product: scalar
):
    """Return μ̄ of a pyramid: D Σ ±((e · w) s_i + (e · s) w_i) − w · F (2/μ + 2 μ/(1 + μ²))."""
    bar = scalar(0.0)
    if friction > scalar(0.0):
        lags = masked_edges(edge_components(friction, lag), bits)
        weights = masked_edges(edge_components(friction, weight), bits)
        bar = (lags[0] - lags[1]) * weight[1] + (lags[2] - lags[3]) * weight[2]
        bar += (weights[0] - weights[1]) * lag[1] + (weights[2] - weights[3]) * lag[2]
        square = friction * friction
        bar = stiffness * bar - force_product * (scalar(2.0) / friction + scalar(2.0) * friction / (ONE + square))
    return bar


@wp.func
def cone_component_gradient(
    direction: scalar,
    length: scalar,
    opening: scalar,
    total: scalar,
    along: scalar,
    coefficient: scalar,
    s: scalar,
    w: scalar,
):
    """Return the derivative of (s₀ + T) (w₀ + Σ w_j μ_j Û_j) with respect to one coefficient μ_j.

    Args:
        direction: Û_j, of the unit vector along μ_j s_j.
        length: T.
        opening: s₀ + T.
        total: w₀ + Σ w_j μ_j Û_j.
        along: Σ w_j μ_j Û_j.
        coefficient: μ_j.
        s: s_j.
        w: w_j.
    """
    return direction * s * total + opening * (w * direction + s / length * (w * coefficient - direction * along))


@wp.func
def friction_gradient(
    contact: Contact,
    world: int,
    c: int,
    ratio: scalar,
    mode: int,
    lag: vec3,
    angular: vec3,
    weight: vec3,
    angular_weight: vec3,
    force_product: scalar,
):
    """Return the derivatives of w · F with respect to sliding, torsional and rolling friction."""
    z = scalar(0.0)
    stiffness = contact.convex.edge_stiffness[world, c]
    friction = contact.blocks.friction[world, c]
    coefficients = rotational_coefficients(contact, world, c)
    bars = zero3()
    angular_bars = zero3()
    if contact.blocks.law[world, c] == PYRAMID:
        bars[0] = pyramid_friction_gradient(stiffness, friction, mode & 15, lag, weight, force_product)
        if contact.convex.companion[world, c] >= 0:
            for k in range(3):
                for side in range(2):
                    sign = scalar(1 - 2 * side)
                    pushes = scalar((mode >> (4 + 2 * k + side)) & 1)
                    edge_lag = lag[0] + sign * coefficients[k] * angular[k]
                    edge_weight = weight[0] + sign * coefficients[k] * angular_weight[k]
                    change = edge_weight * angular[k] + edge_lag * angular_weight[k]
                    angular_bars[k] = angular_bars[k] + pushes * stiffness * sign * change
    elif contact.blocks.law[world, c] == ELLIPTIC and mode == INSIDE:
        if contact.convex.companion[world, c] >= 0:
            angular_stiffness = ratio * stiffness / (friction * friction)
            squares = wp.cw_mul(angular, angular_weight)
            angular_bars = scalar(2.0) * angular_stiffness * wp.cw_mul(coefficients, squares)
            bars[0] = -wp.dot(coefficients, angular_bars) / friction
    elif contact.blocks.law[world, c] == ELLIPTIC and mode == ON_CONE:
        linear_part, angular_part, length = scaled_lag(friction, coefficients, lag, angular)
        scaled_weight, scaled_angular_weight, _length = scaled_lag(friction, coefficients, weight, angular_weight)
        along = (wp.dot(linear_part, scaled_weight) + wp.dot(angular_part, scaled_angular_weight)) / length
        opening = lag[0] + length
        total = weight[0] + along
        square = friction * friction / ratio
        normal_stiffness = stiffness / (ONE + square)
        for k in range(3):
            bar = cone_component_gradient(
                linear_part[k] / length, length, opening, total, along, friction, lag[k], weight[k]
            )
            if k > 0:
                bars[0] = bars[0] + normal_stiffness * bar
            angular_bars[k] = normal_stiffness * cone_component_gradient(
                angular_part[k] / length, length, opening, total, along, coefficients[k], angular[k], angular_weight[k]
            )
        bars[0] = bars[0] - scalar(2.0) * square / (friction * (ONE + square)) * force_product
        if contact.convex.companion[world, c] < 0:
            angular_bars = vec3(z, z, z)
    return vec3(bars[0], angular_bars[0], angular_bars[1] + angular_bars[2])
