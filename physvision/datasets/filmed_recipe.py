"""Recipe of scenes that a moving camera films, with the options of camera, light and sensor."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from physvision.core import InputError
from physvision.datasets.recipe import Field, FrameFormat, Number, Recipe, check_span, integer, real, span
from physvision.datasets.rendering import CameraPath, Lighting, Sensor, handheld_path, intrinsics, random_lighting


@dataclass(frozen=True)
class FilmedRecipe(Recipe):
    """Values that decide how a scene is filmed; all ranges are drawn from uniformly, once for each trial.

    Attributes:
        size: Side of the picture, pixels.
        fps: Frames per second.
        tilt: Largest tilt of the camera's line of sight, degrees.
        roll: Largest rotation of the camera about its line of sight, degrees.
        shake: Standard deviation of the camera's rotation about each axis during a trial, degrees.
        exposure: Lowest and highest exposure time, as a fraction of the time between frames: motion blur.
        contrast: Lowest and highest contrast of patterns on surfaces, 0 to 1.
        clutter: Largest number of shapes drawn onto the surface behind the objects.
        unevenness: Largest unevenness of the light, as a fraction of its mean.
        flicker: Largest change of the light with time, as a fraction of its mean.
        noise: Lowest and highest standard deviation of the sensor's noise; 1 is full scale.
        quality: Lowest and highest quality of JPEG compression, 1 to 100; None for no compression.
        masks: If true, store which object each pixel shows.
    """

    trials: int = integer(1250, 1)
    size: int = integer(64, 16)
    fps: Number = real(30, 0, exclusive=True)
    tilt: Number = real(15.0, 0, 45)
    roll: Number = real(6.0, 0)
    shake: Number = real(0.15, 0)
    exposure: tuple[Number, Number] = span((0.1, 0.6), 0, 1)
    contrast: tuple[Number, Number] = span((0.1, 0.6), 0, 1)
    clutter: int = integer(8, 0)
    unevenness: Number = real(0.35, 0)
    flicker: Number = real(0.1, 0)
    noise: tuple[Number, Number] = span((0.0, 0.02), 0)
    quality: tuple[int, int] | None = (60, 95)
    masks: bool = True

    def check(self) -> None:
        """Raise if a value is out of range."""
        super().check()
        if self.quality is not None:
            self.require_whole_range("quality", 1, 100)

    def require_whole_range(self, name: str, minimum: int, maximum: float = math.inf) -> None:
        """Raise unless the value `name` is a pair of growing whole numbers between two bounds."""
        value = getattr(self, name)
        check_span(name, value, minimum, maximum)
        if not all(isinstance(bound, int) for bound in value):
            raise InputError(f"{name}: expected two whole numbers, got {value}")

    @property
    @abstractmethod
    def focal(self) -> float:
        """Focal length of the camera, pixels."""

    @property
    @abstractmethod
    def geometry(self) -> str:
        """Axes and unit of the world, in words."""

    @property
    def intrinsics(self) -> np.ndarray:
        """Camera matrix of all frames."""
        return intrinsics(self.focal, self.size, self.size)

    @property
    def frame_format(self) -> FrameFormat:
        """Size and rate of the frames."""
        geometry = (
            f"{self.geometry}. A point of the world is seen at K (X/Z, Y/Z, 1) with (X, Y, Z, 1) = extrinsics "
            "(x, y, z, 1) and the camera matrix K = intrinsics; "
            "the center of the pixel of row i and column j has the coordinates (j, i)"
        )
        matrix = tuple(map(tuple, self.intrinsics.tolist()))
        return FrameFormat(self.size, self.size, 3, float(self.fps), geometry, matrix)

    def mask_fields(self, objects: str) -> dict[str, Field]:
        """Field of the masks of objects, such as "ball"; empty if no masks are stored."""
        meaning = f"number of the {objects}, from 1 on, that the center of each pixel shows; 0 elsewhere"
        return {"masks": Field((self.size, self.size), "1", meaning, "uint8")} if self.masks else {}

    def random_camera(
        self, target: np.ndarray, distance: float, times: np.ndarray, random: np.random.Generator
    ) -> CameraPath:
        """Camera that looks at `target` from the side of −z, tilted and moving slightly.

        Args:
            target: Point in the middle of the picture.
            distance: Distance of the pinhole from the target.
            times: Times of the frames, s.
            random: Random generator.
        """
        tilt, roll, shake = (math.radians(angle) for angle in (self.tilt, self.roll, self.shake))
        path = handheld_path(times, target, distance, tilt, roll, shake, random)
        return CameraPath(self.intrinsics, path)

    def random_lighting(self, random: np.random.Generator) -> Lighting:
        """Light from the side of the camera, uneven and changing."""
        return random_lighting(self.unevenness, self.flicker, random)

    def random_sensor(self, random: np.random.Generator) -> Sensor:
        """Noise and compression of a trial."""
        quality = None if self.quality is None else int(random.integers(self.quality[0], self.quality[1] + 1))
        return Sensor(random.uniform(*self.noise), quality)
