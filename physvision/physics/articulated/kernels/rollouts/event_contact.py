"""A rollout with contacts in one launch, and its adjoint: time runs in reverse, each step is taken again.

An event ends a flight at the time t where a gap g closes. With the adjoints of all that the flight's end gives, let
T(q̄, v̄) be the derivative of ⟨q̄, q(t)⟩ + ⟨v̄, v(t)⟩ in t at fixed start. From δt = −δg / ġ follows that the gap's
gradient takes part in q̄ with the weight −T(q̄, v̄) / T(∇g, 0), and t is a constant from there on: the saltation.
"""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import find_bounds, first_near
from physvision.physics.articulated.kernels.collision.narrow_phase import gap_of, place_in_world
from physvision.physics.articulated.kernels.collision.narrow_phase_adjoint import finish_shape_gradient
from physvision.physics.articulated.kernels.contact.event_adjoint import operation_backward
from physvision.physics.articulated.kernels.contact.events import begin_operation, end_operation, run_step
from physvision.physics.articulated.kernels.precision import FUSED, scalar
from physvision.physics.articulated.kernels.structs import (
    ContactGradientsStruct,
    ContactMemoryStruct,
    ContactsStruct,
    ForcesStruct,
    GradientsStruct,
    TreeStruct,
    WorkspaceStruct,
)

from .trajectory import (
    begin,
    begin_backward,
    carry_backward,
    end_backward,
    forget,
    load_state,
    store_failure,
    store_state,
)


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3, **FUSED})
def contact_rollout(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    contacts: ContactsStruct,
    memory: ContactMemoryStruct,
    h: scalar,
    steps: int,
    start_q: wp.array2d(dtype=scalar),
    start_v: wp.array2d(dtype=scalar),
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    first_failed_step: wp.array(dtype=wp.int32),
):
    """Fill q and v, [world, step, number], from a start.

    A world that starts inside what it touches or beyond a joint's limit, or whose step fails, is marked and left. The
    memory says what else there is to tell of the rollout.
    """
    world = first + wp.tid()
    bad = wp.int32(-1)
    forget(memory, world)
    find_bounds(contacts, memory, world)
    if not begin(tree, world, start_q, start_v, q, v):
        bad = 0
    if bad < 0:
        load_state(tree, work, world, 0, q, v)
        place_in_world(tree, contacts, memory, world, work.q, 0)
        pair = first_near(contacts, memory, world, 0, -contacts.overlap)
        while pair < contacts.candidates:
            if gap_of(contacts, memory, world, pair) < -contacts.overlap:
                bad = 0
            pair = first_near(contacts, memory, world, pair + 1, -contacts.overlap)
    for step in range(steps):
        last = wp.int32(-1)
        if bad < 0:
            load_state(tree, work, world, step, q, v)
            noting = wp.int32(step == steps - 1)
            last = run_step(tree, work, forces, contacts, memory, world, step, h, noting)
            if memory.grazes[world] != 0 and memory.grazing[world] < 0:
                memory.grazing[world] = step + 1
            if last < 0:
                bad = step + 1
            elif not store_state(tree, work, world, last, step + 1, q, v):
                bad = step + 1
        if last < 0:
            store_failure(tree, world, step + 1, q, v)
    first_failed_step[world] = bad


# Its loops are kept: unrolled they take a fifth more time to compile, and none less to run.
@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 1, **FUSED})
def contact_rollout_backward(
    first: int,
    tree: TreeStruct,
    work: WorkspaceStruct,
    forces: ForcesStruct,
    contacts: ContactsStruct,
    memory: ContactMemoryStruct,
    gradients: GradientsStruct,
    touch: ContactGradientsStruct,
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
    """Adjoint of `contact_rollout`. A world that failed gives no gradient and cannot spoil what worlds share."""
    world = first + wp.tid()
    if first_failed_step[world] >= 0:
        return
    begin_backward(tree, work, world)
    find_bounds(contacts, memory, world)
    for backwards in range(steps):
        step = steps - 1 - backwards
        load_state(tree, work, world, step, q, v)
        # Forward through all operations, then back; what the last one left in memory serves both ways.
        memory.left[world, 0] = h
        left_bar = scalar(0.0)
        going_back = wp.int32(0)
        row = wp.int32(0)
        while row >= 0:
            begin_operation(tree, work, forces, contacts, memory, world, step, row)
            if going_back == 0:
                end_operation(tree, work, contacts, memory, world, row)
                if memory.left[world, row + 1] > scalar(0.0) and row + 1 < contacts.operations:
                    row += 1
                else:
                    going_back = 1
                    carry_backward(
                        tree, work, world, row + 1, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar
                    )
            if going_back != 0:
                left_bar = operation_backward(
                    tree, work, forces, contacts, memory, gradients, touch, world, step, row, left_bar
                )
                row -= 1
    finish_shape_gradient(contacts, touch, world)
    end_backward(tree, work, gradients, world, start_q, q, trajectory_q_bar, trajectory_v_bar, q_bar, v_bar)
