"""Where what touches leaves the edge or the corner that it touches: a change of the contact is an event.

A corner or a ball's centre x_a over an edge of body b is `along` = T·(x_a − x_b) past one of the edge's ends x_b, T the
direction of the edge. It leaves the edge where that passes the end; a ball round a corner meets the next edge where it
comes back from beyond. Either is G = 0 for G = ± along − margin, which grows. T turns with b, so that ∇G is the row of
the point x_a for the direction ±T.
"""

import warp as wp

from . import scalar, vec2
from .data import BODY_A, BODY_B, CIRCLE, EDGE, FEATURE_B, KIND, OPEN, POINT, Parts, Workspace
from .detect import corner, edge_normal
from .geometry import perp, place, turn, write_row

# How far past an end, in tolerances, a contact has ended for certain: `detect` takes it for one as far as a hundred.
MARGIN = wp.constant(wp.float64(150.0))


@wp.func
def past_end(
    s: Parts,
    t: Workspace,
    q: wp.array(dtype=scalar),
    i: wp.int32,
    side: wp.int32,
    rows: wp.array(dtype=scalar),
    r: wp.int32,
):
    """G of contact i and one of its two ends, and ∇G as row r."""
    a = t.contact[5 * i + BODY_A]
    b = t.contact[5 * i + BODY_B]
    edge = t.contact[5 * i + FEATURE_B]
    end = edge + side
    sign = scalar(2 * side - 1)
    if t.contact[5 * i + KIND] == POINT:
        # A corner: its second side is the edge that ends there.
        end = edge
        edge = (edge + side * (s.vertex_count[b] - 1)) % s.vertex_count[b]
        sign = -sign
    tip = place(q, b) + turn(q[3 * b + 2], corner(s, b, end))
    point = place(q, a) + turn(q[3 * a + 2], vec2(t.feature[6 * i], t.feature[6 * i + 1]))
    d = sign * perp(turn(q[3 * b + 2], edge_normal(s, b, edge)))
    write_row(rows, r, d, point - place(q, a), point - place(q, b))
    t.row_a[r] = a
    t.row_b[r] = b
    return wp.dot(d, point - tip) - MARGIN * s.tolerance


@wp.func
def end_of_edge(s: Parts, t: Workspace, contacts: wp.int32):
    """Which contact leaves its edge or corner first in the flow at hand, after what share of it, and values of G.

    The contact is 2 i + side; −1 for none.
    """
    which = wp.int32(-1)
    share = scalar(1.0)
    first = scalar(0.0)
    last = scalar(0.0)
    r = s.joint_rows + 2 * contacts
    for i in range(contacts):
        b = t.contact[5 * i + BODY_B]
        kind = t.contact[5 * i + KIND]
        if t.mode1[i] != OPEN and (kind == EDGE or (kind == POINT and s.kind[wp.min(b, s.bodies - 1)] != CIRCLE)):
            for side in range(2):
                before = past_end(s, t, t.q0, i, side, t.rows1, r)
                after = past_end(s, t, t.q1, i, side, t.rows1, r)
                if before < scalar(0.0) and after > s.tolerance:
                    if before / (before - after) < share:
                        share = before / (before - after)
                        which = 2 * i + side
                        first = before
                        last = after
    return which, share, first, last
