"""report.html of a prediction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from physvision import __version__
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

# Points of a line; more would not be seen.
MOST = 1200
_STRIP = 6


def prediction_page(data: ReportData, film: Path | None) -> Page:
    """The report of `data`, with `film` in it if there is one."""
    ahead = f"{data.predictor.horizon:.3g} s"
    page = Page(
        f"{data.scene.title} in {data.name}",
        "What moves, how, and what happens next, as the checkpoint sees it. A prediction is compared with what the "
        "same model saw when the moment came.",
        data.notes(),
    )
    page.add(_cards(data))
    if film is not None:
        page.section("The clip", embed_video(film, float(data.rows["time"][0])))
    page.section("Predicted against observed", *_motion(data), text=f"Dotted: what had been predicted {ahead} before.")
    _add_energy(page, data)
    start = float(data.last.frames[-1].time)
    page.section("What happens next", *_future(data, start), text=f"{ahead} past the last frame, at {start:.2f} s.")
    if data.parameters:
        text = "Values are those of the checkpoint. This clip determined none of them."
        page.section("Parameters of the physics", parameter_table(data.parameters), text=text)
    page.section("Settings", _settings(data))
    return page


def _cards(data: ReportData) -> Markup:
    rows, objects, (psnr, ssim) = data.rows, data.scene.objects, data.quality()
    numbers = [
        (f"{len(rows)}", f"frames, {rows['time'][-1]:.2f} s"),
        (f"{len(objects)}", "objects: " + ", ".join(each.name for each in objects)),
        (f"{float(np.median(rows['agreement'])):.0%}", "of the picture is explained by the state, median"),
    ]
    ahead = f"predicted {data.predictor.horizon:.3g} s ahead"
    for label, (mean, _, unit) in data.errors().items():
        if not label.endswith("rate"):
            numbers.append((f"{mean:.3g} {unit}", f"mean error of {label}, {ahead}"))
    if np.isfinite(psnr):
        numbers.append((f"{psnr:.1f} dB", f"PSNR of frames {ahead}; SSIM {ssim:.3f}"))
    return stat_cards(numbers)


def _lines(data: ReportData, values: np.ndarray, *, expected: bool = False) -> list[Curve]:
    """A line for each object, of values (times, objects)."""
    named = zip(data.scene.objects, object_colors(data.scene.objects), values.T, strict=True)
    if expected:
        return [Curve(f"{each.name}, predicted", column, color, "dotted") for each, color, column in named]
    return [Curve(each.name, column, color) for each, color, column in named]


def _motion(data: ReportData) -> list[Markup]:
    """What was seen, and what had been predicted for the same moment."""
    rows, figures = data.thinned(MOST), []
    for index, (name, unit) in enumerate(data.units.coordinates.items()):
        for kind, label, per in (("position", name, ""), ("velocity", f"rate of {name}", "/s")):
            seen, expected = rows[kind][..., index], rows[f"expected_{kind}"][..., index]
            if not np.ptp(seen, axis=0).any():
                continue
            turns = unit == "rad" and kind == "position"
            if turns:
                seen, expected = (np.arctan2(np.sin(each), np.cos(each)) for each in (seen, expected))
            lines = [*_lines(data, seen), *_lines(data, expected, expected=True)]
            figures.append(time_chart(label, unit + per, rows["time"], lines, turns=turns))
    figures.append(time_chart("confidence", "0 to 1", rows["time"], _lines(data, rows["confidence"]), low=0.0))
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
    rows = data.thinned(MOST)
    found = energy(data.predictor.model, _states(data, rows))
    if found is None:
        return
    kinetic, potential = found
    lines = [Curve("kinetic", kinetic, OBJECTS[1])]
    if np.ptp(potential) > 0:
        lines += [Curve("potential", potential, OBJECTS[4]), Curve("total", kinetic + potential, TEXT)]
    unit = "J" if "px" not in data.scene.coordinates.values() else "kg px²/s² of the model's frames"
    text = (
        f"Of each state as it is seen, by the model's own mechanics; median {np.median(kinetic + potential):.4g} "
        f"{unit}. Spikes are errors of the velocities that were seen, not of the motion."
    )
    page.section("Energy", time_chart("energy of the states", unit, rows["time"], lines), text=text)


def _future(data: ReportData, start: float) -> list[Markup]:
    """What follows the last frame."""
    predictor, scene, future = data.predictor, data.scene, data.last.future
    times = start + np.arange(len(future)) / scene.fps
    places = data.units.positions(future.q[0].double().numpy())
    figures = []
    for index, (name, unit) in enumerate(data.units.coordinates.items()):
        if np.ptp(places[..., index], axis=0).any():
            lines = _lines(data, places[..., index])
            figures.append(time_chart(f"{name} ahead", unit, times, lines, turns=unit == "rad", width=430))
    seen = outlines(predictor.model, scene, _states(data, data.thinned(MOST)[-MOST // 2 :]))
    following = outlines(predictor.model, scene, future.flatten().to(predictor.device))
    paths = []
    for each, color, before, after in zip(scene.objects, object_colors(scene.objects), seen, following, strict=False):
        paths += [Curve(each.name, before[:, -1], color), Curve("", after[:, -1], color, "dotted")]
    picture = [path_chart("paths in the picture", scene.size, paths)] if paths else []
    steps = np.unique(np.linspace(0, future.steps, min(_STRIP, len(future))).round().astype(int)).tolist()
    drawn = (predictor.draw(future, steps).movedim(1, -1) * 255).round().byte().numpy()
    captions = [f"{times[step]:.2f} s" for step in steps]
    return [image_strip(dict(zip(captions, drawn, strict=True))), side_by_side(picture, figures)]


def _settings(data: ReportData) -> Markup:
    found, scene = data.stream.info, data.scene
    x, y, wide, high = data.stream.crop
    described = f": {found.width} x {found.height}, {found.fps:.6g} fps, {found.codec}" if found else ""
    about = {
        **data.settings,
        "horizon": f"{data.predictor.horizon:.4g} s",
        "device": str(data.predictor.device),
        "video": data.stream.source + described,
        "part used": f"{wide} x {high} pixels at ({x}, {y}), as {scene.size[0]} x {scene.size[1]}, {scene.color}",
        "frame rate used": f"{scene.fps:g} frames a second",
        "confidence": "the encoder's own, or else the share of the picture's variance that the redrawn state explains",
        "took": f"{data.seconds:.1f} s, {data.rate:.0f} frames a second",
        "physvision": __version__,
    }
    return table((name, code(text)) for name, text in about.items())
