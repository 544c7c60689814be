"""Values of the camera with intervals, as far as the motion shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from physvision.estimation.autocorrelation import mixture_posterior
from physvision.identification.camera_posterior import CameraFits, sample_camera, sample_camera_prior
from physvision.identification.parameters import Parameter, linearize_parameters

_UNITS = {"tilt": "rad", "roll": "rad", "focal_length": "px", "k1": "", "distortion": "", "readout": "s"}
# Unknowns of a fit on which each value depends.
_UNKNOWNS = {
    "tilt": ("keystone", "foreshortening"),
    "roll": ("tilt",),
    "focal_length": ("keystone", "foreshortening"),
    "k1": ("distortion",),
    "distortion": ("distortion",),
    "readout": ("readout",),
}
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
        effect = _describe_effect(cameras, _UNKNOWNS[name])
        parameters[name] = Parameter(value, unit, (low, high), (lowest, highest), is_identifiable, reason, effect)
    return parameters


def _describe_effect(cameras: CameraFits, unknowns: Sequence[str]) -> str:
    """Return which interval these unknowns of the camera widen most; an empty text where it is hardly noticeable."""
    name, factor = max(interval_widening(cameras, unknowns).items(), key=lambda entry: entry[1], default=("", 1.0))
    if factor < cameras.fits[0].evidence.settings.warnings.camera_widening:
        return ""
    return f"widens the interval of {name.replace('_', ' ')} {factor:.2g}-fold"


def interval_widening(cameras: CameraFits, unknowns: Sequence[str]) -> dict[str, float]:
    """Return by which factor the uncertainty of unknowns of the camera widens the interval of each parameter.

    That is the standard deviation over the one that remains if these unknowns are known, with the covariance C of all
    unknowns: C − C_uc C_cc⁻¹ C_cu.
    """
    totals: dict[str, float] = {}
    remainders: dict[str, float] = {}
    for fit, probability in zip(cameras.fits, cameras.probabilities, strict=True):
        values, derivatives, known_errors = linearize_parameters(fit)
        covariance = mixture_posterior(fit.problem, fit.z, linearization=fit.linearization).covariance
        indices, start = [], 0
        for unknown in fit.problem.unknowns:
            indices += range(start, start + unknown.size) if unknown.name in unknowns else []
            start += unknown.size
        columns = covariance[:, indices]
        remaining = covariance - columns @ torch.linalg.solve(covariance[indices][:, indices], columns.T)
        known_variance = known_errors.square().sum(1)
        names = [name for name, value in values.items() if not isinstance(value, str)]
        for part, matrix in ((totals, covariance), (remainders, remaining)):
            variances = torch.einsum("pi,ij,pj->p", derivatives, matrix, derivatives) + known_variance
            for name, variance in zip(names, variances.tolist(), strict=True):
                part[name] = part.get(name, 0.0) + probability * variance
    return {name: math.sqrt(total / remainders[name]) for name, total in totals.items() if remainders[name] > 0}
