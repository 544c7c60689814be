"""When two bodies that move on parabolas touch next.

With positions q + v t + ½ a t² a gap obeys g(t) ≥ g + ġ t − ½ K t², where K bounds −g̈. The parabola's first root is
a time before which nothing can touch; stepping there again and again (conservative advancement) converges from
below, quadratically, to the first contact and never past it. The distance to a convex body that does not turn is
convex, so that K = −N·a there, exactly: against a wall the first root is the closed form.
"""

import warp as wp

from . import scalar, vec2
from .data import (
    BODY_A,
    BODY_B,
    CIRCLE,
    CONTACTS,
    EDGE,
    EFFORT,
    FEATURE_A,
    FEATURE_B,
    KIND,
    LABOUR,
    LIMIT,
    POINT,
    Parts,
    Workspace,
)
from .detect import (
    circle_polygon,
    corner,
    describe,
    edge_normal,
    joint_limit,
    middle,
    polygon_polygon,
    separating_edge,
)
from .geometry import contact_rows, perp, place, row_speed, turn
from .near_pairs import find_pairs, reach_of

NEVER = wp.constant(wp.float64(1.0e30))

# The shortest look ahead, as a share of the duration.
LEAST = wp.constant(wp.float64(1.0e-3))
# Looks ahead after which steps grow.
PATIENCE = wp.constant(50)


@wp.func
def safe_step(gap: scalar, rate: scalar, bound: scalar):
    """The first root of gap + rate t − ½ bound t², or NEVER."""
    step = scalar(NEVER)
    gap = wp.max(gap, scalar(0.0))
    square = rate * rate + scalar(2.0) * bound * gap
    if square >= scalar(0.0):
        root = wp.sqrt(square)
        if rate <= scalar(0.0):
            if root > rate:
                step = scalar(2.0) * gap / (root - rate)
        elif bound > scalar(0.0):
            step = (rate + root) / bound
    return step


@wp.func
def pose_at(s: Parts, t: Workspace, body: wp.int32, time: scalar):
    """Set a body's pose and velocity, in q1 and v1, to what they are after `time`, with the accelerations in a1."""
    for k in range(3):
        i = 3 * body + k
        t.q1[i] = t.q0[i] + time * (t.v0[i] + scalar(0.5) * time * t.a1[i])
        t.v1[i] = t.v0[i] + time * t.a1[i]


@wp.func
def curvature(s: Parts, t: Workspace, a: wp.int32, b: wp.int32, arm_a: scalar, line: scalar, n: vec2, left: scalar):
    """A bound on −g̈ for a point of a, `arm_a` from its frame, over an edge of b, `line` from b's frame.

    Turning adds what a point on an arm is accelerated by, and what a turning edge sees of a point that moves.
    """
    bound = -wp.dot(n, place(t.a1, a) - place(t.a1, b))
    turn_a = wp.abs(t.v1[3 * a + 2]) + left * wp.abs(t.a1[3 * a + 2])
    turn_b = wp.abs(t.v1[3 * b + 2]) + left * wp.abs(t.a1[3 * b + 2])
    bound += arm_a * (turn_a * turn_a + wp.abs(t.a1[3 * a + 2]))
    if turn_b > scalar(0.0):
        apart = wp.length(place(t.a1, a) - place(t.a1, b))
        speed = wp.length(place(t.v1, a) - place(t.v1, b)) + left * apart + arm_a * turn_a
        far = line + left * speed
        bound += apart + far * (turn_b * turn_b + wp.abs(t.a1[3 * b + 2])) + scalar(2.0) * turn_b * speed
    return bound


@wp.func
def rests(t: Workspace, kind: wp.int32, a: wp.int32, b: wp.int32, fa: wp.int32, fb: wp.int32):
    """Whether a contact between these features is one of those that rest already."""
    known = wp.int32(0)
    for j in range(t.counts[CONTACTS]):
        same = t.contact[5 * j + KIND] == kind and t.contact[5 * j + BODY_A] == a and t.contact[5 * j + BODY_B] == b
        if same and t.contact[5 * j + FEATURE_A] == fa and t.contact[5 * j + FEATURE_B] == fb:
            known = wp.int32(1)
    return known


@wp.func
def pair_rests(t: Workspace, a: wp.int32, b: wp.int32):
    """Whether bodies a and b rest on each other already."""
    known = wp.int32(0)
    for j in range(t.counts[CONTACTS]):
        first = t.contact[5 * j + BODY_A]
        second = t.contact[5 * j + BODY_B]
        if t.contact[5 * j + KIND] != LIMIT and ((first == a and second == b) or (first == b and second == a)):
            known = wp.int32(1)
    return known


@wp.func
def approach(s: Parts, t: Workspace, i: wp.int32, left: scalar):
    """Gap, its rate, and a safe step for the contact on line i, at the poses and velocities in q1 and v1."""
    r = s.joint_rows + 2 * i
    gap = contact_rows(s, t, t.q1, i, t.rows1, r)
    rate = row_speed(t, t.rows1, r, t.v1)
    a = t.contact[5 * i + BODY_A]
    b = t.contact[5 * i + BODY_B]
    bound = -row_speed(t, t.rows1, r, t.a1)
    if t.contact[5 * i + KIND] != LIMIT:
        n = vec2(t.rows1[6 * r], t.rows1[6 * r + 1])
        arm = wp.length(vec2(t.feature[6 * i], t.feature[6 * i + 1]))
        line = wp.length(place(t.q1, a) - place(t.q1, b)) + arm
        if t.contact[5 * i + KIND] == POINT and s.kind[b] == CIRCLE:
            bound = -wp.dot(n, place(t.a1, a) - place(t.a1, b))
        else:
            bound = curvature(s, t, a, b, arm, line, n, left)
    return gap, rate, safe_step(gap, rate, bound)


@wp.func
def edge_step(s: Parts, t: Workspace, owner: wp.int32, other: wp.int32, edge: wp.int32, left: scalar):
    """When, at the earliest, a corner of `other` reaches the edge's line, at the poses in q1; its gap and rate.

    Until then the line keeps the two apart. Corners that rest on the edge already do not count.
    """
    n = turn(t.q1[3 * owner + 2], edge_normal(s, owner, edge))
    start = place(t.q1, owner) + turn(t.q1[3 * owner + 2], middle(s, owner, edge))
    gap = scalar(0.0)
    rate = scalar(0.0)
    step = scalar(NEVER)
    for k in range(s.vertex_count[other]):
        if rests(t, EDGE, other, owner, k, edge) == 0:
            arm = turn(t.q1[3 * other + 2], corner(s, other, k))
            point = place(t.q1, other) + arm
            line = point - place(t.q1, owner)
            u = place(t.v1, other) + t.v1[3 * other + 2] * perp(arm)
            u -= place(t.v1, owner) + t.v1[3 * owner + 2] * perp(line)
            bound = curvature(s, t, other, owner, wp.length(arm), wp.length(line), n, left)
            height = wp.dot(n, point - start)
            ahead = safe_step(height, wp.dot(n, u), bound)
            if ahead < step:
                step = ahead
                gap = height
                rate = wp.dot(n, u)
    return gap, rate, step


@wp.func
def polygons_approach(s: Parts, t: Workspace, a: wp.int32, b: wp.int32, resting: wp.int32, left: scalar):
    """The edge whose line keeps two polygons apart for longest: its owner, the other, edge, gap, rate and safe step.

    Polygons that rest on each other are kept apart by the edges that they rest on.
    """
    owner, other, edge = separating_edge(s, t, t.q1, a, b)
    gap = scalar(0.0)
    rate = scalar(0.0)
    step = scalar(-1.0)
    if resting == 0:
        gap, rate, step = edge_step(s, t, owner, other, edge, left)
    else:
        for j in range(t.counts[CONTACTS]):
            first = t.contact[5 * j + BODY_A]
            second = t.contact[5 * j + BODY_B]
            if t.contact[5 * j + KIND] == EDGE and ((first == a and second == b) or (first == b and second == a)):
                g, speed, ahead = edge_step(s, t, second, first, t.contact[5 * j + FEATURE_B], left)
                if ahead > step:
                    owner = second
                    other = first
                    edge = t.contact[5 * j + FEATURE_B]
                    gap = g
                    rate = speed
                    step = ahead
    return owner, other, edge, gap, rate, step


@wp.func
def describe_closing(s: Parts, t: Workspace, owner: wp.int32, other: wp.int32, edge: wp.int32, i: wp.int32):
    """Describe, on line i, the contact of a polygon with an edge that closes at the poses in q1; 0 if none does."""
    best = scalar(NEVER)
    first = wp.int32(-1)
    r = s.joint_rows + 2 * i
    for which in range(2):
        if polygon_polygon(s, t, t.q1, owner, other, edge, which, i) == 1:
            line = 5 * i
            known = rests(
                t,
                t.contact[line + KIND],
                t.contact[line + BODY_A],
                t.contact[line + BODY_B],
                t.contact[line + FEATURE_A],
                t.contact[line + FEATURE_B],
            )
            gap = contact_rows(s, t, t.q1, i, t.rows1, r)
            if known == 0 and gap < best and row_speed(t, t.rows1, r, t.v1) < scalar(0.0):
                best = gap
                first = which
    if first == 0:
        polygon_polygon(s, t, t.q1, owner, other, edge, 0, i)
    found = wp.int32(1)
    if first < 0:
        found = wp.int32(0)
    return found


@wp.func
def pair_time(s: Parts, t: Workspace, a: wp.int32, b: wp.int32, i: wp.int32, duration: scalar, until: scalar):
    """When bodies a and b, in a flow of `duration`, touch before `until`, the contact on line i; NEVER if they do not.

    How the time is found does not hang on `until`, which other pairs set that were looked at before.
    """
    resting = pair_rests(t, a, b)
    hit = scalar(NEVER)
    going = wp.int32(1)
    if resting == 1 and (s.kind[a] == CIRCLE or s.kind[b] == CIRCLE):
        going = wp.int32(0)
    time = scalar(0.0)
    before = scalar(0.0)
    tries = wp.int32(0)
    while going == 1:
        pose_at(s, t, a, time)
        pose_at(s, t, b, time)
        gap = scalar(0.0)
        rate = scalar(0.0)
        step = scalar(0.0)
        closing = wp.int32(1)
        left = duration - time
        if s.kind[a] == CIRCLE:
            if s.kind[b] == CIRCLE:
                zero = vec2(scalar(0.0), scalar(0.0))
                describe(t, i, POINT, a, b, 0, 0, zero, zero, zero)
            else:
                circle_polygon(s, t, t.q1, a, b, i)
            gap, rate, step = approach(s, t, i, left)
        else:
            owner, other, edge, gap, rate, step = polygons_approach(s, t, a, b, resting, left)
            if gap <= s.tolerance and rate < -s.rest_speed:
                closing = describe_closing(s, t, owner, other, edge, i)
        if gap <= s.tolerance and rate < -s.rest_speed and closing == 1:
            hit = wp.max(time - gap / rate, before)
            going = wp.int32(0)
        else:
            # What touches or grazes would hold time up; it goes no deeper than the gap's curvature lets it. Steps grow
            # where that goes on, so that no pair takes more than a hundred.
            tries += 1
            if gap <= s.tolerance or tries > PATIENCE:
                step = wp.max(step, duration * LEAST * scalar(wp.max(tries - PATIENCE, 1)))
            before = time
            time += step
            if time >= until:
                going = wp.int32(0)
    return hit


@wp.func
def may_meet(s: Parts, t: Workspace, a: wp.int32, b: wp.int32, duration: scalar):
    """Whether two bodies can come near enough to each other within `duration`."""
    apart = place(t.q0, a) - place(t.q0, b)
    speed = place(t.v0, a) - place(t.v0, b)
    force = place(t.a1, a) - place(t.a1, b)
    near = reach_of(s, t, a) + reach_of(s, t, b) + duration * (wp.length(speed) + duration * wp.length(force))
    near += s.tolerance
    return wp.dot(apart, apart) <= near * near


@wp.func
def remember(t: Workspace, source: wp.int32, target: wp.int32):
    """Copy a line of the table of contacts."""
    for k in range(5):
        t.contact[5 * target + k] = t.contact[5 * source + k]
    for k in range(6):
        t.feature[6 * target + k] = t.feature[6 * source + k]


@wp.func
def limit_time(s: Parts, t: Workspace, i: wp.int32, duration: scalar):
    """When the angle on line i reaches its limit; NEVER if it does not."""
    hit = scalar(NEVER)
    a = t.contact[5 * i + BODY_A]
    b = t.contact[5 * i + BODY_B]
    if rests(t, LIMIT, a, b, t.contact[5 * i + FEATURE_A], t.contact[5 * i + FEATURE_B]) == 0:
        pose_at(s, t, a, scalar(0.0))
        pose_at(s, t, b, scalar(0.0))
        gap, _rate, step = approach(s, t, i, duration)
        if step < duration and gap > -s.tolerance:
            hit = step
    return hit


@wp.func
def next_contact(s: Parts, t: Workspace, duration: scalar):
    """When the next contact closes within `duration`, given accelerations in a1; described on the last line.

    Returns NEVER if none does. Uses q1, v1 and the two lines after the contacts.
    """
    first = scalar(NEVER)
    line = t.counts[CONTACTS]
    work = wp.int32(0)
    for found in range(find_pairs(s, t, t.q0, t.a1, duration)):
        pair = t.near[found]
        a = s.pair_bodies[pair, 0]
        b = s.pair_bodies[pair, 1]
        if may_meet(s, t, a, b, duration):
            # Counted alike whatever the order of bodies is, so that another order is cut off at the same place.
            if s.kind[a] == CIRCLE:
                work += 1
            else:
                work += 16
            time = pair_time(s, t, a, b, line, duration, wp.min(duration, first))
            if time < first and time <= duration:
                first = time
                remember(t, line, s.capacity)
    for joint in range(s.joints):
        if s.limited[joint] == 1:
            for side in range(2):
                joint_limit(s, t, joint, side, line)
                time = limit_time(s, t, line, wp.min(duration, first))
                if time < first and time <= duration:
                    first = time
                    remember(t, line, s.capacity)
    t.counts[EFFORT] = t.counts[EFFORT] + work // 4
    t.counts[LABOUR] = t.counts[LABOUR] + work // 4
    return first
