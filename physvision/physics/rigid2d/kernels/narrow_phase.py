"""Narrow phase: the features at which two bodies touch, or would touch next, at a pose.

Two circles have one contact, a circle and a polygon one (with the nearest edge or corner), two polygons at most two:
the edge of largest separation against the two lowest corners of the incident polygon, each clipped to the edge's ends.
Positions along edges are measured from their midpoints, so that results do not depend on the edges' direction, not even
by rounding.
"""

import warp as wp

from .broad_phase import bounding_radius, broad_phase, max_travel
from .data import BODY_A, BODY_B, CIRCLE, EDGE, FEATURE_A, FEATURE_B, KIND, LIMIT, POINT, Data, Model
from .geometry import contact_rows, cross, perp, position, rotate
from .precision import Array1d, scalar, vec2, vec4


@wp.func
def polygon_vertex(m: Model, body: int, i: int):
    """Return vertex i of a polygon, modulo the number of vertices, in the polygon's frame."""
    vertex = m.vertex_start[body] + i % m.vertex_count[body]
    return vec2(m.vertices[vertex, 0], m.vertices[vertex, 1])


@wp.func
def edge_normal(m: Model, body: int, i: int):
    """Return the outward unit normal of the edge from vertex i to the next, in the polygon's frame."""
    edge = m.vertex_start[body] + i
    return vec2(m.normals[edge, 0], m.normals[edge, 1])


@wp.func
def edge_midpoint(m: Model, body: int, edge: int):
    """Return the midpoint of an edge, in the polygon's frame."""
    return scalar(0.5) * (polygon_vertex(m, body, edge) + polygon_vertex(m, body, edge + 1))


@wp.func
def to_local(q: Array1d, body: int, point: vec2):
    """Return a point given in the world in a body's frame."""
    return rotate(-q[3 * body + 2], point - position(q, body))


@wp.func
def write_contact(d: Data, i: int, kind: int, a: int, b: int, fa: int, fb: int, la: vec2, lb: vec2, n: vec2):
    """Write row i of the contact table: type, bodies, features, points and normal."""
    d.contact_features[5 * i + KIND] = kind
    d.contact_features[5 * i + BODY_A] = a
    d.contact_features[5 * i + BODY_B] = b
    d.contact_features[5 * i + FEATURE_A] = fa
    d.contact_features[5 * i + FEATURE_B] = fb
    d.contact_points[6 * i] = la[0]
    d.contact_points[6 * i + 1] = la[1]
    d.contact_points[6 * i + 2] = lb[0]
    d.contact_points[6 * i + 3] = lb[1]
    d.contact_points[6 * i + 4] = n[0]
    d.contact_points[6 * i + 5] = n[1]


@wp.func
def collide_circle_polygon(m: Model, d: Data, q: Array1d, a: int, b: int, i: int):
    """Write the contact of circle a with the nearest edge or corner of polygon b to row i."""
    center = to_local(q, b, position(q, a))
    max_separation = scalar(-1.0e30)
    edge = wp.int32(0)
    for k in range(m.vertex_count[b]):
        separation = wp.dot(edge_normal(m, b, k), center - edge_midpoint(m, b, k))
        if separation > max_separation:
            max_separation = separation
            edge = k
    start = polygon_vertex(m, b, edge)
    end = polygon_vertex(m, b, edge + 1)
    n = edge_normal(m, b, edge)
    origin = vec2(scalar(0.0), scalar(0.0))
    if max_separation > scalar(0.0) and wp.dot(center - start, end - start) < scalar(0.0):
        write_contact(d, i, POINT, a, b, 0, edge, origin, start, n)
    elif max_separation > scalar(0.0) and wp.dot(center - end, start - end) < scalar(0.0):
        write_contact(d, i, POINT, a, b, 0, (edge + 1) % m.vertex_count[b], origin, end, n)
    else:
        write_contact(d, i, EDGE, a, b, 0, edge, origin, edge_midpoint(m, b, edge), n)


@wp.func
def collide_circle(m: Model, d: Data, q: Array1d, a: int, b: int, i: int):
    """Write the contact of circle a with body b, a circle or a polygon, to row i."""
    if m.shape_type[b] == CIRCLE:
        zero = vec2(scalar(0.0), scalar(0.0))
        write_contact(d, i, POINT, a, b, 0, 0, zero, zero, zero)
    else:
        collide_circle_polygon(m, d, q, a, b, i)


@wp.func
def compute_relative_pose(q: Array1d, body: int, incident: int):
    """Return the pose of `incident` in the frame of `body`: cosine and sine of its angle, and its position."""
    angle = q[3 * incident + 2] - q[3 * body + 2]
    local_position = to_local(q, body, position(q, incident))
    return vec4(wp.cos(angle), wp.sin(angle), local_position[0], local_position[1])


@wp.func
def transform_point(relative_pose: vec4, point: vec2):
    """Return the image of a point under a relative pose."""
    x = relative_pose[0] * point[0] - relative_pose[1] * point[1]
    return vec2(relative_pose[2] + x, relative_pose[3] + relative_pose[1] * point[0] + relative_pose[0] * point[1])


@wp.func
def support_vertex(m: Model, relative_pose: vec4, body: int, incident: int, edge: int):
    """Return the vertex of `incident` that is lowest over an edge of `body`, and its height.

    Among vertices of equal height, the one nearest to the edge's midpoint is returned.
    """
    min_height = scalar(1.0e30)
    nearest = scalar(1.0e30)
    which = wp.int32(0)
    n = edge_normal(m, body, edge)
    origin = edge_midpoint(m, body, edge)
    for k in range(m.vertex_count[incident]):
        point = transform_point(relative_pose, polygon_vertex(m, incident, k)) - origin
        height = wp.dot(n, point)
        offset = wp.abs(cross(n, point))
        if height < min_height or (height == min_height and offset < nearest):
            min_height = height
            nearest = offset
            which = k
    return which, min_height


@wp.func
def max_separation_edge(m: Model, q: Array1d, body: int, incident: int):
    """Return the edge of `body` with the largest separation from `incident`, and that separation."""
    max_separation = scalar(-1.0e30)
    which = wp.int32(0)
    relative_pose = compute_relative_pose(q, body, incident)
    for edge in range(m.vertex_count[body]):
        _low, height = support_vertex(m, relative_pose, body, incident, edge)
        if height > max_separation:
            max_separation = height
            which = edge
    return which, max_separation


@wp.func
def separating_edge(m: Model, q: Array1d, a: int, b: int):
    """Return the polygon with the edge of largest separation, the other polygon and the edge; ties go to a."""
    edge_a, separation_a = max_separation_edge(m, q, a, b)
    edge_b, separation_b = max_separation_edge(m, q, b, a)
    reference = a
    incident = b
    edge = edge_a
    if separation_b > separation_a:
        reference = b
        incident = a
        edge = edge_b
    return reference, incident, edge


@wp.func
def collide_polygons(m: Model, d: Data, q: Array1d, reference: int, incident: int, edge: int, which: int, i: int):
    """Write one of the two contacts of a polygon with an edge to row i; return 0 if there is none.

    The first contact (`which` 0) is that of the lowest vertex, the second that of the lower of its neighbors.
    """
    count = m.vertex_count[incident]
    relative_pose = compute_relative_pose(q, reference, incident)
    lowest, _height = support_vertex(m, relative_pose, reference, incident, edge)
    n = edge_normal(m, reference, edge)
    center = edge_midpoint(m, reference, edge)
    half_length = scalar(0.5) * wp.length(polygon_vertex(m, reference, edge + 1) - polygon_vertex(m, reference, edge))
    back = (lowest + count - 1) % count
    ahead = (lowest + 1) % count
    before = transform_point(relative_pose, polygon_vertex(m, incident, back))
    after = transform_point(relative_pose, polygon_vertex(m, incident, ahead))
    neighbor = ahead
    incident_edge = lowest
    if wp.dot(n, before) < wp.dot(n, after):
        neighbor = back
        incident_edge = back
    index = wp.where(which == 1, neighbor, lowest)
    clip_tolerance = scalar(100.0) * m.tolerance
    along = wp.dot(perp(n), transform_point(relative_pose, polygon_vertex(m, incident, index)) - center)
    exists = wp.int32(1)
    if wp.abs(along) <= half_length + clip_tolerance:
        write_contact(d, i, EDGE, incident, reference, index, edge, polygon_vertex(m, incident, index), center, n)
    else:
        reference_vertex = wp.where(along > scalar(0.0), (edge + 1) % m.vertex_count[reference], edge)
        clipped = position(q, reference) + rotate(q[3 * reference + 2], polygon_vertex(m, reference, reference_vertex))
        inner = to_local(q, incident, clipped)
        origin = edge_midpoint(m, incident, incident_edge)
        span = wp.length(polygon_vertex(m, incident, incident_edge + 1) - polygon_vertex(m, incident, incident_edge))
        incident_normal = edge_normal(m, incident, incident_edge)
        if wp.abs(cross(incident_normal, inner - origin)) < scalar(0.5) * span - clip_tolerance:
            write_contact(
                d,
                i,
                EDGE,
                reference,
                incident,
                reference_vertex,
                incident_edge,
                polygon_vertex(m, reference, reference_vertex),
                origin,
                incident_normal,
            )
        else:
            exists = wp.int32(0)
    return exists


@wp.func
def write_joint_limit(m: Model, d: Data, joint: int, side: int, i: int):
    """Write the contact of a joint's angle with its lower (side 0) or upper limit to row i."""
    zero = vec2(scalar(0.0), scalar(0.0))
    write_contact(d, i, LIMIT, m.joint_bodies[joint, 0], m.joint_bodies[joint, 1], joint, side, zero, zero, zero)


@wp.func
def accept_contact(m: Model, d: Data, row: int):
    """Keep the contact in row `row`, the last of the table, if it touches; return the number of contacts."""
    separation = contact_rows(m, d, d.q0, row, d.rows0, m.joint_rows + 2 * row)
    count = row
    if separation <= m.tolerance:
        d.separation[row] = separation
        if row + 1 < m.max_contacts:
            count = row + 1
        else:
            d.overflow = 1
    return count


@wp.func
def narrow_phase(m: Model, d: Data):
    """Fill the table with all contacts that touch at the start; return their number.

    The search ends once there are more contacts than event-based stepping can hold.
    """
    count = wp.int32(0)
    for pair_at in range(broad_phase(m, d, d.q0, d.a0, scalar(0.0))):
        pair = d.candidate_pairs[pair_at]
        a = m.pair_bodies[pair, 0]
        b = m.pair_bodies[pair, 1]
        offset = position(d.q0, a) - position(d.q0, b)
        contact_range = bounding_radius(m, d, a) + bounding_radius(m, d, b) + m.tolerance
        if wp.dot(offset, offset) <= contact_range * contact_range and d.overflow == 0:
            if m.shape_type[a] == CIRCLE:
                collide_circle(m, d, d.q0, a, b, count)
                count = accept_contact(m, d, count)
            else:
                reference, incident, edge = separating_edge(m, d.q0, a, b)
                for which in range(2):
                    if collide_polygons(m, d, d.q0, reference, incident, edge, which, count) == 1:
                        count = accept_contact(m, d, count)
    for joint in range(m.joints):
        if (
            m.has_limits[joint] == 1
            and d.lcp.awake[m.joint_bodies[joint, 0]] + d.lcp.awake[m.joint_bodies[joint, 1]] > 0
        ):
            for side in range(2):
                write_joint_limit(m, d, joint, side, count)
                count = accept_contact(m, d, count)
    d.contacts = count
    return count


@wp.func
def accept_speculative_contact(m: Model, d: Data, q: Array1d, row: int, max_separation: scalar):
    """Keep the contact in row `row` if its separation is at most `max_separation`; return the number of contacts."""
    count = row
    if row < m.max_speculative_contacts:
        separation = contact_rows(m, d, q, row, d.rows0, m.joint_rows + 2 * row)
        if separation <= max_separation:
            count = row + 1
    return count


@wp.func
def find_speculative_contacts(m: Model, d: Data, q: Array1d, duration: scalar):
    """Fill the table with contacts that touch at poses q or may touch within `duration`; return their number."""
    count = wp.int32(0)
    for pair_at in range(broad_phase(m, d, q, d.a0, duration)):
        pair = d.candidate_pairs[pair_at]
        a = m.pair_bodies[pair, 0]
        b = m.pair_bodies[pair, 1]
        offset = position(q, a) - position(q, b)
        radii = bounding_radius(m, d, a) + bounding_radius(m, d, b)
        max_separation = m.settings.speculative_margin * wp.min(bounding_radius(m, d, a), bounding_radius(m, d, b))
        if duration > scalar(0.0):
            max_separation += max_travel(m, d, a, d.a0, duration) + max_travel(m, d, b, d.a0, duration)
        if wp.dot(offset, offset) <= (radii + max_separation) * (radii + max_separation):
            if m.shape_type[a] == CIRCLE:
                collide_circle(m, d, q, a, b, count)
                count = accept_speculative_contact(m, d, q, count, max_separation)
            else:
                reference, incident, edge = separating_edge(m, q, a, b)
                for which in range(2):
                    if collide_polygons(m, d, q, reference, incident, edge, which, count) == 1:
                        count = accept_speculative_contact(m, d, q, count, max_separation)
    for joint in range(m.joints):
        if (
            m.has_limits[joint] == 1
            and d.lcp.awake[m.joint_bodies[joint, 0]] + d.lcp.awake[m.joint_bodies[joint, 1]] > 0
        ):
            for side in range(2):
                write_joint_limit(m, d, joint, side, count)
                max_separation = m.settings.speculative_margin
                if duration > scalar(0.0):
                    max_separation += duration * (
                        wp.abs(d.v0[3 * m.joint_bodies[joint, 0] + 2]) + wp.abs(d.v0[3 * m.joint_bodies[joint, 1] + 2])
                    )
                count = accept_speculative_contact(m, d, q, count, max_separation)
    d.contacts = count
    return count


@wp.func
def max_penetration(d: Data, contacts: int):
    """Return the deepest penetration of the contacts in the table."""
    penetration = scalar(0.0)
    for i in range(contacts):
        penetration = wp.max(penetration, -d.separation[i])
    return penetration


@wp.func
def contact_properties(m: Model, d: Data, i: int):
    """Return restitution and friction of contact i: the mean of the two bodies'; zero for a limit."""
    restitution = scalar(0.0)
    friction = scalar(0.0)
    if d.contact_features[5 * i + KIND] != LIMIT:
        a = d.contact_features[5 * i + BODY_A]
        b = d.contact_features[5 * i + BODY_B]
        restitution = (d.theta[m.restitution + a] + d.theta[m.restitution + b]) * scalar(0.5)
        friction = (d.theta[m.friction + a] + d.theta[m.friction + b]) * scalar(0.5)
    return restitution, friction
