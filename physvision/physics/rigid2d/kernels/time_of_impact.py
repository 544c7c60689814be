"""Time of impact of bodies that move on parabolas, by conservative advancement.

With positions q + v t + ½ a t² a separation obeys g(t) ≥ g + ġ t − ½ K t², where K bounds −g̈. Nothing can touch before
the parabola's first root; stepping there again and again (Mirtich, 1996) converges from below, quadratically, to the
first contact and never past it. The distance to a convex body that does not turn is convex, so that K = −N·a there,
exactly: against a wall the first root is the closed form.
"""

import warp as wp

from physvision.physics.lcp.kernels.rows import row_velocity

from .broad_phase import bounding_radius, broad_phase
from .data import BODY_A, BODY_B, CIRCLE, EDGE, FEATURE_A, FEATURE_B, KIND, LIMIT, POINT, Data, Model
from .geometry import contact_rows, perp, position, rotate
from .narrow_phase import (
    collide_circle,
    collide_polygons,
    edge_midpoint,
    edge_normal,
    polygon_vertex,
    separating_edge,
    write_joint_limit,
)
from .precision import scalar, vec2

NEVER = wp.constant(wp.float64(1.0e30))


@wp.func
def conservative_step(separation: scalar, rate: scalar, bound: scalar):
    """Return the first root of separation + rate t − ½ bound t², or NEVER."""
    step = scalar(NEVER)
    separation = wp.max(separation, scalar(0.0))
    square = rate * rate + scalar(2.0) * bound * separation
    if square >= scalar(0.0):
        root = wp.sqrt(square)
        if rate <= scalar(0.0):
            if root > rate:
                step = scalar(2.0) * separation / (root - rate)
        elif bound > scalar(0.0):
            step = (rate + root) / bound
    return step


@wp.func
def extrapolate_body(d: Data, body: int, time: scalar):
    """Set pose and velocity of a body, in q1 and v1, after `time` at the accelerations in a1."""
    for k in range(3):
        i = 3 * body + k
        d.q1[i] = d.q0[i] + time * (d.v0[i] + scalar(0.5) * time * d.a1[i])
        d.v1[i] = d.v0[i] + time * d.a1[i]


@wp.func
def separation_curvature_bound(d: Data, a: int, b: int, arm_a: scalar, line: scalar, n: vec2, left: scalar):
    """Return a bound on −g̈ for a point of a over an edge of b.

    The point is `arm_a` from a's frame, and `line` from b's frame. Turning adds the centripetal acceleration of a
    point on an arm, and the Coriolis acceleration of a moving point in the frame of a turning edge.
    """
    bound = -wp.dot(n, position(d.a1, a) - position(d.a1, b))
    turn_a = wp.abs(d.v1[3 * a + 2]) + left * wp.abs(d.a1[3 * a + 2])
    turn_b = wp.abs(d.v1[3 * b + 2]) + left * wp.abs(d.a1[3 * b + 2])
    bound += arm_a * (turn_a * turn_a + wp.abs(d.a1[3 * a + 2]))
    if turn_b > scalar(0.0):
        separation = wp.length(position(d.a1, a) - position(d.a1, b))
        speed = wp.length(position(d.v1, a) - position(d.v1, b)) + left * separation + arm_a * turn_a
        distance = line + left * speed
        bound += separation + distance * (turn_b * turn_b + wp.abs(d.a1[3 * b + 2])) + scalar(2.0) * turn_b * speed
    return bound


@wp.func
def is_resting_contact(d: Data, kind: int, a: int, b: int, fa: int, fb: int):
    """Return 1 if the contact between these features is one of the resting contacts."""
    result = wp.int32(0)
    for j in range(d.contacts):
        same = (
            d.contact_features[5 * j + KIND] == kind
            and d.contact_features[5 * j + BODY_A] == a
            and d.contact_features[5 * j + BODY_B] == b
        )
        if same and d.contact_features[5 * j + FEATURE_A] == fa and d.contact_features[5 * j + FEATURE_B] == fb:
            result = wp.int32(1)
    return result


@wp.func
def is_resting_pair(d: Data, a: int, b: int):
    """Return 1 if bodies a and b rest on each other."""
    result = wp.int32(0)
    for j in range(d.contacts):
        first = d.contact_features[5 * j + BODY_A]
        second = d.contact_features[5 * j + BODY_B]
        if d.contact_features[5 * j + KIND] != LIMIT and ((first == a and second == b) or (first == b and second == a)):
            result = wp.int32(1)
    return result


@wp.func
def contact_step(m: Model, d: Data, i: int, left: scalar):
    """Return separation, its rate and a conservative step for the contact on line i, at q1 and v1."""
    r = m.joint_rows + 2 * i
    separation = contact_rows(m, d, d.q1, i, d.rows1, r)
    rate = row_velocity(d.lcp, d.rows1, r, d.v1)
    a = d.contact_features[5 * i + BODY_A]
    b = d.contact_features[5 * i + BODY_B]
    bound = -row_velocity(d.lcp, d.rows1, r, d.a1)
    if d.contact_features[5 * i + KIND] != LIMIT:
        n = vec2(d.rows1[6 * r], d.rows1[6 * r + 1])
        arm = wp.length(vec2(d.contact_points[6 * i], d.contact_points[6 * i + 1]))
        line = wp.length(position(d.q1, a) - position(d.q1, b)) + arm
        if d.contact_features[5 * i + KIND] == POINT and m.shape_type[b] == CIRCLE:
            bound = -wp.dot(n, position(d.a1, a) - position(d.a1, b))
        else:
            bound = separation_curvature_bound(d, a, b, arm, line, n, left)
    return separation, rate, conservative_step(separation, rate, bound)


@wp.func
def edge_separation_step(m: Model, d: Data, owner: int, incident: int, edge: int, left: scalar):
    """Return separation, rate and conservative step until a corner of `incident` reaches the edge's line, at q1.

    Until then the line separates the two. Corners that already rest on the edge do not count.
    """
    n = rotate(d.q1[3 * owner + 2], edge_normal(m, owner, edge))
    start = position(d.q1, owner) + rotate(d.q1[3 * owner + 2], edge_midpoint(m, owner, edge))
    separation = scalar(0.0)
    rate = scalar(0.0)
    step = scalar(NEVER)
    for k in range(m.vertex_count[incident]):
        if is_resting_contact(d, EDGE, incident, owner, k, edge) == 0:
            arm = rotate(d.q1[3 * incident + 2], polygon_vertex(m, incident, k))
            point = position(d.q1, incident) + arm
            line = point - position(d.q1, owner)
            u = position(d.v1, incident) + d.v1[3 * incident + 2] * perp(arm)
            u -= position(d.v1, owner) + d.v1[3 * owner + 2] * perp(line)
            bound = separation_curvature_bound(d, incident, owner, wp.length(arm), wp.length(line), n, left)
            height = wp.dot(n, point - start)
            corner_step = conservative_step(height, wp.dot(n, u), bound)
            if corner_step < step:
                step = corner_step
                separation = height
                rate = wp.dot(n, u)
    return separation, rate, step


@wp.func
def polygon_separation_step(m: Model, d: Data, a: int, b: int, resting: int, left: scalar):
    """Return the edge that separates two polygons for longest: owner, incident, edge, separation, rate, step.

    Polygons that rest on each other are separated by the edges that they rest on.
    """
    owner, incident, edge = separating_edge(m, d.q1, a, b)
    separation = scalar(0.0)
    rate = scalar(0.0)
    step = scalar(-1.0)
    if resting == 0:
        separation, rate, step = edge_separation_step(m, d, owner, incident, edge, left)
    else:
        for j in range(d.contacts):
            first = d.contact_features[5 * j + BODY_A]
            second = d.contact_features[5 * j + BODY_B]
            if d.contact_features[5 * j + KIND] == EDGE and (
                (first == a and second == b) or (first == b and second == a)
            ):
                edge_separation, speed, corner_step = edge_separation_step(
                    m, d, second, first, d.contact_features[5 * j + FEATURE_B], left
                )
                if corner_step > step:
                    owner = second
                    incident = first
                    edge = d.contact_features[5 * j + FEATURE_B]
                    separation = edge_separation
                    rate = speed
                    step = corner_step
    return owner, incident, edge, separation, rate, step


@wp.func
def write_closing_contact(m: Model, d: Data, owner: int, incident: int, edge: int, i: int):
    """Write, on line i, the contact of a polygon with an edge that closes at q1; return 0 if none does."""
    min_separation = scalar(NEVER)
    first = wp.int32(-1)
    r = m.joint_rows + 2 * i
    for which in range(2):
        if collide_polygons(m, d, d.q1, owner, incident, edge, which, i) == 1:
            line = 5 * i
            resting = is_resting_contact(
                d,
                d.contact_features[line + KIND],
                d.contact_features[line + BODY_A],
                d.contact_features[line + BODY_B],
                d.contact_features[line + FEATURE_A],
                d.contact_features[line + FEATURE_B],
            )
            separation = contact_rows(m, d, d.q1, i, d.rows1, r)
            if resting == 0 and separation < min_separation and row_velocity(d.lcp, d.rows1, r, d.v1) < scalar(0.0):
                min_separation = separation
                first = which
    if first == 0:
        collide_polygons(m, d, d.q1, owner, incident, edge, 0, i)
    return wp.where(first < 0, 0, 1)


@wp.func
def pair_time_of_impact(m: Model, d: Data, a: int, b: int, i: int, duration: scalar, until: scalar):
    """Return the time before `until` at which bodies a and b touch, the contact on line i; NEVER if they do not.

    The smooth step has a given `duration`. The time does not depend on `until`, which earlier pairs set.
    """
    resting = is_resting_pair(d, a, b)
    impact_time = scalar(NEVER)
    running = wp.int32(1)
    if resting == 1 and (m.shape_type[a] == CIRCLE or m.shape_type[b] == CIRCLE):
        running = wp.int32(0)
    time = scalar(0.0)
    previous = scalar(0.0)
    advances = wp.int32(0)
    while running == 1:
        extrapolate_body(d, a, time)
        extrapolate_body(d, b, time)
        separation = scalar(0.0)
        rate = scalar(0.0)
        step = scalar(0.0)
        closes = wp.int32(1)
        left = duration - time
        if m.shape_type[a] == CIRCLE:
            collide_circle(m, d, d.q1, a, b, i)
            separation, rate, step = contact_step(m, d, i, left)
        else:
            owner, incident, edge, separation, rate, step = polygon_separation_step(m, d, a, b, resting, left)
            if separation <= m.tolerance and rate < -m.restitution_threshold:
                closes = write_closing_contact(m, d, owner, incident, edge, i)
        if separation <= m.tolerance and rate < -m.restitution_threshold and closes == 1:
            impact_time = wp.max(time - separation / rate, previous)
            running = wp.int32(0)
        else:
            # Grazing pairs would stall; they penetrate no deeper than the separation's curvature allows. Their steps
            # grow, so that no pair takes more than a hundred.
            advances += 1
            if separation <= m.tolerance or advances > m.settings.max_exact_advances:
                step = wp.max(
                    step,
                    duration * m.settings.min_advance * scalar(wp.max(advances - m.settings.max_exact_advances, 1)),
                )
            previous = time
            time += step
            if time >= until:
                running = wp.int32(0)
    return impact_time


@wp.func
def may_collide(m: Model, d: Data, a: int, b: int, duration: scalar):
    """Return true if two bodies can come near enough to each other within `duration`."""
    separation = position(d.q0, a) - position(d.q0, b)
    speed = position(d.v0, a) - position(d.v0, b)
    acceleration = position(d.a1, a) - position(d.a1, b)
    contact_range = (
        bounding_radius(m, d, a)
        + bounding_radius(m, d, b)
        + duration * (wp.length(speed) + duration * wp.length(acceleration))
    )
    contact_range += m.tolerance
    return wp.dot(separation, separation) <= contact_range * contact_range


@wp.func
def copy_contact(d: Data, source: int, target: int):
    """Copy a line of the table of contacts."""
    for k in range(5):
        d.contact_features[5 * target + k] = d.contact_features[5 * source + k]
    for k in range(6):
        d.contact_points[6 * target + k] = d.contact_points[6 * source + k]


@wp.func
def limit_time_of_impact(m: Model, d: Data, i: int, duration: scalar):
    """Return the time at which the angle on line i reaches its limit; NEVER if it does not."""
    impact_time = scalar(NEVER)
    a = d.contact_features[5 * i + BODY_A]
    b = d.contact_features[5 * i + BODY_B]
    if (
        is_resting_contact(d, LIMIT, a, b, d.contact_features[5 * i + FEATURE_A], d.contact_features[5 * i + FEATURE_B])
        == 0
    ):
        extrapolate_body(d, a, scalar(0.0))
        extrapolate_body(d, b, scalar(0.0))
        separation, _rate, step = contact_step(m, d, i, duration)
        if step < duration and separation > -m.tolerance:
            impact_time = step
    return impact_time


@wp.func
def time_of_impact(m: Model, d: Data, duration: scalar):
    """Return the time of the next contact within `duration`, at the accelerations in a1, written on the last line.

    Returns NEVER if there is none. Overwrites q1, v1 and the two lines after the contacts.
    """
    first = scalar(NEVER)
    line = d.contacts
    work = wp.int32(0)
    for pair_at in range(broad_phase(m, d, d.q0, d.a1, duration)):
        pair = d.candidate_pairs[pair_at]
        a = m.pair_bodies[pair, 0]
        b = m.pair_bodies[pair, 1]
        if may_collide(m, d, a, b, duration):
            # Counted independently of the order of bodies, so that another order is cut off at the same place.
            if m.shape_type[a] == CIRCLE:
                work += 1
            else:
                work += 16
            time = pair_time_of_impact(m, d, a, b, line, duration, wp.min(duration, first))
            if time < first and time <= duration:
                first = time
                copy_contact(d, line, m.max_contacts)
    for joint in range(m.joints):
        if m.has_limits[joint] == 1:
            for side in range(2):
                write_joint_limit(m, d, joint, side, line)
                time = limit_time_of_impact(m, d, line, wp.min(duration, first))
                if time < first and time <= duration:
                    first = time
                    copy_contact(d, line, m.max_contacts)
    d.lcp.work = d.lcp.work + work // 4
    d.lcp.refinement_work = d.lcp.refinement_work + work // 4
    return first
