"""Camera of a picture, in plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FIELD_OF_VIEW = 0.7  # vertical, rad


@dataclass(frozen=True, eq=False)
class View:
    """Pinhole or orthographic camera, looking along its z with x to the right and y down.

    Attributes:
        rotation: Rotation from the world to the camera, (3, 3).
        eye: Position in the world, m.
        focal: Focal length, pixels; pixels for each meter if orthographic.
        center: Image center (x, y), pixels; the center of the first pixel is (0, 0).
        height: Height of the image, pixels.
        width: Width of the image, pixels.
        distance: Distance of what is looked at, m.
        orthographic: If true, rays are parallel.
    """

    rotation: NDArray[np.float64]
    eye: NDArray[np.float64]
    focal: float
    center: tuple[float, float]
    height: int
    width: int
    distance: float
    orthographic: bool = False

    @classmethod
    def look_at(
        cls, target: Sequence[float] | NDArray, azimuth: float, elevation: float, distance: float, size: tuple[int, int]
    ) -> View:
        """Place a pinhole camera around a point, with z up.

        Args:
            target: Point in the center of the image, m.
            azimuth: Angle of the camera about z, from the x axis, rad.
            elevation: Angle of the camera above the horizontal, rad.
            distance: Distance from the target, m.
            size: Height and width of the image, pixels.
        """
        back = np.array(
            [
                math.cos(elevation) * math.cos(azimuth),
                math.cos(elevation) * math.sin(azimuth),
                math.sin(elevation),
            ]
        )
        right = np.array([-math.sin(azimuth), math.cos(azimuth), 0.0])
        rotation = np.stack([right, -np.cross(back, right), -back])
        height, width = size
        focal = 0.5 * height / math.tan(0.5 * FIELD_OF_VIEW)
        center = (0.5 * (width - 1), 0.5 * (height - 1))
        return cls(rotation, np.asarray(target, float) + distance * back, focal, center, height, width, distance)

    def project(self, points: NDArray) -> NDArray[np.float64]:
        """Project points of the world, (…, 3), to pixels and depth, (…, 3)."""
        local = (points - self.eye) @ self.rotation.T
        depth = np.ones_like(local[..., 2:]) if self.orthographic else local[..., 2:]
        return np.concatenate([self.focal * local[..., :2] / depth + self.center, local[..., 2:]], -1)
