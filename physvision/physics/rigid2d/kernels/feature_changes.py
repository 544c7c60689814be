"""Changes of contact features: a contact leaves its edge or corner, which is an event.

A corner or a ball's center x_a over an edge of body b is `along` = T·(x_a − x_b) past one of the edge's ends x_b, T the
direction of the edge. It leaves the edge where that passes the end; a ball round a corner meets the next edge where it
comes back from beyond. Either is G = 0 for G = ± along − margin, which grows. T turns with b, so that ∇G is the row of
the point x_a for the direction ±T.
"""

import warp as wp

from physvision.physics.lcp.kernels.problem import OPEN

from .data import BODY_A, BODY_B, CIRCLE, EDGE, FEATURE_B, KIND, POINT, Data, Model
from .geometry import perp, position, rotate, write_row
from .narrow_phase import edge_normal, polygon_vertex
from .precision import Array1d, scalar, vec2


@wp.func
def edge_end_overshoot(m: Model, d: Data, q: Array1d, i: int, side: int, rows: Array1d, r: int):
    """Return G of contact i and one of its two ends, and write ∇G as row r."""
    a = d.contact_features[5 * i + BODY_A]
    b = d.contact_features[5 * i + BODY_B]
    edge = d.contact_features[5 * i + FEATURE_B]
    end = edge + side
    sign = scalar(2 * side - 1)
    if d.contact_features[5 * i + KIND] == POINT:
        # A corner: its second side is the edge that ends there.
        end = edge
        edge = (edge + side * (m.vertex_count[b] - 1)) % m.vertex_count[b]
        sign = -sign
    tip = position(q, b) + rotate(q[3 * b + 2], polygon_vertex(m, b, end))
    point = position(q, a) + rotate(q[3 * a + 2], vec2(d.contact_points[6 * i], d.contact_points[6 * i + 1]))
    axis = sign * perp(rotate(q[3 * b + 2], edge_normal(m, b, edge)))
    write_row(rows, r, axis, point - position(q, a), point - position(q, b))
    d.lcp.row_a[r] = a
    d.lcp.row_b[r] = b
    return wp.dot(axis, point - tip) - m.settings.edge_margin * m.tolerance


@wp.func
def next_edge_end(m: Model, d: Data, contacts: int):
    """Return the contact that leaves its edge or corner first, the fraction of the step, and G before and after.

    The contact is given as 2 i + side; −1 for none.
    """
    index = wp.int32(-1)
    fraction = scalar(1.0)
    first = scalar(0.0)
    last = scalar(0.0)
    r = m.joint_rows + 2 * contacts
    for i in range(contacts):
        b = d.contact_features[5 * i + BODY_B]
        kind = d.contact_features[5 * i + KIND]
        if d.mode1[i] != OPEN and (kind == EDGE or (kind == POINT and m.shape_type[wp.min(b, m.bodies - 1)] != CIRCLE)):
            for side in range(2):
                before = edge_end_overshoot(m, d, d.q0, i, side, d.rows1, r)
                after = edge_end_overshoot(m, d, d.q1, i, side, d.rows1, r)
                if before < scalar(0.0) and after > m.tolerance:
                    if before / (before - after) < fraction:
                        fraction = before / (before - after)
                        index = 2 * i + side
                        first = before
                        last = after
    return index, fraction, first, last
