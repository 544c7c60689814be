"""Results of a run for summary and page, and the page report.html."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from physvision import report
from physvision.core import Scene, State
from physvision.prediction.confidence import describe
from physvision.prediction.mechanics import energy, outlines
from physvision.prediction.prediction import Segment
from physvision.prediction.predictor import Predictor
from physvision.prediction.settings import SETTINGS
from physvision.report.charts import CurveStyle
from physvision.report.palette import OBJECTS, TEXT, WARN
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
    units: report.Units
    rows: np.ndarray
    last_segment: Segment
    elapsed: float
    interruption: str
    warnings: Sequence[str]
    parameters: Sequence[report.ParameterRow]
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

    @cached_property
    def present_objects(self) -> list[int]:
        """Indices of the objects that the encoder finds in any frame."""
        return np.flatnonzero(np.isfinite(self.rows["position"]).any((0, 2))).tolist()

    @cached_property
    def moving_coordinates(self) -> list[int]:
        """Indices of the coordinates that change in the video; a disc's angle does not."""
        positions, velocities = (self.rows[name][:, self.present_objects] for name in ("position", "velocity"))
        if not positions.size:
            return list(range(self.rows["position"].shape[2]))
        span = (np.nanmax(positions, 0) - np.nanmin(positions, 0)).max(0) + np.nanmax(np.abs(velocities), (0, 1))
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
            for kind, label, unit_suffix in (("position", name, ""), ("velocity", f"{name} rate", "/s")):
                difference = self.rows[f"predicted_{kind}"][mask, :, index] - self.rows[kind][mask, :, index]
                if kind == "position" and unit == "rad":
                    difference = difference - 2 * np.pi * np.round(difference / (2 * np.pi))
                absolute = np.abs(difference[np.isfinite(difference)])
                if absolute.size:
                    errors[label] = float(absolute.mean()), float(np.median(absolute)), unit + unit_suffix
        return errors

    def quality(self) -> tuple[float, float]:
        """Mean PSNR, dB, and SSIM of the predicted frames; NaN for a video that is too short."""
        mask = np.isfinite(self.rows["psnr"])
        if not mask.any():
            return float("nan"), float("nan")
        return float(self.rows["psnr"][mask].mean()), float(self.rows["ssim"][mask].mean())

    def notes(self) -> list[str]:
        """Warnings and remarks on the results."""
        rows, settings = self.rows, SETTINGS
        notes = [*self.warnings, *self.stream.notes]
        if self.interruption:
            notes.insert(0, f"{self.interruption}: these results end at {rows['time'][-1]:.2f} s of the video.")
        failed = int((~rows["valid"]).sum())
        if failed:
            notes.append(f"The rollout of {failed} of {len(rows)} states failed; they are predicted to rest.")
        for index in self.present_objects:
            item, present = self.scene.objects[index], np.isfinite(rows["position"][:, index]).any(1)
            fraction = (rows["confidence"][present, index] < settings.min_confidence).mean()
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


MAX_POINTS = 1200  # of a curve; more are not visible
_STRIP_FRAMES = 6
# Standard deviations to each side that hold 95 %.
_TWO_SIDED = 1.96


def prediction_page(data: ReportData, video: Path | None) -> report.Page:
    """Make the page of a run, with its video if there is one."""
    ahead = f"{data.predictor.horizon:.3g} s"
    page = report.Page(
        f"{data.scene.title} in {data.name}",
        "Observed motion and its prediction by the checkpoint. A prediction is compared with what the same model "
        "observed at the predicted time.",
        data.notes(),
    )
    page.add(_key_numbers(data))
    if video is not None:
        page.section("The clip", report.embed_video(video, float(data.rows["time"][0])))
    page.section("Predicted and observed motion", *_motion_charts(data), text=_motion_text(data, ahead))
    _add_energy(page, data)
    start = float(data.last_segment.frames[-1].time)
    text = f"{ahead} past the last frame, at {start:.2f} s." + _BAND * (data.last_segment.fit is not None)
    page.section("What happens next", *_future_charts(data, start), text=text)
    if data.parameters:
        estimated = any(row.origin.startswith("estimated") for row in data.parameters)
        text = "" if estimated else "Values are those of the checkpoint. This clip determined none of them."
        if data.last_segment.fit is not None:
            text = "Predictions take the checkpoint's value of each parameter that this clip does not contradict."
        page.section("Physical parameters", report.parameter_table(data.parameters), text=text)
    page.section("Settings", _settings_table(data))
    return page


_BAND = " The band holds it with a probability of 95 %."


def _motion_text(data: ReportData, ahead: str) -> str:
    """Explain the lines of the charts over time."""
    if data.last_segment.fit is None:
        return f"Dotted: predicted {ahead} before."
    return (
        "Points: the encoder's estimates from a few frames alone. Lines: the motion of the engine closest to them. "
        f"Dotted: predicted {ahead} before.{_BAND}"
    )


def _key_numbers(data: ReportData) -> report.Markup:
    rows, (psnr, ssim) = data.rows, data.quality()
    objects = [data.scene.objects[index] for index in data.present_objects]
    numbers = [
        (f"{len(rows)}", f"frames, {rows['time'][-1]:.2f} s"),
        (f"{len(objects)}", "objects: " + ", ".join(item.name for item in objects)),
        (f"{float(np.median(rows['reprojection_score'])):.0%}", "of the image is explained by the state, median"),
    ]
    ahead = f"predicted {data.predictor.horizon:.3g} s ahead"
    for label, (mean, _, unit) in data.errors().items():
        if not label.endswith("rate"):
            numbers.append((f"{mean:.3g} {unit}", f"mean error of {label}, {ahead}"))
    if np.isfinite(psnr):
        numbers.append((f"{psnr:.1f} dB", f"PSNR of frames {ahead}; SSIM {ssim:.3f}"))
    return report.stat_cards(numbers)


def _curves(
    data: ReportData, values: np.ndarray, suffix: str = "", style: CurveStyle = "solid", std: np.ndarray | None = None
) -> list[report.Curve]:
    """Make a curve for each object, of values (times, objects), in a band of 95 % where `std` is known."""
    objects, colors = data.scene.objects, report.object_colors(data.scene.objects)
    bands = None if std is None or not np.isfinite(std).any() else _TWO_SIDED * std
    return [
        report.Curve(
            objects[index].name + suffix,
            values[:, index],
            colors[index],
            style,
            None if bands is None else bands[:, index],
        )
        for index in data.present_objects
    ]


def _motion_charts(data: ReportData) -> list[report.Markup]:
    """Draw observed and predicted coordinates, confidence, and the quality of the predicted frames."""
    rows, figures = data.subsample(MAX_POINTS), []
    for index, (name, unit) in enumerate(data.units.coordinates.items()):
        for kind, label, unit_suffix in (("position", name, ""), ("velocity", f"rate of {name}", "/s")):
            observed, predicted = rows[kind][..., index], rows[f"predicted_{kind}"][..., index]
            std = rows[f"predicted_{kind}_std"][..., index]
            visible = observed[:, data.present_objects]
            if not (np.nanmax(visible, 0) - np.nanmin(visible, 0)).any():
                continue
            wraps = unit == "rad" and kind == "position"
            if wraps:
                observed, predicted = (np.arctan2(np.sin(angle), np.cos(angle)) for angle in (observed, predicted))
            curves = [*_curves(data, observed), *_curves(data, predicted, ", predicted", "dotted", std)]
            if kind == "position" and data.last_segment.fit is not None:
                windows = rows["observed_position"][..., index]
                windows = np.arctan2(np.sin(windows), np.cos(windows)) if wraps else windows
                curves += _curves(data, windows, ", encoder", "points")
            figures.append(report.time_chart(label, unit + unit_suffix, rows["time"], curves, wraps=wraps))
    curves = _curves(data, rows["confidence"])
    if data.last_segment.fit is not None:
        curves += _curves(data, rows["predicted_confidence"], ", predicted", "dotted")
    figures.append(report.time_chart("confidence", "0 to 1", rows["time"], curves, low=0.0))
    if np.isfinite(rows["psnr"]).any():
        title = f"frame predicted {data.predictor.horizon:.3g} s before"
        curve = report.Curve("PSNR of the predicted frame", rows["psnr"], WARN)
        figures.append(report.time_chart(title, "dB", rows["time"], [curve]))
    return figures


def _states(data: ReportData, rows: np.ndarray) -> State:
    device = data.predictor.device
    return State(torch.from_numpy(rows["q"].copy()).to(device), torch.from_numpy(rows["v"].copy()).to(device))


def _add_energy(page: report.Page, data: ReportData) -> None:
    rows = data.subsample(MAX_POINTS)
    energies = energy(data.predictor.model, _states(data, rows))
    if energies is None:
        return
    kinetic, potential = energies
    curves = [report.Curve("kinetic", kinetic, OBJECTS[1])]
    if np.ptp(potential) > 0:
        curves += [report.Curve("potential", potential, OBJECTS[4]), report.Curve("total", kinetic + potential, TEXT)]
    unit = "J" if "px" not in data.scene.coordinates.values() else "kg px²/s² of the model's frames"
    text = (
        f"Energy of each observed state by the model's own mechanics; median {np.median(kinetic + potential):.4g} "
        f"{unit}. Spikes are errors of the observed velocities, not of the motion."
    )
    page.section("Energy", report.time_chart("energy of the states", unit, rows["time"], curves), text=text)


def _future_charts(data: ReportData, start: float) -> list[report.Markup]:
    """Draw the predicted motion and frames after the last frame, at `start`, s."""
    predictor, scene, future = data.predictor, data.scene, data.last_segment.future
    times = start + np.arange(len(future)) / scene.fps
    present = data.last_segment.present[-1].numpy()
    positions = np.where(present[:, None], data.units.positions(future.q[0].double().numpy()), np.nan)
    stds = data.units.velocities(data.last_segment.future_std.q[0].double().numpy())
    figures = []
    for index, (name, unit) in enumerate(data.units.coordinates.items()):
        if (np.ptp(positions[:, present, index], axis=0) > 1e-6).any():
            curves = _curves(data, positions[..., index], std=stds[..., index])
            figures.append(report.time_chart(f"{name} ahead", unit, times, curves, wraps=unit == "rad", width=430))
    rows = data.subsample(MAX_POINTS)[-MAX_POINTS // 2 :]
    observed = outlines(predictor.model, scene, _states(data, rows))
    predicted = outlines(predictor.model, scene, future.flatten().to(predictor.device))
    paths, colors = [], report.object_colors(scene.objects)
    for index in data.present_objects if observed else ():
        visible = np.isfinite(rows["position"][:, index]).any(1, keepdims=True)
        path = np.where(visible, observed[index][:, -1], np.nan)
        paths.append(report.Curve(scene.objects[index].name, path, colors[index]))
        if present[index]:
            paths.append(report.Curve("", predicted[index][:, -1], colors[index], "dotted"))
    chart = [report.path_chart("paths in the image", scene.size, paths)] if paths else []
    steps = np.unique(np.linspace(0, future.steps, min(_STRIP_FRAMES, len(future))).round().astype(int)).tolist()
    frames = (predictor.decode(data.last_segment, steps).movedim(1, -1) * 255).round().byte().numpy()
    captions = [f"{times[step]:.2f} s" for step in steps]
    return [report.image_strip(dict(zip(captions, frames, strict=True))), report.side_by_side(chart, figures)]


def _confidence_meaning(data: ReportData) -> str:
    if data.last_segment.fit is None:
        return "the encoder's own, or else the fraction of variance that the rendered state explains"
    return describe(data.scene)


def _settings_table(data: ReportData) -> report.Markup:
    info, scene = data.stream.info, data.scene
    x, y, width, height = data.stream.crop
    description = f": {info.width} x {info.height}, {info.fps:.6g} fps, {info.codec}" if info else ""
    settings = {
        **data.settings,
        "horizon": f"{data.predictor.horizon:.4g} s",
        "device": str(data.predictor.device),
        "video": data.stream.source + description,
        "crop": f"{width} x {height} pixels at ({x}, {y}), as {scene.size[0]} x {scene.size[1]}, {scene.color}",
        "frame rate": f"{scene.fps:g} frames per second",
        "confidence": _confidence_meaning(data),
        "physvision": version("physvision"),
    }
    return report.table((name, report.code(text)) for name, text in settings.items())
