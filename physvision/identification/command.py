"""`physvision identify`: a clip in; physical parameters with intervals, a report and a film out."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from physvision.core import FileError, InputError, PhysvisionError
from physvision.identification.identification import Identification
from physvision.identification.identify import Source, identify
from physvision.identification.model import Known
from physvision.identification.own_motion import OwnMotion
from physvision.identification.saving import save
from physvision.perception import read_tracks
from physvision.video import Conversion, read

_SCENES = (".xml", ".mjcf", ".urdf")
_VIDEOS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".csv")


def command(
    video: str | None = None,
    motion: str | None = None,
    known: str | None = None,
    fps: float | None = None,
    scale: str | None = None,
    object: str = "",  # of a `str | None`, #c02020 would be read as a comment of YAML
    crop: str | None = None,
    start: float | None = None,
    stop: float | None = None,
    unit: str = "px",
    out: str | None = None,
    batch: str | None = None,
    unknown: str | None = None,
    follow: str | None = None,
    plane: str | None = None,
    ignore: str | None = None,
    film: bool = True,
) -> int:
    """Find which law what moves in a clip follows, and its parameters with intervals.

    Args:
        video: any video that FFmpeg reads, a folder of pictures, or tracks as CSV: t,x,y[,angle] of each object.
        motion: the kind of motion; all are tried if not given. Or a scene of your own, an MJCF or URDF file.
        known: what is known, as gravity=9.81 or radius=0.033±0.001, SI units; several by commas, or given repeatedly.
            Of your own scene, numbers are called as by --unknown.
        fps: frames a second that were really taken, for slow motion.
        scale: pixels a metre, or two points and their distance as x1,y1,x2,y2=1.85; with ±u if it is not exact.
        object: the one that is meant: a box x1,y1,x2,y2 that it comes through, or its colour; of tracks, its name.
        crop: the part of the picture that is looked at, as left,top,right,bottom in pixels.
        start: s of the clip to begin at; also --from.
        stop: s of the clip to end at; also --to.
        unit: of x and y in a CSV: px (y down), or m, cm, mm (y up).
        out: folder for parameters.json, states.csv, prediction.mp4 and report.html; out/NAME of the video if not given.
        batch: a folder; every clip in it is identified, into one table.
        unknown: of your own scene, what is sought, and between which bounds, as mass:cart=1..5: a property, the body,
            joint or shape, and the axis where there are several (gravity:z); several by commas, or given repeatedly.
        follow: of your own scene, the bodies, shapes or sites that are seen, as bob,cart; tried out if not given.
        plane: of your own scene, its axes to the right and up in the picture, as xz, or -xz from behind.
        ignore: of your own scene, what the file may hold that is not simulated, as contact,limit.
        film: make prediction.mp4; --no-film goes without.
    """
    told = _knowns(known)
    meant = _motion(motion, unknown, follow, plane, ignore)
    if scale is not None:
        told["scale"] = _scale(scale)
    options = {
        "fps": fps,
        "object": _pointer(object),
        "crop": None if crop is None else _numbers("crop", crop, 4),
        "start": start,
        "stop": stop,
    }
    if batch is not None:
        return _batch(Path(batch), Path(out or Path("out") / Path(batch).name), meant, told, options, unit)
    if video is None:
        raise InputError("video: name one, or a folder of them with --batch")
    folder = Path(out) if out else Path("out") / Path(video).stem
    source = _source(video, unit, options)
    found = identify(source, meant, told, **options)
    paths = save(found, folder, source, film, start)
    _show(found)
    print("\n".join(str(path) for path in paths))
    return 0


def arguments_of(arguments: Sequence[str]) -> list[str]:
    """The arguments as the command's function takes them: a first word is the video, what is repeated is joined."""
    words, result = list(arguments), []
    several: dict[str, list[str]] = {"--known": [], "--unknown": []}
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name in several:
            if not equals and not words:
                raise InputError(f"{name[2:]}: expected a value behind {name}")
            several[name].append(value if equals else words.pop(0))
            continue
        name = {"--from": "--start", "--to": "--stop"}.get(name, name)
        if not result and not word.startswith("-"):
            result += ["--video", word]
        else:
            result.append(name + equals + value)
    return result + [word for name, given in several.items() if given for word in (name, ",".join(given))]


def _show(found: Identification) -> None:
    """A few lines for people."""
    others = f" (or {', '.join(found.alike)})" if found.alike else ""
    print(f"{found.motion}{others}: fitted to {found.fit.noise:.2g} {found.case.unit}")
    for name, each in found.parameters.items():
        if each.value is None or each.interval_95 is None:
            print(f"  {name:<14} not identifiable: {each.reason}")
        else:
            low, high = each.interval_95
            print(f"  {name:<14} {each.value:.5g} {each.unit}  95 %: {low:.5g} to {high:.5g}")
    if found.held_out is not None:
        error, share = found.held_out.error, found.held_out.share
        print(f"  last third predicted to {error:.2g} {found.case.unit}, {share:.1%} of the extent")
    for warning in found.warnings:
        print(f"  note: {warning}")


def _source(path: str, unit: str, options: dict) -> Source:
    """What is identified: a video, tracks from a table, or pictures, which only have times by the option `fps`."""
    if path.lower().endswith(".csv"):
        return read_tracks(path, unit)
    if not Path(path).is_dir():
        return path
    if options["fps"] is None:
        raise InputError(f"{path}: a folder of pictures has no times; give `fps=30`, the rate of filming")
    return read(path, conversion=Conversion(capture_fps=options["fps"]))


def _batch(folder: Path, out: Path, motion, told, options, unit: str) -> int:
    """Identify every clip of a folder; one table of all parameters."""
    if not folder.is_dir():
        raise FileError(f"batch: expected a folder with clips, got {folder}")
    clips = sorted(path for path in folder.iterdir() if path.suffix.lower() in _VIDEOS)
    if not clips:
        raise InputError(f"batch: no clips in {folder}")
    rows, failed = [], 0
    for path in clips:
        try:
            source = _source(str(path), unit, options)
            found = identify(source, motion, told, **options)
        except PhysvisionError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            rows.append([path.name, "refused", "", "", "", "", str(error)])
            failed += 1
            continue
        save(found, out / path.stem, source, film=False)
        print(path.name, end=": ")
        _show(found)
        for name, each in found.parameters.items():
            low, high = each.interval_95 or ("", "")
            rows.append(
                [path.name, found.motion, name, "" if each.value is None else each.value, low, high, each.reason]
            )
    table = out / "parameters.csv"
    out.mkdir(parents=True, exist_ok=True)
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["clip", "motion", "parameter", "value", "low_95", "high_95", "remark"], *rows])
    print(table)
    return int(failed == len(clips))


def _motion(
    motion: str | None, unknown: str | None, follow: str | None, plane: str | None, ignore: str | None
) -> str | OwnMotion | None:
    """The kind, or a scene of one's own."""
    if motion is not None and motion.lower().endswith(_SCENES):
        sought = dict(_bounds(part) for part in _listed(unknown))
        return OwnMotion(motion, sought, _listed(follow) or None, plane, ignore=_listed(ignore))
    for name, given in {"unknown": unknown, "follow": follow, "plane": plane, "ignore": ignore}.items():
        if given is not None:
            raise InputError(f"{name}: goes with a scene of your own, --motion scene.xml")
    return motion


def _bounds(text: str) -> tuple[str, tuple[float | None, float | None]]:
    """A name and the bounds between which its number lies; either may be missing."""
    name, equals, bounds = text.partition("=")
    if not equals:
        return name, (None, None)
    low, dots, high = bounds.partition("..")
    try:
        found = tuple(float(number) if number.strip() else None for number in (low, high))
    except ValueError:
        found = ()
    if not dots or len(found) != 2:
        raise InputError(f"unknown: expected name=low..high, as mass:cart=1..5, got {text!r}")
    return name.strip(), (found[0], found[1])


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _knowns(text: str | None) -> dict[str, Known]:
    found = {}
    for part in _listed(text):
        name, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"known: expected name=value, as gravity=9.81, got {part!r}")
        found[name.strip()] = _with_deviation("known", value)
    return found


def _with_deviation(name: str, text: str) -> Known:
    """A number, and its deviation after ± or +-."""
    numbers = re.split(r"±|\+-|\+/-", text)
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    if len(values) not in (1, 2):
        raise InputError(f"{name}: expected a number, as 9.81 or 0.033±0.001, got {text!r}")
    return Known(*values)


def _scale(text: str) -> Known:
    """Pixels a metre."""
    points, equals, length = text.partition("=")
    if not equals:
        return _with_deviation("scale", text)
    x1, y1, x2, y2 = _numbers("scale", points, 4)
    metres = _with_deviation("scale", length)
    pixels = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    if pixels <= 0 or metres.value <= 0:
        raise InputError(f"scale: expected two points that differ and their distance in metres, got {text!r}")
    return Known(pixels / metres.value, pixels / metres.value**2 * metres.deviation)


def _pointer(text: str) -> tuple | str | None:
    """A box, a colour or a name."""
    return _numbers("object", text, 4) if text.count(",") == 3 else text or None


def _numbers(name: str, text: str, count: int) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.strip(" []()").split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != count:
        raise InputError(f"{name}: expected {count} numbers, got {text!r}")
    return numbers
