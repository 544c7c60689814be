"""Bring a video to another frame rate, part of the picture, and size, frame by frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import cv2
import numpy as np
from jaxtyping import UInt8

from physvision.core import InputError, VideoError
from physvision.core.checks import check_count, check_positive

Picture = TypeVar("Picture")


def resample(frames: Iterable[tuple[float, Picture]], fps: float | int) -> Iterator[tuple[float, Picture]]:
    """The frames nearest to the times 0, 1/fps, 2/fps …; some repeated or left out where the rate asks for it.

    Args:
        frames: seconds since the first one, growing, with the frames.
        fps: frames a second that are wanted.

    Yields:
        The times 0, 1/fps, 2/fps …, s, with the frames.
    """
    check_positive("fps", float(fps))
    count, before, spacing = 0, None, 1.0 / fps
    for time, picture in frames:
        if before is not None:
            middle, spacing = 0.5 * (before[0] + time), time - before[0]
            # Rounded timestamps must not tip a frame that is wanted once into twice or never.
            while count / fps < middle - 1e-9:
                yield count / fps, before[1]
                count += 1
        before = (time, picture)
    while before is not None and count / fps < before[0] + 0.5 * min(spacing, 1.0 / fps) - 1e-9:
        yield count / fps, before[1]
        count += 1


@dataclass(frozen=True)
class Conversion:
    """What is done to the frames of a video as they are read.

    Attributes:
        fps: frames a second that the video is brought to, by the frames nearest in time. All frames, at their own
            times, if None.
        crop: x and y of the upper left corner, width and height of the part that is kept; pixels. Everything if None;
            but the largest square in the middle if `size` is one number.
        size: side of the square, or width and height, that the part is brought to; pixels. As cropped if None.
        capture_fps: frames a second at which the camera filmed, where the file states another rate, as those of slow
            motion do. Times are then those of what was filmed.
    """

    fps: float | None = None
    crop: tuple[int, int, int, int] | None = None
    size: int | tuple[int, int] | None = None
    capture_fps: float | None = None

    def __post_init__(self) -> None:
        for name, rate in (("fps", self.fps), ("capture_fps", self.capture_fps)):
            if rate is not None:
                check_positive(name, rate)
        if self.crop is not None:
            for name, value, least in zip(("x", "y", "width", "height"), self.crop, (0, 0, 1, 1), strict=True):
                check_count(f"crop {name}", value, least)
        for side in (self.size,) if isinstance(self.size, int) else self.size or ():
            check_count("size", side)

    def crop_of(self, width: int, height: int) -> tuple[int, int, int, int]:
        """The part that is kept of a frame of this size; x, y, width, height."""
        if self.crop is None:
            if not isinstance(self.size, int):
                return 0, 0, width, height
            side = min(width, height)
            return (width - side) // 2, (height - side) // 2, side, side
        x, y, wide, high = self.crop
        if x + wide > width or y + high > height:
            raise InputError(f"crop: {wide} x {high} pixels at ({x}, {y}) leave the picture of {width} x {height}")
        return self.crop

    def size_of(self, width: int, height: int) -> tuple[int, int]:
        """Width and height that a frame of this size is brought to."""
        if self.size is None:
            return self.crop_of(width, height)[2:]
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    def cropped(self, frame: UInt8[np.ndarray, "height width channels"]) -> UInt8[np.ndarray, "rows columns channels"]:
        """The part of the frame that is kept, in its own resolution."""
        x, y, wide, high = self.crop_of(frame.shape[1], frame.shape[0])
        return frame[y : y + high, x : x + wide]

    def __call__(self, frame: UInt8[np.ndarray, "height width channels"]) -> UInt8[np.ndarray, "rows columns channels"]:
        """The frame cropped and resized: averaged where it shrinks, interpolated where it grows."""
        height, width, channels = frame.shape
        part, size = self.cropped(frame), self.size_of(width, height)
        if size == (part.shape[1], part.shape[0]):
            return np.ascontiguousarray(part)
        shrinks = size[0] <= part.shape[1] and size[1] <= part.shape[0]
        resized = cv2.resize(part, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
        return resized.reshape(size[1], size[0], channels)

    def in_time(self, frames: Iterable[tuple[float, Picture]], stated_fps: float) -> Iterator[tuple[float, Picture]]:
        """The frames at the times and the rate that are wanted.

        Args:
            frames: seconds since the first one, with the frames, as the file has them.
            stated_fps: frames a second by these times.
        """
        if self.capture_fps is not None:
            slowness = self.capture_fps / stated_fps
            frames = ((time / slowness, frame) for time, frame in frames)
        return iter(frames) if self.fps is None else resample(frames, self.fps)


def of_one_size(
    source: object, frames: Iterable[tuple[float, np.ndarray]]
) -> Iterator[tuple[float, UInt8[np.ndarray, "height width channels"]]]:
    """The frames; an error where one has another size than the first."""
    shape = None
    for time, frame in frames:
        shape = shape or frame.shape
        if frame.shape != shape:
            raise VideoError(
                f"{source}: frames change size at {time:.2f} s, from {shape} to {frame.shape}; cut the video there"
            )
        yield time, frame
