"""Uneven light that changes with time: a sun, ambient light and a wandering spot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Lighting:
    """Light of a trial.

    Attributes:
        direction: Unit vector towards the lamp in the world of the scene.
        ambient: Fraction of the light that comes from everywhere, 0 to 1.
        gloss: Strength of highlights.
        shadow: Darkness of shadows, 0 to 1.
        gradient: Change of brightness across the picture, along x and y.
        spot: Brightness of a wandering spot of light.
        flicker: Amplitude of the change of brightness with time.
        phases: Phases of the spot along x and y and of the brightness, rad.
        rates: Angular rates of the same, rad/s.
    """

    direction: Float[np.ndarray, " 3"]
    ambient: float
    gloss: float
    shadow: float
    gradient: Float[np.ndarray, " 2"]
    spot: float
    flicker: float
    phases: Float[np.ndarray, " 3"]
    rates: Float[np.ndarray, " 3"]

    def brightness(
        self, times: Float[np.ndarray, " frames"], height: int, width: int
    ) -> Float[np.ndarray, "frames height width 1"]:
        """Brightness of every pixel at the given times, about 1."""
        x = ((np.arange(width) + 0.5) / width - 0.5).astype(np.float32)
        y = ((np.arange(height) + 0.5) / height - 0.5).astype(np.float32)
        angles = self.phases + times[:, None] * self.rates
        center = 0.35 * np.cos(angles[:, :2]).astype(np.float32)
        # A Gaussian spot is a product of one function of x and one of y.
        columns = np.exp(-8.0 * (x - center[:, :1]) ** 2)
        rows = np.exp(-8.0 * (y - center[:, 1:]) ** 2)
        level = (1.0 + self.flicker * np.sin(angles[:, 2])).astype(np.float32)
        field = 1.0 - 0.4 * self.spot + self.gradient[0] * x + self.gradient[1] * y[:, None]
        return (level[:, None, None] * (field + self.spot * rows[:, :, None] * columns[:, None, :]))[..., None]


def random_lighting(unevenness: float, change: float, random: np.random.Generator) -> Lighting:
    """Light from above (towards −z), of random direction and softness.

    Args:
        unevenness: Largest gradient and spot, as a fraction of the mean brightness.
        change: Largest amplitude of the change with time, as a fraction of the mean brightness.
        random: Random generator.
    """
    azimuth, polar = random.uniform(0.0, 2 * np.pi), random.uniform(0.3, 0.9)
    direction = np.array([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), -np.cos(polar)])
    rates = random.uniform(0.2, 1.5, 3) * np.array([1.0, 1.0, 3.0]) * (change > 0)
    return Lighting(
        direction=direction.astype(np.float32),
        ambient=float(random.uniform(0.35, 0.65)),
        gloss=float(random.uniform(0.1, 0.8)),
        shadow=float(random.uniform(0.25, 0.6)),
        gradient=(unevenness * random.uniform(-1.0, 1.0, 2)).astype(np.float32),
        spot=float(unevenness * random.uniform(0.0, 1.0)),
        flicker=float(change * random.uniform(0.0, 1.0)),
        phases=random.uniform(0.0, 2 * np.pi, 3),
        rates=rates,
    )
