"""What a body is, its numbers, and the memory of one world."""

import warp as wp

from . import Mat, Nodes, Reals, Vec, real


@wp.struct
class BodyStruct:
    """What all worlds share: the mesh, what is held and pushed, the planes, and the pattern of the factorisation."""

    law: int  # 0 linear, 1 St. Venant–Kirchhoff, 2 neo-Hookean
    implicit: int
    constant: int  # whether the stiffness is the same in every step
    h: real
    size: real  # m, of a typical element
    slip: real  # m/s, below which friction is smooth
    corners: wp.array2d(dtype=wp.int32)
    held: wp.array(dtype=wp.int32)  # of each node, whether its velocity is given
    muscle: wp.array(dtype=wp.int32)  # of each element, −1 for none
    muscles: int
    fibre: wp.array(dtype=Vec)  # of each element, a unit vector at rest
    pushed: wp.array(dtype=wp.int32)  # nodes that controls push
    area: wp.array(dtype=real)  # of each node, its share of the surface
    normal: wp.array(dtype=Vec)  # of each plane, out of the solid
    offset: wp.array(dtype=real)
    node: wp.array(dtype=wp.int32)  # of each column of the matrix
    place: wp.array(dtype=wp.int32)  # of each node its column, −1 where it is held
    column: wp.array(dtype=wp.int32)  # the first of each column's blocks, and one more
    row: wp.array(dtype=wp.int32)  # of each block below the diagonal
    left: wp.array(dtype=wp.int32)  # of each row the first of its blocks, and one more
    left_column: wp.array(dtype=wp.int32)
    left_block: wp.array(dtype=wp.int32)
    block: wp.array2d(dtype=wp.int32)  # of each element, for each pair of corners; −1 for none


@wp.struct
class NumbersStruct:
    """Properties as the kernels see them, [world, …]; `physvision.physics.soft.properties.pack` makes them."""

    weights: wp.array3d(dtype=real)  # of each element: μV, λV, viscous time, tension · V
    inverse: wp.array2d(dtype=Mat)
    mass: wp.array2d(dtype=real)
    load: wp.array2d(dtype=Vec)  # with that of gravity
    whole: wp.array2d(dtype=real)  # decay of velocity, stiffness of contact, then friction of each plane


@wp.struct
class GradientsStruct:
    """Where the gradients of the numbers are summed, in the same order."""

    wanted: int
    weights: wp.array3d(dtype=real)
    inverse: wp.array2d(dtype=Mat)
    mass: wp.array2d(dtype=real)
    load: wp.array2d(dtype=Vec)
    whole: wp.array2d(dtype=real)


@wp.struct
class MemoryStruct:
    """What worlds work in, [world, …]."""

    before: wp.array2d(dtype=Vec)
    force: wp.array2d(dtype=Vec)
    move: wp.array2d(dtype=Vec)
    old: wp.array2d(dtype=Vec)
    diagonal: wp.array2d(dtype=Mat)
    below: wp.array2d(dtype=Mat)
    at: wp.array2d(dtype=wp.int32)


@wp.struct
class StepStruct:
    """One step of one world: where forces are taken, x, and the places x₀ that rates of strain count from."""

    world: int
    controls: wp.array(dtype=wp.float64)
    x: wp.array(dtype=Vec)
    x0: wp.array(dtype=Vec)
    v0: wp.array(dtype=Vec)
    force: wp.array(dtype=Vec)
    move: wp.array(dtype=Vec)
    old: wp.array(dtype=Vec)
    diagonal: wp.array(dtype=Mat)
    below: wp.array(dtype=Mat)
    at: wp.array(dtype=wp.int32)


@wp.func
def step_of(memory: MemoryStruct, world: int, controls: Reals, x: Nodes, x0: Nodes, v0: Nodes):
    """The step from x₀ to x."""
    s = StepStruct()
    s.world = world
    s.controls = controls
    s.x = x
    s.x0 = x0
    s.v0 = v0
    s.force = memory.force[world]
    s.move = memory.move[world]
    s.old = memory.old[world]
    s.diagonal = memory.diagonal[world]
    s.below = memory.below[world]
    s.at = memory.at[world]
    return s
