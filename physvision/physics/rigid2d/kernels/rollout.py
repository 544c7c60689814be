"""Kernels of a rollout and of its adjoint: one thread a world, the loop over time inside."""

import warp as wp

from physvision.physics.lcp.kernels.problem import carve_problem, clear, copy

from .adjoint import smooth_step_backward
from .data import CONTACT_CLOSED, FALLBACK_STEP, IMPACT, NO_EVENT, SMOOTH_STEP, Data, Model, ModelStruct, bind_workspace
from .fallback_adjoint import fallback_step_adjoint
from .forces import max_stable_duration, set_inverse_masses
from .impact import impact
from .impact_adjoint import event_adjoint, impact_adjoint
from .precision import Array1d, Array2d, Array3d, IntArray1d, IntArray2d, IntArray3d, scalar
from .resting_contacts import classify_contacts, prepare_resting_contacts
from .sleeping import length_scale, put_to_sleep, wake_all
from .sliding import end_sliding, end_sliding_adjoint, start_sliding, start_sliding_adjoint
from .smooth_step import position_stage, velocity_stage
from .step import load_state, read_operation, step, store_state
from .warm_start import restore_sleep_state, write_warm_start

# Without Warp's own inlining flags the kernels compile 1.4 to 1.9 times as fast, at the same measured speed.
OPTIONS = {"max_unroll": 6, "cpu_compiler_flags": "-march=native"}


@wp.func
def is_finite(x: Array1d, n: int):
    """Return 1 if the first n numbers are all finite."""
    finite = wp.int32(1)
    for i in range(n):
        if not wp.isfinite(x[i]):
            finite = wp.int32(0)
    return finite


@wp.func
def arrays_equal(a: Array1d, b: Array1d, n: int):
    """Return 1 if the first n numbers are equal."""
    equal = wp.int32(1)
    for i in range(n):
        if a[i] != b[i]:
            equal = wp.int32(0)
    return equal


@wp.func
def snap_to_rest(m: Model, d: Data, q: Array1d, v: Array1d):
    """Restore a world to the start (q, v) of its step, at rest, if it moved by rounding alone.

    A world at rest repeats its step: such steps need not be computed.
    """
    at_rest = wp.int32(1)
    for body in range(m.bodies):
        slot = m.state_index[body]
        if slot >= 0:
            for k in range(3):
                i = 3 * body + k
                size = length_scale(m, d, i)
                fast = size * (wp.abs(d.v0[i]) + wp.abs(v[3 * slot + k]))
                if not (
                    fast <= m.restitution_threshold
                    and size * wp.abs(d.q0[i] - q[3 * slot + k]) <= m.restitution_threshold * m.dt
                ):
                    at_rest = wp.int32(0)
    if at_rest == 1:
        for body in range(m.bodies):
            slot = m.state_index[body]
            if slot >= 0:
                for k in range(3):
                    d.q0[3 * body + k] = q[3 * slot + k]
                    d.v0[3 * body + k] = scalar(0.0)


@wp.func
def is_too_fast(m: Model, d: Data):
    """Return 1 if a body is so fast that rounding hides its position: 10⁵ times the extent in a step."""
    result = wp.int32(0)
    for body in range(m.bodies):
        speed = wp.max(wp.abs(d.v0[3 * body]), wp.abs(d.v0[3 * body + 1]))
        if speed * m.dt > scalar(1.0e5) * m.length_scale:
            result = wp.int32(1)
    return result


@wp.func
def initialize(m: Model, d: Data):
    """Set masses from the properties at hand, wake all bodies, and reset the solver."""
    d.lcp = carve_problem(
        m.solver,
        m.bodies,
        m.joint_rows,
        m.joint_band,
        m.max_speculative_contacts,
        m.max_contacts,
        d.lcp_real,
        d.lcp_integer,
    )
    d.lcp.work_budget = m.work_budget
    d.lcp.restitution_threshold = m.restitution_threshold
    set_inverse_masses(m, d)
    d.max_duration = max_stable_duration(m, d)
    d.property_mask = scalar(0.0)
    d.overflow = 0
    for body in range(m.bodies + 1):
        d.sweep_order[body] = body
        d.sleep_group[body] = body
    wake_all(m, d)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def forward(
    first: int,
    m: ModelStruct,
    theta: Array2d,
    controls: Array3d,
    real: Array2d,
    integer: IntArray2d,
    steps: int,
    q: Array3d,
    v: Array3d,
    operations: IntArray2d,
    warm_starts: IntArray3d,
    residual: Array1d,
    iterations: IntArray1d,
    failed_steps: IntArray1d,
    underresolved: IntArray1d,
):
    """Fill q and v, (worlds, steps + 1, 3 · moving), from their first states; count the operations of each step.

    The count is negative where the last operation fell back, and zero from the first failed step on. Underresolved
    steps are too long for the motion of their joints. Each step has a warm start for the next; where there are fewer of
    those than steps, they are overwritten in turn.
    """
    world = first + wp.tid()
    d = bind_workspace(m, real[world], integer[world])
    d.theta = theta[world]
    initialize(m, d)
    n = 3 * (m.bodies + 1)
    load_state(m, d, q[world, 0], v[world, 0])
    failed_step = wp.int32(-1)
    d.underresolved = 0
    underresolved[world] = -1
    unchanged = wp.int32(0)
    for k in range(steps):
        if failed_step < 0 and m.stop[0] == 0:
            if k > 0:
                if arrays_equal(controls[world, k], d.control, 3 * m.num_moving_bodies + m.motors) == 0:
                    unchanged = wp.int32(0)
                    wake_all(m, d)
            d.control = controls[world, k]
            d.previous_modes = warm_starts[world, k % warm_starts.shape[1]]
            if unchanged == 0:
                d.lcp.failed = 0
                d.stored_modes[0] = 0
                operations[world, k] = 0
                valid = (
                    is_finite(d.q0, n) * is_finite(d.v0, n) * is_finite(d.control, 3 * m.num_moving_bodies + m.motors)
                )
                if valid == 1 and is_too_fast(m, d) == 0:
                    start_sliding(m, d)
                    operations[world, k] = step(m, d, 0)
                    end_sliding(m, d)
                    write_warm_start(m, d, warm_starts[world, (k + 1) % warm_starts.shape[1]])
                    snap_to_rest(m, d, q[world, k], v[world, k])
                    if operations[world, k] == -1:
                        put_to_sleep(m, d, q[world, k], v[world, k])
                    else:
                        wake_all(m, d)
                else:
                    d.lcp.failed = 1
                if is_finite(d.q0, n) * is_finite(d.v0, n) == 0 or d.lcp.failed == 1:
                    failed_step = k + 1
                    operations[world, k] = 0
                    for i in range(n):
                        d.q0[i] = scalar(wp.nan)
                        d.v0[i] = scalar(wp.nan)
            else:
                operations[world, k] = operations[world, k - 1]
                for i in range(warm_starts.shape[2]):
                    warm_starts[world, (k + 1) % warm_starts.shape[1], i] = warm_starts[
                        world, k % warm_starts.shape[1], i
                    ]
        store_state(m, d, q[world, k + 1], v[world, k + 1])
        if d.underresolved == 1 and underresolved[world] < 0:
            underresolved[world] = k + 1
        if failed_step < 0:
            unchanged = arrays_equal(q[world, k], q[world, k + 1], 3 * m.num_moving_bodies)
            unchanged = unchanged * arrays_equal(v[world, k], v[world, k + 1], 3 * m.num_moving_bodies)
    residual[world] = d.lcp.residual
    iterations[world] = d.lcp.iterations
    failed_steps[world] = failed_step


@wp.func
def add_seed(m: Model, d: Data, q_bar: Array1d, v_bar: Array1d):
    """Add the cotangents of a stored state to the seeds."""
    for body in range(m.bodies):
        slot = m.state_index[body]
        if slot >= 0:
            for k in range(3):
                d.seed_q[3 * body + k] = d.seed_q[3 * body + k] + q_bar[3 * slot + k]
                d.seed_v[3 * body + k] = d.seed_v[3 * body + k] + v_bar[3 * slot + k]


@wp.func
def operation_adjoint(m: Model, d: Data, kind: int, event: int, contact: int, h: scalar):
    """Repeat one operation from the start at hand, and replace the seeds by their cotangents before it."""
    d.lcp.work = 0
    d.lcp.refinement_work = 0
    if kind == FALLBACK_STEP:
        fallback_step_adjoint(m, d, h, event)
    resting = wp.int32(0)
    touching_contacts = wp.int32(0)
    if kind != FALLBACK_STEP:
        resting, touching_contacts = classify_contacts(m, d)
    if kind == SMOOTH_STEP:
        prepare_resting_contacts(m, d, resting)
        position_stage(m, d, resting, h)
        velocity_stage(m, d, resting, h)
        smooth_step_backward(m, d, resting, h, event, contact)
    elif kind == IMPACT:
        impact(m, d, touching_contacts)
        impact_adjoint(m, d, touching_contacts)
        if event == CONTACT_CLOSED:
            event_adjoint(m, d, contact)
    n = 3 * (m.bodies + 1)
    copy(d.q0_bar, d.seed_q, n)
    copy(d.v0_bar, d.seed_v, n)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def backward(
    first: int,
    m: ModelStruct,
    theta: Array2d,
    controls: Array3d,
    real: Array2d,
    integer: IntArray2d,
    steps: int,
    q: Array3d,
    v: Array3d,
    operations: IntArray2d,
    warm_starts: IntArray3d,
    q_bar: Array3d,
    v_bar: Array3d,
    q_start_bar: Array2d,
    v_start_bar: Array2d,
    controls_bar: Array3d,
    theta_bar: Array2d,
):
    """Walk the rollout in reverse: repeat each step, then apply the adjoints of its operations one by one."""
    world = first + wp.tid()
    d = bind_workspace(m, real[world], integer[world])
    d.theta = theta[world]
    d.theta_bar = theta_bar[world]
    initialize(m, d)
    n = 3 * (m.bodies + 1)
    clear(d.seed_q, n)
    clear(d.seed_v, n)
    for back in range(steps):
        k = steps - 1 - back
        d.control = controls[world, k]
        d.control_bar = controls_bar[world, k]
        count = wp.where(m.stop[0] != 0, 0, operations[world, k])
        if count != 0:
            add_seed(m, d, q_bar[world, k + 1], v_bar[world, k + 1])
            end_sliding_adjoint(m, d, v[world, k + 1])
        d.time_left_bar = scalar(0.0)
        load_state(m, d, q[world, k], v[world, k])
        start_sliding(m, d)
        d.previous_modes = warm_starts[world, k]
        restore_sleep_state(m, d, warm_starts[world, k + 1])
        if count == 1:
            operation_adjoint(m, d, SMOOTH_STEP, NO_EVENT, 0, m.dt)
        elif count == -1:
            operation_adjoint(m, d, FALLBACK_STEP, NO_EVENT, 0, m.dt)
        elif count != 0:
            step(m, d, 1)
            for index in range(wp.abs(count)):
                kind, event, contact, h = read_operation(m, d, wp.abs(count) - 1 - index)
                d.previous_modes = warm_starts[world, k]
                operation_adjoint(m, d, kind, event, contact, h)
        if count != 0:
            start_sliding_adjoint(m, d, v[world, k])
    add_seed(m, d, q_bar[world, 0], v_bar[world, 0])
    for body in range(m.bodies):
        slot = m.state_index[body]
        if slot >= 0:
            for k in range(3):
                q_start_bar[world, 3 * slot + k] = d.seed_q[3 * body + k]
                v_start_bar[world, 3 * slot + k] = d.seed_v[3 * body + k]
        else:
            # A static body is where its properties say, from the first step to the last.
            for k in range(3):
                theta_bar[world, m.static_pose + 3 * m.static_index[body] + k] = d.seed_q[3 * body + k]
