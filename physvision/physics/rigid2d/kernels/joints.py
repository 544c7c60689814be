"""Joint rows: the difference of two anchors along x or y, or of two angles; value, Jacobian and adjoint."""

import warp as wp

from .data import ROW_ANGLE, ROW_X, Data, Model
from .geometry import add_pose_cotangent, add_property_cotangent, perp, position, rotate, write_row
from .precision import Array1d, scalar, vec2


@wp.func
def joint_anchor(m: Model, d: Data, joint: int, side: int):
    """Return the anchor of a joint in the frame of its first (side 0) or second body."""
    entry = m.anchors + 4 * joint + 2 * side
    return vec2(d.theta[entry], d.theta[entry + 1])


@wp.func
def row_direction(kind: int):
    """Return the direction in which a row constrains two anchors to coincide."""
    return wp.where(kind == ROW_X, vec2(scalar(1.0), scalar(0.0)), vec2(scalar(0.0), scalar(1.0)))


@wp.func
def joint_row(m: Model, d: Data, q: Array1d, r: int, rows: Array1d):
    """Write joint row r and return its constraint violation."""
    joint = m.row_joint[r]
    a = m.joint_bodies[joint, 0]
    b = m.joint_bodies[joint, 1]
    d.lcp.row_a[r] = a
    d.lcp.row_b[r] = b
    violation = scalar(0.0)
    if m.row_kind[r] == ROW_ANGLE:
        for k in range(6):
            rows[6 * r + k] = scalar(0.0)
        rows[6 * r + 2] = scalar(1.0)
        rows[6 * r + 5] = scalar(-1.0)
        violation = q[3 * a + 2] - q[3 * b + 2] - d.theta[m.joint_angle + joint]
    else:
        axis = row_direction(m.row_kind[r])
        arm_a = rotate(q[3 * a + 2], joint_anchor(m, d, joint, 0))
        arm_b = rotate(q[3 * b + 2], joint_anchor(m, d, joint, 1))
        write_row(rows, r, axis, arm_a, arm_b)
        violation = wp.dot(axis, position(q, a) + arm_a - position(q, b) - arm_b)
    return violation


@wp.func
def anchor_adjoint(m: Model, d: Data, q: Array1d, joint: int, side: int, arm: vec2, arm_bar: vec2, q_bar: Array1d):
    """Propagate the cotangent of an arm (the anchor in world axes) to the angle and to the anchor."""
    body = m.joint_bodies[joint, side]
    q_bar[3 * body + 2] = q_bar[3 * body + 2] + wp.dot(arm_bar, perp(arm))
    local_bar = rotate(-q[3 * body + 2], arm_bar)
    entry = m.anchors + 4 * joint + 2 * side
    add_property_cotangent(d, entry, local_bar[0])
    add_property_cotangent(d, entry + 1, local_bar[1])


@wp.func
def joint_row_adjoint(m: Model, d: Data, q: Array1d, r: int, bar: Array1d, value_bar: scalar, q_bar: Array1d):
    """Propagate the cotangents of row r (in `bar`) and of its violation to `q_bar` and the properties."""
    joint = m.row_joint[r]
    a = m.joint_bodies[joint, 0]
    b = m.joint_bodies[joint, 1]
    if m.row_kind[r] == ROW_ANGLE:
        q_bar[3 * a + 2] = q_bar[3 * a + 2] + value_bar
        q_bar[3 * b + 2] = q_bar[3 * b + 2] - value_bar
        add_property_cotangent(d, m.joint_angle + joint, -value_bar)
    else:
        axis = row_direction(m.row_kind[r])
        arm_a = rotate(q[3 * a + 2], joint_anchor(m, d, joint, 0))
        arm_b = rotate(q[3 * b + 2], joint_anchor(m, d, joint, 1))
        force = value_bar * axis
        add_pose_cotangent(q_bar, a, force, scalar(0.0))
        add_pose_cotangent(q_bar, b, -force, scalar(0.0))
        anchor_adjoint(m, d, q, joint, 0, arm_a, force - bar[6 * r + 2] * perp(axis), q_bar)
        anchor_adjoint(m, d, q, joint, 1, arm_b, bar[6 * r + 5] * perp(axis) - force, q_bar)
