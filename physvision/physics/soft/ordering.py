"""The pattern of a sparse factorisation: in which order nodes are eliminated, and which blocks that fills."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int32]

LEAST = 6  # nodes that are not divided any more


@dataclass(frozen=True)
class Pattern:
    """Blocks below the diagonal of the factor, column after column; the names are those of `BodyStruct`.

    Attributes:
        node: of each column.
        place: of each node its column; −1 where it has none.
        column: the first block of each column, and their number.
        row: of each block.
        left: the first entry of each row in the two lists that follow, and their number.
        left_column: columns of a row's blocks.
        left_block: the blocks themselves.
        block: of each element, the block of each pair of its corners whose row comes after its column; −1 otherwise.
        pairs: of each further pair of nodes their block; −1 where one of them is not free.
    """

    node: Whole
    place: Whole
    column: Whole
    row: Whole
    left: Whole
    left_column: Whole
    left_block: Whole
    block: Whole
    pairs: Whole


def pattern(
    nodes: npt.NDArray[np.float64],
    elements: npt.NDArray[np.int64],
    pairs: npt.NDArray[np.int64],
    free: npt.NDArray[np.bool_],
) -> Pattern:
    """The pattern for elements and further pairs of nodes, of which the free ones are unknown.

    Nodes without a place, those past the last of `nodes`, are eliminated last.
    """
    neighbours = _neighbours([*elements.tolist(), *pairs.tolist()], free)
    dissected = _dissected(nodes, neighbours, np.flatnonzero(free[: len(nodes)]).tolist())
    order = np.array([*dissected, *(len(nodes) + np.flatnonzero(free[len(nodes) :]))], dtype=np.int64)
    place = np.full(len(free), -1)
    place[order] = np.arange(len(order))
    rows = _filled([{int(place[other]) for other in neighbours[node]} for node in order])
    column = np.cumsum([0, *map(len, rows)])
    row = np.array([below for each in rows for below in each], dtype=np.int64)
    of_block = np.repeat(np.arange(len(order)), np.diff(column))
    by_row = np.argsort(row, kind="stable")
    left = np.searchsorted(row[by_row], np.arange(len(order) + 1))
    keys, count = of_block * len(order) + row, max(len(row), 1)

    def blocks(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        r, c = np.broadcast_arrays(place[groups][:, :, None], place[groups][:, None, :])
        below = (r > c) & (c >= 0)
        at = np.searchsorted(keys, np.where(below, c * len(order) + r, 0)).clip(0, count - 1)
        return np.where(below, at, -1).reshape(len(groups), -1)

    shared = blocks(pairs).max(1) if len(pairs) else np.zeros(0)
    found = (order, place, column, row, left, of_block[by_row], by_row, blocks(elements), shared)
    return Pattern(*(np.ascontiguousarray(each, dtype=np.int32) for each in found))


def _neighbours(groups: list[list[int]], free: npt.NDArray[np.bool_]) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in free]
    for group in groups:
        known = [node for node in group if free[node]]
        for node in known:
            found[node].update(known)
    for node, others in enumerate(found):
        others.discard(node)
    return found


def _dissected(places: npt.NDArray[np.float64], neighbours: list[set[int]], nodes: list[int]) -> list[int]:
    """Nested dissection by place: two halves first, then those of the upper half that touch the lower one."""
    if len(nodes) <= LEAST:
        return nodes
    at = places[nodes]
    along = at[:, int(np.ptp(at, axis=0).argmax())]
    order = np.argsort(along, kind="stable")
    lower, upper = ([nodes[k] for k in part] for part in np.array_split(order, 2))
    inside = set(lower)
    between = [node for node in upper if not inside.isdisjoint(neighbours[node])]
    apart = set(between)
    rest = [node for node in upper if node not in apart]
    return [*_dissected(places, neighbours, lower), *_dissected(places, neighbours, rest), *between]


def _filled(adjacent: list[set[int]]) -> list[list[int]]:
    """Rows below the diagonal of each column of the factor: its own, and those that columns before it hand on.

    A column hands its rows to the first of them, its parent in the elimination tree.
    """
    handed: list[set[int]] = [set() for _ in adjacent]
    found = []
    for column, others in enumerate(adjacent):
        rows = sorted({row for row in others if row > column} | (handed[column] - {column}))
        found.append(rows)
        if rows:
            handed[rows[0]] |= set(rows)
        handed[column] = set()
    return found
