"""Random tables: walls, balls and how they look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from physvision.core import InputError
from physvision.datasets.rendering import SphereTexture, hsv_color, patterned_surface, random_sphere_texture
from physvision.datasets.rendering.surfaces import add_clutter

_MAX_PLACEMENTS = 10_000
# Pixels of the surface's picture per px of the world, and px of the world around the table.
SURFACE_SCALE, SURFACE_MARGIN = 3, 24
# Fraction of trials in which all balls have nearly one color.
_SIMILAR_COLORS = 0.5


def random_walls(size: int, margin: tuple[float, float], random: np.random.Generator) -> Float[np.ndarray, " 4"]:
    """Left, top, right and bottom wall; each lies within `margin` (lowest, highest; px) of the picture's border."""
    inset = random.uniform(*margin, 4)
    return np.array([inset[0], inset[1], size - inset[2], size - inset[3]])


def place_balls(
    count: int, radius: float, box: Float[np.ndarray, " 2"], random: np.random.Generator
) -> Float[np.ndarray, "balls 2"]:
    """Centers of balls that touch neither each other nor the walls of a box, uniform among all such."""
    for _ in range(_MAX_PLACEMENTS):
        centers = random.uniform(radius, box - radius, (count, 2))
        gaps = np.linalg.norm(centers[:, None] - centers, axis=-1)[np.triu_indices(count, 1)]
        if gaps.min(initial=np.inf) > 2.0 * radius:
            return centers
    raise InputError(
        f"radius: {count} balls of radius {radius:.3g} px found no room in a box of {box[0]:.3g} x {box[1]:.3g} px in "
        f"{_MAX_PLACEMENTS} tries; make the picture larger, or the balls fewer or smaller"
    )


@dataclass(frozen=True)
class Palette:
    """Colors of a trial.

    Attributes:
        cloth: Color of the cloth.
        rail: Color of the rails around it.
        floor: Color of what lies outside.
        balls: Colors of the balls, (balls, 3).
        seconds: Second colors of the balls' textures, (balls, 3).
    """

    cloth: Float[np.ndarray, " 3"]
    rail: Float[np.ndarray, " 3"]
    floor: Float[np.ndarray, " 3"]
    balls: Float[np.ndarray, "balls 3"]
    seconds: Float[np.ndarray, "balls 3"]

    def textures(self, random: np.random.Generator) -> list[SphereTexture]:
        """Random texture of each ball."""
        return [random_sphere_texture(*colors, random) for colors in zip(self.balls, self.seconds, strict=True)]


def random_palette(balls: int, random: np.random.Generator) -> Palette:
    """Colors of cloth, rails, floor and balls; in half of the trials all balls are of similar colors."""
    cloth = hsv_color(random.uniform(), random.uniform(0.1, 0.7), random.uniform(0.25, 0.75))
    rail = hsv_color(random.uniform(0.02, 0.12), random.uniform(0.3, 0.7), random.uniform(0.2, 0.7))
    floor = hsv_color(random.uniform(), random.uniform(0.0, 0.4), random.uniform(0.2, 0.8))
    base = np.array([random.uniform(), random.uniform(0.2, 0.9), random.uniform(0.3, 1.0)])
    spread = np.array([0.03, 0.08, 0.08]) if random.uniform() < _SIMILAR_COLORS else np.array([1.0, 0.35, 0.35])
    first, second = [], []
    for _ in range(balls):
        while True:
            color = hsv_color(*(base + spread * random.uniform(-1.0, 1.0, 3)))
            # A ball whose color is that of the cloth could not be seen by anybody; drift until it can.
            if np.abs(color - cloth).max() > 0.15:
                break
            base[2] = base[2] + 0.2 if base[2] < 0.8 else random.uniform(0.1, 0.9)
        first.append(color)
        while True:
            accent = hsv_color(random.uniform(), random.uniform(0.0, 0.9), random.uniform(0.1, 1.0))
            if np.abs(accent - color).max() > 0.2:
                break
        second.append(accent)
    return Palette(cloth, rail, floor, np.array(first).reshape(-1, 3), np.array(second).reshape(-1, 3))


def table_surface(
    size: int,
    walls: Float[np.ndarray, " 4"],
    palette: Palette,
    contrast: float,
    clutter: int,
    random: np.random.Generator,
) -> Float[np.ndarray, "rows columns 3"]:
    """Picture of floor, rails and cloth in the table's plane, `SURFACE_MARGIN` px wider than the frame on each side.

    Args:
        size: Side of a frame, px.
        walls: Left, top, right and bottom wall, px.
        palette: Colors of the trial.
        contrast: Contrast of the patterns, 0 to 1.
        clutter: Number of shapes drawn onto the cloth; as many lie outside.
        random: Random generator.
    """
    side = SURFACE_SCALE * (size + 2 * SURFACE_MARGIN)
    scale = SURFACE_SCALE * random.uniform(3.0, 12.0)
    colors = np.concatenate([palette.balls, palette.seconds, palette.cloth[None] * 0.6])
    floor = patterned_surface((side, side), palette.floor, contrast, scale, random)
    add_clutter(floor, colors, clutter, SURFACE_SCALE * 4.0, random)
    left, top, right, bottom = np.rint(SURFACE_SCALE * (walls + SURFACE_MARGIN)).astype(int).tolist()
    inside = (slice(top, bottom), slice(left, right))
    band = round(SURFACE_SCALE * random.uniform(1.5, 4.0))
    around = tuple(slice(part.start - band, part.stop + band) for part in inside)
    shape = (bottom - top, right - left)
    rails = (shape[0] + 2 * band, shape[1] + 2 * band)
    floor[around] = patterned_surface(rails, palette.rail, 0.5 * contrast, scale, random)
    cloth = patterned_surface(shape, palette.cloth, contrast, scale, random)
    add_clutter(cloth, colors, clutter, SURFACE_SCALE * 4.0, random)
    floor[inside] = cloth
    return floor
