"""What all rollouts share: states from the trajectory and into it, and its gradients on their way back."""

import warp as wp

from physvision.physics.articulated.kernels.dynamics.joints import add_tangent, advance_backward, write_lifted
from physvision.physics.articulated.kernels.dynamics.kinematics import finish_rotation_gradient
from physvision.physics.articulated.kernels.precision import scalar, vec4
from physvision.physics.articulated.kernels.structs import BALL, FREE, ContactMemory, Gradients, Tree, Workspace


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
def begin(
    tree: Tree,
    world: int,
    start_q: wp.array2d(dtype=scalar),
    start_v: wp.array2d(dtype=scalar),
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
):
    """Write the start as the state of step 0, its quaternions brought to length one; whether that is finite.

    A quaternion without length has no direction, and becomes no number.
    """
    for k in range(tree.positions):
        q[world, 0, k] = start_q[world, k]
    for d in range(tree.velocities):
        v[world, 0, d] = start_v[world, d]
    for i in range(tree.links):
        p = quaternion_of(tree, i)
        if p >= 0:
            length = wp.length(start4(start_q, world, p))
            for k in range(4):
                q[world, 0, p + k] = start_q[world, p + k] / length
    return starts_finite(tree, world, q, v)


@wp.func
def quaternion_of(tree: Tree, i: int):
    """Where the quaternion of link i's joint begins in a position; -1 where it has none."""
    p = tree.first_position[i]
    if tree.joint[i] == FREE:
        return p + 3
    if tree.joint[i] == BALL:
        return p
    return -1


@wp.func
def start4(q: wp.array2d(dtype=scalar), world: int, p: int):
    return vec4(q[world, p], q[world, p + 1], q[world, p + 2], q[world, p + 3])


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
    steps: int,
    truncate: int,
    q: wp.array3d(dtype=scalar),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
):
    """The gradient of the state of a step into a row: what row 0 brings from later, unless cut there, and its own.

    The chain is cut at every step whose number `truncate` divides; the last of all `steps` has nothing later.
    """
    cut = truncate > 0 and step < steps and step % wp.max(truncate, 1) == 0
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
def euler_backward(
    tree: Tree,
    work: Workspace,
    world: int,
    step: int,
    steps: int,
    truncate: int,
    h: scalar,
    q: wp.array3d(dtype=scalar),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
):
    """Back over v' = v + h a, q' = q + h v' from row 1 to q and v in row 0; a_bar[0] is the negative one."""
    carry_backward(tree, work, world, 1, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar)
    for d in range(tree.velocities):
        work.q_bar[world, 0, d] = scalar(0.0)
    advance_backward(tree, world, work.q_bar, 1, work.v, 1, work.v_bar, 1, work.q_bar, 0, h)
    for d in range(tree.velocities):
        work.v_bar[world, 0, d] = work.v_bar[world, 1, d]
        work.a_bar[world, 0, d] = -h * work.v_bar[world, 1, d]


@wp.func
def end_backward(
    tree: Tree,
    work: Workspace,
    gradients: Gradients,
    world: int,
    start_q: wp.array2d(dtype=scalar),
    q: wp.array3d(dtype=scalar),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
    q_bar: wp.array2d(dtype=scalar),
    v_bar: wp.array2d(dtype=scalar),
):
    """Hand over the gradient of the start, and finish those of the tree's placements.

    With u = p / |p|, the gradient to a quaternion p of any length is that to u, which is at right angles to it, by |p|.
    """
    finish_rotation_gradient(tree, gradients, world)
    add_tangent(tree, world, q, trajectory_q_bar, 0, work.q_bar, 0)
    write_lifted(tree, world, q, 0, work.q_bar, 0, q_bar)
    for i in range(tree.links):
        p = quaternion_of(tree, i)
        if p >= 0:
            length = wp.length(start4(start_q, world, p))
            for k in range(4):
                q_bar[world, p + k] = q_bar[world, p + k] / length
    for d in range(tree.velocities):
        v_bar[world, d] = work.v_bar[world, 0, d] + trajectory_v_bar[world, 0, d]
