"""What came of a run, for the summary and the page alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from physvision.core import Scene
from physvision.prediction.prediction import Segment
from physvision.prediction.predictor import Predictor
from physvision.report import ParameterRow, Units
from physvision.video import SceneStream

# An object of which a model is less sure than this is counted as not seen well.
UNSURE = 0.25


@dataclass(frozen=True)
class ReportData:
    """A run over a video, to its end or to where it was interrupted.

    Attributes:
        predictor: what looked.
        stream: what it looked at.
        units: of the numbers that are reported.
        rows: of all frames, as states.npz has them.
        last: the segment that came last.
        seconds: that it took.
        interrupted: why it ended before the video did; empty if it did not.
        findings: where the video differs from what the model was made for.
        parameters: of the physics.
        settings: as they were given, for people.
    """

    predictor: Predictor
    stream: SceneStream
    units: Units
    rows: np.ndarray
    last: Segment
    seconds: float
    interrupted: str
    findings: Sequence[str]
    parameters: Sequence[ParameterRow]
    settings: Mapping[str, str]

    def __repr__(self) -> str:
        return f"ReportData({self.scene.title} in {self.name}: {len(self.rows)} frames, {len(self.notes())} notes)"

    @property
    def scene(self) -> Scene:
        """What was looked for."""
        return self.predictor.scene

    @property
    def name(self) -> str:
        """The video's, without its folder."""
        return Path(self.stream.source).name

    @property
    def rate(self) -> float:
        """Frames a second of computing."""
        return len(self.rows) / max(self.seconds, 1e-9)

    @cached_property
    def moving(self) -> list[int]:
        """Indices of the coordinates that change in the video; a disc's angle does not."""
        span = np.ptp(self.rows["position"], axis=0).max(0) + np.abs(self.rows["velocity"]).max((0, 1))
        return [index for index, size in enumerate(span) if size > 1e-6] or list(range(len(span)))

    def thinned(self, most: int) -> np.ndarray:
        """About `most` of the rows, at equal steps."""
        return np.array(self.rows[:: -(-len(self.rows) // most)])

    def errors(self) -> dict[str, tuple[float, float, str]]:
        """Of each coordinate and its rate: mean distance of what was predicted from what was seen, its median, unit."""
        known = np.isfinite(self.rows["psnr"])
        found = {}
        coordinates = list(self.units.coordinates.items())
        for index in self.moving:
            name, unit = coordinates[index]
            for kind, label, per in (("position", name, ""), ("velocity", f"{name} rate", "/s")):
                away = self.rows[f"expected_{kind}"][known, :, index] - self.rows[kind][known, :, index]
                if kind == "position" and unit == "rad":
                    away = away - 2 * np.pi * np.round(away / (2 * np.pi))
                if away.size:
                    found[label] = float(np.abs(away).mean()), float(np.median(np.abs(away))), unit + per
        return found

    def quality(self) -> tuple[float, float]:
        """PSNR, dB, and SSIM of predicted frames, means; NaN if the video was too short to compare."""
        known = np.isfinite(self.rows["psnr"])
        if not known.any():
            return float("nan"), float("nan")
        return float(self.rows["psnr"][known].mean()), float(self.rows["ssim"][known].mean())

    def notes(self) -> list[str]:
        """What a person should know."""
        rows = self.rows
        notes = [*self.findings, *self.stream.notes]
        if self.interrupted:
            notes.insert(0, f"{self.interrupted}: these results end at {rows['time'][-1]:.2f} s of the video.")
        failed = int((~rows["sound"]).sum())
        if failed:
            notes.append(f"From {failed} of {len(rows)} states no motion could be computed; they stand still ahead.")
        unsure = (rows["confidence"] < UNSURE).mean(0)
        for each, share in zip(self.scene.objects, unsure, strict=True):
            if share > 0.1:
                notes.append(f"{each.name} is not seen well in {share:.0%} of the frames (confidence below {UNSURE}).")
        steps = np.diff(rows["time"]) * self.scene.fps
        irregular = int((np.abs(steps - 1) > 0.25).sum())
        if irregular:
            notes.append(
                f"{irregular} steps between frames are not {1 / self.scene.fps:.4g} s; velocities there are off. "
                f"`fps={self.scene.fps:g}` takes the nearest frames instead."
            )
        if not np.isfinite(rows["psnr"]).any():
            ahead = self.predictor.horizon
            notes.append(f"The video is too short to compare a prediction {ahead:.3g} s ahead with what came.")
        return notes
