"""Which features of which bodies touch, or are the next to touch, at a pose.

Two circles have one contact, a circle and a polygon one (with the nearest edge or corner), two polygons at most two:
on the edge that separates them best, the two lowest corners of the other, each clipped to the edge's ends. Edges are
measured from their middle, so that which of its ends is called the first does not matter, not even for rounding.
"""

import warp as wp

from . import scalar, vec2, vec4
from .data import (
    BODY_A,
    BODY_B,
    CIRCLE,
    CONTACTS,
    EDGE,
    FEATURE_A,
    FEATURE_B,
    KIND,
    LIMIT,
    OVERFLOW,
    POINT,
    Parts,
    Workspace,
)
from .geometry import contact_rows, cross, perp, place, turn
from .near_pairs import NEAR, find_pairs, reach_of, travel


@wp.func
def corner(s: Parts, body: wp.int32, i: wp.int32):
    """Corner i of a polygon, counted round, in its own frame."""
    at = s.vertex_start[body] + i % s.vertex_count[body]
    return vec2(s.vertices[at, 0], s.vertices[at, 1])


@wp.func
def edge_normal(s: Parts, body: wp.int32, i: wp.int32):
    """The outward unit normal of the edge from corner i to the next, in the polygon's frame."""
    at = s.vertex_start[body] + i
    return vec2(s.normals[at, 0], s.normals[at, 1])


@wp.func
def middle(s: Parts, body: wp.int32, edge: wp.int32):
    """The middle of an edge, in the polygon's frame."""
    return scalar(0.5) * (corner(s, body, edge) + corner(s, body, edge + 1))


@wp.func
def into_frame(q: wp.array(dtype=scalar), body: wp.int32, point: vec2):
    """A point of the world in a body's frame."""
    return turn(-q[3 * body + 2], point - place(q, body))


@wp.func
def describe(
    t: Workspace,
    i: wp.int32,
    kind: wp.int32,
    a: wp.int32,
    b: wp.int32,
    fa: wp.int32,
    fb: wp.int32,
    la: vec2,
    lb: vec2,
    n: vec2,
):
    """Fill line i of the table of contacts."""
    t.contact[5 * i + KIND] = kind
    t.contact[5 * i + BODY_A] = a
    t.contact[5 * i + BODY_B] = b
    t.contact[5 * i + FEATURE_A] = fa
    t.contact[5 * i + FEATURE_B] = fb
    t.feature[6 * i] = la[0]
    t.feature[6 * i + 1] = la[1]
    t.feature[6 * i + 2] = lb[0]
    t.feature[6 * i + 3] = lb[1]
    t.feature[6 * i + 4] = n[0]
    t.feature[6 * i + 5] = n[1]


@wp.func
def circle_polygon(s: Parts, t: Workspace, q: wp.array(dtype=scalar), a: wp.int32, b: wp.int32, i: wp.int32):
    """Describe, on line i, the contact of circle a with the nearest edge or corner of polygon b."""
    center = into_frame(q, b, place(q, a))
    best = scalar(-1.0e30)
    edge = wp.int32(0)
    for k in range(s.vertex_count[b]):
        apart = wp.dot(edge_normal(s, b, k), center - middle(s, b, k))
        if apart > best:
            best = apart
            edge = k
    start = corner(s, b, edge)
    end = corner(s, b, edge + 1)
    n = edge_normal(s, b, edge)
    origin = vec2(scalar(0.0), scalar(0.0))
    if best > scalar(0.0) and wp.dot(center - start, end - start) < scalar(0.0):
        describe(t, i, POINT, a, b, 0, edge, origin, start, n)
    elif best > scalar(0.0) and wp.dot(center - end, start - end) < scalar(0.0):
        describe(t, i, POINT, a, b, 0, (edge + 1) % s.vertex_count[b], origin, end, n)
    else:
        describe(t, i, EDGE, a, b, 0, edge, origin, middle(s, b, edge), n)


@wp.func
def stand(q: wp.array(dtype=scalar), body: wp.int32, other: wp.int32):
    """How `other` stands in the frame of `body`: cosine and sine of its angle, and its place."""
    angle = q[3 * other + 2] - q[3 * body + 2]
    at = into_frame(q, body, place(q, other))
    return vec4(wp.cos(angle), wp.sin(angle), at[0], at[1])


@wp.func
def seen(stance: vec4, point: vec2):
    """A point of a body that stands so."""
    x = stance[0] * point[0] - stance[1] * point[1]
    return vec2(stance[2] + x, stance[3] + stance[1] * point[0] + stance[0] * point[1])


@wp.func
def lowest(s: Parts, stance: vec4, body: wp.int32, other: wp.int32, edge: wp.int32):
    """The corner of `other`, which stands so in the frame of `body`, that is lowest over an edge, and how high.

    Of corners that are as low, it is the one that is nearest to the edge's middle.
    """
    best = scalar(1.0e30)
    nearest = scalar(1.0e30)
    which = wp.int32(0)
    n = edge_normal(s, body, edge)
    origin = middle(s, body, edge)
    for k in range(s.vertex_count[other]):
        point = seen(stance, corner(s, other, k)) - origin
        height = wp.dot(n, point)
        aside = wp.abs(cross(n, point))
        if height < best or (height == best and aside < nearest):
            best = height
            nearest = aside
            which = k
    return which, best


@wp.func
def best_edge(s: Parts, q: wp.array(dtype=scalar), body: wp.int32, other: wp.int32):
    """The edge of `body` that separates `other` best, and by how much."""
    best = scalar(-1.0e30)
    which = wp.int32(0)
    stance = stand(q, body, other)
    for edge in range(s.vertex_count[body]):
        _low, height = lowest(s, stance, body, other, edge)
        if height > best:
            best = height
            which = edge
    return which, best


@wp.func
def separating_edge(s: Parts, t: Workspace, q: wp.array(dtype=scalar), a: wp.int32, b: wp.int32):
    """The body whose edge separates two polygons best, the other body, and the edge; ties go to the first."""
    edge_a, apart_a = best_edge(s, q, a, b)
    edge_b, apart_b = best_edge(s, q, b, a)
    owner = a
    other = b
    edge = edge_a
    if apart_b > apart_a:
        owner = b
        other = a
        edge = edge_b
    return owner, other, edge


@wp.func
def polygon_polygon(
    s: Parts,
    t: Workspace,
    q: wp.array(dtype=scalar),
    owner: wp.int32,
    other: wp.int32,
    edge: wp.int32,
    which: wp.int32,
    i: wp.int32,
):
    """Describe, on line i, one of the two contacts of a polygon with an edge; 0 where there is none."""
    count = s.vertex_count[other]
    stance = stand(q, owner, other)
    low, _height = lowest(s, stance, owner, other, edge)
    n = edge_normal(s, owner, edge)
    center = middle(s, owner, edge)
    half = scalar(0.5) * wp.length(corner(s, owner, edge + 1) - corner(s, owner, edge))
    back = (low + count - 1) % count
    ahead = (low + 1) % count
    before = seen(stance, corner(s, other, back))
    after = seen(stance, corner(s, other, ahead))
    neighbour = ahead
    incident = low
    if wp.dot(n, before) < wp.dot(n, after):
        neighbour = back
        incident = back
    vertex = low
    if which == 1:
        vertex = neighbour
    slack = scalar(100.0) * s.tolerance
    along = wp.dot(perp(n), seen(stance, corner(s, other, vertex)) - center)
    found = wp.int32(1)
    if wp.abs(along) <= half + slack:
        describe(t, i, EDGE, other, owner, vertex, edge, corner(s, other, vertex), center, n)
    else:
        mine = edge
        if along > scalar(0.0):
            mine = (edge + 1) % s.vertex_count[owner]
        clipped = place(q, owner) + turn(q[3 * owner + 2], corner(s, owner, mine))
        inner = into_frame(q, other, clipped)
        origin = middle(s, other, incident)
        span = wp.length(corner(s, other, incident + 1) - corner(s, other, incident))
        m = edge_normal(s, other, incident)
        if wp.abs(cross(m, inner - origin)) < scalar(0.5) * span - slack:
            describe(t, i, EDGE, owner, other, mine, incident, corner(s, owner, mine), origin, m)
        else:
            found = wp.int32(0)
    return found


@wp.func
def joint_limit(s: Parts, t: Workspace, joint: wp.int32, side: wp.int32, i: wp.int32):
    """Describe, on line i, a joint's angle against its lower (side 0) or upper limit."""
    zero = vec2(scalar(0.0), scalar(0.0))
    describe(t, i, LIMIT, s.joint_bodies[joint, 0], s.joint_bodies[joint, 1], joint, side, zero, zero, zero)


@wp.func
def keep_touching(s: Parts, t: Workspace, at: wp.int32):
    """Keep the contact on line `at`, the last of the table, if it touches at the start; return how many there are."""
    gap = contact_rows(s, t, t.q0, at, t.rows0, s.joint_rows + 2 * at)
    kept = at
    if gap <= s.tolerance:
        t.gap[at] = gap
        if at + 1 < s.capacity:
            kept = at + 1
        else:
            t.counts[OVERFLOW] = 1
    return kept


@wp.func
def find_touching(s: Parts, t: Workspace):
    """Fill the table with all contacts that touch at the start; return how many there are.

    Once there are more than can be followed, no more are looked for.
    """
    count = wp.int32(0)
    for found in range(find_pairs(s, t, t.q0, t.a0, scalar(0.0))):
        pair = t.near[found]
        a = s.pair_bodies[pair, 0]
        b = s.pair_bodies[pair, 1]
        apart = place(t.q0, a) - place(t.q0, b)
        near = reach_of(s, t, a) + reach_of(s, t, b) + s.tolerance
        if wp.dot(apart, apart) <= near * near and t.counts[OVERFLOW] == 0:
            if s.kind[b] == CIRCLE:
                zero = vec2(scalar(0.0), scalar(0.0))
                describe(t, count, POINT, a, b, 0, 0, zero, zero, zero)
                count = keep_touching(s, t, count)
            elif s.kind[a] == CIRCLE:
                circle_polygon(s, t, t.q0, a, b, count)
                count = keep_touching(s, t, count)
            else:
                owner, other, edge = separating_edge(s, t, t.q0, a, b)
                for which in range(2):
                    if polygon_polygon(s, t, t.q0, owner, other, edge, which, count) == 1:
                        count = keep_touching(s, t, count)
    for joint in range(s.joints):
        if s.limited[joint] == 1 and t.awake[s.joint_bodies[joint, 0]] + t.awake[s.joint_bodies[joint, 1]] > 0:
            for side in range(2):
                joint_limit(s, t, joint, side, count)
                count = keep_touching(s, t, count)
    t.counts[CONTACTS] = count
    return count


@wp.func
def keep_near(s: Parts, t: Workspace, q: wp.array(dtype=scalar), at: wp.int32, most: scalar):
    """Keep the contact on line `at` if its gap at q is at most so large; return how many there are."""
    kept = at
    if at < s.crowd:
        gap = contact_rows(s, t, q, at, t.rows0, s.joint_rows + 2 * at)
        if gap <= most:
            kept = at + 1
    return kept


@wp.func
def find_near(s: Parts, t: Workspace, q: wp.array(dtype=scalar), duration: scalar):
    """Fill the table with the contacts, at the poses q, that touch or may within `duration`; return how many."""
    count = wp.int32(0)
    for found in range(find_pairs(s, t, q, t.a0, duration)):
        pair = t.near[found]
        a = s.pair_bodies[pair, 0]
        b = s.pair_bodies[pair, 1]
        apart = place(q, a) - place(q, b)
        reach = reach_of(s, t, a) + reach_of(s, t, b)
        most = NEAR * wp.min(reach_of(s, t, a), reach_of(s, t, b))
        if duration > scalar(0.0):
            most += travel(s, t, a, t.a0, duration) + travel(s, t, b, t.a0, duration)
        if wp.dot(apart, apart) <= (reach + most) * (reach + most):
            if s.kind[b] == CIRCLE:
                zero = vec2(scalar(0.0), scalar(0.0))
                describe(t, count, POINT, a, b, 0, 0, zero, zero, zero)
                count = keep_near(s, t, q, count, most)
            elif s.kind[a] == CIRCLE:
                circle_polygon(s, t, q, a, b, count)
                count = keep_near(s, t, q, count, most)
            else:
                owner, other, edge = separating_edge(s, t, q, a, b)
                for which in range(2):
                    if polygon_polygon(s, t, q, owner, other, edge, which, count) == 1:
                        count = keep_near(s, t, q, count, most)
    for joint in range(s.joints):
        if s.limited[joint] == 1 and t.awake[s.joint_bodies[joint, 0]] + t.awake[s.joint_bodies[joint, 1]] > 0:
            for side in range(2):
                joint_limit(s, t, joint, side, count)
                most = NEAR
                if duration > scalar(0.0):
                    most += duration * (
                        wp.abs(t.v0[3 * s.joint_bodies[joint, 0] + 2]) + wp.abs(t.v0[3 * s.joint_bodies[joint, 1] + 2])
                    )
                count = keep_near(s, t, q, count, most)
    t.counts[CONTACTS] = count
    return count


@wp.func
def deepest(s: Parts, t: Workspace, contacts: wp.int32):
    """The deepest overlap of the contacts found."""
    worst = scalar(0.0)
    for i in range(contacts):
        worst = wp.max(worst, -t.gap[i])
    return worst


@wp.func
def properties_of(s: Parts, t: Workspace, i: wp.int32):
    """Restitution and friction of contact i: the mean of the two bodies'; zero for a limit."""
    restitution = scalar(0.0)
    friction = scalar(0.0)
    if t.contact[5 * i + KIND] != LIMIT:
        a = t.contact[5 * i + BODY_A]
        b = t.contact[5 * i + BODY_B]
        restitution = (t.theta[s.restitution + a] + t.theta[s.restitution + b]) * scalar(0.5)
        friction = (t.theta[s.friction + a] + t.theta[s.friction + b]) * scalar(0.5)
    return restitution, friction
