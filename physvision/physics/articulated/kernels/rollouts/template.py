"""Template of all rollouts with contact: one launch simulates a trajectory, and another computes its adjoint.

One thread simulates one world. Only the states are stored: the adjoint walks time in reverse and computes each step
again.
"""

import warp as wp

from ..collision.broad_phase import update_bounding_radii
from ..collision.narrow_phase_adjoint import finish_shape_gradient
from ..precision import Array2d, Array3d, IntArray1d
from ..structs import (
    Contact,
    ContactGradientsStruct,
    ContactModelStruct,
    ContactWorkspaceStruct,
    ForcesStruct,
    GradientsStruct,
    System,
    SystemStruct,
    Tree,
    TreeStruct,
    Workspace,
    WorkspaceStruct,
)
from .trajectory import (
    begin_rollout,
    clear_state_adjoint,
    finish_backward,
    load_state,
    reset_status,
    store_failure,
    store_state,
)


@wp.func
def accept_start(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, q: Array3d, v: Array3d):
    """Accept every finite initial state."""
    return True


def rollout_kernels(
    Method, take_step, take_step_backward, check_start=accept_start, options=None, backward_options=None
):
    """Make the kernel of a rollout with contact, and the kernel of its adjoint.

    Args:
        Method: Type of the parameters of the method: the length of a step, a schedule, or a struct of a contact law.
        take_step: Warp function (method, tree, work, contact, system, world, step, is_last) that advances the state in
            row 0 of the workspace; returns the row of the state after the step, negative if the step fails.
        take_step_backward: Warp function (method, tree, work, contact, system, world, step, steps, truncate, q,
            trajectory_q_bar, trajectory_v_bar) that takes the state of row 0 and its adjoint after the step to the
            adjoint before it.
        check_start: Warp function (tree, work, contact, system, world, q, v) that returns True if the initial state is
            valid.
        options: Warp's compiler options of the rollout.
        backward_options: Warp's compiler options of the adjoint.
    """

    @wp.kernel(enable_backward=False, module="unique", module_options=options or {"max_unroll": 3})
    def rollout(
        first_world: int,
        tree: TreeStruct,
        work: WorkspaceStruct,
        forces: ForcesStruct,
        model: ContactModelStruct,
        contact: ContactWorkspaceStruct,
        method: Method,
        steps: int,
        start_q: Array2d,
        start_v: Array2d,
        q: Array3d,
        v: Array3d,
        first_failed_step: IntArray1d,
    ):
        """Fill q and v, [world, step, coordinate], from an initial state.

        A world whose start or step fails is marked, and its further states are NaN.
        """
        world = first_world + wp.tid()
        s = SystemStruct(forces, model, GradientsStruct(), ContactGradientsStruct())
        bad = wp.int32(-1)
        reset_status(contact, world)
        update_bounding_radii(contact, s, world)
        if not begin_rollout(tree, world, start_q, start_v, q, v):
            bad = 0
        if bad < 0:
            if not check_start(tree, work, contact, s, world, q, v):
                bad = 0
        for step in range(steps):
            if bad < 0:
                load_state(tree, work, world, step, q, v)
                is_last = wp.int32(step == steps - 1)
                row = take_step(method, tree, work, contact, s, world, step, is_last)
                if row < 0:
                    bad = step + 1
                elif not store_state(tree, work, world, row, step + 1, q, v):
                    bad = step + 1
            if bad >= 0:
                store_failure(tree, world, step + 1, q, v)
        first_failed_step[world] = bad

    @wp.kernel(enable_backward=False, module="unique", module_options=backward_options or {"max_unroll": 3})
    def rollout_backward(
        first_world: int,
        tree: TreeStruct,
        work: WorkspaceStruct,
        forces: ForcesStruct,
        model: ContactModelStruct,
        contact: ContactWorkspaceStruct,
        gradients: GradientsStruct,
        contact_gradients: ContactGradientsStruct,
        method: Method,
        steps: int,
        truncate: int,
        start_q: Array2d,
        q: Array3d,
        v: Array3d,
        first_failed_step: IntArray1d,
        trajectory_q_bar: Array3d,
        trajectory_v_bar: Array3d,
        q_bar: Array2d,
        v_bar: Array2d,
    ):
        """Compute the adjoint of `rollout`; a failed world adds nothing to the gradients that worlds share."""
        world = first_world + wp.tid()
        if first_failed_step[world] >= 0:
            return
        s = SystemStruct(forces, model, gradients, contact_gradients)
        clear_state_adjoint(tree, work, world)
        update_bounding_radii(contact, s, world)
        for backwards in range(steps):
            step = steps - 1 - backwards
            load_state(tree, work, world, step, q, v)
            take_step_backward(
                method, tree, work, contact, s, world, step, steps, truncate, q, trajectory_q_bar, trajectory_v_bar
            )
        finish_shape_gradient(s, world)
        finish_backward(tree, work, s.gradients, world, start_q, q, trajectory_q_bar, trajectory_v_bar, q_bar, v_bar)

    return rollout, rollout_backward
