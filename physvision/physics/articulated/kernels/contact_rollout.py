"""A rollout with contacts in one launch, and its adjoint: time runs in reverse, each step is taken again.

An event ends a flight at the time t where a gap g closes. With the adjoints of all that the flight's end gives, let
T(q̄, v̄) be the derivative of ⟨q̄, q(t)⟩ + ⟨v̄, v(t)⟩ in t at fixed start. From δt = −δg / ġ follows that the gap's
gradient takes part in q̄ with the weight −T(q̄, v̄) / T(∇g, 0), and t is a constant from there on: the saltation.
"""

import warp as wp

from . import scalar
from .contact_backward import flight_backward, impact_backward
from .events import FLIGHT, begin_operation, end_operation, run_step
from .joints import add_tangent, write_lifted
from .kinematics import finish_rotation_gradient
from .rollout import load_state
from .touching import gap_of, place_in_world
from .touching_backward import finish_shape_gradient
from .tree import ContactGradients, ContactMemory, Contacts, Forces, Gradients, Tree, Workspace


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3})
def contact_rollout(
    first: int,
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    h: scalar,
    steps: int,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    first_bad_step: wp.array(dtype=wp.int32),
):
    """Fill q and v, [world, step, number], from their step 0.

    A world that starts inside what it touches or beyond a joint's limit, or whose step fails, is marked and left. The
    memory says what else there is to tell of the rollout.
    """
    world = first + wp.tid()
    bad = wp.int32(-1)
    memory.residual[world] = scalar(0.0)
    memory.grazing[world] = -1
    memory.crowded[world] = 0
    memory.softened[world] = 0
    memory.overlap[world] = scalar(0.0)
    for k in range(tree.positions):
        if not wp.isfinite(q[world, 0, k]):
            bad = 0
    for d in range(tree.velocities):
        if not wp.isfinite(v[world, 0, d]):
            bad = 0
    if bad < 0:
        load_state(tree, work, world, 0, q, v)
        place_in_world(tree, contacts, memory, world, work.q, 0)
        for pair in range(contacts.candidates):
            if gap_of(contacts, memory, world, pair) < -contacts.overlap:
                bad = 0
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
            else:
                for k in range(tree.positions):
                    q[world, step + 1, k] = work.q[world, last, k]
                    if not wp.isfinite(work.q[world, last, k]):
                        bad = step + 1
                for d in range(tree.velocities):
                    v[world, step + 1, d] = work.v[world, last, d]
                    if not wp.isfinite(work.v[world, last, d]):
                        bad = step + 1
        if last < 0:
            for k in range(tree.positions):
                q[world, step + 1, k] = scalar(wp.nan)
            for d in range(tree.velocities):
                v[world, step + 1, d] = scalar(wp.nan)
    first_bad_step[world] = bad


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 3})
def contact_rollout_backward(
    first: int,
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    h: scalar,
    steps: int,
    truncate: int,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    first_bad_step: wp.array(dtype=wp.int32),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
    q_bar: wp.array2d(dtype=scalar),
    v_bar: wp.array2d(dtype=scalar),
):
    """Adjoint of `contact_rollout`. A world that failed gives no gradient and cannot spoil what worlds share."""
    world = first + wp.tid()
    if first_bad_step[world] >= 0:
        return
    for d in range(tree.velocities):
        work.q_bar[world, 0, d] = scalar(0.0)
        work.v_bar[world, 0, d] = scalar(0.0)
    for backwards in range(steps):
        step = steps - 1 - backwards
        load_state(tree, work, world, step, q, v)
        cut = truncate > 0 and backwards > 0 and (step + 1) % truncate == 0
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
                    for d in range(tree.velocities):
                        carried_q = work.q_bar[world, 0, d]
                        carried_v = work.v_bar[world, 0, d]
                        if cut:
                            carried_q = scalar(0.0)
                            carried_v = scalar(0.0)
                        work.q_bar[world, row + 1, d] = carried_q
                        work.v_bar[world, row + 1, d] = carried_v + trajectory_v_bar[world, step + 1, d]
                    add_tangent(tree, world, q, trajectory_q_bar, step + 1, work.q_bar, row + 1)
            if going_back != 0:
                if memory.kind[world, row] == FLIGHT:
                    left_bar = flight_backward(
                        tree, work, forces, contacts, memory, gradients, touch, world, step, row, left_bar
                    )
                else:
                    impact_backward(tree, work, forces, contacts, memory, gradients, touch, world, step, row)
                row -= 1
    finish_rotation_gradient(tree, gradients, world)
    finish_shape_gradient(contacts, touch, world)
    add_tangent(tree, world, q, trajectory_q_bar, 0, work.q_bar, 0)
    write_lifted(tree, world, q, 0, work.q_bar, 0, q_bar)
    for d in range(tree.velocities):
        v_bar[world, d] = work.v_bar[world, 0, d] + trajectory_v_bar[world, 0, d]
