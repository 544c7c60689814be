"""Impacts: velocities jump so that what approaches rebounds, by Newton's law of restitution, joints and friction kept.

With v⁻ before and v⁺ = v⁻ + W Rᵀ η after, rows R at the pose: joints R v⁺ = 0; normals 0 ≤ η ⟂ R (v⁺ + e v⁻) ≥ 0 where
they approach, with e = 0 where they do not; tangents R v⁺ = 0 or at the friction bound.
"""

import warp as wp

from . import scalar
from .complementarity import solve_stage
from .data import Parts, Workspace
from .detect import properties_of
from .flow import guess_modes
from .geometry import add_force, contact_rows, row_speed
from .joints import joint_row


@wp.func
def prepare_impact(s: Parts, t: Workspace, contacts: wp.int32):
    """Rows at the pose, and each contact's friction and restitution."""
    for r in range(s.joint_rows):
        joint_row(s, t, t.q0, r, t.rows0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        contact_rows(s, t, t.q0, i, t.rows0, r)
        restitution, friction = properties_of(s, t, i)
        t.coefficient[i] = friction
        t.sliding[i] = 0
        t.slide0[i] = scalar(0.0)
        t.rebound[i] = scalar(0.0)
        if row_speed(t, t.rows0, r, t.v0) < scalar(0.0):
            t.rebound[i] = restitution


@wp.func
def energy_gained(s: Parts, t: Workspace, size: wp.int32):
    """By how much the kinetic energy at v1 exceeds that at v0 and driven bodies' work, as a share of the former."""
    before = scalar(0.0)
    after = scalar(0.0)
    for k in range(3 * (s.bodies + 1)):
        if t.weight[k] > scalar(0.0):
            before += t.v0[k] * t.v0[k] / t.weight[k]
            after += t.v1[k] * t.v1[k] / t.weight[k]
    for r in range(size):
        for k in range(3):
            a = 3 * t.row_a[r] + k
            b = 3 * t.row_b[r] + k
            if t.weight[a] == scalar(0.0):
                after += scalar(2.0) * t.lambda0[r] * t.rows0[6 * r + k] * t.v0[a]
            if t.weight[b] == scalar(0.0):
                after += scalar(2.0) * t.lambda0[r] * t.rows0[6 * r + 3 + k] * t.v0[b]
    return after / wp.max(before, scalar(1.0e-300)) - scalar(1.0)


@wp.func
def rebound(s: Parts, t: Workspace, contacts: wp.int32):
    """Set v1 to the velocities after the impact, with the restitution in `rebound`."""
    size = s.joint_rows + 2 * contacts
    for r in range(s.joint_rows):
        t.offset[r] = row_speed(t, t.rows0, r, t.v0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        t.offset[r] = (scalar(1.0) + t.rebound[i]) * row_speed(t, t.rows0, r, t.v0)
        t.offset[r + 1] = row_speed(t, t.rows0, r + 1, t.v0)
    guess_modes(s, t, contacts, t.mode0, t.slide0, scalar(1.0))
    solve_stage(s, t, contacts, t.rows0, t.rows0, t.mode0, t.slide0, t.lambda0, scalar(1.0))
    for k in range(3 * (s.bodies + 1)):
        t.v1[k] = t.v0[k]
    for r in range(size):
        if t.lambda0[r] != scalar(0.0):
            add_force(t, t.rows0, r, t.lambda0[r], t.v1)


@wp.func
def impact(s: Parts, t: Workspace, contacts: wp.int32):
    """Set v1 to the velocities after the impact of all contacts that touch.

    With friction, or with contacts of different restitution, Newton's law can add energy (Kane, 1984). Where it
    would, every restitution is halved until it does not; without restitution an impact always takes energy.
    """
    prepare_impact(s, t, contacts)
    rebound(s, t, contacts)
    tries = wp.int32(0)
    while energy_gained(s, t, s.joint_rows + 2 * contacts) > scalar(1.0e-9) and tries < 8:
        tries += 1
        for i in range(contacts):
            t.rebound[i] = t.rebound[i] * scalar(0.5)
            if tries == 8:
                t.rebound[i] = scalar(0.0)
        rebound(s, t, contacts)
    for k in range(3 * (s.bodies + 1)):
        t.q1[k] = t.q0[k]
