"""Table of the motion in axes with y up: positions, fitted positions, velocities and accelerations over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
from jaxtyping import Float

from physvision.identification.result import Identification
from physvision.report.spreadsheet import Cell, write_csv, write_xlsx

# Half the time over which positions are differentiated, in frames: so short that a jump of the fitted position between
# two frames, where a hand no longer hides a part of the object, lies outside.
_HALF_STEP_FRAMES = 1e-4
# Half the time over which velocities are differentiated, in frames. The law is known at the frames and interpolated by
# cubic polynomials between them: at a third, their error and that of the difference cancel to the fourth order.
_ACCELERATION_HALF_STEP_FRAMES = 1 / 3

Times = Float[np.ndarray, " times"]
Vectors = Float[np.ndarray, "times numbers"]


@dataclass(frozen=True)
class Axes:
    """Axes in which a motion is written, with y up.

    Attributes:
        origin: Origin in the picture, px; the lower left corner of all tracks if None, and for tables of lengths the
            origin of the table.
        angle: Angle from the picture's horizontal to the x axis, counterclockwise, rad.
    """

    origin: tuple[float, float] | None = None
    angle: float = 0.0

    def rotate(self, vectors: Vectors) -> Vectors:
        """Return vectors (times, 2) of the picture, y down, in these axes."""
        x, y = vectors[:, 0], -vectors[:, 1]
        cos, sin = math.cos(self.angle), math.sin(self.angle)
        return np.stack([x * cos + y * sin, y * cos - x * sin], 1)

    def origin_of(self, result: Identification) -> np.ndarray:
        """Return the origin in the picture, in the unit of its positions."""
        if self.origin is not None:
            return np.array(self.origin)
        if result.evidence.unit != "px":
            return np.zeros(2)
        observed = result.evidence.observed.numpy()
        return np.array([np.nanmin(observed[:, 0::2]), np.nanmax(observed[:, 1::2])])


PICTURE_AXES = Axes()


class MotionAxes:
    """Axes of a result, with lengths in meters where the scale is known.

    Attributes:
        unit: Unit of length.
    """

    def __init__(self, result: Identification, axes: Axes = PICTURE_AXES) -> None:
        """Place axes in a result.

        Args:
            result: Result whose positions are converted.
            axes: Axes.
        """
        self.unit, self._factor = ("m", 1 / result.scale) if result.scale else (result.evidence.unit, 1.0)
        self._axes, self._origin = axes, axes.origin_of(result)

    def points(self, positions: Vectors) -> Vectors:
        """Return positions (times, 2) of the picture in these axes."""
        return self.vectors(positions - self._origin)

    def vectors(self, vectors: Vectors) -> Vectors:
        """Return vectors (times, 2) of the picture, such as velocities, in these axes."""
        return self._factor * self._axes.rotate(vectors)


def write_motion_tables(
    result: Identification, folder: Path, decimal: str = ".", axes: Axes = PICTURE_AXES
) -> list[Path]:
    """Write motion.csv and motion.xlsx, and return their paths.

    Args:
        result: Identification to write.
        folder: Existing folder.
        decimal: Decimal separator of the CSV, a point or a comma; with a comma, columns are separated by semicolons.
        axes: Axes of the positions.
    """
    head, rows = motion_rows(result, axes)
    paths = [folder / "motion.csv", folder / "motion.xlsx"]
    write_csv(paths[0], head, rows, decimal)
    write_xlsx(paths[1], head, rows)
    return paths


def motion_rows(result: Identification, axes: Axes = PICTURE_AXES) -> tuple[list[str], list[list[Cell]]]:
    """Return the head and the rows of the table: one for each time of the fitted span.

    Each object has its observed position x, y, the fitted one, and velocity and acceleration of the fitted law. Lengths
    are in meters where the scale is known, otherwise in pixels.
    """
    times, observed = result.evidence.times.numpy(), result.evidence.observed.numpy()
    used = result.in_span(times)
    times, observed = times[used], observed[used]
    fitted, velocities, accelerations = motion_derivatives(result, times)
    motion_axes = MotionAxes(result, axes)
    unit = motion_axes.unit
    head, columns = ["time_s"], [times]
    for index, track in enumerate(result.evidence.tracks):
        name, part = track.name.replace(" ", "_"), slice(2 * index, 2 * index + 2)
        quantities = {
            ("", unit): motion_axes.points(observed[:, part]),
            ("fitted_", unit): motion_axes.points(fitted[:, part]),
            ("v", f"{unit}/s"): motion_axes.vectors(velocities[:, part]),
            ("a", f"{unit}/s²"): motion_axes.vectors(accelerations[:, part]),
        }
        for (label, quantity_unit), values in quantities.items():
            head += [f"{name}_{label}{axis}_{quantity_unit}" for axis in "xy"]
            columns += [*values.T]
    table = np.stack(columns, 1).tolist()
    rows: list[list[Cell]] = [
        [Decimal(f"{time:.6f}"), *("" if math.isnan(value) else Decimal(f"{value:.6g}") for value in values)]
        for time, *values in table
    ]
    return head, rows


def motion_derivatives(result: Identification, times: Times) -> tuple[Vectors, Vectors, Vectors]:
    """Return positions, velocities and accelerations of the fitted law at times of its span.

    The acceleration is NaN at the first time: the law is not defined before.
    """
    dt, start = result.evidence.dt, result.span[0]
    step, acceleration_step = _HALF_STEP_FRAMES * dt, _ACCELERATION_HALF_STEP_FRAMES * dt

    def velocities(centers: Times) -> Vectors:
        return (result.positions(centers + step) - result.positions(centers - step)) / (2 * step)

    accelerations = (velocities(times + acceleration_step) - velocities(times - acceleration_step)) / (
        2 * acceleration_step
    )
    return result.positions(times), velocities(np.maximum(times, start + step)), accelerations
