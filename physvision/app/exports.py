"""Table of the motion in the axes that were chosen: positions, velocities, accelerations and energy over time."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import numpy as np

from physvision.app.schema import IdentifyRequest
from physvision.identification import Identification
from physvision.report.spreadsheet import Cell, write_csv


def write_motion_table(result: Identification, request: IdentifyRequest, path: Path, decimal: str) -> Path:
    """Write motion.csv: a row for each time, lengths in meters where the scale is known, y up.

    Args:
        result: Identification, whose fitted motion gives velocities and accelerations.
        request: Request with the origin and the direction of the axes.
        path: Path to write to.
        decimal: Decimal separator, a point or a comma.
    """
    times, observed = result.evidence.times.numpy(), result.evidence.observed.numpy()
    fitted = result.positions(times)
    unit, factor = ("m", 1 / result.scale) if result.scale else (result.evidence.unit, 1.0)
    head, columns = ["time_s"], [times]
    for index, track in enumerate(result.evidence.tracks):
        name = track.name.replace(" ", "_")
        origin = request.origin or _lower_left(observed[:, 2 * index : 2 * index + 2])
        for label, positions in (("", observed), ("fitted_", fitted)):
            plane = to_axes(positions[:, 2 * index : 2 * index + 2], origin, request.turn) * factor
            head += [f"{name}_{label}{axis}_{unit}" for axis in "xy"]
            columns += list(plane.T)
        velocity = np.gradient(plane, times, axis=0)
        acceleration = np.gradient(velocity, times, axis=0)
        head += [f"{name}_v{axis}_{unit}/s" for axis in "xy"] + [f"{name}_a{axis}_{unit}/s²" for axis in "xy"]
        columns += [*velocity.T, *acceleration.T]
    rows: list[list[Cell]] = [
        ["" if math.isnan(value) else Decimal(f"{value:.6g}") for value in row] for row in np.stack(columns, 1).tolist()
    ]
    write_csv(path, head, rows, decimal)
    return path


def to_axes(positions: np.ndarray, origin: tuple[float, float], turn: float) -> np.ndarray:
    """Return positions of the picture in axes with y up.

    Args:
        positions: Positions (points, 2), y down, px.
        origin: Origin of the axes, px.
        turn: Angle from the picture's horizontal to the x axis, counterclockwise, rad.
    """
    x, y = positions[:, 0] - origin[0], origin[1] - positions[:, 1]
    return np.stack([x * math.cos(turn) + y * math.sin(turn), y * math.cos(turn) - x * math.sin(turn)], 1)


def _lower_left(positions: np.ndarray) -> tuple[float, float]:
    """Return the lower left corner of a track in the picture, px."""
    return float(np.nanmin(positions[:, 0])), float(np.nanmax(positions[:, 1]))
