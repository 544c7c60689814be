"""The two kernels: a rollout forward, and its adjoint backward; one thread a world, the loop over time inside."""

import warp as wp

from . import scalar
from .adjoint import flow_backward
from .data import (
    FAILED,
    FLOW,
    GAP_CLOSED,
    ITERATIONS,
    LEFT_BAR,
    NOTHING,
    OVERFLOW,
    WANTED,
    WORST,
    Scene,
    Work,
    carve,
    clear,
    copy,
)
from .flow import positions, velocities
from .forces import weigh
from .impact import impact
from .impact_adjoint import event_adjoint, impact_adjoint
from .resting import prepare_resting, sort_touching
from .step import load, recall, step, store


@wp.func
def is_finite(x: wp.array(dtype=scalar), n: wp.int32):
    """Whether the first n numbers are all finite."""
    finite = wp.int32(1)
    for i in range(n):
        if not wp.isfinite(x[i]):
            finite = wp.int32(0)
    return finite


@wp.func
def begin(s: Scene, t: Work):
    """Masses for the properties at hand, and nothing counted yet."""
    weigh(s, t)
    t.keep[WANTED] = scalar(0.0)
    t.keep[WORST] = scalar(0.0)
    t.counts[ITERATIONS] = 0
    t.counts[OVERFLOW] = 0
    t.counts[FAILED] = 0


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def forward(
    first: wp.int32,
    s: Scene,
    theta: wp.array2d(dtype=scalar),
    controls: wp.array3d(dtype=scalar),
    real: wp.array2d(dtype=scalar),
    integer: wp.array2d(dtype=wp.int32),
    steps: wp.int32,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    operations: wp.array2d(dtype=wp.int32),
    residual: wp.array(dtype=scalar),
    iterations: wp.array(dtype=wp.int32),
    bad: wp.array(dtype=wp.int32),
):
    """Fill q and v, (worlds, steps + 1, 3 · moving), from their first states; count the operations of each step."""
    world = first + wp.tid()
    t = carve(s, real[world], integer[world])
    t.theta = theta[world]
    begin(s, t)
    n = 3 * (s.bodies + 1)
    load(s, t, q[world, 0], v[world, 0])
    failed = wp.int32(-1)
    for k in range(steps):
        t.control = controls[world, k]
        t.counts[FAILED] = 0
        count = wp.int32(0)
        finite = is_finite(t.q0, n) * is_finite(t.v0, n) * is_finite(t.control, 3 * s.moving + s.motors)
        if finite == 1:
            count = step(s, t, 0)
            finite = is_finite(t.q0, n) * is_finite(t.v0, n)
        else:
            for i in range(n):
                t.q0[i] = scalar(wp.nan)
        store(s, t, q[world, k + 1], v[world, k + 1])
        operations[world, k] = count
        if (finite == 0 or t.counts[FAILED] == 1) and failed < 0:
            failed = k + 1
    residual[world] = t.keep[WORST]
    iterations[world] = t.counts[ITERATIONS]
    bad[world] = failed


@wp.func
def add_seed(s: Scene, t: Work, q_bar: wp.array(dtype=scalar), v_bar: wp.array(dtype=scalar)):
    """Add the cotangents of a stored state to the seeds."""
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0:
            for k in range(3):
                t.seed_q[3 * body + k] = t.seed_q[3 * body + k] + q_bar[3 * slot + k]
                t.seed_v[3 * body + k] = t.seed_v[3 * body + k] + v_bar[3 * slot + k]


@wp.func
def undo(s: Scene, t: Work, kind: wp.int32, event: wp.int32, about: wp.int32, h: scalar):
    """Do one operation again, from the start at hand, and replace the seeds by their cotangents before it."""
    resting, touching = sort_touching(s, t)
    if kind == FLOW:
        prepare_resting(s, t, resting)
        positions(s, t, resting, h)
        velocities(s, t, resting, h)
        flow_backward(s, t, resting, h, event, about)
    else:
        impact(s, t, touching)
        impact_adjoint(s, t, touching)
        if event == GAP_CLOSED:
            event_adjoint(s, t, about)
    n = 3 * (s.bodies + 1)
    copy(t.q0_bar, t.seed_q, n)
    copy(t.v0_bar, t.seed_v, n)


@wp.kernel(enable_backward=False, module="unique", module_options={"max_unroll": 6})
def backward(
    first: wp.int32,
    s: Scene,
    theta: wp.array2d(dtype=scalar),
    controls: wp.array3d(dtype=scalar),
    real: wp.array2d(dtype=scalar),
    integer: wp.array2d(dtype=wp.int32),
    steps: wp.int32,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    operations: wp.array2d(dtype=wp.int32),
    q_bar: wp.array3d(dtype=scalar),
    v_bar: wp.array3d(dtype=scalar),
    q_start_bar: wp.array2d(dtype=scalar),
    v_start_bar: wp.array2d(dtype=scalar),
    controls_bar: wp.array3d(dtype=scalar),
    theta_bar: wp.array2d(dtype=scalar),
):
    """Walk the rollout in reverse: each step is done again, then its operations are undone one by one."""
    world = first + wp.tid()
    t = carve(s, real[world], integer[world])
    t.theta = theta[world]
    t.theta_bar = theta_bar[world]
    begin(s, t)
    n = 3 * (s.bodies + 1)
    clear(t.seed_q, n)
    clear(t.seed_v, n)
    for back in range(steps):
        k = steps - 1 - back
        t.control = controls[world, k]
        t.control_bar = controls_bar[world, k]
        add_seed(s, t, q_bar[world, k + 1], v_bar[world, k + 1])
        t.keep[LEFT_BAR] = scalar(0.0)
        count = operations[world, k]
        load(s, t, q[world, k], v[world, k])
        if count == 1:
            undo(s, t, FLOW, NOTHING, 0, s.dt)
        elif count > 1:
            step(s, t, 1)
            for done in range(count):
                kind, event, about, h = recall(s, t, count - 1 - done)
                undo(s, t, kind, event, about, h)
    add_seed(s, t, q_bar[world, 0], v_bar[world, 0])
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0:
            for k in range(3):
                q_start_bar[world, 3 * slot + k] = t.seed_q[3 * body + k]
                v_start_bar[world, 3 * slot + k] = t.seed_v[3 * body + k]
