"""Repeatable iteration over the frames of a clip or file, cropped, downscaled and enhanced for analysis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from physvision import video
from physvision.core import Clip, InputError, StrPath

Box = tuple[float, float, float, float]  # x and y of the upper left corner, width, height


def enhance(image: np.ndarray, smoothing: float, gain: float) -> np.ndarray:
    """Blur an image by a Gaussian and brighten it, without rounding in between.

    Args:
        image: Levels of 0 to 255.
        smoothing: Standard deviation of the Gaussian, px.
        gain: Factor of the brightness.
    """
    return cv2.convertScaleAbs(cv2.GaussianBlur(image.astype(np.float32), (0, 0), smoothing), alpha=gain)


@dataclass(frozen=True)
class FrameSource:
    """RGB frames with their times, decoded again in each iteration.

    Attributes:
        source: Clip in memory or path of a video.
        crop: Part of the image to analyze as x, y, width, height, px; the whole image if None.
        start: Time before which frames are skipped, s.
        stop: Time from which frames are skipped, s.
        max_side: Largest side length, px; larger frames are downscaled by an integer factor.
        smoothing: Standard deviation of the Gaussian that the downscaled frames are blurred by, px; none if zero.
        gain: Factor by which blurred frames are brightened.
        truncations: Messages about damage after which frames cannot be read, filled by an iteration.
    """

    source: Clip | StrPath
    crop: Box | None
    start: float | None
    stop: float | None
    max_side: int
    smoothing: float = 0.0
    gain: float = 1.0
    truncations: set[str] = field(default_factory=set, init=False, compare=False)

    def __post_init__(self) -> None:
        if self.start is not None and self.stop is not None and self.stop <= self.start:
            raise InputError(f"stop: expected more than start = {self.start:g} s, got {self.stop:g} s")
        if self.crop is not None and min(self.crop[2:]) <= 0:
            raise InputError(f"crop: expected x, y, width, height with a positive size, got {self.crop}")

    @property
    def name(self) -> str:
        """Name of the clip in messages."""
        return (self.source.source or "clip") if isinstance(self.source, Clip) else Path(self.source).name

    def __iter__(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the time, s, and the image, levels of 0 to 255, of each frame."""
        for time, frame in self._decode():
            if self.start is not None and time < self.start:
                continue
            if self.stop is not None and time >= self.stop:
                break
            left, top, right, bottom = self._bounds(frame.shape)
            image = frame[top:bottom, left:right]
            if image.shape[-1] == 1:
                image = np.repeat(image, 3, -1)
            factor = self._shrink_factor(image.shape)
            if factor > 1:
                size = image.shape[1] // factor, image.shape[0] // factor
                trimmed = image[: size[1] * factor, : size[0] * factor]
                image = cv2.resize(trimmed, size, interpolation=cv2.INTER_AREA)
            if self.smoothing:
                image = enhance(image, self.smoothing, self.gain)
            yield time, np.ascontiguousarray(image)

    def _decode(self) -> Iterator[tuple[float, np.ndarray]]:
        if isinstance(self.source, Clip):
            return zip(self.source.times.tolist(), self.source.frames.numpy(), strict=True)
        return video.stream(self.source, color="rgb", on_truncation=self.truncations.add)

    def _bounds(self, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom of the analyzed part of frames of this shape, px."""
        if self.crop is None:
            return 0, 0, shape[1], shape[0]
        x, y, width, height = self.crop
        left, top = max(0, math.floor(x)), max(0, math.floor(y))
        right, bottom = min(shape[1], math.ceil(x + width)), min(shape[0], math.ceil(y + height))
        if right - left < 8 or bottom - top < 8:
            raise InputError(
                f"crop: {self.crop} leaves less than 8 pixels of an image of {shape[1]} x {shape[0]}; expected "
                "x, y, width, height within the image"
            )
        return left, top, right, bottom

    def _shrink_factor(self, shape: tuple[int, ...]) -> int:
        return max(1, math.ceil(max(shape[:2]) / self.max_side))

    def image_transform(self) -> tuple[int, np.ndarray]:
        """Return the shrink factor and the upper left corner of the analyzed part, px of the whole image."""
        _, frame = next(iter(self._decode()))
        left, top, right, bottom = self._bounds(frame.shape)
        return self._shrink_factor((bottom - top, right - left)), np.array([left, top], float)
