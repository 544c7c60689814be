"""What of two shapes can touch: for each pair of kinds the features that the kernels compare.

A feature is a point as a share of its shape's sizes: a corner, an end, the middle of an edge, an angle of a rim.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Plane, Rectangle, Shape, Sphere

# As `kernels/closest.py` numbers them.
POINT_PLANE, POINT_POINT, POINT_SEGMENT, SEGMENT_SEGMENT, POINT_BOX = range(5)
CORNER_BOX, EDGE_EDGE, SEGMENT_EDGE, RIM_PLANE, CORNER_PLANE, CORNER_SEGMENT = range(5, 11)
POINT_ELLIPSOID, SEGMENT_ELLIPSOID, ELLIPSOID_ELLIPSOID, ELLIPSOID_PLANE = range(11, 15)
POINT_CYLINDER, SEGMENT_CYLINDER = range(15, 17)
CORNER_ELLIPSOID, EDGE_ELLIPSOID, ELLIPSOID_FACE, STRING, STRUT, CONVEX = range(17, 23)

_FLAT_POINTS = 4  # of flat sides that meet, beside the closest points

Feature = tuple[float, float, float]
Row = tuple[int, bool, Feature, Feature]  # kind, whether the shapes change places, features of both

_CENTER: Feature = (0.0, 0.0, 0.0)
_ENDS: list[Feature] = [(0.0, 0.0, -0.5), (0.0, 0.0, 0.5)]
_CORNERS: list[Feature] = list(product((-0.5, 0.5), repeat=3))  # pyright: ignore[reportAssignmentType]
_EDGES: list[Feature] = [
    tuple(np.insert(side, axis, 0.0).tolist()) for axis in range(3) for side in product((-0.5, 0.5), repeat=2)
]  # pyright: ignore[reportAssignmentType]
_FACES: list[Feature] = [tuple(np.insert((0.0, 0.0), axis, side).tolist()) for axis in range(3) for side in (-0.5, 0.5)]  # pyright: ignore[reportAssignmentType]
# A standing cylinder needs three points of its rim: the lowest, and one at a third of a turn to either side.
_RIM: list[Feature] = [
    (float(np.cos(angle)), float(np.sin(angle)), end)
    for end in (-0.5, 0.5)
    for angle in (0.0, 2 * np.pi / 3, -2 * np.pi / 3)
]


STRING_ROW: Row = (STRING, False, _CENTER, _CENTER)
STRUT_ROW: Row = (STRUT, False, _CENTER, _CENTER)


def features(first: Shape, second: Shape) -> list[Row] | None:
    """The rows of a pair of shapes, in this order; None where there is no such pair."""
    for a, b, swapped in ((first, second, False), (second, first, True)):
        rows = list(_rows(a, b))
        if rows:
            return [(kind, swapped != turned, one, other) for kind, turned, one, other in rows]
    return None


def _rows(first: Shape, second: Shape) -> Iterator[Row]:
    match first, second:
        case Sphere(), Plane() | Rectangle():
            yield POINT_PLANE, False, _CENTER, _CENTER
        case Capsule(), Plane() | Rectangle():
            yield from ((POINT_PLANE, False, end, _CENTER) for end in _ENDS)
        case Box(), Plane() | Rectangle():
            yield from ((CORNER_PLANE, False, corner, _CENTER) for corner in _CORNERS)
        case Cylinder(), Plane() | Rectangle():
            yield from ((RIM_PLANE, False, point, _CENTER) for point in _RIM)
        case Hull(), Plane() | Rectangle():
            yield from ((CORNER_PLANE, False, vertex, _CENTER) for vertex in first.vertices)
        case Ellipsoid(), Plane() | Rectangle():
            yield ELLIPSOID_PLANE, False, _CENTER, _CENTER
        case Sphere(), Ellipsoid():
            yield POINT_ELLIPSOID, False, _CENTER, _CENTER
        case Capsule(), Ellipsoid():
            yield SEGMENT_ELLIPSOID, False, _CENTER, _CENTER
        case Sphere(), Cylinder():
            yield POINT_CYLINDER, False, _CENTER, _CENTER
        case Capsule(), Cylinder():
            yield SEGMENT_CYLINDER, False, _CENTER, _CENTER
        case Box(), Ellipsoid():
            yield from ((CORNER_ELLIPSOID, False, corner, _CENTER) for corner in _CORNERS)
            yield from ((EDGE_ELLIPSOID, False, edge, _CENTER) for edge in _EDGES)
            yield from ((ELLIPSOID_FACE, True, _CENTER, face) for face in _FACES)
        case Ellipsoid(), Ellipsoid():
            yield ELLIPSOID_ELLIPSOID, False, _CENTER, _CENTER
        case Sphere(), Sphere():
            yield POINT_POINT, False, _CENTER, _CENTER
        case Sphere(), Capsule():
            yield POINT_SEGMENT, False, _CENTER, _CENTER
        case Capsule(), Capsule():
            yield SEGMENT_SEGMENT, False, _CENTER, _CENTER
        case Sphere(), Box():
            yield POINT_BOX, False, _CENTER, _CENTER
        case Capsule(), Box():
            yield from ((POINT_BOX, False, end, _CENTER) for end in _ENDS)
            yield from ((SEGMENT_EDGE, False, _CENTER, edge) for edge in _EDGES)
            yield from ((CORNER_SEGMENT, True, corner, _CENTER) for corner in _CORNERS)
        case Box(), Box():
            for turned in (False, True):
                yield from ((CORNER_BOX, turned, corner, _CENTER) for corner in _CORNERS)
            yield from ((EDGE_EDGE, False, one, other) for one in _EDGES for other in _EDGES)
        case ((Hull() | Cylinder()), (Hull() | Cylinder() | Box() | Capsule() | Ellipsoid() | Sphere())):
            round_one = isinstance(second, Ellipsoid | Sphere)
            yield from (
                (CONVEX, False, (float(k), 0.0, 0.0), _CENTER) for k in range(1 if round_one else 1 + _FLAT_POINTS)
            )
