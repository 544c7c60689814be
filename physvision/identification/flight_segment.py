"""Flight segments of a track, with the release by a hand or the offset samples before them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from physvision.identification.initial_guesses import MAD_TO_STD, Positions, Samples, fit_polynomial, robust_lstsq
from physvision.identification.model import Evidence, UnsuitableError
from physvision.identification.parabolas import departure_index, parabola_window
from physvision.identification.settings import IdentificationSettings


class FlightPath:
    """Polynomial path of a flight, with its prediction error; cubic for many samples.

    Attributes:
        degree: Degree of the polynomial.
        noise: Standard deviation of the positions about it, pixels.
    """

    def __init__(self, times: Samples, positions: Positions, settings: IdentificationSettings) -> None:
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
    times: Samples, positions: Positions, first: int, noise: Samples, earliest: float, settings: IdentificationSettings
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


def hand_occlusion_duration(radius: float, speed: float, settings: IdentificationSettings) -> float:
    """Return how long a hand covers what it has thrown, s, if it stops as quickly as it was accelerated.

    Args:
        radius: Radius of the object, pixels.
        speed: Speed of the object, px/s.
        settings: Tuning numbers of releases.
    """
    return math.sqrt(2 * (2 * radius) * settings.release.swing_duration / max(speed, 1e-9))


def expected_pull(
    velocity: np.ndarray, acceleration: np.ndarray, settings: IdentificationSettings
) -> tuple[np.ndarray, float]:
    """Return the prior mean and standard deviation of a hand's pull, px/s².

    A hand accelerates what it throws from rest within a fraction of a second; what it only drops, it holds.
    """
    swing = velocity / settings.release.swing_duration
    return swing - acceleration, float(np.linalg.norm(swing) / 3 + 0.1 * np.linalg.norm(acceleration))


def count_offset_samples(times: Samples, positions: Positions, max_count: int, settings: IdentificationSettings) -> int:
    """Count the first samples that lie a constant offset beside the path of all; 0 if there are none.

    Every count up to `max_count` is evaluated: a polynomial, and a step between the samples before and after.
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


@dataclass(frozen=True)
class FlightSegment:
    """Flight segment of a track, with the samples just before it.

    Attributes:
        times: Times of the samples, s.
        positions: Observed positions, pixels.
        window: Indices in the clip of the first sample and of one past the last.
        samples_before: Number of leading samples that do not lie on the parabola of the others.
        is_flying_at_first: If true, the object flies in the leading samples, detected off its path; otherwise a hand
        holds it.
        release: Time of the release, s; if the object flies in the leading samples, half a frame before the first one.
        release_std: Standard deviation of the time of a release without a visible hand, s.
        pull: Acceleration by the hand, which ends at the release, px/s².
        noise: Standard deviation of a coordinate, pixels.
        is_release_unobserved: If true, the object flies when the clip begins, or when it enters the picture, so that
        nothing
            is known of its release.
        hidden: Longest time for which a hand or a static object may have hidden the object after its release, s; zero
            if its release is visible.
    """

    times: Samples
    positions: Positions
    window: tuple[int, int]
    samples_before: int
    is_flying_at_first: bool
    release: float
    release_std: float
    pull: Float[np.ndarray, "2"]
    noise: float
    is_release_unobserved: bool = False
    hidden: float = 0.0


def flight_segments(evidence: Evidence) -> list[FlightSegment]:
    """Return candidate flight segments: one with the hand's motion, if visible, and one with offset leading samples.

    Raises:
        UnsuitableError: No part of the track is a parabola.
    """
    settings, flight = evidence.settings, evidence.settings.flight
    indices, times, positions, clear = _clear_samples(evidence)
    noise = float(np.median(evidence.tracks[0].sigma[indices]))
    noise = max(noise, settings.fit.min_noise * evidence.pixel, 3e-4 * float(np.ptp(positions, axis=0).max()))
    ratio, sigma = settings.parabola.noise_ratio, evidence.tracks[0].sigma[indices]
    window = parabola_window(times, positions, ratio * noise, True, settings.parabola, sigma)
    if window is None:
        raise UnsuitableError("no stretch of the track is a parabola")
    first, end = window
    if evidence.tracks[0].radius is None:
        # Errors of a table that last for several samples end a parabolic window early.
        departure = departure_index(times[:end], positions[:end], settings.parabola.noise_ratio * noise)
        first = min(first, departure)
    path = FlightPath(times[first:end], positions[first:end], settings)
    noise = max(noise, path.noise)
    start = _first_visible(evidence, path, times, positions, first)
    radius, hold = evidence.tracks[0].radius or 0.0, settings.release.hold_duration
    sample_noise = np.maximum(evidence.tracks[0].sigma[indices[:end]], noise)
    sample_noise[:first] = np.hypot(sample_noise[:first], flight.touched_std * radius)
    release, pull = estimate_release(times[:end], positions[:end], first, sample_noise, times[start] - hold, settings)

    def segment(begin: int, before: int, release: float, std: float, flying: bool = False) -> FlightSegment:
        clip_window = (int(indices[begin]), int(indices[end - 1]) + 1)
        part = slice(begin, end)
        return FlightSegment(times[part], positions[part], clip_window, before, flying, release, std, pull, noise)

    hand = slice(int(np.searchsorted(times, release - hold)), int(np.searchsorted(times, release)))
    strength = float(np.linalg.norm(pull) / np.linalg.norm(path.acceleration))
    min_strength, max_strength = flight.hand_pull_range
    release_std = flight.release_std_frames * evidence.dt
    if hand.stop - hand.start >= flight.min_hand_samples and min_strength < strength < max_strength:
        segments = [segment(hand.start, hand.stop - hand.start, release, release_std)]
    else:
        hidden: float | None = 0.0
        if not (start and _follows_closely(evidence, times, start)):
            hidden = _hidden_duration(evidence, int(indices[start]), path)
        covered = not clear[indices[start] : indices[start] + flight.covered_frames].all()
        estimate = _release_without_hand(evidence, path, times[start], positions[start], noise, hidden or 0.0, covered)
        is_on_path = path.distance(times[start], positions[start]) <= flight.offset_ratio * noise
        is_release_unobserved = hidden is None and is_on_path and evidence.tracks[0].radius is not None
        unseen = hidden if is_on_path and hidden else 0.0
        begin = segment(min(first, hand.stop), 0, *estimate)
        segments = [replace(begin, is_release_unobserved=is_release_unobserved, hidden=unseen)]
    max_count = int(np.searchsorted(times, times[first] + hold)) - start
    offset = count_offset_samples(times[start:end], positions[start:end], max_count, settings)
    if offset >= flight.min_hand_samples:
        segments.append(segment(start, offset, times[start] - evidence.dt / 2, release_std, flying=True))
    return segments


def _clear_samples(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return indices, times and positions of the clearly observed samples, and the mask of all clear samples.

    Uncertain positions, and those of objects cut off by the border of the picture, would be mistaken for a hand's
    motion.
    """
    settings, track, view = evidence.settings.flight, evidence.tracks[0], evidence.view
    observed = evidence.observed.numpy()
    offset = observed - np.array(view.corner)
    margin = (track.radius or 0.0) if track.unit == "px" else 0.0
    inside = np.all((offset > margin) & (offset < np.array([view.width, view.height]) - margin), axis=1)
    clear = (track.sigma < settings.max_sigma_ratio * (track.radius or math.inf)) & inside
    indices = np.flatnonzero(np.isfinite(observed).all(1) & clear)
    if len(indices) < settings.min_samples:
        raise UnsuitableError(f"only {len(indices)} positions are clear, at least {settings.min_samples} are needed")
    return indices, evidence.times.numpy()[indices], view.rectify(observed[indices]), clear


def _first_visible(evidence: Evidence, path: FlightPath, times: np.ndarray, positions: np.ndarray, first: int) -> int:
    """Return the first of the consecutive samples before `first` that lie within one object radius of the path."""
    start, radius = first, evidence.tracks[0].radius or 0.0
    while start > 0 and _follows_closely(evidence, times, start):
        if path.distance(times[start - 1], positions[start - 1]) > radius:
            break
        start -= 1
    return start


def _release_without_hand(
    evidence: Evidence, path: FlightPath, time: float, position: np.ndarray, noise: float, hidden: float, covered: bool
) -> tuple[float, float]:
    """Return the time of a release without a visible hand, and its standard deviation, s.

    A first position off the path of the flight means that a hand still held the object, and moved it onto the path
    with about the pull of a throw; the release is when it arrives there. If the object may be partly covered instead,
    the release lies anywhere between that time and the longest time that a hand may have hidden it. A first position on
    the path means that the object was released before it, and that the hand may have hidden it at first.

    Args:
        evidence: Track of the object.
        path: Path of the flight.
        time: Time of the first sample, s.
        position: Position in the first sample, pixels.
        noise: Standard deviation of a coordinate, pixels.
        hidden: Time for which a hand may have hidden the object after the release, s.
        covered: If true, the object is not detected clearly in all of the first few frames.
    """
    settings = evidence.settings.flight
    min_std, offset = settings.release_std_frames * evidence.dt, path.distance(time, position)
    if offset > settings.offset_ratio * noise:
        pull, _ = expected_pull(path.velocity, path.acceleration, evidence.settings)
        duration = math.sqrt(2 * offset / float(np.linalg.norm(pull)))
        if not covered or offset > settings.covered_std * (evidence.tracks[0].radius or 0.0):
            return time + duration, max(min_std, duration / 3)
        return time + (duration - hidden) / 2, max(min_std, (duration + hidden) / math.sqrt(12))
    return time - evidence.dt / 2 - hidden / 2, max(min_std, hidden / math.sqrt(12))


def _follows_closely(evidence: Evidence, times: np.ndarray, sample: int) -> bool:
    """Return whether a clear sample follows the previous one without a long gap."""
    max_gap = max(1.5 * evidence.dt, evidence.settings.release.hold_duration / 2)
    return bool(times[sample] - times[sample - 1] < max_gap)


def _hidden_duration(evidence: Evidence, first: int, path: FlightPath) -> float | None:
    """Return the time for which a hand may have hidden an object before the sample `first`, s.

    An object that emerges from behind something static is hidden until it has emerged completely. The time is None for
    an object that flies from the first frame on, or that enters the picture from outside: nothing is known about it.
    """
    track, view = evidence.tracks[0], evidence.view
    corner, size = np.array(view.corner), np.array([view.width, view.height])
    step = np.abs(path.velocity) * evidence.dt + (track.radius or 0.0)
    inside = (track.positions[first] - step > corner) & (track.positions[first] + step < corner + size)
    if first == 0 or track.radius is None or not inside.all():
        return None
    speed = float(np.linalg.norm(path.velocity))
    if track.static_before_visible:
        return 2 * track.radius / speed
    return hand_occlusion_duration(track.radius, speed, evidence.settings)
