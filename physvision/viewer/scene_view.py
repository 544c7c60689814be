"""Meshes, contacts and frames of an engine in a browser, moved as the engine's poses move."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from physvision.core import State
from physvision.physics.engine import Overrides
from physvision.rendering import Renderer, grid_size
from physvision.rendering.framing import Framing

FORCE_LENGTH = 0.25  # of the largest contact force, in distances of the camera


class SceneView:
    """Nodes of a viser scene for everything that an engine draws.

    Attributes:
        renderer: Renderer whose triangles are shown.
        handles: Nodes of rigid pieces, with the frames that carry them.
    """

    def __init__(self, server: Any, renderer: Renderer, framing: Framing, state: State) -> None:
        self._scene, self.renderer = server.scene, renderer
        poses, sizes = renderer.frames(state)
        scene = renderer.draw_list(sizes)
        self._distance = framing.distance(
            poses[0, framing.movable, :3, 3], framing.middle(poses[0, framing.movable, :3, 3])
        )
        self.handles: list[tuple[Any, int]] = []
        self._deforming: list[tuple[Any, NDArray, NDArray]] = []
        for number, piece in enumerate(scene.pieces()):
            options = {"color": piece.color, "side": "front" if piece.one_sided else "double"}
            rows = np.unique(piece.rows)
            if len(rows) == 1:
                handle = self._scene.add_mesh_simple(f"/shapes/{number}", piece.vertices, piece.faces, **options)
                self.handles.append((handle, int(rows[0])))
            else:
                moved = _transformed(poses[0], piece.rows, piece.vertices)
                handle = self._scene.add_mesh_simple(f"/shapes/{number}", moved, piece.faces, **options)
                self._deforming.append((handle, piece.rows, piece.vertices))
        self._add_planes(poses[0], sizes, framing)
        server.scene.set_up_direction("+z" if framing.y_down is None else ("-y" if framing.y_down else "+y"))
        self.update(state, None)

    def _add_planes(self, poses: NDArray, sizes: NDArray, framing: Framing) -> None:
        scene, renderer = self.renderer.draw_list(sizes), self.renderer
        view = framing.view(np.zeros(3), self._distance)
        cell = grid_size(view)
        for number, plane in enumerate(scene.planes):
            width, height = (2 * half if half else 40 * self._distance for half in plane.half_size)
            wxyz, position = _placement(poses[plane.frame])
            self._scene.add_grid(
                f"/planes/{number}",
                width,
                height,
                cell_size=cell,
                section_size=5 * cell,
                wxyz=wxyz,
                position=position,
                plane_color=(225, 228, 232),
                plane_opacity=1.0,
                infinite_grid=not plane.half_size[0],
            )
        if not scene.planes and not renderer.planar:
            height = renderer.ground_height or 0.0
            self._scene.add_grid(
                "/ground", cell_size=cell, section_size=5 * cell, infinite_grid=True, position=(0.0, 0.0, height)
            )

    def update(self, state: State, properties: Overrides) -> None:
        """Move all pieces to a state."""
        poses, _ = self.renderer.frames(state, properties)
        for handle, row in self.handles:
            handle.wxyz, handle.position = _placement(poses[0, row])
        for handle, rows, vertices in self._deforming:
            handle.vertices = _transformed(poses[0], rows, vertices)

    def show_contacts(self, points: NDArray, forces: NDArray) -> None:
        """Show contact points, and the forces at them as lines.

        Args:
            points: Positions, m, (contacts, 3).
            forces: Forces, N, (contacts, 3).
        """
        if not len(points):
            self.hide_contacts()
            return
        size = 0.006 * self._distance
        largest = max(float(np.linalg.norm(forces, axis=1).max(initial=0.0)), 1e-12)
        ends = points + FORCE_LENGTH * self._distance / largest * forces
        self._scene.add_point_cloud("/contacts/points", points.astype(np.float32), (220, 60, 40), point_size=size)
        lines = np.stack([points, ends], 1).astype(np.float32)
        self._scene.add_line_segments("/contacts/forces", lines, (240, 150, 30), thickness=0.4 * size)

    def hide_contacts(self) -> None:
        """Remove the contacts from the scene."""
        self._scene.remove_by_name("/contacts")

    def show_frames(self, poses: NDArray | None) -> None:
        """Show the axes of bodies, (bodies, 4, 4), or remove them if there are none."""
        if poses is None:
            self._scene.remove_by_name("/frames")
            return
        placements = [_placement(pose) for pose in poses]
        self._scene.add_batched_axes(
            "/frames",
            np.array([wxyz for wxyz, _ in placements]),
            np.array([position for _, position in placements]),
            axes_length=0.06 * self._distance,
            axes_radius=0.003 * self._distance,
        )


def _placement(pose: NDArray) -> tuple[NDArray, NDArray]:
    """Return a pose as a quaternion (w, x, y, z) and a position."""
    return Rotation.from_matrix(pose[:3, :3]).as_quat(scalar_first=True), pose[:3, 3]


def _transformed(poses: NDArray, rows: NDArray, vertices: NDArray) -> NDArray[np.float32]:
    carriers = poses[rows]
    moved = np.einsum("nij,nj->ni", carriers[:, :3, :3], vertices) + carriers[:, :3, 3]
    return moved.astype(np.float32)
