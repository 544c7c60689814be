"""Conversion of a video to another frame rate, crop and size, frame by frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import cv2
import numpy as np
from jaxtyping import UInt8

from physvision.core import InputError, VideoError
from physvision.core.checks import check_count, check_positive, parse_numbers

Frame = TypeVar("Frame")
_MAX_COPIES = 100_000  # of one frame: an hour at 30 frames a second


def resample(frames: Iterable[tuple[float, Frame]], fps: float | int) -> Iterator[tuple[float, Frame]]:
    """Yield the frames nearest to the times 0, 1/fps, 2/fps …, repeating or dropping frames as needed.

    Args:
        frames: Pairs of time since the first frame, s, increasing, and frame.
        fps: Frame rate of the result.

    Yields:
        The times 0, 1/fps, 2/fps …, s, with the frames.
    """
    check_positive("fps", float(fps))
    count, previous, interval = 0, None, 1.0 / fps
    for time, frame in frames:
        if previous is not None:
            middle, interval = 0.5 * (previous[0] + time), time - previous[0]
            if interval * fps > _MAX_COPIES:
                text = (
                    f"fps: {interval * fps:.3g} copies of the frame at {previous[0]:g} s, for the next is at {time:g} s"
                )
                raise InputError(f"{text}; expected at most {_MAX_COPIES:,}: give a lower rate, or cut the video there")
            # The tolerance keeps rounded timestamps from repeating or dropping a frame.
            while count / fps < middle - 1e-9:
                yield count / fps, previous[1]
                count += 1
        previous = (time, frame)
    while previous is not None and count / fps < previous[0] + 0.5 * min(interval, 1.0 / fps) - 1e-9:
        yield count / fps, previous[1]
        count += 1


@dataclass(frozen=True)
class Conversion:
    """Frame rate, crop and size that the frames of a video are converted to as they are read.

    Attributes:
        fps: Frame rate to resample to, by the frames nearest in time; all frames at their own times if None.
        crop: Part to keep as x and y of the upper left corner, width and height, px. If None, the whole image; but the
            largest centered square if `size` is one number.
        size: Side of the square, or width and height, to resize to, px; unchanged if None.
        capture_fps: Frame rate of the camera, where the file states another one, as slow motion does. Times are then
            those of the capture.
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
            for name, value, low in zip(("x", "y", "width", "height"), self.crop, (0, 0, 1, 1), strict=True):
                check_count(f"crop {name}", value, low)
        for side in (self.size,) if isinstance(self.size, int) else self.size or ():
            check_count("size", side)

    @classmethod
    def parse(cls, fps: float | None = None, crop: str | None = None, size: str | None = None) -> Conversion:
        """Make a conversion from the options of a command.

        Args:
            fps: Frame rate to resample to.
            crop: Part to keep as "x,y,width,height", px.
            size: Side of the square, or "width,height", px.
        """
        box = None if crop is None else parse_numbers("crop", crop, int, "x,y,width,height in whole pixels", 4)
        expected = "a side, or width,height in whole pixels"
        sides = None if size is None else parse_numbers("size", size, int, expected, 1, 2)
        return cls(fps, box, sides[0] if sides and len(sides) == 1 else sides)  # pyright: ignore[reportArgumentType]

    def crop_of(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Crop x, y, width, height of a frame of this size, px."""
        if self.crop is None:
            if not isinstance(self.size, int):
                return 0, 0, width, height
            side = min(width, height)
            return (width - side) // 2, (height - side) // 2, side, side
        x, y, crop_width, crop_height = self.crop
        if x + crop_width > width or y + crop_height > height:
            raise InputError(f"crop: {crop_width} x {crop_height} at ({x}, {y}) exceed the image of {width} x {height}")
        return self.crop

    def size_of(self, width: int, height: int) -> tuple[int, int]:
        """Width and height of the result for a frame of this size, px."""
        if self.size is None:
            return self.crop_of(width, height)[2:]
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    def crop_frame(
        self, frame: UInt8[np.ndarray, "height width channels"]
    ) -> UInt8[np.ndarray, "rows columns channels"]:
        """Crop a frame without resizing it."""
        x, y, width, height = self.crop_of(frame.shape[1], frame.shape[0])
        return frame[y : y + height, x : x + width]

    def __call__(self, frame: UInt8[np.ndarray, "height width channels"]) -> UInt8[np.ndarray, "rows columns channels"]:
        """Crop and resize a frame: averaged where it shrinks, interpolated where it grows."""
        cropped, size = self.crop_frame(frame), self.size_of(frame.shape[1], frame.shape[0])
        if size == cropped.shape[1::-1]:
            return np.ascontiguousarray(cropped)
        shrinks = size[0] <= cropped.shape[1] and size[1] <= cropped.shape[0]
        resized = cv2.resize(cropped, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
        return resized.reshape(size[1], size[0], frame.shape[2])

    def convert_times(self, frames: Iterable[tuple[float, Frame]], stated_fps: float) -> Iterator[tuple[float, Frame]]:
        """Convert the times to those of the capture, and resample.

        Args:
            frames: Pairs of time since the first frame, s, as the file states it, and frame.
            stated_fps: Frame rate by these times.
        """
        if self.capture_fps is not None:
            slowness = self.capture_fps / stated_fps
            frames = ((time / slowness, frame) for time, frame in frames)
        return iter(frames) if self.fps is None else resample(frames, self.fps)


def check_constant_size(
    source: object, frames: Iterable[tuple[float, np.ndarray]]
) -> Iterator[tuple[float, UInt8[np.ndarray, "height width channels"]]]:
    """Yield the frames; raise where one has another size than the first."""
    shape = None
    for time, frame in frames:
        shape = shape or frame.shape
        if frame.shape != shape:
            raise VideoError(f"{source}: frames change size at {time:.2f} s, {shape} to {frame.shape}; cut it there")
        yield time, frame
