"""Contact solved once in each step of fixed length, by semi-implicit Euler, and its adjoint.

What touches when a step begins takes part: with h the step's length, M (a − a₀) = Jᵀ λ / h and the velocities

    u = J (v + h a) + e J_n v      of what strikes, n being the normal part (Newton's restitution),
    u = J (v + h a) + κ gap / h    of what touches without, so that a share κ of what overlaps is taken back,

the impulses λ answer u by a law that the caller solves, and then v′ = v + h a and q′ = q ⊕ h v′. What strikes within a
step does so at the grid's next time: that it would come earlier or later is not seen, by the derivative either.

The adjoint is that of a flight of `contact_backward`, with an impact's restitution in the same u.
"""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import first_near
from physvision.physics.articulated.kernels.collision.joint_limits import stop_gap, write_stop_jacobian
from physvision.physics.articulated.kernels.collision.narrow_phase import (
    closest_of,
    place_moved,
    turn_moved,
    write_jacobian,
)
from physvision.physics.articulated.kernels.collision.narrow_phase_adjoint import contact_work_backward
from physvision.physics.articulated.kernels.contact.delassus import (
    add_halves,
    add_push,
    apply_impulses,
    build_delassus,
    contact_velocity,
    response,
)
from physvision.physics.articulated.kernels.contact.events import TAKEN_BACK
from physvision.physics.articulated.kernels.contact.solver import ACCEPTED
from physvision.physics.articulated.kernels.contact.time_of_impact import TOUCHING
from physvision.physics.articulated.kernels.dynamics.forward import accelerate_moved, solve_inward, solve_outward
from physvision.physics.articulated.kernels.dynamics.inverse import accelerate_links, residual_backward
from physvision.physics.articulated.kernels.dynamics.joints import advance
from physvision.physics.articulated.kernels.dynamics.kinematics import move_links
from physvision.physics.articulated.kernels.precision import scalar, vec3
from physvision.physics.articulated.kernels.rollouts.template import rollout_kernels
from physvision.physics.articulated.kernels.rollouts.trajectory import euler_backward
from physvision.physics.articulated.kernels.spatial.vectors import transposed, zero3
from physvision.physics.articulated.kernels.structs import (
    TOUCHES,
    ContactGradients,
    ContactMemory,
    Contacts,
    Forces,
    Gradients,
    Tree,
    Workspace,
)


@wp.func(inline=True)
def list_touching(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, h: scalar):
    """List what touches, and what is nearer than slow contacts get in a step; their number, beyond room or not."""
    enough = wp.max(TOUCHING, contacts.rest_speed * h)
    count = wp.int32(0)
    pair = first_near(contacts, memory, world, 0, enough)
    while pair < contacts.candidates:
        gap = scalar(0.0)
        if pair < contacts.pairs:
            near = closest_of(contacts, memory, world, pair)
            gap = near.gap
            if gap <= enough and count < contacts.capacity:
                memory.friction[world, count] = contacts.friction[world, pair]
                memory.restitution[world, count] = contacts.restitution[world, pair]
                write_jacobian(tree, work, contacts, memory, world, count, pair, near)
        else:
            gap = stop_gap(contacts, memory, world, pair)
            if gap <= enough and count < contacts.capacity:
                memory.friction[world, count] = scalar(0.0)
                memory.restitution[world, count] = scalar(0.0)
                write_stop_jacobian(tree, contacts, memory, world, count, pair)
        memory.gap[world, pair] = gap
        memory.overlap[world] = wp.max(memory.overlap[world], -gap)
        if gap <= enough and count >= contacts.capacity:
            count = contacts.capacity + 1
        elif gap <= enough:
            before = contact_velocity(tree, memory, world, count, work.v, 0)
            if gap <= TOUCHING or wp.abs(before[0]) <= contacts.rest_speed:
                memory.pair[world, count] = pair
                memory.law[world, count] = TOUCHES
                memory.before[world, count] = before
                count += 1
        pair = first_near(contacts, memory, world, pair + 1, enough)
    return count


@wp.func
def strikes(contacts: Contacts, memory: ContactMemory, world: int, c: int):
    """If true, contact c has restitution, which it has none of below a speed."""
    return memory.before[world, c][0] < -contacts.rest_speed


@wp.func
def drive_touching(
    tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, h: scalar, count: int
):
    """The velocities u that the contacts would have without impulses."""
    for c in range(count):
        before = memory.before[world, c]
        bias = TAKEN_BACK * memory.gap[world, memory.pair[world, c]] / h
        if strikes(contacts, memory, world, c):
            bias = memory.restitution[world, c] * before[0]
        drive = before + h * contact_velocity(tree, memory, world, c, work.a, 0)
        memory.drive[world, c] = vec3(drive[0] + bias, drive[1], drive[2])


@wp.func
def note_touching(contacts: Contacts, memory: ContactMemory, world: int, count: int):
    """Store the force on the first shape of every pair in this step."""
    for pair in range(contacts.pairs):
        memory.pushed[world, pair] = zero3()
    for c in range(count):
        if memory.pair[world, c] < contacts.pairs:
            pushed = transposed(memory.frame[world, c], memory.impulse[world, c])
            memory.pushed[world, memory.pair[world, c]] = pushed


@wp.func(inline=True)
def answers_backward(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    h: scalar,
    count: int,
):
    """From ū, in slip_bar, to q_bar[0] and the gradients; v + h a is in rate[1], the multiplier in rate[2]."""
    for c in range(count):
        pair = memory.pair[world, c]
        slip_bar = memory.slip_bar[world, c]
        hit_body = strikes(contacts, memory, world, c)
        restored = scalar(0.0)
        gap_bar = TAKEN_BACK / h * slip_bar[0]
        if hit_body:
            restored = memory.restitution[world, c] * slip_bar[0]
            gap_bar = scalar(0.0)
            add_push(tree, memory, world, c, vec3(restored, scalar(0.0), scalar(0.0)), work.v_bar, 0)
        along = wp.matrix_from_rows(
            slip_bar, scalar(-1.0) / h * memory.impulse[world, c], vec3(restored, scalar(0.0), scalar(0.0))
        )
        contact_work_backward(
            tree, contacts, work, gradients, touch, memory, world, 0, pair, 1, 2, 0, along, scalar(0.0), gap_bar
        )
        if touch.wanted != 0 and pair < contacts.pairs:
            touch.friction[world, pair] = touch.friction[world, pair] + memory.friction_bar[world, c]
            if hit_body:
                result = slip_bar[0] * memory.before[world, c][0]
                touch.restitution[world, pair] = touch.restitution[world, pair] + result


def kernels(Law, solve, solve_backward):
    """Make the kernels of a law: the rollout and its adjoint.

    Args:
        Law: Struct of the parameters of the law, with the length of a step, `dt`.
        solve: Warp function (law, memory, world, count) that solves for the impulses; returns the residual relative to
            the largest velocity.
        solve_backward: Warp function (law, memory, world, count) that turns the adjoint of the impulses, `impulse_bar`,
            into that of the contact velocities, `slip_bar`.
    """

    @wp.func(inline=True)
    def solve_step(
        law: Law,
        tree: Tree,
        work: Workspace,
        forces: Forces,
        contacts: Contacts,
        memory: ContactMemory,
        world: int,
        step: int,
    ):
        """Write the velocity after the step to row 1; returns the number of contacts, or -1 if the solve fails."""
        h = law.dt
        move_links(tree, work, world, 0)
        place_moved(tree, work, contacts, memory, world, 0)
        turn_moved(tree, work, memory, world)
        count = list_touching(tree, work, contacts, memory, world, h)
        accelerate_moved(tree, work, forces, world, step, 0, h)
        if count > contacts.capacity:
            count = -1
        if count > 0:
            build_delassus(tree, work, memory, world, count)
            drive_touching(tree, work, contacts, memory, world, h, count)
            residual = solve(law, memory, world, count)
            apply_impulses(tree, work, memory, world, 0, count)
            for d in range(tree.velocities):
                work.a[world, 0, d] = work.a[world, 0, d] + memory.jump[world, 0, d] / h
            memory.residual[world] = wp.max(memory.residual[world], residual)
            # NaN compares false and is not accepted either.
            if not (residual < ACCEPTED):
                count = -1
        for d in range(tree.velocities):
            work.v[world, 1, d] = work.v[world, 0, d] + h * work.a[world, 0, d]
        return count

    @wp.func(inline=True)
    def take_step(
        law: Law,
        tree: Tree,
        work: Workspace,
        forces: Forces,
        contacts: Contacts,
        memory: ContactMemory,
        world: int,
        step: int,
        is_last: int,
    ):
        count = solve_step(law, tree, work, forces, contacts, memory, world, step)
        advance(tree, world, work.q, 0, 1, work.v, 1, law.dt)
        if is_last != 0:
            note_touching(contacts, memory, world, count)
        row = wp.int32(1)
        if count < 0:
            row = -1
        return row

    @wp.func(inline=True)
    def step_backward(
        law: Law,
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
        h = law.dt
        count = solve_step(law, tree, work, forces, contacts, memory, world, step)
        euler_backward(tree, work, world, step, steps, truncate, h, q, trajectory_q_bar, trajectory_v_bar)
        solve_inward(tree, work, world, work.a_bar, 0)
        if count > 0:
            for c in range(count):
                memory.impulse_bar[world, c] = scalar(-1.0) / h * response(tree, work, memory, world, c)
            solve_backward(law, memory, world, count)
            for c in range(count):
                add_push(tree, memory, world, c, memory.slip_bar[world, c], work.v_bar, 0)
                add_halves(tree, work, memory, world, c, -h * memory.slip_bar[world, c])
        solve_outward(tree, work, world, work.multiplier, 0)
        if count > 0:
            for d in range(tree.velocities):
                work.rate[world, 0, d] = work.v[world, 0, d]
                work.rate[world, 1, d] = work.v[world, 1, d]
                work.rate[world, 2, d] = work.multiplier[world, 0, d]
            answers_backward(tree, work, contacts, memory, gradients, touch, world, h, count)
            accelerate_links(tree, work, world, 0)
        residual_backward(tree, work, forces, gradients, world, step, 0, 0, h)

    return rollout_kernels(Law, take_step, step_backward, backward_options={"max_unroll": 1})
