"""Frames of any source, one at a time, as a scene expects them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from physvision.core import Clip, InputError, Scene, ShapeError
from physvision.video.conversion import Conversion, check_constant_size
from physvision.video.reading import VideoInfo, read_info, stream
from physvision.video.scene_fit import DEFAULT_SETTINGS, fit_conversion
from physvision.video.writing import to_uint8

Frames = Clip | np.ndarray | Tensor | Iterable[np.ndarray | Tensor]


@dataclass(frozen=True)
class TimedFrame:
    """One frame of a video and its time.

    Attributes:
        time: Time since the first frame, s.
        frame: Frame as the scene expects it.
        original: Same part of the video at its own resolution.
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


def open_scene_stream(
    video: str | os.PathLike[str] | Frames, scene: Scene, conversion: Conversion | None = None
) -> SceneStream:
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
        raise InputError(
            f"{path}: has {length} frames, the checkpoint needs a window of {scene.frames_in}; give a longer video"
        )

    def read() -> Iterator[TimedFrame]:
        timing = Conversion(fitted.fps, capture_fps=fitted.capture_fps)
        for time, frame in check_constant_size(path, stream(path, scene.color, timing)):
            yield TimedFrame(time, fitted(frame), fitted.crop_frame(frame))

    return SceneStream(path, scene, info, fitted.crop_of(info.width, info.height), length, tuple(notes), read)


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
