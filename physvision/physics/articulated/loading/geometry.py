"""The geoms of a MuJoCo model as shapes."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Collection

import mujoco
import numpy as np

from physvision.core import Box, Capsule, Cylinder, Ellipsoid, Hull, Placed, Plane, Rectangle, Shape, Sphere


def shape_of(model: mujoco.MjModel, geom: int) -> Shape | None:
    """The shape of a geom; of a mesh its convex hull; None where there is none such."""
    kind = mujoco.mjtGeom(int(model.geom_type[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        return _hull(model, int(model.geom_dataid[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        x, y, z = (float(radius) for radius in model.geom_size[geom])
        return Ellipsoid((x, y, z))
    make = _SHAPES.get(kind)
    return None if make is None else make(model.geom_size[geom])


def geoms_of(model: mujoco.MjModel, body: int, touching: Collection[int]) -> list[int]:
    """The geoms of a body that are shapes of the engine: those that a camera knows, and others that may touch."""
    return [
        int(geom)
        for geom in np.flatnonzero(model.geom_bodyid == body)
        if mujoco.mjtGeom(int(model.geom_type[geom])) in _SHAPES
        or (int(geom) in touching and shape_of(model, int(geom)) is not None)
    ]


def placed(model: mujoco.MjModel, geom: int) -> Placed:
    """A geom in its body's frame; the body's row is filled in later."""
    shape = shape_of(model, geom)
    assert shape is not None
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = matrix(model.geom_quat[geom]), model.geom_pos[geom]
    material = int(model.geom_matid[geom])
    color = (model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom])[:3]
    return Placed(
        shape=shape,
        pose=tuple(map(tuple, pose.tolist())),
        color=(float(color[0]), float(color[1]), float(color[2])),
        name=model.geom(geom).name,
    )


def matrix(quaternion: np.ndarray) -> np.ndarray:
    """The rotation matrix of a quaternion (w, x, y, z)."""
    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, np.asarray(quaternion, float))
    return flat.reshape(3, 3)


def _hull(model: mujoco.MjModel, mesh: int) -> Hull:
    start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = model.mesh_vert[start : start + count]
    graph = int(model.mesh_graphadr[mesh])
    if graph >= 0:
        # The hull's graph begins with its numbers of vertices and faces, then where each one's edges start, and which
        # of the mesh's vertices it is.
        corners = int(model.mesh_graph[graph])
        vertices = vertices[model.mesh_graph[graph + 2 + corners : graph + 2 + 2 * corners]]
    return Hull(tuple((float(x), float(y), float(z)) for x, y, z in vertices))


def _plane(size: np.ndarray) -> Shape:
    # MuJoCo's planes are endless where a half size is zero, and collide as endless ones in any case.
    return Plane() if size[0] == 0 or size[1] == 0 else Rectangle(2 * float(size[0]), 2 * float(size[1]))


_SHAPES: dict[mujoco.mjtGeom, Callable[[np.ndarray], Shape]] = {
    mujoco.mjtGeom.mjGEOM_PLANE: _plane,
    mujoco.mjtGeom.mjGEOM_SPHERE: lambda size: Sphere(float(size[0])),
    mujoco.mjtGeom.mjGEOM_CAPSULE: lambda size: Capsule(float(size[0]), 2 * float(size[1])),
    mujoco.mjtGeom.mjGEOM_CYLINDER: lambda size: Cylinder(float(size[0]), 2 * float(size[1])),
    mujoco.mjtGeom.mjGEOM_BOX: lambda size: Box((2 * float(size[0]), 2 * float(size[1]), 2 * float(size[2]))),
}
