"""Parabolic segments of a track, and the samples at which they begin and end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from physvision.identification.initial_guesses import Positions, Samples, fit_polynomial
from physvision.identification.kind_settings import ParabolaSettings

_DEFAULTS = ParabolaSettings()
_EXTENSION_DIVISOR = 12  # part of a window by which it is extended at a time


def parabola_window(
    times: Samples,
    positions: Positions,
    noise: float,
    falling: bool,
    settings: ParabolaSettings,
    sigma: Samples | None = None,
    is_lawful: Callable[[slice], bool] = lambda part: True,
) -> tuple[int, int] | None:
    """Find the window of samples with the largest motion that a parabola explains within the noise.

    Windows of several sizes that a parabola fits well are extended while the next sample fits. The one with the largest
    product of path length and root of the number of samples is taken, without the samples at either end that depart
    from the path of the others.

    Args:
        times: Times of the samples, s.
        positions: Observed positions, y down, pixels.
        noise: Standard deviation of a coordinate, pixels.
        falling: If true, the acceleration must point down. A throwing hand also moves an object along a parabola, but
            with an upward acceleration.
        settings: Thresholds of the search.
        sigma: Standard deviation of each sample where that is more than `noise`, as of an object that a post hides in
            part, pixels.
        is_lawful: Function that tells of a part of the samples whether it may be a window.

    Returns:
        The first sample and one past the last; None if there is no such window.
    """
    count = len(times)
    min_samples = min(settings.min_samples, count)
    cubic_samples = settings.cubic_samples if falling else count + 1
    best_window: tuple[int, int] | None = None
    errors = np.full(count, noise) if sigma is None else np.maximum(noise, sigma)
    for size in {max(min_samples, count // 6), max(min_samples, count // 3), max(min_samples, 2 * count // 3)}:
        for first in range(0, count - size + 1, max(1, size // 4)):
            window = _extend_window(times, positions, errors, (first, first + size), cubic_samples, settings)
            if window and falling and not _falls(times[slice(*window)], positions[slice(*window)], settings):
                continue
            if window and not is_lawful(slice(*window)):
                continue
            if window and (
                best_window is None or _motion_score(positions, window) > _motion_score(positions, best_window)
            ):
                best_window = window
    if best_window is None:
        return None
    first, last = best_window
    start = first + departure_index(times[first:last], positions[first:last], noise, settings, errors[first:last])
    part = slice(start, last)
    end = last - departure_index(-times[part][::-1], positions[part][::-1], noise, settings, errors[part][::-1])
    return (start, end) if end - start >= min_samples else best_window


def departure_index(
    times: Samples,
    positions: Float[np.ndarray, "samples coordinates"],
    noise: float,
    settings: ParabolaSettings = _DEFAULTS,
    sigma: Samples | None = None,
) -> int:
    """Count the leading samples that do not lie on the path of the later ones.

    From the middle to the start, four samples at a time are compared with the polynomial through all later ones, to
    detect that a hand still holds the object. Their prediction errors are correlated, by the error of the polynomial
    and by autocorrelated noise, so they are tested jointly; the worst of the four may be an outlier and is left out.

    Args:
        times: Times of the samples, s.
        positions: Observed positions, pixels; one coordinate or two.
        noise: Standard deviation of a coordinate, pixels.
        settings: Thresholds of the search.
        sigma: Standard deviation of each sample where that is more than `noise`, pixels.
    """
    count = len(times)
    degree = 3 if count >= settings.cubic_samples else 2
    num_reference = max(2 * degree + 2, count // 2)
    covariance = _noise_covariance(times, positions, noise, degree, num_reference, settings)
    if sigma is not None:
        covariance = covariance + np.diag(np.maximum(sigma**2 - noise**2, 0.0))
    for index in range(count - num_reference - 4, -1, -1):
        powers = np.vander(times[index:] - times[index], degree + 1, increasing=True)
        prediction = np.hstack([np.eye(4), -powers[:4] @ np.linalg.pinv(powers[4:])])
        errors = prediction @ positions[index:]
        error_covariance = prediction @ covariance[index:, index:] @ prediction.T
        triples = [[k for k in range(4) if k != outlier] for outlier in range(4)]
        solutions = [np.linalg.solve(error_covariance[np.ix_(rows, rows)], errors[rows]) for rows in triples]
        squared_distances = [np.sum(errors[rows] * part) for rows, part in zip(triples, solutions, strict=True)]
        if min(squared_distances) > settings.departure_threshold:
            return index + 3
    return 0


def _noise_covariance(
    times: Samples,
    positions: Float[np.ndarray, "samples coordinates"],
    noise: float,
    degree: int,
    num_reference: int,
    settings: ParabolaSettings,
) -> Float[np.ndarray, "samples samples"]:
    """Estimate the covariance of all samples' noise, white and autocorrelated, from the last `num_reference` samples.

    These are projected onto the complement of the polynomials of `degree`, and the noise model of maximum likelihood is
    taken; its white noise has at least the variance of `noise`.
    """
    elapsed = times[-num_reference:] - times[-num_reference]
    complement = np.linalg.svd(np.vander(elapsed, degree + 1, increasing=True))[0][:, degree + 1 :].T
    residuals, distances = complement @ positions[-num_reference:], np.abs(np.subtract.outer(times, times))
    covariance, max_likelihood = np.eye(len(times)), -np.inf
    models = [(0.0, 1.0)]
    models += [(ratio, scale * elapsed[-1]) for ratio in settings.variance_ratios for scale in settings.time_scales]
    for ratio, time_scale in models:
        model = np.eye(len(times)) + ratio * np.exp(-distances / time_scale)
        factor = np.linalg.cholesky(complement @ model[-num_reference:, -num_reference:] @ complement.T)
        variance = float(np.mean(np.linalg.solve(factor, residuals) ** 2))
        log_determinant = residuals.shape[1] * float(np.log(factor.diagonal()).sum())
        likelihood = -np.log(variance) / 2 * residuals.size - log_determinant
        if likelihood > max_likelihood:
            covariance, max_likelihood = max(variance, noise**2) * model, likelihood
    return covariance


def _falls(times: np.ndarray, positions: np.ndarray, settings: ParabolaSettings) -> bool:
    """Return whether the acceleration points down in the picture, by default to within about 22°."""
    sideways, down = fit_polynomial(times - times[0], positions, 2)[2]
    return bool(abs(sideways) < settings.max_sideways * down)


def _motion_score(positions: np.ndarray, window: tuple[int, int]) -> float:
    """Return the path length of a window, summed over coordinates, times the root of its number of samples."""
    part = positions[window[0] : window[1]]
    return float(np.abs(np.diff(part, axis=0)).sum()) * np.sqrt(len(part))


def _extend_window(
    times: np.ndarray,
    positions: np.ndarray,
    noise: np.ndarray,
    window: tuple[int, int],
    cubic_samples: int,
    settings: ParabolaSettings,
) -> tuple[int, int] | None:
    """Extend a window on both sides while samples fit its parabola, or its cubic from `cubic_samples` samples on.

    Returns:
        The extended window, or None if its polynomial does not fit the given window.
    """
    first, last = window

    def fit() -> np.ndarray:
        degree = 3 if last - first >= cubic_samples else 2
        return fit_polynomial(times[first:last] - times[first], positions[first:last], degree)

    max_error = settings.max_residual * noise
    coefficients = fit()
    powers = np.vander(times[first:last] - times[first], len(coefficients), increasing=True)
    errors = np.abs(positions[first:last] - powers @ coefficients) / noise[first:last, None]
    if np.median(errors) > settings.max_median_residual or errors.max() > 2 * settings.max_residual:
        return None
    while True:
        coefficients = fit()
        # All further samples on the present path are added at once, but no more than a fraction of the window, since an
        # extrapolation drifts.
        reach = max(1, (last - first) // _EXTENSION_DIVISOR)
        neighbors = slice(max(first - reach, 0), last + reach)
        powers = np.vander(times[neighbors] - times[first], len(coefficients), increasing=True)
        fits = np.abs(positions[neighbors] - powers @ coefficients).max(1) < max_error[neighbors]
        before, after = fits[: first - neighbors.start][::-1], fits[len(fits) - len(times[last : last + reach]) :]
        steps = [int(part.argmin()) if not part.all() else len(part) for part in (before, after)]
        first, last = first - steps[0], last + steps[1]
        if not any(steps):
            return first, last
