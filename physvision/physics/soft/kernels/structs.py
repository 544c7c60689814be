"""Structs of a soft body: its arrays, parameters and workspace."""

import warp as wp

from .precision import Mat, Nodes, Reals, Vec, real


@wp.struct
class BodyStruct:
    """Arrays that all worlds share: mesh, kinematic and actuated nodes, obstacles, and the factorization's pattern."""

    law: int  # 0 linear, 1 St. Venant–Kirchhoff, 2 neo-Hookean
    implicit: int
    constant: int  # 1 if the stiffness is constant
    h: real
    size: real  # m, of a typical element
    slip: real  # m/s, below which friction is smooth
    corners: wp.array2d(dtype=wp.int32)
    kinematic: wp.array(dtype=wp.int32)  # of each node, 1 if it keeps its velocity
    muscle: wp.array(dtype=wp.int32)  # of each element, −1 for none
    muscles: int
    fiber: wp.array(dtype=Vec)  # of each element, a unit vector at rest
    actuated: wp.array(dtype=wp.int32)  # nodes on which controls exert forces
    area: wp.array(dtype=real)  # of each node, its area of the surface
    partner: wp.array(dtype=wp.int32)  # of each obstacle, the node of a collider's center; −1 for a plane
    normal: wp.array(dtype=Vec)  # of each plane, out of the ground
    point: wp.array(dtype=Vec)  # on it
    half: wp.array(dtype=Vec)  # half-edges of the box inside each collider
    touch_block: wp.array2d(dtype=wp.int32)  # of each obstacle and node the block that they share, −1 for none
    link: wp.array2d(dtype=wp.int32)  # pairs of nodes whose distance cloth's bending counts
    link_block: wp.array(dtype=wp.int32)  # −1 if one of them is kinematic
    node: wp.array(dtype=wp.int32)  # of each column of the matrix
    place: wp.array(dtype=wp.int32)  # of each node its column, −1 if it is kinematic
    column: wp.array(dtype=wp.int32)  # the first of each column's blocks, and one more
    row: wp.array(dtype=wp.int32)  # of each block below the diagonal
    left: wp.array(dtype=wp.int32)  # of each row the first of its blocks, and one more
    left_column: wp.array(dtype=wp.int32)
    left_block: wp.array(dtype=wp.int32)
    block: wp.array2d(dtype=wp.int32)  # of each element, for each pair of corners; −1 for none


@wp.struct
class NumbersStruct:
    """Parameters of `CompiledBody.pack`, [world, …], or sums of their gradients, if `needs_gradients`."""

    needs_gradients: int
    weights: wp.array3d(dtype=real)  # of each element: μV, λV, viscous time, tension · V
    inverse: wp.array2d(dtype=Mat)
    mass: wp.array2d(dtype=real)
    load: wp.array2d(dtype=Vec)  # with that of gravity
    whole: wp.array2d(dtype=real)  # decay of velocity, stiffness of contact, friction and radius of each obstacle
    bending: wp.array2d(dtype=real)  # stiffness of each link, which may be below zero


@wp.struct
class MemoryStruct:
    """Workspace of all worlds, [world, …]."""

    before: wp.array2d(dtype=Vec)
    force: wp.array2d(dtype=Vec)
    move: wp.array2d(dtype=Vec)
    old: wp.array2d(dtype=Vec)
    diagonal: wp.array2d(dtype=Mat)
    below: wp.array2d(dtype=Mat)
    at: wp.array2d(dtype=wp.int32)


@wp.struct
class ElementStruct:
    """An element in a step: F, F₀, the inverse of its edges at rest, moduli a = μV and b = λV, c = β/h, its muscle."""

    law: int
    F: Mat
    F0: Mat
    inverse: Mat
    fiber: Vec
    a: real
    b: real
    c: real
    pull: real  # volume times tension


@wp.struct
class TouchStruct:
    """Penetration of a node into an obstacle."""

    deep: real
    normal: Vec
    bend: real  # one over the distance to the box inside
    beyond: Vec  # 1 for axes along which it is beyond that box


@wp.struct
class ContactStruct:
    """A node and an obstacle in a step; the symbols are those of `contact`."""

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
    """A step of a world: positions x of the forces, and positions x₀ at the start, for strain rates."""

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
def step_of(workspace: MemoryStruct, world: int, controls: Reals, x: Nodes, x0: Nodes, v0: Nodes):
    """Make the step from x₀ to x."""
    s = StepStruct()
    s.world = world
    s.controls = controls
    s.x = x
    s.x0 = x0
    s.v0 = v0
    s.force = workspace.force[world]
    s.move = workspace.move[world]
    s.old = workspace.old[world]
    s.diagonal = workspace.diagonal[world]
    s.below = workspace.below[world]
    s.at = workspace.at[world]
    return s
