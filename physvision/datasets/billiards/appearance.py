"""Appearance of a billiards table: background, balls, camera shake, noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from physvision.datasets.billiards.drawing import draw_discs

# Nodes of the background's random pattern, along each side of the picture.
_TEXTURE_NODES = 6


@dataclass(frozen=True)
class DrawingStyle:
    """Drawing options of a trial, as `BilliardsRecipe` describes them."""

    size: int
    colors: Float[np.ndarray, "balls 3"]
    background: Float[np.ndarray, " 3"]
    texture: float
    noise: float


def draw_frames(
    style: DrawingStyle,
    positions: Float[np.ndarray, "frames balls 2"],
    radii: Float[np.ndarray, " balls"],
    camera: Float[np.ndarray, "frames 2"],
    random: np.random.Generator,
) -> UInt8[np.ndarray, "frames height width 3"]:
    """Draw the frames of a trial."""
    size = style.size
    canvas = np.empty((len(positions), size, size, 3), np.uint8)
    if style.texture == 0.0:
        canvas[:] = np.rint(255.0 * style.background)
    else:
        nodes = random.uniform(-1.0, 1.0, (_TEXTURE_NODES, _TEXTURE_NODES, 3))
        for frame, offset in enumerate(camera):
            pattern = _smooth_pattern(nodes, offset, size)
            levels = style.background + style.texture * 0.5 * (pattern + 1.0 - 2.0 * style.background)
            canvas[frame] = np.rint(255.0 * np.clip(levels, 0.0, 1.0))
    draw_discs(canvas, positions + camera[:, None], radii, style.colors)
    if style.noise > 0.0:
        for frame in canvas:
            noise = random.standard_normal(frame.shape, dtype=np.float32) * np.float32(255.0 * style.noise)
            frame[:] = np.rint(np.clip(frame + noise, 0.0, 255.0))
    return canvas


def _smooth_pattern(nodes: np.ndarray, offset: np.ndarray, size: int) -> np.ndarray:
    """Pattern through `nodes`, moved by `offset` pixels: a periodic cubic blend that is flat at the nodes."""
    count = len(nodes)

    def blend(shift: float) -> np.ndarray:
        position = ((np.arange(size) + 0.5 - shift) / size * count) % count
        node = np.floor(position).astype(int) % count
        weight = position - np.floor(position)
        weight = weight**2 * (3.0 - 2.0 * weight)
        weights = np.zeros((size, count))
        weights[np.arange(size), node] += 1.0 - weight
        weights[np.arange(size), (node + 1) % count] += weight
        return weights

    return np.einsum("in,jm,nmc->ijc", blend(offset[1]), blend(offset[0]), nodes, optimize=True)
