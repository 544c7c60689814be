"""Page report.html of a prediction."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from physvision.core import State
from physvision.prediction.mechanics import energy, outlines
from physvision.prediction.report_data import ReportData
from physvision.report import (
    Curve,
    Markup,
    Page,
    code,
    embed_video,
    image_strip,
    object_colors,
    parameter_table,
    path_chart,
    side_by_side,
    stat_cards,
    table,
    time_chart,
)
from physvision.report.palette import OBJECTS, TEXT, WARN

MAX_POINTS = 1200  # of a curve; more are not visible
_STRIP_FRAMES = 6


def prediction_page(data: ReportData, video: Path | None) -> Page:
    """Make the page of a run, with its video if there is one."""
    ahead = f"{data.predictor.horizon:.3g} s"
    page = Page(
        f"{data.scene.title} in {data.name}",
        "Observed motion and its prediction by the checkpoint. A prediction is compared with what the same model "
        "observed at the predicted time.",
        data.notes(),
    )
    page.add(_key_numbers(data))
    if video is not None:
        page.section("The clip", embed_video(video, float(data.rows["time"][0])))
    page.section("Predicted and observed motion", *_motion_charts(data), text=f"Dotted: predicted {ahead} before.")
    _add_energy(page, data)
    start = float(data.last_segment.frames[-1].time)
    page.section(
        "What happens next", *_future_charts(data, start), text=f"{ahead} past the last frame, at {start:.2f} s."
    )
    if data.parameters:
        text = "Values are those of the checkpoint. This clip determined none of them."
        page.section("Physical parameters", parameter_table(data.parameters), text=text)
    page.section("Settings", _settings_table(data))
    return page


def _key_numbers(data: ReportData) -> Markup:
    rows, objects, (psnr, ssim) = data.rows, data.scene.objects, data.quality()
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
    return stat_cards(numbers)


def _curves(data: ReportData, values: np.ndarray, *, predicted: bool = False) -> list[Curve]:
    """Make a curve for each object, of values (times, objects)."""
    objects = zip(data.scene.objects, object_colors(data.scene.objects), values.T, strict=True)
    suffix, style = (", predicted", "dotted") if predicted else ("", "solid")
    return [Curve(item.name + suffix, column, color, style) for item, color, column in objects]


def _motion_charts(data: ReportData) -> list[Markup]:
    """Draw observed and predicted coordinates, confidence, and the quality of the predicted frames."""
    rows, figures = data.subsample(MAX_POINTS), []
    for index, (name, unit) in enumerate(data.units.coordinates.items()):
        for kind, label, per in (("position", name, ""), ("velocity", f"rate of {name}", "/s")):
            observed, predicted = rows[kind][..., index], rows[f"predicted_{kind}"][..., index]
            if not np.ptp(observed, axis=0).any():
                continue
            wraps = unit == "rad" and kind == "position"
            if wraps:
                observed, predicted = (np.arctan2(np.sin(angle), np.cos(angle)) for angle in (observed, predicted))
            curves = [*_curves(data, observed), *_curves(data, predicted, predicted=True)]
            figures.append(time_chart(label, unit + per, rows["time"], curves, wraps=wraps))
    figures.append(time_chart("confidence", "0 to 1", rows["time"], _curves(data, rows["confidence"]), low=0.0))
    if np.isfinite(rows["psnr"]).any():
        title = f"frame predicted {data.predictor.horizon:.3g} s before"
        figures.append(
            time_chart(title, "dB", rows["time"], [Curve("PSNR of the predicted frame", rows["psnr"], WARN)])
        )
    return figures


def _states(data: ReportData, rows: np.ndarray) -> State:
    device = data.predictor.device
    return State(torch.from_numpy(rows["q"].copy()).to(device), torch.from_numpy(rows["v"].copy()).to(device))


def _add_energy(page: Page, data: ReportData) -> None:
    rows = data.subsample(MAX_POINTS)
    energies = energy(data.predictor.model, _states(data, rows))
    if energies is None:
        return
    kinetic, potential = energies
    curves = [Curve("kinetic", kinetic, OBJECTS[1])]
    if np.ptp(potential) > 0:
        curves += [Curve("potential", potential, OBJECTS[4]), Curve("total", kinetic + potential, TEXT)]
    unit = "J" if "px" not in data.scene.coordinates.values() else "kg px²/s² of the model's frames"
    text = (
        f"Energy of each observed state by the model's own mechanics; median {np.median(kinetic + potential):.4g} "
        f"{unit}. Spikes are errors of the observed velocities, not of the motion."
    )
    page.section("Energy", time_chart("energy of the states", unit, rows["time"], curves), text=text)


def _future_charts(data: ReportData, start: float) -> list[Markup]:
    """Draw the predicted motion and frames after the last frame, at `start`, s."""
    predictor, scene, future = data.predictor, data.scene, data.last_segment.future
    times = start + np.arange(len(future)) / scene.fps
    positions = data.units.positions(future.q[0].double().numpy())
    figures = []
    for index, (name, unit) in enumerate(data.units.coordinates.items()):
        if np.ptp(positions[..., index], axis=0).any():
            curves = _curves(data, positions[..., index])
            figures.append(time_chart(f"{name} ahead", unit, times, curves, wraps=unit == "rad", width=430))
    recent = _states(data, data.subsample(MAX_POINTS)[-MAX_POINTS // 2 :])
    observed = outlines(predictor.model, scene, recent)
    predicted = outlines(predictor.model, scene, future.flatten().to(predictor.device))
    paths = []
    for item, color, past, ahead in zip(scene.objects, object_colors(scene.objects), observed, predicted, strict=False):
        paths += [Curve(item.name, past[:, -1], color), Curve("", ahead[:, -1], color, "dotted")]
    chart = [path_chart("paths in the image", scene.size, paths)] if paths else []
    steps = np.unique(np.linspace(0, future.steps, min(_STRIP_FRAMES, len(future))).round().astype(int)).tolist()
    frames = (predictor.decode(future, steps).movedim(1, -1) * 255).round().byte().numpy()
    captions = [f"{times[step]:.2f} s" for step in steps]
    return [image_strip(dict(zip(captions, frames, strict=True))), side_by_side(chart, figures)]


def _settings_table(data: ReportData) -> Markup:
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
        "confidence": "the encoder's own, or else the fraction of variance that the rendered state explains",
        "duration of the run": f"{data.elapsed:.1f} s, {data.frames_per_second:.0f} frames per second",
        "physvision": version("physvision"),
    }
    return table((name, code(text)) for name, text in settings.items())
