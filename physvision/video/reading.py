"""Read any video that FFmpeg knows, frame by frame, in constant memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import av
import numpy as np
import torch
from jaxtyping import UInt8

from physvision.core import Clip, FileError, InputError, VideoError
from physvision.core.checks import check_count
from physvision.video.conversion import Conversion, of_one_size
from physvision.video.threads import fix_threads

Color = Literal["auto", "rgb", "gray"]


@dataclass(frozen=True)
class Description:
    """What a video file says of itself, before any frame is decoded.

    Attributes:
        width, height: of the frames as they are read, the rotation flag applied; pixels.
        channels: 1 for video in shades of gray, 3 for colour.
        fps: the average frame rate; NaN where the file does not say.
        frames: number of frames, 0 where the file does not say.
        duration: seconds, NaN where the file does not say.
        codec: FFmpeg's name of the coding.
        pixel_format: FFmpeg's name of the pixel format.
    """

    width: int
    height: int
    channels: int
    fps: float
    frames: int
    duration: float
    codec: str
    pixel_format: str


def describe(path: str | os.PathLike[str]) -> Description:
    """What the video at `path` is; only its first frame is decoded."""
    with _opened(path) as (container, stream):
        frame = next(_decoded(path, container, stream), None)
        if frame is None:
            raise VideoError(f"{path}: the video holds no frame")
        height, width, channels = _array(frame, "auto").shape
        duration = _declared_seconds(container, stream)
        rate = stream.average_rate or stream.guessed_rate
        return Description(
            width=width,
            height=height,
            channels=channels,
            fps=float(rate) if rate else float("nan"),
            frames=stream.frames,
            duration=float("nan") if duration is None else duration,
            codec=stream.codec_context.name,
            pixel_format=frame.format.name,
        )


def stream(
    path: str | os.PathLike[str], color: Color = "auto", conversion: Conversion | None = None
) -> Iterator[tuple[float, UInt8[np.ndarray, "height width channels"]]]:
    """The moments (seconds since the first frame) and frames of the video at `path`, one at a time.

    Moments are those of the file's timestamps, so a variable frame rate comes out as it was recorded, and frames
    are turned as the file's rotation flag says.

    Args:
        path: the file.
        color: "rgb" (3 channels), "gray" (1) or "auto": gray where the file stores gray.
        conversion: rate, part and size that the video is brought to; as it is in the file if None.

    Raises:
        FileError: there is no such file.
        VideoError: it is no video, holds no frame, is damaged, or ends before the length it states.
        InputError: the conversion does not fit the video.
    """
    if color not in ("auto", "rgb", "gray"):
        raise InputError(f'color: expected "auto", "rgb" or "gray", got {color!r}')
    frames = _as_stored(path, color)
    if conversion is None:
        return frames
    stated_fps = describe(path).fps if conversion.filmed_fps is not None else math.nan
    timed = conversion.in_time(of_one_size(path, frames), stated_fps)
    return ((time, conversion(frame)) for time, frame in timed)


def _as_stored(path: str | os.PathLike[str], color: Color) -> Iterator[tuple[float, np.ndarray]]:
    """The frames of the file and its times."""
    with _opened(path) as (container, video):
        rate = video.average_rate or video.guessed_rate
        spacing = float(1 / rate) if rate else 0.0
        first, moment, count = None, 0.0, 0
        for frame in _decoded(path, container, video):
            if frame.time is None and not spacing:
                raise VideoError(f"{path}: frame {count} has no timestamp and the file states no frame rate")
            now = frame.time if frame.time is not None else (first or 0.0) + count * spacing
            first = now if first is None else first
            if count and now - first <= moment:
                raise VideoError(
                    f"{path}: frame {count} is stamped {now - first:g} s, not after {moment:g} s before it"
                )
            moment = now - first
            yield moment, _array(frame, color)
            count += 1
        if first is None:
            raise VideoError(f"{path}: the video holds no frame")
        _check_complete(path, container, video, count, moment + spacing)


def chunks(
    path: str | os.PathLike[str], size: int, color: Color = "auto", conversion: Conversion | None = None
) -> Iterator[Clip]:
    """The video at `path` in clips of `size` frames, the last one shorter; arguments and errors as in `stream`."""
    check_count("size", size)
    frames = stream(path, color, conversion)
    while chunk := list(islice(frames, size)):
        yield _clip(chunk, str(path))


def read(
    path: str | os.PathLike[str],
    start: int = 0,
    stop: int | None = None,
    color: Color = "auto",
    conversion: Conversion | None = None,
) -> Clip:
    """Frames `start` to `stop` (excluded; the end if None) of the video at `path`, all in memory.

    Frames are counted as the conversion gives them. A long video takes `chunks`. Arguments and errors as in `stream`.
    """
    check_count("start", start, least=0)
    if stop is not None and check_count("stop", stop) <= start:
        raise InputError(f"stop: expected more than start = {start}, got {stop}")
    chosen = list(islice(stream(path, color, conversion), start, stop))
    if not chosen:
        raise InputError(f"start: expected less than the number of frames of {path}, got {start}")
    return _clip(chosen, str(path))


def _clip(chosen: list[tuple[float, np.ndarray]], source: str) -> Clip:
    shapes = {frame.shape for _, frame in chosen}
    if len(shapes) > 1:
        raise VideoError(f"{source}: frames change size within the video: {', '.join(map(str, sorted(shapes)))}")
    frames = torch.from_numpy(np.stack([frame for _, frame in chosen]))
    return Clip(frames, torch.tensor([moment for moment, _ in chosen], dtype=torch.float64), source)


@contextmanager
def _opened(path: str | os.PathLike[str]):
    if not Path(path).is_file():
        raise FileError(f"{path}: no such file")
    try:
        container = av.open(os.fspath(path))
    except av.FFmpegError as error:
        raise VideoError(
            f"{path}: not a video, or one without frames or cut off at its end ({error.strerror})"
        ) from error
    with container:
        if not container.streams.video:
            kinds = ", ".join(sorted({found.type for found in container.streams})) or "nothing"
            raise VideoError(f"{path}: no picture in this file, it holds {kinds}")
        video = container.streams.video[0]
        if video.codec_context is None:
            raise VideoError(f"{path}: no decoder for this coding in the installed FFmpeg")
        fix_threads(video.codec_context, video.width, video.height)
        yield container, video


def _decoded(path: str | os.PathLike[str], container, video) -> Iterator[av.VideoFrame]:
    count = 0
    try:
        for frame in container.decode(video):
            yield frame
            count += 1
    except av.FFmpegError as error:
        raise VideoError(f"{path}: damaged or cut off after {count} frames ({error.strerror})") from error


def _array(frame: av.VideoFrame, color: Color) -> np.ndarray:
    gray = color == "gray" or (color == "auto" and frame.format.name.startswith("gray"))
    pixels = frame.to_ndarray(format="gray" if gray else "rgb24", threads=1)
    if gray:
        pixels = pixels[..., None]
    turns = round(frame.rotation / 90)
    return np.ascontiguousarray(np.rot90(pixels, turns)) if turns % 4 else pixels


def _declared_seconds(container, video) -> float | None:
    """The length that the file states for its picture; None where it does not."""
    if container.format.name == "avi" and video.frames and video.average_rate:
        return float(video.frames / video.average_rate)  # its duration follows from the size of the file
    if video.duration is not None and video.time_base is not None:
        return float(video.duration * video.time_base)
    if "DURATION" in video.metadata:  # Matroska's, hours:minutes:seconds
        hours, minutes, seconds = video.metadata["DURATION"].split(":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    if container.duration is not None and len(container.streams) == 1:
        return container.duration / av.time_base
    return None


def _check_complete(path: str | os.PathLike[str], container, video, count: int, seconds: float) -> None:
    declared = _declared_seconds(container, video)
    # Files round the length of their last frame; a tenth of a second is no damage.
    if declared is not None and seconds < declared - max(0.1, 2 * seconds / count):
        raise VideoError(f"{path}: cut off after {seconds:.2f} s ({count} frames) of {declared:.2f} s")
