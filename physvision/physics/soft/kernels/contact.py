"""Contact of one node with planes: a spring of the overlap, and friction that slips smoothly below a small velocity.

With g the gap, k the stiffness times the node's share of the surface, N = k max(0, −g(x₀)) the load at the start of the
step and s = √(|w|² + slip²) of the velocity w = T(x − x₀)/h along the plane, a step costs

    ½ k max(0, −g(x))² + μ N h (s − slip)

Its derivative to x is the force: −N n, and μ N w/s against slipping, which is at most μ N.
"""

import warp as wp

from . import Vec, real
from .structs import BodyStruct, GradientsStruct, NumbersStruct


@wp.func
def overlap(body: BodyStruct, plane: int, x: Vec):
    return wp.max(real(0.0), body.offset[plane] - wp.dot(body.normal[plane], x))


@wp.func
def velocity_along(body: BodyStruct, plane: int, x: Vec, x0: Vec):
    n = body.normal[plane]
    d = x - x0
    return (d - wp.dot(d, n) * n) / body.h


@wp.func
def contact_energy(body: BodyStruct, numbers: NumbersStruct, world: int, node: int, x: Vec, x0: Vec):
    total = real(0.0)
    k = numbers.whole[world, 1] * body.area[node]
    for plane in range(body.normal.shape[0]):
        deep = overlap(body, plane, x)
        w = velocity_along(body, plane, x, x0)
        N = k * overlap(body, plane, x0)
        s = wp.sqrt(wp.dot(w, w) + body.slip * body.slip)
        total += real(0.5) * k * deep * deep + numbers.whole[world, 2 + plane] * N * body.h * (s - body.slip)
    return total


@wp.func
def contact_gradient(body: BodyStruct, numbers: NumbersStruct, world: int, node: int, x: Vec, x0: Vec):
    total = Vec()
    k = numbers.whole[world, 1] * body.area[node]
    for plane in range(body.normal.shape[0]):
        w = velocity_along(body, plane, x, x0)
        N = k * overlap(body, plane, x0)
        s = wp.sqrt(wp.dot(w, w) + body.slip * body.slip)
        total += (numbers.whole[world, 2 + plane] * N / s) * w - k * overlap(body, plane, x) * body.normal[plane]
    return total


@wp.func
def contact_tangent(body: BodyStruct, numbers: NumbersStruct, world: int, node: int, x: Vec, x0: Vec, d: Vec):
    """The derivative of the gradient along d, which is symmetric."""
    total = Vec()
    k = numbers.whole[world, 1] * body.area[node]
    for plane in range(body.normal.shape[0]):
        n = body.normal[plane]
        if overlap(body, plane, x) > real(0.0):
            total += k * wp.dot(n, d) * n
        total += friction_tangent(body, numbers, world, plane, k * overlap(body, plane, x0), x, x0, d)
    return total


@wp.func
def friction_tangent(
    body: BodyStruct, numbers: NumbersStruct, world: int, plane: int, N: real, x: Vec, x0: Vec, d: Vec
):
    n = body.normal[plane]
    w = velocity_along(body, plane, x, x0)
    s = wp.sqrt(wp.dot(w, w) + body.slip * body.slip)
    along = d - wp.dot(d, n) * n
    return (numbers.whole[world, 2 + plane] * N / (body.h * s)) * (along - (wp.dot(w, along) / (s * s)) * w)


@wp.func
def contact_before(body: BodyStruct, numbers: NumbersStruct, world: int, node: int, x: Vec, x0: Vec, d: Vec):
    """The derivative of (gradient · d) to x₀: friction's velocity, and the load that it is a share of."""
    total = Vec()
    k = numbers.whole[world, 1] * body.area[node]
    for plane in range(body.normal.shape[0]):
        N = k * overlap(body, plane, x0)
        total -= friction_tangent(body, numbers, world, plane, N, x, x0, d)
        if N > real(0.0):
            w = velocity_along(body, plane, x, x0)
            s = wp.sqrt(wp.dot(w, w) + body.slip * body.slip)
            total -= (numbers.whole[world, 2 + plane] * k * wp.dot(w, d) / s) * body.normal[plane]
    return total


@wp.func
def contact_numbers(
    body: BodyStruct, numbers: NumbersStruct, world: int, node: int, x: Vec, x0: Vec, d: Vec, bars: GradientsStruct
):
    """Take the derivative of (gradient · d) to stiffness and friction from the gradients."""
    for plane in range(body.normal.shape[0]):
        w = velocity_along(body, plane, x, x0)
        s = wp.sqrt(wp.dot(w, w) + body.slip * body.slip)
        rub = body.area[node] * overlap(body, plane, x0) * wp.dot(w, d) / s
        press = body.area[node] * overlap(body, plane, x) * wp.dot(body.normal[plane], d)
        bars.whole[world, 1] += press - numbers.whole[world, 2 + plane] * rub
        bars.whole[world, 2 + plane] -= numbers.whole[world, 1] * rub
