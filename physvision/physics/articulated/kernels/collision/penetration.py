"""Direction of least penetration of two convex shapes, by the expanding polytope algorithm (EPA).

The penetration along a normal n is h(n) = max n · (x_b − x_a), the support function of the Minkowski difference. A
polytope of some of its points lies inside, so the least distance of its faces is a lower bound of h, and h of any
normal an upper one. The face of least distance is moved outward to its support point until both bounds agree; with
polytopes they do after finitely many points. Distances have signs, so that the origin need not be inside.
"""

import warp as wp

from ..precision import scalar, vec3
from ..structs import HullModel
from .contact_primitives import MIN_LENGTH
from .settings import COLLISION
from .support_shapes import POLYTOPE, ROUNDED, ConvexShape, support_point

MAX_POINTS = COLLISION.max_expansion_points
MAX_FACES = 2 * MAX_POINTS
EXACT_TOLERANCE = wp.constant(scalar(COLLISION.expansion_tolerance))
ROUND_TOLERANCE = wp.constant(scalar(COLLISION.round_expansion_tolerance))
VISIBLE_HEIGHT = wp.constant(scalar(COLLISION.visible_height))
REMOVED = wp.constant(scalar(1.0e30))  # distance of a face that was removed from the polytope


@wp.func
def farthest_difference(a: ConvexShape, b: ConvexShape, hulls: HullModel, direction: vec3):
    """Return the difference of two points of the shapes, second minus first, that is farthest along a direction."""
    return support_point(b, hulls, direction).point - support_point(a, hulls, -direction).point


@wp.func
def perpendicular(direction: vec3):
    """Return a unit vector perpendicular to a direction."""
    z = scalar(0.0)
    side = vec3(scalar(1.0), z, z)
    if wp.abs(direction[0]) > scalar(0.6) * wp.length(direction):
        side = vec3(z, scalar(1.0), z)
    return wp.normalize(wp.cross(direction, side))


@wp.func(inline=False)
def least_penetration_normal(a: ConvexShape, b: ConvexShape, hulls: HullModel, start: vec3):
    """Return the normal, toward the first shape, of least penetration, or one along which the shapes are separate."""
    z = scalar(0.0)
    size = a.bounding_radius + b.bounding_radius
    tolerance = EXACT_TOLERANCE * size
    if (a.kind != POLYTOPE and a.kind != ROUNDED) or (b.kind != POLYTOPE and b.kind != ROUNDED):
        tolerance = ROUND_TOLERANCE * size
    points = wp.zeros(shape=MAX_POINTS, dtype=vec3)
    vertex = wp.zeros(shape=(MAX_FACES, 3), dtype=wp.int32)
    outward = wp.zeros(shape=MAX_FACES, dtype=vec3)
    distance = wp.zeros(shape=MAX_FACES, dtype=scalar)
    is_visible = wp.zeros(shape=MAX_FACES, dtype=wp.int32)
    visible = wp.zeros(shape=MAX_FACES, dtype=wp.int32)
    edge_start = wp.zeros(shape=MAX_FACES, dtype=wp.int32)
    edge_end = wp.zeros(shape=MAX_FACES, dtype=wp.int32)
    # The first tetrahedron: a segment, the point farthest from it, and that farthest from the triangle.
    points[0] = farthest_difference(a, b, hulls, start)
    points[1] = farthest_difference(a, b, hulls, -start)
    along = points[1] - points[0]
    side = perpendicular(along)
    across_side = wp.normalize(wp.cross(along, side))
    best_height = scalar(-1.0)
    for k in range(4):
        direction = side
        if k % 2 == 1:
            direction = across_side
        if k >= 2:
            direction = -direction
        point = farthest_difference(a, b, hulls, direction)
        height = wp.length(wp.cross(along, point - points[0]))
        if height > best_height:
            best_height = height
            points[2] = point
    across = wp.normalize(wp.cross(along, points[2] - points[0]))
    top = farthest_difference(a, b, hulls, across)
    bottom = farthest_difference(a, b, hulls, -across)
    points[3] = top
    if wp.dot(across, points[0] - bottom) > wp.dot(across, top - points[0]):
        # The triangle is turned around, so that the last point is on its positive side.
        points[3] = bottom
        exchanged = points[1]
        points[1] = points[2]
        points[2] = exchanged
        across = -across
    best = start
    min_height = wp.dot(start, points[0])
    count = wp.int32(4)
    faces = wp.int32(4)
    if wp.dot(across, points[3] - points[0]) < VISIBLE_HEIGHT * size or best_height < VISIBLE_HEIGHT * size * size:
        count = MAX_POINTS
        faces = 0
    for face in range(faces):
        # Vertices (0, 2, 1) and (k, k + 1, 3), counterclockwise as seen from outside.
        vertex[face, 0] = wp.where(face == 3, 0, face)
        vertex[face, 1] = wp.where(face == 3, 2, (face + 1) % 3)
        vertex[face, 2] = wp.where(face == 3, 1, 3)
        p = points[vertex[face, 0]]
        normal = wp.normalize(wp.cross(points[vertex[face, 1]] - p, points[vertex[face, 2]] - p))
        outward[face] = normal
        distance[face] = wp.dot(normal, p)
    while count < MAX_POINTS:
        nearest = wp.int32(0)
        for face in range(faces):
            if distance[face] < distance[nearest]:
                nearest = face
        normal = outward[nearest]
        point = farthest_difference(a, b, hulls, normal)
        height = wp.dot(normal, point)
        if height < min_height:
            min_height = height
            best = normal
        if (
            min_height - distance[nearest] <= tolerance
            or height - distance[nearest] <= tolerance
            or min_height < -tolerance
        ):
            count = MAX_POINTS
        else:
            points[count] = point
            # Faces that see the point are removed; each edge of the horizon that they leave gets a face to the point.
            edges = wp.int32(0)
            visible_count = wp.int32(0)
            for face in range(faces):
                is_visible[face] = 0
                if distance[face] < REMOVED and wp.dot(outward[face], point) > distance[face] + VISIBLE_HEIGHT * size:
                    is_visible[face] = 1
                    visible[visible_count] = face
                    visible_count += 1
            for row in range(visible_count):
                for k in range(3):
                    first = vertex[visible[row], k]
                    second = vertex[visible[row], (k + 1) % 3]
                    is_horizon = bool(True)
                    for neighbor in range(visible_count):
                        for j in range(3):
                            if (
                                vertex[visible[neighbor], j] == second
                                and vertex[visible[neighbor], (j + 1) % 3] == first
                            ):
                                is_horizon = bool(False)
                    if is_horizon and edges < MAX_FACES:
                        edge_start[edges] = first
                        edge_end[edges] = second
                        edges += 1
            slot = wp.int32(0)
            for edge in range(edges):
                while slot < faces and is_visible[slot] == 0:
                    slot += 1
                if slot < MAX_FACES:
                    first = edge_start[edge]
                    second = edge_end[edge]
                    vertex[slot, 0] = first
                    vertex[slot, 1] = second
                    vertex[slot, 2] = count
                    cross = wp.cross(points[second] - points[first], point - points[first])
                    length = wp.length(cross)
                    distance[slot] = REMOVED  # of a face without area
                    outward[slot] = vec3(z, z, z)
                    if length > MIN_LENGTH:
                        outward[slot] = cross / length
                        distance[slot] = wp.dot(outward[slot], point)
                    slot += 1
                    faces = wp.max(faces, slot)
            while slot < faces:
                if is_visible[slot] != 0:
                    distance[slot] = REMOVED
                slot += 1
            count += 1
    return best
