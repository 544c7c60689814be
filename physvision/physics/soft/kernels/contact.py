"""Penalty contact of a node with an obstacle: a spring, and friction that is smoothed below a small velocity.

It depends on the position r = x − c of the node relative to a point of a plane, or to the center of a collider, now,
and r₀ at the start of the step. The penetration of a plane with normal n is o = −n · r. A collider is the set of points
closer than its radius R to a box of half-edges b, zeros for a ball: with d = r − clamp(r, −b, b), n = d/|d| and
o = R − |d|. So a box has rounded edges. The derivative of the normal is H = (P − n nᵀ)/|d|, with the projection P
to the axes along which r is beyond the box.

With the stiffness k times the node's area, the load N = k max(0, o₀) at the start of the step, T = 1 − n₀ n₀ᵀ, the
tangential velocity w = T(r − r₀)/h and s = √(|w|² + slip²), the energy of a step is

    ½ k max(0, o)² + η N h (s − slip)

Its derivative to r is the force: −k o n, and friction η N w/s of at most η N.
"""

import warp as wp

from .precision import D, Nodes, Vec, real
from .structs import BodyStruct, ContactStruct, NumbersStruct, StepStruct, TouchStruct


@wp.func
def touch(body: BodyStruct, numbers: NumbersStruct, world: int, obstacle: int, r: Vec):
    """Penetration of a node at r, at least zero, with its normal and the derivative of the normal."""
    t = TouchStruct()
    t.normal = body.normal[obstacle]
    t.deep = -wp.dot(t.normal, r)
    if body.partner[obstacle] >= 0:
        half = body.half[obstacle]
        d = Vec()
        for i in range(D):
            d[i] = r[i] - wp.clamp(r[i], -half[i], half[i])
            t.beyond[i] = real(wp.where(d[i] != real(0.0) or half[i] == real(0.0), 1.0, 0.0))
        far = wp.max(wp.length(d), real(1e-300))
        t.normal = d / far
        t.bend = real(1.0) / far
        t.deep = numbers.whole[world, 2 + body.partner.shape[0] + obstacle] - far
    t.deep = wp.max(t.deep, real(0.0))
    return t


@wp.func
def turn(t: TouchStruct, d: Vec):
    """Derivative H d of the normal along d."""
    return t.bend * (wp.cw_mul(t.beyond, d) - wp.dot(t.normal, d) * t.normal)


@wp.func
def relative_position(body: BodyStruct, obstacle: int, node: int, x: Nodes):
    """Position of a node relative to an obstacle."""
    if body.partner[obstacle] < 0:
        return x[node] - body.point[obstacle]
    return x[node] - x[body.partner[obstacle]]


@wp.func
def contact(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, obstacle: int, node: int, x: Nodes):
    c = ContactStruct()
    r = relative_position(body, obstacle, node, x)
    r0 = relative_position(body, obstacle, node, s.x0)
    c.now = touch(body, numbers, s.world, obstacle, r)
    c.before = touch(body, numbers, s.world, obstacle, r0)
    n = c.before.normal
    c.h = body.h
    c.area = body.area[node]
    c.stiffness = numbers.whole[s.world, 1] * c.area
    c.friction = numbers.whole[s.world, 2 + obstacle]
    c.slid = r - r0
    c.w = (c.slid - wp.dot(c.slid, n) * n) / body.h
    c.s = wp.sqrt(wp.dot(c.w, c.w) + body.slip * body.slip)
    c.grip = c.friction * c.stiffness * c.before.deep / c.s
    c.smooth = c.s - body.slip
    return c


@wp.func
def contact_energy(c: ContactStruct):
    return real(0.5) * c.stiffness * c.now.deep * c.now.deep + c.grip * c.s * c.h * c.smooth


@wp.func
def contact_gradient(c: ContactStruct):
    return c.grip * c.w - (c.stiffness * c.now.deep) * c.now.normal


@wp.func
def dragged(c: ContactStruct, d: Vec):
    """Derivative of w/s along d, times h s."""
    n = c.before.normal
    along = d - wp.dot(d, n) * n
    return along - (wp.dot(c.w, along) / (c.s * c.s)) * c.w


@wp.func
def contact_tangent(c: ContactStruct, d: Vec):
    """Derivative of the gradient along d, which is symmetric."""
    change = (c.grip / c.h) * dragged(c, d)
    if c.now.deep > real(0.0):
        change += c.stiffness * (wp.dot(c.now.normal, d) * c.now.normal - c.now.deep * turn(c.now, d))
    return change


@wp.func
def contact_before(c: ContactStruct, d: Vec):
    """Derivative of (gradient · d) to r₀, by the direction and velocity of friction, and by the load.

    With z = (d − (w · d) w/s²)/s, a change of w changes (w · d)/s by z · δw, and h δw = −T δr₀ − δ(n₀ n₀ᵀ)(r − r₀).
    """
    n = c.before.normal
    z = d - (wp.dot(c.w, d) / (c.s * c.s)) * c.w
    turned = turn(c.before, wp.dot(z, n) * c.slid + wp.dot(n, c.slid) * z)
    change = -(c.grip / c.h) * (dragged(c, d) + turned)
    if c.before.deep > real(0.0):
        change -= (c.friction * c.stiffness * wp.dot(c.w, d) / c.s) * n
    return change


@wp.func
def contact_numbers(body: BodyStruct, world: int, obstacle: int, c: ContactStruct, d: Vec, bars: NumbersStruct):
    """Subtract the derivatives of (gradient · d) to stiffness, friction and radius from the gradients."""
    rub = wp.dot(c.w, d) / c.s
    press = wp.dot(c.now.normal, d)
    bars.whole[world, 1] += c.area * (press * c.now.deep - c.friction * rub * c.before.deep)
    bars.whole[world, 2 + obstacle] -= c.stiffness * rub * c.before.deep
    if c.now.deep > real(0.0):
        bars.whole[world, 2 + body.partner.shape[0] + obstacle] += c.stiffness * press
    if c.before.deep > real(0.0):
        bars.whole[world, 2 + body.partner.shape[0] + obstacle] -= c.friction * c.stiffness * rub
