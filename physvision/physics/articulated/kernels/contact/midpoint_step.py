"""Midpoint acceleration for trees without contact.

A flight of time h from (q, v) with the acceleration of its start is of first order if the inertia depends on the pose,
and a swinging tree gains energy. Let f(q, v) be the forward dynamics, with the joint forces always those of the start
(damping and servos: of the end). With

    q̄ = q ⊕ (h/2) v,    a₁ = f(q̄, v),    v̄ = v + (h/2) a₁,    a = f(q̄, v̄)

a is that of the midpoint up to O(h²), since a₁ differs from f(q, v) by O(h): the step is of second order. Both
evaluations are at q̄ and share one factorization, also in the adjoint. It is the midpoint rule if f does not depend on
q, and exact for constant acceleration. Trees in contact keep the acceleration of the start, whose forces hold contacts
where they are then.

Adjoint: from that of a the implicit function theorem gives those of the joint forces at (q, v) and q̄_bar, v̄_bar. Then
ā₁ = (h/2) v̄_bar, once more the theorem, at (q̄, v), and last q̄ = q ⊕ (h/2) v. With respect to h: ½ v̄_bar · a₁ and ½
q̄_bar · v, besides the terms of damping and servos.
"""

import warp as wp

from ..dynamics.joints import integrate_positions, integrate_positions_backward
from ..precision import scalar
from ..structs import Contact, Tree, Workspace


@wp.func
def midpoint_time(tree: Tree, contact: Contact, world: int, i: int, h: scalar):
    """Return half the time of the flight for links of trees without contact, zero for others."""
    return scalar(0.5) * h * scalar(contact.events.is_free_tree[world, tree.root[i]])


@wp.func
def find_free_trees(tree: Tree, contact: Contact, world: int, block_count: int):
    """Mark the roots of trees with pose-dependent inertia on which no block acts; returns their number."""
    for k in range(tree.varying_trees):
        contact.events.is_free_tree[world, tree.varying_tree_root[k]] = 1
    count = wp.int32(tree.varying_trees)
    c = wp.int32(0)
    while c < block_count and count > 0:
        k = contact.blocks.path_length[world, c] - 1  # roots come last
        while k >= 0 and count > 0:
            i = contact.blocks.path[world, c, k]
            if contact.events.is_free_tree[world, i] != 0:
                contact.events.is_free_tree[world, i] = 0
                count -= 1
            k -= 1
        c += 1
    return count


@wp.func
def go_to_midpoint(tree: Tree, work: Workspace, contact: Contact, world: int, row: int, midpoint: int, h: scalar):
    """Write q[midpoint] = q̄ and v[midpoint] = v; for other trees the state of `row` itself."""
    for i in range(tree.links):
        interval = midpoint_time(tree, contact, world, i, h)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            work.v[world, midpoint, d] = work.v[world, row, d]
            work.step_velocity[world, midpoint, d] = interval * work.v[world, row, d]
    integrate_positions(tree, world, work.q, row, midpoint, work.step_velocity, midpoint, scalar(1.0))


@wp.func
def update_midpoint_velocity(
    tree: Tree, work: Workspace, contact: Contact, world: int, row: int, midpoint: int, h: scalar
):
    """Keep a₁ in a[midpoint], and set v[midpoint] to v̄."""
    for i in range(tree.links):
        interval = midpoint_time(tree, contact, world, i, h)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            work.a[world, midpoint, d] = work.a[world, row, d]
            work.v[world, midpoint, d] = work.v[world, row, d] + interval * work.a[world, row, d]


@wp.func
def clear_midpoint_adjoint(tree: Tree, work: Workspace, world: int, midpoint: int):
    """Clear the adjoints of the midpoint."""
    for d in range(tree.velocities):
        work.q_bar[world, midpoint, d] = scalar(0.0)
        work.v_bar[world, midpoint, d] = scalar(0.0)


@wp.func
def update_midpoint_velocity_backward(
    tree: Tree, work: Workspace, contact: Contact, world: int, row: int, midpoint: int, h: scalar
):
    """Propagate v̄_bar to v_bar[row] and −ā₁ in a_bar[row], and restore a₁ and v; returns the derivative in h."""
    time_bar = scalar(0.0)
    for i in range(tree.links):
        interval = midpoint_time(tree, contact, world, i, h)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            bar = work.v_bar[world, midpoint, d]
            time_bar += interval * bar * work.a[world, midpoint, d]
            work.a_bar[world, row, d] = -interval * bar
            work.v_bar[world, row, d] = work.v_bar[world, row, d] + bar
            work.v_bar[world, midpoint, d] = scalar(0.0)
            work.v[world, midpoint, d] = work.v[world, row, d]
            work.a[world, row, d] = work.a[world, midpoint, d]
    return time_bar / h


@wp.func
def go_to_midpoint_backward(
    tree: Tree, work: Workspace, contact: Contact, world: int, row: int, midpoint: int, h: scalar
):
    """Propagate the adjoints of q̄ and of v there to q_bar[row] and v_bar[row]; returns the derivative in h."""
    time_bar = scalar(0.0)
    for d in range(tree.velocities):
        time_bar += work.q_bar[world, midpoint, d] * work.step_velocity[world, midpoint, d]
        work.step_velocity_bar[world, midpoint, d] = scalar(0.0)
    integrate_positions_backward(
        tree,
        world,
        work.q_bar,
        midpoint,
        work.step_velocity,
        midpoint,
        work.step_velocity_bar,
        midpoint,
        work.q_bar,
        row,
        scalar(1.0),
    )
    for i in range(tree.links):
        interval = midpoint_time(tree, contact, world, i, h)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            bar = work.v_bar[world, midpoint, d] + interval * work.step_velocity_bar[world, midpoint, d]
            work.v_bar[world, row, d] = work.v_bar[world, row, d] + bar
    return time_bar / h
