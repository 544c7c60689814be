"""Trees that nothing touches are stepped by their acceleration in the middle of the flight.

A flight of time h from (q, v) that holds the acceleration of its start is of first order where inertia changes with the
pose, and what swings gains energy. Let f(q, v) be the forward dynamics, with the forces that joints themselves exert
always those of the start (drag and servos: of the end). With

    q̄ = q ⊕ (h/2) v,    a₁ = f(q̄, v),    v̄ = v + (h/2) a₁,    a = f(q̄, v̄)

a is that of the middle but for O(h²), since a₁ differs from f(q, v) by O(h): so a step is of second order. Both
evaluations stand at q̄ and have one factorisation, also in the adjoint. It is the midpoint rule where f does not depend
on q, and the acceleration itself where that is constant. What touches keeps its acceleration of the start: its forces
hold contacts where they are then.

Adjoint. From that of a the implicit function theorem gives, as anywhere, those of the joints' own forces at (q, v) and
q̄_bar, v̄_bar. Then ā₁ = (h/2) v̄_bar, once more the theorem, at (q̄, v), and last q̄ = q ⊕ (h/2) v. In h: ½ v̄_bar · a₁
and ½ q̄_bar · v, beside what drag and servos have.
"""

import warp as wp

from physvision.physics.articulated.kernels.dynamics.joints import advance, advance_backward
from physvision.physics.articulated.kernels.precision import scalar
from physvision.physics.articulated.kernels.structs import ContactMemory, Tree, Workspace


@wp.func
def share_of_middle(tree: Tree, memory: ContactMemory, world: int, i: int, h: scalar):
    """Half the flight's time for the links of loose trees, none for others."""
    return scalar(0.5) * h * scalar(memory.loose[world, tree.root[i]])


@wp.func
def find_loose(tree: Tree, memory: ContactMemory, world: int, count: int):
    """Note at their roots which trees whose inertia changes with their pose no block moves; how many there are."""
    for k in range(tree.varying):
        memory.loose[world, tree.varying_root[k]] = 1
    found = wp.int32(tree.varying)
    c = wp.int32(0)
    while c < count and found > 0:
        k = memory.path_length[world, c] - 1  # roots come last
        while k >= 0 and found > 0:
            i = memory.path[world, c, k]
            if memory.loose[world, i] != 0:
                memory.loose[world, i] = 0
                found -= 1
            k -= 1
        c += 1
    return found


@wp.func
def go_to_middle(tree: Tree, work: Workspace, memory: ContactMemory, world: int, row: int, middle: int, h: scalar):
    """q[middle] = q̄, and v[middle] = v; of other trees the state of `row` itself."""
    for i in range(tree.links):
        part = share_of_middle(tree, memory, world, i, h)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            work.v[world, middle, d] = work.v[world, row, d]
            work.rate[world, middle, d] = part * work.v[world, row, d]
    advance(tree, world, work.q, row, middle, work.rate, middle, scalar(1.0))


@wp.func
def speed_up(tree: Tree, work: Workspace, memory: ContactMemory, world: int, row: int, middle: int, h: scalar):
    """Keep a₁ in a[middle], and make v[middle] v̄."""
    for i in range(tree.links):
        part = share_of_middle(tree, memory, world, i, h)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            work.a[world, middle, d] = work.a[world, row, d]
            work.v[world, middle, d] = work.v[world, row, d] + part * work.a[world, row, d]


@wp.func
def begin_middle_backward(tree: Tree, work: Workspace, world: int, middle: int):
    for d in range(tree.velocities):
        work.q_bar[world, middle, d] = scalar(0.0)
        work.v_bar[world, middle, d] = scalar(0.0)


@wp.func
def speed_up_backward(tree: Tree, work: Workspace, memory: ContactMemory, world: int, row: int, middle: int, h: scalar):
    """From v̄_bar to v_bar[row] and −ā₁ in a_bar[row]; back to a₁ and v. The derivative in h."""
    by_time = scalar(0.0)
    for i in range(tree.links):
        part = share_of_middle(tree, memory, world, i, h)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            bar = work.v_bar[world, middle, d]
            by_time += part * bar * work.a[world, middle, d]
            work.a_bar[world, row, d] = -part * bar
            work.v_bar[world, row, d] = work.v_bar[world, row, d] + bar
            work.v_bar[world, middle, d] = scalar(0.0)
            work.v[world, middle, d] = work.v[world, row, d]
            work.a[world, row, d] = work.a[world, middle, d]
    return by_time / h


@wp.func
def go_to_middle_backward(
    tree: Tree, work: Workspace, memory: ContactMemory, world: int, row: int, middle: int, h: scalar
):
    """Hand the adjoints of q̄ and of v there to q_bar[row] and v_bar[row]. The derivative in h."""
    by_time = scalar(0.0)
    for d in range(tree.velocities):
        by_time += work.q_bar[world, middle, d] * work.rate[world, middle, d]
        work.rate_bar[world, middle, d] = scalar(0.0)
    one = scalar(1.0)
    advance_backward(
        tree, world, work.q_bar, middle, work.rate, middle, work.rate_bar, middle, work.q_bar, row, one
    )  # fmt: skip
    for i in range(tree.links):
        part = share_of_middle(tree, memory, world, i, h)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            bar = work.v_bar[world, middle, d] + part * work.rate_bar[world, middle, d]
            work.v_bar[world, row, d] = work.v_bar[world, row, d] + bar
    return by_time / h
