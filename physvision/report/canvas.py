"""Video frames with annotated images side by side, and a scrolling chart of one quantity below."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import cv2
import matplotlib as mpl
import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont

from physvision.report.palette import GROUND, MUTED, PANEL, TEXT, WARN, Color

SIDE = 352  # longer side of a panel, px
GAP, HEAD, CHART = 16, 34, 96  # margins, height of titles and of the chart, px
CHART_SECONDS = 10.0
_SHIFT = 4  # fractional bits of OpenCV's coordinates


@dataclass(frozen=True)
class Mark:
    """Annotation of one object, in pixels of the canvas's `size` from the image's upper left corner.

    Attributes:
        color: Color of all parts.
        outline: Polyline with a dot at each point, or the center of a ring, (points, 2).
        radius: Radius of the ring.
        path: Thin line, such as the past path of the object, (points, 2).
        dots: Row of fading dots, such as the predicted path, (points, 2).
        confidence: Confidence from 0 (gray) to 1 (full color).
        dimmed: If true, the outline is thinner and has no dark edge.
    """

    color: Color
    outline: Float[np.ndarray, "points 2"] | None = None
    radius: float = 2.0
    path: Float[np.ndarray, "past 2"] | None = None
    dots: Float[np.ndarray, "future 2"] | None = None
    confidence: float = 1.0
    dimmed: bool = False


@dataclass(frozen=True)
class Panel:
    """Gray or RGB image of any size, with an aspect ratio near the canvas's, and the marks on it."""

    image: UInt8[np.ndarray, "rows columns channels"]
    marks: Sequence[Mark] = ()


class Canvas:
    """Draws video frames, one after the other."""

    def __init__(
        self, size: tuple[int, int], titles: Sequence[str], fps: float, chart: str = "", side: int = SIDE
    ) -> None:
        """Draw what all frames have in common.

        Args:
            size: Width and height of the images in whose pixels marks are given.
            titles: Titles of the panels, from left to right.
            fps: Frame rate.
            chart: Title of the chart, whose values are fractions, shown in percent; no chart if empty.
            side: Longer side of a panel, px.
        """
        self._zoom = side / max(size)
        self._panel = (2 * round(size[0] * self._zoom / 2), 2 * round(size[1] * self._zoom / 2))
        self._count, self._has_chart = len(titles), bool(chart)
        self._values: deque[float] = deque(maxlen=max(2, round(CHART_SECONDS * fps)))
        self._background = self._draw_background(titles, chart)
        self._max_value = 0.1

    def draw(
        self, panels: Sequence[Panel | str], time: float, value: float = float("nan")
    ) -> UInt8[np.ndarray, "rows columns 3"]:
        """Draw one frame of the video.

        Args:
            panels: Panel, or a short text, for each title.
            time: Time of the frame, s.
            value: New value of the chart.
        """
        canvas = self._background.copy()
        width, height = self._panel
        for column, panel in enumerate(panels):
            x, y = GAP + column * (width + GAP), HEAD
            if isinstance(panel, str):
                _write_text(canvas, panel, (x + 12, y + height // 2), MUTED, 13)
                continue
            image = self._resize(panel.image)
            for mark in panel.marks:
                self._draw_paths(image, mark)
            for mark in sorted(panel.marks, key=lambda mark: mark.dimmed, reverse=True):
                self._draw_outline(image, mark)
            canvas[y : y + height, x : x + width] = image
        if self._has_chart:
            self._values.append(value)
            self._draw_chart(canvas)
        _write_text(canvas, f"{time:.2f} s", (canvas.shape[1] - GAP - 64, 9), TEXT, 15)
        return canvas

    def _draw_background(self, titles: Sequence[str], chart: str) -> np.ndarray:
        panel_width, panel_height = self._panel
        width = self._count * (panel_width + GAP) + GAP
        height = HEAD + panel_height + GAP + (CHART + GAP if chart else 0)
        canvas = np.full((height + height % 2, width + width % 2, 3), GROUND, np.uint8)
        for column, title in enumerate(titles):
            x = GAP + column * (panel_width + GAP)
            canvas[HEAD : HEAD + panel_height, x : x + panel_width] = PANEL
            _write_text(canvas, title, (x, 9), TEXT, 15)
        if chart:
            top = HEAD + panel_height + GAP
            canvas[top : top + CHART, GAP : width - GAP] = PANEL
            _write_text(canvas, chart, (GAP + 8, top + 4), MUTED, 12)
        return canvas

    def _resize(self, image: np.ndarray) -> UInt8[np.ndarray, "rows columns 3"]:
        """Resize an image to a panel; a small one keeps its pixels visible."""
        shrinks = image.shape[1] > self._panel[0]
        resized = cv2.resize(image, self._panel, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_NEAREST)
        return cv2.cvtColor(resized, cv2.COLOR_GRAY2RGB) if resized.ndim == 2 else resized

    def _draw_paths(self, image: np.ndarray, mark: Mark) -> None:
        if mark.path is not None:
            points = self._to_fixed_point(mark.path[np.isfinite(mark.path).all(1)])
            cv2.polylines(image, [points], False, _mix(mark.color, MUTED, mark.confidence), 1, cv2.LINE_AA, _SHIFT)
        if mark.dots is not None and np.isfinite(mark.dots).all():
            for step, point in enumerate(self._to_fixed_point(mark.dots).tolist()):
                age = step / len(mark.dots)
                color = _mix(mark.color, MUTED, mark.confidence * (1 - 0.8 * age))
                cv2.circle(image, point, round((4.0 - 2.2 * age) * 2**_SHIFT), color, -1, cv2.LINE_AA, _SHIFT)

    def _draw_outline(self, image: np.ndarray, mark: Mark) -> None:
        if mark.outline is None or not np.isfinite(mark.outline).all():
            return
        points = self._to_fixed_point(mark.outline)
        color = _mix(mark.color, MUTED, mark.confidence)
        # A dark edge separates the outline from any background.
        for stroke, extra in ((color, 0),) if mark.dimmed else (((0, 0, 0), 2), (color, 0)):
            width = 2 + extra - mark.dimmed
            if len(points) == 1:
                radius = round(mark.radius * self._zoom * 2**_SHIFT)
                cv2.circle(image, points[0].tolist(), radius, stroke, width, cv2.LINE_AA, _SHIFT)
                continue
            cv2.polylines(image, [points], False, stroke, width, cv2.LINE_AA, _SHIFT)
            for point in points.tolist():
                cv2.circle(image, point, (3 + extra) << _SHIFT, stroke, -1, cv2.LINE_AA, _SHIFT)

    def _to_fixed_point(self, points: np.ndarray) -> np.ndarray:
        """Convert points of an image to OpenCV's integers; distant ones are clipped outside the panel."""
        limit = 4 * max(self._panel)
        clipped = np.clip(points * self._zoom - 0.5, -limit, limit)
        return np.rint(clipped * 2**_SHIFT).astype(np.int32)

    def _draw_chart(self, canvas: np.ndarray) -> None:
        """Draw the past values from left to right."""
        values = np.array(self._values)
        finite = np.isfinite(values)
        if not finite.any():
            return
        self._max_value = max(self._max_value, 1.1 * float(np.nanmax(values)))
        width = self._count * (self._panel[0] + GAP) - GAP - 16
        left, bottom = GAP + 8, HEAD + self._panel[1] + GAP + CHART - 8
        x = np.arange(len(values)) / (self._values.maxlen or 1) * width
        line = np.stack([left + x, bottom - values / self._max_value * (CHART - 34)], 1)[finite]
        points = np.rint(line * 2**_SHIFT).astype(np.int32)
        cv2.polylines(canvas, [points], False, WARN, 2, cv2.LINE_AA, _SHIFT)
        if finite[-1]:
            cv2.circle(canvas, points[-1].tolist(), 3 << _SHIFT, WARN, -1, cv2.LINE_AA, _SHIFT)
            _write_text(canvas, f"{100 * values[-1]:.1f} %", (GAP + width - 48, bottom - CHART + 12), WARN, 14)


_INFERNO = np.rint(mpl.colormaps["inferno"](np.arange(256))[:, :3] * 255).astype(np.uint8)


def difference_heatmap(difference: Float[np.ndarray, "height width"]) -> UInt8[np.ndarray, "height width 3"]:
    """Map differences of brightness to colors; half of full scale is the brightest."""
    return _INFERNO[np.clip(difference * 510, 0, 255).astype(np.uint8)]


def _mix(color: Color, other_color: Color, fraction: float) -> Color:
    fraction = min(1.0, max(0.0, fraction)) ** 0.5
    red, green, blue = (round(fraction * a + (1 - fraction) * b) for a, b in zip(color, other_color, strict=True))
    return red, green, blue


def _write_text(canvas: np.ndarray, text: str, corner: tuple[int, int], color: Color, size: int) -> None:
    """Write text with its upper left corner at `corner`."""
    coverage = _render_text(text, size)
    x, y = corner
    height, width = coverage.shape[:2]
    part = canvas[y : y + height, x : x + width]
    coverage = coverage[: part.shape[0], : part.shape[1]]
    part[:] = np.rint(part + coverage * (np.array(color) - part)).astype(np.uint8)


@lru_cache(maxsize=512)
def _render_text(text: str, size: int) -> np.ndarray:
    """Render the coverage of each pixel by text, (rows, columns, 1)."""
    font = ImageFont.truetype(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)
    _, _, right, bottom = font.getbbox(text)
    image = Image.new("L", (int(right) + 1, int(bottom) + 2))
    ImageDraw.Draw(image).text((0, 0), text, fill=255, font=font)
    return np.asarray(image, np.float32)[..., None] / 255
