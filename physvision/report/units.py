"""Numbers for people: places in pixels of the video that was given, or in metres where its scale is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physvision.core import InputError, Scene
from physvision.core.checks import check_positive


@dataclass(frozen=True)
class Units:
    """Turns what the model says into what is reported.

    Attributes:
        scene: whose coordinates they are.
        part: x, y, width and height of the part of the video that the model sees, pixels.
        scale: pixels of the video a metre; None if unknown.
    """

    scene: Scene
    part: tuple[int, int, int, int]
    scale: float | None = None

    @property
    def coordinates(self) -> dict[str, str]:
        """Of each object: name and unit."""
        return {name: self._unit(unit) for name, unit in self.scene.coordinates.items()}

    def positions(self, q: np.ndarray) -> np.ndarray:
        """Positions (…, nq) as (…, objects, coordinates)."""
        values = self._each(q)
        return values * self._factors + self._origins

    def velocities(self, v: np.ndarray) -> np.ndarray:
        """Velocities (…, nv) as (…, objects, coordinates), a second."""
        return self._each(v) * self._factors

    def parameter(self, values: Sequence[float], unit: str) -> tuple[list[float], str]:
        """Values of a parameter and their unit."""
        if not unit.startswith("px"):
            return list(values), unit
        factor = float(np.mean(self._stretch)) / (self.scale or 1.0)
        return [value * factor for value in values], self._unit(unit)

    def _each(self, values: np.ndarray) -> np.ndarray:
        count = len(self.scene.objects)
        return np.asarray(values, float).reshape(*values.shape[:-1], count, values.shape[-1] // count)

    def _unit(self, unit: str) -> str:
        return re.sub(r"^px", "m", unit) if self.scale else unit

    @property
    def _stretch(self) -> tuple[float, float]:
        """Pixels of the video a pixel of the model's frame, along x and y."""
        return self.part[2] / self.scene.size[0], self.part[3] / self.scene.size[1]

    @property
    def _factors(self) -> np.ndarray:
        along = {"x": self._stretch[0], "y": self._stretch[1]}
        mean = float(np.mean(self._stretch))
        return np.array(
            [
                along.get(name, mean) / (self.scale or 1.0) if unit == "px" else 1.0
                for name, unit in self.scene.coordinates.items()
            ]
        )

    @property
    def _origins(self) -> np.ndarray:
        corner = {"x": self.part[0], "y": self.part[1]}
        return np.array(
            [
                corner.get(name, 0) / (self.scale or 1.0) if unit == "px" else 0.0
                for name, unit in self.scene.coordinates.items()
            ]
        )


def pixels_per_meter(scale: float | str | None, scene: Scene) -> float | None:
    """Pixels a metre, from a number, or from a length in the picture as "120px=0.5m"."""
    if scale is None:
        return None
    if "px" not in scene.coordinates.values():
        raise InputError(
            f"scale: the states of {scene.title} are in {', '.join(sorted(set(scene.coordinates.values())))} and its "
            "parameters in SI units already; leave it out"
        )
    text = str(scale).replace(" ", "")
    measured = re.fullmatch(r"([0-9.eE+-]+)px=([0-9.eE+-]+)m", text)
    try:
        numbers = [float(part) for part in (measured.groups() if measured else (text,))]
    except ValueError:
        wanted = 'pixels a metre, as 240, or a known length, as "120px=0.5m"'
        raise InputError(f"scale: expected {wanted}, got {scale!r}") from None
    for number in numbers:
        check_positive("scale", number)
    return numbers[0] / numbers[1] if measured else numbers[0]
