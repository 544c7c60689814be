"""One frame of the film: what is seen in the video, what had been predicted for the same moment, and the error."""

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

from physvision.core import Scene
from physvision.predict.palette import FAINT, GROUND, PANEL, TEXT, WARN, Color, of_object
from physvision.video import TimedFrame

SIDE = 352  # of the longer side of a panel, pixels
GAP, HEAD, CHART = 16, 34, 96
SECONDS = 10.0  # of the error's past that are shown
_SHIFT = 4  # OpenCV's fractional bits of a coordinate


@dataclass(frozen=True)
class Marks:
    """What is drawn over a frame; pixels of the frame that the model takes.

    Attributes:
        seen: points of each object's outline, (points, 2).
        ahead: where each object's last point is predicted to be, (moments, 2).
        expected: outlines as they were predicted for this moment.
        confidence: in each object, 0 to 1.
    """

    seen: Sequence[Float[np.ndarray, "points 2"]]
    ahead: Sequence[Float[np.ndarray, "moments 2"]]
    expected: Sequence[Float[np.ndarray, "points 2"]]
    confidence: Sequence[float]


class Canvas:
    """Draws the film's frames, one after the other."""

    def __init__(self, scene: Scene, horizon: float) -> None:
        """Prepare what all frames share.

        Args:
            scene: what is seen.
            horizon: how far ahead was predicted, s.
        """
        self.scene, self.horizon = scene, horizon
        wide, high = scene.size
        self._zoom = SIDE / max(wide, high)
        self._panel = (2 * round(wide * self._zoom / 2), 2 * round(high * self._zoom / 2))
        self._errors: deque[float] = deque(maxlen=max(2, round(SECONDS * scene.fps)))
        self._ground = self._background()
        self._worst = 0.1

    def draw(
        self, timed: TimedFrame, marks: Marks, foreseen: Float[np.ndarray, "channels height width"] | None
    ) -> UInt8[np.ndarray, "rows columns 3"]:
        """The film's frame of `timed`; `foreseen` is what was predicted for it, None if nothing was."""
        canvas = self._ground.copy()
        first = self._shown(timed.original)
        self._trails(first, marks.ahead, marks.confidence)
        self._outlines(first, marks.seen, marks.confidence)
        self._put(canvas, 0, first)
        if foreseen is None:
            self._errors.append(float("nan"))
            _write(canvas, "nothing was predicted yet", self._place(1, 12, self._panel[1] // 2), FAINT, 13)
        else:
            picture = self._shown(np.rint(np.moveaxis(foreseen, 0, -1) * 255).astype(np.uint8))
            self._outlines(picture, marks.expected, [1.0] * len(marks.expected), faint=True)
            self._put(canvas, 1, picture)
            error = foreseen - np.moveaxis(timed.frame.astype(np.float32) / 255, -1, 0)
            self._put(canvas, 2, self._heat(np.abs(error).mean(0)))
            self._errors.append(float(np.sqrt(np.square(error).mean())))
        self._chart(canvas)
        _write(canvas, f"{timed.time:.2f} s", (canvas.shape[1] - GAP - 64, 9), TEXT, 15)
        return canvas

    def _background(self) -> np.ndarray:
        """What is the same in all frames."""
        width = 3 * self._panel[0] + 4 * GAP
        height = HEAD + self._panel[1] + GAP + CHART + GAP
        canvas = np.full((height + height % 2, width + width % 2, 3), GROUND, np.uint8)
        seconds = self.horizon
        titles = ("video, and what is seen in it", f"predicted {seconds:.3g} s before", "difference")
        for column, title in enumerate(titles):
            x = GAP + column * (self._panel[0] + GAP)
            canvas[HEAD : HEAD + self._panel[1], x : x + self._panel[0]] = PANEL
            _write(canvas, title, (x, 9), TEXT, 15)
        top = HEAD + self._panel[1] + GAP
        canvas[top : top + CHART, GAP : width - GAP] = PANEL
        _write(
            canvas,
            f"error of the frame predicted {seconds:.3g} s before, % of full brightness",
            (GAP + 8, top + 4),
            FAINT,
            12,
        )
        return canvas

    def _shown(self, picture: np.ndarray) -> UInt8[np.ndarray, "rows columns 3"]:
        """A picture in a panel's size; small ones keep their pixels."""
        shrinks = picture.shape[1] > self._panel[0]
        large = cv2.resize(picture, self._panel, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_NEAREST)
        return cv2.cvtColor(large, cv2.COLOR_GRAY2RGB) if large.ndim == 2 else large

    def _heat(self, error: np.ndarray) -> np.ndarray:
        """Differences as colours; half of full brightness is the brightest."""
        levels = np.clip(error * 510, 0, 255).astype(np.uint8)
        return self._shown(_INFERNO[levels])

    def _place(self, column: int, x: int, y: int) -> tuple[int, int]:
        return GAP + column * (self._panel[0] + GAP) + x, HEAD + y

    def _put(self, canvas: np.ndarray, column: int, picture: np.ndarray) -> None:
        x, y = self._place(column, 0, 0)
        canvas[y : y + self._panel[1], x : x + self._panel[0]] = picture

    def _trails(self, picture: np.ndarray, ways: Sequence[np.ndarray], confidence: Sequence[float]) -> None:
        for index, way in enumerate(ways):
            if not np.isfinite(way).all():
                continue
            for step, point in enumerate(self._fixed(way)):
                share = confidence[index] * (1 - 0.8 * step / len(way))
                color = _mixed(of_object(self.scene, index), FAINT, share)
                cv2.circle(
                    picture,
                    point.tolist(),
                    round((4.0 - 2.2 * step / len(way)) * 2**_SHIFT),
                    color,
                    -1,
                    cv2.LINE_AA,
                    _SHIFT,
                )

    def _outlines(
        self, picture: np.ndarray, points: Sequence[np.ndarray], confidence: Sequence[float], faint: bool = False
    ) -> None:
        """Each object's line or ring; what is unsure is gray."""
        for stroke, wider in (((0, 0, 0), 2), (None, 0)):
            if faint and wider:
                continue
            for index, each in enumerate(points):
                if not np.isfinite(each).all():
                    continue
                color = stroke or _mixed(of_object(self.scene, index), FAINT, confidence[index])
                places = self._fixed(each)
                radius = self.scene.objects[index].radius
                if len(places) == 1:
                    size = round((radius or 2.0) * self._zoom * 2**_SHIFT)
                    cv2.circle(picture, places[0].tolist(), size, color, 2 + wider - faint, cv2.LINE_AA, _SHIFT)
                else:
                    cv2.polylines(picture, [places], False, color, 2 + wider - faint, cv2.LINE_AA, _SHIFT)
                    for place in places:
                        cv2.circle(picture, place.tolist(), (3 + wider) << _SHIFT, color, -1, cv2.LINE_AA, _SHIFT)

    def _fixed(self, points: np.ndarray) -> np.ndarray:
        """Points of a frame as OpenCV's numbers; what is far away stays outside."""
        near = np.clip(points * self._zoom - 0.5, -4 * SIDE, 5 * SIDE)
        return np.rint(near * 2**_SHIFT).astype(np.int32)

    def _chart(self, canvas: np.ndarray) -> None:
        """The error's past, the present at the right."""
        errors = np.array(self._errors)
        if not np.isfinite(errors).any():
            return
        self._worst = max(self._worst, 1.1 * float(np.nanmax(errors)))
        wide = 3 * self._panel[0] + 2 * GAP - 16
        left, bottom = GAP + 8, HEAD + self._panel[1] + GAP + CHART - 8
        places = np.arange(len(errors)) / (self._errors.maxlen or 1) * wide
        heights = errors / self._worst * (CHART - 34)
        known = np.isfinite(errors)
        line = np.stack([left + places, bottom - heights], 1)[known]
        cv2.polylines(canvas, [np.rint(line * 2**_SHIFT).astype(np.int32)], False, WARN, 2, cv2.LINE_AA, _SHIFT)
        if known[-1]:
            cv2.circle(
                canvas, np.rint(line[-1] * 2**_SHIFT).astype(int).tolist(), 3 << _SHIFT, WARN, -1, cv2.LINE_AA, _SHIFT
            )
            _write(canvas, f"{100 * errors[-1]:.1f} %", (GAP + wide - 48, bottom - CHART + 12), WARN, 14)


_INFERNO = np.rint(mpl.colormaps["inferno"](np.arange(256))[:, :3] * 255).astype(np.uint8)


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
