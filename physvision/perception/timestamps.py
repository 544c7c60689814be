"""Repair of timestamps that are even although frames were dropped or repeated, by the motion of an object.

Phones and programs drop frames and renumber the others, or repeat one. A smooth motion then advances twice as far in
one frame, or once in two, between stretches that agree on the usual displacement. A camera that stalls and catches up
takes a frame at any time in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from physvision.perception.settings import DEFAULT_SETTINGS, TimestampSettings
from physvision.perception.track import Track


def repair_timestamps(
    tracks: Sequence[Track], settings: TimestampSettings = DEFAULT_SETTINGS.timestamps
) -> list[Track]:
    """Correct the times of all tracks by the dropped and repeated frames that the most informative track shows."""
    gaps_per_track = [_count_gaps(track, settings) for track in tracks]
    if not gaps_per_track:
        return []
    index = max(range(len(tracks)), key=lambda number: float(np.abs(gaps_per_track[number]).sum()))
    gaps, observed = gaps_per_track[index], np.flatnonzero(tracks[index].observed)
    count = round(float(np.abs(gaps).sum()))
    if count == 0 or count > settings.max_jump_fraction * len(observed):
        return list(tracks)
    times = tracks[0].times
    delays = np.concatenate([[0.0], np.cumsum(gaps)]) * float(np.median(np.diff(times)))
    # Unobserved frames, such as repeated ones, are spread evenly between observed ones.
    frames = np.arange(len(times))
    times = np.where(
        frames < observed[0],
        times,
        np.where(frames > observed[-1], times + delays[-1], np.interp(frames, observed, times[observed] + delays)),
    )
    note = f"{count} frames were dropped or repeated although the timestamps are even; times follow the motion."
    return [replace(track, times=times, notes=(*track.notes, note)) for track in tracks]


def _count_gaps(track: Track, settings: TimestampSettings) -> Float[np.ndarray, " steps"]:
    """Count the dropped frames after each observed one; negative where a frame is repeated."""
    side, observed = settings.side_steps, np.flatnonzero(track.observed)
    gaps = np.zeros(max(len(observed) - 1, 0))
    if len(observed) < 2 * side + 2:
        return gaps
    durations = np.diff(track.times[observed]) / float(np.median(np.diff(track.times)))
    steps = np.diff(track.positions[observed], axis=0)
    noise = max(float(np.median(track.sigma[observed])), _position_noise(track.positions[observed]))
    for index in range(side, len(steps) - side):
        window = slice(index - side, index + side + 1)
        if durations[window].max() > 2.5 or np.delete(durations[window], side).max() > 1.5:
            continue
        before = _extrapolate(steps[index - side : index])
        after = _extrapolate(steps[index + side : index : -1])
        expected, disagreement = (before + after) / 2, float(np.linalg.norm(before - after))
        length = float(np.linalg.norm(expected))
        if length < settings.min_step * noise or disagreement > settings.max_difference * length:
            continue
        advance = float(steps[index] @ expected) / length**2
        # With position errors σ, the difference of a step from lines through four on either side has √5 σ.
        advance_sigma = math.sqrt(5) * noise / length
        is_jump = abs(advance - durations[index]) > max(0.5, settings.min_jump * advance_sigma)
        deviation = np.linalg.norm(steps[index] - advance * expected)
        if deviation > settings.max_difference * length or not is_jump or advance <= 0:
            continue
        tolerance = settings.integer_tolerance * math.hypot(advance_sigma, disagreement / 2 / length)
        whole = max(1, round(advance))
        gaps[index] = (whole if abs(advance - whole) < tolerance else advance) - round(float(durations[index]))
    return gaps


def _position_noise(positions: Float[np.ndarray, "samples 2"]) -> float:
    """Estimate the noise of positions on a smooth path; a tracker's own sigma may be less."""
    differences = np.diff(positions, n=3, axis=0)  # √20 σ for positions with errors σ
    return 1.4826 * float(np.median(np.abs(differences))) / math.sqrt(20)


def _extrapolate(steps: Float[np.ndarray, "side 2"]) -> Float[np.ndarray, "2"]:
    """Extrapolate the next step by the line through the steps of one side."""
    index = np.arange(len(steps))
    return np.array([np.polyval(np.polyfit(index, steps[:, axis], 1), len(steps)) for axis in (0, 1)])
