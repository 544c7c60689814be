"""Friction against turning: a block beside that of its contact, whose velocity is frame · (ω_a − ω_b).

`touching_backward` has its adjoint.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import scalar
from physvision.physics.articulated.kernels.spatial.vectors import zero3
from physvision.physics.articulated.kernels.structs import TURNS, ContactMemory, Contacts, Tree, Workspace


@wp.func(inline=True)
def add_turning(
    tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int, pair: int, slot: int
):
    """List the turning friction of the contact in `slot`, behind it, if it was listed and its pair has some."""
    own = slot + 1
    if contacts.turns[pair] != 0 and memory.count[world, row] == own:
        memory.count[world, row] = own + 1
        if own < contacts.capacity:
            frame = memory.frame[world, slot]
            one = contacts.shape_link[contacts.first[pair]]
            other = contacts.shape_link[contacts.second[pair]]
            length = wp.int32(0)
            total = zero3()
            while one >= 0 or other >= 0:
                i = wp.max(one, other)
                sign = scalar(0.0)  # what carries both turns neither against the other
                if one == i:
                    sign += scalar(1.0)
                    one = tree.parent[i]
                if other == i:
                    sign -= scalar(1.0)
                    other = tree.parent[i]
                for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                    along = sign * (frame * work.axis_angular[world, d])
                    memory.jacobian[world, own, d] = along
                    total = total + work.v[world, row, d] * along
                memory.path[world, own, length] = i
                length += 1
            memory.path_length[world, own] = length
            memory.pair[world, own] = pair
            memory.law[world, own] = TURNS
            memory.holder[world, own] = slot
            memory.friction[world, own] = scalar(0.0)
            memory.restitution[world, own] = scalar(0.0)
            memory.torsion[world, own] = contacts.torsion[world, pair]
            memory.rolling[world, own] = contacts.rolling[world, pair]
            memory.before[world, own] = total
            memory.bias[world, own] = zero3()
            memory.yielding[world, own] = scalar(0.0)
