"""One frame of a film: pictures side by side with what is known drawn over them, and a number's past below."""

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

from physvision.report.palette import FAINT, GROUND, PANEL, TEXT, WARN, Color

SIDE = 352  # of the longer side of a panel, pixels
GAP, HEAD, CHART = 16, 34, 96
SECONDS = 10.0  # of the number's past that are shown
_SHIFT = 4  # OpenCV's fractional bits of a coordinate


@dataclass(frozen=True)
class Mark:
    """What is drawn over a picture for one object; pixels of the canvas's `size`, from the picture's corner.

    Attributes:
        color: of everything.
        outline: a line through points with a dot on each, or a ring around a single one, (points, 2).
        radius: of the ring.
        path: a thin line, such as where the object was, (before, 2).
        dots: a row of fading dots, such as where the object will be, (ahead, 2).
        confidence: 0 to 1; what is unsure is gray.
        dimmed: thinner and without a dark edge.
    """

    color: Color
    outline: Float[np.ndarray, "points 2"] | None = None
    radius: float = 2.0
    path: Float[np.ndarray, "before 2"] | None = None
    dots: Float[np.ndarray, "ahead 2"] | None = None
    confidence: float = 1.0
    dimmed: bool = False


@dataclass(frozen=True)
class Panel:
    """A picture (height, width, 1 or 3) of any size and proportions near the canvas's, and the marks on it."""

    picture: UInt8[np.ndarray, "rows columns channels"]
    marks: Sequence[Mark] = ()


class Canvas:
    """Draws frames, one after the other."""

    def __init__(
        self, size: tuple[int, int], titles: Sequence[str], fps: float, chart: str = "", side: int = SIDE
    ) -> None:
        """Prepare what all frames share.

        Args:
            size: width and height of the pictures whose pixels marks are in.
            titles: of the panels, from left to right.
            fps: frames a second.
            chart: what the number is whose past is drawn below, a share that is written in percent; none if empty.
            side: the longer side of a panel, pixels.
        """
        self._zoom = side / max(size)
        self._panel = (2 * round(size[0] * self._zoom / 2), 2 * round(size[1] * self._zoom / 2))
        self._count, self._chart_height = len(titles), CHART if chart else 0
        self._numbers: deque[float] = deque(maxlen=max(2, round(SECONDS * fps)))
        self._ground = self._background(titles, chart)
        self._largest = 0.1

    def draw(
        self, panels: Sequence[Panel | str], time: float, number: float = float("nan")
    ) -> UInt8[np.ndarray, "rows columns 3"]:
        """The frame at `time`, s: a panel or a few words for each title, and the number of the chart."""
        canvas = self._ground.copy()
        wide, high = self._panel
        for column, panel in enumerate(panels):
            x, y = GAP + column * (wide + GAP), HEAD
            if isinstance(panel, str):
                _write(canvas, panel, (x + 12, y + high // 2), FAINT, 13)
                continue
            picture = self._enlarged(panel.picture)
            for mark in panel.marks:
                self._lines(picture, mark)
            for mark in sorted(panel.marks, key=lambda each: each.dimmed, reverse=True):
                self._outline(picture, mark)
            canvas[y : y + high, x : x + wide] = picture
        if self._chart_height:
            self._numbers.append(number)
            self._chart(canvas)
        _write(canvas, f"{time:.2f} s", (canvas.shape[1] - GAP - 64, 9), TEXT, 15)
        return canvas

    def _background(self, titles: Sequence[str], chart: str) -> np.ndarray:
        """What is the same in all frames."""
        wide, high = self._panel
        width = self._count * (wide + GAP) + GAP
        height = HEAD + high + GAP + (CHART + GAP if chart else 0)
        canvas = np.full((height + height % 2, width + width % 2, 3), GROUND, np.uint8)
        for column, title in enumerate(titles):
            x = GAP + column * (wide + GAP)
            canvas[HEAD : HEAD + high, x : x + wide] = PANEL
            _write(canvas, title, (x, 9), TEXT, 15)
        if chart:
            top = HEAD + high + GAP
            canvas[top : top + CHART, GAP : width - GAP] = PANEL
            _write(canvas, chart, (GAP + 8, top + 4), FAINT, 12)
        return canvas

    def _enlarged(self, picture: np.ndarray) -> UInt8[np.ndarray, "rows columns 3"]:
        """A picture in a panel's size; small ones keep their pixels."""
        shrinks = picture.shape[1] > self._panel[0]
        large = cv2.resize(picture, self._panel, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_NEAREST)
        return cv2.cvtColor(large, cv2.COLOR_GRAY2RGB) if large.ndim == 2 else large

    def _lines(self, picture: np.ndarray, mark: Mark) -> None:
        """The path and the fading dots."""
        if mark.path is not None:
            places = self._fixed(mark.path[np.isfinite(mark.path).all(1)])
            cv2.polylines(picture, [places], False, _mixed(mark.color, FAINT, mark.confidence), 1, cv2.LINE_AA, _SHIFT)
        if mark.dots is not None and np.isfinite(mark.dots).all():
            for step, place in enumerate(self._fixed(mark.dots).tolist()):
                age = step / len(mark.dots)
                color = _mixed(mark.color, FAINT, mark.confidence * (1 - 0.8 * age))
                cv2.circle(picture, place, round((4.0 - 2.2 * age) * 2**_SHIFT), color, -1, cv2.LINE_AA, _SHIFT)

    def _outline(self, picture: np.ndarray, mark: Mark) -> None:
        if mark.outline is None or not np.isfinite(mark.outline).all():
            return
        places = self._fixed(mark.outline)
        own = _mixed(mark.color, FAINT, mark.confidence)
        # A dark edge keeps a line apart from whatever lies below.
        for color, wider in ((own, 0),) if mark.dimmed else (((0, 0, 0), 2), (own, 0)):
            width = 2 + wider - mark.dimmed
            if len(places) == 1:
                size = round(mark.radius * self._zoom * 2**_SHIFT)
                cv2.circle(picture, places[0].tolist(), size, color, width, cv2.LINE_AA, _SHIFT)
                continue
            cv2.polylines(picture, [places], False, color, width, cv2.LINE_AA, _SHIFT)
            for place in places.tolist():
                cv2.circle(picture, place, (3 + wider) << _SHIFT, color, -1, cv2.LINE_AA, _SHIFT)

    def _fixed(self, points: np.ndarray) -> np.ndarray:
        """Points of a picture as OpenCV's numbers; what is far away stays outside."""
        far = 4 * max(self._panel)
        near = np.clip(points * self._zoom - 0.5, -far, far)
        return np.rint(near * 2**_SHIFT).astype(np.int32)

    def _chart(self, canvas: np.ndarray) -> None:
        """The number's past, the present at the right."""
        numbers = np.array(self._numbers)
        known = np.isfinite(numbers)
        if not known.any():
            return
        self._largest = max(self._largest, 1.1 * float(np.nanmax(numbers)))
        wide = self._count * (self._panel[0] + GAP) - GAP - 16
        left, bottom = GAP + 8, HEAD + self._panel[1] + GAP + CHART - 8
        places = np.arange(len(numbers)) / (self._numbers.maxlen or 1) * wide
        line = np.stack([left + places, bottom - numbers / self._largest * (CHART - 34)], 1)[known]
        fixed = np.rint(line * 2**_SHIFT).astype(np.int32)
        cv2.polylines(canvas, [fixed], False, WARN, 2, cv2.LINE_AA, _SHIFT)
        if known[-1]:
            cv2.circle(canvas, fixed[-1].tolist(), 3 << _SHIFT, WARN, -1, cv2.LINE_AA, _SHIFT)
            _write(canvas, f"{100 * numbers[-1]:.1f} %", (GAP + wide - 48, bottom - CHART + 12), WARN, 14)


_INFERNO = np.rint(mpl.colormaps["inferno"](np.arange(256))[:, :3] * 255).astype(np.uint8)


def difference_heatmap(difference: Float[np.ndarray, "height width"]) -> UInt8[np.ndarray, "height width 3"]:
    """Differences of brightness as colours; half of full brightness is the brightest."""
    return _INFERNO[np.clip(difference * 510, 0, 255).astype(np.uint8)]


def _mixed(color: Color, other: Color, share: float) -> Color:
    share = min(1.0, max(0.0, share)) ** 0.5
    red, green, blue = (round(share * a + (1 - share) * b) for a, b in zip(color, other, strict=True))
    return red, green, blue


def _write(canvas: np.ndarray, text: str, place: tuple[int, int], color: Color, size: int) -> None:
    """Write `text` with its upper left corner at `place`."""
    cover = _glyphs(text, size)
    x, y = place
    high, wide = cover.shape[:2]
    part = canvas[y : y + high, x : x + wide]
    cover = cover[: part.shape[0], : part.shape[1]]
    part[:] = np.rint(part + cover * (np.array(color) - part)).astype(np.uint8)


@lru_cache(maxsize=512)
def _glyphs(text: str, size: int) -> np.ndarray:
    """How much of each pixel `text` covers, (rows, columns, 1)."""
    font = ImageFont.truetype(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)
    _, _, right, bottom = font.getbbox(text)
    image = Image.new("L", (int(right) + 1, int(bottom) + 2))
    ImageDraw.Draw(image).text((0, 0), text, fill=255, font=font)
    return np.asarray(image, np.float32)[..., None] / 255
