"""Contact frames and their constraint rows: separation and Jacobian of a contact at a pose, and their adjoint.

A contact has a normal N that points from body b to body a, a tangent T = (−N_y, N_x) and a point c. Its rows are
    normal      [ N, (c − p_a) × N, −N, −(c − p_b) × N ],   ∇separation,
    tangential  the same with T in place of N.
A POINT contact is between two points x_a and x_b with radii: N = (x_a − x_b)/d, separation g = d − r_a − r_b, and c =
x_a − (r_a + ½ g) N, symmetric in both. An EDGE contact is between a point x_a with a radius and an edge of b through
x_b: N turns with b, g = N·(x_a − x_b) − r_a, c = x_a − r_a N. A LIMIT is a joint's angle against a
bound, and has no tangent.
"""

import warp as wp

from .data import BODY_A, BODY_B, CIRCLE, EDGE, FEATURE_A, FEATURE_B, KIND, LIMIT, POINT, Data, Model
from .precision import Array1d, scalar, vec2


@wp.func
def cross(a: vec2, b: vec2):
    """Return the z component of a × b."""
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def perp(a: vec2):
    """Return `a` rotated counterclockwise by 90°: the velocity of point `a` at an angular velocity of 1 rad/s."""
    return vec2(-a[1], a[0])


@wp.func
def rotate(angle: scalar, a: vec2):
    """Return `a` rotated counterclockwise by `angle`, in radians."""
    c = wp.cos(angle)
    s = wp.sin(angle)
    return vec2(c * a[0] - s * a[1], s * a[0] + c * a[1])


@wp.func
def position(q: Array1d, body: int):
    """Return the position of a body's frame."""
    return vec2(q[3 * body], q[3 * body + 1])


@wp.func
def radius_of(m: Model, d: Data, body: int):
    """Return the radius of a circle; zero for a polygon, whose corners are sharp."""
    radius = scalar(0.0)
    if body < m.bodies:
        if m.shape_type[body] == CIRCLE:
            radius = d.theta[m.radius + body]
    return radius


@wp.func
def limit_angle(m: Model, d: Data, joint: int, side: int):
    """Return the relative angle of the bodies at a joint limit: the lower for side 0, the upper for side 1."""
    return d.theta[m.joint_angle + joint] + d.theta[m.joint_limits + 2 * joint + side]


@wp.func
def contact_frame(m: Model, d: Data, q: Array1d, i: int):
    """Return normal, points on bodies a and b, their radii, and the separation of contact i (not a limit)."""
    a = d.contact_features[5 * i + BODY_A]
    b = d.contact_features[5 * i + BODY_B]
    xa = position(q, a) + rotate(q[3 * a + 2], vec2(d.contact_points[6 * i], d.contact_points[6 * i + 1]))
    xb = position(q, b) + rotate(q[3 * b + 2], vec2(d.contact_points[6 * i + 2], d.contact_points[6 * i + 3]))
    ra = radius_of(m, d, a)
    rb = scalar(0.0)
    normal = vec2(scalar(0.0), scalar(0.0))
    separation = scalar(0.0)
    if d.contact_features[5 * i + KIND] == EDGE:
        normal = rotate(q[3 * b + 2], vec2(d.contact_points[6 * i + 4], d.contact_points[6 * i + 5]))
        separation = wp.dot(normal, xa - xb) - ra
    else:
        rb = radius_of(m, d, b)
        axis = xa - xb
        distance = wp.sqrt(wp.dot(axis, axis))
        if distance > scalar(0.0):
            normal = axis / distance
        else:
            normal = vec2(scalar(1.0), scalar(0.0))
        separation = distance - ra - rb
    return normal, xa, xb, ra, rb, separation


@wp.func
def separation_fraction(d: Data, i: int):
    """Return the distance of the contact point from body a's surface, as a fraction of the separation."""
    return wp.where(d.contact_features[5 * i + KIND] == POINT, scalar(0.5), scalar(0.0))


@wp.func
def write_row(rows: Array1d, i: int, axis: vec2, arm_a: vec2, arm_b: vec2):
    """Write row i: the Jacobian of the relative velocity along `axis` of points at two lever arms."""
    rows[6 * i] = axis[0]
    rows[6 * i + 1] = axis[1]
    rows[6 * i + 2] = cross(arm_a, axis)
    rows[6 * i + 3] = -axis[0]
    rows[6 * i + 4] = -axis[1]
    rows[6 * i + 5] = -cross(arm_b, axis)


@wp.func
def contact_rows(m: Model, d: Data, q: Array1d, i: int, rows: Array1d, r: int):
    """Write the normal row of contact i at r and the tangential one at r + 1; return the separation."""
    a = d.contact_features[5 * i + BODY_A]
    b = d.contact_features[5 * i + BODY_B]
    d.lcp.row_a[r] = a
    d.lcp.row_b[r] = b
    d.lcp.row_a[r + 1] = a
    d.lcp.row_b[r + 1] = b
    separation = scalar(0.0)
    if d.contact_features[5 * i + KIND] == LIMIT:
        for k in range(12):
            rows[6 * r + k] = scalar(0.0)
        sign = scalar(1.0) - scalar(2 * d.contact_features[5 * i + FEATURE_B])
        bound = limit_angle(m, d, d.contact_features[5 * i + FEATURE_A], d.contact_features[5 * i + FEATURE_B])
        rows[6 * r + 2] = sign
        rows[6 * r + 5] = -sign
        separation = sign * (q[3 * a + 2] - q[3 * b + 2] - bound)
    else:
        normal, xa, _xb, ra, _rb, distance = contact_frame(m, d, q, i)
        point = xa - (ra + separation_fraction(d, i) * distance) * normal
        write_row(rows, r, normal, point - position(q, a), point - position(q, b))
        write_row(rows, r + 1, perp(normal), point - position(q, a), point - position(q, b))
        separation = distance
    return separation


@wp.func
def add_pose_cotangent(q_bar: Array1d, body: int, at: vec2, angle: scalar):
    """Add to the cotangent of a body's position and angle."""
    q_bar[3 * body] = q_bar[3 * body] + at[0]
    q_bar[3 * body + 1] = q_bar[3 * body + 1] + at[1]
    q_bar[3 * body + 2] = q_bar[3 * body + 2] + angle


@wp.func
def add_property_cotangent(d: Data, entry: int, value: scalar):
    """Add to the cotangent of a property if property cotangents are accumulated."""
    d.theta_bar[entry] = d.theta_bar[entry] + d.property_mask * value


@wp.func
def contact_rows_adjoint(
    m: Model, d: Data, q: Array1d, i: int, bar: Array1d, r: int, separation_bar: scalar, q_bar: Array1d
):
    """Propagate the cotangents of both rows (in `bar`) and of the separation to `q_bar` and the properties."""
    a = d.contact_features[5 * i + BODY_A]
    b = d.contact_features[5 * i + BODY_B]
    if d.contact_features[5 * i + KIND] == LIMIT:
        sign = scalar(1.0) - scalar(2 * d.contact_features[5 * i + FEATURE_B])
        joint = d.contact_features[5 * i + FEATURE_A]
        q_bar[3 * a + 2] = q_bar[3 * a + 2] + sign * separation_bar
        q_bar[3 * b + 2] = q_bar[3 * b + 2] - sign * separation_bar
        add_property_cotangent(d, m.joint_angle + joint, -sign * separation_bar)
        add_property_cotangent(
            d, m.joint_limits + 2 * joint + d.contact_features[5 * i + FEATURE_B], -sign * separation_bar
        )
    else:
        n, xa, xb, ra, rb, separation = contact_frame(m, d, q, i)
        depth = ra + separation_fraction(d, i) * separation
        c = xa - depth * n
        arm_a = c - position(q, a)
        arm_b = c - position(q, b)
        # Rows: d(arm × N) = d arm × N + arm × dN; the tangent's cotangent propagates to N through T = perp(N).
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
        # Points, radii and separation.
        xa_bar = c_bar
        xb_bar = vec2(scalar(0.0), scalar(0.0))
        n_bar -= depth * c_bar
        all_separation_bar = separation_bar - separation_fraction(d, i) * wp.dot(c_bar, n)
        ra_bar = -wp.dot(c_bar, n) - all_separation_bar
        angle_bar = scalar(0.0)
        if d.contact_features[5 * i + KIND] == EDGE:
            n_bar += all_separation_bar * (xa - xb)
            xa_bar += all_separation_bar * n
            xb_bar -= all_separation_bar * n
            angle_bar = wp.dot(n_bar, perp(n))
        else:
            distance = separation + ra + rb
            d_bar = all_separation_bar * n
            if distance > scalar(0.0):
                d_bar += (n_bar - wp.dot(n, n_bar) * n) / distance
            xa_bar += d_bar
            xb_bar -= d_bar
            if rb > scalar(0.0):
                add_property_cotangent(d, m.radius + b, -all_separation_bar)
        if ra > scalar(0.0):
            add_property_cotangent(d, m.radius + a, ra_bar)
        add_pose_cotangent(q_bar, a, xa_bar - arm_a_bar, wp.dot(xa_bar, perp(xa - position(q, a))))
        add_pose_cotangent(q_bar, b, xb_bar - arm_b_bar, angle_bar + wp.dot(xb_bar, perp(xb - position(q, b))))
