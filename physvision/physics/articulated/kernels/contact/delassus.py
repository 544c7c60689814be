"""How contacts answer impulses: the Delassus matrix A = J M⁻¹ Jᵀ, with the factorisation of the last `accelerate`.

A solve with M sweeps inward, rest = W right, and outward: M⁻¹ = Wᵀ D⁻¹ W, D⁻¹ being `pivot`. The inward sweep of a row
of J stays on the links that carry the contact. With these halves H = W Jᵀ the matrix is Hᵀ D⁻¹ H, and the velocities
that impulses λ give follow from one outward sweep of H λ.
"""

import warp as wp

from physvision.physics.articulated.kernels.dynamics.forward import solve_outward
from physvision.physics.articulated.kernels.precision import mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import crossed, transposed, zero3
from physvision.physics.articulated.kernels.structs import FREE, PRISMATIC, ContactMemory, Tree, Workspace


@wp.func
def zero33():
    z = scalar(0.0)
    return mat33(z, z, z, z, z, z, z, z, z)


@wp.func(inline=True)
def contact_velocity(
    tree: Tree, memory: ContactMemory, world: int, c: int, motion: wp.array3d(dtype=scalar), motion_row: int
):
    """The velocity of contact c, along its normal and tangents, in a motion of the tree."""
    total = zero3()
    for k in range(memory.path_length[world, c]):
        i = memory.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            total = total + motion[world, motion_row, d] * memory.jacobian[world, c, d]
    return total


@wp.func
def add_push(
    tree: Tree, memory: ContactMemory, world: int, c: int, along: vec3, out: wp.array3d(dtype=scalar), row: int
):
    """Out[row] += Jᵀ of contact c times a vector of its directions."""
    for k in range(memory.path_length[world, c]):
        i = memory.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            out[world, row, d] = out[world, row, d] + wp.dot(memory.jacobian[world, c, d], along)


@wp.func
def waiting(c: int):
    """What `met` says of a link that carries contact c and has been handed nothing; one less where it was."""
    return -2 - 2 * c


@wp.func
def begin_inward(memory: ContactMemory, world: int, c: int, i: int):
    """Nothing has been handed to link i, unless something was."""
    if memory.met[world, i] == waiting(c):
        memory.met[world, i] = waiting(c) - 1
        memory.inward_moment[world, i] = zero33()
        memory.inward_force[world, i] = zero33()


@wp.func
def left_along(work: Workspace, world: int, d: int, shifts: bool, along: vec3, moment: mat33, force: mat33):
    """What is left of a Jacobian's column where velocity d, which either shifts its link or turns it, is eliminated."""
    if shifts:
        return along - transposed(force, work.axis_linear[world, d])
    return along - transposed(moment, work.axis_angular[world, d])


@wp.func
def sweep_inward(tree: Tree, work: Workspace, memory: ContactMemory, world: int, c: int):
    """half[c] = W Jᵀ of contact c, and its own block of the Delassus matrix.

    Column k of `inward_…` is what the k-th direction of the contact hands inward.
    """
    length = memory.path_length[world, c]
    own = zero33()
    for k in range(length):
        memory.met[world, memory.path[world, c, k]] = waiting(c)
    k = wp.int32(0)
    while k < length:
        # Along a stretch of links, each the parent of the last, what is handed inward stays at hand.
        i = memory.path[world, c, k]
        begin_inward(memory, world, c, i)
        moment = memory.inward_moment[world, i]
        force = memory.inward_force[world, i]
        stretch = bool(True)
        while stretch:
            start = tree.first_velocity[i]
            end = tree.first_velocity[i + 1]
            joint = tree.joint[i]
            for d in range(end - 1, start - 1, -1):
                shifts = joint == PRISMATIC or (joint == FREE and d < start + 3)
                rest = left_along(work, world, d, shifts, memory.jacobian[world, c, d], moment, force)
                memory.half[world, c, d] = rest
                scaled = work.pivot[world, d] * rest
                own = own + wp.outer(scaled, rest)
                moment = moment + wp.outer(work.column_angular[world, d], scaled)
                force = force + wp.outer(work.column_linear[world, d], scaled)
            moment = moment + crossed(work.offset[world, i], force)
            k += 1
            stretch = False
            i = tree.parent[i]
            if i >= 0:
                stretch = memory.path[world, c, k] == i and memory.met[world, i] == waiting(c)
        if i >= 0:
            # The other body's links come first, or have been here.
            begin_inward(memory, world, c, i)
            memory.inward_moment[world, i] = memory.inward_moment[world, i] + moment
            memory.inward_force[world, i] = memory.inward_force[world, i] + force
    memory.delassus[world, c, c] = own


@wp.func
def find_islands(tree: Tree, memory: ContactMemory, world: int, count: int):
    """Contacts that share a tree, or trees that a row of contacts joins, are of one island; others do not interact.

    `member` lists them island by island.
    """
    for c in range(count):
        for k in range(memory.path_length[world, c]):
            memory.met[world, memory.path[world, c, k]] = -1
    for c in range(count):
        memory.island[world, c] = c
        for k in range(memory.path_length[world, c]):
            i = memory.path[world, c, k]
            if tree.parent[i] < 0:
                other = memory.met[world, i]
                if other < 0:
                    memory.met[world, i] = c
                else:
                    mine = memory.island[world, c]
                    theirs = memory.island[world, other]
                    for m in range(c + 1):
                        if memory.island[world, m] == mine:
                            memory.island[world, m] = theirs
    # An island has the number of one of its contacts.
    listed = wp.int32(0)
    for c in range(count):
        if memory.island[world, c] == c:
            start = wp.int32(listed)
            for m in range(count):
                if memory.island[world, m] == c:
                    memory.member[world, listed] = m
                    listed += 1
            memory.island_end[world, start] = listed


@wp.func
def build_delassus(tree: Tree, work: Workspace, memory: ContactMemory, world: int, count: int):
    """Half and Delassus matrix of all contacts; between islands nothing is written."""
    find_islands(tree, memory, world, count)
    start = wp.int32(0)
    while start < count:
        behind = memory.island_end[world, start]
        for m in range(start, behind):
            c = memory.member[world, m]
            sweep_inward(tree, work, memory, world, c)
            for n in range(start, m):
                k = memory.member[world, n]
                block = zero33()
                for step in range(memory.path_length[world, k]):
                    i = memory.path[world, k, step]
                    end = tree.first_velocity[i]
                    met = memory.met[world, i]
                    if met == waiting(c) or met == waiting(c) - 1:  # it carries both
                        end = tree.first_velocity[i + 1]
                    for d in range(tree.first_velocity[i], end):
                        scaled = work.pivot[world, d] * memory.half[world, c, d]
                        block = block + wp.outer(scaled, memory.half[world, k, d])
                memory.delassus[world, c, k] = block
                memory.delassus[world, k, c] = wp.transpose(block)
        start = behind


@wp.func
def add_halves(tree: Tree, work: Workspace, memory: ContactMemory, world: int, c: int, along: vec3):
    """Rest += W Jᵀ of contact c times a vector of its directions."""
    for k in range(memory.path_length[world, c]):
        i = memory.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            work.rest[world, d] = work.rest[world, d] + wp.dot(memory.half[world, c, d], along)


@wp.func
def response(tree: Tree, work: Workspace, memory: ContactMemory, world: int, c: int):
    """The velocity of contact c that M⁻¹ gives, where `rest` holds W times the right-hand side."""
    total = zero3()
    for k in range(memory.path_length[world, c]):
        i = memory.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            total = total + work.pivot[world, d] * work.rest[world, d] * memory.half[world, c, d]
    return total


@wp.func
def apply_impulses(tree: Tree, work: Workspace, memory: ContactMemory, world: int, row: int, count: int):
    """Jump[row] = M⁻¹ Jᵀ λ."""
    for d in range(tree.velocities):
        work.rest[world, d] = scalar(0.0)
    for c in range(count):
        add_halves(tree, work, memory, world, c, memory.impulse[world, c])
    solve_outward(tree, work, world, memory.jump, row)
