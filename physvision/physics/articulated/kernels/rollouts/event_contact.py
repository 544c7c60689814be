"""Rollouts with contact by events, and their adjoint.

An event ends a flight at the time t at which a gap g closes. For the adjoints (q̄, v̄) of the state at the end of the
flight, let T(q̄, v̄) be the derivative of ⟨q̄, q(t)⟩ + ⟨v̄, v(t)⟩ with respect to t at fixed start. From δt = −δg / ġ it
follows that the gradient of the gap is added to q̄ with the weight −T(q̄, v̄) / T(∇g, 0), after which t counts as
constant: the saltation matrix, transposed.
"""

import warp as wp

from ..collision.broad_phase import first_candidate, next_candidate
from ..collision.narrow_phase import candidate_separation, update_poses
from ..contact.event_adjoint import event_backward
from ..contact.events import begin_event, end_event, run_events
from ..contact.midpoint_step import CONTACT_MIDPOINT
from ..precision import FUSED, Array3d, scalar
from ..structs import Contact, System, Tree, Workspace
from .centering import center_state, shift_state_backward, uncenter_state
from .template import rollout_kernels
from .trajectory import load_state, load_state_adjoint


@wp.func(inline=True)
def check_start(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, q: Array3d, v: Array3d):
    """Return True if no initial penetration exceeds the limit, of shapes or of joints beyond their limits.

    Pairs that overlap in the model's reference pose may, and limits that it violates.
    """
    valid = bool(True)
    load_state(tree, work, world, 0, q, v)
    center_state(tree, work, world, 0)
    update_poses(tree, contact, s, world, work.q, 0)
    pair = first_candidate(contact, s, world, -s.model.max_penetration)
    while pair < s.model.candidates:
        is_held = s.model.pairs.is_held[pair] != 0
        if not is_held and candidate_separation(contact, s, world, pair) < -s.model.max_penetration:
            valid = bool(False)
        pair = next_candidate(contact, s, world, pair + 1, -s.model.max_penetration)
    return valid


@wp.func(inline=True)
def take_step(h: scalar, tree: Tree, work: Workspace, contact: Contact, s: System, world: int, step: int, is_last: int):
    """Advance the state in row 0 by a step; returns the row of the state after it, or -1 if the step fails."""
    center_state(tree, work, world, 0)
    row = run_events(h, tree, work, contact, s, world, step, is_last)
    if row >= 0:
        uncenter_state(tree, work, world, row)
    return row


@wp.func(inline=True)
def step_backward(
    h: scalar,
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    step: int,
    steps: int,
    truncate: int,
    q: Array3d,
    trajectory_q_bar: Array3d,
    trajectory_v_bar: Array3d,
):
    """Run the events of a step forward, then their adjoints backward; the last event is computed once for both.

    A flight with contacts at its midpoint is visited twice, once for each of its evaluations, the second first.
    """
    center_state(tree, work, world, 0)
    contact.events.remaining_time[world, 0] = h
    contact.detection.near_slack[world] = scalar(-1.0)
    remaining_bar = scalar(0.0)
    is_backward = wp.int32(0)
    visit = wp.int32(0)
    row = wp.int32(0)
    while row >= 0:
        begin_event(tree, work, contact, s, world, step, row, 2 - visit)
        if is_backward == 0:
            end_event(tree, work, contact, s, world, row)
            if contact.events.remaining_time[world, row + 1] > scalar(0.0) and row + 1 < s.model.max_events:
                row += 1
            else:
                is_backward = 1
                load_state_adjoint(
                    tree, work, world, row + 1, step + 1, steps, truncate, q, trajectory_q_bar, trajectory_v_bar
                )
                shift_state_backward(tree, work, s.gradients, world, row + 1, scalar(-1.0))
        if is_backward != 0:
            remaining_bar = event_backward(tree, work, contact, s, world, step, row, visit, remaining_bar)
            visit = wp.where(visit == 0 and contact.events.uses_midpoint[world, row] == CONTACT_MIDPOINT, 1, 0)
            row -= 1 - visit
            contact.detection.near_slack[world] = scalar(-1.0)  # the list holds forward in time
    shift_state_backward(tree, work, s.gradients, world, 0, scalar(1.0))


# Loops of the adjoint are not unrolled: they would take a fifth more time to compile, and run no faster.
contact_rollout, contact_rollout_backward = rollout_kernels(
    scalar, take_step, step_backward, check_start, {"max_unroll": 3, **FUSED}, {"max_unroll": 1, **FUSED}
)
