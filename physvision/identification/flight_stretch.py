"""Flight segments of a track, with the samples before them: moved by a hand, or detected off the path."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from physvision.identification.initial_guesses import Positions, Samples
from physvision.identification.model import Evidence, UnsuitableError
from physvision.identification.parabolas import parabola_window
from physvision.identification.release import (
    FlightPath,
    count_offset_samples,
    estimate_release,
    expected_pull,
    hand_occlusion_duration,
)


@dataclass(frozen=True)
class FlightStretch:
    """Flight segment of a track, with the samples just before it.

    Attributes:
        times: Times of the samples, s.
        positions: Observed positions, pixels.
        window: Indices in the clip of the first sample and of one past the last.
        samples_before: Number of leading samples that do not lie on the parabola of the others.
        flying: If true, the object flies in the leading samples, detected off its path; otherwise a hand holds it.
        release: Time of the release, or of the first sample on the path of the flight, s.
        release_std: Standard deviation of the time of a release without a visible hand, s.
        pull: Acceleration by the hand, which ends at the release, px/s².
        noise: Standard deviation of a coordinate, pixels.
    """

    times: Samples
    positions: Positions
    window: tuple[int, int]
    samples_before: int
    flying: bool
    release: float
    release_std: float
    pull: Float[np.ndarray, "2"]
    noise: float


def flight_stretches(evidence: Evidence) -> list[FlightStretch]:
    """Return candidate flight segments: one with the hand's motion, if visible, and one with offset leading samples.

    Raises:
        UnsuitableError: No stretch of the track is a parabola.
    """
    settings, flight = evidence.settings, evidence.settings.flight
    indices, times, positions, clear = _clear_samples(evidence)
    noise = float(np.median(evidence.tracks[0].sigma[indices]))
    noise = max(noise, settings.fit.min_noise, 3e-4 * float(np.ptp(positions, axis=0).max()))
    window = parabola_window(times, positions, settings.parabola.noise_ratio * noise, True, settings.parabola)
    if window is None:
        raise UnsuitableError("no stretch of the track is a parabola")
    first, end = window
    path = FlightPath(times[first:end], positions[first:end], settings)
    noise = max(noise, path.noise)
    start = _first_visible(evidence, path, times, positions, first)
    radius, hold = evidence.tracks[0].radius or 0.0, settings.release.hold_duration
    sample_noise = np.maximum(evidence.tracks[0].sigma[indices[:end]], noise)
    sample_noise[:first] = np.hypot(sample_noise[:first], flight.touched_std * radius)
    release, pull = estimate_release(times[:end], positions[:end], first, sample_noise, times[start] - hold, settings)

    def stretch(begin: int, before: int, release: float, release_std: float, flying: bool = False) -> FlightStretch:
        clip_window = (int(indices[begin]), int(indices[end - 1]) + 1)
        return FlightStretch(
            times[begin:end], positions[begin:end], clip_window, before, flying, release, release_std, pull, noise
        )

    hand = slice(int(np.searchsorted(times, release - hold)), int(np.searchsorted(times, release)))
    strength = float(np.linalg.norm(pull) / np.linalg.norm(path.acceleration))
    min_strength, max_strength = flight.hand_pull_range
    late = flight.release_std_frames * evidence.dt
    if hand.stop - hand.start >= flight.min_hand_samples and min_strength < strength < max_strength:
        stretches = [stretch(hand.start, hand.stop - hand.start, release, late)]
    else:
        hidden = 0.0
        if not (start and _follows_closely(evidence, times, start)):
            hidden = _hidden_duration(evidence, int(indices[start]), path)
        covered = not clear[indices[start] : indices[start] + flight.covered_frames].all()
        unseen = _unseen_release(evidence, path, times[start], positions[start], noise, hidden, covered)
        stretches = [stretch(min(first, hand.stop), 0, *unseen)]
    max_count = int(np.searchsorted(times, times[first] + hold)) - start
    offset = count_offset_samples(times[start:end], positions[start:end], max_count, settings)
    if offset >= flight.min_hand_samples:
        stretches.append(stretch(start, offset, times[start] - evidence.dt / 2, late, flying=True))
    return stretches


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
        raise UnsuitableError(
            f"only {len(indices)} positions are observed clearly, at least {settings.min_samples} are needed"
        )
    return indices, evidence.times.numpy()[indices], observed[indices], clear


def _first_visible(evidence: Evidence, path: FlightPath, times: np.ndarray, positions: np.ndarray, first: int) -> int:
    """Return the first of the consecutive samples before `first` that lie within one object radius of the path."""
    start, radius = first, evidence.tracks[0].radius or 0.0
    while start > 0 and _follows_closely(evidence, times, start):
        if path.distance(times[start - 1], positions[start - 1]) > radius:
            break
        start -= 1
    return start


def _unseen_release(
    evidence: Evidence, path: FlightPath, time: float, position: np.ndarray, noise: float, hidden: float, covered: bool
) -> tuple[float, float]:
    """Return the time of a release without a visible hand, and its standard deviation, s.

    If the first position lies off the path of the flight, there are two explanations. A hand still held the object, and
    moved it onto the path with about the pull of a throw; or the hand covers a part of it, if it is not detected in all
    of the first few frames. Otherwise the object was released before, and the hand may have hidden it at first.

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


def _hidden_duration(evidence: Evidence, first: int, path: FlightPath) -> float:
    """Return the time for which a hand may have hidden an object before the sample `first`, s.

    An object that emerges from behind something static is hidden until it has emerged completely. The time is zero for
    an object that flies from the first frame on, or that enters the picture from outside: nothing is known about it.
    """
    track, view = evidence.tracks[0], evidence.view
    corner, size = np.array(view.corner), np.array([view.width, view.height])
    step = np.abs(path.velocity) * evidence.dt + (track.radius or 0.0)
    inside = (track.positions[first] - step > corner) & (track.positions[first] + step < corner + size)
    if first == 0 or track.radius is None or not inside.all():
        return 0.0
    speed = float(np.linalg.norm(path.velocity))
    if track.static_before_visible:
        return 2 * track.radius / speed
    return hand_occlusion_duration(track.radius, speed, evidence.settings)
