"""The two kernels: a rollout forward, and its adjoint backward; one thread a world, the loop over time inside."""

import warp as wp

from . import scalar
from .adjoint import flow_backward
from .crowd_adjoint import crowd_adjoint
from .data import (
    COARSE,
    CROWD,
    EFFORT,
    FACTORED,
    FAILED,
    FLOW,
    GAP_CLOSED,
    IMPACT,
    ITERATIONS,
    LABOUR,
    LEFT_BAR,
    LONGEST,
    NOTHING,
    OVERFLOW,
    WANTED,
    WORST,
    Parts,
    Workspace,
    WorldParts,
    carve,
    clear,
    copy,
)
from .flow import positions, velocities
from .forces import longest_flow, weigh
from .impact import impact
from .impact_adjoint import event_adjoint, impact_adjoint
from .islands import fall_asleep, scale_of, wake_all
from .remembered import wake_as_noted, write_note
from .resting import prepare_resting, sort_touching
from .sliding import end_sliding, end_sliding_adjoint, start_sliding, start_sliding_adjoint
from .step import load, recall, step, store

# Their functions work on one workspace by reference: inlining them as far as Warp's own flags do takes 1.4 to 1.9
# times as long to compile, and no clear gain in speed was measured.
OPTIONS = {"max_unroll": 6, "cpu_compiler_flags": "-march=native"}


@wp.func
def is_finite(x: wp.array(dtype=scalar), n: wp.int32):
    """Whether the first n numbers are all finite."""
    finite = wp.int32(1)
    for i in range(n):
        if not wp.isfinite(x[i]):
            finite = wp.int32(0)
    return finite


@wp.func
def same_numbers(a: wp.array(dtype=scalar), b: wp.array(dtype=scalar), n: wp.int32):
    """Whether the first n numbers are the same."""
    same = wp.int32(1)
    for i in range(n):
        if a[i] != b[i]:
            same = wp.int32(0)
    return same


@wp.func
def settle(s: Parts, t: Workspace, q: wp.array(dtype=scalar), v: wp.array(dtype=scalar)):
    """Leave a world where it was, at rest, if all that moved in a step that began at (q, v) is rounding.

    What a step does to a world at rest it does again in the next: such steps need not be computed.
    """
    still = wp.int32(1)
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0:
            for k in range(3):
                i = 3 * body + k
                size = scale_of(s, t, i)
                fast = size * (wp.abs(t.v0[i]) + wp.abs(v[3 * slot + k]))
                if not (fast <= s.rest_speed and size * wp.abs(t.q0[i] - q[3 * slot + k]) <= s.rest_speed * s.dt):
                    still = wp.int32(0)
    if still == 1:
        for body in range(s.bodies):
            slot = s.slot[body]
            if slot >= 0:
                for k in range(3):
                    t.q0[3 * body + k] = q[3 * slot + k]
                    t.v0[3 * body + k] = scalar(0.0)


@wp.func
def too_fast(s: Parts, t: Workspace):
    """Whether a body is so fast that rounding hides where it is: it crosses the world 10⁵ times in a step."""
    found = wp.int32(0)
    for body in range(s.bodies):
        speed = wp.max(wp.abs(t.v0[3 * body]), wp.abs(t.v0[3 * body + 1]))
        if speed * s.dt > scalar(1.0e5) * s.size:
            found = wp.int32(1)
    return found


@wp.func
def begin(s: Parts, t: Workspace):
    """Masses for the properties at hand, and nothing counted yet."""
    weigh(s, t)
    t.keep[LONGEST] = longest_flow(s, t)
    t.keep[WANTED] = scalar(0.0)
    t.keep[WORST] = scalar(0.0)
    t.counts[ITERATIONS] = 0
    t.counts[OVERFLOW] = 0
    t.counts[FAILED] = 0
    t.counts[FACTORED] = 0
    for body in range(s.bodies + 1):
        t.sweep[body] = body
        t.group[body] = body
    wake_all(s, t)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def forward(
    first: wp.int32,
    s: WorldParts,
    theta: wp.array2d(dtype=scalar),
    controls: wp.array3d(dtype=scalar),
    real: wp.array2d(dtype=scalar),
    integer: wp.array2d(dtype=wp.int32),
    steps: wp.int32,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    operations: wp.array2d(dtype=wp.int32),
    notes: wp.array3d(dtype=wp.int32),
    residual: wp.array(dtype=scalar),
    iterations: wp.array(dtype=wp.int32),
    bad: wp.array(dtype=wp.int32),
    coarse: wp.array(dtype=wp.int32),
):
    """Fill q and v, (worlds, steps + 1, 3 · moving), from their first states; count the operations of each step.

    The count is negative where the last operation was crowded, and zero from the first bad step on. Steps are coarse
    that were too long for what joints do in them. Each step has a note of what the next one guesses from; where there
    are fewer notes than steps, they are written over in turn.
    """
    world = first + wp.tid()
    t = carve(s, real[world], integer[world])
    t.theta = theta[world]
    begin(s, t)
    n = 3 * (s.bodies + 1)
    load(s, t, q[world, 0], v[world, 0])
    failed = wp.int32(-1)
    t.counts[COARSE] = 0
    coarse[world] = -1
    asleep = wp.int32(0)
    for k in range(steps):
        if failed < 0 and s.stop[0] == 0:
            if k > 0:
                if same_numbers(controls[world, k], t.control, 3 * s.moving + s.motors) == 0:
                    asleep = wp.int32(0)
                    wake_all(s, t)
            t.control = controls[world, k]
            t.known = notes[world, k % notes.shape[1]]
            if asleep == 0:
                t.counts[FAILED] = 0
                t.kept[0] = 0
                operations[world, k] = 0
                sound = is_finite(t.q0, n) * is_finite(t.v0, n) * is_finite(t.control, 3 * s.moving + s.motors)
                if sound == 1 and too_fast(s, t) == 0:
                    start_sliding(s, t)
                    operations[world, k] = step(s, t, 0)
                    end_sliding(s, t)
                    write_note(s, t, notes[world, (k + 1) % notes.shape[1]])
                    settle(s, t, q[world, k], v[world, k])
                    if operations[world, k] == -1:
                        fall_asleep(s, t, q[world, k], v[world, k])
                    else:
                        wake_all(s, t)
                else:
                    t.counts[FAILED] = 1
                if is_finite(t.q0, n) * is_finite(t.v0, n) == 0 or t.counts[FAILED] == 1:
                    failed = k + 1
                    operations[world, k] = 0
                    for i in range(n):
                        t.q0[i] = scalar(wp.nan)
                        t.v0[i] = scalar(wp.nan)
            else:
                operations[world, k] = operations[world, k - 1]
                for i in range(notes.shape[2]):
                    notes[world, (k + 1) % notes.shape[1], i] = notes[world, k % notes.shape[1], i]
        store(s, t, q[world, k + 1], v[world, k + 1])
        if t.counts[COARSE] == 1 and coarse[world] < 0:
            coarse[world] = k + 1
        if failed < 0:
            asleep = same_numbers(q[world, k], q[world, k + 1], 3 * s.moving)
            asleep = asleep * same_numbers(v[world, k], v[world, k + 1], 3 * s.moving)
    residual[world] = t.keep[WORST]
    iterations[world] = t.counts[ITERATIONS]
    bad[world] = failed


@wp.func
def add_seed(s: Parts, t: Workspace, q_bar: wp.array(dtype=scalar), v_bar: wp.array(dtype=scalar)):
    """Add the cotangents of a stored state to the seeds."""
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0:
            for k in range(3):
                t.seed_q[3 * body + k] = t.seed_q[3 * body + k] + q_bar[3 * slot + k]
                t.seed_v[3 * body + k] = t.seed_v[3 * body + k] + v_bar[3 * slot + k]


@wp.func
def undo(s: Parts, t: Workspace, kind: wp.int32, event: wp.int32, about: wp.int32, h: scalar):
    """Do one operation again, from the start at hand, and replace the seeds by their cotangents before it."""
    t.counts[EFFORT] = 0
    t.counts[LABOUR] = 0
    if kind == CROWD:
        crowd_adjoint(s, t, h, event)
    resting = wp.int32(0)
    touching = wp.int32(0)
    if kind != CROWD:
        resting, touching = sort_touching(s, t)
    if kind == FLOW:
        prepare_resting(s, t, resting)
        positions(s, t, resting, h)
        velocities(s, t, resting, h)
        flow_backward(s, t, resting, h, event, about)
    elif kind == IMPACT:
        impact(s, t, touching)
        impact_adjoint(s, t, touching)
        if event == GAP_CLOSED:
            event_adjoint(s, t, about)
    n = 3 * (s.bodies + 1)
    copy(t.q0_bar, t.seed_q, n)
    copy(t.v0_bar, t.seed_v, n)


@wp.kernel(enable_backward=False, module="unique", module_options=OPTIONS)
def backward(
    first: wp.int32,
    s: WorldParts,
    theta: wp.array2d(dtype=scalar),
    controls: wp.array3d(dtype=scalar),
    real: wp.array2d(dtype=scalar),
    integer: wp.array2d(dtype=wp.int32),
    steps: wp.int32,
    q: wp.array3d(dtype=scalar),
    v: wp.array3d(dtype=scalar),
    operations: wp.array2d(dtype=wp.int32),
    notes: wp.array3d(dtype=wp.int32),
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
        count = operations[world, k]
        if s.stop[0] != 0:
            count = 0
        if count != 0:
            add_seed(s, t, q_bar[world, k + 1], v_bar[world, k + 1])
            end_sliding_adjoint(s, t, v[world, k + 1])
        t.keep[LEFT_BAR] = scalar(0.0)
        load(s, t, q[world, k], v[world, k])
        start_sliding(s, t)
        t.known = notes[world, k]
        wake_as_noted(s, t, notes[world, k + 1])
        if count == 1:
            undo(s, t, FLOW, NOTHING, 0, s.dt)
        elif count == -1:
            undo(s, t, CROWD, NOTHING, 0, s.dt)
        elif count != 0:
            step(s, t, 1)
            for done in range(wp.abs(count)):
                kind, event, about, h = recall(s, t, wp.abs(count) - 1 - done)
                t.known = notes[world, k]
                undo(s, t, kind, event, about, h)
        if count != 0:
            start_sliding_adjoint(s, t, v[world, k])
    add_seed(s, t, q_bar[world, 0], v_bar[world, 0])
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0:
            for k in range(3):
                q_start_bar[world, 3 * slot + k] = t.seed_q[3 * body + k]
                v_start_bar[world, 3 * slot + k] = t.seed_v[3 * body + k]
        else:
            # A static body is where its properties say, from the first step to the last.
            for k in range(3):
                theta_bar[world, s.static_pose + 3 * s.static_slot[body] + k] = t.seed_q[3 * body + k]
