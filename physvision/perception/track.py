"""Trajectories of objects in the image, and tables (CSV) of them."""

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

METERS_PER_UNIT = {"px": None, "m": 1.0, "cm": 1e-2, "mm": 1e-3}


@dataclass(frozen=True)
class Track:
    """Trajectory of one object in the image.

    Attributes:
        times: Times since the clip's first frame, s, increasing, not necessarily at equal steps.
        positions: Coordinates x to the right and y down, in `unit`: pixels from the upper left corner of the image, so
            that pixel centers are at half-integers, or meters. They are interpolated where the object is not observed,
            and NaN before the first and after the last observation.
        sigma: Standard deviation of each coordinate, in `unit`; infinite where the object is not observed.
        observed: Mask of the times at which the object is detected.
        angle: Direction of the long axis from x towards y, unwrapped, rad; None for a round object.
        radius: Radius of the circle of equal area, in `unit`; None if unknown.
        color: Red, green and blue from 0 to 1; None if unknown.
        name: Name of the object in messages and reports.
        unit: Unit of lengths, "px" or "m".
        notes: Limits of the track's reliability, as full sentences.
        static_before_visible: If true, nothing moved near the first observed position just before that observation.
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
            raise InputError(f"times of {self.name}: expected finite, increasing seconds")
        if not np.isfinite(self.positions[self.observed]).all():
            raise InputError(f"positions of {self.name}: expected finite values wherever it is observed")
        if self.unit not in ("px", "m"):
            raise InputError(f'unit: expected "px" or "m", got {self.unit!r}')

    def __len__(self) -> int:
        return len(self.times)

    @property
    def extent(self) -> float:
        """Diagonal of the bounding box of the observed positions, in `unit`."""
        positions = self.positions[self.observed]
        return float(np.linalg.norm(np.ptp(positions, axis=0))) if len(positions) else 0.0

    def window(self, start: int, stop: int) -> Track:
        """Cut out the samples from `start` to `stop` (excluded), with their times unchanged."""
        names = ("times", "positions", "sigma", "observed") + (() if self.angle is None else ("angle",))
        return replace(self, **{name: getattr(self, name)[start:stop] for name in names})


def write_tracks(path: str | os.PathLike[str], tracks: Sequence[Track]) -> None:
    """Write tracks with common times as columns `t, x, y[, angle]`; fields are empty where not observed."""
    if not tracks or any(not np.array_equal(track.times, tracks[0].times) for track in tracks):
        raise InputError("tracks: expected at least one, all with the same times")
    names = ["t"]
    for index, track in enumerate(tracks, 1):
        suffix = f"_{index}" if len(tracks) > 1 else ""
        names += [name + suffix for name in ("x", "y", "angle")[: 2 if track.angle is None else 3]]
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for sample, time in enumerate(tracks[0].times):
            row: list[str] = [f"{time:.9g}"]
            for track in tracks:
                values = list(track.positions[sample]) + ([] if track.angle is None else [track.angle[sample]])
                if track.unit == "m":  # in tables in meters, y points up
                    values[1:] = [-value for value in values[1:]]
                row += [f"{value:.9g}" if track.observed[sample] else "" for value in values]
            writer.writerow(row)


def read_tracks(path: str | os.PathLike[str], unit: str = "px") -> list[Track]:
    """Read tracks from a table with a header: times `t`, then `x`, `y` and optionally `angle` (rad) of each object.

    Column names may have a suffix after an underscore (`x_1`, `y_1`, `x_bob`). Columns are separated by commas,
    semicolons or tabs; with the latter two, the decimal separator may be a comma. Other columns are ignored. An object
    is not observed where a field is empty or NaN.

    Args:
        path: Path of the table.
        unit: Unit of x and y: "px" with y downwards, or "m", "cm", "mm" with y upwards. Lengths are returned in
            meters with y downwards.
    """
    if unit not in METERS_PER_UNIT:
        raise InputError(f"unit: expected one of {', '.join(METERS_PER_UNIT)}, got {unit!r}")
    names, values = read_table(path)
    if len(values) < 3:
        raise InputError(f"{path}: expected a header and at least three rows of numbers, got {len(values)}")
    kinds = [re.split(r"[_ (\[]", name.strip().lower(), maxsplit=1)[0] for name in names]
    if kinds.count("t") + kinds.count("time") != 1 or "x" not in kinds or kinds.count("x") != kinds.count("y"):
        raise InputError(
            f"{path}: expected columns t, x, y and optionally angle of each object, got {', '.join(names)}"
        )
    times = values[:, kinds.index("t") if "t" in kinds else kinds.index("time")]
    scale = METERS_PER_UNIT[unit]
    columns = {kind: [column for column, name in enumerate(kinds) if name == kind] for kind in ("x", "y", "angle")}
    tracks = []
    for number, (x, y) in enumerate(zip(columns["x"], columns["y"], strict=True)):
        suffix = names[x].strip()[1:]
        angles = [column for column in columns["angle"] if names[column].strip()[5:] == suffix]
        positions = values[:, [x, y]] if scale is None else values[:, [x, y]] * [scale, -scale]
        angle = values[:, angles[0]] * (1 if scale is None else -1) if angles else None
        name = suffix.strip("_ ") or f"object {number + 1}"
        tracks.append(_table_track(times, positions, angle, name, "px" if scale is None else "m"))
    return tracks


def _table_track(times: np.ndarray, positions: np.ndarray, angle: np.ndarray | None, name: str, unit: str) -> Track:
    observed = np.asarray(np.isfinite(positions).all(axis=1))
    if angle is not None:
        observed &= np.isfinite(angle)
        angle[observed] = np.unwrap(angle[observed])
    sigma = np.where(observed, estimate_noise(positions[observed]), np.inf)
    return Track(times, positions, sigma, observed, angle, name=name, unit=unit)


def estimate_noise(positions: Float[np.ndarray, "times 2"]) -> float:
    """Estimate the standard deviation of white noise on smooth positions.

    Differences of order k of white noise have a variance (2k choose k) times that of the noise, while those of a
    smooth, well-sampled motion vanish with increasing k. The smallest of the estimates of several orders is therefore
    returned; each is based on the median, which is robust to impacts.
    """
    if len(positions) < 8:
        return 1.0
    estimates = [
        np.median(np.abs(np.diff(positions, order, axis=0))) / 0.6745 / np.sqrt(math.comb(2 * order, order))
        for order in range(2, min(7, len(positions) - 3))
    ]
    return float(max(min(estimates), 1e-9))
