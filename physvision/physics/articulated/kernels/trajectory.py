"""What all rollouts share: states from the trajectory and into it, and its gradients on their way back."""

import warp as wp

from . import scalar
from .joints import add_tangent, write_lifted
from .kinematics import finish_rotation_gradient
from .tree import ContactMemory, Gradients, Tree, Workspace


@wp.func
def starts_finite(tree: Tree, world: int, q: wp.array3d(dtype=scalar), v: wp.array3d(dtype=scalar)):
    """Whether all numbers of a world's first state are finite."""
    finite = bool(True)
    for k in range(tree.positions):
        if not wp.isfinite(q[world, 0, k]):
            finite = bool(False)
    for d in range(tree.velocities):
        if not wp.isfinite(v[world, 0, d]):
            finite = bool(False)
    return finite


@wp.func
def forget(memory: ContactMemory, world: int):
    """Begin what the memory tells of a whole rollout."""
    memory.residual[world] = scalar(0.0)
    memory.grazing[world] = -1
    memory.crowded[world] = 0
    memory.softened[world] = 0
    memory.overlap[world] = scalar(0.0)


@wp.func
def load_state(
    tree: Tree,
    work: Workspace,
    world: int,
    step: int,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
):
    """Put the state of a step into row 0 of the workspace."""
    for k in range(tree.positions):
        work.q[world, 0, k] = q[world, step, k]
    for d in range(tree.velocities):
        work.v[world, 0, d] = v[world, step, d]


@wp.func
def store_state(
    tree: Tree,
    work: Workspace,
    world: int,
    row: int,
    step: int,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
):
    """Write a row of the workspace as the state of a step; whether all its numbers are finite."""
    finite = bool(True)
    for k in range(tree.positions):
        q[world, step, k] = work.q[world, row, k]
        if not wp.isfinite(work.q[world, row, k]):
            finite = bool(False)
    for d in range(tree.velocities):
        v[world, step, d] = work.v[world, row, d]
        if not wp.isfinite(work.v[world, row, d]):
            finite = bool(False)
    return finite


@wp.func
def store_failure(tree: Tree, world: int, step: int, q: wp.array3d(dtype=scalar), v: wp.array3d(dtype=scalar)):
    """Write NaN as the state of a step."""
    for k in range(tree.positions):
        q[world, step, k] = scalar(wp.nan)
    for d in range(tree.velocities):
        v[world, step, d] = scalar(wp.nan)


@wp.func
def begin_backward(tree: Tree, work: Workspace, world: int):
    """No gradient comes from beyond the last state."""
    for d in range(tree.velocities):
        work.q_bar[world, 0, d] = scalar(0.0)
        work.v_bar[world, 0, d] = scalar(0.0)


@wp.func
def carry_backward(
    tree: Tree,
    work: Workspace,
    world: int,
    row: int,
    step: int,
    cut: bool,
    q: wp.array3d(dtype=scalar),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
):
    """The gradient of the state of a step into a row: what row 0 brings from later, unless cut, and its own."""
    for d in range(tree.velocities):
        carried_q = work.q_bar[world, 0, d]
        carried_v = work.v_bar[world, 0, d]
        if cut:
            carried_q = scalar(0.0)
            carried_v = scalar(0.0)
        work.q_bar[world, row, d] = carried_q
        work.v_bar[world, row, d] = carried_v + trajectory_v_bar[world, step, d]
    add_tangent(tree, world, q, trajectory_q_bar, step, work.q_bar, row)


@wp.func
def end_backward(
    tree: Tree,
    work: Workspace,
    gradients: Gradients,
    world: int,
    q: wp.array3d(dtype=scalar),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
    q_bar: wp.array2d(dtype=scalar),
    v_bar: wp.array2d(dtype=scalar),
):
    """Hand over the gradient of the first state, and finish those of the tree's placements."""
    finish_rotation_gradient(tree, gradients, world)
    add_tangent(tree, world, q, trajectory_q_bar, 0, work.q_bar, 0)
    write_lifted(tree, world, q, 0, work.q_bar, 0, q_bar)
    for d in range(tree.velocities):
        v_bar[world, d] = work.v_bar[world, 0, d] + trajectory_v_bar[world, 0, d]
