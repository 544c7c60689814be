"""Base class of renderers: a flat surface behind moving objects, averaged over rays and the exposure.

Every frame is averaged over four moments of the exposure with two by two rays a pixel each, offset so that all sixteen
rays of a pixel lie on a regular grid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float, UInt8

from physvision.datasets.rendering.cameras import CameraPath, project
from physvision.datasets.rendering.lighting import Lighting
from physvision.datasets.rendering.sensor import Sensor

# Moments of the exposure, as fractions of its duration, and the rays' offsets at each, pixels.
MOMENTS = np.array([-0.375, -0.125, 0.125, 0.375])
_OFFSETS = np.array([[-0.125, -0.125], [0.125, 0.125], [-0.125, 0.125], [0.125, -0.125]])
# Rays across a pixel at each moment.
RAYS = 2

Box = tuple[slice, slice]


@dataclass(frozen=True)
class Looks:
    """Appearance that all objects of a trial share.

    Attributes:
        surface: Picture of the surface behind the objects.
        surface_origin: Place of the picture's upper left corner, x and y in the world.
        surface_scale: Pixels of that picture per unit of the world.
        surface_depth: Place of the surface along the world's z axis.
        lighting: Light.
        sensor: Noise and compression.
        camera: Camera in every frame.
    """

    surface: Float[np.ndarray, "rows columns 3"]
    surface_origin: Float[np.ndarray, " 2"]
    surface_scale: float
    surface_depth: float
    lighting: Lighting
    sensor: Sensor
    camera: CameraPath


class Renderer(ABC):
    """Renderer of the frames of one trial; subclasses add the objects."""

    def __init__(self, looks: Looks, height: int, width: int) -> None:
        """Prepare rays and projections.

        Args:
            looks: Appearance of the trial.
            height: Height of a frame, pixels.
            width: Width of a frame, pixels.
        """
        self.camera, self._looks, self.height, self.width = looks.camera, looks, height, width
        self.positions = looks.camera.positions()
        # Columns and rows of the rays at each moment, in pixels whose centers are whole numbers.
        self.columns, self.rows = (
            (np.arange(RAYS * size) + 0.5) / RAYS - 0.5 + _OFFSETS[:, None, axis]
            for axis, size in enumerate((width, height))
        )
        scale = looks.surface_scale
        from_surface = np.array(
            [[1 / scale, 0, looks.surface_origin[0]], [0, 1 / scale, looks.surface_origin[1]], [0, 0, 1]]
        ) @ np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
        to_rays = [
            np.array([[RAYS, 0, -RAYS * column], [0, RAYS, -RAYS * row], [0, 0, 1]])
            for column, row in zip(self.columns[:, 0], self.rows[:, 0], strict=True)
        ]
        homographies = looks.camera.homographies(looks.surface_depth)
        self._surface_maps = np.stack(to_rays) @ (homographies @ from_surface)[:, None]

    @abstractmethod
    def add_objects(self, frame: int, canvas: Float[np.ndarray, "moments rows columns 3"]) -> None:
        """Draw the objects of a frame, and their shadows, onto the surface that all rays show."""

    def frames(
        self, times: Float[np.ndarray, " frames"], random: np.random.Generator
    ) -> UInt8[np.ndarray, "frames height width 3"]:
        """Render all frames of the trial.

        Args:
            times: Times of the frames, s.
            random: Random generator of the noise.
        """
        looks, size = self._looks, (RAYS * self.width, RAYS * self.height)
        brightness = looks.lighting.brightness(times, self.height, self.width)
        frames = np.empty((len(times), self.height, self.width, 3), np.uint8)
        for frame in range(len(times)):
            canvas = np.stack(
                [
                    cv2.warpPerspective(
                        looks.surface, mapping, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT
                    )
                    for mapping in self._surface_maps[frame]
                ]
            )
            self.add_objects(frame, canvas)
            # The area of a pixel is that of its rays, so that this averages them.
            light = cv2.resize(canvas.mean(0), (self.width, self.height), interpolation=cv2.INTER_AREA)
            frames[frame] = looks.sensor.record(light * brightness[frame], random)
        return frames

    def box(self, frame: int, points: Float[np.ndarray, "points 3"], radius: float, rays: int) -> Box:
        """Rows and columns of the rays that come within `radius` of some points of the world, and a few more."""
        pixels = project(self.camera.intrinsics, self.camera.extrinsics[frame], points)
        margin = radius * self.camera.intrinsics[0, 0] / pixels[:, 2].min() + 0.5
        low, high = pixels[:, :2].min(0) - margin + 0.5, pixels[:, :2].max(0) + margin + 0.5
        bounds = np.clip(np.stack([np.floor(low), np.ceil(high)]), 0, (self.width, self.height)).astype(int) * rays
        return slice(bounds[0, 1], bounds[1, 1]), slice(bounds[0, 0], bounds[1, 0])

    def directions(
        self,
        frame: int,
        columns: Float[np.ndarray, "moments width"],
        rows: Float[np.ndarray, "moments height"],
        box: Box,
    ) -> Float[np.ndarray, "moments rows columns 3"]:
        """Directions of rays in the world, not of unit length.

        Args:
            frame: Number of the frame.
            columns: Columns of all rays, pixels.
            rows: Rows of all rays, pixels.
            box: Rays to select.
        """
        inverse = self.camera.extrinsics[frame, :3, :3].T @ np.linalg.inv(self.camera.intrinsics)
        across, down = columns[:, None, box[1], None], rows[:, box[0], None, None]
        return (across * inverse[:, 0] + down * inverse[:, 1] + inverse[:, 2]).astype(np.float32)

    def on_plane(
        self, frame: int, depth: float, directions: Float[np.ndarray, "*rays 3"]
    ) -> Float[np.ndarray, "*rays 2"]:
        """Places x and y where rays meet the plane z = `depth`."""
        position = self.positions[frame]
        return (
            position[:2].astype(np.float32)
            + np.float32(depth - position[2]) * directions[..., :2] / directions[..., 2:]
        )


def dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Dot product along the last axis."""
    return np.einsum("...i,...i->...", first, np.broadcast_to(second, first.shape))
