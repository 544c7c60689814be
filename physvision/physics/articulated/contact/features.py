"""Contact features of each pair of kinds of shapes, as the kernels compare them.

A feature is a point of the first shape in units of its sizes: a corner, an end, an angle of a rim. The rows of a
general convex pair are its closest points, and further points where flat faces meet. Those of two capsules are their
closest points, and the two ends of the part along which they lie beside each other. The features of many pairs are
looked up once for each two kinds of shapes, and repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Plane, Rectangle, Shape, Sphere
from physvision.physics.articulated.settings import SETTINGS

# Kinds of pairs, numbered as in `kernels/collision/closest_points.py`.
POINT_PLANE, POINT_POINT, POINT_SEGMENT, SEGMENT_SEGMENT, POINT_BOX = range(5)
RIM_PLANE, CORNER_PLANE, POINT_ELLIPSOID = range(5, 8)
ELLIPSOID_PLANE = 10
POINT_CYLINDER, SEGMENT_CYLINDER, MAX_LENGTH, MIN_LENGTH, CONVEX, SEGMENT_END = range(11, 17)
# Kinds of broad-phase tests, numbered as in `kernels/collision/broad_phase.py`.
_SPHERE_SPHERE, _SPHERE_PLANE, _ALWAYS = range(3)

Feature = tuple[float, float, float]
FeatureRow = tuple[int, bool, Feature]  # kind of the pair, true if the shapes are swapped, feature

_CENTER: Feature = (0.0, 0.0, 0.0)
_ENDS: list[Feature] = [(0.0, 0.0, -0.5), (0.0, 0.0, 0.5)]
_CORNERS: list[Feature] = list(product((-0.5, 0.5), repeat=3))  # pyright: ignore[reportAssignmentType]
# A standing cylinder needs three points of its rim: the lowest, and one at a third of a turn to either side.
_RIM: list[Feature] = [
    (float(np.cos(angle)), float(np.sin(angle)), end)
    for end in (-0.5, 0.5)
    for angle in (0.0, 2 * np.pi / 3, -2 * np.pi / 3)
]
TENDON_ROWS: dict[str, FeatureRow] = {
    "max_length": (MAX_LENGTH, False, _CENTER),
    "min_length": (MIN_LENGTH, False, _CENTER),
}


def pair_features(first: Shape, second: Shape) -> list[FeatureRow] | None:
    """Feature rows of a pair of shapes, in this order; None if the pair is not supported."""
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
        case Sphere(), Cylinder():
            yield POINT_CYLINDER, _CENTER
        case Capsule(), Cylinder():
            yield SEGMENT_CYLINDER, _CENTER
        case Sphere(), Sphere():
            yield POINT_POINT, _CENTER
        case Sphere(), Capsule():
            yield POINT_SEGMENT, _CENTER
        case Capsule(), Capsule():
            yield SEGMENT_SEGMENT, _CENTER
            yield from ((SEGMENT_END, end) for end in _ENDS)
        case Sphere(), Box():
            yield POINT_BOX, _CENTER
        case (Box(), Sphere()) | (Cylinder(), Sphere() | Capsule()):
            return  # these have kinds of their own in the other order
        case ((Ellipsoid() | Capsule()), Ellipsoid()):
            yield CONVEX, _CENTER
        case ((Hull() | Cylinder() | Box()), (Hull() | Cylinder() | Box() | Capsule() | Ellipsoid() | Sphere())):
            further = 0 if isinstance(second, Ellipsoid | Sphere) else SETTINGS.face_contacts
            yield from ((CONVEX, _CENTER) for _ in range(1 + further))


def broad_phase_kind(kind: int) -> int:
    """Kind of the broad-phase test of a pair of shapes, from the kind of its first feature row."""
    if kind in (POINT_PLANE, RIM_PLANE, CORNER_PLANE, ELLIPSOID_PLANE):
        return _SPHERE_PLANE
    return _ALWAYS if kind in (MAX_LENGTH, MIN_LENGTH) else _SPHERE_SPHERE


def bounding_factors(shape: Shape) -> Feature:
    """Factors of a shape's sizes whose product vector has the length of the bounding radius about its origin."""
    match shape:
        case Sphere():
            return 1.0, 0.0, 0.0
        case Capsule():
            return math.sqrt(2), 0.0, math.sqrt(0.5)  # at least radius plus half the length
        case Cylinder():
            return 1.0, 0.0, 0.5
        case Box():
            return 0.5, 0.5, 0.5
        case Ellipsoid():
            return 1.0, 1.0, 1.0
        case Hull():
            x, y, z = np.abs(shape.vertices).max(0).tolist()
            return x, y, z
        case _:
            return 0.0, 0.0, 0.0


class FeaturePairs(NamedTuple):
    """Pairs of a feature of one shape with another shape, grouped by pairs of shapes.

    Attributes:
        kind: Kind of the pair, numbered as in `kernels/collision/closest_points.py`, (count,).
        is_swapped: If true, the feature is one of the second shape of the pair of shapes, (count,).
        feature: Coordinates of the feature, in units of its shape's sizes, (count, 3).
        group: Pair of shapes to which the pair belongs, (count,).
        start: First pair of each pair of shapes, and the count, (shape pairs + 1,).
    """

    kind: np.ndarray
    is_swapped: np.ndarray
    feature: np.ndarray
    group: np.ndarray
    start: np.ndarray


def supported_pairs(shapes: Sequence[Shape | None], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """True for the pairs of shapes, given by their rows, whose collision is supported."""
    tables, table = _feature_tables(shapes, first, second, np.zeros(len(first), int))
    return np.array([rows is not None for rows in tables], bool)[table]


def compile_feature_pairs(
    shapes: Sequence[Shape], first: np.ndarray, second: np.ndarray, tendon: np.ndarray, by_events: bool
) -> FeaturePairs:
    """Compile the features of pairs of shapes.

    Args:
        shapes: All shapes.
        first: Row of each pair's first shape.
        second: Row of each pair's second shape.
        tendon: For each pair, 0 for contact, 1 for a largest and 2 for a smallest length.
        by_events: If true, capsules beside each other touch at two points.
    """
    tables, table = _feature_tables(shapes, first, second, tendon)
    if not by_events:
        tables = [[row for row in rows or () if row[0] != SEGMENT_END] for rows in tables]
    counts = np.array([len(rows or ()) for rows in tables], int)
    kinds = np.array([kind for rows in tables for kind, _, _ in rows or ()], np.int32)
    is_swapped = np.array([swapped for rows in tables for _, swapped, _ in rows or ()], bool)
    features = np.array([feature for rows in tables for _, _, feature in rows or ()], float).reshape(-1, 3)
    start = np.concatenate([[0], np.cumsum(counts[table])])
    group = np.repeat(np.arange(len(first)), counts[table])
    # Row of each pair's feature among those of all tables.
    row = (np.cumsum(counts) - counts)[table][group] + np.arange(len(group)) - start[group]
    return FeaturePairs(kinds[row], is_swapped[row], features[row], group, start)


def _feature_tables(
    shapes: Sequence[Shape | None], first: np.ndarray, second: np.ndarray, tendon: np.ndarray
) -> tuple[list[list[FeatureRow] | None], np.ndarray]:
    """Feature rows of every combination of kinds of shapes that occurs, and the combination of each pair."""
    kinds: dict[object, int] = {}
    representatives: list[Shape | None] = []
    kind_of_shape = np.zeros(len(shapes), int)
    for row, shape in enumerate(shapes):
        # The features of hulls are their vertices; those of other shapes depend on nothing but the kind.
        key = shape if isinstance(shape, Hull) else type(shape)
        kind_of_shape[row] = kinds.setdefault(key, len(kinds))
        if len(kinds) > len(representatives):
            representatives.append(shape)
    codes = np.where(tendon > 0, -tendon, kind_of_shape[first] * len(kinds) + kind_of_shape[second])
    combinations, table = np.unique(codes, return_inverse=True)
    tables: list[list[FeatureRow] | None] = []
    for code in combinations.tolist():
        if code < 0:
            tables.append([list(TENDON_ROWS.values())[-code - 1]])
            continue
        ends = representatives[code // len(kinds)], representatives[code % len(kinds)]
        has_shapes = ends[0] is not None and ends[1] is not None
        tables.append(pair_features(*ends) if has_shapes else None)
    return tables, table.reshape(-1)
