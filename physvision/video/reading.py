"""Reading of any video that FFmpeg decodes, or of a folder of images, frame by frame in constant memory; its timing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image

from physvision.core import Clip, FileError, InputError, StrPath, TruncatedVideoError, VideoError
from physvision.core.checks import check_count
from physvision.core.clip import frame_interval
from physvision.video import decoding
from physvision.video.conversion import Conversion, check_constant_size
from physvision.video.decoding import Color

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}


def list_images(folder: StrPath) -> list[Path]:
    """List the images of a folder in the order of the numbers in their names: frame9 before frame10.

    Raises:
        FileError: The folder holds no image.
    """
    images = [path for path in Path(folder).iterdir() if path.suffix.lower() in _SUFFIXES and path.is_file()]
    if not images:
        raise FileError(f"{folder}: no such file, and no image in this folder; expected files such as frame-000.png")
    return sorted(images, key=lambda path: [part.zfill(20) for part in re.split(r"(\d+)", path.stem)])


def read_image(path: Path, color: Color) -> UInt8[np.ndarray, "height width channels"]:
    """Read the levels of an image, rotated by its orientation tag; "auto" yields gray where the file stores gray."""
    try:
        with Image.open(path) as header:  # the pixels are not decoded
            decoding.check_pixels(path, *header.size)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise VideoError(f"{path}: not an image, or a damaged one ({error})") from error
    flags = {"rgb": cv2.IMREAD_COLOR, "gray": cv2.IMREAD_GRAYSCALE, "auto": cv2.IMREAD_ANYCOLOR}
    try:
        image = cv2.imdecode(np.fromfile(path, np.uint8), flags[color])
    except cv2.error as error:
        raise VideoError(f"{path}: not an image, or a damaged one ({error.err})") from error
    if image is None:
        raise VideoError(f"{path}: not an image, or a damaged one")
    return image[..., None] if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def stream_images(folder: StrPath, color: Color, fps: float) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the images of a folder with their times at `fps` images per second."""
    for number, path in enumerate(list_images(folder)):
        yield number / fps, read_image(path, color)


@dataclass(frozen=True)
class VideoInfo:
    """Properties of a video file, as the file and its first frame state them.

    Attributes:
        width: Width of the frames, the rotation flag applied, px.
        height: Height of the frames, the rotation flag applied, px.
        channels: Number of channels, 1 for gray, 3 for color.
        fps: Average frame rate; NaN where it is not stated, as for a folder of images.
        frames: Number of frames; 0 where it is not stated.
        duration: Duration, s; NaN where it is not stated.
        codec: FFmpeg's name of the codec; the suffix of images.
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


def read_info(path: StrPath) -> VideoInfo:
    """Read the properties of a video file or a folder of images, decoding only the first frame."""
    if Path(path).is_dir():
        images = list_images(path)
        height, width, channels = read_image(images[0], "auto").shape
        codec, pixel_format = images[0].suffix[1:].lower(), "gray" if channels == 1 else "rgb24"
        return VideoInfo(width, height, channels, math.nan, len(images), math.nan, codec, pixel_format)
    with decoding.open_container(path) as (container, video):
        _, frame = next(decoding.decode_frames(path, container, video), (None, None))
        if frame is None:
            raise VideoError(f"{path}: the video holds no frame")
        height, width, channels = decoding.to_levels(path, frame, "auto", decoding.display_matrix(frame)).shape
        duration = decoding.stated_duration(container, video)
        rate = video.average_rate or video.guessed_rate
        fps, duration = float(rate) if rate else math.nan, math.nan if duration is None else duration
        codec, pixel_format = video.codec_context.name, frame.format.name
        return VideoInfo(width, height, channels, fps, video.frames, duration, codec, pixel_format)


def read_timestamps(path: StrPath) -> Float[np.ndarray, " frames"]:
    """Read the timestamps of all frames, s, in increasing order, without decoding.

    An interval of twice the usual length is a frame that the camera or its recorder dropped.
    """
    with decoding.open_container(path) as (container, video):
        timestamps = []
        try:
            for packet in container.demux(video):
                timestamp = packet.dts if container.format.name == "avi" or packet.pts is None else packet.pts
                if timestamp is not None and packet.size and not packet.is_discard:
                    timestamps.append(float(timestamp * packet.time_base))
        except decoding.DECODING_ERRORS as error:
            raise VideoError(f"{path}: damaged or cut off after {len(timestamps)} frames ({error})") from error
    return np.sort(np.array(timestamps, float))


def stream(
    path: StrPath,
    color: Color = "auto",
    conversion: Conversion | None = None,
    on_truncation: Callable[[str], object] | None = None,
) -> Iterator[tuple[float, UInt8[np.ndarray, "height width channels"]]]:
    """Yield the times (s since the first frame) and frames of a video, one at a time.

    Times are the file's timestamps, so a variable frame rate is preserved; frames are rotated and reflected as the
    file states.

    Args:
        path: Path of a file, or of a folder of images at the conversion's `capture_fps`.
        color: Number of channels: "rgb" (3), "gray" (1) or "auto", gray where the file stores gray.
        conversion: Frame rate, crop and size to convert to; unchanged if None.
        on_truncation: Function that is called with the message, instead of an error, where a file is damaged or cut off
            after some frames; the readable frames are yielded before.

    Raises:
        FileError: There is no such file.
        VideoError: The file is no video, holds no frame, or is damaged.
        TruncatedVideoError: The file is damaged or ends before the duration it states; raised after the last frame.
        InputError: The conversion does not fit the video.
    """
    if color not in ("auto", "rgb", "gray"):
        raise InputError(f'color: expected "auto", "rgb" or "gray", got {color!r}')
    conversion = conversion or Conversion()
    stated_fps = math.nan
    if Path(path).is_dir():
        stated_fps = conversion.capture_fps or conversion.fps
        if stated_fps is None:
            raise InputError(f"{path}: a folder of images has no times; give a Conversion with capture_fps, its rate")
        frames = stream_images(path, color, stated_fps)
    else:
        frames = _stream_file(path, color)
        if on_truncation is not None:
            frames = _until_truncation(frames, on_truncation)
        if conversion.capture_fps is not None:
            stated_fps = _typical_fps(path)
    if conversion == Conversion():
        return frames
    timed_frames = conversion.convert_times(check_constant_size(path, frames), stated_fps)
    return ((time, conversion(frame)) for time, frame in timed_frames)


def chunks(path: StrPath, size: int, color: Color = "auto", conversion: Conversion | None = None) -> Iterator[Clip]:
    """Yield a video in clips of `size` frames, the last one shorter; arguments and errors as in `stream`."""
    check_count("size", size)
    frames = stream(path, color, conversion)
    while chunk := list(islice(frames, size)):
        yield _make_clip(chunk, str(path))


def read(
    path: StrPath,
    start: int = 0,
    stop: int | None = None,
    color: Color = "auto",
    conversion: Conversion | None = None,
) -> Clip:
    """Read frames `start` to `stop` (excluded; the end if None) of a video into memory.

    Frames are counted after the conversion. For long videos, use `chunks`. Arguments and errors as in `stream`.
    """
    check_count("start", start, minimum=0)
    if stop is not None and check_count("stop", stop) <= start:
        raise InputError(f"stop: expected more than start = {start}, got {stop}")
    frames = list(islice(stream(path, color, conversion), start, stop))
    if not frames:
        raise InputError(f"start: expected less than the number of frames of {path}, got {start}")
    return _make_clip(frames, str(path))


def _make_clip(frames: list[tuple[float, np.ndarray]], source: str) -> Clip:
    shapes = {frame.shape for _, frame in frames}
    if len(shapes) > 1:
        raise VideoError(f"{source}: frames change size within the video: {', '.join(map(str, sorted(shapes)))}")
    images = torch.from_numpy(np.stack([frame for _, frame in frames]))
    return Clip(images, torch.tensor([time for time, _ in frames], dtype=torch.float64), source)


def _stream_file(path: StrPath, color: Color) -> Iterator[tuple[float, np.ndarray]]:
    """Yield times and frames of a file as they are stored."""
    with decoding.open_container(path) as (container, video):
        rate = video.average_rate or video.guessed_rate
        interval = float(1 / rate) if rate else 0.0
        first, time, count, matrix = None, 0.0, 0, None
        for timestamp, frame in decoding.decode_frames(path, container, video):
            if timestamp is None and not interval:
                raise VideoError(f"{path}: frame {count} has no timestamp and the file states no frame rate")
            matrix = decoding.display_matrix(frame) if count == 0 else matrix
            now = timestamp if timestamp is not None else (first or 0.0) + count * interval
            first = now if first is None else first
            if count and now - first <= time:
                raise VideoError(
                    f"{path}: frame {count} is stamped {now - first:g} s, not after {time:g} s before it; write it "
                    "anew, or give its frames as a folder of images"
                )
            time = now - first
            yield time, decoding.to_levels(path, frame, color, matrix)
            count += 1
        if first is None:
            raise VideoError(f"{path}: the video holds no frame")
        _check_complete(path, decoding.stated_duration(container, video), count, time + interval)


def _until_truncation(
    frames: Iterator[tuple[float, np.ndarray]], on_truncation: Callable[[str], object]
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield times and frames up to where the file is damaged or cut off, and call the function there."""
    try:
        yield from frames
    except TruncatedVideoError as error:
        on_truncation(str(error))


def _check_complete(path: StrPath, stated: float | None, count: int, duration: float) -> None:
    # Files round the duration of their last frame, so a difference of a tenth of a second is no damage.
    if stated is not None and duration < stated - max(0.1, 2 * duration / count):
        raise TruncatedVideoError(f"{path}: cut off after {duration:.2f} s ({count} frames) of {stated:.2f} s")


def _typical_fps(path: StrPath) -> float:
    """Frame rate by the usual interval; the average rate would include dropped frames."""
    intervals = torch.from_numpy(np.diff(read_timestamps(path)))
    return 1.0 / frame_interval(intervals) if len(intervals) else 1.0
