"""Values of the camera with intervals, as far as the motion shows them."""

from __future__ import annotations

import numpy as np

from physvision.identification.camera_posterior import CameraFits, sample_camera, sample_camera_prior
from physvision.identification.parameters import Parameter

_UNITS = {"tilt": "rad", "roll": "rad", "focal_length": "px", "k1": "", "distortion": "", "readout": "s"}
_QUANTILES = (0.025, 0.16, 0.5, 0.84, 0.975)


def estimate_camera(cameras: CameraFits) -> dict[str, Parameter]:
    """Estimate tilt, roll, focal length, distortion and readout of the camera, whatever camera it may be.

    Args:
        cameras: Fits with each prior of the camera; without an arbitrary one, nothing is estimated.
    """
    fit = cameras.arbitrary
    if fit is None or not fit.evidence.view.has_picture:
        return {}
    settings = fit.evidence.settings.parameters
    samples, prior = sample_camera(fit, settings.draws), sample_camera_prior(fit, settings.draws)
    parameters = {}
    for name, unit in _UNITS.items():
        if name not in samples:
            continue
        lowest, low, value, high, highest = np.quantile(samples[name], _QUANTILES).tolist()
        prior_low, prior_high = np.quantile(prior[name], [0.16, 0.84]).tolist()
        is_identifiable = high - low < settings.max_prior_fraction * (prior_high - prior_low)
        reason = "" if is_identifiable else "the motion hardly shows it"
        parameters[name] = Parameter(value, unit, (low, high), (lowest, highest), is_identifiable, reason)
    return parameters
