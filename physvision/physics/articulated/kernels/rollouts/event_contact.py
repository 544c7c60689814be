"""Rollouts with contact by events, and their adjoint.

An event ends a flight at the time t at which a gap g closes. For the adjoints (q̄, v̄) of the state at the end of the
flight, let T(q̄, v̄) be the derivative of ⟨q̄, q(t)⟩ + ⟨v̄, v(t)⟩ with respect to t at fixed start. From δt = −δg / ġ it
follows that the gradient of the gap is added to q̄ with the weight −T(q̄, v̄) / T(∇g, 0), after which t counts as
constant: the saltation matrix, transposed.
"""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import first_near
from physvision.physics.articulated.kernels.collision.narrow_phase import gap_of, place_in_world
from physvision.physics.articulated.kernels.contact.event_adjoint import operation_backward
from physvision.physics.articulated.kernels.contact.events import begin_operation, end_operation, run_step
from physvision.physics.articulated.kernels.precision import FUSED, scalar
from physvision.physics.articulated.kernels.structs import (
    ContactGradients,
    ContactMemory,
    Contacts,
    Forces,
    Gradients,
    Tree,
    Workspace,
)

from .template import rollout_kernels
from .trajectory import carry_backward, load_state


@wp.func(inline=True)
def check_start(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
):
    """Return True if no initial penetration exceeds the limit, of shapes or of joints beyond their limits."""
    valid = bool(True)
    load_state(tree, work, world, 0, q, v)
    place_in_world(tree, contacts, memory, world, work.q, 0)
    pair = first_near(contacts, memory, world, 0, -contacts.overlap)
    while pair < contacts.candidates:
        if gap_of(contacts, memory, world, pair) < -contacts.overlap:
            valid = bool(False)
        pair = first_near(contacts, memory, world, pair + 1, -contacts.overlap)
    return valid


@wp.func(inline=True)
def step_backward(
    h: scalar,
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    step: int,
    steps: int,
    truncate: int,
    q: wp.array3d(dtype=scalar),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
):
    """Run the events of a step forward, then their adjoints backward; the last event is computed once for both."""
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


# The loops of the adjoint are kept: unrolled they take a fifth more time to compile, and run no faster.
contact_rollout, contact_rollout_backward = rollout_kernels(
    scalar, run_step, step_backward, check_start, {"max_unroll": 3, **FUSED}, {"max_unroll": 1, **FUSED}
)
