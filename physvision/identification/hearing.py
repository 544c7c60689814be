"""Bounces that are heard: the share of its speed that each keeps, from the times between knocks, whatever their lag."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

_LATE = 0.15  # s by which a sound track may be off its pictures
_TICK = 1e-3  # s to which a knock's time is known


@dataclass(frozen=True)
class Heard:
    """What knocks tell of a ball that bounces.

    Attributes:
        restitution: the share of its speed that it keeps.
        deviation: its standard deviation.
        count: of bounces that were heard, one after the other.
    """

    restitution: float
    deviation: float
    count: int


def heard(seen: Float[np.ndarray, " bounces"], knocks: Float[np.ndarray, " onsets"], within: float) -> Heard | None:
    """What the knocks tell of bounces that were seen; None where fewer than three in a row were heard.

    Between bounces a ball flies for 2 v / g, so that flights of T₁, T₂, … grow shorter by the restitution e each:
    e = (T_n / T₁)^(1 / (n − 1)).

    Args:
        seen: when bounces were seen, s.
        knocks: when something knocked, s.
        within: how far apart a bounce and its knock may be, once the constant lag is taken out, s.
    """
    moments = _row(_matched(seen, knocks, within))
    if len(moments) < 3:
        return None
    flights = np.diff(moments)
    kept = np.array([after / before for before, after in pairwise(flights)])
    count = len(kept)
    restitution = float((flights[-1] / flights[0]) ** (1 / count))
    ticks = np.sqrt(2) * _TICK * restitution / count * np.hypot(1 / flights[0], 1 / flights[-1])
    # Hard impacts keep less than soft ones: one number for all is no better than they agree.
    differ = float(kept.std(ddof=1)) / np.sqrt(count) if count > 1 else 0.0
    return Heard(restitution, float(np.hypot(ticks, differ)), len(moments))


def _matched(seen: np.ndarray, knocks: np.ndarray, within: float) -> np.ndarray:
    """The knock of each bounce, NaN where there is none, for the lag that most bounces agree on."""
    best = np.full(len(seen), np.nan)
    score = (0, 0.0)
    for lag in {float(knock - bounce) for bounce in seen for knock in knocks if abs(knock - bounce) < _LATE}:
        off = knocks[None] - lag - seen[:, None]
        nearest = np.abs(off).argmin(1)
        miss = np.abs(off).min(1)
        fits = miss < within
        if (int(fits.sum()), -float(miss[fits].sum())) > score:
            score = int(fits.sum()), -float(miss[fits].sum())
            best = np.where(fits, knocks[nearest], np.nan)
    return best


def _row(moments: np.ndarray) -> np.ndarray:
    """The longest run without a gap."""
    edges = [-1, *np.flatnonzero(np.isnan(moments)), len(moments)]
    first, last = max(pairwise(edges), key=lambda pair: pair[1] - pair[0])
    return moments[first + 1 : last]
