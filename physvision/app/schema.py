"""Schema of requests and of saved analyses: plain values that the strict reader builds into dataclasses."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from physvision.core import InputError
from physvision.core.serialization import build_dataclass
from physvision.identification.model import KnownValue
from physvision.perception import Track

Request = TypeVar("Request")
VERSION = 1
# Attributes of a track that are saved as they are.
_UNCHANGED = ("name", "unit", "radius", "color", "notes", "static_before_visible")


@dataclass(frozen=True)
class TrackRequest:
    """Request to track what moves.

    Attributes:
        crop: Part of the picture, x, y, width, height, px; all of it if None.
        start: Time at which to begin, s.
        stop: Time at which to end, s.
        click: Position of an object that was missed, px; tracks that are known are kept.
        frame: Number of the frame in which it was clicked.
    """

    crop: tuple[float, float, float, float] | None = None
    start: float | None = None
    stop: float | None = None
    click: tuple[float, float] | None = None
    frame: int | None = None


@dataclass(frozen=True)
class Ruler:
    """Two points of the picture and their distance.

    Attributes:
        points: Points x1, y1, x2, y2, px.
        length: Distance, m.
        std: Standard deviation of the distance, m.
    """

    points: tuple[float, float, float, float]
    length: float
    std: float = 0.0


@dataclass(frozen=True)
class IdentifyRequest:
    """Request to identify a motion.

    Attributes:
        motion: Kind of motion; all are tried if None.
        objects: Indices of the tracks to use; all if None.
        known: Values known beforehand and their standard deviations by name, SI units.
        ruler: Scale of the picture.
        fps: Frame rate of filming where it differs from the file's, frames a second.
        start: Time at which to begin, s.
        stop: Time at which to end, s.
        origin: Origin of the axes in which positions are shown, px; the lower left corner of the tracks if None.
        turn: Angle from the picture's horizontal to the x axis, counterclockwise, rad.
        scene: Name of the file of the person's own scene.
        unknown: Properties of the own scene that are unknown.
        follow: Bodies of the own scene that are tracked; all that move if empty.
    """

    motion: str | None = None
    objects: tuple[int, ...] | None = None
    known: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    ruler: Ruler | None = None
    fps: float | None = None
    start: float | None = None
    stop: float | None = None
    origin: tuple[float, float] | None = None
    turn: float = 0.0
    scene: str = ""
    unknown: tuple[str, ...] = ()
    follow: tuple[str, ...] = ()

    def known_values(self) -> dict[str, KnownValue]:
        """Return the known values, the scale of the ruler among them.

        Raises:
            InputError: The ruler has no length.
        """
        values = {name: KnownValue(value, std) for name, (value, std) in self.known.items()}
        if self.ruler is not None:
            x1, y1, x2, y2 = self.ruler.points
            pixels, meters = math.hypot(x2 - x1, y2 - y1), self.ruler.length
            if not (pixels > 0 and 0 < meters < math.inf):
                raise InputError(f"ruler: expected two different points and a length above zero, got {meters:g} m")
            values["scale"] = KnownValue(pixels / meters, pixels / meters**2 * self.ruler.std)
        return values

    def command(self, clip: str, crop: Sequence[float] | None, count: int) -> str:
        """Return the command line that does the same.

        Args:
            clip: Name of the clip.
            crop: Part of the picture that was tracked, px.
            count: Number of tracks that were found.
        """
        words = ["physvision", "identify", clip]
        if self.motion:
            words += ["--motion", self.scene or self.motion]
        for option, names in {"--unknown": self.unknown, "--follow": self.follow}.items():
            words += [option, ",".join(names)] if names else []
        for name, (value, std) in self.known.items():
            words += ["--known", f"{name}={value:.9g}" + (f"±{std:.3g}" if std else "")]
        if self.ruler is not None:
            points = ",".join(f"{value:.2f}" for value in self.ruler.points)
            std = f"±{self.ruler.std:.3g}" if self.ruler.std else ""
            words += ["--scale", f"{points}={self.ruler.length:.9g}{std}"]
        options = {"--fps": self.fps, "--from": self.start, "--to": self.stop}
        for option, value in options.items():
            words += [] if value is None else [option, f"{value:.6g}"]
        if crop is not None:
            words += ["--crop", ",".join(f"{value:.0f}" for value in crop)]
        line = shlex.join(words)
        left_out = sorted(set(range(count)) - set(range(count) if self.objects is None else self.objects))
        names = ", ".join(f"object {index + 1}" for index in left_out)
        return f"{line}  # {names} left out: choose the others with --object" if left_out else line


@dataclass(frozen=True)
class SimulateRequest:
    """Request to simulate the motion with other values of its parameters.

    Attributes:
        values: Values by name, SI units.
    """

    values: Mapping[str, float]


@dataclass(frozen=True)
class PredictRequest:
    """Request to predict a clip by a checkpoint.

    Attributes:
        checkpoint: Name of a checkpoint that comes with physvision.
        horizon: Time to predict ahead, s.
        fps: Frame rate to resample the clip to, frames a second.
        size: Side of the square, or width,height, to resize to, px.
        crop: Part of the picture to use, x, y, width, height, px.
        scale: Pixels a meter, or a known length as "120px=0.5m".
        film: If true, the film with the prediction is drawn.
        force: If true, a clip outside the checkpoint's domain is predicted too.
    """

    checkpoint: str
    horizon: float = 1.0
    fps: float | None = None
    size: str | None = None
    crop: tuple[float, float, float, float] | None = None
    scale: str | None = None
    film: bool = True
    force: bool = False


@dataclass(frozen=True)
class ExportRequest:
    """Request to write the files of a result.

    Attributes:
        decimal: Decimal separator of CSV files.
        film: If true, the film with the fitted motion is drawn too.
    """

    decimal: str = "."
    film: bool = True


@dataclass(frozen=True)
class SavedTrack:
    """Track in a saved analysis; columns of numbers are texts, separated by spaces.

    Attributes:
        name: Name of the object.
        unit: Unit of lengths, "px" or "m".
        times: Times, s.
        x: Positions to the right.
        y: Positions downwards.
        sigma: Standard deviations of a coordinate; "inf" where the object is not observed.
        angle: Direction of the long axis, rad; None for a round object.
        radius: Radius of the circle of equal area.
        color: Red, green and blue from 0 to 1.
        notes: Limits of the track's reliability.
        static_before_visible: If true, nothing moved near the first position just before it was observed.
    """

    name: str
    unit: str
    times: str
    x: str
    y: str
    sigma: str
    angle: str | None = None
    radius: float | None = None
    color: tuple[float, float, float] | None = None
    notes: tuple[str, ...] = ()
    static_before_visible: bool = False

    @classmethod
    def of(cls, track: Track) -> SavedTrack:
        """Return the saved form of a track."""
        sigma = np.where(track.observed, track.sigma, np.inf)
        return cls(
            times=_to_text(track.times),
            x=_to_text(track.positions[:, 0]),
            y=_to_text(track.positions[:, 1]),
            sigma=_to_text(sigma),
            angle=None if track.angle is None else _to_text(track.angle),
            **{name: getattr(track, name) for name in _UNCHANGED},
        )

    def track(self, name: str) -> Track:
        """Return the track; a track checks its values itself.

        Args:
            name: Name of the saved track in messages.
        """
        times = _to_numbers(self.times, f"{name}.times")
        x, y, sigma = (
            _to_numbers(text, f"{name}.{key}", len(times))
            for key, text in (("x", self.x), ("y", self.y), ("sigma", self.sigma))
        )
        if (np.isnan(sigma) | (sigma <= 0)).any():
            raise InputError(f"{name}.sigma: expected standard deviations above zero")
        angle = None if self.angle is None else _to_numbers(self.angle, f"{name}.angle", len(times))
        unchanged = {name: getattr(self, name) for name in _UNCHANGED}
        return Track(times, np.stack([x, y], 1), sigma, np.isfinite(sigma), angle, **unchanged)


@dataclass(frozen=True)
class SavedTracks:
    """Tracks of a clip in a file, from which another worker goes on.

    Attributes:
        size: Width and height of the picture, px.
        tracks: Tracks that were found.
        first: Number of the frame that is their first sample.
        crop: Part of the picture that was tracked, px.
    """

    size: tuple[float, float]
    tracks: tuple[SavedTrack, ...]
    first: int = 0
    crop: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class SavedAnalysis:
    """Analysis in a file: everything that a result is fitted to, and the kinds that were compared.

    Attributes:
        physvision_analysis: Version of this schema.
        name: Name of the clip.
        size: Width and height of its picture, px.
        tracks: Tracks that were found.
        request: Request of the identification.
        crop: Part of the picture that was tracked, px.
        motion: Kind of motion that was found.
        odds: Odds of each kind against the best one.
        rejected: Reasons why other kinds were rejected.
        parameters: Values of the parameters, SI units, for other programs to read.
        scene: Text of the person's own scene, MJCF.
    """

    physvision_analysis: int
    name: str
    size: tuple[float, float]
    tracks: tuple[SavedTrack, ...]
    request: IdentifyRequest
    motion: str
    crop: tuple[float, float, float, float] | None = None
    odds: Mapping[str, float] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)
    scene: str | None = None

    @classmethod
    def read(cls, text: str) -> SavedAnalysis:
        """Read a saved analysis.

        Raises:
            InputError: It does not follow the schema.
        """
        saved = read_request(cls, text, "analysis")
        if saved.physvision_analysis != VERSION:
            raise InputError(f"analysis: expected version {VERSION}, got {saved.physvision_analysis}")
        if not saved.tracks or not all(0 < side < 1e6 for side in saved.size):
            raise InputError("analysis: expected tracks, and the size of the picture")
        return replace(saved, name=saved.name[:200])


def to_json(saved: SavedAnalysis | SavedTracks) -> str:
    """Return a dataclass of the schema as JSON."""
    return json.dumps(asdict(saved), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_request(kind: type[Request], text: str, name: str = "request") -> Request:
    """Read a request or a saved analysis by the strict reader.

    Args:
        kind: Dataclass of the schema.
        text: JSON.
        name: Name of the request in messages.

    Raises:
        InputError: It is no JSON, or does not follow the schema.
    """

    def reject(constant: str) -> Any:
        raise InputError(f"{name}: expected finite numbers, got {constant}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise InputError(f"{name}: a key stands twice")
        return values

    try:
        values = json.loads(text or "{}", parse_constant=reject, object_pairs_hook=unique)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        raise error if isinstance(error, InputError) else InputError(f"{name}: not JSON ({error})") from error
    return build_dataclass(kind, values, name)


def _to_text(column: np.ndarray) -> str:
    return " ".join(f"{value:.7g}" for value in column.tolist())


def _to_numbers(text: str, name: str, count: int | None = None) -> np.ndarray:
    words = text.split(" ")
    if len(words) > 100_000 or (count is not None and len(words) != count):
        raise InputError(f"{name}: expected {count or 'at most 100000'} numbers, got {len(words)}")
    try:
        return np.array([float(word) for word in words])
    except ValueError as error:
        raise InputError(f"{name}: expected numbers separated by spaces ({error})") from error
