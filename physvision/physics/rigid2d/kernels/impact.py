"""Impacts: velocities jump so that what approaches rebounds, by Newton's law of restitution, joints and friction kept.

With v⁻ before and v⁺ = v⁻ + W Rᵀ η after, rows R at the pose: joints R v⁺ = 0; normals 0 ≤ η ⟂ R (v⁺ + e v⁻) ≥ 0 where
they approach, with e = 0 where they do not; tangents R v⁺ = 0 or at the friction bound.
"""

import warp as wp

from . import scalar
from .complementarity import solve_stage
from .data import BRIEF, Scene, Work
from .detect import properties_of
from .flow import guess_modes
from .forces import accelerate
from .geometry import add_force, contact_rows, row_speed
from .joints import joint_row


@wp.func
def approaches(s: Scene, t: Work, contacts: wp.int32):
    """Which of the contacts that touch approaches, the first; −1 if none does."""
    found = wp.int32(-1)
    for i in range(contacts):
        if found < 0 and row_speed(t, t.rows0, s.joint_rows + 2 * i, t.v0) < -s.rest_speed:
            found = i
    return found


@wp.func
def prepare_impact(s: Scene, t: Work, contacts: wp.int32):
    """Rows at the pose, and each contact's friction and restitution.

    A bounce so low that the body is back within a thousandth of a step is none: restitution would repeat it without
    end. How soon it is back follows from the free acceleration of the gap.
    """
    accelerate(s, t, t.q0, t.v0, t.a0)
    for r in range(s.joint_rows):
        joint_row(s, t, t.q0, r, t.rows0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        contact_rows(s, t, t.q0, i, t.rows0, r)
        restitution, friction = properties_of(s, t, i)
        t.coefficient[i] = friction
        t.sliding[i] = 0
        t.slide0[i] = scalar(0.0)
        speed = row_speed(t, t.rows0, r, t.v0)
        t.rebound[i] = scalar(0.0)
        if speed < scalar(0.0):
            down = -row_speed(t, t.rows0, r, t.a0)
            if -restitution * speed > BRIEF * s.dt * down:
                t.rebound[i] = restitution


@wp.func
def impact(s: Scene, t: Work, contacts: wp.int32):
    """Set v1 to the velocities after the impact of all contacts that touch."""
    prepare_impact(s, t, contacts)
    size = s.joint_rows + 2 * contacts
    for r in range(s.joint_rows):
        t.offset[r] = row_speed(t, t.rows0, r, t.v0)
    for i in range(contacts):
        r = s.joint_rows + 2 * i
        t.offset[r] = (scalar(1.0) + t.rebound[i]) * row_speed(t, t.rows0, r, t.v0)
        t.offset[r + 1] = row_speed(t, t.rows0, r + 1, t.v0)
    guess_modes(s, t, contacts, t.mode0, t.slide0)
    solve_stage(s, t, contacts, t.rows0, t.rows0, t.mode0, t.slide0, t.lambda0)
    for k in range(3 * (s.bodies + 1)):
        t.v1[k] = t.v0[k]
        t.q1[k] = t.q0[k]
    for r in range(size):
        if t.lambda0[r] != scalar(0.0):
            add_force(t, t.rows0, r, t.lambda0[r], t.v1)
