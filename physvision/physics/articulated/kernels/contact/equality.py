"""Equality constraints between bodies: two points that coincide (connect), and two frames that coincide (weld).

Each body carries a frame, (p_a, A) and (p_b, B) in the world, given as shapes that touch nothing. A connect is one
block of three rows along the world axes, a weld two:

    u = Y_a(p_a) − Y_b(p_b),   error p_a − p_b;        u = ω_a − ω_b,   error e(A Bᵀ),

where e is the axial vector of half the difference of a matrix and its transpose. All rows stick, in flights and in
impacts; in flights κ/h times the error is added to u, as for a penetration.

For a force F along the rows, F · Y_a(p_a) changes with p_a by δp · (F × ω_a), and with the joints that carry a as a
contact velocity does (`narrow_phase_adjoint`). With R = A Bᵀ and rotations φ of the frames δR = [φ_a] R − R [φ_b], so
for an adjoint g of e the rotations take w([g] Rᵀ)/2 and −w(Rᵀ [g])/2, w(M) being the vector of M − Mᵀ.
"""

import warp as wp

from ..collision.contact_power_adjoint import ancestor_power_backward, force_moments
from ..collision.contact_primitives import WeightedForces
from ..collision.narrow_phase import rotation_axis, translation_axis
from ..collision.narrow_phase_adjoint import add_shape_gradient
from ..precision import mat33, scalar, vec3
from ..spatial.vectors import select_vec3, skew, zero3
from ..structs import EQUALITY, Contact, System, Tree, Workspace


@wp.func
def axial_vector(m: mat33):
    """Return the axial vector of m − mᵀ."""
    return vec3(m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1])


@wp.func
def relative_rotation(contact: Contact, s: System, world: int, t: int):
    """Return R = A Bᵀ of equality constraint t."""
    first = contact.detection.shape_rotation[world, s.model.equalities.first[t]]
    return first * wp.transpose(contact.detection.shape_rotation[world, s.model.equalities.second[t]])


@wp.func
def equality_error(contact: Contact, s: System, world: int, t: int, part: int):
    """Return the position error (part 0) or orientation error (part 1) of equality constraint t."""
    error = (
        contact.detection.shape_origin[world, s.model.equalities.first[t]]
        - contact.detection.shape_origin[world, s.model.equalities.second[t]]
    )
    if part == 1:
        error = scalar(0.5) * axial_vector(relative_rotation(contact, s, world, t))
    return error


@wp.func
def write_equality_jacobian(tree: Tree, contact: Contact, s: System, world: int, slot: int, t: int, part: int):
    """Write the Jacobian of block `slot`, and its path: the links that carry either frame, outermost first."""
    first = s.model.equalities.first[t]
    second = s.model.equalities.second[t]
    first_link = s.model.shapes.link[first]
    second_link = s.model.shapes.link[second]
    length = wp.int32(0)
    while first_link >= 0 or second_link >= 0:
        i = wp.max(first_link, second_link)
        is_first = scalar(0.0)
        is_second = scalar(0.0)
        if first_link == i:
            is_first = scalar(1.0)
            first_link = tree.parent[i]
        if second_link == i:
            is_second = scalar(1.0)
            second_link = tree.parent[i]
        origin = contact.detection.link_origin[world, i]
        arm = is_first * (contact.detection.shape_origin[world, first] - origin)
        arm = arm - is_second * (contact.detection.shape_origin[world, second] - origin)
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            axis = rotation_axis(tree, contact, world, i, d)
            along = (is_first - is_second) * axis
            if part == 0:
                along = (is_first - is_second) * translation_axis(tree, contact, world, i, d) + wp.cross(axis, arm)
            contact.blocks.jacobian[world, slot, d] = along
        contact.blocks.path[world, slot, length] = i
        length += 1
    contact.blocks.path_length[world, slot] = length


@wp.func
def add_equality_blocks(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, is_flight: int, recovery: scalar
):
    """Add the blocks of all equality constraints."""
    for t in range(s.model.equalities.count):
        for part in range(1 + s.model.equalities.is_weld[t]):
            slot = contact.events.count[world, row]
            contact.events.count[world, row] = slot + 1
            if slot < s.model.max_blocks:
                write_equality_jacobian(tree, contact, s, world, slot, t, part)
                velocity = zero3()
                for k in range(contact.blocks.path_length[world, slot]):
                    i = contact.blocks.path[world, slot, k]
                    for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                        velocity = velocity + work.v[world, row, d] * contact.blocks.jacobian[world, slot, d]
                bias = zero3()
                if is_flight != 0:
                    bias = (recovery / contact.events.remaining_time[world, 0]) * equality_error(
                        contact, s, world, t, part
                    )
                contact.blocks.pair[world, slot] = s.model.candidates + s.model.transmissions.count + 2 * t + part
                contact.blocks.law[world, slot] = EQUALITY
                contact.blocks.friction[world, slot] = scalar(0.0)
                contact.blocks.restitution[world, slot] = scalar(0.0)
                contact.blocks.initial_velocity[world, slot] = velocity
                contact.blocks.velocity_bias[world, slot] = bias
                contact.blocks.compliance[world, slot] = scalar(0.0)


@wp.func(inline=True)
def equality_power_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    row: int,
    t: int,
    w: WeightedForces,
    distance_bar: vec3,
    first_rotation_bar: vec3,
    second_rotation_bar: vec3,
):
    """Add the derivative of Σ forces · u, with forces in world axes, to q_bar[row] and the gradients.

    Args:
        tree: Kinematic tree.
        work: Workspace of the dynamics.
        contact: Workspace of contact.
        s: Other structs of the launch.
        world: World.
        row: Evaluation.
        t: Equality constraint.
        w: Forces, or moments, one for each of three motions.
        distance_bar: Adjoint of p_a − p_b.
        first_rotation_bar: Adjoint of a rotation of the first frame, in world axes.
        second_rotation_bar: Adjoint of a rotation of the second frame, in world axes.
    """
    forces = w.forces
    for side in range(2):
        shape = s.model.equalities.first[t]
        sign = scalar(1 - 2 * side)
        if side == 1:
            shape = s.model.equalities.second[t]
        link = s.model.shapes.link[shape]
        w.point = contact.detection.shape_origin[world, shape]
        w.forces = sign * forces
        total = force_moments(tree, work, contact, world, link, w)
        position_bar = vec3(total[0, 0], total[0, 1], total[0, 2]) + sign * distance_bar
        rotation_bar = select_vec3(side, first_rotation_bar, second_rotation_bar)
        ancestor_power_backward(tree, work, contact, s, world, row, link, w, w.point, position_bar, rotation_bar)
        if s.contact_gradients.is_requested != 0:
            add_shape_gradient(
                contact, s, world, shape, zero3(), w.point, position_bar, rotation_bar, scalar(0.0), zero3(), zero3()
            )


@wp.func(inline=True)
def equality_backward(
    tree: Tree,
    work: Workspace,
    contact: Contact,
    s: System,
    world: int,
    row: int,
    pair: int,
    w: WeightedForces,
    error_bar: vec3,
):
    """Add the derivative of Σ forces · u + error_bar · (error of the block) to q_bar[row] and the gradients."""
    block_index = pair - s.model.candidates - s.model.transmissions.count
    t = block_index / 2
    w.is_orientation = scalar(block_index % 2)
    rotation = relative_rotation(contact, s, world, t)
    first_rotation_bar = (scalar(0.5) * w.is_orientation) * axial_vector(skew(error_bar) * wp.transpose(rotation))
    second_rotation_bar = (scalar(-0.5) * w.is_orientation) * axial_vector(wp.transpose(rotation) * skew(error_bar))
    position_bar = (scalar(1.0) - w.is_orientation) * error_bar
    equality_power_backward(
        tree, work, contact, s, world, row, t, w, position_bar, first_rotation_bar, second_rotation_bar
    )
