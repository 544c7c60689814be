"""What `identify` leaves in a folder: parameters.json, states.csv, prediction.mp4 and report.html."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from physvision import video
from physvision.core import Clip
from physvision.identification.comparison import extent
from physvision.identification.identification import Identification
from physvision.identification.identify import Source
from physvision.report import (
    Canvas,
    Curve,
    Mark,
    OutputFolder,
    Page,
    Panel,
    ParameterRow,
    VideoFigure,
    embed_video,
    parameter_table,
    path_chart,
    phase_chart,
    stat_cards,
    table,
    time_chart,
)
from physvision.report.palette import OBJECTS, TEXT, WARN

_AHEAD = 0.5  # s that the film shows of what comes next
_FASTEST = 60.0  # frames a second of the film


def save(
    found: Identification,
    folder: str | os.PathLike[str],
    source: Source,
    film: bool = True,
    start: float | None = None,
) -> list[Path]:
    """Write everything; the paths of the files.

    Args:
        found: what is written.
        folder: where to.
        source: the clip, or the tracks.
        film: whether to draw a film of a clip.
        start: s of the clip at which its tracks begin; its beginning if not given.
    """
    with OutputFolder(folder) as made:
        paths = [made / "parameters.json", made / "states.csv"]
        found.write(paths[0])
        _states(found, paths[1])
        moving = None
        if film and isinstance(source, Clip | str | os.PathLike):
            moving = _film(found, source, made / "prediction.mp4", start or 0.0)
            paths.append(moving)
        paths.append(_page(found, moving).write(made / "report.html"))
    return paths


def _states(found: Identification, path: Path) -> None:
    """A row a moment: where each thing was seen, and where the fitted motion is; y down."""
    times = found.case.times.numpy()
    fitted = found.places(times)
    names = [track.name.replace(" ", "_") for track in found.case.tracks]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        kinds = [f"{kind}_{found.case.unit}" for kind in ("x", "y", "fitted_x", "fitted_y")]
        writer.writerow(["time_s", *(f"{name}_{kind}" for name in names for kind in kinds)])
        for row, moment in enumerate(times):
            values: list[float] = []
            for k in range(len(names)):
                values += [*found.case.seen(k)[row].tolist(), *fitted[row, 2 * k : 2 * k + 2].tolist()]
            writer.writerow([f"{moment:.6f}", *("" if np.isnan(value) else f"{value:.4f}" for value in values)])


def _film(found: Identification, source: Clip | str | os.PathLike[str], path: Path, start: float) -> Path:
    """The clip with the track, the fitted motion, and what follows from it for the next half second."""
    rate = min(_FASTEST, 1 / found.case.dt)
    size = (round(found.case.view.width), round(found.case.view.height))
    film, canvas = VideoFigure(path, rate), Canvas(size, ["seen and fitted"], rate)
    try:
        film.add(_drawn(found, source, canvas, rate, start))
        film.close()
    except BaseException:
        film.abandon()
        raise
    return path


def _drawn(found: Identification, source, canvas: Canvas, rate: float, start: float) -> Iterator[np.ndarray]:
    """Frames of the film, from `start` on; of a quick clip every n-th."""
    times = found.case.times.numpy()
    every = max(1, round(1 / (found.case.dt * rate)))
    if isinstance(source, Clip):
        frames = zip(source.times.tolist(), source.frames.numpy(), strict=True)
    else:
        frames = video.stream(source, color="rgb")
    tracks = found.case.tracks
    shown, fitted = range(0, len(times), every), found.places(times)
    further = found.places((times[::every, None] + np.linspace(0, _AHEAD, 16)).ravel()).reshape(len(shown), 16, -1)
    for number, (_, frame) in enumerate(pair for pair in frames if pair[0] >= start):
        if number >= len(times):
            return
        if number % every:
            continue
        ahead = further[shown.index(number)]
        past = fitted[max(0, number - round(1 / found.case.dt)) : number + 1]
        marks = []
        for k, track in enumerate(tracks):
            color, pair = OBJECTS[k % len(OBJECTS)], slice(2 * k, 2 * k + 2)
            place = track.positions[number : number + 1] if track.observed[number] else None
            inside = ahead[:, pair][np.isfinite(ahead[:, pair]).all(1)]
            trail = past[:, pair][np.isfinite(past[:, pair]).all(1)]
            marks.append(
                Mark(color, place, track.radius or 3.0, trail if len(trail) else None, inside if len(inside) else None)
            )
        yield canvas.draw([Panel(np.ascontiguousarray(frame), marks)], float(times[number]))


def _page(found: Identification, film: Path | None) -> Page:
    page = Page(
        f"{found.motion.replace('_', ' ')}: what the clip tells",
        "The law that what moves in the clip follows, its parameters with 95 % intervals, and a test on the last third "
        "of the clip.",
        list(found.warnings),
    )
    page.add(stat_cards(_numbers(found)))
    if film is not None:
        page.section(
            "The clip",
            embed_video(film),
            text="Rings: what was seen. Lines: the fitted motion. Dots: the next half second.",
        )
    page.section("Parameters", parameter_table(_parameters(found)), *_silent(found))
    page.section("SampledState and fitted", *_motion(found))
    page.section("Which motion", _kinds(found), text="The larger the score, the better a kind explains what was seen.")
    return page


def _numbers(found: Identification) -> list[tuple[str, str]]:
    numbers = [(f"{found.fit.noise:.2g} {found.case.unit}", "usual distance of the fitted motion from what was seen")]
    for name, each in found.parameters.items():
        if each.value is not None and each.interval_68 is not None:
            half = (each.interval_68[1] - each.interval_68[0]) / 2
            # As many digits as one can be sure of.
            digits = min(max(0, -math.floor(math.log10(max(half, 1e-12)))), 8)
            numbers.append((f"{each.value:.{digits}f} ± {half:.{digits}f} {each.unit}", name.replace("_", " ")))
    if found.held_out is not None:
        held = found.held_out
        text = f"error on the last third, predicted from the first two; {held.share:.1%} of the extent"
        numbers.append((f"{held.error:.2g} {found.case.unit}", text))
    return numbers


def _parameters(found: Identification) -> list[ParameterRow]:
    shown = [
        ParameterRow(name.replace("_", " "), [each.value], each.unit or "1", "measured in this clip", each.interval_95)
        for name, each in found.parameters.items()
        if each.value is not None
    ]
    return shown + [ParameterRow(name, [known.value], "1", "known") for name, known in found.known.items()]


def _silent(found: Identification) -> list:
    """What the clip does not tell, and why."""
    rows = [(name.replace("_", " "), each.reason) for name, each in found.parameters.items() if not each.identifiable]
    return [table(rows, ("not identifiable", "why"))] if rows else []


def _motion(found: Identification) -> list:
    times = found.case.times.numpy()
    fitted = found.places(times)
    figures, paths, residuals, phases = [], [], [], []
    for k, track in enumerate(found.case.tracks):
        seen, line = found.case.seen(k).numpy(), fitted[:, 2 * k : 2 * k + 2]
        color = OBJECTS[k % len(OBJECTS)]
        for axis, name in enumerate("xy"):
            lines = [Curve(f"{track.name}, seen", seen[:, axis], color)]
            lines.append(Curve(f"{track.name}, fitted", line[:, axis], TEXT, "dotted"))
            if found.held_out is not None:
                lines.append(
                    Curve("predicted from the first two thirds", found.held_out.places[:, 2 * k + axis], WARN, "dotted")
                )
            figures.append(time_chart(f"{name} of {track.name}", found.case.unit, times, lines))
            residuals.append(
                Curve(f"{name} of {track.name}", seen[:, axis] - line[:, axis], OBJECTS[(2 * k + axis) % len(OBJECTS)])
            )
        paths += [Curve(f"{track.name}, seen", seen, color), Curve(f"{track.name}, fitted", line, TEXT, "dotted")]
        speed = np.gradient(line, times, axis=0)
        axis = int(np.nanstd(line, axis=0).argmax())
        phases.append(Curve(track.name, np.stack([line[:, axis], speed[:, axis]], 1), color))
    figures.append(time_chart("what is left: seen less fitted", found.case.unit, times, residuals))
    size = (round(found.case.view.width), round(found.case.view.height))
    if max(size) > 1.5 * extent(found.case) / 10:
        figures.append(path_chart("paths", size, paths))
    figures.append(
        phase_chart(
            "phase",
            f"position, {found.case.unit}",
            f"velocity, {found.case.unit}/s",
            [line for line in phases if np.isfinite(line.values).all(1).any()],
        )
    )
    figures += _energy(found)
    return figures


def _energy(found: Identification) -> list:
    engine = found.engine
    if engine.mechanics is None or found.fit.model.engine.nu == 0:
        return []
    trajectory = found.trajectory
    with torch.no_grad():
        kinetic, potential = (part[0].numpy() for part in engine.mechanics.energy(trajectory))
    times = trajectory.times.numpy() + found.fit.model_start
    lines = [Curve("kinetic", kinetic, OBJECTS[1])]
    if np.ptp(potential) > 0:
        lines += [Curve("potential", potential, OBJECTS[4]), Curve("total", kinetic + potential, TEXT)]
    unit = "J, of a mass of 1 kg where none is known" if found.unit == "m" else "kg px²/s²"
    return [time_chart("energy", unit, times, lines)]


def _kinds(found: Identification):
    rows = [(name.replace("_", " "), f"{score:.4g}", found.alike.get(name, "the one" if name == found.motion else ""))
            for name, score in sorted(found.scores.items(), key=lambda item: -item[1])]  # fmt: skip
    rows += [(name.replace("_", " "), "–", reason) for name, reason in found.refused.items()]
    return table(rows, ("motion", "score", "what would tell it apart, or why not"))
