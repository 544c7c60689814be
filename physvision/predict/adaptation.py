"""How a video becomes what a checkpoint expects: rate, part of the picture, size, colours.

What does not fit is refused before anything is computed, with what to do.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import UInt8

from physvision import video
from physvision.core import InputError, Scene, VideoError
from physvision.core.checks import check_positive

# A rate this near to the checkpoint's is taken for it; a velocity is then off by no more.
_SAME_RATE = 0.05
# A part of the picture whose proportions are this near to the checkpoint's may be stretched to them.
_SAME_PROPORTIONS = 0.03


@dataclass(frozen=True)
class Sight:
    """One frame of a video.

    Attributes:
        time: seconds since the first frame.
        frame: as the model takes it.
        picture: the same part of the video, as large as it was.
    """

    time: float
    frame: UInt8[np.ndarray, "height width channels"]
    picture: UInt8[np.ndarray, "rows columns colors"]


@dataclass(frozen=True)
class Adaptation:
    """What is done to a video before a model sees it.

    Attributes:
        fps: bring it to this many frames a second, by the nearest frames in time.
        crop: x, y, width and height of the part that is used, pixels.
        size: side of the square, or width and height, that the part is brought to, pixels.
        scale: pixels of the video a metre, or a length in the picture, as "120px=0.5m".
    """

    fps: float | None = None
    crop: tuple[int, int, int, int] | None = None
    size: int | tuple[int, int] | None = None
    scale: float | str | None = None


@dataclass(frozen=True)
class Footage:
    """A video that fits a scene.

    Attributes:
        path: the file.
        scene: what it fits.
        described: what the file says of itself.
        fps: it is resampled to; None where its frames are taken as they come.
        part: x, y, width and height of the part that is used, pixels of the video.
        frames: how many there will be, about; 0 where the file does not say.
        notes: what a person should know.
    """

    path: str
    scene: Scene
    described: video.Description
    fps: float | None
    part: tuple[int, int, int, int]
    frames: int
    notes: tuple[str, ...] = field(default=())

    def sights(self) -> Iterator[Sight]:
        """The frames, one at a time."""
        stream = video.stream(self.path, self.scene.color)
        if self.fps is not None:
            frames = video.resample(stream, self.fps)
            stream = ((number / self.scene.fps, frame) for number, frame in enumerate(frames))
        x, y, wide, high = self.part
        fit = video.Fit(self.part, self.scene.size)
        for time, frame in stream:
            if frame.shape[:2] != (self.described.height, self.described.width):
                raise VideoError(f"{self.path}: frames change size at {time:.2f} s; cut the video there")
            yield Sight(time, fit(frame), frame[y : y + high, x : x + wide])


def prepare(path: str | os.PathLike[str], scene: Scene, adaptation: Adaptation) -> Footage:
    """The video at `path` as `scene` wants it; only its first frame is decoded.

    Raises:
        FileError, VideoError: it cannot be read.
        InputError: it does not fit, with what to do.
    """
    described = video.describe(path)
    notes: list[str] = []
    rate = _rate(path, described, scene, adaptation.fps, notes)
    part = _part(path, described, scene, adaptation)
    frames = described.frames if rate is None else round(described.frames * rate / described.fps)
    if 0 < frames < scene.frames_in:
        raise InputError(
            f"{path}: {frames} frames are fewer than the {scene.frames_in} that the checkpoint looks at together; "
            "give a longer video"
        )
    return Footage(os.fspath(path), scene, described, rate, part, frames, tuple(notes))


def _rate(
    path: object, described: video.Description, scene: Scene, wanted: float | None, notes: list[str]
) -> float | None:
    """The rate to resample to, None for none."""
    known = math.isfinite(described.fps)
    if wanted is None:
        if not known:
            raise InputError(
                f"{path}: does not state its frame rate; give --fps {scene.fps:g} if the frames show {scene.fps:g} "
                "moments a second"
            )
        if abs(described.fps / scene.fps - 1) <= _SAME_RATE:
            return None
        if described.fps < scene.fps:
            raise InputError(_too_slow(path, described.fps, scene))
        raise InputError(
            f"{path}: has {described.fps:.6g} frames a second, the checkpoint knows {scene.fps:g} alone; "
            f"add --fps {scene.fps:g} to take the frames nearest to those moments"
        )
    check_positive("fps", wanted)
    if abs(wanted / scene.fps - 1) > _SAME_RATE:
        raise InputError(
            f"fps: the checkpoint knows {scene.fps:g} frames a second alone, so {wanted:g} is of no use; "
            f"give --fps {scene.fps:g}, or train a checkpoint at this rate"
        )
    if known and described.fps < scene.fps * (1 - _SAME_RATE):
        raise InputError(_too_slow(path, described.fps, scene))
    ratio = described.fps / scene.fps if known else 1.0
    if abs(ratio - round(ratio)) > _SAME_RATE * round(ratio):
        notes.append(
            f"{described.fps:.4g} frames a second are no multiple of {scene.fps:g}: frames are up to "
            f"{500 / described.fps:.0f} ms off their moments, which velocities feel"
        )
    return scene.fps


def _too_slow(path: object, fps: float, scene: Scene) -> str:
    return (
        f"{path}: has {fps:.6g} frames a second, the checkpoint needs {scene.fps:g}; frames that were not taken cannot "
        f"be made up: record at {scene.fps:g} or a multiple of it, or train a checkpoint at this rate"
    )


def _part(
    path: object, described: video.Description, scene: Scene, adaptation: Adaptation
) -> tuple[int, int, int, int]:
    """The part of the picture that is used: x, y, width and height."""
    size, crop = adaptation.size, adaptation.crop
    given = (described.width, described.height)
    fit = video.Fit(crop, size)
    part, brought = fit.crop_of(*given), fit.size_of(*given)
    wide, high = scene.size
    wanted = f"{wide}" if wide == high else f"'[{wide},{high}]'"
    if size is not None and brought != scene.size:
        raise InputError(
            f"size: the checkpoint takes frames of {wide} x {high} pixels, so {brought[0]} x {brought[1]} is of no "
            f"use; give --size {wanted}"
        )
    if size is None and crop is None and given != scene.size:
        square = " takes the largest square in the middle" if wide == high else " takes all of it"
        raise InputError(
            f"{path}: frames have {given[0]} x {given[1]} pixels, the checkpoint takes {wide} x {high}; "
            f"--size {wanted}{square}, --crop '[x,y,width,height]' the part that shows {scene.title}"
        )
    if not isinstance(size, int) and abs(part[2] / part[3] * high / wide - 1) > _SAME_PROPORTIONS:
        raise InputError(
            f"crop: {part[2]} x {part[3]} pixels have other proportions than the {wide} x {high} that the checkpoint "
            "takes; give --crop '[x,y,width,height]' of a part with its proportions"
        )
    return part
