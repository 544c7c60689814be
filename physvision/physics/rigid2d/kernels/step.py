"""One step of the fixed time grid: smooth steps and impacts in turn until its time is used up, with a log of them."""

import warp as wp

from physvision.physics.lcp.kernels.contact_solver import charge_work, is_work_exhausted
from physvision.physics.lcp.kernels.problem import copy
from physvision.physics.lcp.kernels.rows import row_body, row_velocity

from .data import CONTACT_CLOSED, FALLBACK_STEP, IMPACT, NO_EVENT, SMOOTH_STEP, STEP_CUT, Data, Model
from .events import step_to_event
from .fallback_step import fallback_step
from .impact import impact
from .joints import joint_row
from .narrow_phase import max_penetration, narrow_phase
from .precision import Array1d, scalar
from .resting_contacts import classify_contacts, closed_at_step_start, first_impacting, prepare_resting_contacts
from .sleeping import wake_all, wake_near


@wp.func
def load_state(m: Model, d: Data, q: Array1d, v: Array1d):
    """Set the start from a state of the moving bodies; static bodies and the world have their poses."""
    for body in range(m.bodies + 1):
        for k in range(3):
            i = 3 * body + k
            d.v0[i] = scalar(0.0)
            d.q0[i] = scalar(0.0)
            if body < m.bodies:
                slot = m.state_index[body]
                if slot >= 0:
                    d.q0[i] = q[3 * slot + k]
                    d.v0[i] = v[3 * slot + k]
                else:
                    d.q0[i] = d.theta[m.static_pose + 3 * m.static_index[body] + k]


@wp.func
def store_state(m: Model, d: Data, q: Array1d, v: Array1d):
    """Write the state of the moving bodies at the start."""
    for body in range(m.bodies):
        slot = m.state_index[body]
        if slot >= 0:
            for k in range(3):
                q[3 * slot + k] = d.q0[3 * body + k]
                v[3 * slot + k] = d.v0[3 * body + k]


@wp.func
def log_operation(m: Model, d: Data, index: int, kind: int, event: int, contact: int, h: scalar, time_left: scalar):
    """Log the operation `index`: start, duration, the time left before it, its ending event and contact."""
    width = 6 * m.num_moving_bodies + 8
    store_state(
        m,
        d,
        d.log_state[index * width : index * width + 3 * m.num_moving_bodies],
        d.log_state[index * width + 3 * m.num_moving_bodies : (index + 1) * width],
    )
    base = index * width + 6 * m.num_moving_bodies
    d.log_state[base] = h
    d.log_state[base + 1] = time_left
    for k in range(6):
        d.log_state[base + 2 + k] = d.contact_points[6 * m.max_contacts + k]
    d.log_kind[5 * index] = kind + 4 * event
    d.log_kind[5 * index + 1] = contact
    if event == CONTACT_CLOSED and kind == SMOOTH_STEP:
        # Type, bodies and features of the contact, packed into the rest of the line.
        line = 5 * m.max_contacts
        d.log_kind[5 * index + 1] = d.contact_features[line]
        d.log_kind[5 * index + 2] = d.contact_features[line + 1]
        d.log_kind[5 * index + 3] = d.contact_features[line + 2]
        d.log_kind[5 * index + 4] = d.contact_features[line + 3] * 65536 + d.contact_features[line + 4]


@wp.func
def read_operation(m: Model, d: Data, index: int):
    """Set the start from the log; return the operation's type, ending event, contact and duration."""
    width = 6 * m.num_moving_bodies + 8
    load_state(
        m,
        d,
        d.log_state[index * width : index * width + 3 * m.num_moving_bodies],
        d.log_state[index * width + 3 * m.num_moving_bodies : (index + 1) * width],
    )
    base = index * width + 6 * m.num_moving_bodies
    for k in range(6):
        d.contact_points[6 * m.max_contacts + k] = d.log_state[base + 2 + k]
    d.time_left = d.log_state[base + 1]
    kind = d.log_kind[5 * index] % 4
    event = d.log_kind[5 * index] // 4
    contact = d.log_kind[5 * index + 1]
    if event == CONTACT_CLOSED and kind == SMOOTH_STEP:
        line = 5 * m.max_contacts
        d.contact_features[line] = d.log_kind[5 * index + 1]
        d.contact_features[line + 1] = d.log_kind[5 * index + 2]
        d.contact_features[line + 2] = d.log_kind[5 * index + 3]
        d.contact_features[line + 3] = d.log_kind[5 * index + 4] // 65536
        d.contact_features[line + 4] = d.log_kind[5 * index + 4] % 65536
    return kind, event, contact, d.log_state[base]


@wp.func
def max_angular_velocity(m: Model, d: Data):
    """Return the fastest angular velocity at the start of a world with joints, whose rows turn with the bodies."""
    max_rate = scalar(0.0)
    if m.joint_rows > 0:
        for body in range(m.bodies):
            max_rate = wp.max(max_rate, wp.abs(d.v0[3 * body + 2]))
    return max_rate


@wp.func
def run_fallback(m: Model, d: Data, count: int, left: scalar, residual: scalar, logged: int):
    """Use up the time left in one fallback step, or the part in which no jointed body turns far."""
    h = left
    event = int(NO_EVENT)
    if m.joint_rows > 0 and left > scalar(0.0):
        parts = wp.ceil(
            left
            * wp.min(max_angular_velocity(m, d) / m.settings.max_rotation, scalar(m.settings.max_fallback_parts) / m.dt)
        )
        if parts > scalar(1.5):
            event = STEP_CUT
            h = left / parts
    d.lcp.failed = 0
    d.overflow = 0
    d.lcp.residual = residual
    if logged == 1:
        log_operation(m, d, count, FALLBACK_STEP, event, 0, h, left)
    fallback_step(m, d, h, m.settings.max_corrections)
    return h


@wp.func
def gains_energy(m: Model, d: Data, resting: int):
    """Return 1 if the smooth step gained energy that no force explains: contacts dissipate, joints conserve."""
    before = scalar(0.0)
    after = scalar(0.0)
    work = scalar(0.0)
    # The energy of resting bodies is rounding, any fraction of which may change.
    rounding = scalar(0.0)
    for k in range(3 * (m.bodies + 1)):
        if d.lcp.inverse_mass[k] > scalar(0.0):
            rounding += (
                scalar(0.5) * m.restitution_threshold * m.restitution_threshold / d.lcp.inverse_mass[3 * (k // 3)]
            )
            before += scalar(0.5) * d.v0[k] * d.v0[k] / d.lcp.inverse_mass[k]
            after += scalar(0.5) * d.v1[k] * d.v1[k] / d.lcp.inverse_mass[k]
            work += scalar(0.5) * (d.q1[k] - d.q0[k]) * (d.a0[k] + d.a1[k]) / d.lcp.inverse_mass[k]
    fraction = wp.where(m.joint_rows > 0, scalar(100.0) * m.settings.max_energy_gain, m.settings.max_energy_gain)
    change = after - before - work
    if resting == 0:
        fraction = m.settings.max_energy_error
        change = wp.abs(change)
        for r in range(m.joint_rows):
            if wp.abs(joint_row(m, d, d.q0, r, d.rows0)) > m.tolerance:
                # Violated joints, such as given ones, are corrected at any energy.
                change = scalar(0.0)
    explained = change <= rounding + fraction * (before + wp.abs(work))
    return wp.where(m.kinematic_bodies == 0 and not explained, 1, 0)


@wp.func
def exact_smooth_step(m: Model, d: Data, resting: int, left: scalar):
    """Move to the next event; halve the step where joints and contacts do not hold all along it.

    The step is prepared. A step without contact that stays inaccurate is accepted: nothing better is known.
    """
    max_duration = left / wp.max(
        wp.ceil(left * wp.max(scalar(1.0) / d.max_duration, max_angular_velocity(m, d) / m.settings.max_rotation)),
        scalar(1.0),
    )
    h = left
    residual = d.lcp.residual
    event = int(NO_EVENT)
    contact = wp.int32(0)
    running = wp.int32(1)
    while running == 1:
        charge_work(d.lcp, resting)
        h, event, contact = step_to_event(m, d, resting, max_duration)
        running = wp.int32(0)
        inaccurate = d.lcp.failed
        if inaccurate == 0 and (resting > 0 or max_angular_velocity(m, d) * h > scalar(0.1) * m.settings.max_rotation):
            inaccurate = gains_energy(m, d, resting)
        if inaccurate == 1 and max_duration > left * m.settings.min_part and is_work_exhausted(d.lcp) == 0:
            d.lcp.failed = 0
            d.lcp.residual = residual
            max_duration = max_duration * scalar(0.5)
            prepare_resting_contacts(m, d, resting)
            running = wp.int32(1)
        elif inaccurate == 1 and resting > 0:
            d.lcp.failed = 1
        elif inaccurate == 1 and d.lcp.failed == 0:
            d.underresolved = 1
    if event == NO_EVENT and h < left:
        event = STEP_CUT
    return h, event, contact


@wp.func
def joints_violated(m: Model, d: Data):
    """Return 1 if the velocities at the start violate joints, whose rows there are at hand."""
    error = scalar(0.0)
    max_velocity = scalar(0.0)
    for r in range(m.joint_rows):
        error = wp.max(error, wp.abs(row_velocity(d.lcp, d.rows0, r, d.v0)))
        for k in range(6):
            i = 3 * row_body(d.lcp, r, k // 3) + k % 3
            max_velocity = wp.max(max_velocity, wp.abs(d.rows0[6 * r + k] * d.v0[i]))
    tolerance = wp.max(scalar(100.0) * m.restitution_threshold, scalar(1.0e-5) * max_velocity)
    return wp.where(error > tolerance, 1, 0)


@wp.func
def exact_operation(m: Model, d: Data, resting: int, touching_contacts: int, count: int, left: scalar, logged: int):
    """Do the impact that is due, or else move to the next event; return the duration."""
    h = scalar(0.0)
    impacting = first_impacting(m, d, resting, touching_contacts)
    corrects_joints = wp.int32(0)
    if impacting < 0:
        prepare_resting_contacts(m, d, resting)
        if count == 0:
            # An impact corrects velocities that violate joints, such as given ones.
            corrects_joints = joints_violated(m, d)
    if impacting >= 0 or corrects_joints == 1:
        charge_work(d.lcp, touching_contacts)
        if logged == 1:
            # An impact at the start of a step may have closed there: it ends a smooth step of no duration.
            event = int(NO_EVENT)
            if count == 0 and corrects_joints == 0:
                if closed_at_step_start(m, d, impacting) == 1:
                    event = CONTACT_CLOSED
            log_operation(m, d, count, IMPACT, event, impacting, scalar(0.0), left)
        impact(m, d, touching_contacts)
        copy(d.q0, d.q1, 3 * (m.bodies + 1))
    else:
        h, event, contact = exact_smooth_step(m, d, resting, left)
        if logged == 1:
            log_operation(m, d, count, SMOOTH_STEP, event, contact, h, left)
    return h


@wp.func
def step_awake(m: Model, d: Data):
    """Do a fallback step of the awake bodies; return 1 if that completes the step, else wake all."""
    completed = wp.int32(0)
    residual = d.lcp.residual
    wake_near(m, d, m.dt)
    if d.sleeping_bodies > 0:
        h = run_fallback(m, d, 0, m.dt, residual, 0)
        if h == m.dt and d.sleeping_bodies > 0 and d.lcp.failed == 0:
            completed = wp.int32(1)
            copy(d.q1, d.q0, 3 * (m.bodies + 1))
            copy(d.v1, d.v0, 3 * (m.bodies + 1))
    if completed == 0:
        d.lcp.failed = 0
        d.lcp.residual = residual
        wake_all(m, d)
    return completed


@wp.func
def step_all(m: Model, d: Data, logged: int):
    """Advance q0, v0 by one step of the grid with every body awake; return what `step` does."""
    n = 3 * (m.bodies + 1)
    left = m.dt
    count = wp.int32(0)
    fallback = wp.int32(0)
    d.lcp.work = 0
    d.lcp.refinement_work = 0
    d.overflow = 0
    initial_penetration = scalar(0.0)
    max_resting = wp.int32(0)
    while left > scalar(0.0):
        h = left
        residual = d.lcp.residual
        if fallback == 0:
            resting, touching_contacts = classify_contacts(m, d)
            max_resting = wp.max(max_resting, resting)
            if count == 0:
                initial_penetration = d.max_penetration
            if (
                d.overflow == 1
                or count >= m.max_operations - m.settings.max_fallback_parts - 2
                or is_work_exhausted(d.lcp) == 1
            ):
                fallback = wp.int32(1)
            else:
                h = exact_operation(m, d, resting, touching_contacts, count, left, logged)
                if d.lcp.failed == 1 or is_work_exhausted(d.lcp) == 1:
                    fallback = wp.int32(1)
        if fallback == 1:
            h = run_fallback(m, d, count, left, residual, logged)
        copy(d.q1, d.q0, n)
        copy(d.v1, d.v0, n)
        left -= h
        count += 1
    if fallback == 0 and max_resting > 0:
        touching_contacts = narrow_phase(m, d)
        if d.overflow == 1 or max_penetration(d, touching_contacts) > wp.max(
            scalar(5.0) * m.tolerance, scalar(1.01) * initial_penetration
        ):
            # A corner left its edge, or rolled round it, on the way: penetrations are corrected.
            fallback = wp.int32(1)
            run_fallback(m, d, count, scalar(0.0), d.lcp.residual, logged)
            copy(d.q1, d.q0, n)
            count += 1
    if fallback == 1:
        count = -count
        if m.max_contacts == 1:
            # Nothing can touch, nor reach a limit: the joints turn too fast.
            d.underresolved = 1
    return count


@wp.func
def step(m: Model, d: Data, logged: int):
    """Advance q0, v0 by one step of the grid; return the number of operations, negative if the last fell back."""
    count = wp.int32(0)
    if d.sleeping_bodies > 0:
        count = -step_awake(m, d)
    if count == 0:
        count = step_all(m, d, logged)
    return count
