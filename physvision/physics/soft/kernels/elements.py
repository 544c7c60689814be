"""Energy, forces and stiffness of all elements, links and obstacles, and derivatives of the forces."""

import warp as wp

from .contact import contact, contact_before, contact_energy, contact_gradient, contact_numbers, contact_tangent
from .laws import along_fiber, energy, stress, stress_of_time, tangent, tangent_before
from .precision import CORNERS, D, Mat, Nodes, Reals, Vec, real
from .structs import BodyStruct, ElementStruct, NumbersStruct, StepStruct


@wp.func
def edges(body: BodyStruct, e: int, x: Nodes):
    columns = Mat()
    first = x[body.corners[e, 0]]
    for k in range(CORNERS - 1):
        edge = x[body.corners[e, k + 1]] - first
        for i in range(D):
            columns[i, k] = edge[i]
    return columns


@wp.func
def shape_gradient(inverse: Mat, corner: int):
    """Gradient of a corner's shape function."""
    gradient = Vec()
    for k in range(D):
        if corner == 0:
            gradient -= inverse[k]
        elif corner == k + 1:
            gradient = inverse[k]
    return gradient


@wp.func
def element(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, e: int, x: Nodes):
    m = ElementStruct()
    m.law = body.law
    m.inverse = numbers.inverse[s.world, e]
    m.F = edges(body, e, x) * m.inverse
    m.F0 = edges(body, e, s.x0) * m.inverse
    m.a = numbers.weights[s.world, e, 0]
    m.b = numbers.weights[s.world, e, 1]
    m.c = numbers.weights[s.world, e, 2] / body.h
    m.fiber = body.fiber[e]
    if body.muscle[e] >= 0:
        m.pull = numbers.weights[s.world, e, 3] * s.controls[body.muscle[e]]
    return m


@wp.func
def stress_of_modulus(m: ElementStruct, a: real, b: real):
    """Stress P with other moduli and no muscle; it is linear in them."""
    copy = ElementStruct()
    copy.law = m.law
    copy.F = m.F
    copy.F0 = m.F0
    copy.c = m.c
    copy.a = a
    copy.b = b
    return stress(copy)


@wp.func
def inner_energy(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, x: Nodes):
    """Energy of all elements, links and contacts."""
    total = real(0.0)
    for e in range(body.corners.shape[0]):
        total += energy(element(body, numbers, s, e, x))
    for k in range(body.link.shape[0]):
        stretch = x[body.link[k, 1]] - x[body.link[k, 0]]
        total += real(0.5) * numbers.bending[s.world, k] * wp.dot(stretch, stretch)
    for k in range(body.partner.shape[0]):
        for node in range(body.area.shape[0]):
            if body.area[node] > real(0.0):
                total += contact_energy(contact(body, numbers, s, k, node, x))
    return total


@wp.func
def push_pair(body: BodyStruct, forces: Nodes, obstacle: int, node: int, force: Vec):
    """Add a force to a node, and its opposite to the collider that it touches."""
    forces[node] = forces[node] + force
    if body.partner[obstacle] >= 0:
        forces[body.partner[obstacle]] = forces[body.partner[obstacle]] - force


@wp.func
def inner_gradient(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, forces: Nodes):
    """Derivative of the energy to x, less loads."""
    for node in range(body.kinematic.shape[0]):
        forces[node] = -numbers.load[s.world, node]
    for k in range(body.partner.shape[0]):
        for node in range(body.area.shape[0]):
            if body.area[node] > real(0.0):
                push_pair(body, forces, k, node, contact_gradient(contact(body, numbers, s, k, node, s.x)))
    for k in range(body.actuated.shape[0]):
        push = Vec()
        for i in range(D):
            push[i] = s.controls[body.muscles + D * k + i]
        forces[body.actuated[k]] = forces[body.actuated[k]] - push
    for e in range(body.corners.shape[0]):
        m = element(body, numbers, s, e, s.x)
        P = stress(m)
        for k in range(CORNERS):
            node = body.corners[e, k]
            forces[node] = forces[node] + P * shape_gradient(m.inverse, k)
    for k in range(body.link.shape[0]):
        bent = numbers.bending[s.world, k] * (s.x[body.link[k, 1]] - s.x[body.link[k, 0]])
        forces[body.link[k, 1]] = forces[body.link[k, 1]] + bent
        forces[body.link[k, 0]] = forces[body.link[k, 0]] - bent


@wp.func
def add_pair(body: BodyStruct, s: StepStruct, node: int, neighbor: int, slot: int, block: Mat):
    """Add the second derivative of ½ (x₁ − x₂) · block (x₁ − x₂) to the matrix; the neighbor may be −1, none."""
    if body.place[node] >= 0:
        s.diagonal[body.place[node]] = s.diagonal[body.place[node]] + block
    if neighbor >= 0:
        if body.place[neighbor] >= 0:
            s.diagonal[body.place[neighbor]] = s.diagonal[body.place[neighbor]] + block
    if slot >= 0:
        s.below[slot] = s.below[slot] - block


@wp.func
def add_stiffness(body: BodyStruct, numbers: NumbersStruct, s: StepStruct):
    """Add the second derivative of the energy to x, of the free nodes, in the order of the factorization."""
    for k in range(body.partner.shape[0]):
        for node in range(body.area.shape[0]):
            if body.area[node] > real(0.0):
                c = contact(body, numbers, s, k, node, s.x)
                if c.now.deep + c.before.deep > real(0.0):
                    pressed = Mat()
                    for j in range(D):
                        direction = Vec()
                        direction[j] = real(1.0)
                        pushed = contact_tangent(c, direction)
                        for i in range(D):
                            pressed[i, j] = pushed[i]
                    add_pair(body, s, node, body.partner[k], body.touch_block[k, node], pressed)
    for k in range(body.link.shape[0]):
        bent = numbers.bending[s.world, k] * wp.identity(n=D, dtype=wp.float64)
        add_pair(body, s, body.link[k, 0], body.link[k, 1], body.link_block[k], bent)
    for e in range(body.corners.shape[0]):
        m = element(body, numbers, s, e, s.x)
        for j in range(CORNERS):
            column = body.place[body.corners[e, j]]
            if column >= 0:
                g = shape_gradient(m.inverse, j)
                for axis in range(D):
                    direction = Vec()
                    direction[axis] = real(1.0)
                    change = tangent(m, wp.outer(direction, g))
                    for i in range(CORNERS):
                        slot = body.block[e, i * CORNERS + j]
                        if i == j or slot >= 0:
                            pushed = change * shape_gradient(m.inverse, i)
                            block = Mat()
                            for k in range(D):
                                block[k, axis] = pushed[k]
                            if i == j:
                                s.diagonal[column] = s.diagonal[column] + block
                            else:
                                s.below[slot] = s.below[slot] + block


@wp.func
def pull_back(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, bars: NumbersStruct, controls_bar: Reals):
    """Derivative of κ · (gradient of the energy), with κ in `move`: to x in `force`, and to x₀ in `old`.

    The derivatives to parameters are subtracted from their gradients.
    """
    for node in range(body.kinematic.shape[0]):
        s.force[node] = Vec()
        s.old[node] = Vec()
        bars.load[s.world, node] = bars.load[s.world, node] + s.move[node]
    for k in range(body.partner.shape[0]):
        for node in range(body.area.shape[0]):
            if body.area[node] > real(0.0):
                c = contact(body, numbers, s, k, node, s.x)
                d = s.move[node]
                if body.partner[k] >= 0:
                    d -= s.move[body.partner[k]]
                push_pair(body, s.force, k, node, contact_tangent(c, d))
                push_pair(body, s.old, k, node, contact_before(c, d))
                contact_numbers(body, s.world, k, c, d, bars)
    for k in range(body.link.shape[0]):
        stretch = s.x[body.link[k, 1]] - s.x[body.link[k, 0]]
        moved = s.move[body.link[k, 1]] - s.move[body.link[k, 0]]
        bent = numbers.bending[s.world, k] * moved
        s.force[body.link[k, 1]] = s.force[body.link[k, 1]] + bent
        s.force[body.link[k, 0]] = s.force[body.link[k, 0]] - bent
        bars.bending[s.world, k] -= wp.dot(stretch, moved)
    for k in range(body.actuated.shape[0]):
        for i in range(D):
            controls_bar[body.muscles + D * k + i] = s.move[body.actuated[k]][i]
    for e in range(body.corners.shape[0]):
        m = element(body, numbers, s, e, s.x)
        along = edges(body, e, s.move)
        G = along * m.inverse
        # The derivatives to F, F₀ and G.
        by_new = tangent(m, G)
        by_old = tangent_before(m, G)
        for k in range(CORNERS):
            node = body.corners[e, k]
            g = shape_gradient(m.inverse, k)
            s.force[node] = s.force[node] + by_new * g
            s.old[node] = s.old[node] + by_old * g
        if body.muscle[e] >= 0:
            worked = wp.ddot(along_fiber(m, m.F), G)
            controls_bar[body.muscle[e]] -= numbers.weights[s.world, e, 3] * worked
            bars.weights[s.world, e, 3] -= s.controls[body.muscle[e]] * worked
        if bars.needs_gradients == 1:
            bars.weights[s.world, e, 0] -= wp.ddot(stress_of_modulus(m, real(1.0), real(0.0)), G)
            bars.weights[s.world, e, 1] -= wp.ddot(stress_of_modulus(m, real(0.0), real(1.0)), G)
            bars.weights[s.world, e, 2] -= wp.ddot(stress_of_time(m), G) / body.h
            by_inverse = wp.transpose(edges(body, e, s.x)) * by_new + wp.transpose(edges(body, e, s.x0)) * by_old
            bars.inverse[s.world, e] = bars.inverse[s.world, e] - by_inverse - wp.transpose(along) * stress(m)
