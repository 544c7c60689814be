"""Straight tracks: the line, and the distance along it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int

from physvision.estimation import SampledState
from physvision.identification.initial_guesses import Samples, principal_direction
from physvision.identification.model import Evidence, UnsuitableError
from physvision.identification.parabolas import parabola_window
from physvision.identification.settings import IdentificationSettings


@dataclass(frozen=True)
class StraightTrack:
    """Track of an object that moves along a line.

    Attributes:
        times: Times of the observed samples, s.
        distances: Distances along the line from `center`, growing in the direction of `heading`, pixels.
        center: Point of the line, pixels.
        heading: Direction of the line, from x towards y, rad.
        noise: Standard deviation of a coordinate, pixels.
        indices: Index of each sample in the clip.
    """

    times: Samples
    distances: Samples
    center: Float[np.ndarray, "2"]
    heading: float
    noise: float
    indices: Int[np.ndarray, " samples"]

    @property
    def first(self) -> int:
        """First sample of the track."""
        return int(self.indices[0])

    @property
    def end(self) -> int:
        """One past the last sample of the track."""
        return int(self.indices[-1]) + 1


def fit_line(evidence: Evidence, min_samples: int, max_width: float) -> StraightTrack:
    """Fit a line to the track, headed in the direction of its mean motion.

    Args:
        evidence: Track of one object.
        min_samples: Smallest number of samples.
        max_width: Largest width across the line, relative to the spread along it.

    Raises:
        UnsuitableError: The track is not straight, or the object hardly moves.
    """
    indices, times, positions = evidence.samples(min_samples)
    min_spread = evidence.settings.line.min_spread
    direction, width = principal_direction(positions)
    noise = evidence.noise(indices)
    center = positions.mean(0)
    distances = (positions - center) @ direction
    spread = float(np.ptp(distances))
    if spread < min_spread * noise:
        raise UnsuitableError("it hardly moves")
    if width > max(max_width, min_spread * noise / spread):
        raise UnsuitableError("it does not move along a straight line")
    if np.polyfit(times, distances, 1)[0] < 0:
        direction, distances = -direction, -distances
    return StraightTrack(times, distances, center, math.atan2(direction[1], direction[0]), noise, indices)


def steady_part(line: StraightTrack, settings: IdentificationSettings) -> StraightTrack:
    """Return the stretch of a straight track with a constant acceleration, without rests before and after.

    Raises:
        UnsuitableError: There is no such stretch.
    """
    positions = np.stack([line.distances, np.zeros_like(line.distances)], 1)
    parabola = settings.parabola
    window = parabola_window(line.times, positions, parabola.noise_ratio * line.noise, settings=parabola)
    min_spread = settings.line.min_moving_fraction * np.ptp(line.distances)
    if window is None or np.ptp(line.distances[slice(*window)]) < min_spread:
        raise UnsuitableError("no stretch of it moves with a constant acceleration")
    part = slice(*window)
    return replace(line, times=line.times[part], distances=line.distances[part], indices=line.indices[part])


def position_on_line(sampled: SampledState, origin: str) -> torch.Tensor:
    """Return the position of an object on the line, pixels; q is the distance from the unknown called `origin`."""
    heading = sampled.values["heading"]
    direction = torch.stack([heading.cos(), heading.sin()], 1)
    return sampled.values[origin] + sampled.state.q[:, :1] * direction
