"""Random colors of a trial."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from physvision.datasets.rendering.surfaces import hsv_color

# Fraction of trials in which all objects have nearly one color.
_SIMILAR_COLORS = 0.5


@dataclass(frozen=True)
class Palette:
    """Colors of objects and of what is behind them.

    Attributes:
        surface: Color of the surface behind the objects.
        border: Color of the frame around it.
        surroundings: Color of what lies outside.
        objects: Colors of the objects, (objects, 3).
        accents: Second colors of the objects, (objects, 3).
    """

    surface: Float[np.ndarray, " 3"]
    border: Float[np.ndarray, " 3"]
    surroundings: Float[np.ndarray, " 3"]
    objects: Float[np.ndarray, "objects 3"]
    accents: Float[np.ndarray, "objects 3"]

    def clutter(self) -> Float[np.ndarray, "colors 3"]:
        """Colors of shapes on the surface: those of the objects among them, so that color alone tells nothing."""
        return np.concatenate([self.objects, self.accents, 0.6 * self.surface[None]])


def random_palette(objects: int, random: np.random.Generator) -> Palette:
    """Colors of a number of objects and their surroundings; in half of the trials all objects are of similar colors."""
    surface = hsv_color(random.uniform(), random.uniform(0.1, 0.7), random.uniform(0.25, 0.75))
    border = hsv_color(random.uniform(0.02, 0.12), random.uniform(0.3, 0.7), random.uniform(0.2, 0.7))
    surroundings = hsv_color(random.uniform(), random.uniform(0.0, 0.4), random.uniform(0.2, 0.8))
    base_hsv = np.array([random.uniform(), random.uniform(0.2, 0.9), random.uniform(0.3, 1.0)])
    spread = np.array([0.03, 0.08, 0.08]) if random.uniform() < _SIMILAR_COLORS else np.array([1.0, 0.35, 0.35])
    colors, accents = [], []
    for _ in range(objects):
        while True:
            color = hsv_color(*(base_hsv + spread * random.uniform(-1.0, 1.0, 3)))
            # An object of the surface's color would be invisible; change the brightness until it is not.
            if np.abs(color - surface).max() > 0.15:
                break
            base_hsv[2] = base_hsv[2] + 0.2 if base_hsv[2] < 0.8 else random.uniform(0.1, 0.9)
        colors.append(color)
        while True:
            accent = hsv_color(random.uniform(), random.uniform(0.0, 0.9), random.uniform(0.1, 1.0))
            if np.abs(accent - color).max() > 0.2:
                break
        accents.append(accent)
    return Palette(surface, border, surroundings, np.array(colors), np.array(accents))
