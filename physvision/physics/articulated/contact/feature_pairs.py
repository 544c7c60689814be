"""Features of many pairs of shapes at once: those of two kinds of shapes are looked up once and repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from physvision.core import Hull, Shape
from physvision.physics.articulated.contact.features import SEGMENT_END, TENDON_ROWS, FeatureRow, pair_features


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
