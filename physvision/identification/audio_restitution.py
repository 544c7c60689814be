"""Restitution from the sound of bounces: ratios of the times between audio onsets, unaffected by a constant lag."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from physvision.identification.settings import AudioSettings

_DEFAULTS = AudioSettings()


@dataclass(frozen=True)
class AudioRestitution:
    """Restitution of a bouncing ball estimated from audio onsets.

    Attributes:
        restitution: Coefficient of restitution.
        std: Standard deviation of the restitution.
        count: Number of successive bounces with an onset.
    """

    restitution: float
    std: float
    count: int


def audio_restitution(
    bounces: Float[np.ndarray, " bounces"],
    onsets: Float[np.ndarray, " onsets"],
    tolerance: float,
    settings: AudioSettings = _DEFAULTS,
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
