"""Gray pictures of a MuJoCo model by its ray caster, which needs no graphics library."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import mujoco
import numpy as np
from jaxtyping import Float, UInt8


class RayDrawing:
    """Pinhole camera that finds the geom of each pixel with `mj_multiRay`.

    One ray goes through the center of each pixel. A pixel whose neighbors do not all show the same geom is an edge,
    which is averaged over `samples` × `samples` rays.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        camera: str,
        shape: tuple[int, int],
        levels: Float[np.ndarray, " geoms"],
        samples: int,
    ) -> None:
        """Prepare the rays of all pixels.

        Args:
            model: Model to draw.
            camera: Name of the camera, which must not move.
            shape: Height and width of the picture, pixels.
            levels: Brightness of each geom, 0 to 1; the background is black.
            samples: Number of rays across an edge pixel.
        """
        self.model, self.samples = model, samples
        self.height, self.width = shape
        # The last level is that of rays that hit nothing (geom −1).
        self._levels = np.append(levels, 0.0)
        index = model.camera(camera).id
        self._origin = model.cam_pos[index].copy()
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, model.cam_quat[index])
        focal = 0.5 * self.height / np.tan(0.5 * np.radians(model.cam_fovy[index]))
        self._grid = self._directions(rotation.reshape(3, 3), focal, 1)[:, 0]
        self._fine = self._directions(rotation.reshape(3, 3), focal, samples)

    def _directions(self, rotation: np.ndarray, focal: float, samples: int) -> np.ndarray:
        """Rays through every pixel, (pixels, samples², 3), of unit length; the camera looks along its −z, y up."""
        offsets = (np.arange(samples) + 0.5) / samples
        rows = (np.arange(self.height)[:, None] + offsets) - 0.5 * self.height
        columns = (np.arange(self.width)[:, None] + offsets) - 0.5 * self.width
        shape = (self.height, self.width, samples, samples)
        down = np.broadcast_to(rows[:, None, :, None], shape)
        right = np.broadcast_to(columns[None, :, None, :], shape)
        rays = np.stack([right, -down, np.full(shape, -focal)], axis=-1) @ rotation.T
        rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
        return rays.reshape(self.height * self.width, samples**2, 3)

    def _visible_geoms(self, data: mujoco.MjData, rays: np.ndarray) -> np.ndarray:
        """Geom that each ray hits first, −1 for none."""
        count = len(rays)
        geoms, distances = np.empty(count, np.int32), np.empty(count)
        mujoco.mj_multiRay(
            self.model,
            data,
            self._origin,
            rays.reshape(-1),
            None,
            True,
            -1,
            geoms,
            distances,
            None,
            count,
            mujoco.mjMAXVAL,
        )
        return geoms

    def draw(self, data: mujoco.MjData) -> UInt8[np.ndarray, "height width 1"]:
        """Draw the picture of `data`, whose positions must be up to date."""
        geoms = self._visible_geoms(data, self._grid)
        picture = self._levels[geoms]
        if self.samples > 1:
            edges = _edges(geoms.reshape(self.height, self.width)).ravel()
            fine = self._levels[self._visible_geoms(data, self._fine[edges].reshape(-1, 3))]
            picture[edges] = fine.reshape(len(edges), -1).mean(axis=1)
        return np.rint(255.0 * picture).astype(np.uint8).reshape(self.height, self.width, 1)


def _edges(geoms: np.ndarray) -> np.ndarray:
    """Indices of the pixels with a neighbor of another geom, diagonals included."""
    rows, columns = geoms.shape
    padded = np.pad(geoms, 1, mode="edge")
    around = [padded[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
    return np.flatnonzero(np.any([neighbor != geoms for neighbor in around], axis=0))
