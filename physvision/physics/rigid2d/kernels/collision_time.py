"""When two bodies that move on parabolas touch next.

With positions q + v t + ½ a t² a gap obeys g(t) ≥ g + ġ t − ½ K t², where K bounds −g̈. The parabola's first root is
a time before which nothing can touch; stepping there again and again (conservative advancement) converges from
below, quadratically, to the first contact and never past it. The distance to a convex body that does not turn is
convex, so that K = −N·a there, exactly: against a wall the first root is the closed form.
"""

import warp as wp

from . import scalar, vec2
from .data import BODY_A, BODY_B, CIRCLE, CONTACTS, KIND, LIMIT, POINT, Scene, Work
from .detect import (
    circle_polygon,
    corner,
    describe,
    edge_normal,
    joint_limit,
    polygon_polygon,
    reach_of,
    separating_edge,
)
from .geometry import contact_rows, place, row_speed, turn

NEVER = wp.constant(wp.float64(1.0e30))


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
def pose_at(s: Scene, t: Work, body: wp.int32, time: scalar):
    """Set a body's pose and velocity, in q1 and v1, to what they are after `time`, with the accelerations in a1."""
    for k in range(3):
        i = 3 * body + k
        t.q1[i] = t.q0[i] + time * (t.v0[i] + scalar(0.5) * time * t.a1[i])
        t.v1[i] = t.v0[i] + time * t.a1[i]


@wp.func
def curvature(s: Scene, t: Work, a: wp.int32, b: wp.int32, arm_a: scalar, line: scalar, n: vec2, left: scalar):
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
def is_resting(t: Work, i: wp.int32):
    """Whether the contact on line i is one of those that rest already."""
    known = wp.int32(0)
    for j in range(t.counts[CONTACTS]):
        same = wp.int32(1)
        for k in range(5):
            if t.contact[5 * j + k] != t.contact[5 * i + k]:
                same = wp.int32(0)
        if same == 1:
            known = wp.int32(1)
    return known


@wp.func
def pair_rests(t: Work, a: wp.int32, b: wp.int32):
    """Whether bodies a and b rest on each other already."""
    known = wp.int32(0)
    for j in range(t.counts[CONTACTS]):
        first = t.contact[5 * j + BODY_A]
        second = t.contact[5 * j + BODY_B]
        if t.contact[5 * j + KIND] != LIMIT and ((first == a and second == b) or (first == b and second == a)):
            known = wp.int32(1)
    return known


@wp.func
def approach(s: Scene, t: Work, i: wp.int32, left: scalar):
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
def polygon_step(s: Scene, t: Work, owner: wp.int32, other: wp.int32, edge: wp.int32, left: scalar):
    """A step before which no corner of `other` reaches the edge's line, at the poses in q1."""
    n = turn(t.q1[3 * owner + 2], edge_normal(s, owner, edge))
    start = place(t.q1, owner) + turn(t.q1[3 * owner + 2], corner(s, owner, edge))
    step = scalar(NEVER)
    for k in range(s.vertex_count[other]):
        local = corner(s, other, k)
        arm = turn(t.q1[3 * other + 2], local)
        point = place(t.q1, other) + arm
        line = point - place(t.q1, owner)
        u = place(t.v1, other) + t.v1[3 * other + 2] * vec2(-arm[1], arm[0])
        u -= place(t.v1, owner) + t.v1[3 * owner + 2] * vec2(-line[1], line[0])
        bound = curvature(s, t, other, owner, wp.length(arm), wp.length(line), n, left)
        step = wp.min(step, safe_step(wp.dot(n, point - start), wp.dot(n, u), bound))
    return step


@wp.func
def polygons_approach(s: Scene, t: Work, a: wp.int32, b: wp.int32, i: wp.int32, resting: wp.int32, left: scalar):
    """Gap, rate and safe step of two polygons, the contact that comes first on line i; a gap of NEVER for none."""
    owner, other, edge = separating_edge(s, t, t.q1, a, b)
    gap = scalar(NEVER)
    rate = scalar(0.0)
    step = scalar(NEVER)
    first = wp.int32(-1)
    for which in range(2):
        if polygon_polygon(s, t, t.q1, owner, other, edge, which, i) == 1:
            if is_resting(t, i) == 0:
                g, speed, ahead = approach(s, t, i, left)
                if speed < scalar(0.0) and g < gap:
                    gap = g
                    rate = speed
                    first = which
                step = wp.min(step, ahead)
    if resting == 0:
        step = wp.min(step, polygon_step(s, t, owner, other, edge, left))
    if first == 0:
        polygon_polygon(s, t, t.q1, owner, other, edge, 0, i)
    return gap, rate, step


@wp.func
def pair_time(s: Scene, t: Work, a: wp.int32, b: wp.int32, i: wp.int32, duration: scalar):
    """When bodies a and b touch within `duration`, the contact on line i; NEVER if they do not."""
    resting = pair_rests(t, a, b)
    hit = scalar(NEVER)
    going = wp.int32(1)
    if resting == 1 and (s.kind[a] == CIRCLE or s.kind[b] == CIRCLE):
        going = wp.int32(0)
    time = scalar(0.0)
    tries = wp.int32(0)
    while going == 1:
        pose_at(s, t, a, time)
        pose_at(s, t, b, time)
        gap = scalar(0.0)
        rate = scalar(0.0)
        step = scalar(0.0)
        left = duration - time
        if s.kind[a] == CIRCLE:
            if s.kind[b] == CIRCLE:
                zero = vec2(scalar(0.0), scalar(0.0))
                describe(t, i, POINT, a, b, 0, 0, zero, zero, zero)
            else:
                circle_polygon(s, t, t.q1, a, b, i)
            gap, rate, step = approach(s, t, i, left)
        else:
            gap, rate, step = polygons_approach(s, t, a, b, i, resting, left)
        tries += 1
        if gap <= s.tolerance and rate < -s.rest_speed:
            hit = wp.max(time - gap / rate, scalar(0.0))
            going = wp.int32(0)
        else:
            # A pair that hardly moves may come no nearer in any number of steps; it is looked at again next time.
            time += wp.max(step, duration * scalar(1.0e-6))
            if time >= duration or tries > 200:
                going = wp.int32(0)
    return hit


@wp.func
def may_meet(s: Scene, t: Work, a: wp.int32, b: wp.int32, duration: scalar):
    """Whether two bodies can come near enough to each other within `duration`."""
    apart = place(t.q0, a) - place(t.q0, b)
    speed = place(t.v0, a) - place(t.v0, b)
    force = place(t.a1, a) - place(t.a1, b)
    near = reach_of(s, t, a) + reach_of(s, t, b) + duration * (wp.length(speed) + duration * wp.length(force))
    near += s.tolerance
    return wp.dot(apart, apart) <= near * near


@wp.func
def remember(t: Work, source: wp.int32, target: wp.int32):
    """Copy a line of the table of contacts."""
    for k in range(5):
        t.contact[5 * target + k] = t.contact[5 * source + k]
    for k in range(6):
        t.feature[6 * target + k] = t.feature[6 * source + k]


@wp.func
def limit_time(s: Scene, t: Work, i: wp.int32, duration: scalar):
    """When the angle on line i reaches its limit; NEVER if it does not."""
    hit = scalar(NEVER)
    if is_resting(t, i) == 0:
        a = t.contact[5 * i + BODY_A]
        b = t.contact[5 * i + BODY_B]
        pose_at(s, t, a, scalar(0.0))
        pose_at(s, t, b, scalar(0.0))
        gap, _rate, step = approach(s, t, i, duration)
        if step < duration and gap > -s.tolerance:
            hit = step
    return hit


@wp.func
def next_contact(s: Scene, t: Work, duration: scalar):
    """When the next contact closes within `duration`, given accelerations in a1; described on the last line.

    Returns NEVER if none does. Uses q1, v1 and the two lines after the contacts.
    """
    first = scalar(NEVER)
    line = t.counts[CONTACTS]
    for pair in range(s.pairs):
        a = s.pair_bodies[pair, 0]
        b = s.pair_bodies[pair, 1]
        if may_meet(s, t, a, b, duration):
            time = pair_time(s, t, a, b, line, wp.min(duration, first))
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
    return first
