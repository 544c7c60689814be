"""Preparation of a clip for tracking: its frames, enhanced and registered where needed, and their background."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from physvision.core import VideoError
from physvision.perception.background import (
    Background,
    BackgroundSurvey,
    brightening_gain,
    find_enhancement,
    survey_background,
)
from physvision.perception.camera_jitter import moving_camera_error
from physvision.perception.frame_source import FrameSource
from physvision.perception.settings import PerceptionSettings
from physvision.perception.stabilization import StabilizedFrames, camera_shifts, stabilize


@dataclass(frozen=True)
class Scene:
    """Frames of a clip that are ready to be compared with their background.

    Attributes:
        source: Frames as they were filmed; noisy and dark ones are smoothed, and dark ones brightened.
        frames: Frames to analyze; those of a hand-held camera are registered.
        background_survey: Times and changes of all frames.
        background: Background of the clip.
        settings: Tuning numbers of perception.
    """

    source: FrameSource
    frames: FrameSource | StabilizedFrames
    background_survey: BackgroundSurvey
    background: Background
    settings: PerceptionSettings

    @property
    def contrast(self) -> float:
        """Change from the background below which objects are lost, levels."""
        return float(np.median(self.background.threshold))

    @property
    def is_noisy(self) -> bool:
        """If true, noise limits the contrast in which objects are detected."""
        return self.contrast >= self.settings.background.min_noisy_change

    def notes(self, shrink: int) -> list[str]:
        """Notes on how the frames were prepared.

        Args:
            shrink: Factor by which the frames are shrunk.
        """
        notes = [f"Only the frames before the damage are used: {message}." for message in self.source.truncations]
        if isinstance(self.frames, StabilizedFrames):
            notes.append(
                f"The camera moves by up to {shrink * self.frames.max_shift:.0f} pixels; the background is "
                "registered, and positions are those in the picture of the middle frame."
            )
        if self.background.has_jitter:
            notes.append(f"The camera shakes by {self.background.jitter_std:.1f} pixels; this is compensated.")
        steps = np.diff(self.background_survey.times)
        dropped = int((np.round(steps / np.median(steps)) - 1).clip(0).sum())
        if dropped:
            notes.append(f"{dropped} frames are dropped according to the timestamps of the file.")
        return notes + self.noise_notes(shrink)

    def noise_notes(self, shrink: int) -> list[str]:
        """Notes on noise: how far the frames are smoothed, and the contrast below which objects are lost."""
        notes = []
        if self.source.smoothing:
            gain, smoothed = self.source.gain, f"it is smoothed by {shrink * self.source.smoothing:g} pixels"
            notes.append(
                f"The picture is dark; {smoothed}, and brightened {gain:.1f} times."
                if gain > 1
                else f"The picture is noisy, as of a GIF with few colors; {smoothed}."
            )
        if self.is_noisy:
            contrast = self.contrast / self.source.gain
            noise = contrast / self.settings.background.noise_factor
            notes.append(
                f"The picture is noisy, by {noise:.0f} of 255 levels, as in low light: what differs from its "
                f"background by less than {contrast:.0f} levels is not seen."
            )
        return notes


def prepare_scene(source: FrameSource, settings: PerceptionSettings) -> Scene:
    """Estimate the background; frames of a moving camera are registered, noisy and dark ones enhanced.

    A moving camera changes every pixel, as noise does, so that noise is judged after the registration.

    Raises:
        VideoError: There is no static background, and the frames cannot be registered.
    """
    background_survey = survey_background(source, settings.background)
    scene: Scene | None = None
    failure: VideoError | None = None
    try:
        background = Background(background_survey.samples, settings.background, settings.jitter)
        _check_uncorrected_shift(source, background, settings)
        scene = Scene(source, source, background_survey, background, settings)
    except VideoError as error:
        failure = error
        with suppress(VideoError):
            scene = _registered_scene(source, len(background_survey.times), settings)
    samples = background_survey.samples if scene is None else scene.background_survey.samples
    is_dark = brightening_gain(samples, settings.background) > 1
    if not source.smoothing and (scene is None or scene.is_noisy or is_dark):
        enhancement = find_enhancement(samples, settings.background)
        if enhancement is not None:
            smoothing, gain = enhancement
            return prepare_scene(replace(source, smoothing=smoothing, gain=gain), settings)
    if scene is None:
        assert failure is not None
        raise failure
    return scene


def _registered_scene(source: FrameSource, count: int, settings: PerceptionSettings) -> Scene:
    """Return the scene of a moving camera, whose frames are registered.

    Raises:
        VideoError: The frames cannot be registered.
    """
    frames = stabilize(source, count, settings)
    background_survey = survey_background(frames, settings.background)
    background = Background(background_survey.samples, settings.background, settings.jitter)
    return Scene(source, frames, background_survey, background, settings)


def _check_uncorrected_shift(source: FrameSource, background: Background, settings: PerceptionSettings) -> None:
    """Reject a moving camera whose shift is not undone as jitter, where corners are too few to show it, or do.

    Raises:
        VideoError: The camera moves.
    """
    limit, corner_shift = settings.jitter.max_uncorrected, background.corner_shift
    is_undone = background.jitter_coverage >= settings.stabilization.min_registered
    if is_undone or (corner_shift is not None and max(corner_shift, background.jitter_std) < limit):
        return
    shifts = camera_shifts(source, settings)
    observed = np.isfinite(shifts).all(1)
    if observed.mean() < 0.5:
        return
    shifts = shifts[observed]
    distances = np.linalg.norm(shifts - np.median(shifts, axis=0), axis=1)
    # A moving object that hides the edges misleads some of the frames.
    if np.quantile(distances, 0.8) > limit:
        raise moving_camera_error(float(distances.max()))
