"""Run `physvision identify` on real clips filmed by others, and compare the results with published values.

The clips are not part of the project: `folder` holds those that are available. Each is identified with its kind of
motion, its known values, and its frame rate of filming; processor and wall-clock seconds include report and film. The
holdout test predicts the last third of a motion from the first two thirds, the halves of a long clip are compared, and
for a slow-motion clip without a frame rate a warning must ask for it.

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
class Expected:
    """Published value of a parameter.

    Attributes:
        value: Value in SI units.
        tolerance: Largest accepted error.
        inside: If true, the 95 % interval must contain the value.
    """

    value: float
    tolerance: float
    inside: bool = False


@dataclass(frozen=True)
class Trial:
    """Real clip with the options of the command and the expected results.

    Attributes:
        file: Name of the file.
        options: Options of the command.
        expected: Published values of parameters.
        repeats: Parameters that are compared between the halves of the clip.
        asks: Text that a warning must contain.
        fitted: If true, the holdout test must succeed.
        momentum: If true, one mass ratio must explain the velocities of both objects.
    """

    file: str
    options: str
    expected: Mapping[str, Expected] = field(default_factory=dict)
    repeats: tuple[str, ...] = ()
    asks: str | None = None
    fitted: bool = True
    momentum: bool = False


def _launch(speed: float, degrees: float) -> dict[str, Expected]:
    return {"speed": Expected(speed, 0.03 * speed), "angle": Expected(math.radians(degrees), math.radians(2))}


GRAVITY = {"gravity": Expected(9.81, 0.05 * 9.81, True)}
CLIPS = {
    "pendulum": Trial(
        "pendulum_red_apple.mov", "--motion pendulum --known gravity=9.81", repeats=("length", "period"),
    ),
    "projectile 30": Trial(
        "projectile_30.mp4", "--motion projectile --known gravity=9.81 --fps 240", _launch(2.726, 30),
    ),
    "projectile 60": Trial(
        "projectile_60.mp4", "--motion projectile --known gravity=9.81 --fps 240", _launch(2.699, 60),
    ),
    "slide": Trial("slide_1.mp4", "--motion slide --fps 240", {"angle": Expected(math.radians(22), math.radians(2))}),
    "spring": Trial(
        "spring_vertical.mp4", "--motion spring --known mass=0.0243",
        {"stiffness": Expected(6.77, 0.02 * 6.77), "period": Expected(0.3765, 0.01 * 0.3765)}, ("stiffness",),
    ),
    "fall": Trial("fall.mp4", "--motion fall --scale 142,68,144,306.5=1.85±0.074", GRAVITY),
    "toss": Trial("ball_toss.mov", "--motion projectile --scale 398.7±15.9", GRAVITY),
    "bounce": Trial("bounce_stick.mp4", "--motion bounce"),
    "pucks": Trial("pucks.mp4", "--motion collision --fps 240", momentum=True),
    "glider": Trial("glider.mp4", "--motion slide"),
    "unknown rate": Trial("projectile_30.mp4", "--motion projectile --known gravity=9.81", asks="--fps", fitted=False),
    "unknown rate, scale": Trial("projectile_30.mp4", "--motion projectile --scale 295", asks="--fps", fitted=False),
    # The table's millimeters are a camera's: the inner arm, of 91.74 mm, fills 445 of them, gravity 46.9 m/s².
    "double pendulum": Trial(
        "../double_pendulum.csv", "--motion double_pendulum --unit mm --scale 4.85±0.05",
        {"length_1": Expected(0.09174, 0.02 * 0.09174), "length_2": Expected(0.06933, 0.02 * 0.06933), **GRAVITY},
        fitted=False,
    ),
}  # fmt: skip


def run_identify(path: Path, options: str, out: Path) -> tuple[dict | None, str, float, float]:
    """Run the command; its parameters.json, its output, and its processor and wall-clock seconds."""
    started, used = time.perf_counter(), _processor()
    run = [sys.executable, "-m", "physvision.cli", "identify", str(path), *shlex.split(options), "--out", str(out)]
    done = subprocess.run(run, capture_output=True, text=True)
    seconds = _processor() - used, time.perf_counter() - started
    result = json.loads((out / "parameters.json").read_text()) if done.returncode == 0 else None
    return result, done.stdout if result else done.stderr.strip().splitlines()[-1], *seconds


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def verdict(met: bool) -> str:
    """Return the verdict at the end of a line."""
    return "met" if met else "MISSED"


def show(name: str, clip: Trial, folder: Path, out: Path) -> None:
    """Identify one clip, and print a line for each expected result."""
    path, clip_out = folder / clip.file, out / name.replace(" ", "_")
    result, output, processor, clock = run_identify(path, clip.options, clip_out)
    print(f"\n{name}: {clip.file} {clip.options}")
    print(f"  {processor:.0f} s of processor time, {clock:.0f} s of wall-clock time: {verdict(processor < SECONDS)}")
    if result is None:
        print(f"  rejected: {output}")
        return
    noise, unit = next((value, key.removeprefix("noise_")) for key, value in result.items() if key.startswith("noise_"))
    print(f"  residual {noise:.3g} {unit}")
    if clip.fitted:
        holdout = result.get("holdout", {"error_px": math.nan, "relative_error": math.nan})
        error, relative_error = (
            next(v for k, v in holdout.items() if k.startswith("error")),
            holdout["relative_error"],
        )
        unit = next(k for k in holdout if k.startswith("error")).removeprefix("error_")
        met = relative_error < SHARE or (unit == "px" and error < PIXELS)
        print(f"  last third predicted to {error:.4g} {unit}, {relative_error:.2%} of the extent: {verdict(met)}")
    for parameter_name, parameter in result["parameters"].items():
        show_parameter(parameter_name, parameter, clip.expected.get(parameter_name))
    if clip.asks:
        print(f"  asks for the frame rate: {verdict(any(clip.asks in note for note in result['warnings']))}")
    for note in result["warnings"]:
        print(f"  warning: {note}")
    if clip.repeats:
        show_halves(clip, path, clip_out)
    if clip.momentum:
        show_momentum(clip_out / "states.csv")


def show_parameter(name: str, parameter: Mapping, expected: Expected | None) -> None:
    """Print a line for one parameter."""
    if parameter["value"] is None:
        print(f"  {name:<15} not identifiable: {parameter['reason']}")
        return
    low, high = parameter["interval_95"]
    line = f"  {name:<15} {parameter['value']:.5g} {parameter['unit']}, 95 %: {low:.5g} to {high:.5g}"
    if expected is not None:
        line += f"; expected {expected.value:.5g}, error {parameter['value'] / expected.value - 1:+.2%}"
        if name == "angle":
            line += f" or {math.degrees(parameter['value'] - expected.value):+.2f}°"
        if math.isfinite(expected.tolerance):
            inside = not expected.inside or low <= expected.value <= high
            line += f": {verdict(abs(parameter['value'] - expected.value) <= expected.tolerance and inside)}"
    print(line)


def show_halves(clip: Trial, path: Path, clip_out: Path) -> None:
    """Print the differences of parameters between the halves of a clip."""
    described = video.read_info(path)
    middle = described.frames / described.fps / 2
    halves = [
        run_identify(path, f"{clip.options} --no-film {end} {middle:.3f}", clip_out / end.strip("-"))[0]
        for end in ("--to", "--from")
    ]
    for name in clip.repeats:
        if None in halves:
            print(f"  {name} of halves: one of them is rejected: MISSED")
            continue
        first, second = (half["parameters"][name]["value"] for half in halves if half)
        met = verdict(abs(second / first - 1) < REPEATED)
        print(f"  {name} of halves: {first:.5g}, {second:.5g}: {second / first - 1:+.2%}: {met}")


def show_momentum(path: Path) -> None:
    """Compare fitted velocities before and after an impact, which share one mass ratio, with the observed ones.

    Both are measured by parabolas on either side. Errors are relative to the speed of the object, or to a tenth of the
    speed of both for an object that hardly moves.
    """
    with path.open() as file:
        head, *rows = list(csv.reader(file))
    table = np.array([[float(value or "nan") for value in row] for row in rows])
    table = table[np.isfinite(table).all(1)]
    times, pixels = table[:, 0], [k for k, name in enumerate(head) if name.endswith("_px")]
    fitted = [k for k in pixels if "fitted" in head[k]]
    observed = [k for k in pixels if k not in fitted]
    distance = np.linalg.norm(table[:, observed[2:]] - table[:, observed[:2]], axis=1)
    elapsed, worst = times - times[distance.argmin()], 0.0
    step = float(np.median(np.diff(times)))
    for side, when in ((-1, "before"), (1, "after")):
        part = side * elapsed > step  # not the frames in which they touch
        observed_velocities, fitted_velocities = (
            np.polyfit(elapsed[part], table[part][:, columns], 2)[1].reshape(2, 2) for columns in (observed, fitted)
        )
        min_speed = HARDLY * float(np.linalg.norm(observed_velocities))
        for number, (value, fit) in enumerate(zip(observed_velocities, fitted_velocities, strict=True), 1):
            error = (fit - value) / max(float(np.linalg.norm(value)), min_speed)
            worst = max(worst, float(np.abs(error).max()))
            print(f"  object {number} {when}: {value.round(1)} px/s, fitted {fit.round(1)}: error {error.round(3)}")
    print(f"  one mass ratio explains both components of both objects: {worst:.1%}: {verdict(worst < EXPLAINED)}")


def main(folder: Path, only: str | None = None, out: Path = Path("out/identify_real")) -> None:
    """Identify the available clips, and print the results.

    Args:
        folder: Folder of the clips; missing ones are skipped.
        only: Words, separated by commas, of which a clip's name must contain one; all clips if not given.
        out: Output folder of the command.
    """
    for name, clip in CLIPS.items():
        selected = only is None or any(word in name for word in only.split(","))
        if selected and (folder / clip.file).exists():
            show(name, clip, folder, out)
            sys.stdout.flush()


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
