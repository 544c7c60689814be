"""Patterned and cluttered flat surfaces, as color pictures with values from 0 to 1."""

from __future__ import annotations

import colorsys

import cv2
import numpy as np
from jaxtyping import Float

PATTERNS = ("plain", "blotches", "stripes", "checks", "grain")


def hsv_color(hue: float, saturation: float, value: float) -> Float[np.ndarray, " 3"]:
    """Red, green and blue of a color; the hue is periodic in 1, the others are clipped to 0 to 1."""
    saturation, value = (float(np.clip(number, 0.0, 1.0)) for number in (saturation, value))
    return np.array(colorsys.hsv_to_rgb(hue % 1.0, saturation, value), np.float32)


def smooth_noise(shape: tuple[int, int], cell: float, random: np.random.Generator) -> Float[np.ndarray, "height width"]:
    """Random field from about −1 to 1 that varies over `cell` pixels."""
    nodes = [max(int(np.ceil(side / cell)) + 3, 4) for side in shape]
    coarse = random.uniform(-1.0, 1.0, nodes).astype(np.float32)
    fine = cv2.resize(coarse, None, fx=cell, fy=cell, interpolation=cv2.INTER_CUBIC)
    return fine[: shape[0], : shape[1]]


def _pattern(kind: str, shape: tuple[int, int], scale: float, random: np.random.Generator) -> np.ndarray:
    """Pattern from −1 to 1 whose features are some `scale` pixels large."""
    if kind == "plain":
        return np.zeros(shape, np.float32)
    if kind == "blotches":
        return 0.7 * smooth_noise(shape, 2 * scale, random) + 0.3 * smooth_noise(shape, 0.5 * scale, random)
    if kind == "grain":
        stretched = smooth_noise((shape[0], max(shape[1] // 8, 1)), 0.4 * scale, random)
        return cv2.resize(stretched, shape[::-1], interpolation=cv2.INTER_LINEAR)
    angle = random.uniform(0.0, np.pi)
    rows, columns = np.indices(shape, np.float32)
    along, across = (
        np.sin(2 * np.pi / scale * (columns * np.cos(turn) + rows * np.sin(turn)))
        for turn in (angle, angle + np.pi / 2)
    )
    edges = np.clip(4.0 * along, -1.0, 1.0)
    return edges if kind == "stripes" else edges * np.clip(4.0 * across, -1.0, 1.0)


def patterned_surface(
    shape: tuple[int, int],
    color: Float[np.ndarray, " 3"],
    contrast: float,
    scale: float,
    random: np.random.Generator,
) -> Float[np.ndarray, "height width 3"]:
    """Surface of one color, modulated by a random pattern and by fine grain.

    Args:
        shape: Height and width of the picture, pixels.
        color: Red, green, blue of the surface, 0 to 1.
        contrast: Amplitude of the pattern, 0 to 1.
        scale: Size of the pattern's features, pixels.
        random: Random generator.
    """
    kind = PATTERNS[random.integers(len(PATTERNS))]
    tint = np.clip(color + random.normal(0.0, 0.3, 3), 0.0, 1.0).astype(np.float32)
    blend = contrast * _pattern(kind, shape, scale, random)[..., None]
    # Positive values of the pattern mix a second color in, negative ones darken.
    surface = color + np.maximum(blend, 0.0) * (tint - color) + 0.5 * np.minimum(blend, 0.0) * color
    surface += 0.15 * contrast * smooth_noise(shape, 2.0, random)[..., None]
    return np.clip(surface, 0.0, 1.0).astype(np.float32)


def add_clutter(
    surface: Float[np.ndarray, "height width 3"],
    colors: Float[np.ndarray, "colors 3"],
    count: int,
    scale: float,
    random: np.random.Generator,
) -> None:
    """Draw flat discs, rings, polygons, strokes and letters onto a surface, in place.

    Args:
        surface: Picture to draw on.
        colors: Colors to draw with, for instance those of the objects, so that color alone tells nothing.
        count: Number of shapes.
        scale: Size of the shapes, pixels.
        random: Random generator.
    """
    height, width = surface.shape[:2]
    for _ in range(count):
        # OpenCV draws smooth edges into bytes only.
        cover = np.zeros((height, width), np.uint8)
        center = (int(random.integers(width)), int(random.integers(height)))
        _draw_shape(cover, center, scale * random.uniform(0.5, 1.2), random)
        color = np.clip(colors[random.integers(len(colors))] + random.normal(0.0, 0.06, 3), 0.0, 1.0)
        opacity = random.uniform(0.4, 1.0) / 255.0 * cover[..., None]
        surface += opacity.astype(np.float32) * (color.astype(np.float32) - surface)


def _draw_shape(cover: np.ndarray, center: tuple[int, int], size: float, random: np.random.Generator) -> None:
    """Draw a disc, ring, polygon, stroke or letter of random form."""
    kind = ("disc", "ring", "polygon", "stroke", "letter")[random.integers(5)]
    if kind in ("disc", "ring"):
        cv2.circle(
            cover, center, max(1, int(size)), 255, -1 if kind == "disc" else max(1, int(0.25 * size)), cv2.LINE_AA
        )
    elif kind == "polygon":
        angles = np.sort(random.uniform(0.0, 2 * np.pi, random.integers(3, 6)))
        corners = np.array(center) + 1.4 * size * np.stack([np.cos(angles), np.sin(angles)], 1)
        cv2.fillPoly(cover, [np.rint(corners).astype(np.int32)], 255, cv2.LINE_AA)
    elif kind == "stroke":
        end = np.rint(np.array(center) + size * random.normal(0.0, 2.5, 2)).astype(int)
        cv2.line(cover, center, tuple(map(int, end)), 255, max(1, int(0.3 * size)), cv2.LINE_AA)
    else:
        letter = chr(int(random.integers(ord("A"), ord("Z") + 1)))
        cv2.putText(cover, letter, center, cv2.FONT_HERSHEY_SIMPLEX, size / 12, 255, 2, cv2.LINE_AA)
