"""Where a flight begins: a hand lets go, or what already flies comes fully into view. First guesses, in plain numpy."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from physvision.identification.arcs import BENT
from physvision.identification.starts import closest, polynomial

HOLD = 0.08  # s before a release for which a hand's pull is taken as steady
_SWING = 0.15  # s in which an arm brings what it throws from rest to its speed
_SEEN = 16.3  # what squares of three standard normal numbers add up to once in a thousand times: a moment and a pull


class Path:
    """The polynomial of times, cubic for long stretches, along which something flies, and how far it may be off."""

    def __init__(self, times: Float[np.ndarray, " samples"], places: Float[np.ndarray, "samples 2"]) -> None:
        """Fit it to a stretch."""
        self.degree = 3 if len(times) >= BENT else 2
        self._start = times[0]
        powers = self._powers(times)
        self._found = polynomial(times - self._start, places, self.degree)
        off = places - powers @ self._found
        self.noise = 1.4826 * float(np.median(np.abs(off - np.median(off, axis=0))))
        self._inverse = np.linalg.inv(powers.T @ powers + 1e-12 * np.eye(self.degree + 1))

    @property
    def acceleration(self) -> Float[np.ndarray, "2"]:
        """At its beginning, px/s²."""
        return 2 * self._found[2]

    @property
    def velocity(self) -> Float[np.ndarray, "2"]:
        """At its beginning, px/s."""
        return self._found[1]

    def _powers(self, times: np.ndarray) -> np.ndarray:
        return np.vander(np.atleast_1d(times) - self._start, self.degree + 1, increasing=True)

    def distance(self, time: float, place: Float[np.ndarray, "2"]) -> float:
        """How far a place is from where the path leads, less what the path's own error there explains."""
        powers = self._powers(np.array([time]))
        spread = float((powers @ self._inverse @ powers.T)[0, 0])
        away = float(np.linalg.norm(place - (powers @ self._found)[0]))
        return max(away - 2 * self.noise * math.sqrt(spread), 0.0)


def release(
    times: Float[np.ndarray, " samples"],
    places: Float[np.ndarray, "samples 2"],
    first: int,
    noise: Float[np.ndarray, " samples"],
    earliest: float = math.inf,
) -> tuple[float, np.ndarray]:
    """When a hand let go of what flies from about sample `first` on, and its pull, the acceleration lost then.

    Moments from `earliest` on are tried, or from a while before that sample.

    Each moment is tried: a polynomial from it on, and before it another steady acceleration. Arms take a fraction of a
    second for a throw, so about how strong their pull is follows from the speed; without knowing that, a pull of zero
    would put the release anywhere. A release before the first sample has no pull to speak of: it is zero where the
    samples are explained without one.
    """
    step = float(np.median(np.diff(times)))
    begin = int(np.searchsorted(times, min(times[first] - 4 * HOLD, earliest)))
    best, found = np.inf, (float(times[first]), np.zeros(2))
    for moment in np.arange(times[begin], times[first] + HOLD, step / 4):
        local = times[begin:] - moment
        flies, counts = local >= 0, local > -HOLD
        if flies.sum() < 6:
            break
        degree = 3 if flies.sum() >= BENT else 2
        flight = polynomial(local[flies], places[begin:][flies], degree)
        pull, spread = expected_pull(flight[1], 2 * flight[2])
        basis = np.column_stack([np.vander(local, degree + 1, increasing=True), np.minimum(local, 0) ** 2 / 2])
        beforehand = np.append(np.zeros(degree + 1), 1 / spread)
        unit = noise[begin:][counts, None]
        rows = np.vstack([basis[counts] / unit, beforehand])
        values = np.vstack([places[begin:][counts] / unit, pull / spread])
        solved = closest(rows, values, rounds=4, certain=1)
        explained, odds = _odds(values[:-1] - rows[:-1] @ solved), (values[-1] - rows[-1] @ solved) ** 2
        # Samples long before are left out, but not for the sake of an outlier.
        cost = explained + float(odds.sum()) + 4 * float((~counts).sum())
        if cost < best:
            plain = _odds(values[:-1] - rows[:-1, :-1] @ closest(rows[:-1, :-1], values[:-1], rounds=4))
            best, found = cost, (float(moment), solved[-1] if plain - explained > _SEEN else np.zeros(2))
    return found


def _odds(off: Float[np.ndarray, "samples 2"]) -> float:
    """The sum of squares of standard normal numbers, of which a single outlier says nothing."""
    return float(np.minimum((off**2).sum(1), 20.0).sum())


def clearing(radius: float, speed: float) -> float:
    """How long a hand stays before or behind what it has thrown, s, if it stops as quickly as it was swung."""
    return math.sqrt(2 * (2 * radius) * _SWING / max(speed, 1e-9))


def expected_pull(velocity: np.ndarray, acceleration: np.ndarray) -> tuple[np.ndarray, float]:
    """What a hand adds to the acceleration of a flight before it lets go, and how far from that others are.

    It brings what it holds from rest to its velocity within a fraction of a second; what is only dropped is held.
    """
    swing = velocity / _SWING
    return swing - acceleration, float(np.linalg.norm(swing) / 3 + 0.1 * np.linalg.norm(acceleration))


def aside(times: Float[np.ndarray, " samples"], places: Float[np.ndarray, "samples 2"], latest: int) -> int:
    """The number of samples at the beginning that are seen a constant step beside the path of all; 0 if there are none.

    Each number up to `latest` is tried: a polynomial, and a step between the samples before and those after.
    """
    local = times - times[0]
    powers = np.vander(local, 4 if len(times) >= BENT else 3, increasing=True)

    def cost(basis: np.ndarray) -> float:
        return float(((places - basis @ np.linalg.lstsq(basis, places, rcond=None)[0]) ** 2).sum())

    steps = [(np.arange(len(times)) < count).astype(float) for count in range(2, min(latest, len(times) // 2) + 1)]
    if not steps:
        return 0
    costs = np.array([cost(np.column_stack([powers, step])) for step in steps])
    free = 2 * (len(times) - powers.shape[1])
    # Two numbers and the best of several moments: noise alone gains less.
    gain = free * (cost(powers) / max(costs.min(), 1e-12) - 1)
    return int(costs.argmin()) + 2 if gain > 8 + 2 * math.log(len(costs)) else 0
