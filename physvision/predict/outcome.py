"""What came of a run, for the summary and the report alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from physvision.core import Scene
from physvision.predict.predictor import Piece, Predictor
from physvision.predict.tables import Tables
from physvision.predict.units import Units
from physvision.video import SceneStream

# An object of which a model is less sure than this is counted as not seen well.
UNSURE = 0.25


@dataclass(frozen=True)
class Outcome:
    """A run over a video, to its end or to where it was interrupted.

    Attributes:
        predictor: what looked.
        stream: what it looked at.
        units: of the numbers that are reported.
        tables: all rows.
        last: the piece that came last.
        seconds: that it took.
        interrupted: why it ended before the video did; empty if it did not.
        settings: as they were given, for people.
    """

    predictor: Predictor
    stream: SceneStream
    units: Units
    tables: Tables
    last: Piece
    seconds: float
    interrupted: str
    settings: Mapping[str, str]

    @property
    def scene(self) -> Scene:
        """What was looked for."""
        return self.predictor.scene

    @property
    def horizon(self) -> float:
        """How far ahead was predicted, s."""
        return self.predictor.steps / self.scene.fps

    @cached_property
    def moving(self) -> list[int]:
        """Indices of the coordinates that change in the video; a disc's angle does not."""
        rows = self.tables.read()
        span = np.ptp(rows["position"], axis=0).max(0) + np.abs(rows["velocity"]).max((0, 1))
        return [index for index, size in enumerate(span) if size > 1e-6] or list(range(len(span)))

    def errors(self) -> dict[str, tuple[float, float, str]]:
        """Of each coordinate and its rate: mean distance of what was predicted from what was seen, its median, unit."""
        rows = self.tables.read()
        known = np.isfinite(rows["psnr"])
        found = {}
        coordinates = list(self.units.coordinates.items())
        for index in self.moving:
            name, unit = coordinates[index]
            for kind, suffix in (("position", ""), ("velocity", "/s")):
                away = rows[f"expected_{kind}"][known, :, index] - rows[kind][known, :, index]
                if kind == "position" and unit == "rad":
                    away = away - 2 * np.pi * np.round(away / (2 * np.pi))
                if away.size:
                    size = np.abs(away)
                    label = name if kind == "position" else f"{name} rate"
                    found[label] = float(size.mean()), float(np.median(size)), unit + suffix
        return found

    def quality(self) -> tuple[float, float]:
        """PSNR, dB, and SSIM of predicted frames, means; NaN if the video was too short to compare."""
        rows = self.tables.read()
        known = np.isfinite(rows["psnr"])
        if not known.any():
            return float("nan"), float("nan")
        return float(rows["psnr"][known].mean()), float(rows["ssim"][known].mean())

    def notes(self) -> list[str]:
        """What a person should know."""
        rows = self.tables.read()
        notes = list(self.stream.notes)
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
                f"--fps {self.scene.fps:g} takes the nearest frames instead."
            )
        if not np.isfinite(rows["psnr"]).any():
            notes.append(f"The video is too short to compare a prediction {self.horizon:.3g} s ahead with what came.")
        return notes
