"""What a body is, its numbers, and the memory of one world."""

import warp as wp

from .precision import Mat, Nodes, Reals, Vec, real


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
    partner: wp.array(dtype=wp.int32)  # of each obstacle, the node in a solid's middle; −1 for a plane
    normal: wp.array(dtype=Vec)  # of each plane, out of the ground
    point: wp.array(dtype=Vec)  # on it
    half: wp.array(dtype=Vec)  # half-edges of the box inside each solid
    touch_block: wp.array2d(dtype=wp.int32)  # of each obstacle and node the block that they share, −1 for none
    link: wp.array2d(dtype=wp.int32)  # pairs of nodes whose distance cloth's bending counts
    link_block: wp.array(dtype=wp.int32)  # −1 where one of them is held
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
    """Properties as the kernels see them, [world, …], which `pack` makes; or sums of their gradients, if `wanted`."""

    wanted: int
    weights: wp.array3d(dtype=real)  # of each element: μV, λV, viscous time, tension · V
    inverse: wp.array2d(dtype=Mat)
    mass: wp.array2d(dtype=real)
    load: wp.array2d(dtype=Vec)  # with that of gravity
    whole: wp.array2d(dtype=real)  # decay of velocity, stiffness of contact, friction and radius of each obstacle
    bending: wp.array2d(dtype=real)  # stiffness of each link, which may be below zero


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
class ElementStruct:
    """One element in a step: F, F₀, the inverse of its edges at rest, moduli a = μV and b = λV, c = β/h, its muscle."""

    law: int
    F: Mat
    F0: Mat
    inverse: Mat
    fibre: Vec
    a: real
    b: real
    c: real
    pull: real  # volume times tension


@wp.struct
class TouchStruct:
    """Where a node is beside an obstacle."""

    deep: real
    normal: Vec
    bend: real  # one over the distance to the box inside
    beyond: Vec  # 1 for axes along which it is beyond that box


@wp.struct
class ContactStruct:
    """One node and one obstacle in a step; the letters are those of `contact`."""

    now: TouchStruct
    before: TouchStruct
    h: real
    area: real
    stiffness: real  # k
    friction: real  # η
    slid: Vec  # r − r₀
    w: Vec
    s: real
    grip: real  # η N/s
    smooth: real  # s − slip


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
