"""Command `physvision identify`: physical parameters of a clip with intervals, a report and a video."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from physvision.camera import read_calibration
from physvision.core import FileError, InputError, PhysvisionError
from physvision.core.checks import parse_numbers
from physvision.identification.candidates import FITTING_END
from physvision.identification.custom_scene import CustomScene
from physvision.identification.kinds import KINDS, KNOWN_NAMES
from physvision.identification.model import KnownValue
from physvision.identification.output import save_results
from physvision.identification.pipeline import Motion, Source, identify
from physvision.identification.result_tables import RESULT_HEAD, parameter_row
from physvision.identification.result_text import result_lines
from physvision.identification.settings import DEFAULT_SETTINGS, IdentificationSettings
from physvision.identification.units import parse_quantity
from physvision.perception import read_tracks
from physvision.report.spreadsheet import Cell, check_decimal, write_csv
from physvision.video import Conversion, read

_SCENE_SUFFIXES = (".xml", ".mjcf", ".urdf")
_CLIP_SUFFIXES = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".csv")


class _Parser(argparse.ArgumentParser):
    """Argument parser that raises `InputError` instead of exiting."""

    def error(self, message: str) -> NoReturn:
        """Raise an `InputError` that refers to the help text."""
        raise InputError(f"{message}; see physvision identify --help")


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command's options."""
    description = "Identify the kind of motion in a clip and its physical parameters, with intervals."
    parser = _Parser(prog="physvision identify", description=description, allow_abbrev=False)
    parser.add_argument("video", nargs="?", help="video, folder of pictures, or CSV of tracks (t,x,y[,angle] each)")
    parser.add_argument("--motion", help=f"kind of motion ({', '.join(KINDS)}), or an MJCF or URDF file; default: all")
    parser.add_argument(
        "--known", action="append", default=[], metavar="NAME=VALUE[±STD],…",
        help="values known beforehand, with units, such as length=25cm,angle=30deg (SI without), exact without ±: "
        f"{', '.join(KNOWN_NAMES)}; or properties of a scene",
    )  # fmt: skip
    clip = parser.add_argument_group("clip")
    clip.add_argument("--scale", help="pixels a meter, or two points and their distance: x1,y1,x2,y2=185cm; with ±STD")
    clip.add_argument("--fps", type=float, help="frame rate of filming, frames a second, for slow motion")
    clip.add_argument("--object", help="one of several objects: a box x,y,width,height, a color, or a track's name")
    clip.add_argument("--crop", help="part of the picture to look at: x,y,width,height; pixels")
    clip.add_argument("--from", dest="start", type=float, metavar="S", help="time of the file to begin at, s; see --to")
    clip.add_argument(
        "--to",
        dest="stop",
        type=float,
        metavar="S",
        help="time of the file to end at, s: as a player shows it, also with --fps",
    )
    clip.add_argument("--camera", metavar="FILE", help="calibration by OpenCV (camera_matrix, distortion_coefficients)")
    clip.add_argument("--unit", default="px", help="unit of x and y in a CSV: px (y down), or m, cm, mm (y up)")
    scene = parser.add_argument_group("custom scene (--motion scene.xml)")
    scene.add_argument("--unknown", action="append", metavar="NAME[=LOW..HIGH],…", help="unknowns: mass:cart=1..5")
    scene.add_argument("--follow", metavar="NAME,…", help="tracked bodies, shapes or sites; default: all moving bodies")
    scene.add_argument("--plane", help="axes of the scene to the right and up in the picture: xz, or -xz from behind")
    scene.add_argument("--ignore", metavar="FEATURE,…", help="features of the file to leave out, such as contact,limit")
    output = parser.add_argument_group("output")
    output.add_argument("--out", help="output folder; out/NAME of the video by default")
    output.add_argument("--batch", metavar="FOLDER", help="identify every clip of a folder, into one table")
    output.add_argument("--decimal", default=".", help="decimal separator of CSV files: a point, or a comma")
    output.add_argument("--film", action=argparse.BooleanOptionalAction, default=True, help="draw prediction.mp4")
    return parser


def run_command(arguments: Sequence[str]) -> int:
    """Run the command with its arguments, and return the exit status."""
    options = build_parser().parse_args(arguments)
    check_decimal(options.decimal)
    known_values = _parse_known_values(options.known)
    if options.scale is not None:
        known_values["scale"] = _parse_scale(options.scale)
    text = options.object or ""  # four numbers are a box, anything else is a color or a track's name
    clip_options = {
        "object": parse_numbers("object", text, float, "4 numbers", 4) if text.count(",") == 3 else text or None,
        "crop": None if options.crop is None else parse_numbers("crop", options.crop, float, "4 numbers", 4),
        "time_range": (options.start, options.stop),
        "fps": options.fps,
        "settings": _settings(options),
    }
    motion = _parse_motion(options)
    if options.batch is not None:
        return _run_batch(options, motion, known_values, clip_options)
    if options.video is None:
        raise InputError("video: expected a video, or a folder of them with --batch")
    source = _open_source(options.video, options.unit, options.fps)
    progress = _ProgressLine()
    result = identify(source, motion, known_values, progress=progress, **clip_options)
    progress("writing", FITTING_END)
    folder = Path(options.out) if options.out else Path("out") / Path(options.video).stem
    paths = save_results(result, folder, source, options.film, options.start, options.decimal)
    progress.clear()
    print("\n".join(result_lines(result)))
    print("\n".join(str(path) for path in paths))
    return 0


def _settings(options: argparse.Namespace) -> IdentificationSettings:
    """Return the default settings, with the calibration of the camera if one is given."""
    if options.camera is None:
        return DEFAULT_SETTINGS
    view = replace(DEFAULT_SETTINGS.view, calibration=read_calibration(options.camera))
    return replace(DEFAULT_SETTINGS, view=view)


class _ProgressLine:
    """Progress on the error output: one line that is redrawn in a terminal, otherwise a line for each stage."""

    def __init__(self) -> None:
        self._start, self._redraws = time.monotonic(), sys.stderr.isatty()

    def __call__(self, stage: str, fraction: float) -> None:
        """Show a stage, the fraction of the work before it, and the time that is left at the rate so far."""
        elapsed = time.monotonic() - self._start
        left = f", about {elapsed * (1 - fraction) / fraction:.0f} s left" if fraction else ""
        text = f"{fraction:4.0%}  {stage}{left}"
        print(
            f"\r{text:<60}" if self._redraws else text, end="" if self._redraws else "\n", file=sys.stderr, flush=True
        )

    def clear(self) -> None:
        """Clear the line in a terminal."""
        if self._redraws:
            print(f"\r{'':<60}\r", end="", file=sys.stderr, flush=True)


def _open_source(path: str, unit: str, fps: float | None) -> Source:
    """Return a video's path, the tracks of a table, or the clip of an image folder, which needs a frame rate."""
    if path.lower().endswith(".csv"):
        return read_tracks(path, unit)
    if not Path(path).is_dir():
        return path
    if fps is None:
        raise InputError(f"{path}: a folder of pictures has no times; give the frame rate of filming, such as `fps=30`")
    return read(path, conversion=Conversion(capture_fps=fps))


def _run_batch(
    options: argparse.Namespace, motion: Motion, known_values: Mapping[str, KnownValue], clip_options: Mapping[str, Any]
) -> int:
    """Identify every clip of a folder, and write one table of all parameters; return 1 if every clip failed, else 0."""
    folder = Path(options.batch)
    out = Path(options.out or Path("out") / folder.name)
    if not folder.is_dir():
        raise FileError(f"batch: expected a folder of clips, got {folder}")
    clips = sorted(path for path in folder.iterdir() if path.suffix.lower() in _CLIP_SUFFIXES)
    if not clips:
        raise InputError(f"batch: no clips in {folder}; expected files that end in {', '.join(_CLIP_SUFFIXES)}")
    rows: list[list[Cell]] = []
    failures = 0
    for path in clips:
        try:
            source = _open_source(str(path), options.unit, options.fps)
            result = identify(source, motion, known_values, **clip_options)
        except PhysvisionError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            rows.append([path.name, "rejected", *[""] * (len(RESULT_HEAD) - 1), str(error)])
            failures += 1
            continue
        save_results(result, out / path.stem, source, draw_video=False, decimal=options.decimal)
        print(path.name, end=": ")
        print("\n".join(result_lines(result)))
        rows += [
            [path.name, result.motion, name, *parameter_row(name, parameter)[1:]]
            for name, parameter in result.parameters.items()
        ]
    table = out / "parameters.csv"
    out.mkdir(parents=True, exist_ok=True)
    write_csv(table, ("clip", "motion", *RESULT_HEAD), rows, options.decimal)
    print(table)
    return int(failures == len(clips))


def _parse_motion(options: argparse.Namespace) -> Motion:
    """Return the kind of motion, or a custom scene; None for all kinds."""
    motion = options.motion
    if motion is not None and motion.lower().endswith(_SCENE_SUFFIXES):
        unknown = dict(_parse_bounds(entry) for text in options.unknown or () for entry in _split(text))
        follow = _split(options.follow) or None
        return CustomScene(motion, unknown, follow, options.plane, ignore=_split(options.ignore))
    for name in ("unknown", "follow", "plane", "ignore"):
        if getattr(options, name) is not None:
            raise InputError(f"{name}: applies to a custom scene only, --motion scene.xml")
    return motion


def _parse_bounds(text: str) -> tuple[str, tuple[float | None, float | None]]:
    """Return a name and its bounds (low, high), None where one is missing."""
    name, equals, bounds = text.partition("=")
    if not equals:
        return name, (None, None)
    low, dots, high = bounds.partition("..")
    try:
        limits = [float(number) if number.strip() else None for number in (low, high)]
    except ValueError:
        limits = []
    if not dots or not limits:
        raise InputError(f"unknown: expected name=low..high, such as mass:cart=1..5, got {text!r}")
    return name.strip(), (limits[0], limits[1])


def _split(text: str | None) -> list[str]:
    return [entry.strip() for entry in (text or "").split(",") if entry.strip()]


def _parse_known_values(texts: Sequence[str]) -> dict[str, KnownValue]:
    """Return known values; a comma that a digit follows is a decimal comma."""
    values = {}
    for entry in [entry for text in texts for entry in re.split(r",(?!\d)", text) if entry.strip()]:
        name, equals, value = entry.partition("=")
        if not equals:
            raise InputError(f"known: expected name=value, such as gravity=9.81 or length=25cm, got {entry.strip()!r}")
        values[name.strip()] = parse_quantity("known", name.strip(), value.replace(",", "."))
    return values


def _parse_scale(text: str) -> KnownValue:
    """Return the scale in pixels per meter, from a number or from two points and their distance."""
    points, equals, length = text.partition("=")
    if not equals:
        return parse_quantity("scale", "scale", text)
    x1, y1, x2, y2 = parse_numbers("scale", points, float, "4 numbers", 4)
    meters = parse_quantity("scale", "length", length)
    pixels = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    if pixels <= 0 or meters.value <= 0:
        raise InputError(f"scale: expected two points that differ and their distance, such as 185cm, got {text!r}")
    return KnownValue(pixels / meters.value, pixels / meters.value**2 * meters.std)
