"""A rollout whose contacts are forces, by semi-implicit Euler at a fixed step, and its adjoint."""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import find_bounds
from physvision.physics.articulated.kernels.collision.narrow_phase import place_moved, turn_moved
from physvision.physics.articulated.kernels.collision.narrow_phase_adjoint import finish_shape_gradient
from physvision.physics.articulated.kernels.dynamics.forward import accelerate_moved, solve
from physvision.physics.articulated.kernels.dynamics.inverse import accelerate_links, residual_backward
from physvision.physics.articulated.kernels.dynamics.joints import advance
from physvision.physics.articulated.kernels.dynamics.kinematics import move_links
from physvision.physics.articulated.kernels.precision import scalar
from physvision.physics.articulated.kernels.structs import (
    ContactGradientsStruct,
    ContactMemory,
    ContactMemoryStruct,
    Contacts,
    ContactsStruct,
    Forces,
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
    euler_backward,
    forget,
    load_state,
    store_failure,
    store_state,
)
from .yielding_law import Law, push_apart, push_apart_backward


@wp.func(inline=True)
def accelerate_pushed(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    law: Law,
    world: int,
    step: int,
    h: scalar,
):
    """work.a[0] = q̈ with the forces of contacts at (work.q[0], work.v[0]), and the velocity after the step in row 1."""
    move_links(tree, work, world, 0)
    place_moved(tree, work, contacts, memory, world, 0)
    turn_moved(tree, work, memory, world)
    accelerate_moved(tree, work, forces, world, step, 0, h)
    push_apart(tree, work, contacts, memory, law, world, 0, h)
    solve(tree, work, world, memory.jump, 0, memory.jump, 0)
    for d in range(tree.velocities):
        work.a[world, 0, d] = work.a[world, 0, d] + memory.jump[world, 0, d]
        work.v[world, 1, d] = work.v[world, 0, d] + h * work.a[world, 0, d]


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3})
def rollout(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    contacts: ContactsStruct,
    memory: ContactMemoryStruct,
    law: Law,
    h: scalar,
    steps: int,
    start_q: wp.array2d(dtype=scalar),
    start_v: wp.array2d(dtype=scalar),
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    first_failed_step: wp.array(dtype=wp.int32),
):
    """Fill q and v, [world, step, number], from a start. A world that stops being finite is marked and left."""
    world = first + wp.tid()
    forget(memory, world)
    find_bounds(contacts, memory, world)
    bad = wp.int32(-1)
    if not begin(tree, world, start_q, start_v, q, v):
        bad = 0
    for step in range(steps):
        if bad < 0:
            load_state(tree, work, world, step, q, v)
            accelerate_pushed(tree, work, forces, contacts, memory, law, world, step, h)
            advance(tree, world, work.q, 0, 1, work.v, 1, h)
            if not store_state(tree, work, world, 1, step + 1, q, v):
                bad = step + 1
        else:
            store_failure(tree, world, step + 1, q, v)
    first_failed_step[world] = bad


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3})
def rollout_backward(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    contacts: ContactsStruct,
    memory: ContactMemoryStruct,
    gradients: GradientsStruct,
    touch: ContactGradientsStruct,
    law: Law,
    h: scalar,
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
    """Adjoint of `rollout`: its forces join the residual of `inverse` as −Σ Jᵀ F.

    A world that failed gives no gradient.
    """
    world = first + wp.tid()
    if first_failed_step[world] >= 0:
        return
    begin_backward(tree, work, world)
    find_bounds(contacts, memory, world)
    for backwards in range(steps):
        step = steps - 1 - backwards
        load_state(tree, work, world, step, q, v)
        accelerate_pushed(tree, work, forces, contacts, memory, law, world, step, h)
        euler_backward(tree, work, world, step, steps, truncate, h, q, trajectory_q_bar, trajectory_v_bar)
        solve(tree, work, world, work.a_bar, 0, work.multiplier, 0)
        accelerate_links(tree, work, world, 0)
        push_apart_backward(tree, work, contacts, memory, gradients, touch, law, world, 0)
        residual_backward(tree, work, forces, gradients, world, step, 0, 0, h)
    finish_shape_gradient(contacts, touch, world)
    end_backward(tree, work, gradients, world, start_q, q, trajectory_q_bar, trajectory_v_bar, q_bar, v_bar)
