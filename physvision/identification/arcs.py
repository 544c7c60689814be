"""Stretches of a track that a parabola explains, and where they begin and end."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physvision.identification.starts import polynomial

BENT = 16  # samples of a flight from which on it is seen that drag, and rows that are read in turn, bend a parabola
_LASTING = (0.5, 2.0, 8.0)  # variance of what lasts, of the white noise's
_LASTS = (0.03, 0.1, 0.3)  # for how long, of the time looked at
_UNLIKELY = 22.5  # what squares of six standard normal numbers add up to once in a thousand times


def parabola_window(
    times: Float[np.ndarray, " samples"],
    places: Float[np.ndarray, "samples 2"],
    noise: float,
    least: int = 6,
    falls: bool = False,
) -> tuple[int, int] | None:
    """The longest run of samples, first and one past the last, that a parabola explains to within noise.

    It starts from the stretch that is explained best where most is moving, and grows while the next sample fits. With
    `falls`, its acceleration leads down: a hand that throws pulls along parabolas too, but up.
    """
    count = len(times)
    best: tuple[int, int] | None = None
    for size in {max(least, count // 6), max(least, count // 3), max(least, 2 * count // 3)}:
        for first in range(0, count - size + 1, max(1, size // 4)):
            grown = _grow(times, places, noise, first, first + size, BENT if falls else count + 1)
            if grown and falls and not _downwards(times[slice(*grown)], places[slice(*grown)]):
                continue
            if grown and (best is None or _reach(places, grown) > _reach(places, best)):
                best = grown
    if best is None:
        return None
    first, last = best
    begun = first + departure(times[first:last], places[first:last], noise)
    ended = last - departure(-times[begun:last][::-1], places[begun:last][::-1], noise)
    return (begun, ended) if ended - begun >= least else best


def departure(times: Float[np.ndarray, " samples"], places: Float[np.ndarray, "samples 2"], noise: float) -> int:
    """The number of samples at the beginning that do not belong to what the later ones do.

    Going back from the middle, four samples at a time are compared with the polynomial through all later ones: a hand
    that still held what flew. Their misses share the polynomial's own error, and errors that last, so they are weighed
    together; the worst of the four may be an outlier and is left out.
    """
    count = len(times)
    degree = 3 if count >= BENT else 2
    least = max(2 * degree + 2, count // 2)
    covariance = _lasting(times, places, noise, degree, least)
    for at in range(count - least - 4, -1, -1):
        powers = np.vander(times[at:] - times[at], degree + 1, increasing=True)
        leads = np.hstack([np.eye(4), -powers[:4] @ np.linalg.pinv(powers[4:])])
        missed, shared = leads @ places[at:], leads @ covariance[at:, at:] @ leads.T
        kept = [[k for k in range(4) if k != worst] for worst in range(4)]
        odds = [np.sum(missed[few] * np.linalg.solve(shared[np.ix_(few, few)], missed[few])) for few in kept]
        if min(odds) > _UNLIKELY:
            return at + 3
    return 0


def _lasting(
    times: Float[np.ndarray, " samples"], places: Float[np.ndarray, "samples 2"], noise: float, degree: int, last: int
) -> Float[np.ndarray, "samples samples"]:
    """The covariance of errors: of the noise, and of what lasts for a while, as far as the `last` samples show that.

    What a polynomial leaves of them has no part along its powers, and is likeliest under one of several ideas.
    """
    some = times[-last:] - times[-last]
    left = np.linalg.svd(np.vander(some, degree + 1, increasing=True))[0][:, degree + 1 :].T
    missed, apart = left @ places[-last:], np.abs(np.subtract.outer(times, times))
    found, best = np.eye(len(times)), -np.inf
    ideas = [(0.0, 1.0), *((share, lasts * some[-1]) for share in _LASTING for lasts in _LASTS)]
    for share, lasts in ideas:
        every = np.eye(len(times)) + share * np.exp(-apart / lasts)
        lower = np.linalg.cholesky(left @ every[-last:, -last:] @ left.T)
        variance = float(np.mean(np.linalg.solve(lower, missed) ** 2))
        likely = -np.log(variance) / 2 * missed.size - missed.shape[1] * float(np.log(lower.diagonal()).sum())
        if likely > best:
            found, best = max(variance, noise**2) * every, likely
    return found


def _downwards(times: np.ndarray, places: np.ndarray) -> bool:
    """Whether a stretch is accelerated down in the picture, by about a fourth of a right angle aside at most."""
    aside, down = polynomial(times - times[0], places, 2)[2]
    return bool(abs(aside) < 0.4 * down)


def _reach(places: np.ndarray, window: tuple[int, int]) -> float:
    """How much a window is worth: samples, where things move."""
    part = places[window[0] : window[1]]
    moved = np.abs(np.diff(part, axis=0)).sum()
    return float(moved) * np.sqrt(len(part))


def _grow(times, places, noise, first, last, bent) -> tuple[int, int] | None:
    """A window made longer on both sides as long as a parabola goes on; a cubic from `bent` samples on."""

    def fit(first, last):
        local = times[first:last] - times[first]
        found = polynomial(local, places[first:last], 3 if last - first >= bent else 2)
        return found, places[first:last] - np.vander(local, len(found), increasing=True) @ found

    limit = 3.5 * noise
    _, off = fit(first, last)
    if np.median(np.abs(off)) > 1.5 * noise or np.abs(off).max() > 2 * limit:
        return None
    while True:
        found, _ = fit(first, last)
        grown = False
        for side in (-1, 1):
            at = first - 1 if side < 0 else last
            if 0 <= at < len(times):
                # Where a parabola leads further outside, its own error grows.
                expected = (times[at] - times[first]) ** np.arange(len(found)) @ found
                if np.abs(places[at] - expected).max() < limit:
                    first, last = (at, last) if side < 0 else (first, at + 1)
                    grown = True
        if not grown:
            return first, last
