"""Output files of `identify`: parameters, the motion in its axes, states.csv, prediction.mp4 and report.html."""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import torch

from physvision import report, video
from physvision.core import Clip, StrPath
from physvision.identification.formatting import describe_odds, in_degrees, round_to_interval, value_and_interval
from physvision.identification.motion_table import PICTURE_AXES, Axes, MotionAxes, write_motion_tables
from physvision.identification.parameters import known_value_std
from physvision.identification.pipeline import Source
from physvision.identification.result import Identification
from physvision.identification.result_tables import BUDGET_SOURCES, write_result_tables
from physvision.identification.result_text import basis
from physvision.identification.units import si_unit
from physvision.report.palette import OBJECTS, TEXT, WARN
from physvision.report.spreadsheet import Cell, write_csv

_PARAMETER_HEAD = ("parameter", "value", "95 % interval", "origin")


def save_results(
    result: Identification,
    folder: StrPath,
    source: Source,
    draw_video: bool,
    start: float | None = None,
    decimal: str = ".",
    axes: Axes = PICTURE_AXES,
) -> list[Path]:
    """Write all output files, and return their paths.

    Args:
        result: Identification to write.
        folder: Output folder.
        source: Identified clip or tracks.
        draw_video: If true, a video of a clip is drawn.
        start: Time of the clip at which the tracks begin, s; its beginning if not given.
        decimal: Decimal separator of CSV files, a point or a comma.
        axes: Axes of the motion's table.
    """
    with report.OutputFolder(folder) as output:
        paths = [output / "parameters.json", output / "states.csv"]
        result.write(paths[0])
        _write_states(result, paths[1], decimal)
        paths += write_result_tables(result, Path(output), decimal)
        paths += write_motion_tables(result, Path(output), decimal, axes)
        video_path = None
        if draw_video and isinstance(source, Clip | str | os.PathLike):
            video_path = _write_video(result, source, output / "prediction.mp4", start or 0.0)
            paths.append(video_path)
        paths.append(_page(result, video_path).write(output / "report.html"))
    return paths


def _object_columns(index: int) -> slice:
    return slice(2 * index, 2 * index + 2)


def _write_states(result: Identification, path: Path, decimal: str) -> None:
    """Write a row for each time, with observed and fitted positions of each object; y down."""
    times, observed = result.evidence.times.numpy(), result.evidence.observed.numpy()
    fitted, unit = result.fitted_positions, result.evidence.unit
    names = [track.name.replace(" ", "_") for track in result.evidence.tracks]
    columns = [f"{column}_{unit}" for column in ("x", "y", "fitted_x", "fitted_y")]
    head = ["time_s", *(f"{name}_{column}" for name in names for column in columns)]
    rows: list[list[Cell]] = []
    for row, time in enumerate(times):
        values: list[float] = []
        for index in range(len(names)):
            columns_of = _object_columns(index)
            values += [*observed[row, columns_of].tolist(), *fitted[row, columns_of].tolist()]
        # A tenth of a micrometer, or of a thousandth of a pixel.
        digits = 4 if unit == "px" else 7
        rows.append([Decimal(f"{time:.6f}"), *("" if np.isnan(v) else Decimal(f"{v:.{digits}f}") for v in values)])
    write_csv(path, head, rows, decimal)


def _write_video(result: Identification, source: Clip | StrPath, path: Path, start: float) -> Path:
    """Draw the clip with the track, the fitted motion, and its prediction for the next half second."""
    evidence = result.evidence
    rate = min(evidence.settings.output.max_fps, 1 / evidence.dt)
    size = (round(evidence.view.width), round(evidence.view.height))
    canvas = report.Canvas(size, ["observed and fitted"], rate)
    with report.VideoFigure(path, rate) as figure:
        figure.add(_draw_frames(result, source, canvas, rate, start))
    return path


def _draw_frames(
    result: Identification, source: Clip | StrPath, canvas: report.Canvas, rate: float, start: float
) -> Iterator[np.ndarray]:
    """Draw the frames of the video from `start` on; every n-th of a fast clip."""
    evidence, settings = result.evidence, result.evidence.settings.output
    times, dt = evidence.times.numpy(), evidence.dt
    stride = max(1, round(1 / (dt * rate)))
    if isinstance(source, Clip):
        frames = zip(source.times.tolist(), source.frames.numpy(), strict=True)
    else:
        frames = video.stream(source, color="rgb", on_truncation=lambda message: None)
    fitted = result.fitted_positions
    lookahead = np.linspace(0, settings.lookahead, settings.lookahead_points)
    ahead = (times[::stride, None] + lookahead).ravel()
    predicted = result.positions(ahead)
    predicted[~result.may_follow(ahead)] = np.nan
    predicted = predicted.reshape(-1, len(lookahead), predicted.shape[1])
    for number, (_, frame) in enumerate(pair for pair in frames if pair[0] >= start):
        if number >= len(times):
            return
        if number % stride:
            continue
        trail = fitted[max(0, number - round(1 / dt)) : number + 1]
        marks = []
        for index, track in enumerate(evidence.tracks):
            columns = _object_columns(index)
            position = track.positions[number : number + 1] if track.observed[number] else None
            paths = trail[:, columns], predicted[number // stride][:, columns]
            finite_paths = (path[np.isfinite(path).all(1)] for path in paths)
            past, future = (path if len(path) else None for path in finite_paths)
            marks.append(report.Mark(OBJECTS[index % len(OBJECTS)], position, track.radius or 3.0, past, future))
        yield canvas.draw([report.Panel(np.ascontiguousarray(frame), marks)], float(times[number]))


def _page(result: Identification, video_path: Path | None) -> report.Page:
    page = report.Page(
        f"{_readable(result.motion)}: identified motion",
        "The kind of motion in the clip, its parameters with 95 % intervals, and a holdout test on the last third of "
        "the clip.",
        list(result.warnings),
    )
    page.add(report.stat_cards(_key_numbers(result)))
    if video_path is not None:
        text = "Rings: observed positions. Lines: the fitted motion. Dots: the prediction for the next half second."
        page.section("The clip", report.embed_video(video_path), text=text)
    page.section("Basis", report.table(list(basis(result)), ("basis", "value")))
    parameters = result.parameters.items()
    unidentifiable = [(_readable(name), entry.reason) for name, entry in parameters if not entry.identifiable]
    reasons = [report.table(unidentifiable, ("not identifiable", "reason"))] if unidentifiable else []
    page.section("Parameters", _parameter_table(result), *reasons)
    text = (
        "Standard uncertainties by their source: the scale and other known values; the tracking, whose errors differ "
        "from frame to frame; and the model: autocorrelated errors, and what the clip hardly determines, such as the "
        "camera."
    )
    page.section("Uncertainty budget", _budget_table(result), text=text)
    if result.camera:
        text = "What the motion alone shows of the camera, whatever camera it may be; the rest stays at its prior."
        page.section("Camera", _camera_table(result), text=text)
    page.section("Observed and fitted motion", *_motion_charts(result))
    text = (
        "Posterior odds of each kind against the best one, where all are equally likely before, and one model of the "
        "tracker's errors holds for all."
    )
    page.section("Kinds of motion", _kinds_table(result), text=text)
    return page


def _readable(name: str) -> str:
    return name.replace("_", " ")


def _key_numbers(result: Identification) -> list[tuple[str, str]]:
    unit = result.evidence.unit
    numbers = [
        (f"{result.fit.noise:.2g} {unit}", "residual: typical difference of an observed coordinate from the fitted one")
    ]
    for name, parameter in result.parameters.items():
        if parameter.value is not None and parameter.interval_95 is not None:
            text, low, high = round_to_interval(parameter.value, *parameter.interval_95)
            level = f"95 %: {low} to {high}{in_degrees(parameter)}" if low != high else "taken as exact"
            numbers.append((f"{text} {parameter.unit}", f"{_readable(name)}, {level}"))
    rivals = [(kind, odds) for kind, odds in result.odds.items() if kind != result.motion]
    if rivals:
        numbers.append((describe_odds(rivals[0][1]), f"odds of the nearest rival, {_readable(rivals[0][0])}"))
    if result.holdout is not None:
        relative_error = f"{result.holdout.relative_error:.1%} of the extent"
        text = f"error on the last third, predicted from the first two; {relative_error}"
        numbers.append((f"{result.holdout.error:.2g} {unit}", text))
    return numbers


def _parameter_table(result: Identification) -> report.Markup:
    measured = "measured in this clip"
    rows = [
        (_readable(name), *value_and_interval(parameter), "; ".join(filter(None, (measured, parameter.meaning))))
        for name, parameter in result.parameters.items()
        if parameter.value is not None
    ]
    for name, entry in result.known_values.items():
        origin = "known" if known_value_std(name, result.evidence) else "exact"
        rows.append((_readable(name), f"{entry.value:.6g} {si_unit(name)}".rstrip(), "–", origin))
    return report.table(rows, _PARAMETER_HEAD)


def _budget_table(result: Identification):
    rows = [
        (_readable(name), *(f"{parameter.budget.get(source, 0.0):.2g}" for source in BUDGET_SOURCES), parameter.unit)
        for name, parameter in result.parameters.items()
        if parameter.value is not None
    ]
    return report.table(rows, ("parameter", *BUDGET_SOURCES.values(), "unit"))


def _camera_table(result: Identification) -> report.Markup:
    rows = [
        (_readable(name), *value_and_interval(entry), entry.reason or entry.meaning or "from the motion")
        for name, entry in result.camera.items()
        if entry.value is not None
    ]
    return report.table(rows, _PARAMETER_HEAD)


def _motion_charts(result: Identification) -> list:
    """Return the curves of the motion in the axes of motion.csv, and its path in the picture."""
    evidence, motion = result.evidence, MotionAxes(result)
    unit, used = motion.unit, result.in_span(evidence.times.numpy())
    times, all_fitted, all_observed = (
        values[used] for values in (evidence.times.numpy(), result.fitted_positions, evidence.observed.numpy())
    )
    charts, paths, residuals, phases = [], [], [], []
    for index, track in enumerate(evidence.tracks):
        columns = _object_columns(index)
        observed, fitted = motion.points(all_observed[:, columns]), motion.points(all_fitted[:, columns])
        color = OBJECTS[index % len(OBJECTS)]
        for axis, name in enumerate("xy"):
            curves = [
                report.Curve(f"{track.name}, observed", observed[:, axis], color),
                report.Curve(f"{track.name}, fitted", fitted[:, axis], TEXT, "dotted"),
            ]
            if result.holdout is not None:
                predicted = motion.points(result.holdout.positions[used][:, columns])[:, axis]
                curves.append(report.Curve("predicted from the first two thirds", predicted, WARN, "dotted"))
            title = f"{name} of {track.name}"
            charts.append(report.time_chart(title, unit, times, curves))
            residual_color = OBJECTS[(2 * index + axis) % len(OBJECTS)]
            residuals.append(report.Curve(title, observed[:, axis] - fitted[:, axis], residual_color))
        paths.append(report.Curve(f"{track.name}, observed", all_observed[:, columns], color))
        paths.append(report.Curve(f"{track.name}, fitted", all_fitted[:, columns], TEXT, "dotted"))
        speed = np.gradient(fitted, times, axis=0)
        axis = int(np.nanstd(fitted, axis=0).argmax())
        phases.append(report.Curve(track.name, np.stack([fitted[:, axis], speed[:, axis]], 1), color))
    charts.append(report.time_chart("residuals: observed less fitted", unit, times, residuals))
    size = (round(evidence.view.width), round(evidence.view.height))
    if max(size) > 1.5 * evidence.extent / 10:
        charts.append(report.path_chart("paths in the picture", size, paths))
    finite_phases = [phase for phase in phases if np.isfinite(phase.values).all(1).any()]
    charts.append(report.phase_chart("phase", f"position, {unit}", f"velocity, {unit}/s", finite_phases))
    return charts + _energy_charts(result)


def _energy_charts(result: Identification) -> list:
    engine = result.engine
    if engine.mechanics is None or result.fit.model.engine.nu == 0:
        return []
    trajectory = result.trajectory
    with torch.no_grad():
        kinetic, potential = (part[0].numpy() for part in engine.mechanics.energy(trajectory))
    times = trajectory.times.numpy() + result.fit.start_time
    curves = [report.Curve("kinetic", kinetic, OBJECTS[1])]
    if np.ptp(potential) > 0:
        curves += [report.Curve("potential", potential, OBJECTS[4]), report.Curve("total", kinetic + potential, TEXT)]
    unit = "J, for a mass of 1 kg where none is known" if result.unit == "m" else "kg px²/s²"
    return [report.time_chart("energy", unit, times, curves)]


def _kinds_table(result: Identification):
    notes = {**result.indistinguishable, result.motion: "the best"}
    rows = [(_readable(name), describe_odds(odds), notes.get(name, "")) for name, odds in result.odds.items()]
    rows += [(_readable(name), "–", reason) for name, reason in result.rejected.items()]
    return report.table(rows, ("motion", "odds", "what would distinguish it, or why it was rejected"))
