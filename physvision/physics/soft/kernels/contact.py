"""Contact of a node with an obstacle: a spring of the overlap, and friction that slips smoothly below a small velocity.

All follows from the place r = x − c of the node beside a point of a plane, or the middle of a rigid solid, now, and r₀
at the start of the step. A plane of normal n is overlapped by o = −n · r. A solid is what is nearer than its radius R
to a box of half-edges b, zeros for a ball: with d = r − clamp(r, −b, b), n = d/|d| and o = R − |d|. So a box has round
edges. With r the normal turns by H = (P − n nᵀ)/|d|, P being the axes along which r is beyond the box.

With k the stiffness times the node's share of the surface, N = k max(0, o₀) the load at the start of the step,
T = 1 − n₀ n₀ᵀ, w = T(r − r₀)/h the velocity along the obstacle and s = √(|w|² + slip²), a step costs

    ½ k max(0, o)² + η N h (s − slip)

Its derivative to r is the force: −k o n, and η N w/s against slipping, which is at most η N.
"""

import warp as wp

from .precision import D, Nodes, Vec, real
from .structs import BodyStruct, ContactStruct, NumbersStruct, StepStruct, TouchStruct


@wp.func
def touch(body: BodyStruct, numbers: NumbersStruct, world: int, obstacle: int, r: Vec):
    """The overlap of a node at r, at least zero, its normal and how that turns."""
    found = TouchStruct()
    found.normal = body.normal[obstacle]
    found.deep = -wp.dot(found.normal, r)
    if body.partner[obstacle] >= 0:
        half = body.half[obstacle]
        d = Vec()
        for i in range(D):
            d[i] = r[i] - wp.clamp(r[i], -half[i], half[i])
            found.beyond[i] = real(wp.where(d[i] != real(0.0) or half[i] == real(0.0), 1.0, 0.0))
        far = wp.max(wp.length(d), real(1e-300))
        found.normal = d / far
        found.bend = real(1.0) / far
        found.deep = numbers.whole[world, 2 + body.partner.shape[0] + obstacle] - far
    found.deep = wp.max(found.deep, real(0.0))
    return found


@wp.func
def turn(t: TouchStruct, d: Vec):
    """H d, the derivative of the normal along d."""
    return t.bend * (wp.cw_mul(t.beyond, d) - wp.dot(t.normal, d) * t.normal)


@wp.func
def beside(body: BodyStruct, obstacle: int, node: int, x: Nodes):
    """The place of a node beside an obstacle."""
    if body.partner[obstacle] < 0:
        return x[node] - body.point[obstacle]
    return x[node] - x[body.partner[obstacle]]


@wp.func
def contact(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, obstacle: int, node: int, x: Nodes):
    found = ContactStruct()
    r = beside(body, obstacle, node, x)
    r0 = beside(body, obstacle, node, s.x0)
    found.now = touch(body, numbers, s.world, obstacle, r)
    found.before = touch(body, numbers, s.world, obstacle, r0)
    n = found.before.normal
    found.h = body.h
    found.area = body.area[node]
    found.stiffness = numbers.whole[s.world, 1] * found.area
    found.friction = numbers.whole[s.world, 2 + obstacle]
    found.slid = r - r0
    found.w = (found.slid - wp.dot(found.slid, n) * n) / body.h
    found.s = wp.sqrt(wp.dot(found.w, found.w) + body.slip * body.slip)
    found.grip = found.friction * found.stiffness * found.before.deep / found.s
    found.smooth = found.s - body.slip
    return found


@wp.func
def contact_energy(c: ContactStruct):
    return real(0.5) * c.stiffness * c.now.deep * c.now.deep + c.grip * c.s * c.h * c.smooth


@wp.func
def contact_gradient(c: ContactStruct):
    return c.grip * c.w - (c.stiffness * c.now.deep) * c.now.normal


@wp.func
def dragged(c: ContactStruct, d: Vec):
    """The derivative of w/s along d, times h s."""
    n = c.before.normal
    along = d - wp.dot(d, n) * n
    return along - (wp.dot(c.w, along) / (c.s * c.s)) * c.w


@wp.func
def contact_tangent(c: ContactStruct, d: Vec):
    """The derivative of the gradient along d, which is symmetric."""
    found = (c.grip / c.h) * dragged(c, d)
    if c.now.deep > real(0.0):
        found += c.stiffness * (wp.dot(c.now.normal, d) * c.now.normal - c.now.deep * turn(c.now, d))
    return found


@wp.func
def contact_before(c: ContactStruct, d: Vec):
    """The derivative of (gradient · d) to r₀: friction's direction and velocity, and the load that it is a share of.

    With z = (d − (w · d) w/s²)/s, a change of w changes (w · d)/s by z · δw, and h δw = −T δr₀ − δ(n₀ n₀ᵀ)(r − r₀).
    """
    n = c.before.normal
    z = d - (wp.dot(c.w, d) / (c.s * c.s)) * c.w
    turned = turn(c.before, wp.dot(z, n) * c.slid + wp.dot(n, c.slid) * z)
    found = -(c.grip / c.h) * (dragged(c, d) + turned)
    if c.before.deep > real(0.0):
        found -= (c.friction * c.stiffness * wp.dot(c.w, d) / c.s) * n
    return found


@wp.func
def contact_numbers(
    body: BodyStruct, numbers: NumbersStruct, world: int, obstacle: int, c: ContactStruct, d: Vec, bars: NumbersStruct
):
    """Take the derivative of (gradient · d) to stiffness, friction and radius from the gradients."""
    rub = wp.dot(c.w, d) / c.s
    press = wp.dot(c.now.normal, d)
    bars.whole[world, 1] += c.area * (press * c.now.deep - c.friction * rub * c.before.deep)
    bars.whole[world, 2 + obstacle] -= c.stiffness * rub * c.before.deep
    if c.now.deep > real(0.0):
        bars.whole[world, 2 + body.partner.shape[0] + obstacle] += c.stiffness * press
    if c.before.deep > real(0.0):
        bars.whole[world, 2 + body.partner.shape[0] + obstacle] -= c.friction * c.stiffness * rub
