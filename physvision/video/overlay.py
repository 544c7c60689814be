"""Draw overlays over frames, and arrange frames in a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import UInt8

_SHIFT = 4  # fractional bits of OpenCV's coordinates
_COLOR = (255, 60, 200)


@dataclass(frozen=True)
class CircleOutline:
    """Outline of a circle, in pixels from the frame's upper left corner."""

    center: tuple[float, float]
    radius: float


@dataclass(frozen=True)
class Arrow:
    """Arrow from one point to another, in pixels."""

    start: tuple[float, float]
    end: tuple[float, float]


@dataclass(frozen=True)
class Polyline:
    """Connected line segments with a dot at each vertex, in pixels."""

    points: tuple[tuple[float, float], ...]


OverlayShape = CircleOutline | Arrow | Polyline
ToPixel = Callable[[Sequence[float]], tuple[int, int]]


def draw_overlay(
    frame: UInt8[np.ndarray, "height width channels"], shapes: Sequence[OverlayShape] = (), magnification: int = 1
) -> UInt8[np.ndarray, "rows columns 3"]:
    """Draw shapes over a magnified frame.

    Args:
        frame: Gray or RGB frame.
        shapes: Shapes to draw, in pixels of the frame.
        magnification: Integer factor by which width and height grow.
    """
    canvas = np.repeat(np.repeat(frame, magnification, 0), magnification, 1)
    canvas = np.array(np.broadcast_to(canvas, (*canvas.shape[:2], 3)), order="C")

    def to_pixel(point: Sequence[float]) -> tuple[int, int]:
        # OpenCV's pixel centers are at integers, the frame's at half-integers.
        x, y = ((value * magnification - 0.5) * 2**_SHIFT for value in point)
        return round(float(x)), round(float(y))

    # A dark outline separates the shapes from any background.
    for color, width in (((0, 0, 0), 3), (_COLOR, 1)):
        for shape in shapes:
            _draw_shape(canvas, shape, to_pixel, magnification, color, width)
    return canvas


def _draw_shape(
    canvas: np.ndarray, shape: OverlayShape, to_pixel: ToPixel, magnification: int, color: tuple[int, ...], width: int
) -> None:
    if isinstance(shape, CircleOutline):
        radius = round(float(shape.radius * magnification * 2**_SHIFT))
        cv2.circle(canvas, to_pixel(shape.center), radius, color, width, cv2.LINE_AA, _SHIFT)
    elif isinstance(shape, Arrow):
        cv2.arrowedLine(
            canvas, to_pixel(shape.start), to_pixel(shape.end), color, width, cv2.LINE_AA, _SHIFT, tipLength=0.25
        )
    else:
        points = np.array([to_pixel(point) for point in shape.points])
        cv2.polylines(canvas, [points], False, color, width, cv2.LINE_AA, _SHIFT)
        for x, y in points.tolist():
            cv2.circle(canvas, (x, y), (3 + width) << (_SHIFT - 1), color, -1, cv2.LINE_AA, _SHIFT)


def add_caption(image: UInt8[np.ndarray, "height width 3"], text: str) -> UInt8[np.ndarray, "taller width 3"]:
    """Put one line of text above an image."""
    strip = np.full((18, image.shape[1], 3), 255, np.uint8)
    cv2.putText(strip, text, (3, 13), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (0, 0, 0), 1, cv2.LINE_AA)
    return np.vstack([strip, image])


def image_grid(
    images: Sequence[UInt8[np.ndarray, "height width 3"]], columns: int
) -> UInt8[np.ndarray, "rows columns 3"]:
    """Arrange images of equal size in a grid on white."""
    height, width, _ = images[0].shape
    rows, gap = -(-len(images) // columns), 6
    grid = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap, 3), 255, np.uint8)
    for index, image in enumerate(images):
        y, x = gap + index // columns * (height + gap), gap + index % columns * (width + gap)
        grid[y : y + height, x : x + width] = image
    return grid
