"""A step of symplectic Euler, or of backward Euler as the minimum of an energy by Newton's method.

With masses m, velocity decay α, internal energies Ψ and loads f, backward Euler's x minimizes

    W(x) = Σ m/2h² |x − x₀ − h v₀|² + α m/2h |x − x₀|² + Ψ(x, x₀) − f · x

over the free nodes; kinematic ones move at their velocity. If the second derivative is not positive definite, its
diagonal is shifted until it is, and a step is halved until W decreases.
"""

import warp as wp

from .cholesky import factorize, solve
from .elements import add_stiffness, inner_energy, inner_gradient
from .precision import AXES, D, Mat, Nodes, Vec, real
from .structs import BodyStruct, NumbersStruct, StepStruct

MAX_ITERATIONS = wp.constant(60)
MAX_HALVINGS = wp.constant(40)
MAX_REGULARIZATIONS = wp.constant(12)
CLOSE = wp.constant(wp.float64(1e-10))  # of an element's size: the error is then its square
ROUNDED = wp.constant(wp.float64(1e-6))  # a last step of this size that no longer falls is rounding
NOISE = wp.constant(wp.float64(1e-12))  # of the energies that W is the sum of


@wp.func
def step_energy(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, x: Nodes):
    """Energy W, less a constant, and the sum of the magnitudes of its terms."""
    inner = inner_energy(body, numbers, s, x)
    moving = real(0.0)
    work = real(0.0)
    size = real(0.0)
    for node in range(body.kinematic.shape[0]):
        d = x[node] - s.x0[node]
        late = d - body.h * s.v0[node]
        if body.kinematic[node] == 0:
            m = numbers.mass[s.world, node] / body.h
            moving += real(0.5) * m * (wp.dot(late, late) / body.h + numbers.whole[s.world, 0] * wp.dot(d, d))
            done = wp.dot(numbers.load[s.world, node], d)
            work += done
            size += wp.abs(done)
    # The energies of links nearly cancel: that of cloth at rest is zero.
    for k in range(body.link.shape[0]):
        stretch = x[body.link[k, 1]] - x[body.link[k, 0]]
        size += wp.abs(numbers.bending[s.world, k]) * wp.dot(stretch, stretch)
    for k in range(body.actuated.shape[0]):
        d = x[body.actuated[k]] - s.x0[body.actuated[k]]
        for i in range(D):
            work += s.controls[body.muscles + D * k + i] * d[i]
    return wp.vec2d(inner + moving - work, inner + moving + size)


@wp.func
def step_gradient(body: BodyStruct, numbers: NumbersStruct, s: StepStruct):
    """Compute ∂W/∂x of free nodes in `force`, zero for kinematic ones."""
    inner_gradient(body, numbers, s, s.force)
    for node in range(body.kinematic.shape[0]):
        if body.kinematic[node] == 1:
            s.force[node] = Vec()
        else:
            d = s.x[node] - s.x0[node]
            late = (d - body.h * s.v0[node]) / body.h
            m = numbers.mass[s.world, node] / body.h
            s.force[node] = s.force[node] + m * (late + numbers.whole[s.world, 0] * d)


@wp.func
def factorize_step(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, shift: real):
    """Factorize ∂²W/∂x² with shifted diagonal blocks; return true if it is positive definite."""
    for column in range(body.node.shape[0]):
        s.diagonal[column] = Mat()
    for slot in range(body.row.shape[0]):
        s.below[slot] = Mat()
    add_stiffness(body, numbers, s)
    for column in range(body.node.shape[0]):
        m = numbers.mass[s.world, body.node[column]] / body.h
        more = m * (real(1.0) / body.h + numbers.whole[s.world, 0])
        more += shift * (wp.abs(wp.trace(s.diagonal[column])) / AXES + more)
        s.diagonal[column] = s.diagonal[column] + more * wp.identity(n=D, dtype=wp.float64)
    return factorize(body, s)


@wp.func
def start_newton(body: BodyStruct, numbers: NumbersStruct, s: StepStruct):
    """Start x where the velocity leads, or, if that inverts an element, at x₀; return the energies there."""
    for node in range(body.kinematic.shape[0]):
        s.x[node] = s.x0[node] + body.h * s.v0[node]
    energies = step_energy(body, numbers, s, s.x)
    if not wp.isfinite(energies):
        for node in range(body.kinematic.shape[0]):
            if body.kinematic[node] == 0:
                s.x[node] = s.x0[node]
        energies = step_energy(body, numbers, s, s.x)
    return energies


@wp.func
def newton_direction(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, known: int):
    """Compute −H⁻¹ `force` in `move`; return false if H cannot be made positive definite. If `known`, H is factored."""
    if known == 0:
        shift = real(0.0)
        positive = factorize_step(body, numbers, s, shift)
        tries = wp.int32(0)
        while not positive and tries < MAX_REGULARIZATIONS:
            shift = wp.max(real(1e-4), real(4.0) * shift)
            positive = factorize_step(body, numbers, s, shift)
            tries += 1
        if not positive:
            return False
    for node in range(body.kinematic.shape[0]):
        s.move[node] = -s.force[node]
    solve(body, s)
    return True


@wp.func
def largest(move: Nodes):
    size = real(0.0)
    for node in range(move.shape[0]):
        for i in range(D):
            size = wp.max(size, wp.abs(move[node][i]))
    return size


@wp.func
def go_downhill(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, energies: wp.vec2d):
    """Search x along `move`; return the energies there, infinite if W does not decrease."""
    slope = real(0.0)
    for node in range(body.kinematic.shape[0]):
        slope += wp.dot(s.force[node], s.move[node])
    fraction = real(1.0)
    for _ in range(MAX_HALVINGS):
        for node in range(body.kinematic.shape[0]):
            s.old[node] = s.x[node] + fraction * s.move[node]
        trial = step_energy(body, numbers, s, s.old)
        if wp.isfinite(trial) and trial[0] <= energies[0] + real(1e-4) * fraction * slope + NOISE * energies[1]:
            for node in range(body.kinematic.shape[0]):
                s.x[node] = s.old[node]
            return trial
        fraction *= real(0.5)
    return wp.vec2d(real(wp.inf), real(wp.inf))


@wp.func
def newton(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, known: int):
    """Minimize W; return the last move in element sizes, infinite on failure, and the number of iterations."""
    energies = start_newton(body, numbers, s)
    if not wp.isfinite(energies):
        return wp.vec2d(real(wp.inf), real(0.0))
    last = real(1e300)
    rounds = wp.int32(0)
    factored = wp.int32(known)
    while rounds < MAX_ITERATIONS:
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
    """Compute the state (x, v) after (s.x, v₀) with forces there, and strain rates from the previous positions."""
    for node in range(body.kinematic.shape[0]):
        s.x0[node] = s.x[node] - body.h * s.v0[node]
    inner_gradient(body, numbers, s, s.force)
    for node in range(body.kinematic.shape[0]):
        v[node] = s.v0[node]
        if body.kinematic[node] == 0:
            pushed = s.force[node] / numbers.mass[s.world, node] + numbers.whole[s.world, 0] * s.v0[node]
            v[node] = s.v0[node] - body.h * pushed
        x[node] = s.x[node] + body.h * v[node]
