"""Rows of joints: the difference of two anchors along x or y, or of two angles; their value, Jacobian and adjoint."""

import warp as wp

from . import scalar, vec2
from .data import ROW_ANGLE, ROW_X, Parts, Workspace
from .geometry import add_angle, add_property, perp, place, turn, write_row


@wp.func
def anchor(s: Parts, t: Workspace, joint: wp.int32, side: wp.int32):
    """Where a joint sits in the frame of its first (side 0) or second body."""
    at = s.anchors + 4 * joint + 2 * side
    return vec2(t.theta[at], t.theta[at + 1])


@wp.func
def direction(kind: wp.int32):
    """The direction along which a row keeps two anchors together."""
    d = vec2(scalar(0.0), scalar(1.0))
    if kind == ROW_X:
        d = vec2(scalar(1.0), scalar(0.0))
    return d


@wp.func
def joint_row(s: Parts, t: Workspace, q: wp.array(dtype=scalar), r: wp.int32, rows: wp.array(dtype=scalar)):
    """Write row r and return by how much the joint is violated along it."""
    joint = s.row_joint[r]
    a = s.joint_bodies[joint, 0]
    b = s.joint_bodies[joint, 1]
    t.row_a[r] = a
    t.row_b[r] = b
    violation = scalar(0.0)
    if s.row_kind[r] == ROW_ANGLE:
        for k in range(6):
            rows[6 * r + k] = scalar(0.0)
        rows[6 * r + 2] = scalar(1.0)
        rows[6 * r + 5] = scalar(-1.0)
        violation = q[3 * a + 2] - q[3 * b + 2] - t.theta[s.joint_angle + joint]
    else:
        d = direction(s.row_kind[r])
        arm_a = turn(q[3 * a + 2], anchor(s, t, joint, 0))
        arm_b = turn(q[3 * b + 2], anchor(s, t, joint, 1))
        write_row(rows, r, d, arm_a, arm_b)
        violation = wp.dot(d, place(q, a) + arm_a - place(q, b) - arm_b)
    return violation


@wp.func
def anchor_adjoint(
    s: Parts,
    t: Workspace,
    q: wp.array(dtype=scalar),
    joint: wp.int32,
    side: wp.int32,
    arm: vec2,
    arm_bar: vec2,
    q_bar: wp.array(dtype=scalar),
):
    """Carry the cotangent of an arm, the anchor turned into the world's frame, to the angle and to the anchor."""
    body = s.joint_bodies[joint, side]
    q_bar[3 * body + 2] = q_bar[3 * body + 2] + wp.dot(arm_bar, perp(arm))
    own = turn(-q[3 * body + 2], arm_bar)
    at = s.anchors + 4 * joint + 2 * side
    add_property(t, at, own[0])
    add_property(t, at + 1, own[1])


@wp.func
def joint_row_adjoint(
    s: Parts,
    t: Workspace,
    q: wp.array(dtype=scalar),
    r: wp.int32,
    bar: wp.array(dtype=scalar),
    value_bar: scalar,
    q_bar: wp.array(dtype=scalar),
):
    """Add to `q_bar` and the properties, given the cotangents of row r (in `bar`) and of its violation."""
    joint = s.row_joint[r]
    a = s.joint_bodies[joint, 0]
    b = s.joint_bodies[joint, 1]
    if s.row_kind[r] == ROW_ANGLE:
        q_bar[3 * a + 2] = q_bar[3 * a + 2] + value_bar
        q_bar[3 * b + 2] = q_bar[3 * b + 2] - value_bar
        add_property(t, s.joint_angle + joint, -value_bar)
    else:
        d = direction(s.row_kind[r])
        arm_a = turn(q[3 * a + 2], anchor(s, t, joint, 0))
        arm_b = turn(q[3 * b + 2], anchor(s, t, joint, 1))
        force = value_bar * d
        add_angle(q_bar, a, force, scalar(0.0))
        add_angle(q_bar, b, -force, scalar(0.0))
        anchor_adjoint(s, t, q, joint, 0, arm_a, force - bar[6 * r + 2] * perp(d), q_bar)
        anchor_adjoint(s, t, q, joint, 1, arm_b, bar[6 * r + 5] * perp(d) - force, q_bar)
