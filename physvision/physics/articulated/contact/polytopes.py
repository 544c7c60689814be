"""Convex shapes as the kernels' general pair reads them: corners and faces of all shapes in one table."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, InputError, Shape, Sphere

# As `kernels/solids.py` numbers them.
_POLYTOPE, _ROUNDED, _CYLINDER, _ELLIPSOID = range(4)
_SIDES = 8  # of the prism on which a cylinder stands

_ROUNDING = 1e-6  # of their size, by which MuJoCo's vertices differ from those given

Loops = list[list[int]]  # of each face its corners, anticlockwise as seen from outside


def table(shapes: Sequence[Shape]) -> dict[str, np.ndarray]:
    """The arrays of the kernels' `Contacts` that tell the corners and faces of these shapes."""
    kinds, bounds, corners, normals, loops = [], [], [], [], []
    neighbours: list[list[int]] = []
    corner_start, face_start = [0], [0]
    for shape in shapes:
        kind, points, faces = _solid(shape)
        # Few corners are all looked at, and what is no hull has few.
        edges = _hull(shape.vertices).neighbours if isinstance(shape, Hull) else [[] for _ in points]
        neighbours += [[corner + corner_start[-1] for corner in each] for each in edges]
        kinds.append(kind)
        bounds.append(np.linalg.norm(points, axis=1).max() if kind == _POLYTOPE else 1.0)
        normals.append(_normals(points, faces))
        loops += [np.array(face, int) + corner_start[-1] for face in faces]
        corners.append(points)
        corner_start.append(corner_start[-1] + len(points))
        face_start.append(face_start[-1] + len(faces))
    return {
        "solid_kind": np.array(kinds, np.int32),
        "solid_bound": np.array(bounds, float),
        "solid_corner": np.array(corner_start, np.int32),
        "solid_face": np.array(face_start, np.int32),
        "corner": np.concatenate([*corners, np.zeros((1, 3))]),
        "neighbour_start": np.cumsum([0, *map(len, neighbours), 0]).astype(np.int32),
        "neighbour": np.array([*(corner for each in neighbours for corner in each), 0], np.int32),
        "face_normal": np.concatenate([*normals, np.zeros((1, 3))]),
        "loop_start": np.cumsum([0, *map(len, loops)]).astype(np.int32),
        "loop": np.concatenate([*loops, [0]]).astype(np.int32),
    }


def _solid(shape: Shape) -> tuple[int, np.ndarray, Loops]:
    """Kind, corners as shares of sizes, and faces; a capsule's one face, and a cylinder's last, is its axis."""
    match shape:
        case Box():
            points = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
            faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
            return _POLYTOPE, points, faces
        case Hull():
            hull = _hull(shape.vertices)
            return _POLYTOPE, hull.corners, hull.faces
        case Sphere():
            return _ROUNDED, np.zeros((1, 3)), []
        case Capsule():
            return _ROUNDED, _axis(), [[0, 1]]
        case Cylinder():
            angle = 2 * np.pi * (np.arange(_SIDES) + 0.5) / _SIDES
            top, bottom = (np.stack([np.cos(angle), np.sin(angle), 0 * angle + end], 1) for end in (0.5, -0.5))
            around = list(range(_SIDES))
            faces = [around, [_SIDES + k for k in reversed(around)], [2 * _SIDES, 2 * _SIDES + 1]]
            return _CYLINDER, np.concatenate([top, bottom, _axis()]), faces
        case Ellipsoid():
            return _ELLIPSOID, np.zeros((1, 3)), []
        case _:
            # Planes have pairs of their own.
            return _POLYTOPE, np.zeros((1, 3)), []


def _axis() -> np.ndarray:
    return np.array([[0, 0, -0.5], [0, 0, 0.5]])


def _normals(points: np.ndarray, loops: Loops) -> np.ndarray:
    """The unit normal of each loop of corners (Newell's sum), (loops, 3); zero of one without area."""
    if not loops:
        return np.zeros((0, 3))
    start = np.cumsum([0, *map(len, loops)])
    corner = np.concatenate(loops)
    after = np.arange(1, len(corner) + 1)
    after[start[1:] - 1] = start[:-1]
    found = np.add.reduceat(np.cross(points[corner], points[corner[after]]), start[:-1])
    return found / np.linalg.norm(found, axis=1, keepdims=True).clip(1e-300)


class _Polytope(NamedTuple):
    """A convex hull: its corners alone, its faces, and of each corner those that edges lead to."""

    corners: np.ndarray
    faces: Loops
    neighbours: list[list[int]]


@cache
def _hull(vertices: tuple[tuple[float, float, float], ...]) -> _Polytope:
    """The convex hull of some points, faces in one plane joined, as MuJoCo finds it.

    Edges are those of its triangles, of which more than one may make a face: within a face too every corner that is not
    the highest then has an edge that leads uphill.
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
    row = _rows(points, model)
    triangles = _triangles(model)
    kept = sorted({row[corner] for corner in triangles.flat})
    number = {each: place for place, each in enumerate(kept)}
    edges: list[set[int]] = [set() for _ in kept]
    for a, b in ((triangle[k], triangle[k - 1]) for triangle in triangles for k in range(3)):
        one, other = number[row[a]], number[row[b]]
        if one != other:
            edges[one].add(other)
            edges[other].add(one)
    loops = [
        [row[corner] for corner in model.mesh_polyvert[start : start + count]]
        for start, count in zip(model.mesh_polyvertadr.tolist(), model.mesh_polyvertnum.tolist(), strict=True)
    ]
    normals = _normals(points, loops)
    sense = (normals * (points[[loop[0] for loop in loops]] - points.mean(0))).sum(1)
    faces = [
        [number[corner] for corner in (loop if outwards > 0 else loop[::-1])]
        for loop, whole, outwards in zip(loops, (normals != 0).any(1).tolist(), sense, strict=True)
        if whole
    ]
    return _Polytope(points[kept], faces, [sorted(each) for each in edges])


def _rows(points: np.ndarray, model: mujoco.MjModel) -> list[int]:
    """Which of some points each vertex of the model's mesh is; MuJoCo turns and shifts meshes."""
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.mesh_quat[0])
    placed = model.mesh_vert @ turn.reshape(3, 3).T + model.mesh_pos[0]
    if len(placed) == len(points) and np.allclose(placed, points, atol=_ROUNDING * float(np.ptp(points))):
        return list(range(len(points)))
    return [int(np.square(points - each).sum(1).argmin()) for each in placed]


def _triangles(model: mujoco.MjModel) -> np.ndarray:
    """The triangles of the convex hull of the model's mesh, (triangles, 3).

    MuJoCo's graph holds two counts; of each corner of the hull where its edges begin, and its vertex; the edges, as
    many as corners and three times the triangles; then the triangles.
    """
    corners, count = model.mesh_graph[:2]
    start = 2 + 3 * corners + 3 * count
    return model.mesh_graph[start : start + 3 * count].reshape(-1, 3)
