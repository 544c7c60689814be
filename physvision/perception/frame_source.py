"""The frames of a clip or a file, as often as they are wanted, cut to what is looked at and not larger than needed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from physvision import video
from physvision.core import Clip, InputError

_LONG_SIDE = 1024  # pixels: larger pictures are halved, or more

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class FrameSource:
    """Frames in red, green and blue with their moments, read anew each time that they are gone through.

    Attributes:
        source: a clip in memory or the path of a video.
        crop: left, top, right, bottom of what is looked at, pixels; everything if None.
        start: seconds; frames before are left out.
        stop: seconds; frames from there on are left out.
    """

    source: Clip | str | os.PathLike[str]
    crop: Box | None = None
    start: float | None = None
    stop: float | None = None

    def __post_init__(self) -> None:
        if self.start is not None and self.stop is not None and self.stop <= self.start:
            raise InputError(f"stop: expected more than start = {self.start:g} s, got {self.stop:g} s")
        if self.crop is not None and (self.crop[0] >= self.crop[2] or self.crop[1] >= self.crop[3]):
            raise InputError(f"crop: expected left, top, right, bottom, got {self.crop}")

    @property
    def name(self) -> str:
        """Where the frames come from, for people."""
        return (self.source.source or "clip") if isinstance(self.source, Clip) else Path(self.source).name

    def __iter__(self) -> Iterator[tuple[float, np.ndarray]]:
        """Moments, s, and frames, levels of 0 to 255."""
        for moment, frame in self._whole():
            if self.start is not None and moment < self.start:
                continue
            if self.stop is not None and moment >= self.stop:
                break
            left, top, right, bottom = self._cut(frame.shape)
            piece = frame[top:bottom, left:right]
            if piece.shape[-1] == 1:
                piece = np.repeat(piece, 3, -1)
            shrink = shrinking(piece.shape)
            if shrink > 1:
                size = piece.shape[1] // shrink, piece.shape[0] // shrink
                trimmed = piece[: size[1] * shrink, : size[0] * shrink]
                piece = cv2.resize(trimmed, size, interpolation=cv2.INTER_AREA)
            yield moment, np.ascontiguousarray(piece)

    def _whole(self) -> Iterator[tuple[float, np.ndarray]]:
        if isinstance(self.source, Clip):
            return zip(self.source.times.tolist(), self.source.frames.numpy(), strict=True)
        return video.stream(self.source, color="rgb")

    def _cut(self, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
        if self.crop is None:
            return 0, 0, shape[1], shape[0]
        left, top = (max(0, math.floor(value)) for value in self.crop[:2])
        right, bottom = min(shape[1], math.ceil(self.crop[2])), min(shape[0], math.ceil(self.crop[3]))
        if right - left < 8 or bottom - top < 8:
            raise InputError(f"crop: nothing of {self.crop} is left in a picture of {shape[1]} by {shape[0]} pixels")
        return left, top, right, bottom

    def placing(self, shape: tuple[int, ...]) -> tuple[int, np.ndarray]:
        """For whole frames of this shape: by how much they are shrunk, and the crop's corner, pixels."""
        left, top, right, bottom = self._cut(shape)
        return shrinking((bottom - top, right - left)), np.array([left, top], float)

    def first_shape(self) -> tuple[int, ...]:
        """The shape of a whole frame: rows, columns, channels."""
        return next(iter(self._whole()))[1].shape


def shrinking(shape: tuple[int, ...]) -> int:
    """By how much a picture of this shape is made smaller before it is looked at."""
    return max(1, math.ceil(max(shape[:2]) / _LONG_SIDE))
