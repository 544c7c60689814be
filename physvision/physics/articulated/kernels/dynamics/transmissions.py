"""Transmissions: bounded rows along fixed combinations of joint velocities.

The row of a transmission with shares s has the velocity u = s · q̇, and where its joints are hinges and slides the
position p = s · q − rest. Its force f acts on the joints as s f. Over the time T that is left of a step, with a for the
acceleration and λ = T f for its impulse:

    HOLDS   low ≤ f ≤ high against all motion: dry friction.  u + T s·a = 0 within the bounds
    SERVO   f = g − k p′ − c u′ between the bounds, at the end of the step, p′ = p + T u′, u′ = u + T s·a:
            u′ + ε λ + b = 0 with B = c + T k, ε = 1/(T B), b = −(g − k p)/B
            Of one that asks for a speed of at most w the spring is taken where the flight begins, so that what it asks
            for is known then: f = c (z − u′), z = (g − k p)/c within ±w; that is B = c and b = −z.
    TIED    p = 0 whatever it takes, in impacts too; a part of what it is off is taken back, as of an overlap:
            u′ + κ p/h = 0.

They enter `impulses` as blocks with one direction. For the adjoint ū of u′, and those of the bounds of λ, the chain
rule on ε, b and T · low, T · high gives the rest.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import scalar, vec3
from physvision.physics.articulated.kernels.structs import (
    BOUNDED,
    ContactGradients,
    ContactMemory,
    Contacts,
    Forces,
    Gradients,
    Tree,
    Workspace,
)

HOLDS = wp.constant(0)
SERVO = wp.constant(1)
TIED = wp.constant(2)

FREELY = wp.constant(scalar(1.0e30))


@wp.func
def combined_position(contacts: Contacts, work: Workspace, world: int, row: int, t: int):
    """The position s · q − rest."""
    total = -contacts.transmission_rest[world, t]
    for k in range(contacts.transmission_first[t], contacts.transmission_first[t + 1]):
        total += contacts.transmission_share[k] * work.q[world, row, contacts.transmission_position[k]]
    return total


@wp.func
def write_transmission_jacobian(tree: Tree, contacts: Contacts, memory: ContactMemory, world: int, slot: int, t: int):
    """Of block `slot`: the links that carry its joints, outermost first, and s along the first direction."""
    z = scalar(0.0)
    first = contacts.transmission_path_first[t]
    length = contacts.transmission_path_first[t + 1] - first
    for k in range(length):
        i = contacts.transmission_path[first + k]
        memory.path[world, slot, k] = i
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            memory.jacobian[world, slot, d] = vec3(z, z, z)
    memory.path_length[world, slot] = length
    for k in range(contacts.transmission_first[t], contacts.transmission_first[t + 1]):
        memory.jacobian[world, slot, contacts.transmission_velocity[k]] = vec3(contacts.transmission_share[k], z, z)


@wp.func
def list_transmissions(
    tree: Tree,
    work: Workspace,
    forces: Forces,
    contacts: Contacts,
    memory: ContactMemory,
    world: int,
    step: int,
    row: int,
    flying: int,
    taken_back: scalar,
):
    """Add the transmissions that take part to the list of blocks: all in a flight, what is tied in an impact."""
    left = memory.left[world, row]
    for t in range(contacts.transmissions):
        kind = contacts.transmission_kind[t]
        slot = memory.count[world, row]
        if flying != 0 or kind == TIED:
            memory.count[world, row] = slot + 1
            if slot < contacts.capacity:
                write_transmission_jacobian(tree, contacts, memory, world, slot, t)
                bias = scalar(0.0)
                yielding = scalar(0.0)
                low = left * contacts.transmission_low[world, t]
                high = left * contacts.transmission_high[world, t]
                if kind == SERVO:
                    stiffness = contacts.transmission_stiffness[world, t]
                    drag = contacts.transmission_damping[world, t]
                    pull = forces.torque[world, step, tree.velocities + t]
                    pull -= stiffness * combined_position(contacts, work, world, row, t)
                    for k in range(tree.couplings):
                        if tree.coupling_target[k] == tree.velocities + t:
                            pull += tree.coupling_gain[k] * work.v[world, row, tree.coupling_source[k]]
                    speed = contacts.transmission_speed[world, t]
                    if speed < FREELY:
                        pull = wp.clamp(pull, -speed * drag, speed * drag)
                    else:
                        drag += left * stiffness
                    bias = -pull / drag
                    yielding = scalar(1.0) / (left * drag)
                elif kind == TIED:
                    low = scalar(-FREELY)
                    high = scalar(FREELY)
                    if flying != 0:
                        off = combined_position(contacts, work, world, row, t)
                        bias = taken_back * off / memory.left[world, 0]
                velocity = scalar(0.0)
                for k in range(contacts.transmission_first[t], contacts.transmission_first[t + 1]):
                    d = contacts.transmission_velocity[k]
                    velocity += contacts.transmission_share[k] * work.v[world, row, d]
                memory.pair[world, slot] = contacts.candidates + t
                memory.law[world, slot] = BOUNDED
                memory.friction[world, slot] = scalar(0.0)
                memory.restitution[world, slot] = scalar(0.0)
                memory.before[world, slot] = vec3(velocity, scalar(0.0), scalar(0.0))
                memory.bias[world, slot] = vec3(bias, scalar(0.0), scalar(0.0))
                memory.yielding[world, slot] = yielding
                memory.low[world, slot] = low
                memory.high[world, slot] = high


@wp.func
def yield_diagonal(memory: ContactMemory, world: int, count: int):
    """Add to the Delassus matrix what bounded rows yield."""
    for c in range(count):
        if memory.law[world, c] == BOUNDED and memory.yielding[world, c] > scalar(0.0):
            block = memory.delassus[world, c, c]
            block[0, 0] = block[0, 0] + memory.yielding[world, c]
            memory.delassus[world, c, c] = block


@wp.func
def transmission_backward(
    tree: Tree,
    work: Workspace,
    contacts: Contacts,
    memory: ContactMemory,
    gradients: Gradients,
    touch: ContactGradients,
    world: int,
    step: int,
    row: int,
    c: int,
    taken_back: scalar,
):
    """From the adjoints of block c in a flight to those of positions, controls and its own numbers; that of T."""
    t = memory.pair[world, c] - contacts.candidates
    kind = contacts.transmission_kind[t]
    left = memory.left[world, row]
    slip_bar = memory.slip_bar[world, c][0]
    low_bar = memory.low_bar[world, c]
    high_bar = memory.high_bar[world, c]
    left_bar = scalar(0.0)
    position_bar = scalar(0.0)
    if kind == TIED:
        position_bar = taken_back * slip_bar / memory.left[world, 0]
    else:
        if low_bar != scalar(0.0):
            left_bar += contacts.transmission_low[world, t] * low_bar
        if high_bar != scalar(0.0):
            left_bar += contacts.transmission_high[world, t] * high_bar
        if touch.wanted != 0:
            touch.transmission_low[world, t] = touch.transmission_low[world, t] + left * low_bar
            touch.transmission_high[world, t] = touch.transmission_high[world, t] + left * high_bar
    if kind == SERVO:
        stiffness = contacts.transmission_stiffness[world, t]
        position = combined_position(contacts, work, world, row, t)
        yielding = memory.yielding[world, c]
        drag = scalar(1.0) / (left * yielding)
        yielding_bar = slip_bar * memory.impulse[world, c][0]
        drag_bar = -(yielding * yielding_bar + memory.bias[world, c][0] * slip_bar) / drag
        pull_bar = -slip_bar / drag
        left_bar -= yielding / left * yielding_bar
        stiffness_bar = scalar(0.0)
        speed = contacts.transmission_speed[world, t]
        if speed < FREELY:
            asked = -memory.bias[world, c][0]
            if wp.abs(asked) >= scalar(1.0 - 1.0e-6) * speed:
                # But for rounding the pull is ±w c, whatever the spring and the control say.
                side = wp.sign(asked)
                drag_bar += side * speed * pull_bar
                if touch.wanted != 0:
                    touch.transmission_speed[world, t] = touch.transmission_speed[world, t] + side * drag * pull_bar
                pull_bar = scalar(0.0)
        else:
            left_bar += stiffness * drag_bar
            stiffness_bar = left * drag_bar
        position_bar = -stiffness * pull_bar
        column = tree.velocities + t
        gradients.torque[world, step, column] = gradients.torque[world, step, column] + pull_bar
        for k in range(tree.couplings):
            if tree.coupling_target[k] == column:
                d = tree.coupling_source[k]
                work.v_bar[world, row, d] = work.v_bar[world, row, d] + tree.coupling_gain[k] * pull_bar
        if touch.wanted != 0:
            touch.transmission_damping[world, t] = touch.transmission_damping[world, t] + drag_bar
            stiffness_bar -= position * pull_bar
            touch.transmission_stiffness[world, t] = touch.transmission_stiffness[world, t] + stiffness_bar
    if position_bar != scalar(0.0):
        for k in range(contacts.transmission_first[t], contacts.transmission_first[t + 1]):
            d = contacts.transmission_velocity[k]
            work.q_bar[world, row, d] = work.q_bar[world, row, d] + contacts.transmission_share[k] * position_bar
        if touch.wanted != 0:
            touch.transmission_rest[world, t] = touch.transmission_rest[world, t] - position_bar
    return left_bar
