"""Meshes of triangles and tetrahedra: validation, generation of simple shapes, and reading of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product
from math import factorial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from physvision.core.checks import check_count, check_positive
from physvision.core.errors import FileError, InputError, MissingError, ModelError

CLOSE = 1e-9  # fraction of the extent of the mesh within which two nodes coincide


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles in the plane, tetrahedra, or triangles in space (cloth).

    Raises:
        ModelError: A coordinate is not finite, an element is flat or inverted, a node belongs to no element, two nodes
            coincide, or more than two elements share a side.

    Attributes:
        nodes: Rest positions, m, (nodes, 2 or 3).
        elements: Node indices of the elements, (elements, 3 or 4), counterclockwise in the plane; tetrahedra have
            positive volume.
    """

    nodes: npt.NDArray[np.float64]
    elements: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", np.array(self.nodes, dtype=np.float64))
        object.__setattr__(self, "elements", np.array(self.elements, dtype=np.int64))
        nodes, elements = self.nodes, self.elements
        if nodes.ndim != 2 or nodes.shape[1] not in (2, 3):
            raise ModelError(f"nodes: expected shape (nodes, 2 or 3), got {nodes.shape}")
        corners = (3,) if nodes.shape[1] == 2 else (3, 4)
        if elements.ndim != 2 or elements.shape[1] not in corners or not len(elements):
            raise ModelError(f"elements: expected shape (elements, {corners}), got {elements.shape}")
        if not np.isfinite(nodes).all():
            raise ModelError(f"nodes: expected finite numbers, node {_first(~np.isfinite(nodes).all(1))} has others")
        low, high = elements.min(), elements.max()
        if low < 0 or high >= len(nodes):
            raise ModelError(f"elements: expected nodes of 0 to {len(nodes) - 1}, got {low}, {high}")
        self._check_elements()
        self._check_seams()

    def _check_elements(self) -> None:
        volumes = self.volumes
        bad = volumes <= CLOSE * np.abs(volumes).max()
        if bad.any():
            raise ModelError(
                f"elements: element {_first(bad)} of nodes {self.elements[_first(bad)].tolist()} has volume "
                f"{volumes[_first(bad)]:g}; expected a positive one: exchange two of its nodes if it is inverted, "
                "and leave it out if it is flat"
            )

    def _check_seams(self) -> None:
        unused = np.bincount(self.elements.ravel(), minlength=len(self.nodes)) == 0
        if unused.any():
            raise ModelError(f"nodes: node {_first(unused)} belongs to no element, so it has no mass; leave it out")
        extent = np.ptp(self.nodes, axis=0).max()
        order = np.lexsort(np.round(self.nodes / (CLOSE * extent)).T)
        same = np.abs(np.diff(self.nodes[order], axis=0)).max(1) <= CLOSE * extent
        if same.any():
            pair = sorted(order[_first(same) : _first(same) + 2].tolist())
            raise ModelError(f"nodes: {pair[0]} and {pair[1]} are at one place, where the mesh is torn; make them one")
        shared = [side for side, count in self._sides().items() if count > 2]
        if shared:
            raise ModelError(f"elements: more than two share the side of nodes {sorted(shared[0])}")

    def _sides(self) -> Counter[frozenset[int]]:
        """Count the elements that every side belongs to."""
        size = self.elements.shape[1] - 1
        return Counter(frozenset(side) for element in self.elements.tolist() for side in combinations(element, size))

    @property
    def axes(self) -> int:
        """Number of spatial dimensions: two or three."""
        return self.nodes.shape[1]

    @property
    def cloth(self) -> bool:
        """If true, the elements are triangles in space."""
        return self.elements.shape[1] == self.axes

    @cached_property
    def volumes(self) -> npt.NDArray[np.float64]:
        """Volumes of the elements, m³; areas of triangles, m²."""
        if self.cloth:
            return self._areas(self.elements)
        return np.linalg.det(self._edges(self.elements)) / factorial(self.axes)

    def _areas(self, simplices: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Compute unsigned measures of simplices with any number of vertices."""
        edges = self._edges(simplices)
        return np.sqrt(np.linalg.det(edges @ edges.transpose(0, 2, 1)).clip(0.0)) / factorial(simplices.shape[1] - 1)

    def _edges(self, simplices: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return self.nodes[simplices[:, 1:]] - self.nodes[simplices[:, :1]]

    @cached_property
    def surface(self) -> npt.NDArray[np.int64]:
        """Node indices of the boundary sides, which belong to one element only."""
        sides = [sorted(side) for side, count in self._sides().items() if count == 1]
        return np.array(sides, dtype=np.int64)

    @cached_property
    def node_areas(self) -> npt.NDArray[np.float64]:
        """Surface area lumped to the nodes, m² (m in the plane); zero for interior nodes, except those of cloth."""
        sides = self.elements if self.cloth else self.surface
        areas = np.zeros(len(self.nodes))
        np.add.at(areas, sides, (self._areas(sides) / self.axes)[:, None])
        return areas

    @cached_property
    def opposites(self) -> npt.NDArray[np.int64]:
        """Node of the adjacent triangle across the side opposite to each vertex, (elements, 3); −1 if there is none."""
        beyond: dict[frozenset[int], list[int]] = {}
        for a, b, c in self.elements.tolist():
            for node, side in ((a, (b, c)), (b, (c, a)), (c, (a, b))):
                beyond.setdefault(frozenset(side), []).append(node)
        across = []
        for element in self.elements.tolist():
            sides = ((node, beyond[frozenset(element) - {node}]) for node in element)
            across.append([sum(nodes) - node if len(nodes) == 2 else -1 for node, nodes in sides])
        return np.array(across)

    @cached_property
    def size(self) -> float:
        """Mean edge length of the elements, m."""
        pairs = np.array([pair for element in self.elements for pair in combinations(element, 2)])
        return float(np.linalg.norm(self.nodes[pairs[:, 0]] - self.nodes[pairs[:, 1]], axis=1).mean())

    def nearest_node(self, point: Sequence[float]) -> int:
        """Index of the node nearest to a point."""
        return int(np.linalg.norm(self.nodes - np.asarray(point, dtype=np.float64), axis=1).argmin())


def cloth(
    size: tuple[float, float], divisions: tuple[int, int], corner: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> Mesh:
    """Generate a horizontal rectangle of cloth with parallel diagonals, on which bending is isotropic.

    Args:
        size: Edge lengths along x and y, m.
        divisions: Number of squares along x and y.
        corner: Corner with the smallest coordinates, m.
    """
    nodes, elements = _right_triangles(size, divisions, corner[:2], alternate=False)
    return Mesh(np.pad(nodes, ((0, 0), (0, 1)), constant_values=corner[2]), elements)


def rectangle(size: tuple[float, float], divisions: tuple[int, int], corner: tuple[float, float] = (0.0, 0.0)) -> Mesh:
    """Generate a rectangle of right triangles with alternating diagonals.

    Args:
        size: Width and height, m.
        divisions: Number of squares along x and y.
        corner: Lower left corner, m.
    """
    return Mesh(*_right_triangles(size, divisions, corner, alternate=True))


def _right_triangles(
    size: tuple[float, float], divisions: tuple[int, int], corner: tuple[float, float], alternate: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the nodes and triangles of a grid of squares with parallel or alternating diagonals."""
    nodes, ny, elements = _grid(size, divisions, corner), divisions[1] + 1, []
    for i, j in product(range(divisions[0]), range(divisions[1])):
        a, b, c, d = i * ny + j, (i + 1) * ny + j, (i + 1) * ny + j + 1, i * ny + j + 1
        is_flipped = alternate and (i + j) % 2 == 0
        elements += [(a, b, d), (b, c, d)] if is_flipped else [(a, b, c), (a, c, d)]
    return nodes, np.array(elements)


def box(
    size: tuple[float, float, float],
    divisions: tuple[int, int, int],
    corner: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Mesh:
    """Generate a box of cells, split into six tetrahedra each.

    Args:
        size: Edge lengths along x, y and z, m.
        divisions: Number of cells along x, y and z.
        corner: Corner with the smallest coordinates, m.
    """
    grid = _grid(size, divisions, corner)
    strides = ((divisions[1] + 1) * (divisions[2] + 1), divisions[2] + 1, 1)
    elements = []
    for cell in product(*(range(count) for count in divisions)):
        first = sum(at * stride for at, stride in zip(cell, strides, strict=True))
        for axes in permutations(range(3)):
            # From corner to corner of the cell along its edges, one axis after another.
            path = np.cumsum([first, *(strides[axis] for axis in axes)])
            even = axes in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
            elements.append(path if even else path[[0, 2, 1, 3]])
    return Mesh(grid, np.array(elements))


def disc(radius: float, rings: int, center: tuple[float, float] = (0.0, 0.0)) -> Mesh:
    """Generate a disc of concentric rings of triangles.

    Args:
        radius: Radius, m.
        rings: Number of rings.
        center: Center, m.
    """
    check_positive("radius", radius)
    check_count("rings", rings)
    nodes, elements = [np.zeros((1, 2))], []
    for ring in range(1, rings + 1):
        angles = np.arange(6 * ring) * (np.pi / (3 * ring))
        nodes.append(radius * ring / rings * np.stack([np.cos(angles), np.sin(angles)], 1))
        outer, inner = 1 + 3 * ring * (ring - 1), 1 + 3 * (ring - 1) * (ring - 2) if ring > 1 else 0
        for sector in range(6):
            for k in range(ring):
                a, b = outer + sector * ring + k, outer + (sector * ring + k + 1) % (6 * ring)
                inward = inner + (sector * (ring - 1) + k) % max(6 * (ring - 1), 1)
                elements.append((inward, a, b))
                if k < ring - 1:
                    elements.append((inward, b, inner + (sector * (ring - 1) + k + 1) % (6 * (ring - 1))))
    return Mesh(np.concatenate(nodes) + np.asarray(center), np.array(elements))


def read(path: str | Path) -> Mesh:
    """Read the tetrahedra of a mesh file in any format of meshio or, if there are none, its triangles.

    Triangles of equal height z are a planar body, others are cloth. Needs `pip install physvision[meshes]`. Nodes that
    belong to no element are dropped, and elements are reoriented so that their volumes are positive.
    """
    try:
        import meshio
    except ImportError as error:
        raise MissingError("reading a mesh needs meshio; pip install physvision[meshes]") from error
    if not Path(path).is_file():
        raise FileError(f"path: there is no file {path}")
    try:
        mesh = meshio.read(path)
    except (meshio.ReadError, ValueError, KeyError, IndexError, SystemExit) as error:  # meshio ends the process
        raise FileError(f"path: {path} cannot be read as a mesh: {error}") from error
    for kind, axes in (("tetra", 3), ("triangle", 2)):
        blocks = [block.data for block in mesh.cells if block.type == kind]
        if blocks:
            used, elements = np.unique(np.concatenate(blocks), return_inverse=True)
            nodes, elements = mesh.points[used].astype(np.float64), elements.reshape(-1, axes + 1)
            if axes == 2 and nodes.shape[1] == 3 and np.ptp(nodes[:, 2]) > 0:
                return Mesh(nodes, elements)
            inverted = np.linalg.det(nodes[elements[:, 1:], :axes] - nodes[elements[:, :1], :axes]) < 0
            elements[inverted, :2] = elements[inverted, 1::-1]
            return Mesh(nodes[:, :axes], elements)
    kinds = ", ".join(sorted({block.type for block in mesh.cells})) or "none"
    raise ModelError(f"path: expected triangles or tetrahedra in {path}, found {kinds}")


def _grid(size: Sequence[float], divisions: Sequence[int], corner: Sequence[float]) -> npt.NDArray[np.float64]:
    if not len(size) == len(divisions) == len(corner):
        raise InputError(f"size, divisions, corner: expected the same length, got {size}, {divisions}, {corner}")
    pairs = zip(size, divisions, strict=True)
    cells = [check_positive("size", length) / check_count("divisions", count) for length, count in pairs]
    lines = [first + cell * np.arange(n + 1) for first, cell, n in zip(corner, cells, divisions, strict=True)]
    return np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, len(size)).astype(np.float64)


def _first(wrong: npt.ArrayLike) -> int:
    return int(np.flatnonzero(wrong)[0])
