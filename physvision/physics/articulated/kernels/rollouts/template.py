"""Template of all rollouts with contact: one launch simulates a trajectory, and another computes its adjoint.

One thread simulates one world. Only the states are stored: the adjoint walks time in reverse and computes each step
again.
"""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import find_bounds
from physvision.physics.articulated.kernels.collision.narrow_phase_adjoint import finish_shape_gradient
from physvision.physics.articulated.kernels.precision import scalar
from physvision.physics.articulated.kernels.structs import (
    ContactGradientsStruct,
    ContactMemory,
    ContactMemoryStruct,
    Contacts,
    ContactsStruct,
    ForcesStruct,
    GradientsStruct,
    Tree,
    TreeStruct,
    Workspace,
    WorkspaceStruct,
)

from .trajectory import (
    begin,
    begin_backward,
    end_backward,
    forget,
    load_state,
    store_failure,
    store_state,
)


@wp.func
def accept_start(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
):
    """Accept every finite initial state."""
    return True


def rollout_kernels(
    Method, take_step, take_step_backward, check_start=accept_start, options=None, backward_options=None
):
    """Make the kernel of a rollout with contact, and the kernel of its adjoint.

    Args:
        Method: Type of the parameters of the method: the length of a step, a schedule, or a struct of a contact law.
        take_step: Warp function (method, tree, work, forces, contacts, memory, world, step, is_last) that advances the
            state in row 0 of the workspace; returns the row of the state after the step, negative if the step fails.
        take_step_backward: Warp function (method, tree, work, forces, contacts, memory, gradients, touch, world, step,
            steps, truncate, q, trajectory_q_bar, trajectory_v_bar) that takes the state of row 0 and its adjoint after
            the step to the adjoint before it.
        check_start: Warp function (tree, work, contacts, memory, world, q, v) that returns True if the initial state is
            valid.
        options: Warp's compiler options of the rollout.
        backward_options: Warp's compiler options of the adjoint.
    """

    @wp.kernel(enable_backward=False, module="unique", module_options=options or {"max_unroll": 3})
    def rollout(
        first: int,
        tree: TreeStruct,
        work: WorkspaceStruct,
        forces: ForcesStruct,
        contacts: ContactsStruct,
        memory: ContactMemoryStruct,
        method: Method,
        steps: int,
        start_q: wp.array2d(dtype=scalar),
        start_v: wp.array2d(dtype=scalar),
        q: wp.array3d(dtype=scalar),
        v: wp.array3d(dtype=scalar),
        first_failed_step: wp.array(dtype=wp.int32),
    ):
        """Fill q and v, [world, step, coordinate], from an initial state.

        A world whose start or step fails is marked, and its further states are NaN.
        """
        world = first + wp.tid()
        bad = wp.int32(-1)
        forget(memory, world)
        find_bounds(contacts, memory, world)
        if not begin(tree, world, start_q, start_v, q, v):
            bad = 0
        if bad < 0:
            if not check_start(tree, work, contacts, memory, world, q, v):
                bad = 0
        for step in range(steps):
            if bad < 0:
                load_state(tree, work, world, step, q, v)
                is_last = wp.int32(step == steps - 1)
                row = take_step(method, tree, work, forces, contacts, memory, world, step, is_last)
                if row < 0:
                    bad = step + 1
                elif not store_state(tree, work, world, row, step + 1, q, v):
                    bad = step + 1
            if bad >= 0:
                store_failure(tree, world, step + 1, q, v)
        first_failed_step[world] = bad

    @wp.kernel(enable_backward=False, module="unique", module_options=backward_options or {"max_unroll": 3})
    def rollout_backward(
        first: int,
        tree: TreeStruct,
        work: WorkspaceStruct,
        forces: ForcesStruct,
        contacts: ContactsStruct,
        memory: ContactMemoryStruct,
        gradients: GradientsStruct,
        touch: ContactGradientsStruct,
        method: Method,
        steps: int,
        truncate: int,
        start_q: wp.array2d(dtype=scalar),
        q: wp.array3d(dtype=scalar),
        v: wp.array3d(dtype=scalar),
        first_failed_step: wp.array(dtype=wp.int32),
        trajectory_q_bar: wp.array3d(dtype=scalar),
        trajectory_v_bar: wp.array3d(dtype=scalar),
        q_bar: wp.array2d(dtype=scalar),
        v_bar: wp.array2d(dtype=scalar),
    ):
        """Compute the adjoint of `rollout`; a failed world adds nothing to the gradients that worlds share."""
        world = first + wp.tid()
        if first_failed_step[world] >= 0:
            return
        begin_backward(tree, work, world)
        find_bounds(contacts, memory, world)
        for backwards in range(steps):
            step = steps - 1 - backwards
            load_state(tree, work, world, step, q, v)
            take_step_backward(
                method, tree, work, forces, contacts, memory, gradients, touch, world, step, steps, truncate, q,
                trajectory_q_bar, trajectory_v_bar,
            )  # fmt: skip
        finish_shape_gradient(contacts, touch, world)
        end_backward(tree, work, gradients, world, start_q, q, trajectory_q_bar, trajectory_v_bar, q_bar, v_bar)

    return rollout, rollout_backward
