"""What of two shapes can touch: for each pair of kinds the features that the kernels compare.

A feature is a point of the first shape as a share of its sizes: a corner, an end, an angle of a rim. The rows of a
general pair are its closest points, and further ones where flat sides meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Plane, Rectangle, Shape, Sphere

# As `kernels/collision/closest_points.py` numbers them.
POINT_PLANE, POINT_POINT, POINT_SEGMENT, SEGMENT_SEGMENT, POINT_BOX = range(5)
RIM_PLANE, CORNER_PLANE, POINT_ELLIPSOID, SEGMENT_ELLIPSOID, ELLIPSOID_ELLIPSOID, ELLIPSOID_PLANE = range(5, 11)
POINT_CYLINDER, SEGMENT_CYLINDER, STRING, STRUT, CONVEX = range(11, 16)

_FLAT_POINTS = 4  # of flat sides that meet, beside the closest points

Feature = tuple[float, float, float]
Row = tuple[int, bool, Feature]  # kind, whether the shapes change places, feature

_CENTER: Feature = (0.0, 0.0, 0.0)
_ENDS: list[Feature] = [(0.0, 0.0, -0.5), (0.0, 0.0, 0.5)]
_CORNERS: list[Feature] = list(product((-0.5, 0.5), repeat=3))  # pyright: ignore[reportAssignmentType]
# A standing cylinder needs three points of its rim: the lowest, and one at a third of a turn to either side.
_RIM: list[Feature] = [
    (float(np.cos(angle)), float(np.sin(angle)), end)
    for end in (-0.5, 0.5)
    for angle in (0.0, 2 * np.pi / 3, -2 * np.pi / 3)
]


STRING_ROW: Row = (STRING, False, _CENTER)
STRUT_ROW: Row = (STRUT, False, _CENTER)


def features(first: Shape, second: Shape) -> list[Row] | None:
    """The rows of a pair of shapes, in this order; None where there is no such pair."""
    for a, b, swapped in ((first, second, False), (second, first, True)):
        rows = list(_rows(a, b))
        if rows:
            return [(kind, swapped, feature) for kind, feature in rows]
    return None


def _rows(first: Shape, second: Shape) -> Iterator[tuple[int, Feature]]:
    match first, second:
        case Sphere(), Plane() | Rectangle():
            yield POINT_PLANE, _CENTER
        case Capsule(), Plane() | Rectangle():
            yield from ((POINT_PLANE, end) for end in _ENDS)
        case Box(), Plane() | Rectangle():
            yield from ((CORNER_PLANE, corner) for corner in _CORNERS)
        case Cylinder(), Plane() | Rectangle():
            yield from ((RIM_PLANE, point) for point in _RIM)
        case Hull(), Plane() | Rectangle():
            yield from ((CORNER_PLANE, vertex) for vertex in first.vertices)
        case Ellipsoid(), Plane() | Rectangle():
            yield ELLIPSOID_PLANE, _CENTER
        case Sphere(), Ellipsoid():
            yield POINT_ELLIPSOID, _CENTER
        case Capsule(), Ellipsoid():
            yield SEGMENT_ELLIPSOID, _CENTER
        case Sphere(), Cylinder():
            yield POINT_CYLINDER, _CENTER
        case Capsule(), Cylinder():
            yield SEGMENT_CYLINDER, _CENTER
        case Ellipsoid(), Ellipsoid():
            yield ELLIPSOID_ELLIPSOID, _CENTER
        case Sphere(), Sphere():
            yield POINT_POINT, _CENTER
        case Sphere(), Capsule():
            yield POINT_SEGMENT, _CENTER
        case Capsule(), Capsule():
            yield SEGMENT_SEGMENT, _CENTER
        case Sphere(), Box():
            yield POINT_BOX, _CENTER
        case (Box(), Sphere()) | (Cylinder(), Sphere() | Capsule()):
            return  # they have forms of their own, the other way round
        case ((Hull() | Cylinder() | Box()), (Hull() | Cylinder() | Box() | Capsule() | Ellipsoid() | Sphere())):
            further = 0 if isinstance(second, Ellipsoid | Sphere) else _FLAT_POINTS
            yield from ((CONVEX, _CENTER) for _ in range(1 + further))
