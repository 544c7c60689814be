"""Contact as a force: the laws of `contact.yielding`, and their adjoint.

With the contact's velocity u = (u_n, u_t) and a gap g the force is F = (N, −μ N u_t / s), s = √(|u_t|² + ε²), with
N = max(0, −k g − c u_n) for g < 0, or N = k δ log(1 + exp(−g / δ)). For weights w, w · F has the derivatives

    N̄ = w_n − μ w_t · u_t / s,    ū_t = −μ N (w_t − (w_t · u_t) u_t / s²) / s,    μ̄ = −N w_t · u_t / s,
    ḡ = −k N̄, ū_n = −c N̄ where there is a force, or ḡ = −k N̄ / (1 + exp(g / δ)).
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
from physvision.physics.articulated.kernels.contact.delassus import add_push, contact_velocity
from physvision.physics.articulated.kernels.dynamics.forward import accelerate_moved, solve
from physvision.physics.articulated.kernels.dynamics.inverse import accelerate_links, residual_backward
from physvision.physics.articulated.kernels.dynamics.joints import advance
from physvision.physics.articulated.kernels.dynamics.kinematics import move_links
from physvision.physics.articulated.kernels.precision import scalar, vec3
from physvision.physics.articulated.kernels.rollouts.template import rollout_kernels
from physvision.physics.articulated.kernels.rollouts.trajectory import euler_backward
from physvision.physics.articulated.kernels.spatial.vectors import transposed, zero3
from physvision.physics.articulated.kernels.structs import (
    ContactGradients,
    ContactMemory,
    Contacts,
    Forces,
    Gradients,
    Tree,
    Workspace,
)

NOTHING = wp.constant(scalar(40.0))  # distances at which a soft force is less than rounding


@wp.struct
class Law:
    """The numbers of `Penalty` (distance 0) or `Soft`."""

    dt: scalar
    stiffness: scalar
    damping: scalar
    distance: scalar
    slip_speed: scalar


@wp.func
def pressure(law: Law, gap: scalar, speed: scalar):
    """Normal force of a contact, N."""
    force = scalar(0.0)
    if law.distance > scalar(0.0):
        depth = -gap / law.distance
        # log(1 + exp x) = max(x, 0) + log(1 + exp −|x|)
        spread = wp.max(depth, scalar(0.0)) + wp.log(scalar(1.0) + wp.exp(-wp.abs(depth)))
        force = law.stiffness * law.distance * spread
    elif gap < scalar(0.0):
        force = wp.max(scalar(0.0), -law.stiffness * gap - law.damping * speed)
    return force


@wp.func
def force_of(law: Law, gap: scalar, slip: vec3, friction: scalar):
    """F along the normal and the tangents."""
    force = pressure(law, gap, slip[0])
    rub = -friction * force / wp.sqrt(slip[1] * slip[1] + slip[2] * slip[2] + law.slip_speed * law.slip_speed)
    return vec3(force, rub * slip[1], rub * slip[2])


@wp.func
def force_backward(law: Law, gap: scalar, slip: vec3, friction: scalar, force: vec3, weight: vec3):
    """ū, ḡ and μ̄ of w · F."""
    unit = scalar(1.0)
    size = wp.sqrt(slip[1] * slip[1] + slip[2] * slip[2] + law.slip_speed * law.slip_speed)
    across = weight[1] * slip[1] + weight[2] * slip[2]
    force_bar = weight[0] - friction * across / size
    rub = -friction * force[0] / size
    turned = across / (size * size)
    gap_bar = scalar(0.0)
    speed_bar = scalar(0.0)
    if law.distance > scalar(0.0):
        gap_bar = -law.stiffness * force_bar / (unit + wp.exp(gap / law.distance))
    elif force[0] > scalar(0.0):
        gap_bar = -law.stiffness * force_bar
        speed_bar = -law.damping * force_bar
    slip_bar = vec3(speed_bar, rub * (weight[1] - turned * slip[1]), rub * (weight[2] - turned * slip[2]))
    return slip_bar, gap_bar, -force[0] * across / size


@wp.func
def meet(
    tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, law: Law, world: int, row: int, pair: int
):
    """Gap, velocity, friction and Jacobian of a candidate in slot 0; whether it is near enough for a force."""
    farthest = NOTHING * law.distance
    memory.friction[world, 0] = scalar(0.0)
    gap = scalar(0.0)
    if pair < contacts.pairs:
        near = closest_of(contacts, memory, world, pair)
        gap = near.gap
        if gap < farthest:
            memory.friction[world, 0] = contacts.friction[world, pair]
            write_jacobian(tree, work, contacts, memory, world, 0, pair, near)
    else:
        gap = stop_gap(contacts, memory, world, pair)
        if gap < farthest:
            write_stop_jacobian(tree, contacts, memory, world, 0, pair)
    memory.gap[world, pair] = gap
    if gap < farthest:
        memory.slip[world, 0] = contact_velocity(tree, memory, world, 0, work.v, row)
    return gap < farthest


@wp.func
def push_apart(
    tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, law: Law, world: int, row: int, h: scalar
):
    """Jump[row] = Σ Jᵀ F; notes the deepest overlap and what each pair's first shape takes in a step of length h."""
    for d in range(tree.velocities):
        memory.jump[world, row, d] = scalar(0.0)
    for pair in range(contacts.pairs):
        memory.pushed[world, pair] = zero3()
    enough = NOTHING * law.distance
    pair = first_near(contacts, memory, world, 0, enough)
    while pair < contacts.candidates:
        if meet(tree, work, contacts, memory, law, world, row, pair):
            force = force_of(law, memory.gap[world, pair], memory.slip[world, 0], memory.friction[world, 0])
            add_push(tree, memory, world, 0, force, memory.jump, row)
            memory.overlap[world] = wp.max(memory.overlap[world], -memory.gap[world, pair])
            if pair < contacts.pairs:
                memory.pushed[world, pair] = h * transposed(memory.frame[world, 0], force)
        pair = first_near(contacts, memory, world, pair + 1, enough)


@wp.func
def push_apart_backward(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    law: Law,
    world: int,
    row: int,
):
    """Adjoint of −λᵀ Σ Jᵀ F, λ being multiplier[row]: to q_bar[row], v_bar[row] and the gradients."""
    for d in range(tree.velocities):
        work.rate[world, 0, d] = work.v[world, row, d]
        work.rate[world, 1, d] = work.multiplier[world, row, d]
    enough = NOTHING * law.distance
    pair = first_near(contacts, memory, world, 0, enough)
    while pair < contacts.candidates:
        if meet(tree, work, contacts, memory, law, world, row, pair):
            gap = memory.gap[world, pair]
            slip = memory.slip[world, 0]
            friction = memory.friction[world, 0]
            force = force_of(law, gap, slip, friction)
            weight = -contact_velocity(tree, memory, world, 0, work.multiplier, row)
            slip_bar, gap_bar, friction_bar = force_backward(law, gap, slip, friction, force, weight)
            add_push(tree, memory, world, 0, slip_bar, work.v_bar, row)
            along = wp.matrix_from_rows(slip_bar, -force, zero3())
            contact_work_backward(
                tree, contacts, work, gradients, touch, memory, world, row, pair, 0, 1, 1, along, scalar(0.0), gap_bar
            )
            if touch.wanted != 0 and pair < contacts.pairs:
                touch.friction[world, pair] = touch.friction[world, pair] + friction_bar
        pair = first_near(contacts, memory, world, pair + 1, enough)


@wp.func(inline=True)
def accelerate_pushed(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    law: Law,
    world: int,
    step: int,
    h: scalar,
):
    """work.a[0] = q̈ with the forces of contacts at (work.q[0], work.v[0]), and the velocity after the step in row 1."""
    move_links(tree, work, world, 0)
    place_moved(tree, work, contacts, memory, world, 0)
    turn_moved(tree, work, memory, world)
    accelerate_moved(tree, work, forces, world, step, 0, h)
    push_apart(tree, work, contacts, memory, law, world, 0, h)
    solve(tree, work, world, memory.jump, 0, memory.jump, 0)
    for d in range(tree.velocities):
        work.a[world, 0, d] = work.a[world, 0, d] + memory.jump[world, 0, d]
        work.v[world, 1, d] = work.v[world, 0, d] + h * work.a[world, 0, d]


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
    accelerate_pushed(tree, work, forces, contacts, memory, law, world, step, law.dt)
    advance(tree, world, work.q, 0, 1, work.v, 1, law.dt)
    return wp.int32(1)


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
    """Add the contact forces to the residual of inverse dynamics as −Σ Jᵀ F."""
    h = law.dt
    accelerate_pushed(tree, work, forces, contacts, memory, law, world, step, h)
    euler_backward(tree, work, world, step, steps, truncate, h, q, trajectory_q_bar, trajectory_v_bar)
    solve(tree, work, world, work.a_bar, 0, work.multiplier, 0)
    accelerate_links(tree, work, world, 0)
    push_apart_backward(tree, work, contacts, memory, gradients, touch, law, world, 0)
    residual_backward(tree, work, forces, gradients, world, step, 0, 0, h)


rollout, rollout_backward = rollout_kernels(Law, take_step, step_backward)
