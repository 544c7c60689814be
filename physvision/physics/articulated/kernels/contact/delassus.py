"""Delassus matrix A = J M⁻¹ Jᵀ, with the factorization of the last forward dynamics.

A solve with M sweeps inward, rhs = W right, and outward: M⁻¹ = Wᵀ D⁻¹ W, where D⁻¹ is `inverse_pivot`. The inward sweep
of a row of J stays on the links that carry the contact. With the half Jacobian H = W Jᵀ the matrix is Hᵀ D⁻¹ H, and the
velocity change by impulses λ follows from one outward sweep of H λ.
"""

import warp as wp

from ..dynamics.forward import solve_inertia_outward
from ..precision import Array3d, mat33, scalar, vec3
from ..spatial.vectors import skew_product, transpose_product, zero3
from ..structs import FREE, PRISMATIC, Contact, Tree, Workspace


@wp.func
def zero33():
    """Return the zero matrix of size three."""
    z = scalar(0.0)
    return mat33(z, z, z, z, z, z, z, z, z)


@wp.func(inline=True)
def contact_velocity(tree: Tree, contact: Contact, world: int, c: int, motion: Array3d, motion_row: int):
    """Return the velocity of block c, along its normal and tangents, in a motion of the tree."""
    total = zero3()
    for k in range(contact.blocks.path_length[world, c]):
        i = contact.blocks.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            total = total + motion[world, motion_row, d] * contact.blocks.jacobian[world, c, d]
    return total


@wp.func
def add_jacobian_transpose(tree: Tree, contact: Contact, world: int, c: int, along: vec3, out: Array3d, row: int):
    """Add Jᵀ of block c times a vector of its directions to out[row]."""
    for k in range(contact.blocks.path_length[world, c]):
        i = contact.blocks.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            out[world, row, d] = out[world, row, d] + wp.dot(contact.blocks.jacobian[world, c, d], along)


@wp.func
def unvisited_marker(c: int):
    """Return the marker of a link that carries block c and has received nothing; it is one less after that."""
    return -2 - 2 * c


@wp.func
def init_inward(contact: Contact, world: int, c: int, i: int):
    """Clear what link i has received, unless it has received something of the same block."""
    if contact.solver.link_marker[world, i] == unvisited_marker(c):
        contact.solver.link_marker[world, i] = unvisited_marker(c) - 1
        contact.solver.inward_moment[world, i] = zero33()
        contact.solver.inward_force[world, i] = zero33()


@wp.func
def eliminate_velocity(work: Workspace, world: int, d: int, translates: bool, along: vec3, moment: mat33, force: mat33):
    """Return a column of the Jacobian after the elimination of velocity d, which translates or rotates its link."""
    if translates:
        return along - transpose_product(force, work.axis_linear[world, d])
    return along - transpose_product(moment, work.axis_angular[world, d])


@wp.func
def write_half_jacobian(tree: Tree, work: Workspace, contact: Contact, world: int, c: int):
    """Compute half_jacobian[c] = W Jᵀ of block c, and its own block of the Delassus matrix.

    Column k of `inward_…` is what the k-th direction of the block passes inward.
    """
    length = contact.blocks.path_length[world, c]
    delassus_block = zero33()
    for k in range(length):
        contact.solver.link_marker[world, contact.blocks.path[world, c, k]] = unvisited_marker(c)
    k = wp.int32(0)
    while k < length:
        # Along a chain of links, each the parent of the previous, the propagated values stay in registers.
        i = contact.blocks.path[world, c, k]
        init_inward(contact, world, c, i)
        moment = contact.solver.inward_moment[world, i]
        force = contact.solver.inward_force[world, i]
        is_chain = bool(True)
        while is_chain:
            start = tree.first_velocity[i]
            end = tree.first_velocity[i + 1]
            joint = tree.joint[i]
            for d in range(end - 1, start - 1, -1):
                translates = joint == PRISMATIC or (joint == FREE and d < start + 3)
                remainder = eliminate_velocity(
                    work, world, d, translates, contact.blocks.jacobian[world, c, d], moment, force
                )
                contact.blocks.half_jacobian[world, c, d] = remainder
                scaled = work.inverse_pivot[world, d] * remainder
                delassus_block = delassus_block + wp.outer(scaled, remainder)
                moment = moment + wp.outer(work.column_angular[world, d], scaled)
                force = force + wp.outer(work.column_linear[world, d], scaled)
            moment = moment + skew_product(work.offset[world, i], force)
            k += 1
            is_chain = False
            i = tree.parent[i]
            if i >= 0:
                is_chain = contact.blocks.path[world, c, k] == i and contact.solver.link_marker[
                    world, i
                ] == unvisited_marker(c)
        if i >= 0:
            # Links of the other body come first, or have propagated already.
            init_inward(contact, world, c, i)
            contact.solver.inward_moment[world, i] = contact.solver.inward_moment[world, i] + moment
            contact.solver.inward_force[world, i] = contact.solver.inward_force[world, i] + force
    contact.solver.delassus[world, c, c] = delassus_block


@wp.func
def island_root(contact: Contact, world: int, c: int):
    """Return the block to which the chain of blocks from c leads, which is the first of its island so far."""
    root = wp.int32(c)
    while contact.solver.island[world, root] != root:
        root = contact.solver.island[world, root]
    return root


@wp.func
def find_islands(tree: Tree, contact: Contact, world: int, count: int):
    """Partition blocks into islands; blocks interact if they share a tree, or trees that a chain of blocks connects.

    An island has the number of its first block. `island_member` lists the blocks island by island.
    """
    for c in range(count):
        for k in range(contact.blocks.path_length[world, c]):
            contact.solver.link_marker[world, contact.blocks.path[world, c, k]] = -1
    for c in range(count):
        contact.solver.island[world, c] = c
        for k in range(contact.blocks.path_length[world, c]):
            i = contact.blocks.path[world, c, k]
            if tree.parent[i] < 0:
                previous = contact.solver.link_marker[world, i]
                contact.solver.link_marker[world, i] = c
                if previous >= 0:
                    a = island_root(contact, world, c)
                    b = island_root(contact, world, previous)
                    contact.solver.island[world, wp.max(a, b)] = wp.min(a, b)
    # Blocks are counted, and then each is put behind those of its island. `active` is not in use yet.
    for c in range(count):
        contact.solver.island[world, c] = contact.solver.island[world, contact.solver.island[world, c]]
        contact.solver.active[world, c] = 0
        first = contact.solver.island[world, c]
        contact.solver.active[world, first] = contact.solver.active[world, first] + 1
    num_listed = wp.int32(0)
    for c in range(count):
        first = contact.solver.island[world, c]
        if first == c:
            start = wp.int32(num_listed)
            num_listed += contact.solver.active[world, c]
            contact.solver.island_end[world, start] = num_listed
            contact.solver.active[world, c] = start
        place = contact.solver.active[world, first]
        contact.solver.island_member[world, place] = c
        contact.solver.active[world, first] = place + 1


@wp.func
def build_delassus(tree: Tree, work: Workspace, contact: Contact, world: int, count: int):
    """Compute half Jacobians and Delassus matrix of all blocks; nothing is written between islands."""
    find_islands(tree, contact, world, count)
    start = wp.int32(0)
    while start < count:
        next_start = contact.solver.island_end[world, start]
        for m in range(start, next_start):
            c = contact.solver.island_member[world, m]
            write_half_jacobian(tree, work, contact, world, c)
            for n in range(start, m):
                k = contact.solver.island_member[world, n]
                block = zero33()
                for step in range(contact.blocks.path_length[world, k]):
                    i = contact.blocks.path[world, k, step]
                    end = tree.first_velocity[i]
                    marker = contact.solver.link_marker[world, i]
                    if (
                        marker == unvisited_marker(c) or marker == unvisited_marker(c) - 1
                    ):  # the link carries both blocks
                        end = tree.first_velocity[i + 1]
                    for d in range(tree.first_velocity[i], end):
                        scaled = work.inverse_pivot[world, d] * contact.blocks.half_jacobian[world, c, d]
                        block = block + wp.outer(scaled, contact.blocks.half_jacobian[world, k, d])
                contact.solver.delassus[world, c, k] = block
                contact.solver.delassus[world, k, c] = wp.transpose(block)
        start = next_start


@wp.func
def add_half_jacobian(tree: Tree, work: Workspace, contact: Contact, world: int, c: int, along: vec3):
    """Add W Jᵀ of block c times a vector of its directions to `rhs`."""
    for k in range(contact.blocks.path_length[world, c]):
        i = contact.blocks.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            work.rhs[world, d] = work.rhs[world, d] + wp.dot(contact.blocks.half_jacobian[world, c, d], along)


@wp.func
def delassus_response(tree: Tree, work: Workspace, contact: Contact, world: int, c: int):
    """Return the velocity of block c under M⁻¹, where `rhs` holds W times the right-hand side."""
    total = zero3()
    for k in range(contact.blocks.path_length[world, c]):
        i = contact.blocks.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            total = (
                total + work.inverse_pivot[world, d] * work.rhs[world, d] * contact.blocks.half_jacobian[world, c, d]
            )
    return total


@wp.func
def apply_impulses(tree: Tree, work: Workspace, contact: Contact, world: int, row: int, count: int):
    """Compute velocity_change[row] = M⁻¹ Jᵀ λ."""
    for d in range(tree.velocities):
        work.rhs[world, d] = scalar(0.0)
    for c in range(count):
        add_half_jacobian(tree, work, contact, world, c, contact.solver.impulse[world, c])
    solve_inertia_outward(tree, work, world, contact.solver.velocity_change, row)
