"""Limit of the samples of long tracks: every few samples of a motion that stays well sampled, or its first part."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.interpolate import CubicSpline

from physvision.identification.settings import TrackSettings
from physvision.perception import Track


def limit_samples(tracks: Sequence[Track], settings: TrackSettings) -> tuple[list[Track], list[str]]:
    """Thin tracks of very many samples, and cut what is still too long, with warnings.

    Args:
        tracks: Tracks of the same times.
        settings: Largest number of samples, and the loss by thinning.

    Returns:
        The tracks, and the warnings.
    """
    observed = np.flatnonzero(np.any([track.observed for track in tracks], axis=0))
    first, end = int(observed[0]), int(observed[-1]) + 1
    if end - first <= settings.max_samples:
        return list(tracks), []
    tracks = [track.window(first, end) for track in tracks]
    count, stride = end - first, math.ceil((end - first) / settings.max_samples)
    while stride > 1 and any(_lost_path(track, stride, settings) > settings.max_lost_path for track in tracks):
        stride //= 2
    notes = []
    if stride > 1:
        notes.append(f"The track has {count} samples; every {_ordinal(stride)} is used.")
        tracks = [track.window(0, None, stride) for track in tracks]
    if len(tracks[0]) > settings.max_samples:
        tracks = [track.window(0, settings.max_samples) for track in tracks]
        start, stop = (float(tracks[0].times[index]) for index in (0, -1))
        notes.append(
            f"The track has {count} samples; only the part from {start:.4g} to {stop:.4g} s is used: --from and --to "
            "select another."
        )
    usable = [track for track in tracks if track.observed.sum() >= settings.min_positions]
    return usable or tracks, notes


def _lost_path(track: Track, stride: int, settings: TrackSettings) -> float:
    """Return the part of the path that thinning would lose: a curve through half as many samples misses the others."""
    stride *= 2
    times, positions = track.times[track.observed], track.positions[track.observed]
    if len(times) < 2 * stride:
        return 1.0
    noise = float(np.median(track.sigma[track.observed]))
    curve = CubicSpline(times[::stride], positions[::stride])
    missed = np.linalg.norm(curve(times) - positions, axis=1) > settings.max_thinning_error * noise
    # Where it rests, noise is no path.
    steps = np.linalg.norm(np.diff(curve(times[::stride]), axis=0), axis=1)
    path = np.maximum(steps - settings.max_thinning_error * noise, 0.0).repeat(stride)[: len(times)]
    path += 1e-12
    return float((path * missed[: len(path)]).sum() / path.sum())


def _ordinal(number: int) -> str:
    """Return an English ordinal, such as 2nd or 60th."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{suffix}"
