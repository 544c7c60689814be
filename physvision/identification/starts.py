"""What tracks say at a glance: first guesses for searches, in plain numpy."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

_ENOUGH = 12  # samples from which a motion begins to show its law
_AT_ONCE = 100_000  # numbers of sines: bounds the memory of long tracks


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
