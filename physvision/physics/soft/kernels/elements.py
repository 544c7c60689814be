"""What all elements and planes do to the nodes: energy, forces, stiffness, and the derivatives of the forces."""

import warp as wp

from . import CORNERS, D, Mat, Nodes, Reals, Vec, real
from .contact import contact_before, contact_energy, contact_gradient, contact_numbers, contact_tangent
from .laws import energy, stress, stress_of_time, tangent, tangent_before
from .structs import BodyStruct, GradientsStruct, NumbersStruct, StepStruct


@wp.func
def edges(body: BodyStruct, e: int, x: Nodes):
    found = Mat()
    first = x[body.corners[e, 0]]
    for k in range(D):
        edge = x[body.corners[e, k + 1]] - first
        for i in range(D):
            found[i, k] = edge[i]
    return found


@wp.func
def shape_gradient(inverse: Mat, corner: int):
    """The gradient of a corner's shape function."""
    found = Vec()
    for k in range(D):
        if corner == 0:
            found -= inverse[k]
        elif corner == k + 1:
            found = inverse[k]
    return found


@wp.func
def tension(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, e: int):
    """Volume times tension of the element's muscle."""
    if body.muscle[e] < 0:
        return real(0.0)
    return numbers.weights[s.world, e, 3] * s.controls[body.muscle[e]]


@wp.func
def along_fibre(body: BodyStruct, e: int, F: Mat):
    """F a ⊗ a."""
    return wp.outer(F * body.fibre[e], body.fibre[e])


@wp.func
def inner_energy(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, x: Nodes):
    """Of elements, muscles (½ tension |F a|²) and contacts."""
    total = real(0.0)
    for e in range(body.corners.shape[0]):
        F = edges(body, e, x) * numbers.inverse[s.world, e]
        F0 = edges(body, e, s.x0) * numbers.inverse[s.world, e]
        a = numbers.weights[s.world, e, 0]
        b = numbers.weights[s.world, e, 1]
        total += energy(F, F0, body.law, a, b, numbers.weights[s.world, e, 2] / body.h)
        stretched = F * body.fibre[e]
        total += real(0.5) * tension(body, numbers, s, e) * wp.dot(stretched, stretched)
    for node in range(body.held.shape[0]):
        if body.area[node] > real(0.0):
            total += contact_energy(body, numbers, s.world, node, x[node], s.x0[node])
    return total


@wp.func
def inner_gradient(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, found: Nodes):
    """The derivative of the energy to x: what the nodes would have to be pushed by, less loads."""
    for node in range(body.held.shape[0]):
        found[node] = -numbers.load[s.world, node]
        if body.area[node] > real(0.0):
            found[node] = found[node] + contact_gradient(body, numbers, s.world, node, s.x[node], s.x0[node])
    for k in range(body.pushed.shape[0]):
        push = Vec()
        for i in range(D):
            push[i] = s.controls[body.muscles + D * k + i]
        found[body.pushed[k]] = found[body.pushed[k]] - push
    for e in range(body.corners.shape[0]):
        inverse = numbers.inverse[s.world, e]
        F = edges(body, e, s.x) * inverse
        F0 = edges(body, e, s.x0) * inverse
        a = numbers.weights[s.world, e, 0]
        b = numbers.weights[s.world, e, 1]
        P = stress(F, F0, body.law, a, b, numbers.weights[s.world, e, 2] / body.h)
        P += tension(body, numbers, s, e) * along_fibre(body, e, F)
        for k in range(CORNERS):
            node = body.corners[e, k]
            found[node] = found[node] + P * shape_gradient(inverse, k)


@wp.func
def add_stiffness(body: BodyStruct, numbers: NumbersStruct, s: StepStruct):
    """Add the second derivative of the energy to x, of the free nodes, in the order of the factorisation."""
    for column in range(body.node.shape[0]):
        node = body.node[column]
        if body.area[node] > real(0.0):
            block = Mat()
            for j in range(D):
                direction = Vec()
                direction[j] = real(1.0)
                pushed = contact_tangent(body, numbers, s.world, node, s.x[node], s.x0[node], direction)
                for i in range(D):
                    block[i, j] = pushed[i]
            s.diagonal[column] = s.diagonal[column] + block
    for e in range(body.corners.shape[0]):
        inverse = numbers.inverse[s.world, e]
        F = edges(body, e, s.x) * inverse
        F0 = edges(body, e, s.x0) * inverse
        a = numbers.weights[s.world, e, 0]
        b = numbers.weights[s.world, e, 1]
        c = numbers.weights[s.world, e, 2] / body.h
        pull = tension(body, numbers, s, e)
        for j in range(CORNERS):
            column = body.place[body.corners[e, j]]
            if column >= 0:
                g = shape_gradient(inverse, j)
                for axis in range(D):
                    direction = Vec()
                    direction[axis] = real(1.0)
                    G = wp.outer(direction, g)
                    change = tangent(F, F0, body.law, a, b, c, G) + pull * along_fibre(body, e, G)
                    for i in range(CORNERS):
                        slot = body.block[e, i * CORNERS + j]
                        if i == j or slot >= 0:
                            pushed = change * shape_gradient(inverse, i)
                            block = Mat()
                            for k in range(D):
                                block[k, axis] = pushed[k]
                            if i == j:
                                s.diagonal[column] = s.diagonal[column] + block
                            else:
                                s.below[slot] = s.below[slot] + block


@wp.func
def pull_back(body: BodyStruct, numbers: NumbersStruct, s: StepStruct, bars: GradientsStruct, controls_bar: Reals):
    """The derivative of κ · (gradient of the energy), κ being in `move`: to x in `force`, and to x₀ in `old`.

    That to the numbers is taken off their gradients.
    """
    for node in range(body.held.shape[0]):
        s.force[node] = Vec()
        s.old[node] = Vec()
        bars.load[s.world, node] = bars.load[s.world, node] + s.move[node]
        if body.area[node] > real(0.0):
            s.force[node] = contact_tangent(body, numbers, s.world, node, s.x[node], s.x0[node], s.move[node])
            s.old[node] = contact_before(body, numbers, s.world, node, s.x[node], s.x0[node], s.move[node])
            contact_numbers(body, numbers, s.world, node, s.x[node], s.x0[node], s.move[node], bars)
    for k in range(body.pushed.shape[0]):
        for i in range(D):
            controls_bar[body.muscles + D * k + i] = s.move[body.pushed[k]][i]
    for e in range(body.corners.shape[0]):
        inverse = numbers.inverse[s.world, e]
        now = edges(body, e, s.x)
        before = edges(body, e, s.x0)
        along = edges(body, e, s.move)
        F = now * inverse
        F0 = before * inverse
        G = along * inverse
        a = numbers.weights[s.world, e, 0]
        b = numbers.weights[s.world, e, 1]
        c = numbers.weights[s.world, e, 2] / body.h
        pull = tension(body, numbers, s, e)
        # The derivatives to F, F₀ and G.
        by_new = tangent(F, F0, body.law, a, b, c, G) + pull * along_fibre(body, e, G)
        by_old = tangent_before(F, F0, body.law, a, b, c, G)
        for k in range(CORNERS):
            node = body.corners[e, k]
            g = shape_gradient(inverse, k)
            s.force[node] = s.force[node] + by_new * g
            s.old[node] = s.old[node] + by_old * g
        worked = wp.ddot(along_fibre(body, e, F), G)
        if body.muscle[e] >= 0:
            m = body.muscle[e]
            controls_bar[m] = controls_bar[m] - numbers.weights[s.world, e, 3] * worked
        if bars.wanted == 1:
            if body.muscle[e] >= 0:
                bars.weights[s.world, e, 3] -= s.controls[body.muscle[e]] * worked
            bars.weights[s.world, e, 0] -= wp.ddot(stress(F, F0, body.law, real(1.0), real(0.0), c), G)
            bars.weights[s.world, e, 1] -= wp.ddot(stress(F, F0, body.law, real(0.0), real(1.0), c), G)
            bars.weights[s.world, e, 2] -= wp.ddot(stress_of_time(F, F0, body.law, a, b), G) / body.h
            P = stress(F, F0, body.law, a, b, c) + pull * along_fibre(body, e, F)
            bars.inverse[s.world, e] = bars.inverse[s.world, e] - (
                wp.transpose(now) * by_new + wp.transpose(before) * by_old + wp.transpose(along) * P
            )
