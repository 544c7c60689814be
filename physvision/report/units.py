"""Conversion of states to reported units: pixels of the original video, or meters where its scale is known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from physvision.core import InputError, Scene
from physvision.core.checks import check_positive


@dataclass(frozen=True)
class Units:
    """Conversion from the coordinates of a scene to those of a report.

    Attributes:
        scene: Scene of the states.
        crop: Part of the video that the model uses as x, y, width and height, px.
        scale: Pixels of the video per meter; None if unknown.
    """

    scene: Scene
    crop: tuple[int, int, int, int]
    scale: float | None = None

    @property
    def coordinates(self) -> dict[str, str]:
        """Reported unit of each coordinate of an object."""
        return {name: self._unit(unit) for name, unit in self.scene.coordinates.items()}

    def positions(self, q: np.ndarray) -> np.ndarray:
        """Convert positions (…, nq) to (…, objects, coordinates)."""
        return self.velocities(q) + self._per_coordinate({"x": self.crop[0], "y": self.crop[1]}, 0.0, 0.0)

    def velocities(self, v: np.ndarray) -> np.ndarray:
        """Convert velocities (…, nv) to (…, objects, coordinates), per second."""
        count = len(self.scene.objects)
        values = np.asarray(v, float).reshape(*v.shape[:-1], count, v.shape[-1] // count)
        x, y = self._stretch
        return values * self._per_coordinate({"x": x, "y": y}, float(np.mean(self._stretch)), 1.0)

    def parameter(self, values: Sequence[float], unit: str) -> tuple[list[float], str]:
        """Convert the values of a parameter; also return their unit."""
        if not unit.startswith("px"):
            return list(values), unit
        factor = float(np.mean(self._stretch)) / (self.scale or 1.0)
        return [value * factor for value in values], self._unit(unit)

    def _unit(self, unit: str) -> str:
        return re.sub(r"^px", "m", unit) if self.scale else unit

    @property
    def _stretch(self) -> tuple[float, float]:
        """Pixels of the video per pixel of the scene's frame, along x and y."""
        return self.crop[2] / self.scene.size[0], self.crop[3] / self.scene.size[1]

    def _per_coordinate(self, lengths: Mapping[str, float], default: float, dimensionless: float) -> np.ndarray:
        """Arrange a value for each coordinate: lengths by name, divided by the scale, and one for other units."""
        scaled = {name: lengths.get(name, default) / (self.scale or 1.0) for name in self.scene.coordinates}
        units = self.scene.coordinates.items()
        return np.array([scaled[name] if unit == "px" else dimensionless for name, unit in units])


def pixels_per_meter(scale: float | str | None, scene: Scene) -> float | None:
    """Parse a scale: pixels per meter, or a known length in the image such as "120px=0.5m"."""
    if scale is None:
        return None
    if "px" not in scene.coordinates.values():
        raise InputError(
            f"scale: the states of {scene.title} are in {', '.join(sorted(set(scene.coordinates.values())))} and its "
            "parameters in SI units already; leave it out"
        )
    text = str(scale).replace(" ", "")
    length = re.fullmatch(r"([0-9.eE+-]+)px=([0-9.eE+-]+)m", text)
    try:
        numbers = [float(part) for part in (length.groups() if length else (text,))]
    except ValueError:
        raise InputError(
            f'scale: expected pixels per meter, such as 240, or a known length, such as "120px=0.5m", got {scale!r}'
        ) from None
    for number in numbers:
        check_positive("scale", number)
    return numbers[0] / numbers[1] if length else numbers[0]
