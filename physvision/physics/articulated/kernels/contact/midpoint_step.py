"""Flights with the acceleration of their midpoint, in contact too: steps of second order.

A flight of time h from (q, v) with the acceleration of its start is of first order if inertia, forces or contacts
depend on the pose: a swinging tree gains energy, and what rolls or turns on an edge lags behind. Let f(q, v) be the
forward dynamics, with the joint forces always those of the start (damping and servos: of the end). With

    q̄ = q ⊕ (h/2) v,    a₁ = f(q̄, v),    v̄ = v + (h/2) a₁,    a = f(q̄, v̄)

a is that of the midpoint up to O(h²), since a₁ differs from f(q, v) by O(h): the step is of second order. Both
evaluations are at q̄ and share one factorization. It is the midpoint rule if f does not depend on q, and exact for
constant acceleration.

In contact both evaluations contain the contact problem, of the contacts J = J(q̄) at the midpoint, with the velocity at
the end of the flight. With J₀ = J(q) that is, up to O(h²),

    J(q′) v′ = J v′ + (h/2) J̇ v′ + … = J v′ + (J v − J₀ v) + …,

so u = J (v + h a) + drift with the drift J v − J₀ v. A velocity J₀ v that violates the contact at the start is taken
away, as with J₀ alone; with J (v + v′) / 2 it would be reflected, as one that separates is (`separation_velocity`).
Along the normal the drift is n · U − n₀ · U₀ with the relative velocities U = frameᵀ J v, and along the tangents t · (U
− U₀): tangents are not compared with those at another pose, where the rule that chooses them may choose others. The
separation stays that of the start.

Trees in contact that hardly move keep the acceleration of the start: its error is in proportion to their displacement
in the step. So do trees with loop joints, and contacts whose shapes touch with other features at the midpoint (they
have another point or normal there) have the Jacobian of the start.

Adjoint, of each of the two evaluations, the second first: from that of a the implicit function theorem gives those of
the joint forces at (q, v) and q̄_bar, v̄_bar. Then ā₁ = (h/2) v̄_bar, once more the theorem, at (q̄, v), and last q̄ = q
⊕ (h/2) v. With respect to h: ½ v̄_bar · a₁ and ½ q̄_bar · v, besides the terms of damping and servos. The drift passes
ū on to the power of ū in v at q̄, and of −(ū₀ n₀ + F), F = t ū_t, in v at q. A rotation of the frame takes F × U₀ less
at q̄ than the power says; at q, where only the normal rotates, F × U₀ more.
"""

import warp as wp

from ..collision.narrow_phase import (
    contact_point,
    first_shape_origin,
    pair_primitive,
    update_poses_from_links,
    write_contact_jacobian,
)
from ..dynamics.joints import integrate_positions, integrate_positions_backward
from ..precision import scalar, vec3
from ..spatial.vectors import transpose_product
from ..structs import CONTACT, EQUALITY, Contact, System, Tree, Workspace
from .delassus import contact_velocity
from .settings import SOLVER

# Values of `events.uses_midpoint`.
NO_MIDPOINT = wp.constant(0)
FREE_MIDPOINT = wp.constant(1)  # of trees on which no block acts
CONTACT_MIDPOINT = wp.constant(2)  # of trees in contact too

# Marks of trees while they are chosen, besides 0 and 1.
TOUCHED = wp.constant(2)
LOOPED = wp.constant(3)

MIDPOINT_SPEED = wp.constant(scalar(SOLVER.midpoint_speed))
MIDPOINT_ACCELERATION = wp.constant(scalar(SOLVER.midpoint_acceleration))
MAX_POINT_SHIFT = wp.constant(scalar(SOLVER.max_point_shift))
MIN_NORMAL_COSINE = wp.constant(scalar(SOLVER.min_normal_cosine))


@wp.func
def midpoint_time(tree: Tree, contact: Contact, world: int, i: int, h: scalar):
    """Return half the time of the flight for links of trees with a midpoint, zero for others."""
    return scalar(0.5) * h * scalar(contact.events.is_midpoint_tree[world, tree.root[i]])


@wp.func
def max_speed(work: Workspace, world: int, row: int, start: int, end: int):
    """Return the largest absolute value of the velocities from `start` to `end`."""
    speed = scalar(0.0)
    for d in range(start, end):
        value = wp.abs(work.v[world, row, d])
        speed = wp.where(value > speed, value, speed)  # faster than `max`, which cares for NaN
    return speed


@wp.func
def find_midpoint_trees(tree: Tree, work: Workspace, contact: Contact, world: int, row: int, count: int, h: scalar):
    """Mark the roots of trees whose flight has a midpoint; returns which kinds there are.

    Marks of trees that do not vary are never set.
    """
    for k in range(tree.varying_trees):
        contact.events.is_midpoint_tree[world, tree.varying_tree_root[k]] = 1
    for c in range(count):
        for k in range(contact.blocks.path_length[world, c]):
            i = contact.blocks.path[world, c, k]
            if tree.parent[i] < 0 and contact.events.is_midpoint_tree[world, i] != 0:
                if contact.blocks.law[world, c] == EQUALITY:
                    contact.events.is_midpoint_tree[world, i] = LOOPED
                elif contact.events.is_midpoint_tree[world, i] == 1:
                    contact.events.is_midpoint_tree[world, i] = TOUCHED
    kinds = wp.int32(NO_MIDPOINT)
    for k in range(tree.varying_trees):
        if contact.events.is_midpoint_tree[world, tree.varying_tree_root[k]] == 1:
            kinds = wp.int32(FREE_MIDPOINT)
    min_speed = wp.min(MIDPOINT_SPEED, MIDPOINT_ACCELERATION * h)
    if max_speed(work, world, row, 0, tree.velocities) > min_speed:
        for i in range(tree.links):
            root = tree.root[i]
            if contact.events.is_midpoint_tree[world, root] == TOUCHED:
                if max_speed(work, world, row, tree.first_velocity[i], tree.first_velocity[i + 1]) > min_speed:
                    contact.events.is_midpoint_tree[world, root] = 1
                    kinds = wp.int32(CONTACT_MIDPOINT)
    for k in range(tree.varying_trees):
        root = tree.varying_tree_root[k]
        if contact.events.is_midpoint_tree[world, root] != 1:
            contact.events.is_midpoint_tree[world, root] = 0
    return kinds


@wp.func
def is_at_midpoint(tree: Tree, contact: Contact, world: int, c: int):
    """Return True if a tree that carries block c has a midpoint."""
    result = bool(False)
    for k in range(contact.blocks.path_length[world, c]):
        if contact.events.is_midpoint_tree[world, tree.root[contact.blocks.path[world, c, k]]] != 0:
            result = bool(True)
    return result


@wp.func
def point_limit(contact: Contact, s: System, world: int, pair: int):
    """Return the largest shift of the contact point of a pair of the same features."""
    limit = scalar(1.0e30)
    for side in range(2):
        shape = s.model.pairs.first[pair]
        if side == 1:
            shape = s.model.pairs.second[pair]
        radius = contact.detection.bounding_radius[world, shape]
        if radius > scalar(0.0):
            limit = wp.min(limit, MAX_POINT_SHIFT * radius)
    return limit


@wp.func(inline=True)
def move_blocks_to_midpoint(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, midpoint: int, count: int
):
    """Write the Jacobians of contacts at the midpoint, and add the drift to their initial velocity there."""
    update_poses_from_links(tree, work, contact, s, world, midpoint)
    for c in range(count):
        contact.blocks.is_midpoint[world, c] = 0
        pair = contact.blocks.pair[world, c]
        if contact.blocks.law[world, c] == CONTACT and pair < s.model.pairs.count:
            if is_at_midpoint(tree, contact, world, c):
                primitive = pair_primitive(contact, s, world, pair)
                frame = contact.blocks.frame[world, c]
                arm = contact_point(primitive, s.model.pairs.margin[pair]) - first_shape_origin(contact, s, world, pair)
                shift = wp.length(arm - contact.blocks.start_arm[world, c])
                cosine = wp.dot(primitive.normal, vec3(frame[0, 0], frame[0, 1], frame[0, 2]))
                if shift < point_limit(contact, s, world, pair) and cosine > MIN_NORMAL_COSINE:
                    velocity = contact.blocks.initial_velocity[world, c]
                    contact.blocks.is_midpoint[world, c] = 1
                    contact.blocks.start_frame[world, c] = frame
                    write_contact_jacobian(tree, work, contact, s, world, c, pair, primitive)
                    rotated_velocity = contact.blocks.frame[world, c] * transpose_product(frame, velocity)
                    midpoint_velocity = contact_velocity(tree, contact, world, c, work.v, row)
                    contact.blocks.initial_velocity[world, c] = scalar(2.0) * midpoint_velocity - vec3(
                        velocity[0], rotated_velocity[1], rotated_velocity[2]
                    )


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
