"""What moves along a straight line: where the line is, and how far along it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from physvision.estimation import SampledState
from physvision.identification import arcs, starts
from physvision.identification.model import Case, UnsuitableError

_STRAIGHT = 0.06  # how far a track may be from a line, of its spread


@dataclass(frozen=True)
class StraightTrack:
    """A track that is straight.

    Attributes:
        times: of the samples that were seen, s.
        away: distances along the line from `middle`, growing in the direction of `heading`, px.
        middle: a point of the line, px.
        heading: its direction, rad from x towards y.
        first: the first sample, and one past the last.
        last: see `first`.
        noise: standard deviation of a coordinate, px.
        frames: number of each sample.
    """

    times: np.ndarray
    away: np.ndarray
    middle: np.ndarray
    heading: float
    first: int
    last: int
    noise: float
    frames: np.ndarray


def straight(case: Case, number: int = 0, least: int = 6, share: float = _STRAIGHT) -> StraightTrack:
    """The line of an object's track; refused where it is none. It heads to where the object moves at first."""
    seen = case.seen(number).numpy()
    there = np.flatnonzero(np.isfinite(seen).all(1))
    if len(there) < least:
        raise UnsuitableError(f"fewer than {least} places were seen")
    times, places = case.times.numpy()[there], seen[there]
    direction, width = starts.main_direction(places)
    noise = max(float(np.median(case.tracks[number].sigma[there])), 0.15)
    spread = float(np.ptp((places - places.mean(0)) @ direction))
    if spread < 6 * noise:
        raise UnsuitableError("it hardly moves")
    if width > max(share, 6 * noise / spread):
        raise UnsuitableError("it does not move along a straight line")
    away = (places - places.mean(0)) @ direction
    if np.polyfit(times, away, 1)[0] < 0:
        direction, away = -direction, -away
    heading = math.atan2(direction[1], direction[0])
    return StraightTrack(times, away, places.mean(0), heading, int(there[0]), int(there[-1]) + 1, noise, there)


def moving_part(line: StraightTrack) -> StraightTrack:
    """The stretch of a line's track that a steady acceleration explains: without rests before and after."""
    places = np.stack([line.away, np.zeros_like(line.away)], 1)
    window = arcs.parabola_window(line.times, places, 1.3 * line.noise, min(6, len(line.times)))
    if window is None or np.ptp(line.away[slice(*window)]) < 0.3 * np.ptp(line.away):
        raise UnsuitableError("no stretch of it moves with a steady acceleration")
    first, last = window
    frames = line.frames[first:last]
    return replace(
        line, times=line.times[first:last], away=line.away[first:last], frames=frames, first=int(frames[0]),
        last=int(frames[-1]) + 1,
    )  # fmt: skip


def along(seen: SampledState, origin: str) -> torch.Tensor:
    """Where something on the line is seen, px; q is the distance from the unknown `origin`."""
    heading = seen.values["heading"]
    direction = torch.stack([heading.cos(), heading.sin()], 1)
    return seen.values[origin] + seen.state.q[:, :1] * direction
