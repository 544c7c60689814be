"""Procedural textures on the unit sphere, by which one can see a ball turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

KINDS = ("stripe", "sectors", "spots", "marble", "halves")


@dataclass(frozen=True)
class SphereTexture:
    """Two colors on a sphere, mixed by a function of the direction from its center.

    Attributes:
        kind: "stripe", "sectors", "spots", "marble" or "halves".
        colors: Red, green, blue of both colors, (2, 3), 0 to 1.
        directions: Axes, poles or waves of the pattern, (3, waves).
        level: Threshold of the pattern.
    """

    kind: str
    colors: Float[np.ndarray, "2 3"]
    directions: Float[np.ndarray, "3 waves"]
    level: float

    def evaluate(self, directions: Float[np.ndarray, "*points 3"]) -> Float[np.ndarray, "*points 3"]:
        """Colors in these directions, given as unit vectors in the sphere's own frame."""
        waves = directions @ self.directions
        if self.kind == "stripe":
            inside = np.abs(waves[..., 0]) < self.level
        elif self.kind == "sectors":
            inside = (waves > 0).sum(-1) % 2 == 1
        elif self.kind == "spots":
            inside = waves.max(-1) > self.level
        elif self.kind == "halves":
            inside = waves[..., 0] > 0.5 * self.level
        else:
            mix = 0.5 + 0.25 * np.sin(waves + self.level).sum(-1)
            return self.colors[0] + np.clip(mix, 0.0, 1.0)[..., None] * (self.colors[1] - self.colors[0])
        return np.where(inside[..., None], self.colors[1], self.colors[0])


def random_sphere_texture(
    color: Float[np.ndarray, " 3"], second: Float[np.ndarray, " 3"], random: np.random.Generator
) -> SphereTexture:
    """Texture of a random kind that is mostly of the first color."""
    kind = KINDS[random.integers(len(KINDS))]
    count = {"stripe": 1, "halves": 1, "sectors": 3, "spots": 7, "marble": 3}[kind]
    directions = random.standard_normal((3, count))
    directions /= np.linalg.norm(directions, axis=0)
    if kind == "marble":
        directions *= random.uniform(2.0, 6.0, count)
    level = {"stripe": random.uniform(0.2, 0.45), "spots": random.uniform(0.85, 0.94)}.get(kind, random.uniform(0, 1))
    return SphereTexture(kind, np.stack([color, second]).astype(np.float32), directions.astype(np.float32), level)
