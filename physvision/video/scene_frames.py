"""Frames from wherever they come, one at a time, as a scene wants them."""

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
from physvision.video.conversion import Conversion, of_one_size
from physvision.video.reading import VideoInfo, read_info, stream
from physvision.video.scene_fit import SAME_RATE, fitting_conversion

Frames = Clip | np.ndarray | Tensor | Iterable[np.ndarray | Tensor]


@dataclass(frozen=True)
class TimedFrame:
    """One frame of a video and its time.

    Attributes:
        time: seconds since the first frame.
        frame: as the scene wants it.
        original: the same part of the video in its own resolution.
    """

    time: float
    frame: UInt8[np.ndarray, "height width channels"]
    original: UInt8[np.ndarray, "rows columns colors"]


@dataclass(frozen=True)
class SceneStream:
    """A video that fits a scene, read frame by frame each time it is iterated over.

    Attributes:
        source: the file, or what else names the frames in errors and reports.
        scene: what it fits.
        description: what the file says of itself; None for frames that are no file.
        crop: x, y, width and height of the part that is used, pixels of the video.
        length: how many frames there will be, about; 0 where nobody knows.
        notes: what a person should know.
        read: begins to read the frames.
    """

    source: str
    scene: Scene
    description: VideoInfo | None
    crop: tuple[int, int, int, int]
    length: int
    notes: tuple[str, ...]
    read: Callable[[], Iterator[TimedFrame]]

    def __iter__(self) -> Iterator[TimedFrame]:
        return self.read()


def open_scene_stream(
    video: str | os.PathLike[str] | Frames, scene: Scene, conversion: Conversion | None = None
) -> SceneStream:
    """The frames of `video` as `scene` wants them.

    Args:
        video: a file, of which only the first frame is decoded before it is iterated over; a clip; frames (times,
            height, width) or with channels first or last, uint8 or floats of 0 to 1; or an iterator of single frames.
            Frames that are no file must have the scene's size; without times of their own they follow each other by
            the scene's rate.
        scene: what is expected of them.
        conversion: what may be done to a file.

    Raises:
        FileError, VideoError: the file cannot be read.
        InputError: the video does not fit, with what to do.
    """
    if isinstance(video, str | os.PathLike):
        return _file_stream(os.fspath(video), scene, conversion or Conversion())
    if not isinstance(video, Clip | Iterable):
        kind = type(video).__name__
        raise InputError(f"video: expected a file, a clip, frames or an iterator of single frames, got {kind}")
    if conversion is not None:
        raise InputError("conversion: only files are converted; bring other frames to what the scene wants before")
    source = video.source if isinstance(video, Clip) else ""
    frames = _timed_frames(video, scene)
    length = len(video) if isinstance(video, Clip | np.ndarray | Tensor) else 0
    return SceneStream(source or "the frames given", scene, None, (0, 0, *scene.size), length, (), lambda: frames)


def _file_stream(path: str, scene: Scene, conversion: Conversion) -> SceneStream:
    description = read_info(path)
    whole, notes = fitting_conversion(path, description, scene, conversion)
    length = description.frames
    if whole.fps is not None:
        length = round(length * whole.fps / (whole.capture_fps or description.fps))
    if 0 < length < scene.frames_in:
        raise InputError(
            f"{path}: {length} frames are fewer than the {scene.frames_in} that the checkpoint looks at together; "
            "give a longer video"
        )

    def read() -> Iterator[TimedFrame]:
        in_time = Conversion(whole.fps, capture_fps=whole.capture_fps)
        for time, frame in of_one_size(path, stream(path, scene.color, in_time)):
            yield TimedFrame(time, whole(frame), whole.cropped(frame))

    crop = whole.crop_of(description.width, description.height)
    return SceneStream(path, scene, description, crop, length, tuple(notes), read)


def _timed_frames(video: Frames, scene: Scene) -> Iterator[TimedFrame]:
    if isinstance(video, Clip):
        if len(video) > 1 and abs(video.fps / scene.fps - 1) > SAME_RATE:
            raise InputError(
                f"video: the clip has {video.fps:.6g} frames a second, the checkpoint knows {scene.fps:g} alone; "
                "give the file with a Conversion, or a clip of that rate"
            )
        times: Iterator[float] = iter(video.times.tolist())
        frames: Iterable[np.ndarray | Tensor] = video.frames
    else:
        times, frames = (number / scene.fps for number in count()), video
        if isinstance(video, np.ndarray | Tensor) and video.ndim not in (3, 4):
            raise ShapeError(f"video: expected (times, height, width) or with channels, got {tuple(video.shape)}")
    levels = (_levels(frame, scene) for frame in frames)
    return (TimedFrame(time, frame, frame) for time, frame in zip(times, levels, strict=False))


def _levels(frame: np.ndarray | Tensor, scene: Scene) -> np.ndarray:
    """One frame as uint8 (height, width, channels) of the scene's size and colours."""
    pixels = frame.detach().cpu().numpy() if isinstance(frame, Tensor) else np.asarray(frame)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    wide, high = scene.size
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[1:] == (high, wide):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim != 3 or pixels.shape[:2] != (high, wide) or pixels.shape[2] not in (1, 3):
        raise ShapeError(
            f"video: expected frames ({high}, {wide}) or with 1 or 3 channels, got {pixels.shape}; resize "
            "them, or give a file and a Conversion"
        )
    if np.issubdtype(pixels.dtype, np.floating):
        if not np.isfinite(pixels).all():
            raise InputError("video: expected finite values, got NaN or infinity in a frame")
        pixels = np.rint(pixels.clip(0, 1) * 255).astype(np.uint8)
    if pixels.dtype != np.uint8:
        raise InputError(f"video: expected frames of uint8 or of floats from 0 to 1, got {pixels.dtype}")
    if pixels.shape[2] == scene.channels:
        return np.ascontiguousarray(pixels)
    if scene.channels == 3:
        return np.repeat(pixels, 3, 2)
    return Clip(torch.from_numpy(pixels.copy())[None], torch.zeros(1)).gray().frames[0].numpy()
