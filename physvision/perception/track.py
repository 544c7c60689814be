"""Trajectories of objects in the image: tables (CSV) of them, and the repair of their timestamps.

Phones and programs drop frames and renumber the others, or repeat one. A smooth motion then advances twice as far in
one frame, or once in two, between stretches that agree on the usual displacement. A camera that stalls and catches up
takes a frame at any time in between. Such timestamps are repaired by the motion of an object.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from physvision.core import InputError, ShapeError, StrPath
from physvision.core.tables import read_table
from physvision.perception.cadence import find_cadence
from physvision.perception.settings import DEFAULT_SETTINGS, CadenceSettings, TimestampSettings

_MAX_FRAMES, _MAX_NUMBER = 1_000_000, 1e12  # of a track: nine hours at 30 frames a second; far above any unit's
_PICTURE_PIXELS = 500.0  # across a picture that the positions of a short table are taken to fill
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
        # A motion is simulated at the frames between, too, and squares of times and lengths are sums of a fit.
        steps = np.diff(self.times)
        if count > 1 and self.times[-1] - self.times[0] > _MAX_FRAMES * float(np.median(steps)):
            late, longest = self.times[int(steps.argmax()) + 1], float(steps.max())
            text = f"times of {self.name}: {longest:g} s without a frame before {late:g} s, expected at most"
            raise InputError(f"{text} {_MAX_FRAMES:,} frames of the usual interval in all; cut the motion there")
        if not np.isfinite(self.positions[self.observed]).all():
            raise InputError(f"positions of {self.name}: expected finite values wherever it is observed")
        if not all((np.abs(values) < _MAX_NUMBER).all() for values in (self.times, self.positions[self.observed])):
            text = f"expected numbers below {_MAX_NUMBER:g}, in s, and in pixels or meters"
            raise InputError(f"times and positions of {self.name}: {text}; change their units")
        if self.unit not in ("px", "m"):
            raise InputError(f'unit: expected "px" or "m", got {self.unit!r}')

    def __len__(self) -> int:
        return len(self.times)

    @property
    def extent(self) -> float:
        """Diagonal of the bounding box of the observed positions, in `unit`."""
        positions = self.positions[self.observed]
        return float(np.linalg.norm(np.ptp(positions, axis=0))) if len(positions) else 0.0

    def window(self, start: int, stop: int | None, step: int = 1) -> Track:
        """Cut out every `step`-th sample from `start` to `stop` (excluded; the end if None), times unchanged."""
        names = ("times", "positions", "sigma", "observed") + (() if self.angle is None else ("angle",))
        return replace(self, **{name: getattr(self, name)[start:stop:step] for name in names})


def read_tracks(path: StrPath, unit: str = "px") -> list[Track]:
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
    columns: dict[str, list[int]] = {kind: [] for kind in ("t", "time", "x", "y", "angle")}
    for column, name in enumerate(names):
        kind = re.split(r"[_ (\[]", name.strip().lower(), maxsplit=1)[0]
        columns.setdefault(kind, []).append(column)
    time_columns = columns["t"] + columns["time"]
    pairs = _pairs(names, columns["x"], columns["y"])
    if len(time_columns) != 1 or not pairs:
        raise InputError(f"{path}: expected columns t, x, y and perhaps angle of each object, got {', '.join(names)}")
    times, meters = values[:, time_columns[0]], METERS_PER_UNIT[unit]
    tracks = []
    for number, (x, y) in enumerate(pairs):
        suffix = names[x].strip()[1:]
        angles = [column for column in columns["angle"] if names[column].strip()[5:] == suffix]
        positions = values[:, [x, y]] if meters is None else values[:, [x, y]] * [meters, -meters]
        angle = values[:, angles[0]] * (1 if meters is None else -1) if angles else None
        name = suffix.strip("_ ") or f"object {number + 1}"
        tracks.append(_table_track(times, positions, angle, name, "px" if meters is None else "m"))
    return tracks


def _pairs(names: Sequence[str], x_columns: Sequence[int], y_columns: Sequence[int]) -> list[tuple[int, int]]:
    """Columns of x and y of each object, by the rest of their names, in the order of x; none if one lacks the other."""
    remaining, pairs = list(y_columns), []
    for x in x_columns:
        y = next((y for y in remaining if names[y].strip()[1:].lower() == names[x].strip()[1:].lower()), None)
        if y is None:
            return []
        remaining.remove(y)
        pairs.append((x, y))
    return [] if remaining else pairs


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
    returned; each is based on the median, which is robust to impacts. Of fewer than eight positions, which have too few
    differences, the residuals of a parabola give it; of fewer than four it is a pixel of a picture that they fill.
    """
    count = len(positions)
    if count < 4:
        extent = float(np.ptp(positions, axis=0).max()) if count else 0.0
        return max(extent / _PICTURE_PIXELS, 1e-9)
    if count < 8:
        basis = np.vander(np.arange(count), 3)
        residuals = positions - basis @ np.linalg.lstsq(basis, positions, rcond=None)[0]
        return max(math.sqrt(float((residuals**2).sum()) / (2 * (count - 3))), 1e-9)
    estimates = [
        np.median(np.abs(np.diff(positions, order, axis=0))) / 0.6745 / np.sqrt(math.comb(2 * order, order))
        for order in range(2, min(7, len(positions) - 3))
    ]
    return float(max(min(estimates), 1e-9))


def apply_cadence(tracks: Sequence[Track], settings: CadenceSettings = DEFAULT_SETTINGS.cadence) -> list[Track]:
    """Correct the times of all tracks if the one that moves farthest shows that the frame rate was converted."""
    reference = max(tracks, key=lambda track: track.extent)
    positions = np.where(reference.observed[:, None], reference.positions, np.nan)
    cadence = find_cadence(reference.times, positions, settings)
    if cadence is None:
        return list(tracks)
    rate = 1 / float(np.mean(np.diff(reference.times)))
    note = (
        f"The frame rate was converted from {cadence.camera_fps:.4g} to {rate:.4g} frames a second, which dropped or "
        "repeated some; times follow the motion."
    )
    return [
        replace(
            track,
            times=cadence.times,
            observed=track.observed & ~cadence.repeats,
            sigma=np.where(cadence.repeats, np.inf, track.sigma),
            notes=(*track.notes, note),
        )
        for track in tracks
    ]


def repair_timestamps(
    tracks: Sequence[Track], settings: TimestampSettings = DEFAULT_SETTINGS.timestamps
) -> list[Track]:
    """Correct the times of all tracks by the dropped and repeated frames that the most informative track shows."""
    gap_counts = [_count_gaps(track, settings) for track in tracks]
    if not gap_counts:
        return []
    reference = max(range(len(tracks)), key=lambda number: float(np.abs(gap_counts[number]).sum()))
    gaps, observed = gap_counts[reference], np.flatnonzero(tracks[reference].observed)
    count = round(float(np.abs(gaps).sum()))
    if count == 0 or count > settings.max_jump_fraction * len(observed):
        return list(tracks)
    times = tracks[0].times
    delays = np.concatenate([[0.0], np.cumsum(gaps)]) * float(np.median(np.diff(times)))
    # Unobserved frames, such as repeated ones, are spread evenly between observed ones.
    frames = np.arange(len(times))
    between = np.interp(frames, observed, times[observed] + delays)
    times = np.where(frames < observed[0], times, np.where(frames > observed[-1], times + delays[-1], between))
    note = f"{count} frames were dropped or repeated although the timestamps are even; times follow the motion."
    return [replace(track, times=times, notes=(*track.notes, note)) for track in tracks]


def _count_gaps(track: Track, settings: TimestampSettings) -> Float[np.ndarray, " steps"]:
    """Count the dropped frames after each observed one; negative where a frame is repeated."""
    num_side_steps, observed = settings.side_steps, np.flatnonzero(track.observed)
    gaps = np.zeros(max(len(observed) - 1, 0))
    if len(observed) < 2 * num_side_steps + 2:
        return gaps
    durations = np.diff(track.times[observed]) / float(np.median(np.diff(track.times)))
    steps = np.diff(track.positions[observed], axis=0)
    sigma = track.sigma[observed]
    noise = max(float(np.median(sigma)), _position_noise(track.positions[observed]))
    for index in range(num_side_steps, len(steps) - num_side_steps):
        window = slice(index - num_side_steps, index + num_side_steps + 1)
        if durations[window].max() > 2.5 or np.delete(durations[window], num_side_steps).max() > 1.5:
            continue
        before = _extrapolate(steps[index - num_side_steps : index])
        after = _extrapolate(steps[index + num_side_steps : index : -1])
        expected, disagreement = (before + after) / 2, float(np.linalg.norm(before - after))
        length = float(np.linalg.norm(expected))
        if length < settings.min_step * noise or disagreement > settings.max_difference * length:
            continue
        advance = float(steps[index] @ expected) / length**2
        # With position errors σ, the difference of a step from lines through four on either side has √5 σ. Where a hand
        # covers a part of the object, its position is that far off.
        local_noise = max(noise, float(sigma[window.start : window.stop + 1].max()))
        advance_sigma = math.sqrt(5) * local_noise / length
        is_jump = abs(advance - durations[index]) > max(0.5, settings.min_jump * advance_sigma)
        deviation = np.linalg.norm(steps[index] - advance * expected)
        if deviation > settings.max_difference * length or not is_jump or advance <= 0:
            continue
        tolerance = settings.integer_tolerance * math.hypot(advance_sigma, disagreement / 2 / length)
        count = max(1, round(advance))
        gaps[index] = (count if abs(advance - count) < tolerance else advance) - round(float(durations[index]))
    return gaps


def _position_noise(positions: Float[np.ndarray, "samples 2"]) -> float:
    """Estimate the noise of positions on a smooth path; a tracker's own sigma may be less."""
    differences = np.diff(positions, n=3, axis=0)  # √20 σ for positions with errors σ
    return 1.4826 * float(np.median(np.abs(differences))) / math.sqrt(20)


def _extrapolate(steps: Float[np.ndarray, "side 2"]) -> Float[np.ndarray, "2"]:
    """Extrapolate the next step by the line through the steps of one side."""
    index = np.arange(len(steps))
    return np.array([np.polyval(np.polyfit(index, steps[:, axis], 1), len(steps)) for axis in (0, 1)])
