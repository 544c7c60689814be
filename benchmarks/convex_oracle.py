"""Oracle of distance and penetration of two convex shapes, which shares no code and no method with the package.

Separate shapes: the shortest difference of two of their points, by quadratic programming. With the corners of both
polytopes, x = Σ λ (a − b) is shortest where λ ≥ 0 minimizes |Σ λ (a − b)|² + (Σ λ − 1)², a nonnegative least-squares
problem (scipy.optimize.nnls); round shapes add their support points along x until the support function bounds the
distance from below. Whether polytopes share a point is asked of linear programming as well (`share_a_point`).

Penetrating shapes: the direction along which the support functions leave the least penetration. Of polytopes it is a
normal of a face, or perpendicular to an edge of each; all of these are tried. Where a shape is round, the best of
thousands of directions are refined.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import linprog, nnls
from scipy.spatial import ConvexHull

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Plane, Shape, Sphere

ROUNDS = 200  # of support points that are added
SEARCH_ROUNDS = 1000  # of a search among directions, at most
COPLANAR = 1e-9  # difference of the normals of triangles of one face
DIRECTIONS = 3000
STARTS = 24  # directions that are refined

Array = np.ndarray


@dataclass(frozen=True)
class Posed:
    """Shape with its pose in the world.

    Attributes:
        shape: Shape in its own frame.
        rotation: Rotation from the frame of the shape to the world, (3, 3).
        origin: Origin of that frame in the world, m, (3,).
    """

    shape: Shape
    rotation: Array
    origin: Array

    @property
    def corners(self) -> Array | None:
        """Corners of a polytope in the world, m, (corners, 3); None for a round shape."""
        match self.shape:
            case Box():
                local = np.array(list(product((-0.5, 0.5), repeat=3))) * self.shape.sizes
            case Hull():
                local = np.array(self.shape.vertices)
            case _:
                return None
        return local @ self.rotation.T + self.origin

    @property
    def is_polytope(self) -> bool:
        """If true, the shape is a box or a convex hull."""
        return isinstance(self.shape, Box | Hull)

    def support(self, normal: Array) -> Array:
        """Farthest point along normals, m, (..., 3)."""
        local = normal @ self.rotation
        match self.shape:
            case Sphere():
                point = self.shape.radius * local / np.linalg.norm(local, axis=-1, keepdims=True)
            case Capsule():
                point = self.shape.radius * local / np.linalg.norm(local, axis=-1, keepdims=True)
                point = point + self._end(local)
            case Box():
                point = np.where(local >= 0, 0.5, -0.5) * np.array(self.shape.sizes)
            case Cylinder():
                radial = np.linalg.norm(local[..., :2], axis=-1, keepdims=True)
                point = self.shape.radius * local / np.where(radial > 0, radial, 1.0) * [1, 1, 0] + self._end(local)
            case Ellipsoid():
                stretched = local * np.array(self.shape.radii)
                point = stretched * np.array(self.shape.radii) / np.linalg.norm(stretched, axis=-1, keepdims=True)
            case Hull():
                vertices = np.array(self.shape.vertices)
                point = vertices[(local @ vertices.T).argmax(-1)]
            case _:
                raise TypeError(type(self.shape).__name__)
        return point @ self.rotation.T + self.origin

    def _end(self, local: Array) -> Array:
        length = self.shape.length  # pyright: ignore[reportAttributeAccessIssue]
        return np.where(local[..., 2:] >= 0, 0.5, -0.5) * length * np.array([0, 0, 1])

    def extent(self, normal: Array) -> Array:
        """Value of the support function along unit normals, m."""
        return (self.support(normal) * normal).sum(-1)


def separation_along(a: Posed, b: Posed, normal: Array) -> Array:
    """Separation of two shapes along unit normals toward the first, m, (...)."""
    return -a.extent(-normal) - b.extent(normal)


def separation(a: Posed, b: Posed, rng: np.random.Generator) -> float:
    """Distance of two shapes, or minus the least depth of penetration, m; a plane may only be the second."""
    if isinstance(b.shape, Plane):
        normal = b.rotation[:, 2]
        return float(-a.extent(-normal) - normal @ b.origin)
    distance, bound = _distance(a, b)
    return distance if bound > 0 else -penetration(a, b, rng)


def _distance(a: Posed, b: Posed) -> tuple[float, float]:
    """Return the distance of two shapes and a lower bound of it, which is not above zero if they share a point."""
    start = a.origin - b.origin
    first, second = a.corners, b.corners
    if first is not None and second is not None:
        points = (first[:, None] - second).reshape(-1, 3)
    else:
        points = np.array([a.support(-d) - b.support(d) for d in (start, *np.eye(3), *-np.eye(3))])
    size = np.abs(points - points.mean(0)).max()
    x, best = np.zeros(3), -np.inf
    for _ in range(ROUNDS):
        weight, _ = nnls(np.vstack([points.T / size, np.ones(len(points))]), np.array([0, 0, 0, 1.0]), maxiter=1000)
        x = points.T @ weight / weight.sum()
        length = float(np.linalg.norm(x))
        if length < 1e-13 * size:
            return 0.0, min(best, 0.0)
        normal = x / length
        point = a.support(-normal) - b.support(normal)
        best = max(best, float(point @ normal))
        if best > length - 1e-13 * size:
            break
        points = np.vstack([points[weight > 0], point])
    return float(np.linalg.norm(x)), best


def share_a_point(a: Posed, b: Posed) -> bool:
    """If true, two polytopes have a common point, by linear programming over the weights of their corners."""
    first, second = a.corners, b.corners
    assert first is not None
    assert second is not None
    ones = [[1.0] * len(first) + [0.0] * len(second), [0.0] * len(first) + [1.0] * len(second)]
    equations = np.vstack([np.hstack([first.T, -second.T]), ones])
    result = linprog(np.zeros(equations.shape[1]), A_eq=equations, b_eq=[0, 0, 0, 1, 1])
    return result.status == 0


def penetration(a: Posed, b: Posed, rng: np.random.Generator) -> float:
    """Least distance by which one shape has to be moved until they are separate, m."""
    if a.is_polytope and b.is_polytope:
        return -float(separation_along(a, b, _polytope_normals(a, b)).max())
    normals = rng.normal(size=(DIRECTIONS, 3))
    candidates = [normals, a.rotation.T, -a.rotation.T, b.rotation.T, -b.rotation.T]
    candidates += [np.vstack([n, -n]) for posed in (a, b) if posed.is_polytope for n in [_faces_and_edges(posed)[0]]]
    normals = np.vstack(candidates)
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    values = separation_along(a, b, normals)
    best = normals[np.argsort(-values)[:STARTS]]
    value = np.sort(-values)[:STARTS] * -1
    radius = np.full(len(best), 0.1)
    turns = np.arange(8) * np.pi / 4
    for _ in range(SEARCH_ROUNDS):
        side = np.cross(best, np.eye(3)[np.abs(best).argmin(1)])
        side = side / np.linalg.norm(side, axis=1, keepdims=True)
        second_side = np.cross(best, side)
        spin = rng.uniform(0, np.pi)
        step = np.cos(turns + spin)[:, None, None] * side + np.sin(turns + spin)[:, None, None] * second_side
        around = best + radius[:, None] * step
        around = around / np.linalg.norm(around, axis=-1, keepdims=True)
        values = separation_along(a, b, around)
        choice = values.argmax(0)
        selected = values[choice, np.arange(len(best))]
        better = selected > value
        best = np.where(better[:, None], around[choice, np.arange(len(best))], best)
        value = np.where(better, selected, value)
        # A step that gained nothing is halved; one that did is doubled, or a flat ridge would take ever more of them.
        radius = np.where(better, np.minimum(2.0 * radius, 0.1), 0.5 * radius)
        if (radius < 1e-10).all():
            break
    return -float(value.max())


def _polytope_normals(a: Posed, b: Posed) -> Array:
    """Return the normals of all faces of two polytopes, and the directions across an edge of each, of both signs."""
    (first, first_edges), (second, second_edges) = _faces_and_edges(a), _faces_and_edges(b)
    across = np.cross(first_edges[:, None], second_edges).reshape(-1, 3)
    length = np.linalg.norm(across, axis=1, keepdims=True)
    across = (across / np.where(length > 0, length, 1.0))[length[:, 0] > 1e-9]
    normals = np.vstack([first, second, across])
    return np.vstack([normals, -normals])


def _faces_and_edges(posed: Posed) -> tuple[Array, Array]:
    """Return the normals of a polytope's faces and the directions of its edges, in the world."""
    if isinstance(posed.shape, Box):
        return posed.rotation.T, posed.rotation.T
    corners = posed.corners
    assert corners is not None
    hull = ConvexHull(corners, qhull_options="Qt")
    normals = hull.equations[:, :3]
    edges = []
    for row, (simplex, beside) in enumerate(zip(hull.simplices, hull.neighbors, strict=True)):
        for k in range(3):
            if beside[k] > row and np.abs(normals[row] - normals[beside[k]]).max() > COPLANAR:
                start, end = corners[np.delete(simplex, k)]
                edges.append((end - start) / np.linalg.norm(end - start))
    return normals, np.array(edges)
