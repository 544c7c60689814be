"""Adjoint of a step of semi-implicit Euler, shared by the laws that are solved once a step."""

import warp as wp

from physvision.physics.articulated.kernels.dynamics.joints import integrate_positions_backward
from physvision.physics.articulated.kernels.precision import Array3d, scalar
from physvision.physics.articulated.kernels.rollouts.trajectory import load_state_adjoint
from physvision.physics.articulated.kernels.structs import Tree, Workspace


@wp.func(inline=True)
def euler_backward(
    tree: Tree,
    work: Workspace,
    world: int,
    step: int,
    steps: int,
    truncate: int,
    h: scalar,
    q: Array3d,
    trajectory_q_bar: Array3d,
    trajectory_v_bar: Array3d,
):
    """Propagate over v' = v + h a, q' = q + h v' from row 1 to q and v in row 0; a_bar[0] gets the negative adjoint."""
    load_state_adjoint(tree, work, world, 1, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar)
    for d in range(tree.velocities):
        work.q_bar[world, 0, d] = scalar(0.0)
    integrate_positions_backward(tree, world, work.q_bar, 1, work.v, 1, work.v_bar, 1, work.q_bar, 0, h)
    for d in range(tree.velocities):
        work.v_bar[world, 0, d] = work.v_bar[world, 1, d]
        work.a_bar[world, 0, d] = -h * work.v_bar[world, 1, d]
