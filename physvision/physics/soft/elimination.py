"""Sparsity pattern of a Cholesky factor: elimination order of the nodes, and the blocks that it fills."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int32]

MIN_DISSECTED_NODES = 6  # parts with at most so many nodes are not divided further


@dataclass(frozen=True)
class Pattern:
    """Blocks below the diagonal of the factor, column by column; the names are those of `BodyStruct`.

    Attributes:
        node: Node of each column.
        place: Column of each node; −1 for none.
        column: First block of each column, and the number of blocks.
        row: Row of each block.
        left: Index of each row's first entry in `left_column` and `left_block`, and their length.
        left_column: Columns of the blocks to the left of the diagonal, row by row.
        left_block: Numbers of these blocks.
        block: Block of each pair of an element's nodes whose row is behind its column; −1 otherwise.
        pairs: Block of each further pair of nodes; −1 if a node is not free.
    """

    node: Integers
    place: Integers
    column: Integers
    row: Integers
    left: Integers
    left_column: Integers
    left_block: Integers
    block: Integers
    pairs: Integers


def factor_pattern(
    nodes: npt.NDArray[np.float64],
    elements: npt.NDArray[np.int64],
    pairs: npt.NDArray[np.int64],
    free: npt.NDArray[np.bool_],
) -> Pattern:
    """Pattern of the factor.

    Args:
        nodes: Positions of the nodes of the mesh; further nodes, such as solids, are eliminated last.
        elements: Nodes of each element.
        pairs: Further coupled pairs of nodes.
        free: Mask of the unknown nodes.
    """
    neighbors = _neighbors([*elements.tolist(), *pairs.tolist()], free)
    dissected = _dissect(nodes, neighbors, np.flatnonzero(free[: len(nodes)]).tolist())
    order = np.array([*dissected, *(len(nodes) + np.flatnonzero(free[len(nodes) :]))], dtype=np.int64)
    columns = np.full(len(free), -1)
    columns[order] = np.arange(len(order))
    rows = _fill([{int(columns[neighbor]) for neighbor in neighbors[node]} for node in order])
    column = np.cumsum([0, *map(len, rows)])
    row = np.array([below for column_rows in rows for below in column_rows], dtype=np.int64)
    block_columns = np.repeat(np.arange(len(order)), np.diff(column))
    by_row = np.argsort(row, kind="stable")
    left = np.searchsorted(row[by_row], np.arange(len(order) + 1))
    keys, count = block_columns * len(order) + row, max(len(row), 1)

    def blocks(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        r, c = np.broadcast_arrays(columns[groups][:, :, None], columns[groups][:, None, :])
        below = (r > c) & (c >= 0)
        index = np.searchsorted(keys, np.where(below, c * len(order) + r, 0)).clip(0, count - 1)
        return np.where(below, index, -1).reshape(len(groups), -1)

    shared = blocks(pairs).max(1) if len(pairs) else np.zeros(0)
    arrays = (order, columns, column, row, left, block_columns[by_row], by_row, blocks(elements), shared)
    return Pattern(*(np.ascontiguousarray(array, dtype=np.int32) for array in arrays))


def _neighbors(groups: list[list[int]], free: npt.NDArray[np.bool_]) -> list[set[int]]:
    """Free nodes that share an element or a pair with each node."""
    neighbors: list[set[int]] = [set() for _ in free]
    for group in groups:
        free_nodes = [node for node in group if free[node]]
        for node in free_nodes:
            neighbors[node].update(free_nodes)
    for node, group in enumerate(neighbors):
        group.discard(node)
    return neighbors


def _dissect(positions: npt.NDArray[np.float64], neighbors: list[set[int]], nodes: list[int]) -> list[int]:
    """Order nodes by nested dissection of space: both halves, then the separator, part of the upper half."""
    if len(nodes) <= MIN_DISSECTED_NODES:
        return nodes
    points = positions[nodes]
    coordinate = points[:, int(np.ptp(points, axis=0).argmax())]
    order = np.argsort(coordinate, kind="stable")
    lower, upper = ([nodes[k] for k in part] for part in np.array_split(order, 2))
    lower_nodes = set(lower)
    separator = [node for node in upper if not lower_nodes.isdisjoint(neighbors[node])]
    separator_nodes = set(separator)
    rest = [node for node in upper if node not in separator_nodes]
    return [*_dissect(positions, neighbors, lower), *_dissect(positions, neighbors, rest), *separator]


def _fill(adjacent: list[set[int]]) -> list[list[int]]:
    """Rows below the diagonal of each column of the factor: its own, and the fill of previous columns.

    A column passes its rows to the first of them, its parent in the elimination tree.
    """
    inherited: list[set[int]] = [set() for _ in adjacent]
    filled = []
    for column, neighbors in enumerate(adjacent):
        rows = sorted({row for row in neighbors if row > column} | (inherited[column] - {column}))
        filled.append(rows)
        if rows:
            inherited[rows[0]] |= set(rows)
        inherited[column] = set()
    return filled
