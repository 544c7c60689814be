"""Rollouts with contact by events, and their adjoint.

An event ends a flight at the time t at which a gap g closes. For the adjoints (q̄, v̄) of the state at the end of the
flight, let T(q̄, v̄) be the derivative of ⟨q̄, q(t)⟩ + ⟨v̄, v(t)⟩ with respect to t at fixed start. From δt = −δg / ġ it
follows that the gradient of the gap is added to q̄ with the weight −T(q̄, v̄) / T(∇g, 0), after which t counts as
constant: the saltation matrix, transposed.
"""

import warp as wp

from ..collision.broad_phase import next_candidate
from ..collision.narrow_phase import candidate_separation, update_poses
from ..contact.event_adjoint import event_backward
from ..contact.events import begin_event, end_event, take_step
from ..precision import FUSED, scalar
from ..structs import Contact, ContactGradients, Forces, Gradients, Model, Tree, Workspace
from .template import rollout_kernels
from .trajectory import load_state, load_state_adjoint


@wp.func(inline=True)
def check_start(
    tree: Tree,
    work: Workspace,
    model: Model,
    contact: Contact,
    world: int,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
):
    """Return True if no initial penetration exceeds the limit, of shapes or of joints beyond their limits."""
    valid = bool(True)
    load_state(tree, work, world, 0, q, v)
    update_poses(tree, model, contact, world, work.q, 0)
    pair = next_candidate(model, contact, world, 0, -model.max_penetration)
    while pair < model.candidates:
        if candidate_separation(model, contact, world, pair) < -model.max_penetration:
            valid = bool(False)
        pair = next_candidate(model, contact, world, pair + 1, -model.max_penetration)
    return valid


@wp.func(inline=True)
def step_backward(
    h: scalar,
    tree: Tree,
    work: Workspace,
    forces: Forces,
    model: Model,
    contact: Contact,
    gradients: Gradients,
    contact_gradients: ContactGradients,
    world: int,
    step: int,
    steps: int,
    truncate: int,
    q: wp.array3d(dtype=scalar),
    trajectory_q_bar: wp.array3d(dtype=scalar),
    trajectory_v_bar: wp.array3d(dtype=scalar),
):
    """Run the events of a step forward, then their adjoints backward; the last event is computed once for both."""
    contact.events.remaining_time[world, 0] = h
    remaining_bar = scalar(0.0)
    is_backward = wp.int32(0)
    row = wp.int32(0)
    while row >= 0:
        begin_event(tree, work, forces, model, contact, world, step, row)
        if is_backward == 0:
            end_event(tree, work, model, contact, world, row)
            if contact.events.remaining_time[world, row + 1] > scalar(0.0) and row + 1 < model.max_events:
                row += 1
            else:
                is_backward = 1
                load_state_adjoint(
                    tree, work, world, row + 1, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar
                )
        if is_backward != 0:
            remaining_bar = event_backward(
                tree, work, forces, model, contact, gradients, contact_gradients, world, step, row, remaining_bar
            )
            row -= 1


# Loops of the adjoint are not unrolled: they would take a fifth more time to compile, and run no faster.
contact_rollout, contact_rollout_backward = rollout_kernels(
    scalar, take_step, step_backward, check_start, {"max_unroll": 3, **FUSED}, {"max_unroll": 1, **FUSED}
)
