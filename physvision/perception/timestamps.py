"""Time stamps that are even though the frames were not taken so, told by what moves.

Phones and programs drop frames and number the others through, or show one twice and go on from there. What moves
smoothly then goes twice as far as it should in a frame, or only once as far in two, between two stretches that agree on
how far that is. A camera that waits, and then catches up, takes a frame at any time in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from physvision.perception.track import Track

_SIDE = 4  # steps before and after that say how far a thing goes in a frame
_AGREE = 0.2  # of a step: how far both sides may differ, and what lies between from whole steps
_CLEAR = 8.0  # deviations of a place: shorter steps tell nothing
_SURELY = 3.0  # deviations from a whole number of frames, from which on it is none
_JUMPS = 4.0  # deviations from what it should go, from which on frames are missing or shown twice
_OFTEN = 0.1  # share of all frames: more jumps than that are how the thing moves


def repair_timestamps(tracks: Sequence[Track]) -> list[Track]:
    """The tracks at the times at which their frames were taken, as far as the clearest of what moves shows it."""
    found = [_missing(track) for track in tracks]
    clearest = max(range(len(found)), key=lambda index: float(np.abs(found[index]).sum()), default=None)
    if clearest is None:
        return []
    gaps, seen = found[clearest], np.flatnonzero(tracks[clearest].observed)
    count = round(float(np.abs(gaps).sum()))
    if count == 0 or count > _OFTEN * len(seen):
        return list(tracks)
    times = tracks[0].times
    later = np.concatenate([[0.0], np.cumsum(gaps)]) * float(np.median(np.diff(times)))
    # Frames that are not seen, such as one that is shown twice, are spread between those that are.
    frames = np.arange(len(times))
    spread = np.interp(frames, seen, times[seen] + later)
    moved = np.where(frames < seen[0], times, np.where(frames > seen[-1], times + later[-1], spread))
    note = f"Frames that are missing or shown twice though the time stamps are even: {count}. Times follow what moves."
    return [replace(track, times=moved, notes=(*track.notes, note)) for track in tracks]


def _missing(track: Track) -> Float[np.ndarray, " steps"]:
    """How many frames are missing after each one that is seen; below zero where there are too many."""
    seen = np.flatnonzero(track.observed)
    found = np.zeros(max(len(seen) - 1, 0))
    if len(seen) < 2 * _SIDE + 2:
        return found
    usual_time = float(np.median(np.diff(track.times)))
    lasts = np.diff(track.times[seen]) / usual_time
    steps = np.diff(track.positions[seen], axis=0)
    noise = max(float(np.median(track.sigma[seen])), _jitter(track.positions[seen]))
    for at in range(_SIDE, len(steps) - _SIDE):
        near = slice(at - _SIDE, at + _SIDE + 1)
        if lasts[near].max() > 2.5 or np.delete(lasts[near], _SIDE).max() > 1.5:
            continue
        before, after = _led_on(steps[at - _SIDE : at]), _led_on(steps[at + _SIDE : at : -1])
        usual = (before + after) / 2
        length = float(np.linalg.norm(usual))
        if length < _CLEAR * noise or np.linalg.norm(before - after) > _AGREE * length:
            continue
        went = float(steps[at] @ usual) / length**2
        # Places with errors σ make a step beside what lines through four on either side say uncertain by √5 σ.
        blurred = math.sqrt(5) * noise / length
        jumps = abs(went - lasts[at]) > max(0.5, _JUMPS * blurred)
        if np.linalg.norm(steps[at] - went * usual) > _AGREE * length or not jumps or went <= 0:
            continue
        unsure = math.hypot(blurred, float(np.linalg.norm(before - after)) / 2 / length)
        whole = max(1, round(went))
        found[at] = (whole if abs(went - whole) < _SURELY * unsure else went) - round(float(lasts[at]))
    return found


def _jitter(places: Float[np.ndarray, "samples 2"]) -> float:
    """How far places are from smooth motion, a standard deviation; what a tracker tells of itself may be less."""
    rough = np.diff(places, n=3, axis=0)  # of places each with an error σ, these have √20 σ
    return 1.4826 * float(np.median(np.abs(rough))) / math.sqrt(20)


def _led_on(steps: Float[np.ndarray, "side 2"]) -> Float[np.ndarray, "2"]:
    """The step that follows on those of one side, on a line through them."""
    at = np.arange(len(steps))
    return np.array([np.polyval(np.polyfit(at, steps[:, axis], 1), len(steps)) for axis in (0, 1)])
