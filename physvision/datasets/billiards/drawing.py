"""Discs drawn with their exact coverage of each pixel."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8


def disc_coverage(
    centers: Float[np.ndarray, "frames 2"], radius: float, patch: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fraction of each pixel that a disc covers, in a square patch of pixels around it.

    The pixel of row i and column j covers j ≤ x ≤ j + 1, i ≤ y ≤ i + 1. With the area A(x, y) of the part of the disc
    left of x and above y, a pixel's coverage is A at two opposite corners less A at the other two.

    Args:
        centers: Centers of the disc, x and y, pixels.
        radius: Radius of the disc, pixels.
        patch: Side of the patch, at least 2 radius + 2; pixels.

    Returns:
        Coverage (frames, patch, patch), 0 to 1; rows and columns (frames, patch) of the pixels in the patch, which can
        lie outside of the picture.
    """
    corner = np.floor(centers - 0.5 * patch + 0.5).astype(np.int64)
    steps = np.arange(patch + 1)
    x = (corner[:, 0, None] + steps - centers[:, 0, None]) / radius
    y = (corner[:, 1, None] + steps - centers[:, 1, None]) / radius
    areas = radius**2 * _quadrant_area(x[:, None, :], y[:, :, None])
    coverage = np.diff(np.diff(areas, axis=1), axis=2)
    pixels = steps[:-1]
    return np.clip(coverage, 0.0, 1.0), corner[:, 1, None] + pixels, corner[:, 0, None] + pixels


def _quadrant_area(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Area of the part of the unit disc left of x and above y (smaller than both).

    A column at s reaches from −h(s) to min(h(s), y) with h(s) = √(1 − s²). Let G(x) = ∫h from −1 to x, and let
    c = √(1 − y²) be the disc's half width at y. Then
    ∫min(h, |y|) = G(min(x, −c)) + |y| (x within ±c, + c) + G(max(x, c)) − G(c),
    and the area is G(x) + sign(y) ∫min(h, |y|). G grows, so that G(min) is min(G).
    """
    x, y = np.clip(x, -1.0, 1.0), np.clip(y, -1.0, 1.0)
    half_width = np.sqrt(1.0 - y**2)
    left_area, edge_area = _half_disc(x), _half_disc(half_width)
    clipped = (
        np.minimum(left_area, 0.5 * np.pi - edge_area)
        + np.abs(y) * (np.clip(x, -half_width, half_width) + half_width)
        + np.maximum(left_area, edge_area)
        - edge_area
    )
    return left_area + np.sign(y) * clipped


def _half_disc(x: np.ndarray) -> np.ndarray:
    """Area G(x) under the upper half of the unit circle left of x."""
    return 0.5 * (x * np.sqrt(1.0 - x**2) + np.arcsin(x)) + 0.25 * np.pi


def draw_discs(
    canvas: UInt8[np.ndarray, "frames height width channels"],
    centers: Float[np.ndarray, "frames discs 2"],
    radii: Float[np.ndarray, " discs"],
    colors: Float[np.ndarray, "discs channels"],
) -> None:
    """Draw discs into a picture, clipped at its borders.

    Args:
        canvas: Background, drawn over in place.
        centers: Centers of the discs, x and y, pixels.
        radii: Radii of the discs, pixels.
        colors: Colors of the discs, 0 to 1.
    """
    background = canvas.copy() if canvas.any() else np.zeros((1, 1, 1, canvas.shape[-1]), np.uint8)
    is_uniform = background.shape[1] == 1
    height, width = canvas.shape[1:3]
    for disc, radius in enumerate(radii):
        coverage, rows, columns = disc_coverage(centers[:, disc], radius, int(np.ceil(2 * radius)) + 2)
        inside = (
            (coverage > 0)
            & ((rows >= 0) & (rows < height))[:, :, None]
            & ((columns >= 0) & (columns < width))[:, None, :]
        )
        frame, row, column = np.nonzero(inside)
        weight = coverage[inside][:, None]
        row, column = rows[frame, row], columns[frame, column]
        background_color = background[0, 0, 0] if is_uniform else background[frame, row, column]
        # Discs never overlap, but two can cover parts of one pixel: each replaces its own part of the background.
        blended = canvas[frame, row, column] + weight * (255.0 * colors[disc] - background_color)
        canvas[frame, row, column] = np.rint(np.clip(blended, 0.0, 255.0)).astype(np.uint8)
