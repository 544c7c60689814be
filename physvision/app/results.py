"""Tracks and identifications as the plain values that the page shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from physvision.identification import Identification, Parameter
from physvision.identification.formatting import describe_odds, in_degrees, round_to_interval
from physvision.identification.kinds import KINDS
from physvision.identification.motion_table import PICTURE_AXES
from physvision.identification.result_text import basis
from physvision.perception import Track
from physvision.report.palette import OBJECTS, css

_FUTURE_SECONDS, _MAX_FUTURE = 2.0, 240
_MAX_ENERGIES = 1_000
_MAX_PATH_POINTS = 500


def to_list(values: np.ndarray, digits: int = 3) -> list[Any]:
    """Return an array as nested lists, rounded, with None for what is not finite."""
    rounded = np.round(values.astype(float), digits)
    if np.isfinite(rounded).all():
        return rounded.tolist()
    shown = rounded.astype(object)
    shown[~np.isfinite(rounded)] = None
    return shown.tolist()


def describe_paths(paths: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    """Return the paths (points, 2) of objects that are still being tracked, px, in the colors of their tracks."""
    return [
        {
            "color": css(OBJECTS[index % len(OBJECTS)]),
            "points": to_list(path[:: math.ceil(len(path) / _MAX_PATH_POINTS)], 1),
        }
        for index, path in enumerate(paths)
    ]


def describe_tracks(tracks: Sequence[Track], first_frame: int) -> dict[str, Any]:
    """Return tracks by their frames.

    Args:
        tracks: Tracks of the same times.
        first_frame: Number of the film's frame that is their first sample.
    """
    objects = [
        {
            "name": track.name,
            "color": css(OBJECTS[index % len(OBJECTS)]),
            "radius": track.radius,
            "positions": to_list(np.where(track.observed[:, None], track.positions, np.nan), 2),
            "notes": list(track.notes),
        }
        for index, track in enumerate(tracks)
    ]
    return {"first": first_frame, "times": to_list(tracks[0].times, 6), "objects": objects}


def describe_result(result: Identification, first_frame: int, indices: Sequence[int], command: str) -> dict[str, Any]:
    """Return an identification with its curves.

    Args:
        result: Identification.
        first_frame: Number of the film's frame that is its first sample.
        indices: Index among all tracks of each object of the result.
        command: Command line that does the same.
    """
    evidence = result.evidence
    times = evidence.times.numpy()
    future = future_times(result)
    return {
        "motion": result.motion,
        "kinds": _describe_kinds(result),
        "rejected": [{"kind": kind, "reason": reason} for kind, reason in result.rejected.items()],
        "basis": [list(row) for row in basis(result)],
        "parameters": [_describe_parameter(name, entry) for name, entry in result.parameters.items()],
        "camera": [_describe_parameter(name, entry) for name, entry in result.noticeable_camera.items()],
        "warnings": list(result.warnings),
        "noise": result.fit.noise,
        "unit": evidence.unit,
        "scale": result.scale,
        "holdout": None if result.holdout is None else [result.holdout.error, result.holdout.relative_error],
        "first": first_frame,
        "times": to_list(times, 6),
        "objects": list(indices),
        "origin": to_list(PICTURE_AXES.origin_of(result), 3),
        "observed": to_list(evidence.observed.numpy(), 3),
        "fitted": to_list(result.fitted_positions, 3),
        "span": list(result.span),
        "future": {"times": to_list(future, 6), "positions": to_list(result.positions(future), 2)},
        "energy": _describe_energy(result),
        "command": command,
    }


def future_times(result: Identification) -> np.ndarray:
    """Return the times after the clip to which the motion is predicted, s; none if the fit ends before the clip."""
    evidence = result.evidence
    count = min(_MAX_FUTURE, math.ceil(_FUTURE_SECONDS / evidence.dt))
    times = float(evidence.times[-1]) + evidence.dt * np.arange(1, count + 1)
    return times[result.may_follow(times)]


def _describe_kinds(result: Identification) -> list[dict[str, Any]]:
    notes = {**result.indistinguishable, result.motion: ""}
    return [
        {"kind": kind, "odds": odds, "text": describe_odds(odds), "note": notes.get(kind, "")}
        for kind, odds in result.odds.items()
    ]


def _describe_parameter(name: str, parameter: Parameter) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": name,
        "label": name.replace("_", " "),
        "unit": parameter.unit,
        "meaning": parameter.meaning,
        "reason": parameter.reason,
        "value": parameter.value,
    }
    if parameter.value is not None and parameter.interval_95 is not None:
        value, low, high = round_to_interval(parameter.value, *parameter.interval_95)
        entry |= {"text": value, "low": low, "high": high, "degrees": in_degrees(parameter).strip(" ()")}
        entry["range"] = _slider_range(parameter.value, *parameter.interval_95)
    return entry


def _slider_range(value: float, low: float, high: float) -> list[float]:
    """Return the range of values to try: from a quarter to two and a half times a value that is well known."""
    span = max(abs(value), 2 * (high - low), 1e-6)
    begin = value - 0.75 * span
    return [max(begin, 0.0) if low >= 0 else begin, value + 1.5 * span]


def _describe_energy(result: Identification) -> dict[str, Any] | None:
    """Return kinetic energy, and potential energy above its least, of the fitted motion; None without masses."""
    engine = result.engine
    if engine.mechanics is None or engine.nu == 0:
        return None
    trajectory = result.trajectory
    with torch.no_grad():
        kinetic, potential = (part[0].double().numpy() for part in engine.mechanics.energy(trajectory))
    potential = potential - np.nanmin(potential)
    largest = max(float(np.nanmax(kinetic)), float(np.nanmax(potential)), 1e-30)
    digits = 5 - math.floor(math.log10(largest))
    stride = math.ceil(len(kinetic) / _MAX_ENERGIES)
    times = trajectory.times.double().numpy() + result.fit.start_time
    unit = "J" if result.unit == "m" else "kg px²/s²"
    has_mass = "mass" in result.known_values or result.motion not in KINDS  # own scenes have theirs
    note = "" if has_mass else "for a mass of 1 kg"
    curves = {"kinetic": kinetic, "potential": potential}
    shown = {"unit": unit, "note": note, "times": to_list(times[::stride], 6)}
    return {**shown, **{name: to_list(curve[::stride], digits) for name, curve in curves.items()}}
