"""Tilted pinhole cameras that move slightly, in kornia's conventions: looking along +z with y down."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float

# Frequencies of hand movements, Hz: slow drift to tremor.
_FREQUENCIES = (0.15, 0.4, 1.1)


@dataclass(frozen=True)
class CameraPath:
    """Pinhole camera in every frame.

    Attributes:
        intrinsics: Camera matrix, pixel centers at whole numbers, (3, 3).
        extrinsics: Poses from the world to the camera's frame, (frames, 4, 4).
    """

    intrinsics: Float[np.ndarray, "3 3"]
    extrinsics: Float[np.ndarray, "frames 4 4"]

    def positions(self) -> Float[np.ndarray, "frames 3"]:
        """Position of the pinhole in the world."""
        return -np.einsum("fji,fj->fi", self.extrinsics[:, :3, :3], self.extrinsics[:, :3, 3])

    def homographies(self, depth: float) -> Float[np.ndarray, "frames 3 3"]:
        """Mappings from (x, y, 1) on the world's plane z = `depth` to pixels, up to scale."""
        plane = self.extrinsics[:, :3, [0, 1, 3]].copy()
        plane[..., 2] += depth * self.extrinsics[:, :3, 2]
        return self.intrinsics @ plane


def intrinsics(focal: float, height: int, width: int) -> Float[np.ndarray, "3 3"]:
    """Camera matrix with the principal point in the middle of the picture."""
    return np.array([[focal, 0.0, 0.5 * (width - 1)], [0.0, focal, 0.5 * (height - 1)], [0.0, 0.0, 1.0]])


def project(
    intrinsics: Float[np.ndarray, "3 3"],
    extrinsics: Float[np.ndarray, "*batch 4 4"],
    points: Float[np.ndarray, "*batch points 3"],
) -> Float[np.ndarray, "*batch points 3"]:
    """Column, row and depth of points of the world, pixel centers at whole numbers."""
    local = points @ np.swapaxes(extrinsics[..., :3, :3], -1, -2) + extrinsics[..., None, :3, 3]
    pixels = local @ intrinsics.T
    return np.concatenate([pixels[..., :2] / pixels[..., 2:], local[..., 2:]], -1)


def handheld_path(
    times: Float[np.ndarray, " frames"],
    target: Float[np.ndarray, " 3"],
    distance: float,
    tilt: float,
    roll: float,
    shake: float,
    random: np.random.Generator,
) -> Float[np.ndarray, "frames 4 4"]:
    """Poses of a camera that looks at a target from the side of −z and moves slightly.

    Args:
        times: Times of the frames, s.
        target: Point in the middle of the picture, but for the shake.
        distance: Distance of the pinhole from the target.
        tilt: Largest angle between the line of sight and the z axis, rad.
        roll: Largest angle about the line of sight, rad.
        shake: Standard deviation of the rotation about each axis, rad.
        random: Random generator.
    """
    azimuth, angle = random.uniform(0.0, 2 * np.pi), tilt * np.sqrt(random.uniform())
    orientation = _rotation(np.array([0.0, 0.0, roll * random.uniform(-1.0, 1.0)]))
    orientation = orientation @ _rotation(angle * np.array([np.cos(azimuth), np.sin(azimuth), 0.0]))
    frequencies = np.array(_FREQUENCIES)[:, None] * random.uniform(0.7, 1.4, (len(_FREQUENCIES), 3))
    phases, weights = random.uniform(0.0, 2 * np.pi, (2, len(_FREQUENCIES), 3))
    weights *= np.sqrt(2.0 / (weights**2).sum(0))
    waves = np.sin(2 * np.pi * times[:, None, None] * frequencies + phases)
    rotations = shake * np.einsum("tka,ka->ta", waves, weights)
    extrinsics = np.broadcast_to(np.eye(4), (len(times), 4, 4)).copy()
    for frame, rotation in enumerate(map(_rotation, rotations)):
        extrinsics[frame, :3, :3] = rotation @ orientation
        extrinsics[frame, :3, 3] = rotation @ (np.array([0.0, 0.0, distance]) - orientation @ target)
    return extrinsics


def _rotation(vector: np.ndarray) -> np.ndarray:
    """Rotation matrix of a rotation vector, rad."""
    return cv2.Rodrigues(np.asarray(vector, float))[0]
