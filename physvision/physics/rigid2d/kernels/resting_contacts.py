"""Classification of touching contacts: resting or sliding through the next smooth step, separating, impacting.

A contact that separates or would rebound, but closes again within a hundredth of a step, rests: such short bounces
would never end. A trial step of that duration, with the contacts that certainly rest, decides which contacts these are.
In one step a ball of restitution e then bounces at most ln((1 − e)/0.01)/(1 − e) < 37 times before it rests, whatever
e. A contact whose slip friction would end at once sticks.
"""

import warp as wp

from physvision.physics.lcp.kernels.problem import OPEN
from physvision.physics.lcp.kernels.rows import row_velocity

from .data import Data, Model
from .forces import free_acceleration
from .geometry import contact_rows
from .narrow_phase import contact_properties, max_penetration, narrow_phase
from .precision import scalar
from .smooth_step import position_stage, prepare_smooth_step, smooth_step


@wp.func
def swap_contacts(d: Data, i: int, j: int):
    """Swap two rows of the contact table."""
    if i != j:
        for k in range(5):
            number = d.contact_features[5 * i + k]
            d.contact_features[5 * i + k] = d.contact_features[5 * j + k]
            d.contact_features[5 * j + k] = number
        for k in range(6):
            value = d.contact_points[6 * i + k]
            d.contact_points[6 * i + k] = d.contact_points[6 * j + k]
            d.contact_points[6 * j + k] = value


@wp.func
def classify_brief_bounces_as_resting(m: Model, d: Data, resting: int, count: int):
    """Move contacts that close again within a brief step to the resting ones; return the number of resting contacts."""
    h = m.settings.brief_bounce * m.dt
    prepare_smooth_step(m, d, resting)
    position_stage(m, d, resting, h)
    absorbed = resting
    for i in range(resting, count):
        r = m.joint_rows + 2 * i
        separation = contact_rows(m, d, d.q0, i, d.rows0, r)
        speed = row_velocity(d.lcp, d.rows0, r, d.v0)
        restitution, _friction = contact_properties(m, d, i)
        lift = scalar(0.0)
        if speed < scalar(0.0):
            # Contacts without restitution also impact; only slow ones are left to the smooth step.
            lift = -(scalar(1.0) + wp.max(restitution, scalar(0.5))) * speed * h
        if contact_rows(m, d, d.q1, i, d.rows1, r) + lift <= separation:
            swap_contacts(d, i, absorbed)
            absorbed += 1
    return absorbed


@wp.func
def stop_brief_slip(m: Model, d: Data, contacts: int):
    """Make contacts stick if their slip reverses within a brief step; the smooth step must be prepared.

    A contact may stay open during the brief step, since touching contacts may be apart by a tolerance. It then closes
    by an impact that may reverse its slip at once, so the contact problem decides how it slides.
    """
    max_acceleration = scalar(0.0)
    for k in range(3 * (m.bodies + 1)):
        max_acceleration = wp.max(max_acceleration, wp.abs(d.a0[k]))
    any_slow = wp.int32(0)
    for i in range(contacts):
        if d.lcp.sliding[i] == 1:
            # Assume friction of a hundred times the largest acceleration, to select contacts that need a trial step.
            slip = row_velocity(d.lcp, d.rows0, m.joint_rows + 2 * i + 1, d.v0)
            if wp.abs(slip) < scalar(100.0) * m.settings.brief_slip * m.dt * max_acceleration:
                any_slow = wp.int32(1)
    if any_slow == 1:
        smooth_step(m, d, contacts, m.settings.brief_slip * m.dt)
        for i in range(contacts):
            r = m.joint_rows + 2 * i + 1
            if d.lcp.sliding[i] == 1:
                slip_reversed = row_velocity(d.lcp, d.rows0, r, d.v0) * row_velocity(d.lcp, d.rows1, r, d.v1) <= scalar(
                    0.0
                )
                if slip_reversed or d.mode1[i] == OPEN:
                    d.lcp.sliding[i] = 0
                    d.ratio0[i] = scalar(0.0)


@wp.func
def classify_contacts(m: Model, d: Data):
    """Fill the table with touching contacts, resting ones first; return the numbers of resting and of all contacts."""
    count = narrow_phase(m, d)
    d.max_penetration = max_penetration(d, count)
    failed = d.lcp.failed
    worst = d.lcp.residual
    resting = wp.int32(0)
    for i in range(count):
        if wp.abs(row_velocity(d.lcp, d.rows0, m.joint_rows + 2 * i, d.v0)) <= m.restitution_threshold:
            swap_contacts(d, i, resting)
            resting += 1
    # Too many contacts for events: a fallback step follows.
    before = wp.where(d.overflow == 1, resting, -1)
    while resting < count and resting > before:
        before = resting
        resting = classify_brief_bounces_as_resting(m, d, resting, count)
    d.contacts = resting
    # Failures of trial steps are ignored.
    d.lcp.failed = failed
    d.lcp.residual = worst
    return resting, count


@wp.func
def first_impacting(m: Model, d: Data, resting: int, count: int):
    """Return the first touching contact that approaches and does not rest; −1 if there is none."""
    result = wp.int32(-1)
    for i in range(resting, count):
        r = m.joint_rows + 2 * i
        d.separation[i] = contact_rows(m, d, d.q0, i, d.rows0, r)
        if result < 0 and row_velocity(d.lcp, d.rows0, r, d.v0) < -m.restitution_threshold:
            result = i
    return result


@wp.func
def closed_at_step_start(m: Model, d: Data, i: int):
    """Return 1 if contact i, which impacts as a step begins, closed there, so that its time depends on its separation.

    A contact that penetrates, or is no faster than after a fall over the tolerance, is left over from a fallback step:
    it impacts at once, whatever its separation.
    """
    free_acceleration(m, d, d.q0, d.v0, d.a0)
    max_acceleration = scalar(0.0)
    for k in range(3 * (m.bodies + 1)):
        if k % 3 != 2:
            max_acceleration = wp.max(max_acceleration, wp.abs(d.a0[k]))
    speed = row_velocity(d.lcp, d.rows0, m.joint_rows + 2 * i, d.v0)
    is_fast = speed * speed > scalar(2.0) * max_acceleration * m.tolerance
    return wp.where(is_fast and wp.abs(d.separation[i]) <= scalar(1.0e-3) * m.tolerance, 1, 0)


@wp.func
def prepare_resting_contacts(m: Model, d: Data, resting: int):
    """Prepare the smooth step of the contacts that rest or slide."""
    failed = d.lcp.failed
    worst = d.lcp.residual
    prepare_smooth_step(m, d, resting)
    stop_brief_slip(m, d, resting)
    d.lcp.failed = failed
    d.lcp.residual = worst
