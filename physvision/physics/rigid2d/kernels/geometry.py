"""Rows of contacts, and of angle limits: what a contact's gap and Jacobian are at a pose, and their adjoint.

A contact has a normal N that points from body b to body a, a tangent T = (−N_y, N_x) and a point c. Its rows are
    normal      [ N, (c − p_a) × N, −N, −(c − p_b) × N ],   ∇gap,
    tangential  the same with T for N.
A POINT contact is between two points x_a and x_b with radii: N = (x_a − x_b)/d, gap = d − r_a − r_b,
c = x_a − (r_a + ½ gap) N, alike for both.
An EDGE contact is between a point x_a with a radius and an edge of b through x_b: N turns with b,
gap = N·(x_a − x_b) − r_a, c = x_a − r_a N. A LIMIT is a joint's angle against a bound, and has no tangent.
"""

import warp as wp

from . import scalar, vec2
from .data import BODY_A, BODY_B, CIRCLE, EDGE, FEATURE_A, FEATURE_B, KIND, LIMIT, POINT, WANTED, Parts, Workspace


@wp.func
def cross(a: vec2, b: vec2):
    """The z component of a × b."""
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def perp(a: vec2):
    """`a` turned left by a right angle: the velocity of the point `a` at one radian a second."""
    return vec2(-a[1], a[0])


@wp.func
def turn(angle: scalar, a: vec2):
    """`a` turned left by `angle`."""
    c = wp.cos(angle)
    s = wp.sin(angle)
    return vec2(c * a[0] - s * a[1], s * a[0] + c * a[1])


@wp.func
def place(q: wp.array(dtype=scalar), body: wp.int32):
    """The position of a body's frame."""
    return vec2(q[3 * body], q[3 * body + 1])


@wp.func
def round_of(s: Parts, t: Workspace, body: wp.int32):
    """The radius of a circle; zero for a polygon, whose corners are sharp."""
    radius = scalar(0.0)
    if body < s.bodies:
        if s.kind[body] == CIRCLE:
            radius = t.theta[s.radius + body]
    return radius


@wp.func
def limit_of(s: Parts, t: Workspace, joint: wp.int32, side: wp.int32):
    """The angle, relative to the joint's reference, at which a joint stops: side 0 is the lower one."""
    return t.theta[s.joint_angle + joint] + t.theta[s.joint_limits + 2 * joint + side]


@wp.func
def frame_of(s: Parts, t: Workspace, q: wp.array(dtype=scalar), i: wp.int32):
    """Normal, point of body a, point of body b, radius at a, radius at b and gap of contact i (not a limit)."""
    a = t.contact[5 * i + BODY_A]
    b = t.contact[5 * i + BODY_B]
    xa = place(q, a) + turn(q[3 * a + 2], vec2(t.feature[6 * i], t.feature[6 * i + 1]))
    xb = place(q, b) + turn(q[3 * b + 2], vec2(t.feature[6 * i + 2], t.feature[6 * i + 3]))
    ra = round_of(s, t, a)
    rb = scalar(0.0)
    normal = vec2(scalar(0.0), scalar(0.0))
    gap = scalar(0.0)
    if t.contact[5 * i + KIND] == EDGE:
        normal = turn(q[3 * b + 2], vec2(t.feature[6 * i + 4], t.feature[6 * i + 5]))
        gap = wp.dot(normal, xa - xb) - ra
    else:
        rb = round_of(s, t, b)
        d = xa - xb
        distance = wp.sqrt(wp.dot(d, d))
        if distance > scalar(0.0):
            normal = d / distance
        else:
            normal = vec2(scalar(1.0), scalar(0.0))
        gap = distance - ra - rb
    return normal, xa, xb, ra, rb, gap


@wp.func
def inward(t: Workspace, i: wp.int32):
    """Which share of the gap the point of contact i is away from body a's surface."""
    share = scalar(0.0)
    if t.contact[5 * i + KIND] == POINT:
        share = scalar(0.5)
    return share


@wp.func
def write_row(rows: wp.array(dtype=scalar), i: wp.int32, d: vec2, arm_a: vec2, arm_b: vec2):
    """Row i: what moves apart along d, seen at two arms."""
    rows[6 * i] = d[0]
    rows[6 * i + 1] = d[1]
    rows[6 * i + 2] = cross(arm_a, d)
    rows[6 * i + 3] = -d[0]
    rows[6 * i + 4] = -d[1]
    rows[6 * i + 5] = -cross(arm_b, d)


@wp.func
def contact_rows(
    s: Parts, t: Workspace, q: wp.array(dtype=scalar), i: wp.int32, rows: wp.array(dtype=scalar), r: wp.int32
):
    """Write the normal row of contact i at r and the tangential one at r + 1; return the gap."""
    a = t.contact[5 * i + BODY_A]
    b = t.contact[5 * i + BODY_B]
    t.row_a[r] = a
    t.row_b[r] = b
    t.row_a[r + 1] = a
    t.row_b[r + 1] = b
    gap = scalar(0.0)
    if t.contact[5 * i + KIND] == LIMIT:
        for k in range(12):
            rows[6 * r + k] = scalar(0.0)
        sign = scalar(1.0) - scalar(2 * t.contact[5 * i + FEATURE_B])
        bound = limit_of(s, t, t.contact[5 * i + FEATURE_A], t.contact[5 * i + FEATURE_B])
        rows[6 * r + 2] = sign
        rows[6 * r + 5] = -sign
        gap = sign * (q[3 * a + 2] - q[3 * b + 2] - bound)
    else:
        normal, xa, _xb, ra, _rb, distance = frame_of(s, t, q, i)
        point = xa - (ra + inward(t, i) * distance) * normal
        write_row(rows, r, normal, point - place(q, a), point - place(q, b))
        write_row(rows, r + 1, perp(normal), point - place(q, a), point - place(q, b))
        gap = distance
    return gap


@wp.func
def row_speed(t: Workspace, rows: wp.array(dtype=scalar), r: wp.int32, v: wp.array(dtype=scalar)):
    """Row r times the vector v over bodies."""
    a = 3 * t.row_a[r]
    b = 3 * t.row_b[r]
    total = rows[6 * r] * v[a] + rows[6 * r + 1] * v[a + 1] + rows[6 * r + 2] * v[a + 2]
    return total + rows[6 * r + 3] * v[b] + rows[6 * r + 4] * v[b + 1] + rows[6 * r + 5] * v[b + 2]


@wp.func
def add_row(t: Workspace, rows: wp.array(dtype=scalar), r: wp.int32, factor: scalar, v: wp.array(dtype=scalar)):
    """Add `factor` times row r to the vector v over bodies."""
    a = 3 * t.row_a[r]
    b = 3 * t.row_b[r]
    for k in range(3):
        v[a + k] = v[a + k] + factor * rows[6 * r + k]
    for k in range(3):
        v[b + k] = v[b + k] + factor * rows[6 * r + 3 + k]


@wp.func
def add_force(t: Workspace, rows: wp.array(dtype=scalar), r: wp.int32, factor: scalar, v: wp.array(dtype=scalar)):
    """Add `factor` times row r, divided by the masses, to the vector v over bodies."""
    a = 3 * t.row_a[r]
    b = 3 * t.row_b[r]
    for k in range(3):
        v[a + k] = v[a + k] + factor * t.weight[a + k] * rows[6 * r + k]
    for k in range(3):
        v[b + k] = v[b + k] + factor * t.weight[b + k] * rows[6 * r + 3 + k]


@wp.func
def couple(t: Workspace, rows: wp.array(dtype=scalar), columns: wp.array(dtype=scalar), i: wp.int32, j: wp.int32):
    """The entry A_ij: how fast row i moves for a unit of multiplier j."""
    total = scalar(0.0)
    for side_i in range(2):
        body = t.row_a[i]
        if side_i == 1:
            body = t.row_b[i]
        for side_j in range(2):
            other = t.row_a[j]
            if side_j == 1:
                other = t.row_b[j]
            if body == other:
                for k in range(3):
                    total += rows[6 * i + 3 * side_i + k] * t.weight[3 * body + k] * columns[6 * j + 3 * side_j + k]
    return total


@wp.func
def add_angle(q_bar: wp.array(dtype=scalar), body: wp.int32, at: vec2, angle: scalar):
    """Add to the cotangent of a body's pose."""
    q_bar[3 * body] = q_bar[3 * body] + at[0]
    q_bar[3 * body + 1] = q_bar[3 * body + 1] + at[1]
    q_bar[3 * body + 2] = q_bar[3 * body + 2] + angle


@wp.func
def add_property(t: Workspace, at: wp.int32, value: scalar):
    """Add to the cotangent of a property, where it is wanted."""
    t.theta_bar[at] = t.theta_bar[at] + t.keep[WANTED] * value


@wp.func
def contact_rows_adjoint(
    s: Parts,
    t: Workspace,
    q: wp.array(dtype=scalar),
    i: wp.int32,
    bar: wp.array(dtype=scalar),
    r: wp.int32,
    gap_bar: scalar,
    q_bar: wp.array(dtype=scalar),
):
    """Add to `q_bar` and the properties, given those of the two rows of contact i (in `bar`) and of its gap."""
    a = t.contact[5 * i + BODY_A]
    b = t.contact[5 * i + BODY_B]
    if t.contact[5 * i + KIND] == LIMIT:
        sign = scalar(1.0) - scalar(2 * t.contact[5 * i + FEATURE_B])
        joint = t.contact[5 * i + FEATURE_A]
        q_bar[3 * a + 2] = q_bar[3 * a + 2] + sign * gap_bar
        q_bar[3 * b + 2] = q_bar[3 * b + 2] - sign * gap_bar
        add_property(t, s.joint_angle + joint, -sign * gap_bar)
        add_property(t, s.joint_limits + 2 * joint + t.contact[5 * i + FEATURE_B], -sign * gap_bar)
    else:
        n, xa, xb, ra, rb, gap = frame_of(s, t, q, i)
        depth = ra + inward(t, i) * gap
        c = xa - depth * n
        arm_a = c - place(q, a)
        arm_b = c - place(q, b)
        # Rows: d(arm × N) = d arm × N + arm × dN; the tangent's cotangent returns through T = perp(N).
        k = 6 * r
        na = bar[k + 2]
        nb = -bar[k + 5]
        ta = bar[k + 8]
        tb = -bar[k + 11]
        tangent = perp(n)
        n_bar = vec2(bar[k] - bar[k + 3], bar[k + 1] - bar[k + 4]) + na * perp(arm_a) + nb * perp(arm_b)
        t_bar = vec2(bar[k + 6] - bar[k + 9], bar[k + 7] - bar[k + 10]) + ta * perp(arm_a) + tb * perp(arm_b)
        n_bar -= perp(t_bar)
        arm_a_bar = -na * tangent - ta * perp(tangent)
        arm_b_bar = -nb * tangent - tb * perp(tangent)
        c_bar = arm_a_bar + arm_b_bar
        # Geometry.
        xa_bar = c_bar
        xb_bar = vec2(scalar(0.0), scalar(0.0))
        n_bar -= depth * c_bar
        all_gap_bar = gap_bar - inward(t, i) * wp.dot(c_bar, n)
        ra_bar = -wp.dot(c_bar, n) - all_gap_bar
        turned = scalar(0.0)
        if t.contact[5 * i + KIND] == EDGE:
            n_bar += all_gap_bar * (xa - xb)
            xa_bar += all_gap_bar * n
            xb_bar -= all_gap_bar * n
            turned = wp.dot(n_bar, perp(n))
        else:
            distance = gap + ra + rb
            d_bar = all_gap_bar * n
            if distance > scalar(0.0):
                d_bar += (n_bar - wp.dot(n, n_bar) * n) / distance
            xa_bar += d_bar
            xb_bar -= d_bar
            if rb > scalar(0.0):
                add_property(t, s.radius + b, -all_gap_bar)
        if ra > scalar(0.0):
            add_property(t, s.radius + a, ra_bar)
        add_angle(q_bar, a, xa_bar - arm_a_bar, wp.dot(xa_bar, perp(xa - place(q, a))))
        add_angle(q_bar, b, xb_bar - arm_b_bar, turned + wp.dot(xb_bar, perp(xb - place(q, b))))
