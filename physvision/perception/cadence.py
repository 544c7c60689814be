"""Cadence of clips whose frame rate was converted: frames were dropped or repeated, and all timestamped evenly.

From 30 frames a second a program makes 25 by dropping every sixth, and from 24 it makes 30 by repeating every fourth. A
smooth motion then advances twice as far in one of five steps, or not at all, again and again: frame k of the file is
frame floor(r k + phase) of the camera, where r is the ratio of their rates. The rate and the phase that make the motion
far smoother tell the times of the camera's frames, which have the mean rate of the timestamps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from physvision.perception.settings import CadenceSettings


class Cadence(NamedTuple):
    """Conversion of a frame rate.

    Attributes:
        times: Times at which the frames were taken, s.
        repeats: Mask of the frames that repeat the previous one.
        camera_fps: Frame rate of the camera, frames a second.
        phase: Time of the first frame after the camera's, in frames of the camera.
    """

    times: Float[np.ndarray, " times"]
    repeats: Bool[np.ndarray, " times"]
    camera_fps: float
    phase: float


def find_cadence(
    times: Float[np.ndarray, " times"], positions: Float[np.ndarray, "times 2"], settings: CadenceSettings
) -> Cadence | None:
    """Find the conversion of the frame rate that makes a track far smoother; None if there is none.

    Args:
        times: Timestamps of the frames, s.
        positions: Positions of an object, NaN where it is not observed.
        settings: Thresholds of the conversions.
    """
    observed = np.asarray(np.isfinite(positions).all(1))
    steps = np.diff(times)
    if observed.sum() < settings.min_samples or np.ptp(steps) > settings.max_unevenness * np.median(steps):
        return None
    timestamp_costs = _roughness(times, positions, observed, settings)
    moving = np.flatnonzero(np.isfinite(timestamp_costs))
    if len(moving) < settings.min_samples:
        return None
    # Both halves must become smoother: a single impact or dropped frame is no cadence.
    middle = int(np.median(moving))
    parts = slice(None), slice(None, middle), slice(middle, None)
    before = np.array([np.nanmean(timestamp_costs[part]) for part in parts])

    def gain(cadence: Cadence) -> float:
        costs = _roughness(cadence.times, positions, observed & ~cadence.repeats, settings)
        if not all(np.isfinite(costs[part]).any() for part in parts):
            return -math.inf
        gains = before - [np.nanmean(costs[part]) for part in parts]
        return float(gains[0]) if gains.min() > settings.min_gain / 2 else -math.inf

    coarse = _phases(0.0, 1.0, settings.phases)
    candidate = max(_conversions(times, settings.camera_fps, coarse, settings), key=gain, default=None)
    if candidate is None or gain(candidate) < settings.min_gain:
        return None
    # A rate of 29.97 in place of 30 skips one more frame in a thousand; only a fine phase determines which.
    fine = _phases(candidate.phase - 1 / settings.phases, candidate.phase + 1 / settings.phases, settings.phases)
    return max([candidate, *_conversions(times, [candidate.camera_fps], fine, settings)], key=gain)


def _phases(low: float, high: float, count: int) -> Float[np.ndarray, " phases"]:
    return low + (high - low) * np.arange(count) / count


def _conversions(
    times: np.ndarray, camera_fps: Sequence[float], phases: np.ndarray, settings: CadenceSettings
) -> Iterator[Cadence]:
    """Yield conversions from these frame rates to that of the timestamps, with these phases."""
    step, number = float(np.mean(np.diff(times))), np.arange(len(times))
    for rate in camera_fps:
        ratio = rate * step
        is_near = abs(ratio - 1) < settings.min_rate_change
        if is_near or not 1 / settings.max_ratio < ratio < settings.max_ratio:
            continue
        for phase in phases:
            frames = np.floor(ratio * number + phase)
            is_repeat = np.append(False, np.diff(frames) == 0)
            distinct = np.flatnonzero(~is_repeat)
            # Timestamps must increase, so a repeated frame lies between its neighbors.
            frames = np.interp(number, distinct, frames[distinct])
            if is_repeat[-1]:
                frames[-1] += 0.5 * math.ceil(ratio)
            yield Cadence(times[0] + (frames - frames[0]) * step / ratio, is_repeat, rate, float(phase))


def _roughness(
    times: np.ndarray, positions: np.ndarray, valid: np.ndarray, settings: CadenceSettings
) -> Float[np.ndarray, " times"]:
    """Return the logarithm of the squared distance of four successive positions from a parabola, at their first frame.

    The logarithm bounds what an impact costs. The distance has the variance of a position, whatever the times. Where
    the object hardly moves, the times do not matter, and NaN is returned.
    """
    costs = np.full(len(times), np.nan)
    frames = np.flatnonzero(valid)
    windows = np.lib.stride_tricks.sliding_window_view(frames, 4) if len(frames) >= 4 else np.zeros((0, 4), int)
    is_moving = np.linalg.norm(positions[windows[:, 3]] - positions[windows[:, 0]], axis=1) > settings.min_path
    windows = windows[is_moving & (windows[:, 3] - windows[:, 0] <= 5)]
    elapsed = times[windows]
    offsets = elapsed[:, :, None] - elapsed[:, None] + np.eye(4)
    weights = 1 / offsets.prod(2)
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    distance = np.einsum("nw,nwa->na", weights, positions[windows])
    costs[windows[:, 0]] = np.log((distance**2).sum(1) + 2 * settings.noise**2)
    return costs
