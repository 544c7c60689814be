"""Initial guesses of when a flight begins: a hand releases an object, or a flying object comes into view."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from physvision.identification.initial_guesses import MAD_TO_STD, Positions, Samples, fit_polynomial, robust_lstsq
from physvision.identification.settings import DEFAULT_SETTINGS, IdentificationSettings


class FlightPath:
    """Polynomial path of a flight, with its prediction error; cubic for many samples.

    Attributes:
        degree: Degree of the polynomial.
        noise: Standard deviation of the positions about it, pixels.
    """

    def __init__(
        self, times: Samples, positions: Positions, settings: IdentificationSettings = DEFAULT_SETTINGS
    ) -> None:
        """Fit the path to samples of the flight."""
        self.degree = 3 if len(times) >= settings.parabola.cubic_samples else 2
        self._start = times[0]
        powers = self._powers(times)
        self._coefficients = fit_polynomial(times - self._start, positions, self.degree)
        errors = positions - powers @ self._coefficients
        self.noise = MAD_TO_STD * float(np.median(np.abs(errors - np.median(errors, axis=0))))
        self._inverse = np.linalg.inv(powers.T @ powers + 1e-12 * np.eye(self.degree + 1))

    @property
    def acceleration(self) -> Float[np.ndarray, "2"]:
        """Acceleration at the start, px/s²."""
        return 2 * self._coefficients[2]

    @property
    def velocity(self) -> Float[np.ndarray, "2"]:
        """Velocity at the start, px/s."""
        return self._coefficients[1]

    def _powers(self, times: np.ndarray) -> np.ndarray:
        return np.vander(np.atleast_1d(times) - self._start, self.degree + 1, increasing=True)

    def distance(self, time: float, position: Float[np.ndarray, "2"]) -> float:
        """Return the distance of a position from the path, less twice the path's standard error there, pixels."""
        powers = self._powers(np.array([time]))
        variance = float((powers @ self._inverse @ powers.T)[0, 0])
        distance = float(np.linalg.norm(position - (powers @ self._coefficients)[0]))
        return max(distance - 2 * self.noise * math.sqrt(variance), 0.0)


def estimate_release(
    times: Samples,
    positions: Positions,
    first: int,
    noise: Samples,
    earliest: float = math.inf,
    settings: IdentificationSettings = DEFAULT_SETTINGS,
) -> tuple[float, Float[np.ndarray, "2"]]:
    """Estimate when a hand releases an object, and the pull: the acceleration that ends then.

    Each candidate time has a polynomial after it and another constant acceleration before it. An arm takes a fraction
    of a second for a throw, so the speed gives about the strength of its pull; without that prior, a pull of zero would
    fit a release at any time. A release before the first sample has no measurable pull: it is zero where the samples
    are explained without one.

    Args:
        times: Times of the samples, s.
        positions: Observed positions, pixels.
        first: First sample that lies on the path of the flight, about.
        noise: Standard deviation of each sample's coordinates, pixels.
        earliest: First candidate time, s; some time before the sample `first` if later than that.
        settings: Tuning numbers of releases and parabolas.

    Returns:
        The time, s, and the pull, px/s².
    """
    release = settings.release
    hold = release.hold_duration
    step = float(np.median(np.diff(times)))
    start = int(np.searchsorted(times, min(times[first] - 4 * hold, earliest)))
    min_cost, result = np.inf, (float(times[first]), np.zeros(2))
    for time in np.arange(times[start], times[first] + hold, step / 4):
        elapsed = times[start:] - time
        flying, used = elapsed >= 0, elapsed > -hold
        if flying.sum() < settings.parabola.min_samples:
            break
        degree = 3 if flying.sum() >= settings.parabola.cubic_samples else 2
        flight = fit_polynomial(elapsed[flying], positions[start:][flying], degree)
        pull, pull_std = expected_pull(flight[1], 2 * flight[2], settings)
        basis = np.column_stack([np.vander(elapsed, degree + 1, increasing=True), np.minimum(elapsed, 0) ** 2 / 2])
        prior = np.append(np.zeros(degree + 1), 1 / pull_std)
        unit = noise[start:][used, None]
        rows = np.vstack([basis[used] / unit, prior])
        values = np.vstack([positions[start:][used] / unit, pull / pull_std])
        solution = robust_lstsq(rows, values, iterations=4, exact_rows=1)
        squares = _capped_squares(values[:-1] - rows[:-1] @ solution, release.outlier_cost)
        prior_squares = (values[-1] - rows[-1] @ solution) ** 2
        # Samples long before the release are left out, but not for the sake of an outlier.
        cost = squares + float(prior_squares.sum()) + release.skipped_cost * float((~used).sum())
        if cost < min_cost:
            without_pull = robust_lstsq(rows[:-1, :-1], values[:-1], iterations=4)
            plain = _capped_squares(values[:-1] - rows[:-1, :-1] @ without_pull, release.outlier_cost)
            needed = plain - squares > release.pull_threshold
            min_cost, result = cost, (float(time), solution[-1] if needed else np.zeros(2))
    return result


def _capped_squares(errors: Positions, cap: float) -> float:
    """Sum the squares of standard normal errors, each sample's capped so that one outlier decides nothing."""
    return float(np.minimum((errors**2).sum(1), cap).sum())


def hand_occlusion_duration(radius: float, speed: float, settings: IdentificationSettings = DEFAULT_SETTINGS) -> float:
    """Return how long a hand covers what it has thrown, s, if it stops as quickly as it was accelerated.

    Args:
        radius: Radius of the object, pixels.
        speed: Speed of the object, px/s.
        settings: Tuning numbers of releases.
    """
    return math.sqrt(2 * (2 * radius) * settings.release.swing_duration / max(speed, 1e-9))


def expected_pull(
    velocity: np.ndarray, acceleration: np.ndarray, settings: IdentificationSettings = DEFAULT_SETTINGS
) -> tuple[np.ndarray, float]:
    """Return the prior mean and standard deviation of a hand's pull, px/s².

    A hand accelerates what it throws from rest within a fraction of a second; what it only drops, it holds.
    """
    swing = velocity / settings.release.swing_duration
    return swing - acceleration, float(np.linalg.norm(swing) / 3 + 0.1 * np.linalg.norm(acceleration))


def count_offset_samples(
    times: Samples, positions: Positions, max_count: int, settings: IdentificationSettings = DEFAULT_SETTINGS
) -> int:
    """Count the first samples that lie a constant offset beside the path of all; 0 if there are none.

    Each count up to `max_count` is tried: a polynomial, and a step between the samples before and after.
    """
    elapsed = times - times[0]
    powers = np.vander(elapsed, 4 if len(times) >= settings.parabola.cubic_samples else 3, increasing=True)

    def cost(basis: np.ndarray) -> float:
        return float(((positions - basis @ np.linalg.lstsq(basis, positions, rcond=None)[0]) ** 2).sum())

    counts = range(2, min(max_count, len(times) // 2) + 1)
    if not counts:
        return 0
    costs = np.array([cost(np.column_stack([powers, np.arange(len(times)) < count])) for count in counts])
    df = 2 * (len(times) - powers.shape[1])
    # Two coordinates of a step, at the best of several times: noise alone gains less.
    gain = df * (cost(powers) / max(costs.min(), 1e-12) - 1)
    return counts[int(costs.argmin())] if gain > settings.release.offset_threshold + 2 * math.log(len(costs)) else 0
