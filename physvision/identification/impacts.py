"""Sudden changes of velocity in tracks and sound: bounces, the flights between them, and impacts of two objects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from physvision.identification.initial_guesses import Positions, Samples, fit_polynomial
from physvision.identification.kind_settings import BounceSettings, CollisionSettings
from physvision.identification.settings import AudioSettings


def find_bounces(times: Samples, heights: Samples, noise: float, settings: BounceSettings) -> list[int]:
    """Find the last sample before each impact, at which a downward motion turns upward.

    Args:
        times: Times of the samples, s.
        heights: Positions along the vertical, y down, pixels.
        noise: Standard deviation of a coordinate, pixels.
        settings: Thresholds of the change of velocity.
    """
    speed = np.diff(heights) / np.diff(times)
    typical_change = np.median(np.abs(np.diff(speed)))
    # A repeated frame makes the next step look twice as fast, so the fastest motion is a median over three steps.
    windows = [np.abs(speed[index : index + 3]) for index in range(max(len(speed) - 2, 1))]
    max_speed = float(np.median(windows, axis=1).max())
    min_jump = max(3 * typical_change, settings.min_jump * max_speed, 6 * noise / float(np.median(np.diff(times))))
    bounces: list[int] = []
    max_jump = 0.0
    for index in range(1, len(speed) - 1):
        # The step in which the impact lies may show any speed between: the steps around it show the jump.
        jump = float(speed[index - 1] - speed[index + 1])
        if speed[index - 1] > 0 > speed[index + 1] and jump > min_jump:
            if not bounces or index - bounces[-1] > 2:
                bounces.append(index + int(np.argmax(heights[index : index + 2])))
            max_jump = max(max_jump, jump)
    # A swing turns as well, but softly.
    return bounces if max_jump > settings.min_hardest_jump * max_speed else []


class BounceGuess(NamedTuple):
    """Initial guess of a bouncing ball.

    Attributes:
        gravity: Downward acceleration, px/s².
        floor: Height of the center at impact, y down, pixels.
        restitution: Coefficient of restitution.
        position: First position, pixels.
        velocity: First velocity, px/s.
    """

    gravity: float
    floor: float
    restitution: float
    position: Float[np.ndarray, "2"]
    velocity: Float[np.ndarray, "2"]


def guess_bounces(times: Samples, positions: Positions, bounces: list[int]) -> BounceGuess | None:
    """Estimate a bouncing ball's parameters from the parabolas between impacts; None if none of them opens down."""
    edges = [0, *bounces, len(times)]
    accelerations, scatters, counts = [], [], []
    for first, last in pairwise(edges):
        part = slice(first + 2 if first else 0, max(last - 1, first))
        if last - first < 5:
            continue
        elapsed, heights = times[part] - times[part.start], positions[part, 1:]
        coefficients = fit_polynomial(elapsed, heights, 2)
        if coefficients[2, 0] > 0:
            accelerations.append(2 * float(coefficients[2, 0]))
            scatters.append(float(np.std(heights - np.vander(elapsed, 3, increasing=True) @ coefficients)))
            counts.append(last - first)
    if not accelerations:
        return None
    # Samples of other objects, tracked before the ball or beside it, scatter about the parabola of their flight.
    variances = np.maximum(scatters, np.median(scatters) + 1e-9) ** 2 / np.array(counts, dtype=float) ** 5
    gravity = _weighted_median(np.array(accelerations), 1 / variances)
    floors = [float(positions[max(bounce - 1, 0) : bounce + 2, 1].max()) for bounce in bounces]
    before, after = positions[: bounces[0], 1], positions[bounces[0] : edges[2], 1]
    restitution = _restitution_by_times(times, bounces)
    if restitution is None:
        restitution = _restitution_by_heights(before, after, floors[0])
    count = max(4, min(bounces[0] - 1, 12))
    elapsed = times[:count] - times[0]
    without_gravity = positions[:count].copy()
    without_gravity[:, 1] -= gravity / 2 * elapsed**2
    line = fit_polynomial(elapsed, without_gravity, 1)
    return BounceGuess(gravity, float(np.median(floors)), restitution, line[0], line[1])


def _weighted_median(values: Float[np.ndarray, " values"], weights: Float[np.ndarray, " values"]) -> float:
    order = np.argsort(values)
    fractions = (weights[order].cumsum() - weights[order] / 2) / weights.sum()
    return float(np.interp(0.5, fractions, values[order]))


def _restitution_by_times(times: Samples, bounces: list[int]) -> float | None:
    """Return the restitution by the times of impacts, t_n = a − b eⁿ; None for fewer than three flights.

    Ratios of single flights scatter by a frame in each, and phases of late bounces magnify the error.
    """
    if len(bounces) < 4:
        return None
    impacts, numbers = times[bounces] + np.median(np.diff(times)) / 2, np.arange(len(bounces))
    candidates = np.linspace(0.3, 0.99, 139)
    costs = [_least_squares(np.stack([np.ones_like(impacts), e**numbers], 1), impacts[:, None])[1] for e in candidates]
    return float(candidates[int(np.argmin(costs))])


def _restitution_by_heights(before: np.ndarray, after: np.ndarray, floor: float) -> float:
    """Return the restitution by the heights before and after an impact."""
    return math.sqrt(max(floor - after.min(), 1e-9) / max(floor - before.min(), 1e-9))


class Impact(NamedTuple):
    """Impact of two objects.

    Attributes:
        time: Time of the impact, s.
        before: Velocities of both objects before it, px/s.
        after: Velocities of both objects after it, px/s.
        positions: Positions of both objects, pixels.
    """

    time: float
    before: Float[np.ndarray, "4"]
    after: Float[np.ndarray, "4"]
    positions: Float[np.ndarray, "4"]


def find_impact(
    times: Samples, positions: Float[np.ndarray, "samples numbers"], settings: CollisionSettings
) -> Impact | None:
    """Find the impact: the sample at which a change of velocity improves the fit most; None if none improves it.

    At each sample, the fit of two lines that meet there is compared with that of one line. Only a short time around it
    counts, since friction bends the lines.
    """
    duration = min(settings.fit_duration, settings.fit_samples * float(np.median(np.diff(times))))
    min_cost, impact = np.inf, None
    total = float(((positions - positions.mean(0)) ** 2).sum())
    for index in range(4, len(times) - 4):
        elapsed = times - times[index]
        window = np.abs(elapsed) < duration
        if (window & (elapsed < 0)).sum() < 3 or (window & (elapsed > 0)).sum() < 3:
            continue
        window_times = elapsed[window]
        ones, clipped = np.ones_like(window_times), (np.minimum(window_times, 0), np.maximum(window_times, 0))
        kinked_basis = np.stack([ones, *clipped], 1)
        solution, cost = _least_squares(kinked_basis, positions[window])
        cost -= _least_squares(np.stack([ones, window_times], 1), positions[window])[1]
        if cost < min_cost:
            min_cost, impact = cost, Impact(float(times[index]), solution[1], solution[2], solution[0])
    return impact if min_cost < -1e-4 * total else None


def _least_squares(basis: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Solve linear least squares; the coefficients and the sum of squared errors."""
    solution = np.linalg.lstsq(basis, values, rcond=None)[0]
    return solution, float(((values - basis @ solution) ** 2).sum())


@dataclass(frozen=True)
class AudioRestitution:
    """Restitution of a bouncing ball estimated from audio onsets.

    Attributes:
        restitution: Coefficient of restitution.
        std: Standard deviation of the restitution.
        num_bounces: Number of successive bounces with an onset.
    """

    restitution: float
    std: float
    num_bounces: int

    def describe(self) -> str:
        """Return the restitution with its standard deviation."""
        return f"{self.restitution:.4f} ± {self.std:.4f}"


def audio_restitution(
    bounces: Float[np.ndarray, " bounces"],
    onsets: Float[np.ndarray, " onsets"],
    tolerance: float,
    settings: AudioSettings,
) -> AudioRestitution | None:
    """Estimate the restitution from audio onsets; None unless three successive bounces have one.

    Between bounces a ball flies for 2 v / g, where v is the speed after the bounce. Each flight duration T₁, T₂, … is
    therefore the previous one times the restitution e, so that e = (T_n / T₁)^(1 / (n − 1)).

    Args:
        bounces: Times of the bounces in the video, s.
        onsets: Times of the audio onsets, s.
        tolerance: Largest difference between a bounce and its onset once the constant lag is removed, s.
        settings: Settings with the largest lag and the standard deviation of onsets.
    """
    times = _longest_run(_match_onsets(bounces, onsets, tolerance, settings.max_lag))
    if len(times) < 3:
        return None
    flights = np.diff(times)
    ratios = np.array([after / before for before, after in pairwise(flights)])
    count = len(ratios)
    restitution = float((flights[-1] / flights[0]) ** (1 / count))
    timing_std = np.sqrt(2) * settings.onset_std * restitution / count * np.hypot(1 / flights[0], 1 / flights[-1])
    # Hard impacts have a lower restitution than soft ones, so the scatter of the ratios limits a common estimate.
    scatter_std = float(ratios.std(ddof=1)) / np.sqrt(count) if count > 1 else 0.0
    return AudioRestitution(restitution, float(np.hypot(timing_std, scatter_std)), len(times))


def _match_onsets(bounces: np.ndarray, onsets: np.ndarray, tolerance: float, max_lag: float) -> np.ndarray:
    """Return the onset of each bounce, NaN where there is none, for the lag at which most bounces have one."""
    matches = np.full(len(bounces), np.nan)
    score = (0, 0.0)
    for lag in {float(onset - bounce) for bounce in bounces for onset in onsets if abs(onset - bounce) < max_lag}:
        distances = np.abs(onsets[None] - lag - bounces[:, None])
        nearest, distance = distances.argmin(1), distances.min(1)
        matched = distance < tolerance
        if (int(matched.sum()), -float(distance[matched].sum())) > score:
            score = int(matched.sum()), -float(distance[matched].sum())
            matches = np.where(matched, onsets[nearest], np.nan)
    return matches


def _longest_run(times: np.ndarray) -> np.ndarray:
    """Return the longest run of consecutive times without NaN."""
    edges = [-1, *np.flatnonzero(np.isnan(times)), len(times)]
    first, last = max(pairwise(edges), key=lambda pair: pair[1] - pair[0])
    return times[first + 1 : last]
