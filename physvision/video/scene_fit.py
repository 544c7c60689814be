"""Fit of a video's frame rate, size and aspect ratio to a scene, checked before anything is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from physvision.core import InputError, Scene
from physvision.video.conversion import Conversion
from physvision.video.reading import VideoInfo


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
