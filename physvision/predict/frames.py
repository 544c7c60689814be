"""Frames from wherever they come, as a scene wants them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

import numpy as np
import torch
from torch import Tensor

from physvision.core import Clip, InputError, Scene, ShapeError
from physvision.predict.adaptation import Sight


def frames_of(video: Clip | np.ndarray | Tensor | Iterable[np.ndarray | Tensor], scene: Scene) -> Iterator[Sight]:
    """The frames of `video`, one at a time; those of an array or an iterator follow each other by the scene's rate.

    Raises:
        InputError: they are not as the scene wants them.
    """
    if isinstance(video, Clip):
        if len(video) > 1 and abs(video.fps / scene.fps - 1) > 0.05:
            raise InputError(
                f"video: the clip has {video.fps:.6g} frames a second, the checkpoint knows {scene.fps:g} alone; "
                "give the file with an Adaptation, or a clip of that rate"
            )
        times: Iterator[float] = iter(video.times.tolist())
        pictures: Iterable[np.ndarray | Tensor] = video.frames
    else:
        times, pictures = (number / scene.fps for number in count()), video
        if isinstance(video, np.ndarray | Tensor) and video.ndim not in (3, 4):
            raise ShapeError(f"video: expected (times, height, width) or with channels, got {tuple(video.shape)}")
    return _sights(times, pictures, scene)


def _sights(times: Iterator[float], pictures: Iterable[np.ndarray | Tensor], scene: Scene) -> Iterator[Sight]:
    for time, picture in zip(times, pictures, strict=False):
        frame = _frame(picture, scene)
        yield Sight(time, frame, frame)


def _frame(picture: np.ndarray | Tensor, scene: Scene) -> np.ndarray:
    """One picture as uint8 (height, width, channels) of the scene's size and colours."""
    pixels = picture.detach().cpu().numpy() if isinstance(picture, Tensor) else np.asarray(picture)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    wide, high = scene.size
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[1:] == (high, wide):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim != 3 or pixels.shape[:2] != (high, wide) or pixels.shape[2] not in (1, 3):
        raise ShapeError(
            f"video: expected frames ({high}, {wide}) or with 1 or 3 channels, got {pixels.shape}; resize "
            "them, or give a file and an Adaptation"
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
