"""report.html of a prediction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from physvision import __version__
from physvision.core import State
from physvision.prediction.mechanics import energy, outlines
from physvision.prediction.outcome import Outcome
from physvision.report import (
    Curve,
    Markup,
    Page,
    beside,
    cards,
    code,
    embedded,
    object_colors,
    parameter_table,
    path_chart,
    strip,
    table,
    time_chart,
)
from physvision.report.palette import OBJECTS, TEXT, WARN

# Points of a line; more would not be seen.
MOST = 1200
_STRIP = 6


def prediction_page(outcome: Outcome, film: Path | None) -> Page:
    """The report of `outcome`, with `film` in it if there is one."""
    ahead = f"{outcome.predictor.horizon:.3g} s"
    page = Page(
        f"{outcome.scene.title} in {outcome.name}",
        "What moves, how, and what happens next, as the checkpoint sees it. A prediction is compared with what the "
        "same model saw when the moment came.",
        outcome.notes(),
    )
    page.add(_cards(outcome))
    if film is not None:
        page.section("The clip", embedded(film, float(outcome.rows["time"][0])))
    page.section(
        "Predicted against observed", *_motion(outcome), text=f"Dotted: what had been predicted {ahead} before."
    )
    _add_energy(page, outcome)
    start = float(outcome.last.frames[-1].time)
    page.section("What happens next", *_future(outcome, start), text=f"{ahead} past the last frame, at {start:.2f} s.")
    if outcome.parameters:
        text = "Values are those of the checkpoint. This clip determined none of them."
        page.section("Parameters of the physics", parameter_table(outcome.parameters), text=text)
    page.section("Settings", _settings(outcome))
    return page


def _cards(outcome: Outcome) -> Markup:
    rows, objects, (psnr, ssim) = outcome.rows, outcome.scene.objects, outcome.quality()
    numbers = [
        (f"{len(rows)}", f"frames, {rows['time'][-1]:.2f} s"),
        (f"{len(objects)}", "objects: " + ", ".join(each.name for each in objects)),
        (f"{float(np.median(rows['agreement'])):.0%}", "of the picture is explained by the state, median"),
    ]
    ahead = f"predicted {outcome.predictor.horizon:.3g} s ahead"
    for label, (mean, _, unit) in outcome.errors().items():
        if not label.endswith("rate"):
            numbers.append((f"{mean:.3g} {unit}", f"mean error of {label}, {ahead}"))
    if np.isfinite(psnr):
        numbers.append((f"{psnr:.1f} dB", f"PSNR of frames {ahead}; SSIM {ssim:.3f}"))
    return cards(numbers)


def _lines(outcome: Outcome, values: np.ndarray, *, expected: bool = False) -> list[Curve]:
    """A line for each object, of values (times, objects)."""
    named = zip(outcome.scene.objects, object_colors(outcome.scene.objects), values.T, strict=True)
    if expected:
        return [Curve(f"{each.name}, predicted", column, color, "dotted") for each, color, column in named]
    return [Curve(each.name, column, color) for each, color, column in named]


def _motion(outcome: Outcome) -> list[Markup]:
    """What was seen, and what had been predicted for the same moment."""
    rows, figures = outcome.thinned(MOST), []
    for index, (name, unit) in enumerate(outcome.units.coordinates.items()):
        for kind, label, per in (("position", name, ""), ("velocity", f"rate of {name}", "/s")):
            seen, expected = rows[kind][..., index], rows[f"expected_{kind}"][..., index]
            if not np.ptp(seen, axis=0).any():
                continue
            turns = unit == "rad" and kind == "position"
            if turns:
                seen, expected = (np.arctan2(np.sin(each), np.cos(each)) for each in (seen, expected))
            lines = [*_lines(outcome, seen), *_lines(outcome, expected, expected=True)]
            figures.append(time_chart(label, unit + per, rows["time"], lines, turns=turns))
    figures.append(time_chart("confidence", "0 to 1", rows["time"], _lines(outcome, rows["confidence"]), low=0.0))
    if np.isfinite(rows["psnr"]).any():
        title = f"frame predicted {outcome.predictor.horizon:.3g} s before"
        figures.append(
            time_chart(title, "dB", rows["time"], [Curve("PSNR of the predicted frame", rows["psnr"], WARN)])
        )
    return figures


def _states(outcome: Outcome, rows: np.ndarray) -> State:
    device = outcome.predictor.device
    return State(torch.from_numpy(rows["q"].copy()).to(device), torch.from_numpy(rows["v"].copy()).to(device))


def _add_energy(page: Page, outcome: Outcome) -> None:
    rows = outcome.thinned(MOST)
    found = energy(outcome.predictor.model, _states(outcome, rows))
    if found is None:
        return
    kinetic, potential = found
    lines = [Curve("kinetic", kinetic, OBJECTS[1])]
    if np.ptp(potential) > 0:
        lines += [Curve("potential", potential, OBJECTS[4]), Curve("total", kinetic + potential, TEXT)]
    unit = "J" if "px" not in outcome.scene.coordinates.values() else "kg px²/s² of the model's frames"
    text = (
        f"Of each state as it is seen, by the model's own mechanics; median {np.median(kinetic + potential):.4g} "
        f"{unit}. Spikes are errors of the velocities that were seen, not of the motion."
    )
    page.section("Energy", time_chart("energy of the states", unit, rows["time"], lines), text=text)


def _future(outcome: Outcome, start: float) -> list[Markup]:
    """What follows the last frame."""
    predictor, scene, future = outcome.predictor, outcome.scene, outcome.last.future
    times = start + np.arange(len(future)) / scene.fps
    places = outcome.units.positions(future.q[0].double().numpy())
    figures = []
    for index, (name, unit) in enumerate(outcome.units.coordinates.items()):
        if np.ptp(places[..., index], axis=0).any():
            lines = _lines(outcome, places[..., index])
            figures.append(time_chart(f"{name} ahead", unit, times, lines, turns=unit == "rad", width=430))
    seen = outlines(predictor.model, scene, _states(outcome, outcome.thinned(MOST)[-MOST // 2 :]))
    following = outlines(predictor.model, scene, future.flatten().to(predictor.device))
    paths = []
    for each, color, before, after in zip(scene.objects, object_colors(scene.objects), seen, following, strict=False):
        paths += [Curve(each.name, before[:, -1], color), Curve("", after[:, -1], color, "dotted")]
    picture = [path_chart("paths in the picture", scene.size, paths)] if paths else []
    steps = np.unique(np.linspace(0, future.steps, min(_STRIP, len(future))).round().astype(int)).tolist()
    drawn = (predictor.draw(future, steps).movedim(1, -1) * 255).round().byte().numpy()
    captions = [f"{times[step]:.2f} s" for step in steps]
    return [strip(dict(zip(captions, drawn, strict=True))), beside(picture, figures)]


def _settings(outcome: Outcome) -> Markup:
    found, scene = outcome.stream.description, outcome.scene
    x, y, wide, high = outcome.stream.crop
    described = f": {found.width} x {found.height}, {found.fps:.6g} fps, {found.codec}" if found else ""
    about = {
        **outcome.settings,
        "horizon": f"{outcome.predictor.horizon:.4g} s",
        "device": str(outcome.predictor.device),
        "video": outcome.stream.source + described,
        "part used": f"{wide} x {high} pixels at ({x}, {y}), as {scene.size[0]} x {scene.size[1]}, {scene.color}",
        "frame rate used": f"{scene.fps:g} frames a second",
        "confidence": "the encoder's own, or else the share of the picture's variance that the redrawn state explains",
        "took": f"{outcome.seconds:.1f} s, {outcome.rate:.0f} frames a second",
        "physvision": __version__,
    }
    return table((name, code(text)) for name, text in about.items())
