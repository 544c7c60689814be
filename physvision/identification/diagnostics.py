"""Warnings about implausible or contradictory results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from physvision.identification.fitting import Fit
from physvision.identification.parameters import Parameter, estimate_parameters, known_value_std

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
        rest = {key: value for key, value in evidence.known_values.items() if key != name}
        # A single known value can only contradict what is measured without any: an angle.
        if not rest and name != "angle":
            continue
        estimate = estimate_parameters(replace(fit, evidence=replace(evidence, known_values=rest))).get(name)
        if estimate is None or estimate.value is None or estimate.interval_68 is None:
            continue
        std = (estimate.interval_68[1] - estimate.interval_68[0]) / 2
        tolerance = settings.contradiction * math.hypot(std, known_value_std(name, evidence))
        if abs(known_value.value - estimate.value) > max(tolerance, settings.rounding * abs(known_value.value)):
            sources = " and ".join(["the motion", *rest])
            return [
                f"{name} is given as {known_value.value:.4g} {estimate.unit}, but {sources} imply "
                f"{estimate.value:.4g} ± {std:.2g}: they contradict each other, and dependent results are unreliable."
            ]
    return []
