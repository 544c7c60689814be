"""Where all pairs of a state are, without any dynamics."""

import warp as wp

from . import scalar
from .spatial import vec3
from .touching import closest_of, place_in_world, place_of
from .tree import ContactMemoryStruct, ContactsStruct, TreeStruct


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3})
def contact_list(
    first: int,
    tree: TreeStruct,
    contacts: ContactsStruct,
    memory: ContactMemoryStruct,
    q: wp.array3d(dtype=scalar),
    gap: wp.array2d(dtype=scalar),
    point: wp.array2d(dtype=vec3),
    normal: wp.array2d(dtype=vec3),
):
    """Gap, point and normal of each pair at q[world, 0]."""
    world = first + wp.tid()
    place_in_world(tree, contacts, memory, world, q, 0)
    for pair in range(contacts.pairs):
        near = closest_of(contacts, memory, world, pair)
        gap[world, pair] = near.gap
        point[world, pair] = place_of(near, contacts.margin[pair])
        normal[world, pair] = near.normal
