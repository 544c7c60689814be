"""Forces of contacts that follow a reference acceleration, as `contact.compliant` has them, and their adjoint.

A contact overlaps by −g, moves at u and accelerates by α = J a. The edges of its pyramid e = (1, ±μ, 0), (1, 0, ±μ)
lag behind their reference by e · s, with

    s = −b u − α − (k d g, 0, 0),    F = D Σ max(0, e · s) e,    1/D = 2 μ² (1 + μ²) m (1 − d)/d,

of a contact without friction there is one edge n, and 1/D = m (1 − d)/d; m is what a force of 1 N gives both bodies.
With x = −g/width, d = least + y (most − least), y = 2 x² up to ½, 1 − 2 (1 − x)² up to 1, and 1 beyond. Of each
candidate `reference` holds k, b and the width, and `shares` the least and the largest d, and m.

For weights w, with K = D Σ e eᵀ over the edges that push, so that F = K s, w · F has the derivatives

    ᾱ = −K w,    ū = −b K w,    ḡ = −k (d + g d′) (K w)_n + w · F d′/(d (1 − d)),
    μ̄ = D Σ ±((e · w) s_i + (e · s) w_i) − w · F (2/μ + 2 μ/(1 + μ²)).
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import mat33, scalar, vec3, vec4

ONE = wp.constant(scalar(1.0))


@wp.func
def share_of(reference: vec3, shares: vec3, gap: scalar):
    """The share d at a gap, and its derivative."""
    x = -gap / reference[2]
    y = ONE
    slope = scalar(0.0)
    if x <= scalar(0.5):
        y = scalar(2.0) * x * x
        slope = scalar(4.0) * x
    elif x < ONE:
        y = ONE - scalar(2.0) * (ONE - x) * (ONE - x)
        slope = scalar(4.0) * (ONE - x)
    more = shares[1] - shares[0]
    return shares[0] + y * more, -slope * more / reference[2]


@wp.func
def hardness(share: scalar, mobility: scalar, friction: scalar):
    """D, of each edge."""
    yielding = mobility * (ONE - share) / share
    if friction > scalar(0.0):
        yielding *= scalar(2.0) * friction * friction * (ONE + friction * friction)
    return ONE / yielding


@wp.func
def along_edges(friction: scalar, x: vec3):
    """X · e of the edges with +μ and −μ along the first tangent, and along the second."""
    first = friction * x[1]
    second = friction * x[2]
    return vec4(x[0] + first, x[0] - first, x[0] + second, x[0] - second)


@wp.func
def pushing(friction: scalar, lag: vec3):
    """Which edges push: a bit each, the first alone of a contact without friction."""
    z = scalar(0.0)
    edges = along_edges(friction, lag)
    found = wp.int32(0)
    if edges[0] > z:
        found += 1
    if friction > z:
        if edges[1] > z:
            found += 2
        if edges[2] > z:
            found += 4
        if edges[3] > z:
            found += 8
    return found


@wp.func
def over_edges(edges: vec4, pushes: int):
    """The numbers of the edges that push, zero of the others."""
    z = scalar(0.0)
    return vec4(
        wp.where(pushes & 1, edges[0], z),
        wp.where(pushes & 2, edges[1], z),
        wp.where(pushes & 4, edges[2], z),
        wp.where(pushes & 8, edges[3], z),
    )


@wp.func
def times_stiffness(hard: scalar, friction: scalar, pushes: int, x: vec3):
    """K x."""
    edges = over_edges(along_edges(friction, x), pushes)
    total = edges[0] + edges[1] + edges[2] + edges[3]
    return hard * vec3(total, friction * (edges[0] - edges[1]), friction * (edges[2] - edges[3]))


@wp.func
def stiffness_of(hard: scalar, friction: scalar, pushes: int):
    """K."""
    on = over_edges(vec4(ONE, ONE, ONE, ONE), pushes)
    z = scalar(0.0)
    first = friction * (on[0] - on[1])
    second = friction * (on[2] - on[3])
    square = friction * friction
    return hard * mat33(
        on[0] + on[1] + on[2] + on[3], first, second,
        first, square * (on[0] + on[1]), z,
        second, z, square * (on[2] + on[3]),
    )  # fmt: skip


@wp.func
def gap_backward(reference: vec3, shares: vec3, gap: scalar, held: scalar, work_done: scalar):
    """ḡ, of `held` = (K w)_n and `work_done` = w · F."""
    share, slope = share_of(reference, shares, gap)
    return -reference[0] * (share + gap * slope) * held + work_done * slope / (share * (ONE - share))


@wp.func
def friction_backward(hard: scalar, friction: scalar, pushes: int, lag: vec3, weight: vec3, work_done: scalar):
    """μ̄."""
    bar = scalar(0.0)
    if friction > scalar(0.0):
        lags = over_edges(along_edges(friction, lag), pushes)
        weights = over_edges(along_edges(friction, weight), pushes)
        bar = (lags[0] - lags[1]) * weight[1] + (lags[2] - lags[3]) * weight[2]
        bar += (weights[0] - weights[1]) * lag[1] + (weights[2] - weights[3]) * lag[2]
        square = friction * friction
        bar = hard * bar - work_done * (scalar(2.0) / friction + scalar(2.0) * friction / (ONE + square))
    return bar
