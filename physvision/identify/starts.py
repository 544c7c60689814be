"""What tracks say at a glance: first guesses for searches, in plain numpy."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from jaxtyping import Float

_ENOUGH = 12  # samples from which a motion begins to show its law
BENT = 16  # samples of a flight from which on it is seen that drag, and rows that are read in turn, bend a parabola
_AT_ONCE = 100_000  # numbers of sines: bounds the memory of long tracks
_LASTING = (0.5, 2.0, 8.0)  # variance of what lasts, of the white noise's
_LASTS = (0.03, 0.1, 0.3)  # for how long, of the time looked at
_UNLIKELY = 22.5  # what squares of six standard normal numbers add up to once in a thousand times


def polynomial(
    times: Float[np.ndarray, " samples"], values: Float[np.ndarray, "samples numbers"], degree: int
) -> Float[np.ndarray, "coefficients numbers"]:
    """Coefficients, the constant first, of the polynomial closest to values; outliers are held down."""
    return closest(np.vander(times, degree + 1, increasing=True), values)


def closest(
    basis: Float[np.ndarray, "samples coefficients"],
    values: Float[np.ndarray, "samples numbers"],
    rounds: int = 8,
    certain: int = 0,
) -> Float[np.ndarray, "coefficients numbers"]:
    """Coefficients of the combination of columns closest to values; outliers are held down, but the last `certain`."""
    weights = np.ones(len(basis))
    found = np.zeros((basis.shape[1], values.shape[1]))
    for _ in range(rounds):
        root = np.sqrt(weights)[:, None]
        found = np.linalg.lstsq(root * basis, root * values, rcond=None)[0]
        off = np.linalg.norm(values - basis @ found, axis=1)
        usual = max(1.4826 * float(np.median(off)), 1e-9)
        weights = 1 / (1 + (off / (2.4 * usual)) ** 2)
        weights[len(weights) - certain :] = 1.0
    return found


def derivatives(
    times: Float[np.ndarray, " samples"], values: Float[np.ndarray, " samples"], width: int = 9
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Smoothed values and their first and second derivatives, from a quartic through the samples around each."""
    found = []
    for at in range(len(times)):
        first = min(max(at - width // 2, 0), max(len(times) - width, 0))
        near = slice(first, first + width)
        powers = np.vander(times[near] - times[at], 5, increasing=True)
        found.append(np.linalg.lstsq(powers, values[near], rcond=None)[0][:3] * [1, 1, 2])
    value, rate, bend = np.array(found).T
    return value, rate, bend


def informative(times: Float[np.ndarray, " samples"], places: Float[np.ndarray, "samples numbers"]) -> float:
    """Seconds until half of what is seen was gone through."""
    whole = np.nanmax(np.nanmax(places, 0) - np.nanmin(places, 0))
    for count in range(min(_ENOUGH, len(times)), len(times)):
        part = places[:count]
        if np.nanmax(np.nanmax(part, 0) - np.nanmin(part, 0)) > 0.5 * whole:
            return float(times[count - 1] - times[0])
    return float(times[-1] - times[0])


def circle(places: Float[np.ndarray, "samples 2"]) -> tuple[np.ndarray, float]:
    """Centre and radius of the circle closest to places, after Pratt's and Taubin's normalisation."""
    middle = places.mean(0)
    x, y = (places - middle).T
    z = x * x + y * y
    matrix = np.stack([z - z.mean(), x, y], 1)
    matrix[:, 0] /= max(2 * np.sqrt(z.mean()), 1e-12)
    direction = np.linalg.svd(matrix, full_matrices=False)[2][-1]
    a = direction[0] / max(2 * np.sqrt(z.mean()), 1e-12)
    if abs(a) < 1e-12:
        return middle + np.array([0.0, -1e6]), 1e6
    center = -direction[1:] / (2 * a)
    radius = float(np.sqrt(center @ center + z.mean()))
    return middle + center, radius


def main_direction(places: Float[np.ndarray, "samples 2"]) -> tuple[np.ndarray, float]:
    """The unit direction along which places lie, and how far they are from its line, as a share of their spread."""
    values, vectors = np.linalg.eigh(np.cov((places - places.mean(0)).T))
    return vectors[:, 1], float(np.sqrt(max(values[0], 0.0) / max(values[1], 1e-12)))


def period(times: Float[np.ndarray, " samples"], values: Float[np.ndarray, " samples"]) -> float | None:
    """The time of one oscillation about a level that may drift; None where there is less than one half of it.

    The frequency at which a sine, with a level and a slope, explains most; then a finer search around it.
    """
    span = times[-1] - times[0]
    step = float(np.median(np.diff(times)))
    if len(times) < 6 or span <= 0:
        return None

    frequencies = np.arange(0.4 / span, 0.45 / step, 0.15 / span)
    if not len(frequencies):
        return None
    best = frequencies[int(_missed_by_sines(times, values, frequencies).argmin())]
    finer = np.linspace(best - 0.15 / span, best + 0.15 / span, 31)
    finer = finer[finer > 0]
    return 1 / float(finer[int(_missed_by_sines(times, values, finer).argmin())])


def _missed_by_sines(
    times: Float[np.ndarray, " samples"],
    values: Float[np.ndarray, " samples"],
    frequencies: Float[np.ndarray, " frequencies"],
) -> Float[np.ndarray, " frequencies"]:
    """The sum of squares that a sine of each frequency, with a level and a slope, leaves of values."""
    since, away, left = times - times[0], values - values.mean(), []
    for some in np.array_split(frequencies, 1 + len(frequencies) * len(times) // _AT_ONCE):
        phase = 2 * np.pi * some[:, None] * since
        line = np.broadcast_to(np.stack([np.ones_like(since), since], -1), (*phase.shape, 2))
        basis = np.concatenate([line, np.cos(phase)[..., None], np.sin(phase)[..., None]], -1)
        explained = np.einsum("fsk,s->fk", np.linalg.qr(basis)[0], away)
        left.append(away @ away - (explained**2).sum(1))
    return np.concatenate(left)


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


def impacts(times: Float[np.ndarray, " samples"], down: Float[np.ndarray, " samples"], noise: float) -> list[int]:
    """The samples after which something that moved down moves up: each the last before its impact."""
    speed = np.diff(down) / np.diff(times)
    usual = np.median(np.abs(np.diff(speed)))
    # A frame that shows the one before again makes the next step look twice as fast.
    fastest = float(np.median([np.abs(speed[at : at + 3]) for at in range(max(len(speed) - 2, 1))], axis=1).max())
    jump = max(3 * usual, 0.12 * fastest, 6 * noise / float(np.median(np.diff(times))))
    found: list[int] = []
    hardest = 0.0
    for at in range(1, len(speed) - 1):
        # The step in which it hits may show any speed between: the steps around it show the jump.
        turned = speed[at - 1] > 0 > speed[at + 1] and speed[at - 1] - speed[at + 1] > jump
        if turned and (not found or at - found[-1] > 2):
            lowest = at + int(np.argmax(down[at : at + 2]))
            found.append(lowest)
        if turned:
            hardest = max(hardest, float(speed[at - 1] - speed[at + 1]))
    # What swings turns round as well, but softly.
    return found if hardest > 0.8 * fastest else []


def flights(
    times: Float[np.ndarray, " samples"], places: Float[np.ndarray, "samples 2"], hits: list[int]
) -> tuple[float, float, float, np.ndarray, np.ndarray] | None:
    """Acceleration, height of the floor, restitution, first place and velocity, from flights between impacts."""
    edges = [0, *hits, len(times)]
    weights = []
    for first, last in pairwise(edges):
        part = slice(first + (first > 0) + 1 if first else 0, max(last - 1, first))
        if last - first < 5:
            continue
        arc = polynomial(times[part] - times[part.start], places[part], 2)
        weights.append((2 * float(arc[2][1]), last - first))
    usable = [(weight, count) for weight, count in weights if weight > 0]
    if not usable:
        return None
    weight = float(np.average([w for w, _ in usable], weights=[c**3 for _, c in usable]))
    ratios, floors = [], []
    for number, hit in enumerate(hits):
        floors.append(float(places[max(hit - 1, 0) : hit + 2, 1].max()))
        before, after = edges[number + 1] - edges[number], edges[number + 2] - edges[number + 1]
        if number + 1 < len(hits):
            if number > 0:
                ratios.append(after / before)
            else:
                rise = floors[-1] - places[hits[0] : hits[1], 1].min()
                drop = floors[-1] - places[: hits[0], 1].min()
                ratios.append(math.sqrt(max(rise, 1e-9) / max(drop, 1e-9)))
        elif not ratios:
            rise, drop = (floors[-1] - part[:, 1].min() for part in (places[hit:], places[:hit]))
            ratios.append(math.sqrt(max(rise, 1e-9) / max(drop, 1e-9)))
    few = max(4, min(hits[0] - 1, 12))
    local = times[:few] - times[0]
    rest = places[:few].copy()
    rest[:, 1] -= weight / 2 * local**2
    line = polynomial(local, rest, 1)
    return weight, float(np.median(floors)), float(np.median(ratios)), line[0], line[1]


def meeting(
    times: Float[np.ndarray, " samples"], places: Float[np.ndarray, "samples numbers"]
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray] | None:
    """When velocities change at once, the velocities before and after, and the places then.

    Every sample is tried: lines before and after it that meet. Around it a third of a second counts, or fifteen
    samples: over more, friction bends the lines.
    """
    reach = min(0.35, 15 * float(np.median(np.diff(times))))
    best, found = np.inf, None
    everything = float(((places - places.mean(0)) ** 2).sum())
    for at in range(4, len(times) - 4):
        local = times - times[at]
        near = np.abs(local) < reach
        if (near & (local < 0)).sum() < 3 or (near & (local > 0)).sum() < 3:
            continue
        part = local[near]
        basis = np.stack([np.ones_like(part), np.minimum(part, 0), np.maximum(part, 0)], 1)
        solved = np.linalg.lstsq(basis, places[near], rcond=None)[0]
        cost = float(((places[near] - basis @ solved) ** 2).sum())
        # How much better than without a change of velocity, for each sample.
        straight = np.stack([np.ones_like(part), part], 1)
        plain = float(((places[near] - straight @ np.linalg.lstsq(straight, places[near], rcond=None)[0]) ** 2).sum())
        if cost - plain < best:
            best, found = cost - plain, (float(times[at]), solved[1], solved[2], solved[0])
    return found if best < -1e-4 * everything else None
