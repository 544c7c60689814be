"""Transfer of states between trajectory and workspace, and of their adjoints, for all rollouts."""

import warp as wp

from ..dynamics.joints import add_tangent_gradient, write_coordinate_gradient
from ..dynamics.kinematics import finish_rotation_gradient
from ..precision import Array2d, Array3d, scalar, vec4
from ..structs import BALL, FREE, Contact, Gradients, Tree, Workspace


@wp.func
def is_start_finite(tree: Tree, world: int, q: Array3d, v: Array3d):
    """Return True if all numbers of a world's initial state are finite."""
    finite = bool(True)
    for k in range(tree.positions):
        if not wp.isfinite(q[world, 0, k]):
            finite = bool(False)
    for d in range(tree.velocities):
        if not wp.isfinite(v[world, 0, d]):
            finite = bool(False)
    return finite


@wp.func
def begin_rollout(tree: Tree, world: int, start_q: Array2d, start_v: Array2d, q: Array3d, v: Array3d):
    """Write the initial state as step 0 with normalized quaternions; returns True if it is finite.

    A quaternion of length zero has no direction, and becomes NaN.
    """
    for k in range(tree.positions):
        q[world, 0, k] = start_q[world, k]
    for d in range(tree.velocities):
        v[world, 0, d] = start_v[world, d]
    for i in range(tree.links):
        p = quaternion_offset(tree, i)
        if p >= 0:
            length = wp.length(start_quaternion(start_q, world, p))
            for k in range(4):
                q[world, 0, p + k] = start_q[world, p + k] / length
    return is_start_finite(tree, world, q, v)


@wp.func
def quaternion_offset(tree: Tree, i: int):
    """Return the index of the quaternion of link i's joint in a position; -1 if it has none."""
    p = tree.first_position[i]
    if tree.joint[i] == FREE:
        return p + 3
    if tree.joint[i] == BALL:
        return p
    return -1


@wp.func
def start_quaternion(q: Array2d, world: int, p: int):
    """Read the quaternion that begins at index p of an initial position."""
    return vec4(q[world, p], q[world, p + 1], q[world, p + 2], q[world, p + 3])


@wp.func
def reset_status(contact: Contact, world: int):
    """Reset the status of the rollout."""
    contact.status.residual[world] = scalar(0.0)
    contact.status.first_grazing_step[world] = -1
    contact.status.fallback_steps[world] = 0
    contact.status.regularized_impacts[world] = 0
    contact.status.penetration[world] = scalar(0.0)
    contact.status.block_count[world] = 0


@wp.func
def load_state(tree: Tree, work: Workspace, world: int, step: int, q: Array3d, v: Array3d):
    """Load the state of a step into row 0 of the workspace."""
    for k in range(tree.positions):
        work.q[world, 0, k] = q[world, step, k]
    for d in range(tree.velocities):
        work.v[world, 0, d] = v[world, step, d]


@wp.func
def store_state(tree: Tree, work: Workspace, world: int, row: int, step: int, q: Array3d, v: Array3d):
    """Store a row of the workspace as the state of a step; returns True if all its numbers are finite."""
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
def store_failure(tree: Tree, world: int, step: int, q: Array3d, v: Array3d):
    """Store NaN as the state of a step."""
    for k in range(tree.positions):
        q[world, step, k] = scalar(wp.nan)
    for d in range(tree.velocities):
        v[world, step, d] = scalar(wp.nan)


@wp.func
def clear_state_adjoint(tree: Tree, work: Workspace, world: int):
    """Clear the adjoint of the state after the last step."""
    for d in range(tree.velocities):
        work.q_bar[world, 0, d] = scalar(0.0)
        work.v_bar[world, 0, d] = scalar(0.0)


@wp.func
def load_state_adjoint(
    tree: Tree,
    work: Workspace,
    world: int,
    row: int,
    step: int,
    steps: int,
    truncate: int,
    q: Array3d,
    trajectory_q_bar: Array3d,
    trajectory_v_bar: Array3d,
):
    """Load the adjoint of the state of a step into a row: that of later steps in row 0, unless cut, plus its own.

    The chain is cut at every multiple of `truncate`; nothing follows the last of all `steps`.
    """
    is_cut = truncate > 0 and step < steps and step % wp.max(truncate, 1) == 0
    for d in range(tree.velocities):
        carried_q = work.q_bar[world, 0, d]
        carried_v = work.v_bar[world, 0, d]
        if is_cut:
            carried_q = scalar(0.0)
            carried_v = scalar(0.0)
        work.q_bar[world, row, d] = carried_q
        work.v_bar[world, row, d] = carried_v + trajectory_v_bar[world, step, d]
    add_tangent_gradient(tree, world, q, trajectory_q_bar, step, work.q_bar, row)


@wp.func
def finish_backward(
    tree: Tree,
    work: Workspace,
    gradients: Gradients,
    world: int,
    start_q: Array2d,
    q: Array3d,
    trajectory_q_bar: Array3d,
    trajectory_v_bar: Array3d,
    q_bar: Array2d,
    v_bar: Array2d,
):
    """Write the gradient of the initial state, and finish those of link placements.

    With u = p / |p|, the gradient with respect to a quaternion p of any length is that with respect to u, which is
    perpendicular to it, divided by |p|.
    """
    finish_rotation_gradient(tree, gradients, world)
    add_tangent_gradient(tree, world, q, trajectory_q_bar, 0, work.q_bar, 0)
    write_coordinate_gradient(tree, world, q, 0, work.q_bar, 0, q_bar)
    for i in range(tree.links):
        p = quaternion_offset(tree, i)
        if p >= 0:
            length = wp.length(start_quaternion(start_q, world, p))
            for k in range(4):
                q_bar[world, p + k] = q_bar[world, p + k] / length
    for d in range(tree.velocities):
        v_bar[world, d] = work.v_bar[world, 0, d] + trajectory_v_bar[world, 0, d]
