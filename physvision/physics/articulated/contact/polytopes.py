"""Vertices and faces of convex shapes, in one table for the general convex pair of the kernels."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, InputError, Shape, Sphere
from physvision.physics.articulated.settings import SETTINGS

# Kinds of convex shapes, numbered as in `kernels/collision/support_shapes.py`.
_POLYTOPE, _ROUNDED, _CYLINDER, _ELLIPSOID = range(4)

VertexLoops = list[list[int]]  # vertices of each face, counterclockwise as seen from outside


def polytope_arrays(shapes: Sequence[Shape]) -> dict[str, np.ndarray]:
    """Vertices, edges and faces of all shapes, by the names of the kernels' `ContactModel`."""
    kinds, bounds, vertices, normals, loops = [], [], [], [], []
    neighbors: list[list[int]] = []
    vertex_start, face_start = [0], [0]
    for shape in shapes:
        kind, points, faces = _convex_shape(shape)
        # The kernels visit all vertices of a shape without edges; only hulls have enough vertices to need edges.
        edges = _hull(shape.vertices).neighbors if isinstance(shape, Hull) else [[] for _ in points]
        neighbors += [[vertex + vertex_start[-1] for vertex in row] for row in edges]
        kinds.append(kind)
        bounds.append(np.linalg.norm(points, axis=1).max() if kind == _POLYTOPE else 1.0)
        normals.append(_normals(points, faces))
        loops += [np.array(face, int) + vertex_start[-1] for face in faces]
        vertices.append(points)
        vertex_start.append(vertex_start[-1] + len(points))
        face_start.append(face_start[-1] + len(faces))
    return {
        "shapes.kind": np.array(kinds, np.int32),
        "shapes.bounding_radius": np.array(bounds, float),
        "shapes.first_vertex": np.array(vertex_start, np.int32),
        "shapes.first_face": np.array(face_start, np.int32),
        "hulls.vertex": np.concatenate([*vertices, np.zeros((1, 3))]),
        "hulls.neighbor_start": np.cumsum([0, *map(len, neighbors), 0]).astype(np.int32),
        "hulls.neighbor": np.array([*(vertex for row in neighbors for vertex in row), 0], np.int32),
        "hulls.face_normal": np.concatenate([*normals, np.zeros((1, 3))]),
        "hulls.loop_start": np.cumsum([0, *map(len, loops)]).astype(np.int32),
        "hulls.loop": np.concatenate([*loops, [0]]).astype(np.int32),
    }


def _convex_shape(shape: Shape) -> tuple[int, np.ndarray, VertexLoops]:
    """Return kind, vertices in units of the sizes, and faces.

    The axis of a capsule or a cylinder is listed as its last face, with two vertices.
    """
    match shape:
        case Box():
            points = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
            faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
            return _POLYTOPE, points, faces
        case Hull():
            hull = _hull(shape.vertices)
            return _POLYTOPE, hull.vertices, hull.faces
        case Sphere():
            return _ROUNDED, np.zeros((1, 3)), []
        case Capsule():
            return _ROUNDED, _axis(), [[0, 1]]
        case Cylinder():
            sides = SETTINGS.prism_sides
            angle = 2 * np.pi * (np.arange(sides) + 0.5) / sides
            top, bottom = (np.stack([np.cos(angle), np.sin(angle), 0 * angle + end], 1) for end in (0.5, -0.5))
            rim = list(range(sides))
            faces = [rim, [sides + k for k in reversed(rim)], [2 * sides, 2 * sides + 1]]
            return _CYLINDER, np.concatenate([top, bottom, _axis()]), faces
        case Ellipsoid():
            return _ELLIPSOID, np.zeros((1, 3)), []
        case _:
            # Pairs with planes have kinds of their own.
            return _POLYTOPE, np.zeros((1, 3)), []


def _axis() -> np.ndarray:
    return np.array([[0, 0, -0.5], [0, 0, 0.5]])


def _normals(points: np.ndarray, loops: VertexLoops) -> np.ndarray:
    """Unit normal of each loop of vertices by Newell's sum, (loops, 3); zero for a loop without area."""
    if not loops:
        return np.zeros((0, 3))
    start = np.cumsum([0, *map(len, loops)])
    vertex = np.concatenate(loops)
    next_vertex = np.arange(1, len(vertex) + 1)
    next_vertex[start[1:] - 1] = start[:-1]
    normals = np.add.reduceat(np.cross(points[vertex], points[vertex[next_vertex]]), start[:-1])
    return normals / np.linalg.norm(normals, axis=1, keepdims=True).clip(1e-300)


class _Polytope(NamedTuple):
    """Vertices and faces of a convex hull, and the neighbors of each vertex along its edges."""

    vertices: np.ndarray
    faces: VertexLoops
    neighbors: list[list[int]]


@cache
def _hull(vertices: tuple[tuple[float, float, float], ...]) -> _Polytope:
    """Convex hull of points by MuJoCo, with coplanar triangles merged to faces.

    Edges are those of the triangles, of which a face may have several. Hence, also within a face, every vertex that is
    not extreme in a given direction has an edge that leads farther in that direction.
    """
    points = np.array(vertices, float)
    specification = mujoco.MjSpec()
    mesh = specification.add_mesh(name="hull", uservert=points.ravel().tolist())
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
    specification.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="hull")
    try:
        model = specification.compile()
    except ValueError as error:
        raise InputError(f"hull: {error}") from error
    row = _point_rows(points, model)
    triangles = _triangles(model)
    extreme = sorted({row[vertex] for vertex in triangles.flat})
    number = {point: k for k, point in enumerate(extreme)}
    corners = [tuple(number[row[vertex]] for vertex in triangle) for triangle in triangles]
    edges: list[set[int]] = [set() for _ in extreme]
    for start, end in (edge for triangle in corners for edge in _edges(triangle)):
        if start != end:
            edges[start].add(end)
            edges[end].add(start)
    faces = _faces(points[extreme], [triangle for triangle in corners if len(set(triangle)) == 3])
    return _Polytope(points[extreme], faces, [sorted(ends) for ends in edges])


def _faces(points: np.ndarray, triangles: list[tuple[int, ...]]) -> VertexLoops:
    """Faces of a convex hull: triangles that share edges and lie in the plane of the largest of them.

    MuJoCo's own faces join triangles that differ by up to half a degree, whose common plane can be a millimeter off.
    """
    corners = points[np.array(triangles)]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normals, axis=1)
    tolerance = SETTINGS.hull_tolerance * float(np.ptp(points))
    row_by_edge = {edge: row for row, triangle in enumerate(triangles) for edge in _edges(triangle)}
    unassigned, faces = set(range(len(triangles))), []
    for largest in np.argsort(-area).tolist():
        if largest not in unassigned or area[largest] == 0:
            continue
        normal = normals[largest] / area[largest]
        unassigned.remove(largest)
        face, frontier = {largest}, [largest]
        while frontier:
            for start, end in _edges(triangles[frontier.pop()]):
                neighbor = row_by_edge.get((end, start))
                if (
                    neighbor in unassigned
                    and np.abs((corners[neighbor] - corners[largest, 0]) @ normal).max() <= tolerance
                ):
                    unassigned.remove(neighbor)
                    face.add(neighbor)
                    frontier.append(neighbor)
        faces.append(_boundary(points, [triangles[row] for row in face]))
    return faces


def _boundary(points: np.ndarray, triangles: list[tuple[int, ...]]) -> list[int]:
    """Vertices around triangles that share edges, in the triangles' own direction; around a hole they do not count."""
    edges = {edge for triangle in triangles for edge in _edges(triangle)}
    following = {start: end for start, end in sorted(edges) if (end, start) not in edges}
    loops = []
    while following:
        loop = [min(following)]
        while (vertex := following.pop(loop[-1], loop[0])) != loop[0]:
            loop.append(vertex)
        loops.append(loop)
    return max(loops, key=lambda loop: np.ptp(points[loop], axis=0).sum())


def _edges(triangle: tuple[int, ...]) -> list[tuple[int, int]]:
    """Edges of a triangle, in its direction."""
    a, b, c = triangle
    return [(a, b), (b, c), (c, a)]


def _point_rows(points: np.ndarray, model: mujoco.MjModel) -> list[int]:
    """Return the index of the given point that each mesh vertex equals; MuJoCo rotates and translates meshes."""
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.mesh_quat[0])
    placed = model.mesh_vert @ rotation.reshape(3, 3).T + model.mesh_pos[0]
    tolerance = SETTINGS.hull_tolerance * float(np.ptp(points))
    if len(placed) == len(points) and np.allclose(placed, points, atol=tolerance):
        return list(range(len(points)))
    return [int(np.square(points - vertex).sum(1).argmin()) for vertex in placed]


def _triangles(model: mujoco.MjModel) -> np.ndarray:
    """Triangles of the convex hull of the model's mesh, (triangles, 3).

    MuJoCo's `mesh_graph` holds the counts of vertices and triangles; for each vertex the start of its edges, and its
    index in the mesh; the edges; then the triangles. There are as many edges as vertices and three times the triangles.
    """
    vertices, count = model.mesh_graph[:2]
    start = 2 + 3 * vertices + 3 * count
    return model.mesh_graph[start : start + 3 * count].reshape(-1, 3)
