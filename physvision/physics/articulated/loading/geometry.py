"""Geoms of a MuJoCo model as shapes."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Collection

import mujoco
import numpy as np

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Placed, Plane, Rectangle, Shape, Sphere


def geom_shape(model: mujoco.MjModel, geom: int) -> Shape | None:
    """Shape of a geom, of a mesh its convex hull; None if there is no such shape."""
    kind = mujoco.mjtGeom(int(model.geom_type[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        return _hull(model, int(model.geom_dataid[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        x, y, z = (float(radius) for radius in model.geom_size[geom])
        return Ellipsoid((x, y, z))
    make = _SHAPES.get(kind)
    return None if make is None else make(model.geom_size[geom])


def body_geoms(model: mujoco.MjModel, body: int, colliding: Collection[int]) -> list[int]:
    """Geoms of a body that are shapes of the engine: those that a camera draws, and others that may collide."""
    return [
        int(geom)
        for geom in np.flatnonzero(model.geom_bodyid == body)
        if mujoco.mjtGeom(int(model.geom_type[geom])) in _SHAPES
        or (int(geom) in colliding and geom_shape(model, int(geom)) is not None)
    ]


def placed_geom(model: mujoco.MjModel, geom: int) -> Placed:
    """Geom in its body's frame; the body's row is filled in later."""
    shape = geom_shape(model, geom)
    assert shape is not None
    material = int(model.geom_matid[geom])
    color = (model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom])[:3]
    return Placed(
        shape=shape,
        pose=pose_tuple(model.geom_pos[geom], model.geom_quat[geom]),
        color=(float(color[0]), float(color[1]), float(color[2])),
        name=model.geom(geom).name,
    )


def matrix(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion (w, x, y, z)."""
    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, np.asarray(quaternion, float))
    return flat.reshape(3, 3)


def pose_tuple(position: np.ndarray, quaternion: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Pose of a frame, 4×4, as nested tuples."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = matrix(quaternion), position
    return tuple(map(tuple, pose.tolist()))


def _hull(model: mujoco.MjModel, mesh: int) -> Hull:
    start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = model.mesh_vert[start : start + count]
    graph = int(model.mesh_graphadr[mesh])
    if graph >= 0:
        # The hull's graph starts with its numbers of vertices and faces, then the start of the edges of each vertex,
        # and its row among the vertices of the mesh.
        corners = int(model.mesh_graph[graph])
        vertices = vertices[model.mesh_graph[graph + 2 + corners : graph + 2 + 2 * corners]]
    return Hull(tuple((float(x), float(y), float(z)) for x, y, z in vertices))


def _plane(size: np.ndarray) -> Shape:
    # MuJoCo's planes are infinite where a half size is zero, and collide as infinite ones in any case.
    return Plane() if size[0] == 0 or size[1] == 0 else Rectangle(2 * float(size[0]), 2 * float(size[1]))


_SHAPES: dict[mujoco.mjtGeom, Callable[[np.ndarray], Shape]] = {
    mujoco.mjtGeom.mjGEOM_PLANE: _plane,
    mujoco.mjtGeom.mjGEOM_SPHERE: lambda size: Sphere(float(size[0])),
    mujoco.mjtGeom.mjGEOM_CAPSULE: lambda size: Capsule(float(size[0]), 2 * float(size[1])),
    mujoco.mjtGeom.mjGEOM_CYLINDER: lambda size: Cylinder(float(size[0]), 2 * float(size[1])),
    mujoco.mjtGeom.mjGEOM_BOX: lambda size: Box((2 * float(size[0]), 2 * float(size[1]), 2 * float(size[2]))),
}
