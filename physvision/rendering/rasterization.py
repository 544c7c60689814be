"""Buffers of the nearest triangle at every sample of a picture, and the sun's depth picture."""

# Warp's arrays of vectors have no types for type checkers.
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray

from physvision.kernels.launching import launch
from physvision.rendering.draw_list import DrawList
from physvision.rendering.settings import RenderSettings

BAND = 16  # rows that one thread draws
_CPU = torch.device("cpu")


class Rasterizer:
    """Buffers of one size, drawn again for each frame.

    Attributes:
        nearness: Nearness of the visible triangle of each sample, (rows, columns, samples); 0 without one.
        ids: Number of that triangle; −1 without one.
        offsets: Positions of the samples about the center of a pixel.
    """

    def __init__(self, kernels: Any, height: int, width: int, offsets: NDArray[np.float32]) -> None:
        self._kernels, self._height, self._width = kernels, height, width
        shape = (height, width, len(offsets))
        self.nearness = wp.zeros(shape, dtype=float, device="cpu")
        self.ids = wp.zeros(shape, dtype=int, device="cpu")
        self.offsets = wp.array(offsets, dtype=wp.vec2, device="cpu")

    def draw(self, scene: DrawList, world: wp.array, view: Any, near: float, cull: bool = True) -> None:
        """Draw all triangles of a scene.

        Args:
            scene: Triangles.
            world: Positions of their vertices.
            view: Camera, as the kernels read it.
            near: Depth in front of which nothing is visible, m.
            cull: If true, backs of closed shapes are not scene.
        """
        self.nearness.zero_()
        self.ids.fill_(-1)
        count = scene.face_count
        if not count:
            return
        screen = wp.empty(scene.vertex_count, dtype=wp.vec3, device="cpu")
        launch(self._kernels.project, scene.vertex_count, [view, near, world, screen], _CPU, 0.01 * scene.vertex_count)
        clipped, sources = _clip(scene, world, screen, view, near)
        total = count + len(clipped)
        corners = wp.empty((total, 3), dtype=wp.vec3, device="cpu")
        corners.numpy()[count:] = clipped
        rows = wp.empty((total, 2), dtype=int, device="cpu")
        source = wp.array(np.concatenate([np.arange(count), sources]).astype(np.int32), dtype=int, device="cpu")
        one_sided = scene.one_sided_host if cull else np.zeros_like(scene.one_sided_host)
        sided = wp.array(np.concatenate([one_sided, one_sided[sources]]), dtype=int, device="cpu")
        inputs = [count, self._width, self._height, screen, scene.faces, sided, corners, rows]
        launch(self._kernels.find_rows, total, inputs, _CPU, 0.03 * total)
        bands = -(-self._height // BAND)
        inputs = [BAND, total, corners, rows, source, self.offsets, self.nearness, self.ids]
        launch(self._kernels.rasterize, bands, inputs, _CPU, 5000.0)

    def shadow(self, view: Any, settings: RenderSettings) -> Any:
        """Return the drawing as the sun's depth picture."""
        shadow, block = self._kernels.Shadow(), int(self._kernels.BLOCK)
        blocks = self._height // block
        highest, lowest = (np.empty((blocks, blocks), np.float32) for _ in range(2))
        inputs = [self.nearness, *(wp.array(values, ndim=2, device="cpu", copy=False) for values in (highest, lowest))]
        launch(self._kernels.find_extremes, blocks, inputs, _CPU, 0.001 * self._height * self._width)
        reach = 2 * int(np.ceil((settings.max_penumbra + 2) / block)) + 1
        kernel = np.ones((reach, reach), np.uint8)
        shadow.view, shadow.nearness, shadow.size = view, self.nearness, self._width
        shadow.highest = wp.array(cv2.dilate(highest, kernel), dtype=float, ndim=2, device="cpu")
        shadow.lowest = wp.array(cv2.erode(lowest, kernel), dtype=float, ndim=2, device="cpu")
        shadow.bias, shadow.width = 1.5 / view.focal, settings.penumbra
        shadow.max_radius = settings.max_penumbra
        return shadow


def _clip(
    scene: DrawList, world: wp.array, screen: wp.array, view: Any, near: float
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Cut triangles that cross the near plane; return the corners of the pieces on the screen, and their triangles."""
    none = np.zeros((0, 3, 3), np.float32), np.zeros(0, np.int64)
    if view.orthographic:
        return none
    behind = screen.numpy()[:, 2] < 0
    if not behind.any():
        return none
    count = behind[scene.faces_host].sum(1)
    crossing = np.flatnonzero((count > 0) & (count < 3))
    rotation, translation = np.array(view.rotation).reshape(3, 3), np.array(view.translation)
    pieces, sources = [], []
    for face in crossing.tolist():
        local = world.numpy()[scene.faces_host[face]] @ rotation.T + translation
        polygon = []
        for a, b in zip(local, np.roll(local, -1, 0), strict=True):
            if a[2] >= near:
                polygon.append(a)
            if (a[2] >= near) != (b[2] >= near):
                polygon.append(a + (near - a[2]) / (b[2] - a[2]) * (b - a))
        for k in range(1, len(polygon) - 1):
            corners = np.stack([polygon[0], polygon[k], polygon[k + 1]])
            x, y = view.focal * corners[:, :2].T / corners[:, 2]
            pieces.append(np.stack([x + view.center_x, y + view.center_y, 1 / corners[:, 2]], 1))
            sources.append(face)
    return (np.array(pieces, np.float32), np.array(sources)) if pieces else none
