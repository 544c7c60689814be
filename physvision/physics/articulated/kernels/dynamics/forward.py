"""Forward dynamics by the articulated-body algorithm, and the solve with its factorisation."""

import warp as wp

from physvision.physics.articulated.kernels.precision import mat33, scalar, vec3
from physvision.physics.articulated.kernels.spatial.vectors import crossed, skew, transposed, zero3
from physvision.physics.articulated.kernels.structs import REVOLUTE, Forces, Tree, Workspace

from .fluid_drag import add_drag
from .joint_forces import apply_joint_loads, turn_wrenches
from .kinematics import (
    carried_acceleration_angular,
    carried_acceleration_linear,
    move_links,
    of_link,
)


@wp.func
def accelerate(tree: Tree, work: Workspace, forces: Forces, world: int, step: int, row: int, h: scalar):
    """work.a[row] = q̈ at (work.q[row], work.v[row]).

    h > 0 takes drag B at the end of a step of that length: (M + h B) q̈ = τ − B q̇ − …, so that strong damping and
    dry friction are stable at any step.
    """
    move_links(tree, work, world, row)
    accelerate_moved(tree, work, forces, world, step, row, h)


@wp.func
def accelerate_moved(tree: Tree, work: Workspace, forces: Forces, world: int, step: int, row: int, h: scalar):
    """The same after `move_links`."""
    apply_joint_loads(tree, work, forces, world, step, row, h)
    load_inertias(tree, work, world)
    if tree.dragged != 0:
        add_drag(tree, work, world)
    if forces.wrenches != 0:
        turn_wrenches(tree, work, forces, world, step)
        for i in range(tree.links):
            work.moment[world, i] = work.moment[world, i] - work.wrench_moment[world, i]
            work.force[world, i] = work.force[world, i] - work.wrench_force[world, i]
    for i in range(tree.links - 1, -1, -1):
        if tree.joint[i] == REVOLUTE:
            eliminate_axis(tree, work, world, i, h)
        else:
            eliminate_columns(tree, work, world, i, h)
    for i in range(tree.links):
        release(tree, work, world, row, i)


@wp.func
def load_inertias(tree: Tree, work: Workspace, world: int):
    """Each link's own inertia, and the force v ×* I v that its velocity asks for."""
    z = scalar(0.0)
    for i in range(tree.links):
        mass = tree.mass[world, i]
        first = work.first_moment[world, i]
        second = work.second_moment[world, i]
        angular = work.angular[world, i]
        linear = work.linear[world, i]
        work.inertia_angular[world, i] = second
        work.inertia_coupling[world, i] = skew(first)
        work.inertia_linear[world, i] = mat33(mass, z, z, z, mass, z, z, z, mass)
        momentum_angular = second * angular + wp.cross(first, linear)
        momentum_linear = mass * linear - wp.cross(first, angular)
        work.moment[world, i] = wp.cross(angular, momentum_angular) + wp.cross(linear, momentum_linear)
        work.force[world, i] = wp.cross(angular, momentum_linear)


@wp.func
def eliminate_axis(tree: Tree, work: Workspace, world: int, i: int, h: scalar):
    """Take the hinge of link i out of its articulated inertia, and hand the parent what is left."""
    d = tree.first_velocity[i]
    a = work.inertia_angular[world, i]
    c = work.inertia_coupling[world, i]
    m = work.inertia_linear[world, i]
    moment = work.moment[world, i]
    force = work.force[world, i]
    axis = work.axis_angular[world, d]
    column_angular = a * axis
    column_linear = transposed(c, axis)
    diagonal = wp.dot(axis, column_angular)
    along = wp.dot(axis, moment)
    diagonal = diagonal + tree.armature[world, d] + h * work.drag[world, d]
    pivot = scalar(1.0) / diagonal
    rest = work.rest[world, d] - along
    work.column_angular[world, d] = column_angular
    work.column_linear[world, d] = column_linear
    work.pivot[world, d] = pivot
    work.rest[world, d] = rest
    if tree.parent[i] >= 0:
        scaled_angular = pivot * column_angular
        scaled_linear = pivot * column_linear
        hand_to_parent(
            tree, work, world, i,
            a - wp.outer(column_angular, scaled_angular),
            c - wp.outer(column_angular, scaled_linear),
            m - wp.outer(column_linear, scaled_linear),
            moment + rest * scaled_angular,
            force + rest * scaled_linear,
        )  # fmt: skip


@wp.func
def eliminate_columns(tree: Tree, work: Workspace, world: int, i: int, h: scalar):
    """The same for any degrees of freedom, one after the other."""
    start = tree.first_velocity[i]
    end = tree.first_velocity[i + 1]
    a = work.inertia_angular[world, i]
    c = work.inertia_coupling[world, i]
    m = work.inertia_linear[world, i]
    moment = work.moment[world, i]
    force = work.force[world, i]
    for d in range(end - 1, start - 1, -1):
        axis_angular = work.axis_angular[world, d]
        axis_linear = work.axis_linear[world, d]
        column_angular = a * axis_angular + c * axis_linear
        column_linear = transposed(c, axis_angular) + m * axis_linear
        diagonal = (
            wp.dot(axis_angular, column_angular)
            + wp.dot(axis_linear, column_linear)
            + tree.armature[world, d]
            + h * work.drag[world, d]
        )
        pivot = scalar(1.0) / diagonal
        rest = work.rest[world, d] - wp.dot(axis_angular, moment) - wp.dot(axis_linear, force)
        work.column_angular[world, d] = column_angular
        work.column_linear[world, d] = column_linear
        work.pivot[world, d] = pivot
        work.rest[world, d] = rest
        scaled_angular = pivot * column_angular
        scaled_linear = pivot * column_linear
        a = a - wp.outer(column_angular, scaled_angular)
        c = c - wp.outer(column_angular, scaled_linear)
        m = m - wp.outer(column_linear, scaled_linear)
        moment = moment + rest * scaled_angular
        force = force + rest * scaled_linear
    if tree.parent[i] >= 0:
        hand_to_parent(tree, work, world, i, a, c, m, moment, force)


@wp.func
def hand_to_parent(
    tree: Tree, work: Workspace, world: int, i: int, a: mat33, c: mat33, m: mat33, own_moment: vec3, own_force: vec3
):
    """Add what is left of link i's articulated inertia and bias force to its parent's."""
    parent = tree.parent[i]
    bias_angular = work.bias_angular[world, i]
    bias_linear = work.bias_linear[world, i]
    offset = work.offset[world, i]
    moment = own_moment + a * bias_angular + c * bias_linear
    force = own_force + transposed(c, bias_angular) + m * bias_linear
    moved_c = c + crossed(offset, m)
    work.inertia_linear[world, parent] = work.inertia_linear[world, parent] + m
    work.inertia_coupling[world, parent] = work.inertia_coupling[world, parent] + moved_c
    work.inertia_angular[world, parent] = work.inertia_angular[world, parent] + (
        a + wp.transpose(crossed(offset, wp.transpose(c))) + crossed(offset, wp.transpose(moved_c))
    )
    work.force[world, parent] = work.force[world, parent] + force
    work.moment[world, parent] = work.moment[world, parent] + moment + wp.cross(offset, force)


@wp.func
def release(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Acceleration across the joint of link i and of the link, its parent's being known."""
    angular = carried_acceleration_angular(tree, work, world, i)
    linear = carried_acceleration_linear(tree, work, world, i)
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        found = work.pivot[world, d] * (
            work.rest[world, d]
            - wp.dot(work.column_angular[world, d], angular)
            - wp.dot(work.column_linear[world, d], linear)
        )
        work.a[world, row, d] = found
        angular = angular + found * work.axis_angular[world, d]
        linear = linear + found * work.axis_linear[world, d]
    work.angular_acceleration[world, i] = angular
    work.linear_acceleration[world, i] = linear


@wp.func
def solve(
    tree: Tree,
    work: Workspace,
    world: int,
    right: wp.array3d(dtype=scalar),
    right_row: int,
    out: wp.array3d(dtype=scalar),
    out_row: int,
):
    """(M + armature + h B) out = right with the factorisation of the last `accelerate`.

    Leaves the motion that `out` gives each link in `virtual_…`.
    """
    solve_inward(tree, work, world, right, right_row)
    solve_outward(tree, work, world, out, out_row)


@wp.func
def solve_inward(tree: Tree, work: Workspace, world: int, right: wp.array3d(dtype=scalar), right_row: int):
    """From the leaves to the root: `rest`, what is left of the right-hand side where each velocity is eliminated."""
    for i in range(tree.links):
        work.moment[world, i] = zero3()
        work.force[world, i] = zero3()
    for i in range(tree.links - 1, -1, -1):
        start = tree.first_velocity[i]
        end = tree.first_velocity[i + 1]
        moment = work.moment[world, i]
        force = work.force[world, i]
        for d in range(end - 1, start - 1, -1):
            rest = (
                right[world, right_row, d]
                - wp.dot(work.axis_angular[world, d], moment)
                - wp.dot(work.axis_linear[world, d], force)
            )
            work.rest[world, d] = rest
            scaled = rest * work.pivot[world, d]
            moment = moment + scaled * work.column_angular[world, d]
            force = force + scaled * work.column_linear[world, d]
        parent = tree.parent[i]
        if parent >= 0:
            work.force[world, parent] = work.force[world, parent] + force
            arm = wp.cross(work.offset[world, i], force)
            work.moment[world, parent] = work.moment[world, parent] + moment + arm


@wp.func
def solve_outward(tree: Tree, work: Workspace, world: int, out: wp.array3d(dtype=scalar), out_row: int):
    """From the root to the leaves: the solution from `rest`."""
    for i in range(tree.links):
        parent = tree.parent[i]
        angular = of_link(work.virtual_angular, world, parent)
        linear = of_link(work.virtual_linear, world, parent) + wp.cross(angular, work.offset[world, i])
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            found = work.pivot[world, d] * (
                work.rest[world, d]
                - wp.dot(work.column_angular[world, d], angular)
                - wp.dot(work.column_linear[world, d], linear)
            )
            out[world, out_row, d] = found
            angular = angular + found * work.axis_angular[world, d]
            linear = linear + found * work.axis_linear[world, d]
        work.virtual_angular[world, i] = angular
        work.virtual_linear[world, i] = linear
