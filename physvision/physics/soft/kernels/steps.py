"""One step: of symplectic Euler, or of backward Euler as the least of an energy, found by Newton's method.

With m the nodes' masses, α the decay of velocity, Ψ all inner energies and f loads, backward Euler's x makes least

    W(x) = Σ m/2h² |x − x₀ − h v₀|² + α m/2h |x − x₀|² + Ψ(x, x₀) − f · x

over the free nodes; held ones go on at their velocity. Newton's step is turned downhill where the second derivative is
not positive (its diagonal is raised until it is) and halved until W falls.
"""

import warp as wp

from . import AXES, D, Mat, Vec, real
from .cholesky import factorise, solve
from .elements import add_stiffness, inner_energy, inner_gradient
from .laws import unit
from .structs import BodyStruct, MemoryStruct, NumbersStruct

MOST_ITERATIONS = wp.constant(60)
MOST_HALVINGS = wp.constant(40)
MOST_RAISES = wp.constant(12)
CLOSE = wp.constant(wp.float64(1e-10))  # of an element's size: the error is then its square
ROUNDED = wp.constant(wp.float64(1e-6))  # a last step of this size that no longer falls is rounding
NOISE = wp.constant(wp.float64(1e-12))  # of the energies that W is the sum of


@wp.func
def step_energy(
    body: BodyStruct,
    numbers: NumbersStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x: wp.array(dtype=Vec),
    x0: wp.array(dtype=Vec),
    v0: wp.array(dtype=Vec),
):
    """W, less a constant, and the sum of what it is made of."""
    inner = inner_energy(body, numbers, world, controls, x, x0)
    moving = real(0.0)
    work = real(0.0)
    size = real(0.0)
    for node in range(body.held.shape[0]):
        d = x[node] - x0[node]
        late = d - body.h * v0[node]
        if body.held[node] == 0:
            m = numbers.mass[world, node] / body.h
            moving += real(0.5) * m * (wp.dot(late, late) / body.h + numbers.whole[world, 0] * wp.dot(d, d))
            done = wp.dot(numbers.load[world, node], d)
            work += done
            size += wp.abs(done)
    for k in range(body.pushed.shape[0]):
        d = x[body.pushed[k]] - x0[body.pushed[k]]
        for i in range(D):
            work += controls[body.muscles + D * k + i] * d[i]
    return wp.vec2d(inner + moving - work, inner + moving + size)


@wp.func
def step_gradient(
    body: BodyStruct,
    numbers: NumbersStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x: wp.array(dtype=Vec),
    x0: wp.array(dtype=Vec),
    v0: wp.array(dtype=Vec),
    found: wp.array(dtype=Vec),
):
    """∂W/∂x of free nodes, zero for held ones."""
    inner_gradient(body, numbers, world, controls, x, x0, found)
    for node in range(body.held.shape[0]):
        if body.held[node] == 1:
            found[node] = Vec()
        else:
            d = x[node] - x0[node]
            m = numbers.mass[world, node] / body.h
            late = (d - body.h * v0[node]) / body.h
            found[node] = found[node] + m * (late + numbers.whole[world, 0] * d)


@wp.func
def factorise_step(
    body: BodyStruct,
    numbers: NumbersStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x: wp.array(dtype=Vec),
    x0: wp.array(dtype=Vec),
    raised: real,
    memory: MemoryStruct,
):
    """Factorise ∂²W/∂x², each diagonal block raised by a share of its own mean; whether it is positive definite."""
    diagonal = memory.diagonal[world]
    below = memory.below[world]
    for column in range(body.node.shape[0]):
        diagonal[column] = Mat()
    for slot in range(body.row.shape[0]):
        below[slot] = Mat()
    add_stiffness(body, numbers, world, controls, x, x0, diagonal, below)
    for column in range(body.node.shape[0]):
        m = numbers.mass[world, body.node[column]] / body.h
        more = m * (real(1.0) / body.h + numbers.whole[world, 0])
        more += raised * (wp.abs(wp.trace(diagonal[column])) / AXES + more)
        diagonal[column] = diagonal[column] + more * unit()
    return factorise(body, diagonal, below, memory.at[world])


@wp.func
def start_newton(
    body: BodyStruct,
    numbers: NumbersStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x: wp.array(dtype=Vec),
    x0: wp.array(dtype=Vec),
    v0: wp.array(dtype=Vec),
):
    """Put x where the velocity leads, or, where that turns an element inside out, where it was; the energies there."""
    for node in range(body.held.shape[0]):
        x[node] = x0[node] + body.h * v0[node]
    energies = step_energy(body, numbers, world, controls, x, x0, v0)
    if not wp.isfinite(energies):
        for node in range(body.held.shape[0]):
            if body.held[node] == 0:
                x[node] = x0[node]
        energies = step_energy(body, numbers, world, controls, x, x0, v0)
    return energies


@wp.func
def newton_direction(
    body: BodyStruct,
    numbers: NumbersStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x: wp.array(dtype=Vec),
    x0: wp.array(dtype=Vec),
    known: int,
    memory: MemoryStruct,
):
    """Put −H⁻¹ force into `move`, unless H cannot be made positive; `known` says that its factor is there."""
    if known == 0:
        raised = real(0.0)
        positive = factorise_step(body, numbers, world, controls, x, x0, raised, memory)
        tries = wp.int32(0)
        while not positive and tries < MOST_RAISES:
            raised = wp.max(real(1e-4), real(4.0) * raised)
            positive = factorise_step(body, numbers, world, controls, x, x0, raised, memory)
            tries += 1
        if not positive:
            return False
    move = memory.move[world]
    for node in range(body.held.shape[0]):
        move[node] = -memory.force[world, node]
    solve(body, memory.diagonal[world], memory.below[world], move)
    return True


@wp.func
def largest(move: wp.array(dtype=Vec)):
    found = real(0.0)
    for node in range(move.shape[0]):
        for i in range(D):
            found = wp.max(found, wp.abs(move[node][i]))
    return found


@wp.func
def go_downhill(
    body: BodyStruct,
    numbers: NumbersStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x: wp.array(dtype=Vec),
    x0: wp.array(dtype=Vec),
    v0: wp.array(dtype=Vec),
    energies: wp.vec2d,
    memory: MemoryStruct,
):
    """Move x by as much of `move` as lets W fall; the energies there, infinite where there is no such share."""
    candidate = memory.old[world]
    slope = real(0.0)
    for node in range(body.held.shape[0]):
        slope += wp.dot(memory.force[world, node], memory.move[world, node])
    share = real(1.0)
    for _ in range(MOST_HALVINGS):
        for node in range(body.held.shape[0]):
            candidate[node] = x[node] + share * memory.move[world, node]
        found = step_energy(body, numbers, world, controls, candidate, x0, v0)
        if wp.isfinite(found) and found[0] <= energies[0] + real(1e-4) * share * slope + NOISE * energies[1]:
            for node in range(body.held.shape[0]):
                x[node] = candidate[node]
            return found
        share *= real(0.5)
    return wp.vec2d(real(wp.inf), real(wp.inf))


@wp.func
def newton(
    body: BodyStruct,
    numbers: NumbersStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x: wp.array(dtype=Vec),
    x0: wp.array(dtype=Vec),
    v0: wp.array(dtype=Vec),
    known: int,
    memory: MemoryStruct,
):
    """Put the x that makes W least after x₀; the last move in sizes of an element, infinite without one, and rounds."""
    energies = start_newton(body, numbers, world, controls, x, x0, v0)
    if not wp.isfinite(energies):
        return wp.vec2d(real(wp.inf), real(0.0))
    last = real(1e300)
    rounds = wp.int32(0)
    factored = known
    while rounds < MOST_ITERATIONS:
        rounds += 1
        step_gradient(body, numbers, world, controls, x, x0, v0, memory.force[world])
        if not newton_direction(body, numbers, world, controls, x, x0, factored, memory):
            return wp.vec2d(real(wp.inf), real(rounds))
        factored = body.constant
        moved = largest(memory.move[world]) / body.size
        energies = go_downhill(body, numbers, world, controls, x, x0, v0, energies, memory)
        if moved <= CLOSE or (moved <= ROUNDED and moved >= real(0.5) * last):
            return wp.vec2d(moved, real(rounds))
        if not wp.isfinite(energies):
            return wp.vec2d(real(wp.inf), real(rounds))
        last = moved
    return wp.vec2d(wp.max(last, real(1.0)), real(rounds))


@wp.func
def symplectic(
    body: BodyStruct,
    numbers: NumbersStruct,
    world: int,
    controls: wp.array(dtype=wp.float64),
    x0: wp.array(dtype=Vec),
    v0: wp.array(dtype=Vec),
    x: wp.array(dtype=Vec),
    v: wp.array(dtype=Vec),
    memory: MemoryStruct,
):
    """Put the state a step after (x₀, v₀) into (x, v): forces at x₀, with rates of strain from where it came."""
    before = memory.old[world]
    for node in range(body.held.shape[0]):
        before[node] = x0[node] - body.h * v0[node]
    inner_gradient(body, numbers, world, controls, x0, before, memory.force[world])
    for node in range(body.held.shape[0]):
        v[node] = v0[node]
        if body.held[node] == 0:
            pushed = memory.force[world, node] / numbers.mass[world, node] + numbers.whole[world, 0] * v0[node]
            v[node] = v0[node] - body.h * pushed
        x[node] = x0[node] + body.h * v[node]
