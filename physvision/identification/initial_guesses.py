"""Initial guesses for fits: robust polynomials, circles, principal directions and periods of tracks, in NumPy."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Samples = Float[np.ndarray, " samples"]
Positions = Float[np.ndarray, "samples 2"]
MAD_TO_STD = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
_OUTLIER_SCALE = 2.4  # residual of weight 1/2, in standard deviations: Cauchy's loss at 95 % efficiency
_DERIVATIVE_SAMPLES = 9  # number of samples that a local quartic is fitted to
_INFORMATIVE_FRACTION, _INFORMATIVE_SAMPLES = 0.5, 12  # smallest fraction of the range, and number of samples
_MAX_SINE_NUMBERS = 100_000  # limits the memory that a periodogram of a long track takes


def fit_polynomial(
    times: Samples, values: Float[np.ndarray, "samples numbers"], degree: int
) -> Float[np.ndarray, "coefficients numbers"]:
    """Fit a polynomial robustly, and return its coefficients, the constant first."""
    return robust_lstsq(np.vander(times, degree + 1, increasing=True), values)


def robust_lstsq(
    basis: Float[np.ndarray, "samples coefficients"],
    values: Float[np.ndarray, "samples numbers"],
    iterations: int = 8,
    exact_rows: int = 0,
) -> Float[np.ndarray, "coefficients numbers"]:
    """Solve a linear least-squares problem by iterative reweighting with Cauchy weights.

    Args:
        basis: Basis functions as columns.
        values: Values to fit.
        iterations: Number of reweighted solves.
        exact_rows: Number of rows at the end, such as priors, that keep a weight of one.
    """
    weights = np.ones(len(basis))
    coefficients = np.zeros((basis.shape[1], values.shape[1]))
    for _ in range(iterations):
        root = np.sqrt(weights)[:, None]
        coefficients = np.linalg.lstsq(root * basis, root * values, rcond=None)[0]
        errors = np.linalg.norm(values - basis @ coefficients, axis=1)
        scale = max(MAD_TO_STD * float(np.median(errors)), 1e-9)
        weights = 1 / (1 + (errors / (_OUTLIER_SCALE * scale)) ** 2)
        weights[len(weights) - exact_rows :] = 1.0
    return coefficients


def local_derivatives(times: Samples, values: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return smoothed values and their first and second derivatives, from a quartic through neighboring samples."""
    rows, width = [], _DERIVATIVE_SAMPLES
    for index in range(len(times)):
        first = min(max(index - width // 2, 0), max(len(times) - width, 0))
        window = slice(first, first + width)
        powers = np.vander(times[window] - times[index], 5, increasing=True)
        rows.append(np.linalg.lstsq(powers, values[window], rcond=None)[0][:3] * [1, 1, 2])
    value, rate, acceleration = np.array(rows).T
    return value, rate, acceleration


def informative_duration(times: Samples, positions: Float[np.ndarray, "samples numbers"]) -> float:
    """Return the time after which the positions have covered half of their range, s."""
    extent = np.nanmax(np.nanmax(positions, 0) - np.nanmin(positions, 0))
    for count in range(min(_INFORMATIVE_SAMPLES, len(times)), len(times)):
        part = positions[:count]
        if np.nanmax(np.nanmax(part, 0) - np.nanmin(part, 0)) > _INFORMATIVE_FRACTION * extent:
            return float(times[count - 1] - times[0])
    return float(times[-1] - times[0])


def fit_circle(positions: Positions) -> tuple[np.ndarray, float]:
    """Fit a circle with Pratt's and Taubin's normalization, and return its center and radius."""
    mean = positions.mean(0)
    x, y = (positions - mean).T
    z = x * x + y * y
    matrix = np.stack([z - z.mean(), x, y], 1)
    matrix[:, 0] /= max(2 * np.sqrt(z.mean()), 1e-12)
    direction = np.linalg.svd(matrix, full_matrices=False)[2][-1]
    a = direction[0] / max(2 * np.sqrt(z.mean()), 1e-12)
    if abs(a) < 1e-12:
        return mean + np.array([0.0, -1e6]), 1e6
    center = -direction[1:] / (2 * a)
    radius = float(np.sqrt(center @ center + z.mean()))
    return mean + center, radius


def principal_direction(positions: Positions, sigma: Samples | None = None) -> tuple[np.ndarray, float]:
    """Return the unit principal direction of positions, and their width across it relative to the spread along it.

    Args:
        positions: Positions along and across the direction.
        sigma: Standard deviations of the positions; equal ones if None.
    """
    values, vectors = np.linalg.eigh(np.cov(positions.T, aweights=None if sigma is None else sigma**-2))
    return vectors[:, 1], float(np.sqrt(max(values[0], 0.0) / max(values[1], 1e-12)))


def dominant_period(times: Samples, values: Samples) -> float | None:
    """Return the period of an oscillation about a drifting level, s; None for fewer than six samples or no duration.

    Of frequencies from 0.4 periods in the duration on, a periodogram finds the one at which a sine plus a linear trend
    leaves the smallest residuals, and a second one on a finer grid refines it.
    """
    duration = times[-1] - times[0]
    step = float(np.median(np.diff(times)))
    if len(times) < 6 or duration <= 0:
        return None
    frequencies = np.arange(0.4 / duration, 0.45 / step, 0.15 / duration)
    if not len(frequencies):
        return None
    coarse_frequency = frequencies[int(_sine_residuals(times, values, frequencies).argmin())]
    frequencies = np.linspace(coarse_frequency - 0.15 / duration, coarse_frequency + 0.15 / duration, 31)
    frequencies = frequencies[frequencies > 0]
    return 1 / float(frequencies[int(_sine_residuals(times, values, frequencies).argmin())])


def _sine_residuals(
    times: Samples, values: Samples, frequencies: Float[np.ndarray, " frequencies"]
) -> Float[np.ndarray, " frequencies"]:
    """Return the residual sum of squares after a fit of a sine plus a linear trend, for each frequency."""
    elapsed, deviations, residuals = times - times[0], values - values.mean(), []
    for chunk in np.array_split(frequencies, 1 + len(frequencies) * len(times) // _MAX_SINE_NUMBERS):
        phase = 2 * np.pi * chunk[:, None] * elapsed
        line = np.broadcast_to(np.stack([np.ones_like(elapsed), elapsed], -1), (*phase.shape, 2))
        basis = np.concatenate([line, np.cos(phase)[..., None], np.sin(phase)[..., None]], -1)
        explained = np.einsum("fsk,s->fk", np.linalg.qr(basis)[0], deviations)
        residuals.append(deviations @ deviations - (explained**2).sum(1))
    return np.concatenate(residuals)
