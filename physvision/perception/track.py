"""Where one thing was at each moment, and tracks in tables of comma-separated values."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from physvision.core import InputError, ShapeError
from physvision.core.tables import read_table

UNITS = {"px": None, "m": 1.0, "cm": 1e-2, "mm": 1e-3}  # metres in each


@dataclass(frozen=True)
class Track:
    """One thing followed through a clip.

    Attributes:
        times: seconds since the clip's first frame, growing; steps may differ from each other.
        positions: x to the right and y down, in `unit`: pixels from the picture's corner, so that pixel centres lie at
            halves, or metres. Where the thing was not seen they are interpolated, or NaN outside of what was seen.
        sigma: standard deviation of each coordinate of a position, in `unit`; infinite where it was not seen.
        observed: whether it was.
        angle: direction of its long axis, radians from the x axis towards the y axis, without jumps; None where it has
            no direction that can be told.
        radius: of the circle with its area, in `unit`; None where it is not known.
        color: red, green, blue, 0 to 1; None where it is not known.
        name: for people.
        unit: "px", or "m" where a table gave lengths.
        notes: what was noticed on the way that changes how far the track can be trusted, in whole sentences.
        static_before_visible: If true, nothing moved near the first observed position just before it.
    """

    times: Float[np.ndarray, " times"]
    positions: Float[np.ndarray, "times 2"]
    sigma: Float[np.ndarray, " times"]
    observed: Bool[np.ndarray, " times"]
    angle: Float[np.ndarray, " times"] | None = None
    radius: float | None = None
    color: tuple[float, float, float] | None = None
    name: str = "object"
    unit: str = "px"
    notes: tuple[str, ...] = ()
    static_before_visible: bool = False

    def __post_init__(self) -> None:
        count = len(self.times)
        shapes = {"positions": (count, 2), "sigma": (count,), "observed": (count,)}
        if self.angle is not None:
            shapes["angle"] = (count,)
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ShapeError(f"{name}: expected shape {shape} as times has, got {getattr(self, name).shape}")
        if not np.isfinite(self.times).all() or not (np.diff(self.times) > 0).all():
            raise InputError(f"times of {self.name}: expected finite seconds, each later than the one before")
        if not np.isfinite(self.positions[self.observed]).all():
            raise InputError(f"positions of {self.name}: expected finite values wherever it was seen")
        if self.unit not in ("px", "m"):
            raise InputError(f'unit: expected "px" or "m", got {self.unit!r}')

    def __len__(self) -> int:
        return len(self.times)

    @property
    def extent(self) -> float:
        """Diagonal of the box that holds everything seen, in `unit`."""
        places = self.positions[self.observed]
        return float(np.linalg.norm(np.ptp(places, axis=0))) if len(places) else 0.0

    def window(self, start: int, stop: int) -> Track:
        """Moments `start` to `stop` (excluded); the times stay those of the whole."""
        angle = None if self.angle is None else self.angle[start:stop]
        times, positions, sigma, seen = (
            values[start:stop] for values in (self.times, self.positions, self.sigma, self.observed)
        )
        return replace(self, times=times, positions=positions, sigma=sigma, observed=seen, angle=angle)


def write_tracks(path: str | os.PathLike[str], tracks: Sequence[Track]) -> None:
    """Write tracks of the same moments as `t, x, y[, angle]`, a column each; empty fields where nothing was seen."""
    if not tracks or any(not np.array_equal(track.times, tracks[0].times) for track in tracks):
        raise InputError("tracks: expected at least one, all of the same times")
    names = ["t"]
    for index, track in enumerate(tracks, 1):
        ending = f"_{index}" if len(tracks) > 1 else ""
        names += [name + ending for name in ("x", "y", "angle")[: 2 if track.angle is None else 3]]
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for time, moment in enumerate(tracks[0].times):
            row: list[str] = [f"{moment:.9g}"]
            for track in tracks:
                values = list(track.positions[time]) + ([] if track.angle is None else [track.angle[time]])
                if track.unit == "m":  # tables of lengths have y upwards
                    values[1:] = [-value for value in values[1:]]
                row += [f"{value:.9g}" if track.observed[time] else "" for value in values]
            writer.writerow(row)


def read_tracks(path: str | os.PathLike[str], unit: str = "px") -> list[Track]:
    """Tracks from a table with a header: one column of times `t`, then `x`, `y` and perhaps `angle` of each object.

    Names may go on as they like after an underline (`x_1`, `y_1`, `x_bob`). Commas, semicolons and tabs separate, and
    next to semicolons and tabs the decimal sign may be a comma. Other columns are left alone, and an object was not
    seen where a field is empty or NaN. Angles are radians.

    Args:
        path: the table.
        unit: of x and y. Pixels have y downwards; lengths ("m", "cm", "mm") have it upwards, as tables of lengths do,
            and come back in metres with y downwards.
    """
    if unit not in UNITS:
        raise InputError(f"unit: expected one of {', '.join(UNITS)}, got {unit!r}")
    names, values = read_table(path)
    if len(values) < 3:
        raise InputError(f"{path}: expected a header and at least three rows of numbers, got {len(values)}")
    kinds = [re.split(r"[_ (\[]", name.strip().lower(), maxsplit=1)[0] for name in names]
    if kinds.count("t") + kinds.count("time") != 1 or "x" not in kinds or kinds.count("x") != kinds.count("y"):
        raise InputError(f"{path}: expected columns t, x, y and perhaps angle of each object, got {', '.join(names)}")
    times = values[:, kinds.index("t") if "t" in kinds else kinds.index("time")]
    scale = UNITS[unit]
    tracks = []
    for number, (x, y) in enumerate(zip(_columns(kinds, "x"), _columns(kinds, "y"), strict=True)):
        ending = names[x].strip()[1:]
        turned = [column for column in _columns(kinds, "angle") if names[column].strip()[5:] == ending]
        positions = values[:, [x, y]] if scale is None else values[:, [x, y]] * [scale, -scale]
        angle = values[:, turned[0]] * (1 if scale is None else -1) if turned else None
        name = ending.strip("_ ") or f"object {number + 1}"
        tracks.append(_tabled(times, positions, angle, name, "px" if scale is None else "m"))
    return tracks


def _columns(kinds: list[str], kind: str) -> list[int]:
    return [column for column, other in enumerate(kinds) if other == kind]


def _tabled(times: np.ndarray, positions: np.ndarray, angle: np.ndarray | None, name: str, unit: str) -> Track:
    seen = np.asarray(np.isfinite(positions).all(axis=1))
    if angle is not None:
        seen &= np.isfinite(angle)
        angle[seen] = np.unwrap(angle[seen])
    sigma = np.where(seen, estimate_noise(positions[seen]), np.inf)
    return Track(times, positions, sigma, seen, angle, name=name, unit=unit)


def estimate_noise(positions: Float[np.ndarray, "times 2"]) -> float:
    """Standard deviation of independent noise on positions that are otherwise smooth.

    Differences of order k of white noise have (2k over k) times its variance, and those of a smooth motion fade with k
    where frames follow each other quickly enough, so the least over some orders is taken; the median looks past
    impacts.
    """
    if len(positions) < 8:
        return 1.0
    found = [
        np.median(np.abs(np.diff(positions, order, axis=0))) / 0.6745 / np.sqrt(math.comb(2 * order, order))
        for order in range(2, min(7, len(positions) - 3))
    ]
    return float(max(min(found), 1e-9))
