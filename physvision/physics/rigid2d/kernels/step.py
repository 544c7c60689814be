"""One step of the fixed grid: flows and impacts in turn until its time is used up, with a log of them."""

import warp as wp

from . import scalar
from .complementarity import charge, is_spent
from .crowd import CORRECTIONS, crowd
from .data import (
    ASLEEP,
    COARSE,
    CROWD,
    CUT,
    DEEPEST,
    EFFORT,
    FAILED,
    FLOW,
    GAP_CLOSED,
    IMPACT,
    LABOUR,
    LEFT,
    LONGEST,
    NOTHING,
    OVERFLOW,
    WORST,
    Parts,
    Workspace,
    copy,
)
from .detect import deepest, find_touching
from .events import flow
from .geometry import row_speed
from .impact import impact
from .islands import wake_all, wake_what_is_near
from .joints import joint_row
from .resting import closed_on_the_grid, first_striking, prepare_resting, sort_touching

# A crowded step of jointed bodies is done in so many parts at most, in each of which no body turns by more than this.
CROWDED_PARTS = wp.constant(16)
FARTHEST_TURN = wp.constant(wp.float64(0.2))

# The shortest part of the time left that a flow is tried for.
SHORTEST_PART = wp.constant(wp.float64(0.01))

# What a flow may gain of the energy at hand before it counts as failed; joints conserve energy in the mean alone.
ROUGH = wp.constant(wp.float64(1.0e-4))
# What a flow of joints without contact may gain or lose: more is a sign of a motion too fast for its duration.
LOOSE = wp.constant(wp.float64(1.0e-3))


@wp.func
def load(s: Parts, t: Workspace, q: wp.array(dtype=scalar), v: wp.array(dtype=scalar)):
    """Set the start from a state of the moving bodies; static bodies and the world stand where they stand."""
    for body in range(s.bodies + 1):
        for k in range(3):
            i = 3 * body + k
            t.v0[i] = scalar(0.0)
            t.q0[i] = scalar(0.0)
            if body < s.bodies:
                slot = s.slot[body]
                if slot >= 0:
                    t.q0[i] = q[3 * slot + k]
                    t.v0[i] = v[3 * slot + k]
                else:
                    t.q0[i] = t.theta[s.static_pose + 3 * s.static_slot[body] + k]


@wp.func
def store(s: Parts, t: Workspace, q: wp.array(dtype=scalar), v: wp.array(dtype=scalar)):
    """Write the start's state of the moving bodies."""
    for body in range(s.bodies):
        slot = s.slot[body]
        if slot >= 0:
            for k in range(3):
                q[3 * slot + k] = t.q0[3 * body + k]
                v[3 * slot + k] = t.v0[3 * body + k]


@wp.func
def record(
    s: Parts, t: Workspace, at: wp.int32, kind: wp.int32, event: wp.int32, about: wp.int32, h: scalar, left: scalar
):
    """Write operation `at` to the log: its start, duration, the time left before it, what ended it and about what."""
    width = 6 * s.moving + 8
    store(s, t, t.log[at * width : at * width + 3 * s.moving], t.log[at * width + 3 * s.moving : (at + 1) * width])
    base = at * width + 6 * s.moving
    t.log[base] = h
    t.log[base + 1] = left
    for k in range(6):
        t.log[base + 2 + k] = t.feature[6 * s.capacity + k]
    t.log_kind[5 * at] = kind + 4 * event
    t.log_kind[5 * at + 1] = about
    if event == GAP_CLOSED and kind == FLOW:
        # Kind, bodies and features of the contact, folded into what is left of the line.
        line = 5 * s.capacity
        t.log_kind[5 * at + 1] = t.contact[line]
        t.log_kind[5 * at + 2] = t.contact[line + 1]
        t.log_kind[5 * at + 3] = t.contact[line + 2]
        t.log_kind[5 * at + 4] = t.contact[line + 3] * 65536 + t.contact[line + 4]


@wp.func
def recall(s: Parts, t: Workspace, at: wp.int32):
    """Set the start from the log; return kind, what ended it, the contact and the duration."""
    width = 6 * s.moving + 8
    load(s, t, t.log[at * width : at * width + 3 * s.moving], t.log[at * width + 3 * s.moving : (at + 1) * width])
    base = at * width + 6 * s.moving
    for k in range(6):
        t.feature[6 * s.capacity + k] = t.log[base + 2 + k]
    t.keep[LEFT] = t.log[base + 1]
    kind = t.log_kind[5 * at] % 4
    event = t.log_kind[5 * at] // 4
    about = t.log_kind[5 * at + 1]
    if event == GAP_CLOSED and kind == FLOW:
        line = 5 * s.capacity
        t.contact[line] = t.log_kind[5 * at + 1]
        t.contact[line + 1] = t.log_kind[5 * at + 2]
        t.contact[line + 2] = t.log_kind[5 * at + 3]
        t.contact[line + 3] = t.log_kind[5 * at + 4] // 65536
        t.contact[line + 4] = t.log_kind[5 * at + 4] % 65536
    return kind, event, about, t.log[base]


@wp.func
def turning(s: Parts, t: Workspace):
    """The fastest angular velocity at the start, where there are joints: their rows turn with the bodies."""
    fastest = scalar(0.0)
    if s.joint_rows > 0:
        for body in range(s.bodies):
            fastest = wp.max(fastest, wp.abs(t.v0[3 * body + 2]))
    return fastest


@wp.func
def crowded_flow(s: Parts, t: Workspace, count: wp.int32, left: scalar, worst: scalar, logged: wp.int32):
    """Use up the time that is left in one crowded operation, or the part in which no jointed body turns far."""
    h = left
    event = int(NOTHING)
    if s.joint_rows > 0 and left > scalar(0.0):
        parts = wp.ceil(left * wp.min(turning(s, t) / FARTHEST_TURN, scalar(CROWDED_PARTS) / s.dt))
        if parts > scalar(1.5):
            event = CUT
            h = left / parts
    t.counts[FAILED] = 0
    t.counts[OVERFLOW] = 0
    t.keep[WORST] = worst
    if logged == 1:
        record(s, t, count, CROWD, event, 0, h, left)
    crowd(s, t, h, CORRECTIONS)
    return h


@wp.func
def gained(s: Parts, t: Workspace, resting: wp.int32):
    """Whether the flow at hand gained energy that no force accounts for: contacts only take it, joints keep it."""
    before = scalar(0.0)
    after = scalar(0.0)
    work = scalar(0.0)
    # What rests has the energy of rounding, of which any share may come and go.
    least = scalar(0.0)
    for k in range(3 * (s.bodies + 1)):
        if t.weight[k] > scalar(0.0):
            least += scalar(0.5) * s.rest_speed * s.rest_speed / t.weight[3 * (k // 3)]
            before += scalar(0.5) * t.v0[k] * t.v0[k] / t.weight[k]
            after += scalar(0.5) * t.v1[k] * t.v1[k] / t.weight[k]
            work += scalar(0.5) * (t.q1[k] - t.q0[k]) * (t.a0[k] + t.a1[k]) / t.weight[k]
    found = wp.int32(0)
    share = ROUGH
    if s.joint_rows > 0:
        share = scalar(100.0) * ROUGH
    change = after - before - work
    if resting == 0:
        share = LOOSE
        change = wp.abs(change)
        for r in range(s.joint_rows):
            if wp.abs(joint_row(s, t, t.q0, r, t.rows0)) > s.tolerance:
                # Joints that were off, as given ones may be, are put right, at what it takes.
                change = scalar(0.0)
    if s.platforms == 0 and not (change <= least + share * (before + wp.abs(work))):
        found = wp.int32(1)
    return found


@wp.func
def exact_flow(s: Parts, t: Workspace, resting: wp.int32, left: scalar):
    """Move to the next event; where joints and contacts do not hold over all the time left, over a part of it.

    The flow is prepared. A flow without contact that is still too rough is taken as it is: nothing better is known.
    """
    most = left / wp.max(
        wp.ceil(left * wp.max(scalar(1.0) / t.keep[LONGEST], turning(s, t) / FARTHEST_TURN)), scalar(1.0)
    )
    h = left
    worst = t.keep[WORST]
    event = int(NOTHING)
    about = wp.int32(0)
    going = wp.int32(1)
    while going == 1:
        charge(s, t, resting)
        h, event, about = flow(s, t, resting, most)
        going = wp.int32(0)
        rough = t.counts[FAILED]
        if rough == 0 and (resting > 0 or turning(s, t) * h > scalar(0.1) * FARTHEST_TURN):
            rough = gained(s, t, resting)
        if rough == 1 and most > left * SHORTEST_PART and is_spent(s, t) == 0:
            t.counts[FAILED] = 0
            t.keep[WORST] = worst
            most = most * scalar(0.5)
            prepare_resting(s, t, resting)
            going = wp.int32(1)
        elif rough == 1 and resting > 0:
            t.counts[FAILED] = 1
        elif rough == 1 and t.counts[FAILED] == 0:
            t.counts[COARSE] = 1
    if event == NOTHING and h < left:
        event = CUT
    return h, event, about


@wp.func
def joints_are_off(s: Parts, t: Workspace):
    """Whether the velocities at the start violate joints, whose rows there are at hand."""
    off = scalar(0.0)
    fastest = scalar(0.0)
    for r in range(s.joint_rows):
        off = wp.max(off, wp.abs(row_speed(t, t.rows0, r, t.v0)))
        for k in range(6):
            body = t.row_a[r]
            if k >= 3:
                body = t.row_b[r]
            fastest = wp.max(fastest, wp.abs(t.rows0[6 * r + k] * t.v0[3 * body + k % 3]))
    found = wp.int32(0)
    if off > wp.max(scalar(100.0) * s.rest_speed, scalar(1.0e-5) * fastest):
        found = wp.int32(1)
    return found


@wp.func
def exact_operation(
    s: Parts,
    t: Workspace,
    resting: wp.int32,
    touching: wp.int32,
    count: wp.int32,
    left: scalar,
    logged: wp.int32,
):
    """Do the impact that is due, or else move to the next event; returns the time that it took."""
    h = scalar(0.0)
    struck = first_striking(s, t, resting, touching)
    jolt = wp.int32(0)
    if struck < 0:
        prepare_resting(s, t, resting)
        if count == 0:
            # Velocities that violate joints, as given ones may, are put right by an impact.
            jolt = joints_are_off(s, t)
    if struck >= 0 or jolt == 1:
        charge(s, t, touching)
        if logged == 1:
            # An impact that no flow of this step led to may have fallen on the grid: it ends a flow of no duration.
            event = int(NOTHING)
            if count == 0 and jolt == 0:
                if closed_on_the_grid(s, t, struck) == 1:
                    event = GAP_CLOSED
            record(s, t, count, IMPACT, event, struck, scalar(0.0), left)
        impact(s, t, touching)
        copy(t.q0, t.q1, 3 * (s.bodies + 1))
    else:
        h, event, about = exact_flow(s, t, resting, left)
        if logged == 1:
            record(s, t, count, FLOW, event, about, h, left)
    return h


@wp.func
def step_of_awake(s: Parts, t: Workspace):
    """Do a crowded step of what is awake; whether that is all there is to do. Else nobody is asleep any more."""
    done = wp.int32(0)
    worst = t.keep[WORST]
    wake_what_is_near(s, t, s.dt)
    if t.counts[ASLEEP] > 0:
        h = crowded_flow(s, t, 0, s.dt, worst, 0)
        if h == s.dt and t.counts[ASLEEP] > 0 and t.counts[FAILED] == 0:
            done = wp.int32(1)
            copy(t.q1, t.q0, 3 * (s.bodies + 1))
            copy(t.v1, t.v0, 3 * (s.bodies + 1))
    if done == 0:
        t.counts[FAILED] = 0
        t.keep[WORST] = worst
        wake_all(s, t)
    return done


@wp.func
def step_of_all(s: Parts, t: Workspace, logged: wp.int32):
    """Advance q0, v0 by one step of the grid where nobody is asleep; returns the same as `step`."""
    n = 3 * (s.bodies + 1)
    left = s.dt
    count = wp.int32(0)
    crowded = wp.int32(0)
    t.counts[EFFORT] = 0
    t.counts[LABOUR] = 0
    t.counts[OVERFLOW] = 0
    deep = scalar(0.0)
    held = wp.int32(0)
    while left > scalar(0.0):
        h = left
        worst = t.keep[WORST]
        if crowded == 0:
            resting, touching = sort_touching(s, t)
            held = wp.max(held, resting)
            if count == 0:
                deep = t.keep[DEEPEST]
            if t.counts[OVERFLOW] == 1 or count >= s.operations - CROWDED_PARTS - 2 or is_spent(s, t) == 1:
                crowded = wp.int32(1)
            else:
                h = exact_operation(s, t, resting, touching, count, left, logged)
                if t.counts[FAILED] == 1 or is_spent(s, t) == 1:
                    crowded = wp.int32(1)
        if crowded == 1:
            h = crowded_flow(s, t, count, left, worst, logged)
        copy(t.q1, t.q0, n)
        copy(t.v1, t.v0, n)
        left -= h
        count += 1
    if crowded == 0 and held > 0:
        touching = find_touching(s, t)
        if t.counts[OVERFLOW] == 1 or deepest(s, t, touching) > wp.max(scalar(5.0) * s.tolerance, scalar(1.01) * deep):
            # A corner came off its edge, or round it, on the way: what overlaps is put right.
            crowded = wp.int32(1)
            crowded_flow(s, t, count, scalar(0.0), t.keep[WORST], logged)
            copy(t.q1, t.q0, n)
            count += 1
    if crowded == 1:
        count = -count
        if s.capacity == 1:
            # Nothing can touch, nor reach a limit: it is the joints that turn too fast.
            t.counts[COARSE] = 1
    return count


@wp.func
def step(s: Parts, t: Workspace, logged: wp.int32):
    """Advance q0, v0 by one step of the grid; returns the number of operations, negative if the last was crowded."""
    count = wp.int32(0)
    if t.counts[ASLEEP] > 0:
        count = -step_of_awake(s, t)
    if count == 0:
        count = step_of_all(s, t, logged)
    return count
