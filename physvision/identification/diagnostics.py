"""Checks of a fit: the holdout test, and warnings about implausible or contradictory results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float

from physvision.core import DerivativeError
from physvision.estimation.uncertainty import uncertainty
from physvision.identification.fitting import Fit
from physvision.identification.formatting import round_to_interval
from physvision.identification.parameters import Parameter, estimate_parameters, known_value_std


@dataclass(frozen=True)
class Holdout:
    """Prediction of the last third of a motion by a fit to the first two.

    Attributes:
        error: Root mean square distance between predicted and observed positions, pixels.
        relative_error: Error relative to the extent of the motion.
        positions: Predicted positions, (times, 2 · objects), pixels; NaN before the last third.
    """

    error: float
    relative_error: float
    positions: Float[np.ndarray, "times numbers"]


def evaluate_holdout(fit: Fit) -> Holdout | None:
    """Predict the last third of the samples for which the model holds; None with too few samples."""
    first, end, evidence = fit.model.first, fit.model.end, fit.evidence
    if end - first < evidence.settings.selection.min_holdout_samples:
        return None
    positions = fit.without_holdout.positions(evidence.times)
    samples = torch.arange(len(positions))
    is_held_out = (samples >= first + fit.holdout_start) & (samples < end)
    positions[~is_held_out] = torch.nan
    errors = (positions - evidence.observed)[is_held_out]
    squared_errors = errors[torch.isfinite(errors)].square()
    if not len(squared_errors):
        return None
    error = math.sqrt(float(squared_errors.mean()) * 2)
    return Holdout(error, error / evidence.extent, positions.numpy())


def expected_holdout_error(fit: Fit, max_noise: float = math.inf) -> float:
    """Return the holdout error that the uncertainty of the fit to the first two thirds implies, pixels.

    For a motion that is sensitive to its initial state it may exceed the extent; it is infinite where the search for
    the first two thirds has diverged.

    Args:
        fit: Fit of the whole motion.
        max_noise: Error of a position, pixels, beyond which the residuals are those of a wrong law: a law that misses
            the track by much would otherwise allow itself to miss the future by much.
    """
    training = fit.without_holdout
    try:
        posterior = uncertainty(training.problem, training.z, robust=True, linearization=training.linearization)
    except DerivativeError:
        return math.inf
    jacobian = fit.problem.linearize(training.z[None])[1][0] / torch.as_tensor(fit.problem.weight)[..., None]
    holdout = slice(fit.holdout_start, None)
    rows = jacobian[holdout][torch.isfinite(fit.problem.observed[holdout])]
    variance = torch.einsum("ni,ij,nj->n", rows, posterior.covariance, rows).mean()
    error = math.sqrt(2 * (float(variance) + fit.noise**2))
    return error * min(max_noise / max(fit.noise, 1e-12), 1.0)


def describe_prediction_gap(fit: Fit, error: float) -> str:
    """Explain a large holdout error: a sensitive motion, too short a fit, or another motion at the end.

    Args:
        fit: Fit of the whole motion.
        error: Holdout error, pixels.
    """
    expected, unit = expected_holdout_error(fit), fit.evidence.unit
    if fit.evidence.extent < expected < math.inf:
        return (
            "The first two thirds do not determine the last, however well they are fitted: the motion is too "
            "sensitive, or they show too little of it."
        )
    if error < fit.evidence.settings.warnings.prediction_ratio * expected < math.inf:
        return (
            f"The motion is so sensitive that its first two thirds determine the last only to {expected:.2g} {unit}, "
            "however well it is fitted."
        )
    return "The last third does not follow from the first two: see --from and --to."


_MIN_LATER_SAMPLES = 3  # fewer may be outliers at the end of a track


def span_warnings(fit: Fit) -> list[str]:
    """Return a warning if positions are observed after the last sample that was fitted."""
    start, end = fit.span
    is_left_out = torch.isfinite(fit.evidence.observed).any(1) & (fit.evidence.times > end)
    if int(is_left_out.sum()) < _MIN_LATER_SAMPLES:
        return []
    return [f"Fitted from {start:.2f} to {end:.2f} s; later positions do not follow the law, and are left out."]


_SLOW_MOTION = "if it was filmed in slow motion, give the frame rate of filming with --fps"


def plausibility_warnings(fit: Fit, parameters: Mapping[str, Parameter]) -> list[str]:
    """Return warnings of implausible gravity or scale, and of known values that contradict the motion."""
    evidence, settings = fit.evidence, fit.evidence.settings.warnings
    warnings = []
    gravity = parameters.get("gravity")
    if gravity is not None and gravity.value is not None:
        low, high = gravity.interval_95 or (gravity.value, gravity.value)
        low_plausible, high_plausible = settings.gravity_range
        if not low_plausible < gravity.value < high_plausible and not low < 9.81 < high:
            warnings.append(f"Gravity is estimated as {gravity.value:.3g} m/s²: {_SLOW_MOTION}, or check the scale.")
    if "gravity" in evidence.known_values:
        scale = fit.model.scale(fit.values, evidence.known_tensors)
        if scale is not None and float(evidence.view.width / scale) > settings.max_width:
            width = float(evidence.view.width / scale)
            warnings.append(f"With this gravity the picture would be {width:.3g} m wide: {_SLOW_MOTION}.")
    return warnings + _contradictions(fit)


def _contradictions(fit: Fit) -> list[str]:
    """Return a warning of the first known value that disagrees with the motion and the other known values."""
    evidence, settings = fit.evidence, fit.evidence.settings.warnings
    for name, known_value in evidence.known_values.items():
        remaining = {key: value for key, value in evidence.known_values.items() if key != name}
        # Without another known value only an angle is identifiable, so that only an angle can be contradicted.
        if not remaining and name != "angle":
            continue
        estimate = estimate_parameters(replace(fit, evidence=replace(evidence, known_values=remaining))).get(name)
        if estimate is None or estimate.value is None or estimate.interval_68 is None:
            continue
        std = (estimate.interval_68[1] - estimate.interval_68[0]) / 2
        assert estimate.interval_95 is not None
        tolerance = settings.contradiction * math.hypot(std, known_value_std(name, evidence))
        if abs(known_value.value - estimate.value) > max(tolerance, settings.rounding * abs(known_value.value)):
            sources = " and ".join(["the motion", *remaining])
            value, low, high = round_to_interval(estimate.value, *estimate.interval_95)
            return [
                f"{name} is given as {known_value.value:.4g} {estimate.unit}, but {sources} imply "
                f"{value} {estimate.unit} (95 %: {low} to {high}): they contradict each other, and dependent results "
                "are unreliable."
            ]
    return []
