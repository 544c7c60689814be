"""Forward dynamics by the articulated-body algorithm, and solves with its factorization."""

import warp as wp

from ..precision import Array3d, mat33, scalar, vec3
from ..spatial.vectors import skew, skew_product, transpose_product, zero3
from ..structs import REVOLUTE, Forces, Tree, Workspace
from .fluid_drag import add_fluid_drag
from .joint_forces import apply_joint_forces, gather_wrenches
from .kinematics import (
    forward_kinematics,
    link_or_world,
    transported_angular_acceleration,
    transported_linear_acceleration,
)


@wp.func
def forward_dynamics(tree: Tree, work: Workspace, forces: Forces, world: int, step: int, row: int, h: scalar):
    """Compute work.a[row] = q̈ at (work.q[row], work.v[row]).

    For h > 0 damping B is implicit over a step of that length: (M + h B) q̈ = τ − B q̇ − …, so that strong damping and
    dry friction are stable at any step.
    """
    forward_kinematics(tree, work, world, row)
    solve_forward_dynamics(tree, work, forces, world, step, row, h)


@wp.func
def solve_forward_dynamics(tree: Tree, work: Workspace, forces: Forces, world: int, step: int, row: int, h: scalar):
    """Compute work.a[row] = q̈ after `forward_kinematics` of the same row."""
    apply_joint_forces(tree, work, forces, world, step, row, h)
    init_articulated_inertia(tree, work, world)
    if tree.has_fluid_drag != 0:
        add_fluid_drag(tree, work, world)
    if forces.has_wrenches != 0:
        gather_wrenches(tree, work, forces, world, step)
        for i in range(tree.links):
            work.moment[world, i] = work.moment[world, i] - work.wrench_moment[world, i]
            work.force[world, i] = work.force[world, i] - work.wrench_force[world, i]
    for i in range(tree.links - 1, -1, -1):
        if tree.joint[i] == REVOLUTE:
            eliminate_revolute(tree, work, world, i, h)
        else:
            eliminate_joint(tree, work, world, i, h)
    for i in range(tree.links):
        propagate_acceleration(tree, work, world, row, i)


@wp.func
def init_articulated_inertia(tree: Tree, work: Workspace, world: int):
    """Set the articulated inertia of every link to its own inertia, and its bias force to v ×* I v."""
    z = scalar(0.0)
    for i in range(tree.links):
        mass = tree.mass[world, i]
        first = work.first_moment[world, i]
        second = work.second_moment[world, i]
        angular = work.angular_velocity[world, i]
        linear = work.linear_velocity[world, i]
        work.inertia_angular[world, i] = second
        work.inertia_coupling[world, i] = skew(first)
        work.inertia_linear[world, i] = mat33(mass, z, z, z, mass, z, z, z, mass)
        momentum_angular = second * angular + wp.cross(first, linear)
        momentum_linear = mass * linear - wp.cross(first, angular)
        work.moment[world, i] = wp.cross(angular, momentum_angular) + wp.cross(linear, momentum_linear)
        work.force[world, i] = wp.cross(angular, momentum_linear)


@wp.func
def eliminate_revolute(tree: Tree, work: Workspace, world: int, i: int, h: scalar):
    """Eliminate the revolute joint of link i from its articulated inertia, and add the remainder to the parent."""
    d = tree.first_velocity[i]
    a = work.inertia_angular[world, i]
    c = work.inertia_coupling[world, i]
    m = work.inertia_linear[world, i]
    moment = work.moment[world, i]
    force = work.force[world, i]
    axis = work.axis_angular[world, d]
    column_angular = a * axis
    column_linear = transpose_product(c, axis)
    diagonal = wp.dot(axis, column_angular)
    along = wp.dot(axis, moment)
    diagonal = diagonal + tree.armature[world, d] + h * work.damping[world, d]
    pivot = scalar(1.0) / diagonal
    rhs = work.rhs[world, d] - along
    work.column_angular[world, d] = column_angular
    work.column_linear[world, d] = column_linear
    work.inverse_pivot[world, d] = pivot
    work.rhs[world, d] = rhs
    if tree.parent[i] >= 0:
        scaled_angular = pivot * column_angular
        scaled_linear = pivot * column_linear
        add_to_parent(
            tree, work, world, i,
            a - wp.outer(column_angular, scaled_angular),
            c - wp.outer(column_angular, scaled_linear),
            m - wp.outer(column_linear, scaled_linear),
            moment + rhs * scaled_angular,
            force + rhs * scaled_linear,
        )  # fmt: skip


@wp.func
def eliminate_joint(tree: Tree, work: Workspace, world: int, i: int, h: scalar):
    """Eliminate the velocities of a joint of any type, one after the other, and add the remainder to the parent."""
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
        column_linear = transpose_product(c, axis_angular) + m * axis_linear
        diagonal = (
            wp.dot(axis_angular, column_angular)
            + wp.dot(axis_linear, column_linear)
            + tree.armature[world, d]
            + h * work.damping[world, d]
        )
        pivot = scalar(1.0) / diagonal
        rhs = work.rhs[world, d] - wp.dot(axis_angular, moment) - wp.dot(axis_linear, force)
        work.column_angular[world, d] = column_angular
        work.column_linear[world, d] = column_linear
        work.inverse_pivot[world, d] = pivot
        work.rhs[world, d] = rhs
        scaled_angular = pivot * column_angular
        scaled_linear = pivot * column_linear
        a = a - wp.outer(column_angular, scaled_angular)
        c = c - wp.outer(column_angular, scaled_linear)
        m = m - wp.outer(column_linear, scaled_linear)
        moment = moment + rhs * scaled_angular
        force = force + rhs * scaled_linear
    if tree.parent[i] >= 0:
        add_to_parent(tree, work, world, i, a, c, m, moment, force)


@wp.func
def add_to_parent(
    tree: Tree, work: Workspace, world: int, i: int, a: mat33, c: mat33, m: mat33, own_moment: vec3, own_force: vec3
):
    """Add the remaining articulated inertia and bias force of link i to those of its parent."""
    parent = tree.parent[i]
    bias_angular = work.bias_angular[world, i]
    bias_linear = work.bias_linear[world, i]
    offset = work.offset[world, i]
    moment = own_moment + a * bias_angular + c * bias_linear
    force = own_force + transpose_product(c, bias_angular) + m * bias_linear
    moved_c = c + skew_product(offset, m)
    work.inertia_linear[world, parent] = work.inertia_linear[world, parent] + m
    work.inertia_coupling[world, parent] = work.inertia_coupling[world, parent] + moved_c
    work.inertia_angular[world, parent] = work.inertia_angular[world, parent] + (
        a + wp.transpose(skew_product(offset, wp.transpose(c))) + skew_product(offset, wp.transpose(moved_c))
    )
    work.force[world, parent] = work.force[world, parent] + force
    work.moment[world, parent] = work.moment[world, parent] + moment + wp.cross(offset, force)


@wp.func
def propagate_acceleration(tree: Tree, work: Workspace, world: int, row: int, i: int):
    """Compute the acceleration across the joint of link i and that of the link, given its parent's."""
    angular = transported_angular_acceleration(tree, work, world, i)
    linear = transported_linear_acceleration(tree, work, world, i)
    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
        acceleration = work.inverse_pivot[world, d] * (
            work.rhs[world, d]
            - wp.dot(work.column_angular[world, d], angular)
            - wp.dot(work.column_linear[world, d], linear)
        )
        work.a[world, row, d] = acceleration
        angular = angular + acceleration * work.axis_angular[world, d]
        linear = linear + acceleration * work.axis_linear[world, d]
    work.angular_acceleration[world, i] = angular
    work.linear_acceleration[world, i] = linear


@wp.func
def solve_inertia(tree: Tree, work: Workspace, world: int, right: Array3d, right_row: int, out: Array3d, out_row: int):
    """Solve (M + armature + h B) out = right with the factorization of the last `forward_dynamics`.

    The motion of every link under `out` is left in `virtual_…`.
    """
    solve_inertia_inward(tree, work, world, right, right_row)
    solve_inertia_outward(tree, work, world, out, out_row)


@wp.func
def solve_inertia_inward(tree: Tree, work: Workspace, world: int, right: Array3d, right_row: int):
    """Eliminate velocities from the leaves to the root; leaves the right-hand side of every velocity in `rhs`."""
    for i in range(tree.links):
        work.moment[world, i] = zero3()
        work.force[world, i] = zero3()
    for i in range(tree.links - 1, -1, -1):
        start = tree.first_velocity[i]
        end = tree.first_velocity[i + 1]
        moment = work.moment[world, i]
        force = work.force[world, i]
        for d in range(end - 1, start - 1, -1):
            remainder = (
                right[world, right_row, d]
                - wp.dot(work.axis_angular[world, d], moment)
                - wp.dot(work.axis_linear[world, d], force)
            )
            work.rhs[world, d] = remainder
            scaled = remainder * work.inverse_pivot[world, d]
            moment = moment + scaled * work.column_angular[world, d]
            force = force + scaled * work.column_linear[world, d]
        parent = tree.parent[i]
        if parent >= 0:
            work.force[world, parent] = work.force[world, parent] + force
            arm = wp.cross(work.offset[world, i], force)
            work.moment[world, parent] = work.moment[world, parent] + moment + arm


@wp.func
def solve_inertia_outward(tree: Tree, work: Workspace, world: int, out: Array3d, out_row: int):
    """Substitute back from the root to the leaves, starting from `rhs`."""
    for i in range(tree.links):
        parent = tree.parent[i]
        angular = link_or_world(work.virtual_angular, world, parent)
        linear = link_or_world(work.virtual_linear, world, parent) + wp.cross(angular, work.offset[world, i])
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            solution = work.inverse_pivot[world, d] * (
                work.rhs[world, d]
                - wp.dot(work.column_angular[world, d], angular)
                - wp.dot(work.column_linear[world, d], linear)
            )
            out[world, out_row, d] = solution
            angular = angular + solution * work.axis_angular[world, d]
            linear = linear + solution * work.axis_linear[world, d]
        work.virtual_angular[world, i] = angular
        work.virtual_linear[world, i] = linear
