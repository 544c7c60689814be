"""The page itself."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from string import Template

import cv2
import numpy as np
import torch

from physvision import __version__
from physvision.core import FileError, State, Trajectory
from physvision.predict.mechanics import energy, outlines, parameters
from physvision.predict.outcome import Outcome
from physvision.predict.palette import OBJECTS, TEXT, WARN, Color, of_object
from physvision.predict.report.charts import Line, in_the_picture, over_time
from physvision.predict.report.clip import embedded

# Points of a line; more would not be seen.
MOST = 1200
_STRIP = 6


def write_page(outcome: Outcome, film: Path | None, path: Path) -> Path:
    """Write the report of `outcome`, with `film` in it if there is one, to `path`."""
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    name = Path(outcome.stream.source).name
    parts = [_head(outcome, name), _film(outcome, film), _motion(outcome), _energy(outcome), _future(outcome)]
    parts += [_parameters(outcome), _settings(outcome)]
    text = template.substitute(title=escape(f"{name}: {outcome.scene.title}"), body="\n".join(parts))
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise FileError(f"{path}: cannot be written ({error.strerror}); make room and run again") from error
    return path


def _head(outcome: Outcome, name: str) -> str:
    rows = outcome.tables.read()
    scene, (psnr, ssim) = outcome.scene, outcome.quality()
    cards = [
        (f"{len(rows)}", f"frames, {rows['time'][-1]:.2f} s"),
        (f"{len(scene.objects)}", "objects: " + ", ".join(each.name for each in scene.objects)),
        (f"{float(np.median(rows['agreement'])):.0%}", "of the picture is explained by the state, median"),
    ]
    ahead = f"predicted {outcome.horizon:.3g} s ahead"
    for label, (mean, _, unit) in outcome.errors().items():
        if not label.endswith("rate"):
            cards.append((f"{mean:.3g} {unit}", f"mean error of {label}, {ahead}"))
    if np.isfinite(psnr):
        cards.append((f"{psnr:.1f} dB", f"PSNR of frames {ahead}; SSIM {ssim:.3f}"))
    boxes = "".join(f'<div class="card"><b>{escape(big)}</b><span>{escape(small)}</span></div>' for big, small in cards)
    notes = "".join(f'<div class="note">{escape(note)}</div>' for note in outcome.notes())
    return (
        f"<h1>{escape(scene.title[0].upper() + scene.title[1:])} in {escape(name)}</h1>"
        f"<p>What moves, how, and what happens next, as <code>{escape(outcome.settings['checkpoint'])}</code> sees it. "
        "A prediction is compared with what the same model saw when the moment came.</p>"
        f'{notes}<div class="cards">{boxes}</div>'
    )


def _film(outcome: Outcome, film: Path | None) -> str:
    if film is None:
        return ""
    address, whole = embedded(film)
    start = float(outcome.tables.read(1)["time"][0])
    rest = "" if whole else "<p>This is the beginning; prediction.mp4 beside this page has all of it.</p>"
    return (
        f'<h2>The clip</h2><video controls loop muted playsinline preload="auto" data-start="{start}" '
        f'src="{address}"></video>{rest}'
    )


def _motion(outcome: Outcome) -> str:
    """What was seen, and what had been predicted for the same moment."""
    rows = outcome.tables.read(MOST)
    figures, times, scene, colors = [], rows["time"], outcome.scene, _colors(outcome)
    for index, (name, unit) in enumerate(outcome.units.coordinates.items()):
        for kind, label, per in (("position", name, ""), ("velocity", f"rate of {name}", "/s")):
            seen = [Line(each.name, rows[kind][:, k, index], colors[k]) for k, each in enumerate(scene.objects)]
            if not any(np.ptp(line.values) > 0 for line in seen):
                continue
            expected = [
                Line(
                    f"{each.name}, predicted",
                    rows[f"expected_{kind}"][:, k, index],
                    colors[k],
                    dashed=True,
                )
                for k, each in enumerate(scene.objects)
            ]
            if unit == "rad" and kind == "position":
                for line in (*seen, *expected):
                    line.values[:] = np.arctan2(np.sin(line.values), np.cos(line.values))
            turns = unit == "rad" and kind == "position"
            figures.append(over_time(label, unit + per, times, [*seen, *expected], turns=turns))
    sure = [Line(each.name, rows["confidence"][:, k], colors[k]) for k, each in enumerate(scene.objects)]
    figures.append(over_time("confidence", "0 to 1", times, sure, low=0.0))
    likeness = [Line("PSNR of the predicted frame", rows["psnr"], WARN)]
    if np.isfinite(rows["psnr"]).any():
        figures.append(over_time(f"frame predicted {outcome.horizon:.3g} s before", "dB", times, likeness))
    title = f"<h2>Predicted against observed</h2><p>Dotted: what had been predicted {outcome.horizon:.3g} s before.</p>"
    return title + "".join(figures)


def _colors(outcome: Outcome) -> list[Color]:
    return [of_object(outcome.scene, index) for index in range(len(outcome.scene.objects))]


def _states(outcome: Outcome, rows: np.ndarray) -> State:
    device = outcome.predictor.device
    return State(torch.from_numpy(rows["q"].copy()).to(device), torch.from_numpy(rows["v"].copy()).to(device))


def _energy(outcome: Outcome) -> str:
    rows = outcome.tables.read(MOST)
    model = outcome.predictor.model
    found = energy(model, _states(outcome, rows))
    if found is None:
        return ""
    kinetic, potential = found
    total = kinetic + potential
    lines = [
        Line("kinetic", kinetic, OBJECTS[1]),
        Line("potential", potential, OBJECTS[4]),
        Line("total", total, TEXT),
    ]
    if np.ptp(potential) == 0:
        lines = [Line("kinetic", kinetic, OBJECTS[1])]
    unit = "J" if "px" not in outcome.scene.coordinates.values() else "kg px²/s² of the model's frames"
    text = (
        f"<h2>Energy</h2><p>Of each state as it is seen, by the model's own mechanics; median {np.median(total):.4g} "
        f"{unit}. Spikes are errors of the velocities that were seen, not of the motion.</p>"
    )
    return text + over_time("energy of the states", unit, rows["time"], lines)


def _future(outcome: Outcome) -> str:
    """What follows the last frame."""
    predictor, last, scene, colors = outcome.predictor, outcome.last, outcome.scene, _colors(outcome)
    ahead = Trajectory(last.ahead.q[-1:], last.ahead.v[-1:])
    device = predictor.device
    rows = outcome.tables.read(MOST)
    start = float(last.frames[-1].time)
    times = start + np.arange(ahead.steps + 1) / scene.fps
    places = outcome.units.positions(ahead.q[0].double().numpy())
    figures = []
    for index, (name, unit) in enumerate(outcome.units.coordinates.items()):
        lines = [Line(each.name, places[:, k, index], colors[k]) for k, each in enumerate(scene.objects)]
        if any(np.ptp(line.values) > 0 for line in lines):
            figures.append(over_time(f"{name} ahead", unit, times, lines, turns=unit == "rad", width=430))
    seen = outlines(predictor.model, scene, _states(outcome, rows[-MOST // 2 :]))
    following = outlines(predictor.model, scene, ahead.flatten().to(device))
    ways = [
        Line(each.name, points[:, -1], colors[k])
        for k, (each, points) in enumerate(zip(scene.objects, seen, strict=True))
    ]
    picture = (
        in_the_picture("ways in the picture", scene.size, ways, [each[:, -1] for each in following]) if ways else ""
    )
    steps = np.unique(np.linspace(0, ahead.steps, min(_STRIP, ahead.steps + 1)).round().astype(int)).tolist()
    with torch.no_grad():
        drawn = predictor.model.decode(Trajectory(ahead.q.to(device), ahead.v.to(device)), steps)[0].clamp(0, 1).cpu()
    strip = "".join(
        f'<div><img alt="" src="{_png(frame.numpy())}">{start + step / scene.fps:.2f} s</div>'
        for step, frame in zip(steps, drawn, strict=True)
    )
    return (
        f"<h2>What happens next</h2><p>{outcome.horizon:.3g} s past the last frame, at {start:.2f} s.</p>"
        f'<figure><div class="strip">{strip}</div></figure>'
        f'<div class="two">{picture}<div>{"".join(figures)}</div></div>'
    )


def _png(frame: np.ndarray) -> str:
    levels = np.rint(np.moveaxis(frame, 0, -1) * 255).astype(np.uint8)
    _, data = cv2.imencode(".png", levels if levels.shape[-1] == 1 else levels[..., ::-1])
    return f"data:image/png;base64,{base64.b64encode(data.tobytes()).decode()}"


def _parameters(outcome: Outcome) -> str:
    rows = []
    for name, (values, unit, learned) in parameters(outcome.predictor.model, outcome.scene).items():
        numbers, unit = outcome.units.parameter(values, unit)
        text = ", ".join(f"{value:.5g}" for value in numbers)
        origin = "learned" if learned else "given"
        rows.append(
            f"<tr><td>{escape(name)}</td><td>{text} {escape('' if unit == '1' else unit)}</td><td>{origin}</td></tr>"
        )
    if not rows:
        return ""
    return f"<h2>Parameters of the physics</h2><table>{''.join(rows)}</table>"


def _settings(outcome: Outcome) -> str:
    found, scene = outcome.stream.description, outcome.scene
    x, y, wide, high = outcome.stream.crop
    about = {
        **outcome.settings,
        "video": outcome.stream.source
        + (f": {found.width} x {found.height}, {found.fps:.6g} fps, {found.codec}" if found else ""),
        "part used": f"{wide} x {high} pixels at ({x}, {y}), as {scene.size[0]} x {scene.size[1]}, {scene.color}",
        "frame rate used": f"{scene.fps:g} frames a second",
        "confidence": "the encoder's own, or else the share of the picture's variance that the redrawn state explains",
        "took": f"{outcome.seconds:.1f} s, {outcome.tables.rows / max(outcome.seconds, 1e-9):.0f} frames a second",
        "physvision": __version__,
    }
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td><code>{escape(text)}</code></td></tr>" for name, text in about.items()
    )
    return f"<h2>Settings</h2><table>{rows}</table>"
