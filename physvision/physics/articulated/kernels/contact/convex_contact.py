"""Forces of MuJoCo's convex contact, which drive contacts toward a reference acceleration, and their adjoint.

A contact has the penetration −g, the velocity u and the acceleration α = J a. The edges of its pyramid e = (1, ±μ, 0),
(1, 0, ±μ) lag behind their reference by e · s, with

    s = −b u − α − (k d g, 0, 0),    F = D Σ max(0, e · s) e,    1/D = 2 μ² (1 + μ²) m (1 − d)/d;

a contact without friction has one edge n, and 1/D = m (1 − d)/d; m is the acceleration of both bodies by a force of 1
N. With x = −g/width, the impedance is d = smallest + y (largest − smallest), y = 2 x² up to ½, 1 − 2 (1 − x)² up to 1,
and 1 beyond. For each candidate `reference` holds k, b and the width, and `impedance` the smallest and the largest d,
and m.

For weights w, with K = D Σ e eᵀ over the edges that push, so that F = K s, the derivatives of w · F are

    ᾱ = −K w,    ū = −b K w,    ḡ = −k (d + g d′) (K w)_n + w · F d′/(d (1 − d)),
    μ̄ = D Σ ±((e · w) s_i + (e · s) w_i) − w · F (2/μ + 2 μ/(1 + μ²)).
"""

import warp as wp

from ..precision import mat33, scalar, vec3, vec4

ONE = wp.constant(scalar(1.0))


@wp.func
def impedance(reference: vec3, impedances: vec3, separation: scalar):
    """Return the impedance d at a separation, and its derivative with respect to the separation."""
    x = -separation / reference[2]
    y = ONE
    slope = scalar(0.0)
    if x <= scalar(0.5):
        y = scalar(2.0) * x * x
        slope = scalar(4.0) * x
    elif x < ONE:
        y = ONE - scalar(2.0) * (ONE - x) * (ONE - x)
        slope = scalar(4.0) * (ONE - x)
    impedance_range = impedances[1] - impedances[0]
    return impedances[0] + y * impedance_range, -slope * impedance_range / reference[2]


@wp.func
def edge_stiffness(impedance_value: scalar, mobility: scalar, friction: scalar):
    """Return the stiffness D of every edge."""
    compliance = mobility * (ONE - impedance_value) / impedance_value
    if friction > scalar(0.0):
        compliance *= scalar(2.0) * friction * friction * (ONE + friction * friction)
    return ONE / compliance


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
def separation_gradient(
    reference: vec3, impedances: vec3, separation: scalar, normal_product: scalar, force_product: scalar
):
    """Return ḡ from `normal_product` = (K w)_n and `force_product` = w · F."""
    impedance_value, slope = impedance(reference, impedances, separation)
    return -reference[0] * (impedance_value + separation * slope) * normal_product + force_product * slope / (
        impedance_value * (ONE - impedance_value)
    )


@wp.func
def friction_gradient(stiffness: scalar, friction: scalar, bits: int, lag: vec3, weight: vec3, force_product: scalar):
    """Return μ̄ from the force_product w · F."""
    bar = scalar(0.0)
    if friction > scalar(0.0):
        lags = masked_edges(edge_components(friction, lag), bits)
        weights = masked_edges(edge_components(friction, weight), bits)
        bar = (lags[0] - lags[1]) * weight[1] + (lags[2] - lags[3]) * weight[2]
        bar += (weights[0] - weights[1]) * lag[1] + (weights[2] - weights[3]) * lag[2]
        square = friction * friction
        bar = stiffness * bar - force_product * (scalar(2.0) / friction + scalar(2.0) * friction / (ONE + square))
    return bar
