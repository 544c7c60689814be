"""Which contacts overlap, what each of them is told of its reference, and what their forces give in a step."""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import first_near
from physvision.physics.articulated.kernels.collision.joint_limits import stop_gap, write_stop_jacobian
from physvision.physics.articulated.kernels.collision.narrow_phase import closest_of, write_jacobian
from physvision.physics.articulated.kernels.precision import scalar
from physvision.physics.articulated.kernels.spatial.vectors import transposed, zero3
from physvision.physics.articulated.kernels.structs import ContactMemory, Contacts, Tree, Workspace

from .convex_contact import hardness, share_of, times_stiffness
from .convex_solver import scale_halves
from .delassus import contact_velocity, sweep_inward


@wp.func
def list_overlapping(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int):
    """List what overlaps: how hard it is, how far it lags behind its reference, and H; how many, −1 beyond room."""
    count = wp.int32(0)
    pair = first_near(contacts, memory, world, 0, scalar(0.0))
    while pair < contacts.candidates and count >= 0:
        gap = scalar(0.0)
        room = bool(count < contacts.capacity)
        if pair < contacts.pairs:
            near = closest_of(contacts, memory, world, pair)
            gap = near.gap
            if gap < scalar(0.0) and room:
                memory.friction[world, count] = contacts.friction[world, pair]
                write_jacobian(tree, work, contacts, memory, world, count, pair, near)
        else:
            gap = stop_gap(contacts, memory, world, pair)
            if gap < scalar(0.0) and room:
                memory.friction[world, count] = scalar(0.0)
                write_stop_jacobian(tree, contacts, memory, world, count, pair)
        memory.gap[world, pair] = gap
        memory.overlap[world] = wp.max(memory.overlap[world], -gap)
        if gap < scalar(0.0):
            if room:
                reference = contacts.reference[pair]
                shares = contacts.shares[pair]
                share, _slope = share_of(reference, shares, gap)
                memory.pair[world, count] = pair
                memory.hardness[world, count] = hardness(share, shares[2], memory.friction[world, count])
                lag = -reference[1] * contact_velocity(tree, memory, world, count, work.v, row)
                lag = lag - contact_velocity(tree, memory, world, count, work.a, row)
                lag[0] = lag[0] - reference[0] * share * gap
                memory.lag[world, count] = lag
                sweep_inward(tree, work, memory, world, count)
                scale_halves(tree, work, memory, world, count)
                count += 1
            else:
                count = -1
        pair = first_near(contacts, memory, world, pair + 1, scalar(0.0))
    return count


@wp.func
def force_of(memory: ContactMemory, world: int, c: int):
    return times_stiffness(
        memory.hardness[world, c], memory.friction[world, c], memory.mode[world, c], memory.lag[world, c]
    )


@wp.func
def note_pushes(contacts: Contacts, memory: ContactMemory, world: int, row: int, count: int, interval: scalar):
    """Add what each pair's first shape takes by these forces in an interval; the first row of a step begins anew."""
    if row == 0:
        for pair in range(contacts.pairs):
            memory.pushed[world, pair] = zero3()
    for c in range(count):
        pair = memory.pair[world, c]
        if pair < contacts.pairs:
            force = transposed(memory.frame[world, c], force_of(memory, world, c))
            memory.pushed[world, pair] = memory.pushed[world, pair] + interval * force
