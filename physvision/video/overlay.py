"""Draw what is known over frames, and lay frames out on one sheet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import UInt8

# OpenCV takes places in 1/16 of a pixel.
_SHIFT = 4


@dataclass(frozen=True)
class Ring:
    """A circle's outline; pixels of the frame, its corner at (0, 0)."""

    center: tuple[float, float]
    radius: float


@dataclass(frozen=True)
class Arrow:
    """From a place to another."""

    start: tuple[float, float]
    end: tuple[float, float]


@dataclass(frozen=True)
class Path:
    """Straight lines from point to point, a dot at each."""

    points: tuple[tuple[float, float], ...]


Mark = Ring | Arrow | Path
Place = Callable[[Sequence[float]], tuple[int, int]]


def draw(
    frame: UInt8[np.ndarray, "height width channels"],
    marks: Sequence[Mark] = (),
    magnification: int = 1,
    color: tuple[int, int, int] = (255, 60, 200),
) -> UInt8[np.ndarray, "rows columns 3"]:
    """The frame in colour, each pixel `magnification` times as wide and high, with `marks` drawn over it."""
    canvas = np.repeat(np.repeat(frame, magnification, 0), magnification, 1)
    canvas = np.array(np.broadcast_to(canvas, (*canvas.shape[:2], 3)), order="C")

    def place(point: Sequence[float]) -> tuple[int, int]:
        # OpenCV's pixel centres are whole numbers, the frame's are halves.
        x, y = ((value * magnification - 0.5) * 2**_SHIFT for value in point)
        return round(float(x)), round(float(y))

    # A dark edge keeps the marks apart from whatever lies below.
    for stroke, wider in (((0, 0, 0), 2), (color, 0)):
        for mark in marks:
            _stroke(canvas, mark, place, magnification, stroke, wider)
    return canvas


def _stroke(
    canvas: np.ndarray, mark: Mark, place: Place, magnification: int, color: tuple[int, int, int], wider: int
) -> None:
    """Draw one mark, its lines `wider` pixels more than one."""
    width = 1 + wider
    if isinstance(mark, Ring):
        radius = round(float(mark.radius * magnification * 2**_SHIFT))
        cv2.circle(canvas, place(mark.center), radius, color, width, cv2.LINE_AA, _SHIFT)
    elif isinstance(mark, Arrow):
        cv2.arrowedLine(canvas, place(mark.start), place(mark.end), color, width, cv2.LINE_AA, _SHIFT, 0.25)
    else:
        points = np.array([place(point) for point in mark.points])
        cv2.polylines(canvas, [points], False, color, width, cv2.LINE_AA, _SHIFT)
        for point in mark.points:
            cv2.circle(canvas, place(point), (4 + wider) << (_SHIFT - 1), color, -1, cv2.LINE_AA, _SHIFT)


def label(picture: UInt8[np.ndarray, "height width 3"], text: str) -> UInt8[np.ndarray, "taller width 3"]:
    """The picture with a line of text above it."""
    strip = np.full((18, picture.shape[1], 3), 255, np.uint8)
    cv2.putText(strip, text, (3, 13), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (0, 0, 0), 1, cv2.LINE_AA)
    return np.vstack([strip, picture])


def sheet(pictures: Sequence[UInt8[np.ndarray, "height width 3"]], columns: int) -> UInt8[np.ndarray, "rows columns 3"]:
    """Pictures of one size side by side in rows, on white."""
    height, width, _ = pictures[0].shape
    rows, gap = -(-len(pictures) // columns), 6
    page = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap, 3), 255, np.uint8)
    for index, picture in enumerate(pictures):
        y, x = gap + index // columns * (height + gap), gap + index % columns * (width + gap)
        page[y : y + height, x : x + width] = picture
    return page
