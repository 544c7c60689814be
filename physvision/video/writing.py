"""Write frames to a video file, complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import cast

import av
import numpy as np
from av.container import OutputContainer
from av.video.codeccontext import VideoCodecContext
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc, Interpolation
from av.video.stream import VideoStream
from torch import Tensor

from physvision.core import Clip, FileError, InputError, ShapeError, VideoError
from physvision.core.checks import check_positive
from physvision.video.decoding import fix_threads

Rate = int | float | Fraction


@dataclass(frozen=True)
class Encoding:
    """How frames are coded: FFmpeg's names of encoder and pixel format, and the encoder's options."""

    codec: str
    pixel_format: str
    options: Mapping[str, str] = field(default_factory=dict)


_H264 = Encoding("libx264", "yuv420p", {"crf": "18"})
_H264_LOSSLESS = Encoding("libx264rgb", "rgb24", {"qp": "0"})
_FFV1 = Encoding("ffv1", "bgr0")
_APNG = Encoding("apng", "rgb24", {"pred": "mixed"})
# By suffix: what plays everywhere, and what keeps every pixel.
LOSSY = {
    ".mp4": _H264,
    ".m4v": _H264,
    ".mov": _H264,
    ".mkv": _H264,
    ".avi": Encoding("mjpeg", "yuvj420p", {"qmin": "2", "qmax": "2"}),
    ".webm": Encoding("libvpx-vp9", "yuv420p", {"crf": "24", "b": "0", "row-mt": "1"}),
    ".gif": Encoding("gif", "rgb8"),
    ".apng": _APNG,
    ".png": _APNG,
}
LOSSLESS = {
    ".mp4": _H264_LOSSLESS,
    ".m4v": _H264_LOSSLESS,
    ".mov": _H264_LOSSLESS,
    ".mkv": _FFV1,
    ".avi": _FFV1,
    ".webm": Encoding("libvpx-vp9", "gbrp", {"lossless": "1", "row-mt": "1"}),
    ".apng": _APNG,
    ".png": _APNG,
}
_FORMATS = {".png": "apng", ".m4v": "mp4"}
# Ticks a second for frames with times of their own.
_TICKS = 90_000


class VideoWriter:
    """A video file that frames are added to; a context manager.

    The file appears under its name when the writer closes without a failure; until then, and after one, there is
    nothing under that name that was not there before.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fps: Rate | None = 30,
        *,
        lossless: bool = False,
        coding: Encoding | None = None,
    ) -> None:
        """Open `path` for writing.

        Args:
            path: the file; its suffix names the container.
            fps: frames a second; None if every frame comes with its own time.
            lossless: keep every pixel as it is.
            coding: overrides what follows from the suffix and `lossless`.
        """
        self.path = Path(path)
        self.rate = None if fps is None else _fraction(fps)
        table = LOSSLESS if lossless else LOSSY
        suffix = self.path.suffix.lower()
        if coding is None and suffix not in table:
            kind = "lossless video" if lossless else "video"
            raise InputError(f"path: no {kind} is written as {suffix!r}; choose one of {', '.join(table)} or a coding")
        self.coding = coding or table[suffix]
        if not self.path.parent.is_dir():
            raise FileError(f"{self.path}: not written, there is no folder {self.path.parent}")
        self.frames = 0
        self._partial = self.path.with_name(f".{self.path.stem}.{os.getpid()}.partial{suffix}")
        self._container: OutputContainer | None = None
        self._format = _FORMATS.get(suffix)
        self._shape: tuple[int, ...] = ()
        self._last_tick = -1

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(self, kind, error, traceback) -> None:
        self._abandon() if error is not None else self.close()

    def add(self, frame: np.ndarray | Tensor, time: int | float | None = None) -> None:
        """Add one frame.

        Args:
            frame: (height, width), or with one or three channels last or first; levels of 0 to 255 if its dtype is
                uint8, 0 to 1 if it is a float (beyond them it is clipped).
            time: seconds since the first frame, where the writer has no frame rate.
        """
        pixels = _levels(frame)
        container = self._container or self._open(pixels)
        if pixels.shape != self._shape:
            raise ShapeError(f"frame {self.frames}: expected {self._shape} as the frames before, got {pixels.shape}")
        if (time is None) == (self.rate is None):
            raise InputError("time: expected one for every frame if the writer has no frame rate, and none if it has")
        tick = self.frames if time is None else round(time * _TICKS)
        if tick <= self._last_tick:
            raise InputError(f"time: expected more than that of the frame before, got {time} for frame {self.frames}")
        self._last_tick = tick
        picture = av.VideoFrame.from_ndarray(pixels, format="gray" if pixels.ndim == 2 else "rgb24")
        picture = picture.reformat(
            format=self._stream.pix_fmt, dst_colorspace=self._colorspace, interpolation=_interpolation(), threads=1
        )
        picture.pts, picture.time_base = tick, self._time_base
        try:
            container.mux(self._stream.encode(picture))
        except (av.FFmpegError, OSError) as error:
            raise self._failure(error) from error
        self.frames += 1

    def close(self) -> None:
        """Finish the file and put it under its name."""
        if self._container is None:
            self._abandon()
            raise VideoError(f"{self.path}: no frame was given, so no video was written")
        try:
            self._container.mux(self._stream.encode(None))
            self._container.close()
            self._container: OutputContainer | None = None
            self._partial.replace(self.path)
        except (av.FFmpegError, OSError) as error:
            raise self._failure(error) from error

    def _open(self, pixels: np.ndarray) -> OutputContainer:
        coding, gray = self.coding, pixels.ndim == 2
        if gray and coding in (_FFV1, _APNG):
            coding = replace(coding, pixel_format="gray")
        if coding.pixel_format in ("yuv420p", "yuvj420p") and any(side % 2 for side in pixels.shape[:2]):
            # Halved colour needs even sides; full colour keeps the size that was asked for.
            coding = replace(coding, pixel_format=coding.pixel_format.replace("420", "444"))
        try:
            container = self._container = av.open(str(self._partial), "w", format=self._format)
            added = container.add_stream(coding.codec, rate=self.rate, options=dict(coding.options))
            stream = self._stream = cast(VideoStream, added)
            stream.height, stream.width = pixels.shape[:2]
            stream.pix_fmt = coding.pixel_format
            self._time_base = Fraction(1, _TICKS) if self.rate is None else 1 / self.rate
            stream.codec_context.time_base = self._time_base
            fix_threads(cast(VideoCodecContext, stream.codec_context), stream.width, stream.height)
            self._tag_colors(coding)
        except (av.FFmpegError, OSError, ValueError) as error:
            raise self._failure(error) from error
        self._shape = pixels.shape
        return container

    def _tag_colors(self, coding: Encoding) -> None:
        """State the colour matrix that is used, so that every reader undoes the same one."""
        self._colorspace = None
        if coding.pixel_format.startswith("yuv"):
            jpeg = coding.pixel_format.startswith("yuvj")
            self._colorspace = Colorspace.ITU601 if jpeg else Colorspace.ITU709
            context = cast(VideoCodecContext, self._stream.codec_context)
            context.color_range = ColorRange.JPEG if jpeg else ColorRange.MPEG
            context.colorspace = 6 if jpeg else 1  # FFmpeg's numbers of Rec. 601 and Rec. 709
            context.color_primaries, context.color_trc = ColorPrimaries.BT709, ColorTrc.BT709

    def _abandon(self) -> None:
        container, self._container = self._container, None
        if container is not None:
            # What made the writer give up is reported already.
            with suppress(av.FFmpegError, OSError):
                container.close()
        self._partial.unlink(missing_ok=True)

    def _failure(self, error: Exception) -> VideoError:
        written = self.frames
        self._abandon()
        reason = getattr(error, "strerror", None) or error
        return VideoError(f"{self.path}: not written, failed after {written} frames ({reason})")


def write(
    path: str | os.PathLike[str],
    frames: Clip | np.ndarray | Tensor | Iterable[np.ndarray | Tensor],
    fps: Rate | None = None,
    *,
    lossless: bool = False,
    coding: Encoding | None = None,
) -> Path:
    """Write frames to the video file `path`, and return it.

    Args:
        path: the file; its suffix names the container (.mp4, .mkv, .webm, .mov, .avi, .gif, .png …).
        frames: a Clip, (times, height, width), the same with one or three channels at the end, or before height and
            width as cameras and networks have them, or an iterator of single frames; uint8 levels of 0 to 255 or
            floats of 0 to 1.
        fps: frames a second; None takes a clip's own times, and 30 for anything else.
        lossless: keep every pixel as it is.
        coding: overrides what follows from the suffix and `lossless`.

    Raises:
        VideoError: nothing was written, with the reason.
    """
    if isinstance(frames, Clip) and fps is None:
        times: Iterator[float | None] = iter((frames.times - frames.times[:1]).tolist())
        rate = None
    else:
        times, rate = iter(lambda: None, 0), 30 if fps is None else fps
    pictures = frames.frames if isinstance(frames, Clip) else frames
    if isinstance(pictures, np.ndarray | Tensor) and pictures.ndim not in (3, 4):
        raise ShapeError(f"frames: expected (times, height, width) or with channels, got {tuple(pictures.shape)}")
    with VideoWriter(path, rate, lossless=lossless, coding=coding) as writer:
        for picture in pictures:
            writer.add(picture, next(times))
    return writer.path


def _fraction(fps: Rate) -> Fraction:
    check_positive("fps", float(fps))
    return Fraction(fps).limit_denominator(100_000)


def _interpolation():
    # Without these flags conversions round differently on different processors.
    return Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.BITEXACT


def _levels(frame: np.ndarray | Tensor) -> np.ndarray:
    pixels = frame.detach().cpu().numpy() if isinstance(frame, Tensor) else np.asarray(frame)
    if pixels.ndim == 3 and pixels.shape[-1] not in (1, 3) and pixels.shape[0] in (1, 3):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    if not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[-1] == 3)) or 0 in pixels.shape:
        raise ShapeError(f"frame: expected (height, width), or with 1 or 3 channels last or first, got {pixels.shape}")
    if np.issubdtype(pixels.dtype, np.floating):
        if not np.isfinite(pixels).all():
            raise InputError("frame: expected finite values, got NaN or infinity")
        pixels = np.rint(np.clip(pixels, 0.0, 1.0) * 255.0).astype(np.uint8)
    if pixels.dtype != np.uint8:
        raise InputError(f"frame: expected uint8 levels or floats of 0 to 1, got {pixels.dtype}")
    return np.ascontiguousarray(pixels)
