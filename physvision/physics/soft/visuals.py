"""Looks of an elastic body: the surface of its mesh, and the planes that it touches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from physvision.core import Placed, Plane, Polygon
from physvision.core.mesh import Mesh
from physvision.core.visuals import Look, Surface, Visuals
from physvision.physics.soft.description import Ground

COLOR = (0.30, 0.55, 0.80)
COLLIDER_COLOR, COLLIDER_SCALE = (0.86, 0.62, 0.30), 0.975  # smaller than it is, since cloth rests on its surface
GROUND_EXTENT = 40.0  # half width of the ground of a flat world, in extents of the mesh
# Sides of a tetrahedron of positive volume, counterclockwise seen from outside.
_SIDES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


def mesh_visuals(mesh: Mesh, grounds: Sequence[Ground], colliders: int) -> Visuals:
    """Draw a mesh by its surface, whose vertices are the nodes, and the grounds as planes.

    Args:
        mesh: Mesh of the body.
        grounds: Planes that it touches.
        colliders: Number of its colliders, which follow the nodes in the geometry.
    """
    count = len(mesh.nodes)
    surface = Surface(np.zeros((count, 3)), outer_triangles(mesh), np.arange(count), Look(COLOR), name="surface")
    extent = float(np.ptp(mesh.nodes, axis=0).max())
    shapes = tuple((_ground_shape(ground, mesh.axes, extent), Look(Placed.color)) for ground in grounds)
    looks = {count + number: Look(COLLIDER_COLOR, scale=COLLIDER_SCALE) for number in range(colliders)}
    return Visuals((surface,), frozenset(range(count)), looks, shapes)


def outer_triangles(mesh: Mesh) -> NDArray[np.int64]:
    """Triangles of the surface of a mesh, counterclockwise seen from outside, (faces, 3)."""
    if mesh.elements.shape[1] == 3:
        return mesh.elements
    boundary = set(map(tuple, mesh.surface.tolist()))
    sides = mesh.elements[:, np.array(_SIDES)].reshape(-1, 3)
    return np.array([side for side in sides.tolist() if tuple(sorted(side)) in boundary])


def _ground_shape(ground: Ground, axes: int, extent: float) -> Placed:
    """Shape of a half space: a plane, or a wide rectangle of a flat world."""
    pose, normal = np.eye(4), np.zeros(3)
    normal[:axes] = np.asarray(ground.normal, float) / np.linalg.norm(np.asarray(ground.normal, float))
    pose[:axes, 3] = np.asarray(ground.point, float)
    if axes == 2:
        width, depth = GROUND_EXTENT * extent, extent
        corners = ((-width, -depth), (width, -depth), (width, 0.0), (-width, 0.0))
        pose[:2, 0], pose[:2, 1] = (normal[1], -normal[0]), normal[:2]
        return Placed(Polygon(corners), None, tuple(map(tuple, pose.tolist())), (0.55, 0.57, 0.6), "ground")
    across = np.cross(normal, [0.0, 1.0, 0.0] if abs(normal[1]) < 0.9 else [1.0, 0.0, 0.0])
    across /= np.linalg.norm(across)
    pose[:3, :3] = np.stack([across, np.cross(normal, across), normal], 1)
    return Placed(Plane(), None, tuple(map(tuple, pose.tolist())), Placed.color, "ground")
