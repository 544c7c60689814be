"""Read any video that FFmpeg knows, or a folder of pictures, frame by frame, in constant memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8

from physvision.core import Clip, InputError, VideoError
from physvision.core.checks import check_count
from physvision.core.clip import frame_interval
from physvision.video.conversion import Conversion, of_one_size
from physvision.video.decoding import FAULTS, Color, decoded, display_matrix, levels, opened, stated_seconds
from physvision.video.image_folder import list_images, read_image, stream_images


@dataclass(frozen=True)
class VideoInfo:
    """What a video file says of itself, before any frame but the first is decoded.

    Attributes:
        width, height: of the frames as they are read, the rotation flag applied; pixels.
        channels: 1 for video in shades of gray, 3 for colour.
        fps: the average frame rate; NaN where the file does not say, as a folder of pictures does not.
        frames: number of frames, 0 where the file does not say.
        duration: seconds, NaN where the file does not say.
        codec: FFmpeg's name of the coding; the suffix of pictures.
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


def read_info(path: str | os.PathLike[str]) -> VideoInfo:
    """What the video at `path` is, a file or a folder of pictures; only its first frame is decoded."""
    if Path(path).is_dir():
        pictures = list_images(path)
        height, width, channels = read_image(pictures[0], "auto").shape
        codec, pixel_format = pictures[0].suffix[1:].lower(), "gray" if channels == 1 else "rgb24"
        return VideoInfo(width, height, channels, math.nan, len(pictures), math.nan, codec, pixel_format)
    with opened(path) as (container, stream):
        _, frame = next(decoded(path, container, stream), (None, None))
        if frame is None:
            raise VideoError(f"{path}: the video holds no frame")
        height, width, channels = levels(path, frame, "auto", display_matrix(frame)).shape
        duration = stated_seconds(container, stream)
        rate = stream.average_rate or stream.guessed_rate
        return VideoInfo(
            width=width,
            height=height,
            channels=channels,
            fps=float(rate) if rate else math.nan,
            frames=stream.frames,
            duration=math.nan if duration is None else duration,
            codec=stream.codec_context.name,
            pixel_format=frame.format.name,
        )


def read_timestamps(path: str | os.PathLike[str]) -> Float[np.ndarray, " frames"]:
    """The time stamps of all frames of the file at `path`, s, in the order of time, without decoding any.

    A step of twice the usual length is a frame that the camera or its recorder dropped, see `timing`.
    """
    with opened(path) as (container, stream):
        found = []
        try:
            for packet in container.demux(stream):
                stamp = packet.dts if container.format.name == "avi" or packet.pts is None else packet.pts
                if stamp is not None and packet.size and not packet.is_discard:
                    found.append(float(stamp * packet.time_base))
        except FAULTS as error:
            raise VideoError(f"{path}: damaged or cut off after {len(found)} frames ({error})") from error
    return np.sort(np.array(found, float))


def stream(
    path: str | os.PathLike[str], color: Color = "auto", conversion: Conversion | None = None
) -> Iterator[tuple[float, UInt8[np.ndarray, "height width channels"]]]:
    """The times (seconds since the first frame) and frames of the video at `path`, one at a time.

    Times are those of the file's time stamps, so a variable frame rate comes out as it was recorded, and frames
    are turned and mirrored as the file says.

    Args:
        path: a file, or a folder of pictures, which follow each other by the conversion's `capture_fps`.
        color: "rgb" (3 channels), "gray" (1) or "auto": gray where the file stores gray.
        conversion: rate, part and size that the video is brought to; as it is in the file if None.

    Raises:
        FileError: there is no such file.
        VideoError: it is no video, holds no frame, is damaged, or ends before the length it states.
        InputError: the conversion does not fit the video.
    """
    if color not in ("auto", "rgb", "gray"):
        raise InputError(f'color: expected "auto", "rgb" or "gray", got {color!r}')
    conversion = conversion or Conversion()
    stated_fps = math.nan
    if Path(path).is_dir():
        stated_fps = conversion.capture_fps or conversion.fps
        if stated_fps is None:
            raise InputError(f"{path}: a folder of pictures has no times; give a Conversion with capture_fps, its rate")
        frames = stream_images(path, color, stated_fps)
    else:
        frames = _as_stored(path, color)
        if conversion.capture_fps is not None:
            stated_fps = _usual_fps(path)
    if conversion == Conversion():
        return frames
    timed = conversion.in_time(of_one_size(path, frames), stated_fps)
    return ((time, conversion(frame)) for time, frame in timed)


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
    check_count("start", start, minimum=0)
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
    return Clip(frames, torch.tensor([time for time, _ in chosen], dtype=torch.float64), source)


def _as_stored(path: str | os.PathLike[str], color: Color) -> Iterator[tuple[float, np.ndarray]]:
    """The frames of the file and its times."""
    with opened(path) as (container, video):
        rate = video.average_rate or video.guessed_rate
        spacing = float(1 / rate) if rate else 0.0
        first, time, count, displayed = None, 0.0, 0, None
        for stamp, frame in decoded(path, container, video):
            if stamp is None and not spacing:
                raise VideoError(f"{path}: frame {count} has no timestamp and the file states no frame rate")
            displayed = display_matrix(frame) if count == 0 else displayed
            now = stamp if stamp is not None else (first or 0.0) + count * spacing
            first = now if first is None else first
            if count and now - first <= time:
                raise VideoError(
                    f"{path}: frame {count} is stamped {now - first:g} s, not after {time:g} s before it; write it "
                    "anew, or give its frames as a folder of pictures"
                )
            time = now - first
            yield time, levels(path, frame, color, displayed)
            count += 1
        if first is None:
            raise VideoError(f"{path}: the video holds no frame")
        _check_complete(path, stated_seconds(container, video), count, time + spacing)


def _check_complete(path: str | os.PathLike[str], stated: float | None, count: int, seconds: float) -> None:
    # Files round the length of their last frame; a tenth of a second is no damage.
    if stated is not None and seconds < stated - max(0.1, 2 * seconds / count):
        raise VideoError(f"{path}: cut off after {seconds:.2f} s ({count} frames) of {stated:.2f} s")


def _usual_fps(path: str | os.PathLike[str]) -> float:
    """Frames a second by the steps that are like most; the average counts frames that were dropped."""
    steps = torch.from_numpy(np.diff(read_timestamps(path)))
    return 1.0 / frame_interval(steps) if len(steps) else 1.0
