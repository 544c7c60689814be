"""One step: of symplectic Euler, or of backward Euler as the least of an energy, found by Newton's method.

With m the nodes' masses, α the decay of velocity, Ψ all inner energies and f loads, backward Euler's x makes least

    W(x) = Σ m/2h² |x − x₀ − h v₀|² + α m/2h |x − x₀|² + Ψ(x, x₀) − f · x

over the free nodes; held ones go on at their velocity. Where the second derivative is not positive, its diagonal is
raised until it is, and a step is halved until W falls.
"""

import warp as wp

from .cholesky import factorise, solve
from .elements import add_stiffness, inner_energy, inner_gradient
from .precision import AXES, D, Mat, Nodes, Vec, real
from .structs import BodyStruct, NumbersStruct, StepStruct

MOST_ITERATIONS = wp.constant(60)
MOST_HALVINGS = wp.constant(40)
MOST_RAISES = wp.constant(12)
CLOSE = wp.constant(wp.float64(1e-10))  # of an element's size: the error is then its square
ROUNDED = wp.constant(wp.float64(1e-6))  # a last step of this size that no longer falls is rounding
NOISE = wp.constant(wp.float64(1e-12))  # of the energies that W is the sum of


@wp.func
def step_energy(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, x: Nodes):
    """W, less a constant, and the sum of what it is made of."""
    inner = inner_energy(body, numbers, s, x)
    moving = real(0.0)
    work = real(0.0)
    size = real(0.0)
    for node in range(body.held.shape[0]):
        d = x[node] - s.x0[node]
        late = d - body.h * s.v0[node]
        if body.held[node] == 0:
            m = numbers.mass[s.world, node] / body.h
            moving += real(0.5) * m * (wp.dot(late, late) / body.h + numbers.whole[s.world, 0] * wp.dot(d, d))
            done = wp.dot(numbers.load[s.world, node], d)
            work += done
            size += wp.abs(done)
    # What links cost nearly cancels: cloth that is not bent costs nothing.
    for k in range(body.link.shape[0]):
        apart = x[body.link[k, 1]] - x[body.link[k, 0]]
        size += wp.abs(numbers.bending[s.world, k]) * wp.dot(apart, apart)
    for k in range(body.pushed.shape[0]):
        d = x[body.pushed[k]] - s.x0[body.pushed[k]]
        for i in range(D):
            work += s.controls[body.muscles + D * k + i] * d[i]
    return wp.vec2d(inner + moving - work, inner + moving + size)


@wp.func
def step_gradient(body: BodyStruct, numbers: NumbersStruct, s: StepStruct):
    """Put ∂W/∂x of free nodes into `force`, zero for held ones."""
    inner_gradient(body, numbers, s, s.force)
    for node in range(body.held.shape[0]):
        if body.held[node] == 1:
            s.force[node] = Vec()
        else:
            d = s.x[node] - s.x0[node]
            late = (d - body.h * s.v0[node]) / body.h
            m = numbers.mass[s.world, node] / body.h
            s.force[node] = s.force[node] + m * (late + numbers.whole[s.world, 0] * d)


@wp.func
def factorise_step(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, raised: real):
    """Factorise ∂²W/∂x², each diagonal block raised by a share of its own mean; whether it is positive definite."""
    for column in range(body.node.shape[0]):
        s.diagonal[column] = Mat()
    for slot in range(body.row.shape[0]):
        s.below[slot] = Mat()
    add_stiffness(body, numbers, s)
    for column in range(body.node.shape[0]):
        m = numbers.mass[s.world, body.node[column]] / body.h
        more = m * (real(1.0) / body.h + numbers.whole[s.world, 0])
        more += raised * (wp.abs(wp.trace(s.diagonal[column])) / AXES + more)
        s.diagonal[column] = s.diagonal[column] + more * wp.identity(n=D, dtype=wp.float64)
    return factorise(body, s)


@wp.func
def start_newton(body: BodyStruct, numbers: NumbersStruct, s: StepStruct):
    """Put x where the velocity leads, or, where that turns an element inside out, where it was; the energies there."""
    for node in range(body.held.shape[0]):
        s.x[node] = s.x0[node] + body.h * s.v0[node]
    energies = step_energy(body, numbers, s, s.x)
    if not wp.isfinite(energies):
        for node in range(body.held.shape[0]):
            if body.held[node] == 0:
                s.x[node] = s.x0[node]
        energies = step_energy(body, numbers, s, s.x)
    return energies


@wp.func
def newton_direction(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, known: int):
    """Put −H⁻¹ `force` into `move`, unless H cannot be made positive; `known` says that its factor is there."""
    if known == 0:
        raised = real(0.0)
        positive = factorise_step(body, numbers, s, raised)
        tries = wp.int32(0)
        while not positive and tries < MOST_RAISES:
            raised = wp.max(real(1e-4), real(4.0) * raised)
            positive = factorise_step(body, numbers, s, raised)
            tries += 1
        if not positive:
            return False
    for node in range(body.held.shape[0]):
        s.move[node] = -s.force[node]
    solve(body, s)
    return True


@wp.func
def largest(move: Nodes):
    found = real(0.0)
    for node in range(move.shape[0]):
        for i in range(D):
            found = wp.max(found, wp.abs(move[node][i]))
    return found


@wp.func
def go_downhill(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, energies: wp.vec2d):
    """Move x by as much of `move` as lets W fall; the energies there, infinite where there is no such share."""
    slope = real(0.0)
    for node in range(body.held.shape[0]):
        slope += wp.dot(s.force[node], s.move[node])
    share = real(1.0)
    for _ in range(MOST_HALVINGS):
        for node in range(body.held.shape[0]):
            s.old[node] = s.x[node] + share * s.move[node]
        found = step_energy(body, numbers, s, s.old)
        if wp.isfinite(found) and found[0] <= energies[0] + real(1e-4) * share * slope + NOISE * energies[1]:
            for node in range(body.held.shape[0]):
                s.x[node] = s.old[node]
            return found
        share *= real(0.5)
    return wp.vec2d(real(wp.inf), real(wp.inf))


@wp.func
def newton(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, known: int):
    """Put the x that makes W least; the last move in sizes of an element, infinite without one, and rounds."""
    energies = start_newton(body, numbers, s)
    if not wp.isfinite(energies):
        return wp.vec2d(real(wp.inf), real(0.0))
    last = real(1e300)
    rounds = wp.int32(0)
    factored = wp.int32(known)
    while rounds < MOST_ITERATIONS:
        rounds += 1
        step_gradient(body, numbers, s)
        if not newton_direction(body, numbers, s, factored):
            return wp.vec2d(real(wp.inf), real(rounds))
        factored = body.constant
        moved = largest(s.move) / body.size
        energies = go_downhill(body, numbers, s, energies)
        if moved <= CLOSE or (moved <= ROUNDED and moved >= real(0.5) * last):
            return wp.vec2d(moved, real(rounds))
        if not wp.isfinite(energies):
            return wp.vec2d(real(wp.inf), real(rounds))
        last = moved
    return wp.vec2d(wp.max(last, real(1.0)), real(rounds))


@wp.func
def symplectic(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, x: Nodes, v: Nodes):
    """Put the state a step after (s.x, v₀) into (x, v): forces there, with rates of strain from where it came."""
    for node in range(body.held.shape[0]):
        s.x0[node] = s.x[node] - body.h * s.v0[node]
    inner_gradient(body, numbers, s, s.force)
    for node in range(body.held.shape[0]):
        v[node] = s.v0[node]
        if body.held[node] == 0:
            pushed = s.force[node] / numbers.mass[s.world, node] + numbers.whole[s.world, 0] * s.v0[node]
            v[node] = s.v0[node] - body.h * pushed
        x[node] = s.x[node] + body.h * v[node]
