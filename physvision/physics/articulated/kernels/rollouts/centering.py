"""Coordinates of free links about their center of mass, in which contact by events integrates them.

A body in flight moves along a parabola at its center of mass alone. About another origin a step of constant
acceleration is of first order: a spinning body gains or loses energy, and its motion depends on where a model file puts
its frame. So each step takes the coordinates (x, R, v, ω) of a free joint with the center of mass c, in the axes of the
link, to

    x_c = x + R c,    v_c = v + R (ω × c),

and back at its end; R and ω stay. Inertias, shapes and children are placed from the center of mass by
`LinkParameters.pack`. The forces on the coordinates change too (`add_centering_moments`).

Adjoint: with f = Rᵀ x̄_c, g = Rᵀ v̄_c and u = ω × c, the adjoint of a rotation R exp(δ) grows by c × f + u × g, that of ω
by c × g, and that of c by f + g × ω. On the way back all signs are opposite.
"""

import warp as wp

from ..dynamics.joints import add3, read3, read4
from ..precision import scalar
from ..spatial.rotations import quaternion_matrix
from ..spatial.vectors import transpose_product
from ..structs import Gradients, Tree, Workspace


@wp.func
def shift_state(tree: Tree, work: Workspace, world: int, row: int, sign: scalar):
    """Move the coordinates of free links in a row by `sign` times their center of mass."""
    for k in range(tree.centered_links):
        i = tree.centered_link[k]
        p = tree.first_position[i]
        d = tree.first_velocity[i]
        rotation = quaternion_matrix(read4(work.q, world, row, p + 3))
        center = sign * tree.link_center[world, i]
        add3(work.q, world, row, p, rotation * center)
        add3(work.v, world, row, d, rotation * wp.cross(read3(work.v, world, row, d + 3), center))


@wp.func
def center_state(tree: Tree, work: Workspace, world: int, row: int):
    """Move the coordinates of free links to their center of mass."""
    shift_state(tree, work, world, row, scalar(1.0))


@wp.func
def uncenter_state(tree: Tree, work: Workspace, world: int, row: int):
    """Move the coordinates of free links from their center of mass back to their origin."""
    shift_state(tree, work, world, row, scalar(-1.0))


@wp.func
def shift_state_backward(tree: Tree, work: Workspace, gradients: Gradients, world: int, row: int, sign: scalar):
    """Compute the adjoint of `shift_state` in place, and the gradients of centers of mass."""
    for k in range(tree.centered_links):
        i = tree.centered_link[k]
        d = tree.first_velocity[i]
        rotation = quaternion_matrix(read4(work.q, world, row, tree.first_position[i] + 3))
        center = tree.link_center[world, i]
        spin = read3(work.v, world, row, d + 3)
        f = sign * transpose_product(rotation, read3(work.q_bar, world, row, d))
        g = sign * transpose_product(rotation, read3(work.v_bar, world, row, d))
        add3(work.q_bar, world, row, d + 3, wp.cross(center, f) + wp.cross(wp.cross(spin, center), g))
        add3(work.v_bar, world, row, d + 3, wp.cross(center, g))
        if gradients.is_requested != 0:
            gradients.link_center[world, i] = gradients.link_center[world, i] + f + wp.cross(g, spin)
