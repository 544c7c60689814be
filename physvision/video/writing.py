"""Writing of frames to a video file, completely or not at all."""

from __future__ import annotations

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

from physvision.core import Clip, FileError, InputError, ShapeError, StrPath, VideoError
from physvision.core.checks import check_positive
from physvision.core.files import partial
from physvision.video.decoding import set_thread_count

FrameRate = int | float | Fraction


@dataclass(frozen=True)
class Encoding:
    """Encoding of a video.

    Attributes:
        codec: FFmpeg's name of the encoder.
        pixel_format: FFmpeg's name of the pixel format.
        options: Options of the encoder.
    """

    codec: str
    pixel_format: str
    options: Mapping[str, str] = field(default_factory=dict)


_FFV1 = Encoding("ffv1", "bgr0")
_APNG = Encoding("apng", "rgb24", {"pred": "mixed"})
# Encodings by suffix: widely supported ones, and ones that preserve every pixel.
LOSSY = {
    **dict.fromkeys((".mp4", ".m4v", ".mov", ".mkv"), Encoding("libx264", "yuv420p", {"crf": "18"})),
    ".avi": Encoding("mjpeg", "yuvj420p", {"qmin": "2", "qmax": "2"}),
    ".webm": Encoding("libvpx-vp9", "yuv420p", {"crf": "24", "b": "0", "row-mt": "1"}),
    ".gif": Encoding("gif", "rgb8"),
    **dict.fromkeys((".apng", ".png"), _APNG),
}
LOSSLESS = {
    **dict.fromkeys((".mp4", ".m4v", ".mov"), Encoding("libx264rgb", "rgb24", {"qp": "0"})),
    **dict.fromkeys((".mkv", ".avi"), _FFV1),
    ".webm": Encoding("libvpx-vp9", "gbrp", {"lossless": "1", "row-mt": "1"}),
    **dict.fromkeys((".apng", ".png"), _APNG),
}
_FORMATS = {".png": "apng", ".m4v": "mp4"}
_TICKS_PER_SECOND = 90_000  # clock of frames with times of their own
# Without these flags, conversions round differently on different processors.
_INTERPOLATION = Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.BITEXACT


class VideoWriter:
    """Video file that frames are added to, as a context manager.

    The file appears under its name when the writer closes without an error; until then, and after an error, an
    existing file of that name is unchanged.
    """

    def __init__(
        self, path: StrPath, fps: FrameRate | None = 30, *, lossless: bool = False, encoding: Encoding | None = None
    ) -> None:
        """Open a file for writing.

        Args:
            path: Path of the file; its suffix determines the container.
            fps: Frame rate; None if each frame comes with its own time.
            lossless: If true, every pixel is preserved.
            encoding: Encoding, instead of the one that follows from the suffix and `lossless`.
        """
        self.path = Path(path)
        self.fps = None if fps is None else _to_fraction(fps)
        table = LOSSLESS if lossless else LOSSY
        suffix = self.path.suffix.lower()
        if encoding is None and suffix not in table:
            kind = "lossless video" if lossless else "video"
            raise InputError(f"path: expected one of {', '.join(table)} for {kind}, or an encoding, got {suffix!r}")
        self.encoding = encoding or table[suffix]
        if not self.path.parent.is_dir():
            raise FileError(f"{self.path}: not written, there is no folder {self.path.parent}")
        self.frames = 0
        self._partial = partial(self.path)
        self._container: OutputContainer | None = None
        self._format = _FORMATS.get(suffix)
        self._shape: tuple[int, ...] = ()
        self._last_tick = -1

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(self, kind, error, traceback) -> None:
        self.abort() if error is not None else self.close()

    def add(self, frame: np.ndarray | Tensor, time: int | float | None = None) -> None:
        """Add one frame to the file.

        Args:
            frame: Frame (height, width), or with one or three channels last or first; uint8 levels of 0 to 255, or
                floats that are clipped to 0 to 1.
            time: Time since the first frame, s, if the writer has no frame rate.
        """
        pixels = _to_pixels(frame)
        container = self._container or self._open(pixels)
        if pixels.shape != self._shape:
            raise ShapeError(f"frame {self.frames}: expected {self._shape} as the frames before, got {pixels.shape}")
        if (time is None) == (self.fps is None):
            raise InputError("time: expected one for every frame if the writer has no frame rate, and none if it has")
        tick = self.frames if time is None else round(time * _TICKS_PER_SECOND)
        if tick <= self._last_tick:
            raise InputError(f"time: expected more than that of the frame before, got {time} for frame {self.frames}")
        self._last_tick = tick
        image = av.VideoFrame.from_ndarray(pixels, format="gray" if pixels.ndim == 2 else "rgb24")
        image = image.reformat(
            format=self._stream.pix_fmt, dst_colorspace=self._colorspace, interpolation=_INTERPOLATION, threads=1
        )
        image.pts, image.time_base = tick, self._time_base
        try:
            container.mux(self._stream.encode(image))
        except (av.FFmpegError, OSError) as error:
            raise self._failure(error) from error
        self.frames += 1

    def close(self) -> None:
        """Finish the file and give it its name."""
        if self._container is None:
            self.abort()
            raise VideoError(f"{self.path}: no frame was given, so no video was written")
        try:
            self._container.mux(self._stream.encode(None))
            self._container.close()
            self._container: OutputContainer | None = None
            self._partial.replace(self.path)
        except (av.FFmpegError, OSError) as error:
            raise self._failure(error) from error

    def abort(self) -> None:
        """Discard what was written."""
        container, self._container = self._container, None
        if container is not None:
            # The error that led here is reported already.
            with suppress(av.FFmpegError, OSError):
                container.close()
        self._partial.unlink(missing_ok=True)

    def _open(self, pixels: np.ndarray) -> OutputContainer:
        encoding = self.encoding
        if pixels.ndim == 2 and encoding in (_FFV1, _APNG):
            encoding = replace(encoding, pixel_format="gray")
        if encoding.pixel_format in ("yuv420p", "yuvj420p") and any(side % 2 for side in pixels.shape[:2]):
            # Subsampled color needs even sides; full color preserves the requested size.
            encoding = replace(encoding, pixel_format=encoding.pixel_format.replace("420", "444"))
        try:
            container = self._container = av.open(str(self._partial), "w", format=self._format)
            stream = container.add_stream(encoding.codec, rate=self.fps, options=dict(encoding.options))
            stream = self._stream = cast(VideoStream, stream)
            stream.height, stream.width = pixels.shape[:2]
            stream.pix_fmt = encoding.pixel_format
            self._time_base = Fraction(1, _TICKS_PER_SECOND) if self.fps is None else 1 / self.fps
            stream.codec_context.time_base = self._time_base
            set_thread_count(cast(VideoCodecContext, stream.codec_context), stream.width, stream.height)
            self._tag_colors(encoding)
        except (av.FFmpegError, OSError, ValueError) as error:
            raise self._failure(error) from error
        self._shape = pixels.shape
        return container

    def _tag_colors(self, encoding: Encoding) -> None:
        """State the color matrix in the file, so that every reader inverts the same one."""
        self._colorspace = None
        if encoding.pixel_format.startswith("yuv"):
            is_jpeg = encoding.pixel_format.startswith("yuvj")
            self._colorspace = Colorspace.ITU601 if is_jpeg else Colorspace.ITU709
            context = cast(VideoCodecContext, self._stream.codec_context)
            context.color_range = ColorRange.JPEG if is_jpeg else ColorRange.MPEG
            context.colorspace = 6 if is_jpeg else 1  # FFmpeg's numbers of Rec. 601 and Rec. 709
            context.color_primaries, context.color_trc = ColorPrimaries.BT709, ColorTrc.BT709

    def _failure(self, error: Exception) -> VideoError:
        self.abort()
        reason = getattr(error, "strerror", None) or error
        return VideoError(f"{self.path}: not written, failed after {self.frames} frames ({reason})")


def write(
    path: StrPath,
    frames: Clip | np.ndarray | Tensor | Iterable[np.ndarray | Tensor],
    fps: FrameRate | None = None,
    *,
    lossless: bool = False,
    encoding: Encoding | None = None,
) -> Path:
    """Write frames to a video file, and return its path.

    Args:
        path: Path of the file; its suffix determines the container (.mp4, .mkv, .webm, .mov, .avi, .gif, .png …).
        frames: Clip; array (times, height, width), also with one or three channels last or first; or iterator of
            single frames; uint8 levels of 0 to 255 or floats of 0 to 1.
        fps: Frame rate; None uses a clip's own times, and 30 for anything else.
        lossless: If true, every pixel is preserved.
        encoding: Encoding, instead of the one that follows from the suffix and `lossless`.

    Raises:
        VideoError: The encoder failed; nothing was written.
    """
    if isinstance(frames, Clip) and fps is None:
        times: Iterator[float | None] = iter((frames.times - frames.times[:1]).tolist())
        rate = None
    else:
        times, rate = iter(lambda: None, 0), 30 if fps is None else fps
    images = frames.frames if isinstance(frames, Clip) else frames
    if isinstance(images, np.ndarray | Tensor) and images.ndim not in (3, 4):
        raise ShapeError(f"frames: expected (times, height, width) or with channels, got {tuple(images.shape)}")
    with VideoWriter(path, rate, lossless=lossless, encoding=encoding) as writer:
        for image in images:
            writer.add(image, next(times))
    return writer.path


def to_uint8(pixels: np.ndarray, name: str) -> np.ndarray:
    """Convert floats from 0 to 1 to levels; uint8 levels are unchanged.

    Args:
        pixels: Pixels of one frame.
        name: Name of the argument in messages.
    """
    if np.issubdtype(pixels.dtype, np.floating):
        if not np.isfinite(pixels).all():
            raise InputError(f"{name}: expected finite values, got NaN or infinity in a frame")
        pixels = np.rint(pixels.clip(0, 1) * 255).astype(np.uint8)
    if pixels.dtype != np.uint8:
        raise InputError(f"{name}: expected uint8 levels or floats of 0 to 1, got {pixels.dtype}")
    return pixels


def _to_fraction(fps: FrameRate) -> Fraction:
    check_positive("fps", float(fps))
    return Fraction(fps).limit_denominator(100_000)


def _to_pixels(frame: np.ndarray | Tensor) -> np.ndarray:
    pixels = frame.detach().cpu().numpy() if isinstance(frame, Tensor) else np.asarray(frame)
    if pixels.ndim == 3 and pixels.shape[-1] not in (1, 3) and pixels.shape[0] in (1, 3):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    if not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[-1] == 3)) or 0 in pixels.shape:
        raise ShapeError(f"frame: expected (height, width), or with 1 or 3 channels last or first, got {pixels.shape}")
    return np.ascontiguousarray(to_uint8(pixels, "frame"))
