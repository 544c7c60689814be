"""Frames of any source, one at a time, as a scene expects them, with the fit of rate, size and aspect ratio."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

import cv2
import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from physvision.core import Clip, InputError, Scene, ShapeError, StrPath
from physvision.video.conversion import Conversion, check_constant_size
from physvision.video.reading import VideoInfo, read_info, stream
from physvision.video.writing import to_uint8


@dataclass(frozen=True)
class SceneFitSettings:
    """Tolerances of the fit of a video to a scene.

    Attributes:
        rate_tolerance: Relative difference of frame rates that are taken as equal; velocities are off by as much.
        aspect_tolerance: Relative difference of aspect ratios up to which frames are stretched.
    """

    rate_tolerance: float = 0.05
    aspect_tolerance: float = 0.03


DEFAULT_SETTINGS = SceneFitSettings()
# Longer side, px, to which pictures for reports are reduced: dozens of them are held at once, of 4K gigabytes.
MAX_SHOWN_SIDE = 1080


def fit_conversion(
    source: str, info: VideoInfo, scene: Scene, conversion: Conversion, settings: SceneFitSettings = DEFAULT_SETTINGS
) -> tuple[Conversion, list[str]]:
    """Complete a conversion so that it converts a video to what a scene expects; also return notes.

    Args:
        source: Name of the video in messages.
        info: Properties of the video.
        scene: Scene that the video is converted to.
        conversion: Conversion that the caller permits.
        settings: Tolerances of the fit.

    Raises:
        InputError: The video does not fit; the message says what to do.
    """
    capture_fps = conversion.capture_fps
    fps, notes = _fit_rate(source, capture_fps or info.fps, scene, conversion.fps, settings.rate_tolerance)
    if capture_fps is None and not math.isfinite(info.fps):
        capture_fps = scene.fps
    crop = _fit_crop(source, info, scene, conversion, settings.aspect_tolerance)
    return Conversion(fps, crop, scene.size, capture_fps), notes


def _fit_rate(
    source: str, capture_fps: float, scene: Scene, fps: float | None, tolerance: float
) -> tuple[float | None, list[str]]:
    """Return the frame rate to resample to, None for none, and notes."""
    is_stated = math.isfinite(capture_fps)
    if fps is None:
        if not is_stated:
            raise InputError(
                f"{source}: does not state its frame rate; give `fps={scene.fps:g}` if it has {scene.fps:g} frames "
                "per second"
            )
        if abs(capture_fps / scene.fps - 1) <= tolerance:
            return None, []
        if capture_fps < scene.fps:
            raise InputError(_too_slow(source, capture_fps, scene))
        raise InputError(
            f"{source}: has {capture_fps:.6g} frames per second, the checkpoint expects {scene.fps:g}; "
            f"add `fps={scene.fps:g}` to resample to the nearest frames"
        )
    if abs(fps / scene.fps - 1) > tolerance:
        raise InputError(
            f"fps: the checkpoint expects {scene.fps:g} frames per second, got {fps:g}; "
            f"give `fps={scene.fps:g}`, or train a checkpoint at this rate"
        )
    if is_stated and capture_fps < scene.fps * (1 - tolerance):
        raise InputError(_too_slow(source, capture_fps, scene))
    ratio = capture_fps / scene.fps if is_stated else 1.0
    if abs(ratio - round(ratio)) > tolerance * round(ratio):
        note = (
            f"{capture_fps:.4g} frames per second are no multiple of {scene.fps:g}: resampled frames are up to "
            f"{500 / capture_fps:.0f} ms early or late, which affects velocities"
        )
        return scene.fps, [note]
    return scene.fps, []


def _too_slow(source: str, fps: float, scene: Scene) -> str:
    return (
        f"{source}: has {fps:.6g} frames per second, the checkpoint needs {scene.fps:g}; missing frames cannot be "
        f"interpolated: record at {scene.fps:g} or a multiple of it, or train a checkpoint at this rate"
    )


def _fit_crop(
    source: str, info: VideoInfo, scene: Scene, conversion: Conversion, tolerance: float
) -> tuple[int, int, int, int]:
    """Return the part of the image to use: x, y, width and height."""
    given = (info.width, info.height)
    crop, size = conversion.crop_of(*given), conversion.size_of(*given)
    width, height = scene.size
    expected = f"{width}" if width == height else f"({width}, {height})"
    if conversion.size is not None and size != scene.size:
        raise InputError(
            f"size: the checkpoint expects frames of {width} x {height} pixels, got {size[0]} x {size[1]}; "
            f"give `size={expected}`"
        )
    if conversion.size is None and conversion.crop is None and given != scene.size:
        square = " takes the largest centered square" if width == height else " takes all of it"
        raise InputError(
            f"{source}: frames have {given[0]} x {given[1]} pixels, the checkpoint expects {width} x {height}; "
            f"`size={expected}`{square}, `crop=(x, y, width, height)` the part that shows {scene.title}"
        )
    if not isinstance(conversion.size, int) and abs(crop[2] / crop[3] * height / width - 1) > tolerance:
        raise InputError(
            f"crop: {crop[2]} x {crop[3]} pixels have another aspect ratio than the {width} x {height} that the "
            "checkpoint expects; give `crop=(x, y, width, height)` of a part with its aspect ratio"
        )
    return crop


Frames = Clip | np.ndarray | Tensor | Iterable[np.ndarray | Tensor]


@dataclass(frozen=True)
class TimedFrame:
    """One frame of a video and its time.

    Attributes:
        time: Time since the first frame, s.
        frame: Frame as the scene expects it.
        original: Same part of the video at its own resolution, or at one whose longer side is `MAX_SHOWN_SIDE`.
    """

    time: float
    frame: UInt8[np.ndarray, "height width channels"]
    original: UInt8[np.ndarray, "rows columns colors"]


@dataclass(frozen=True)
class SceneStream:
    """Video that fits a scene, read frame by frame on each iteration.

    Attributes:
        source: Path or name of the video in messages and reports.
        scene: Scene that the frames fit.
        info: Properties of the file; None for frames in memory.
        crop: Part of the image in use as x, y, width and height, px of the video.
        length: Approximate number of frames; 0 if unknown.
        notes: Notes on the conversion.
        read: Function that starts to read the frames.
    """

    source: str
    scene: Scene
    info: VideoInfo | None
    crop: tuple[int, int, int, int]
    length: int
    notes: tuple[str, ...]
    read: Callable[[], Iterator[TimedFrame]]

    def __iter__(self) -> Iterator[TimedFrame]:
        return self.read()


def open_scene_stream(video: StrPath | Frames, scene: Scene, conversion: Conversion | None = None) -> SceneStream:
    """Open the frames of a video as a scene expects them.

    Args:
        video: File, of which only the first frame is decoded before the iteration; clip; frames (times, height, width)
            or with channels first or last, uint8 or floats from 0 to 1; or iterator of single frames. Frames in memory
            must have the scene's size; without times of their own, they have the scene's frame rate.
        scene: Scene that the frames must fit.
        conversion: Conversion that is permitted for a file.

    Raises:
        FileError: There is no such file.
        VideoError: The file cannot be decoded.
        InputError: The video does not fit; the message says what to do.
    """
    if isinstance(video, str | os.PathLike):
        return _open_file(os.fspath(video), scene, conversion or Conversion())
    if not isinstance(video, Clip | Iterable):
        kind = type(video).__name__
        raise InputError(f"video: expected a file, a clip, frames or an iterator of single frames, got {kind}")
    if conversion is not None:
        raise InputError("conversion: only files are converted; convert frames in memory before")
    source = video.source if isinstance(video, Clip) else ""
    frames = _timed_frames(video, scene)
    length = len(video) if isinstance(video, Clip | np.ndarray | Tensor) else 0
    return SceneStream(source or "the frames given", scene, None, (0, 0, *scene.size), length, (), lambda: frames)


def _open_file(path: str, scene: Scene, conversion: Conversion) -> SceneStream:
    info = read_info(path)
    fitted, notes = fit_conversion(path, info, scene, conversion)
    length = info.frames
    if fitted.fps is not None:
        length = round(length * fitted.fps / (fitted.capture_fps or info.fps))
    if 0 < length < scene.frames_in:
        needed = f"the checkpoint needs a window of {scene.frames_in}"
        raise InputError(f"{path}: has {length} frames, {needed}; give a longer video")

    def read() -> Iterator[TimedFrame]:
        timing = Conversion(fitted.fps, capture_fps=fitted.capture_fps)
        for time, frame in check_constant_size(path, stream(path, scene.color, timing)):
            yield TimedFrame(time, fitted(frame), _reduced(fitted.crop_frame(frame)))

    return SceneStream(path, scene, info, fitted.crop_of(info.width, info.height), length, tuple(notes), read)


def _reduced(picture: np.ndarray) -> np.ndarray:
    """Reduce a large picture to what reports need."""
    rows, columns, channels = picture.shape
    ratio = MAX_SHOWN_SIDE / max(rows, columns)
    if ratio >= 1:
        return picture
    size = max(1, round(ratio * columns)), max(1, round(ratio * rows))
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA).reshape(size[1], size[0], channels)


def _timed_frames(video: Frames, scene: Scene) -> Iterator[TimedFrame]:
    if isinstance(video, Clip):
        if len(video) > 1 and abs(video.fps / scene.fps - 1) > DEFAULT_SETTINGS.rate_tolerance:
            raise InputError(
                f"video: the clip has {video.fps:.6g} frames per second, the checkpoint expects {scene.fps:g}; "
                "give the file with a Conversion, or a clip of that rate"
            )
        times: Iterator[float] = iter(video.times.tolist())
        frames: Iterable[np.ndarray | Tensor] = video.frames
    else:
        times, frames = (number / scene.fps for number in count()), video
        if isinstance(video, np.ndarray | Tensor) and video.ndim not in (3, 4):
            raise ShapeError(f"video: expected (times, height, width) or with channels, got {tuple(video.shape)}")
    images = (_fit_frame(frame, scene) for frame in frames)
    return (TimedFrame(time, image, image) for time, image in zip(times, images, strict=False))


def _fit_frame(frame: np.ndarray | Tensor, scene: Scene) -> np.ndarray:
    """Convert a frame to uint8 (height, width, channels) with the scene's channels; raise for another size."""
    pixels = frame.detach().cpu().numpy() if isinstance(frame, Tensor) else np.asarray(frame)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    width, height = scene.size
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[1:] == (height, width):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim != 3 or pixels.shape[:2] != (height, width) or pixels.shape[2] not in (1, 3):
        raise ShapeError(
            f"video: expected frames ({height}, {width}) or with 1 or 3 channels, got {pixels.shape}; resize "
            "them, or give a file and a Conversion"
        )
    pixels = to_uint8(pixels, "video")
    if pixels.shape[2] == scene.channels:
        return np.ascontiguousarray(pixels)
    if scene.channels == 3:
        return np.repeat(pixels, 3, 2)
    return Clip(torch.from_numpy(pixels.copy())[None], torch.zeros(1)).gray().frames[0].numpy()
