"""Whether a video's rate, size and proportions fit a scene.

What does not fit is refused before anything is computed, with what to do.
"""

from __future__ import annotations

import math

from physvision.core import InputError, Scene
from physvision.video.conversion import Conversion
from physvision.video.reading import VideoInfo

# A rate this near to the checkpoint's is taken for it; a velocity is then off by no more.
SAME_RATE = 0.05
# A part of the picture whose proportions are this near to the checkpoint's may be stretched to them.
_SAME_PROPORTIONS = 0.03


def fitting_conversion(
    source: str, description: VideoInfo, scene: Scene, conversion: Conversion
) -> tuple[Conversion, list[str]]:
    """The whole conversion that brings a video to what `scene` wants, and what a person should know of it.

    Args:
        source: names the video in errors.
        description: what the video says of itself.
        scene: what it is brought to.
        conversion: what the caller allows to be done.

    Raises:
        InputError: the video does not fit, with what to do.
    """
    capture_fps = conversion.capture_fps
    fps, notes = _rate(source, capture_fps or description.fps, scene, conversion.fps)
    if capture_fps is None and not math.isfinite(description.fps):
        capture_fps = scene.fps
    return Conversion(fps, _crop(source, description, scene, conversion), scene.size, capture_fps), notes


def _rate(source: str, capture_fps: float, scene: Scene, wanted: float | None) -> tuple[float | None, list[str]]:
    """The rate to resample to, None for none, and what a person should know of it."""
    known = math.isfinite(capture_fps)
    if wanted is None:
        if not known:
            raise InputError(
                f"{source}: does not state its frame rate; give `fps={scene.fps:g}` if the frames show {scene.fps:g} "
                "moments a second"
            )
        if abs(capture_fps / scene.fps - 1) <= SAME_RATE:
            return None, []
        if capture_fps < scene.fps:
            raise InputError(_too_slow(source, capture_fps, scene))
        raise InputError(
            f"{source}: has {capture_fps:.6g} frames a second, the checkpoint knows {scene.fps:g} alone; "
            f"add `fps={scene.fps:g}` to take the frames nearest to those moments"
        )
    if abs(wanted / scene.fps - 1) > SAME_RATE:
        raise InputError(
            f"fps: the checkpoint knows {scene.fps:g} frames a second alone, so {wanted:g} is of no use; "
            f"give `fps={scene.fps:g}`, or train a checkpoint at this rate"
        )
    if known and capture_fps < scene.fps * (1 - SAME_RATE):
        raise InputError(_too_slow(source, capture_fps, scene))
    ratio = capture_fps / scene.fps if known else 1.0
    if abs(ratio - round(ratio)) > SAME_RATE * round(ratio):
        note = (
            f"{capture_fps:.4g} frames a second are no multiple of {scene.fps:g}: frames are up to "
            f"{500 / capture_fps:.0f} ms off their moments, which velocities feel"
        )
        return scene.fps, [note]
    return scene.fps, []


def _too_slow(source: str, fps: float, scene: Scene) -> str:
    return (
        f"{source}: has {fps:.6g} frames a second, the checkpoint needs {scene.fps:g}; frames that were not taken "
        f"cannot be made up: record at {scene.fps:g} or a multiple of it, or train a checkpoint at this rate"
    )


def _crop(source: str, description: VideoInfo, scene: Scene, conversion: Conversion) -> tuple[int, int, int, int]:
    """The part of the picture that is used: x, y, width and height."""
    size, given = conversion.size, (description.width, description.height)
    crop, brought = conversion.crop_of(*given), conversion.size_of(*given)
    wide, high = scene.size
    wanted = f"{wide}" if wide == high else f"({wide}, {high})"
    if size is not None and brought != scene.size:
        raise InputError(
            f"size: the checkpoint takes frames of {wide} x {high} pixels, so {brought[0]} x {brought[1]} is of no "
            f"use; give `size={wanted}`"
        )
    if size is None and conversion.crop is None and given != scene.size:
        square = " takes the largest square in the middle" if wide == high else " takes all of it"
        raise InputError(
            f"{source}: frames have {given[0]} x {given[1]} pixels, the checkpoint takes {wide} x {high}; "
            f"`size={wanted}`{square}, `crop=(x, y, width, height)` the part that shows {scene.title}"
        )
    if not isinstance(size, int) and abs(crop[2] / crop[3] * high / wide - 1) > _SAME_PROPORTIONS:
        raise InputError(
            f"crop: {crop[2]} x {crop[3]} pixels have other proportions than the {wide} x {high} that the checkpoint "
            "takes; give `crop=(x, y, width, height)` of a part with its proportions"
        )
    return crop
