"""Values of the camera with intervals, as far as the motion shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation.autocorrelation import mixture_posterior
from physvision.identification.camera_posterior import CameraFits, sample_camera, sample_camera_prior
from physvision.identification.parameters import Parameter, linearize_parameters

_UNITS = {"tilt": "rad", "roll": "rad", "focal_length": "px", "k1": "", "distortion": "", "readout": "s"}
# Unknowns of a fit on which each value depends.
_UNKNOWNS = {
    "tilt": ("keystone", "foreshortening"),
    "roll": ("roll",),
    "focal_length": ("keystone", "foreshortening"),
    "k1": ("distortion",),
    "distortion": ("distortion",),
    "readout": ("readout",),
}
_QUANTILES = (0.025, 0.16, 0.5, 0.84, 0.975)


@dataclass(frozen=True)
class LinearizedFit:
    """Parameters of a fit as linear functions of its unknowns.

    Attributes:
        probability: Probability of the fit's prior of the camera.
        unknowns: Name of each unknown.
        parameters: Names of the identifiable parameters.
        derivatives: Derivatives of these with respect to the unknowns.
        known_variance: Variance of these from errors of the known values.
        covariance: Covariance of the unknowns.
    """

    probability: float
    unknowns: tuple[str, ...]
    parameters: tuple[str, ...]
    derivatives: Float[Tensor, "parameters unknowns"]
    known_variance: Float[Tensor, " parameters"]
    covariance: Float[Tensor, "unknowns unknowns"]


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
    linearized = linearize_fits(cameras)
    parameters = {}
    for name, unit in _UNITS.items():
        if name not in samples:
            continue
        lowest, low, value, high, highest = np.quantile(samples[name], _QUANTILES).tolist()
        prior_low, prior_high = np.quantile(prior[name], [0.16, 0.84]).tolist()
        is_identifiable = high - low < settings.max_prior_fraction * (prior_high - prior_low)
        reason = "" if is_identifiable else "the motion hardly shows it"
        effect = _describe_effect(linearized, _UNKNOWNS[name], fit.evidence.settings.warnings.camera_widening)
        parameters[name] = Parameter(value, unit, (low, high), (lowest, highest), is_identifiable, reason, effect)
    return parameters


def _describe_effect(fits: Sequence[LinearizedFit], unknowns: Sequence[str], min_factor: float) -> str:
    """Return which parameter's interval these unknowns widen most; an empty text where it is hardly noticeable."""
    factors = [entry for entry in interval_widening(fits, unknowns).items() if entry[0] != "scale"]
    name, factor = max(factors, key=lambda entry: entry[1], default=("", 1.0))
    return f"widens the interval of {name.replace('_', ' ')} {factor:.2g}-fold" if factor >= min_factor else ""


def linearize_fits(cameras: CameraFits) -> list[LinearizedFit]:
    """Linearize the parameters of the fit with each prior of the camera."""
    result = []
    for fit, probability in zip(cameras.fits, cameras.probabilities, strict=True):
        values, derivatives, known_errors = linearize_parameters(fit)
        covariance = mixture_posterior(fit.problem, fit.z, linearization=fit.linearization).covariance
        unknowns = tuple(unknown.name for unknown in fit.problem.unknowns for _ in range(unknown.size))
        parameters = tuple(name for name, value in values.items() if not isinstance(value, str))
        known_variance = known_errors.square().sum(1)
        result.append(LinearizedFit(probability, unknowns, parameters, derivatives, known_variance, covariance))
    return result


def interval_widening(fits: Sequence[LinearizedFit], unknowns: Sequence[str]) -> dict[str, float]:
    """Return by which factor the uncertainty of unknowns of the camera widens the interval of each parameter.

    That is the standard deviation over the one that remains if these unknowns are known, with the covariance C of all
    unknowns: C − C_uc C_cc⁻¹ C_cu.
    """
    totals: dict[str, float] = {}
    remainders: dict[str, float] = {}
    for fit in fits:
        indices = [index for index, name in enumerate(fit.unknowns) if name in unknowns]
        columns = fit.covariance[:, indices]
        explained_covariance = columns @ torch.linalg.solve(fit.covariance[indices][:, indices], columns.T)
        for part, matrix in ((totals, fit.covariance), (remainders, fit.covariance - explained_covariance)):
            variances = torch.einsum("pi,ij,pj->p", fit.derivatives, matrix, fit.derivatives) + fit.known_variance
            for name, variance in zip(fit.parameters, variances.tolist(), strict=True):
                part[name] = part.get(name, 0.0) + fit.probability * variance
    return {name: math.sqrt(total / remainders[name]) for name, total in totals.items() if remainders[name] > 0}
