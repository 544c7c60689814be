"""`identify` on real clips, filmed by others, from the command line alone: what is known beside what is found.

The clips are not part of the project: `folder` holds those that there are. Each is identified with its kind of motion,
what is known, and the rate at which it was filmed; seconds are the processor's and those of the clock, report and film
included. The last third of a motion is predicted from the first two thirds, the halves of a long one are compared, and
where nobody tells that a clip is in slow motion the answer must ask for the rate.

    python experiments/identify_real.py --folder path/to/clips [--only spring,fall] [--out out/identify_real]
"""

from __future__ import annotations

import csv
import json
import math
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jsonargparse import auto_cli

from physvision import video

SECONDS, SHARE, PIXELS, REPEATED, EXPLAINED, HARDLY = 60.0, 0.02, 2.0, 0.01, 0.03, 0.1


@dataclass(frozen=True)
class Known:
    """What is known of a clip: a value, how far one may be off, and whether its interval must hold it."""

    value: float
    off: float
    inside: bool = False


@dataclass(frozen=True)
class Real:
    """A clip and what is told of it.

    Attributes:
        file: its name.
        options: of the command.
        known: what is to be found.
        repeats: parameters that are compared between the halves of the clip.
        asks: what a note must contain.
        fitted: whether the last third is to be predicted.
        shares: whether one ratio of masses must explain the velocities of two things.
    """

    file: str
    options: str
    known: Mapping[str, Known] = field(default_factory=dict)
    repeats: tuple[str, ...] = ()
    asks: str | None = None
    fitted: bool = True
    shares: bool = False


def _launch(speed: float, degrees: float) -> dict[str, Known]:
    return {"speed": Known(speed, 0.03 * speed), "angle": Known(math.radians(degrees), math.radians(2))}


GRAVITY = {"gravity": Known(9.81, 0.05 * 9.81, True)}
CLIPS = {
    "pendulum": Real(
        "pendulum_red_apple.mov", "--motion pendulum --known gravity=9.81", repeats=("length", "period"),
    ),
    "projectile 30": Real(
        "projectile_30.mp4", "--motion projectile --known gravity=9.81 --fps 240", _launch(2.726, 30),
    ),
    "projectile 60": Real(
        "projectile_60.mp4", "--motion projectile --known gravity=9.81 --fps 240", _launch(2.699, 60),
    ),
    "slide": Real("slide_1.mp4", "--motion slide --fps 240", {"angle": Known(math.radians(22), math.radians(2))}),
    "spring": Real(
        "spring_vertical.mp4", "--motion spring --known mass=0.0243",
        {"stiffness": Known(6.77, 0.02 * 6.77), "period": Known(0.3765, 0.01 * 0.3765)}, ("stiffness",),
    ),
    "fall": Real("fall.mp4", "--motion fall --scale 142,68,144,306.5=1.85±0.074", GRAVITY),
    "toss": Real("ball_toss.mov", "--motion projectile --scale 398.7±15.9", GRAVITY),
    "bounce": Real("bounce_stick.mp4", "--motion bounce"),
    "pucks": Real("pucks.mp4", "--motion collision --fps 240", shares=True),
    "glider": Real("glider.mp4", "--motion slide"),
    "rate not told": Real("projectile_30.mp4", "--motion projectile --known gravity=9.81", asks="--fps", fitted=False),
    "nor with a scale": Real("projectile_30.mp4", "--motion projectile --scale 295", asks="--fps", fitted=False),
    # The table's millimetres are a camera's: the inner arm, of 91.74 mm, fills 445 of them, gravity 46.9 m/s².
    "double pendulum": Real(
        "../double_pendulum.csv", "--motion double_pendulum --unit mm --scale 4.85±0.05",
        {"length_1": Known(0.09174, 0.02 * 0.09174), "length_2": Known(0.06933, 0.02 * 0.06933), **GRAVITY},
        fitted=False,
    ),
}  # fmt: skip


def identified(path: Path, options: str, out: Path) -> tuple[dict | None, str, float, float]:
    """What the command leaves, what it says, its processor seconds and those of the clock."""
    started, used = time.perf_counter(), _processor()
    run = [sys.executable, "-m", "physvision.cli", "identify", str(path), *shlex.split(options), "--out", str(out)]
    done = subprocess.run(run, capture_output=True, text=True)
    seconds = _processor() - used, time.perf_counter() - started
    found = json.loads((out / "parameters.json").read_text()) if done.returncode == 0 else None
    return found, done.stdout if found else done.stderr.strip().splitlines()[-1], *seconds


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def verdict(fine: bool) -> str:
    """What stands at the end of a line."""
    return "met" if fine else "MISSED"


def show(name: str, clip: Real, folder: Path, out: Path) -> None:
    """Identify one clip, and print a line for everything that is known of it."""
    path, place = folder / clip.file, out / name.replace(" ", "_")
    found, said, processor, clock = identified(path, clip.options, place)
    print(f"\n{name}: {clip.file} {clip.options}")
    print(f"  {processor:.0f} s of processor, {clock:.0f} s of the clock: {verdict(processor < SECONDS)}")
    if found is None:
        print(f"  refused: {said}")
        return
    noise, unit = next((value, key.removeprefix("noise_")) for key, value in found.items() if key.startswith("noise_"))
    print(f"  fitted to {noise:.3g} {unit}")
    if clip.fitted:
        held = found.get("holdout", {"error_px": math.nan, "relative_error": math.nan})
        error, share = (next(v for k, v in held.items() if k.startswith("error")), held["relative_error"])
        unit = next(k for k in held if k.startswith("error")).removeprefix("error_")
        fine = share < SHARE or (unit == "px" and error < PIXELS)
        print(f"  last third predicted to {error:.4g} {unit}, {share:.2%} of the extent: {verdict(fine)}")
    for parameter, each in found["parameters"].items():
        show_parameter(parameter, each, clip.known.get(parameter))
    if clip.asks:
        print(f"  asks for the rate: {verdict(any(clip.asks in note for note in found['warnings']))}")
    for note in found["warnings"]:
        print(f"  note: {note}")
    if clip.repeats:
        show_halves(clip, path, place)
    if clip.shares:
        show_momentum(place / "states.csv")


def show_parameter(name: str, each: Mapping, known: Known | None) -> None:
    """A line for one parameter."""
    if each["value"] is None:
        print(f"  {name:<15} not identifiable: {each['reason']}")
        return
    low, high = each["interval_95"]
    line = f"  {name:<15} {each['value']:.5g} {each['unit']}, 95 %: {low:.5g} to {high:.5g}"
    if known is not None:
        line += f"; known {known.value:.5g}, off by {each['value'] / known.value - 1:+.2%}"
        if name == "angle":
            line += f" or {math.degrees(each['value'] - known.value):+.2f}°"
        if math.isfinite(known.off):
            inside = not known.inside or low <= known.value <= high
            line += f": {verdict(abs(each['value'] - known.value) <= known.off and inside)}"
    print(line)


def show_halves(clip: Real, path: Path, place: Path) -> None:
    """How much parameters of the first half differ from those of the second."""
    described = video.read_info(path)
    middle = described.frames / described.fps / 2
    halves = [
        identified(path, f"{clip.options} --no-film {end} {middle:.3f}", place / end.strip("-"))[0]
        for end in ("--to", "--from")
    ]
    for name in clip.repeats:
        if None in halves:
            print(f"  {name} of halves: one of them is refused: MISSED")
            continue
        one, other = (half["parameters"][name]["value"] for half in halves if half)
        fine = verdict(abs(other / one - 1) < REPEATED)
        print(f"  {name} of halves: {one:.5g}, {other:.5g}: {other / one - 1:+.2%}: {fine}")


def show_momentum(path: Path) -> None:
    """Velocities before and after two things met, of the fit, which has one ratio of masses, beside what was seen.

    Both are measured in the same way, by parabolas on either side; a component counts by the speed of its thing, of
    what hardly moves by a tenth of that of both.
    """
    with path.open() as file:
        head, *rows = list(csv.reader(file))
    table = np.array([[float(value or "nan") for value in row] for row in rows])
    table = table[np.isfinite(table).all(1)]
    times, pixels = table[:, 0], [k for k, name in enumerate(head) if name.endswith("_px")]
    fitted = [k for k in pixels if "fitted" in head[k]]
    seen = [k for k in pixels if k not in fitted]
    apart = np.linalg.norm(table[:, seen[2:]] - table[:, seen[:2]], axis=1)
    away, worst = times - times[apart.argmin()], 0.0
    step = float(np.median(np.diff(times)))
    for side, when in ((-1, "before"), (1, "after")):
        part = side * away > step  # not the frames in which they touch
        shown, told = (
            np.polyfit(away[part], table[part][:, columns], 2)[1].reshape(2, 2) for columns in (seen, fitted)
        )
        for thing, (one, other) in enumerate(zip(shown, told, strict=True), 1):
            share = (other - one) / max(float(np.linalg.norm(one)), HARDLY * float(np.linalg.norm(shown)))
            worst = max(worst, float(np.abs(share).max()))
            print(f"  thing {thing} {when}: {one.round(1)} px/s, fitted {other.round(1)}: off by {share.round(3)}")
    print(f"  one ratio explains both components of both: {worst:.1%}: {verdict(worst < EXPLAINED)}")


def main(folder: Path, only: str | None = None, out: Path = Path("out/identify_real")) -> None:
    """Print the table.

    Args:
        folder: of the clips; those that it has not are left out.
        only: of clips whose names contain one of these words, by commas.
        out: folder for what the command leaves.
    """
    for name, clip in CLIPS.items():
        wanted = only is None or any(word in name for word in only.split(","))
        if wanted and (folder / clip.file).exists():
            show(name, clip, folder, out)
            sys.stdout.flush()


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
