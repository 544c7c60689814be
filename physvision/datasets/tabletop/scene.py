"""Random tables: walls, places of balls, and pictures of cloth, rails and floor."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physvision.core import InputError
from physvision.datasets.rendering import Palette, patterned_surface
from physvision.datasets.rendering.surfaces import add_clutter

_MAX_PLACEMENTS = 10_000
# Pixels of the surface's picture per px of the world, and px of the world around the table.
SURFACE_SCALE, SURFACE_MARGIN = 3, 24


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
    colors = palette.clutter()
    floor = patterned_surface((side, side), palette.surroundings, contrast, scale, random)
    add_clutter(floor, colors, clutter, SURFACE_SCALE * 4.0, random)
    left, top, right, bottom = np.rint(SURFACE_SCALE * (walls + SURFACE_MARGIN)).astype(int).tolist()
    inside = (slice(top, bottom), slice(left, right))
    band = round(SURFACE_SCALE * random.uniform(1.5, 4.0))
    around = tuple(slice(part.start - band, part.stop + band) for part in inside)
    shape = (bottom - top, right - left)
    rails = (shape[0] + 2 * band, shape[1] + 2 * band)
    floor[around] = patterned_surface(rails, palette.border, 0.5 * contrast, scale, random)
    cloth = patterned_surface(shape, palette.surface, contrast, scale, random)
    add_clutter(cloth, colors, clutter, SURFACE_SCALE * 4.0, random)
    floor[inside] = cloth
    return floor
