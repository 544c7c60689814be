"""Data of a run for the summary and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from physvision.core import Scene
from physvision.prediction.prediction import Segment
from physvision.prediction.predictor import Predictor
from physvision.prediction.settings import DEFAULT_SETTINGS
from physvision.report import ParameterRow, Units
from physvision.video import SceneStream


@dataclass(frozen=True)
class ReportData:
    """Results of a run over a video, to its end or to an interruption.

    Attributes:
        predictor: Predictor of the run.
        stream: Video of the run.
        units: Reported units.
        rows: Rows of all frames, as states.npz holds them.
        last_segment: Last segment of the video.
        elapsed: Duration of the run, s.
        interruption: Reason why the run ended before the video; empty if it did not.
        warnings: Differences of the video from the model's domain.
        parameters: Physical parameters.
        settings: Options of the run, for display.
    """

    predictor: Predictor
    stream: SceneStream
    units: Units
    rows: np.ndarray
    last_segment: Segment
    elapsed: float
    interruption: str
    warnings: Sequence[str]
    parameters: Sequence[ParameterRow]
    settings: Mapping[str, str]

    def __repr__(self) -> str:
        return f"ReportData({self.scene.title} in {self.name}: {len(self.rows)} frames, {len(self.notes())} notes)"

    @property
    def scene(self) -> Scene:
        """Scene that the model expects."""
        return self.predictor.scene

    @property
    def name(self) -> str:
        """File name of the video."""
        return Path(self.stream.source).name

    @property
    def frames_per_second(self) -> float:
        """Speed of the run, in frames per second."""
        return len(self.rows) / max(self.elapsed, 1e-9)

    @cached_property
    def moving_coordinates(self) -> list[int]:
        """Indices of the coordinates that change in the video; a disc's angle does not."""
        span = np.ptp(self.rows["position"], axis=0).max(0) + np.abs(self.rows["velocity"]).max((0, 1))
        return [index for index, size in enumerate(span) if size > 1e-6] or list(range(len(span)))

    def subsample(self, count: int) -> np.ndarray:
        """About `count` of the rows, at equal steps."""
        return np.array(self.rows[:: -(-len(self.rows) // count)])

    def errors(self) -> dict[str, tuple[float, float, str]]:
        """Errors of the predicted coordinates and rates by name: mean, median and unit."""
        mask = np.isfinite(self.rows["psnr"])
        errors = {}
        coordinates = list(self.units.coordinates.items())
        for index in self.moving_coordinates:
            name, unit = coordinates[index]
            for kind, label, per in (("position", name, ""), ("velocity", f"{name} rate", "/s")):
                difference = self.rows[f"predicted_{kind}"][mask, :, index] - self.rows[kind][mask, :, index]
                if kind == "position" and unit == "rad":
                    difference = difference - 2 * np.pi * np.round(difference / (2 * np.pi))
                if difference.size:
                    absolute = np.abs(difference)
                    errors[label] = float(absolute.mean()), float(np.median(absolute)), unit + per
        return errors

    def quality(self) -> tuple[float, float]:
        """Mean PSNR, dB, and SSIM of the predicted frames; NaN for a video that is too short."""
        mask = np.isfinite(self.rows["psnr"])
        if not mask.any():
            return float("nan"), float("nan")
        return float(self.rows["psnr"][mask].mean()), float(self.rows["ssim"][mask].mean())

    def notes(self) -> list[str]:
        """Warnings and remarks on the results."""
        rows, settings = self.rows, DEFAULT_SETTINGS
        notes = [*self.warnings, *self.stream.notes]
        if self.interruption:
            notes.insert(0, f"{self.interruption}: these results end at {rows['time'][-1]:.2f} s of the video.")
        failed = int((~rows["valid"]).sum())
        if failed:
            notes.append(f"The rollout of {failed} of {len(rows)} states failed; they are predicted to rest.")
        unsure = (rows["confidence"] < settings.min_confidence).mean(0)
        for item, fraction in zip(self.scene.objects, unsure, strict=True):
            if fraction > settings.max_unsure_frames:
                notes.append(
                    f"{item.name} is poorly visible in {fraction:.0%} of the frames (confidence below "
                    f"{settings.min_confidence})."
                )
        steps = np.diff(rows["time"]) * self.scene.fps
        irregular = int((np.abs(steps - 1) > settings.max_interval_error).sum())
        if irregular:
            notes.append(
                f"{irregular} frame intervals are not {1 / self.scene.fps:.4g} s; velocities there are off. "
                f"`fps={self.scene.fps:g}` resamples to the nearest frames."
            )
        if not np.isfinite(rows["psnr"]).any():
            ahead = self.predictor.horizon
            notes.append(f"The video is too short to compare a prediction {ahead:.3g} s ahead with the frames.")
        return notes
