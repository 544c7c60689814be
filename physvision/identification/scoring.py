"""Scores of fits: Bayes' information criterion under a model of a tracker's errors, and odds of kinds by it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import permutations

import numpy as np
import torch
from jaxtyping import Float

from physvision.estimation.gauss_newton import residual_scale
from physvision.estimation.settings import DEFAULT_SETTINGS
from physvision.identification.camera_posterior import arbitrary_camera_cost
from physvision.identification.fitting import Fit
from physvision.identification.initial_guesses import principal_direction, robust_lstsq
from physvision.identification.model import Evidence
from physvision.identification.settings import SelectionSettings
from physvision.perception import Track

_IMAGE_PARAMETERS = 6  # of an affine map of the plane


def score(fit: Fit, autocorrelation: float | None = None, bias: float = 0.0) -> float:
    """Return the Bayesian information criterion (BIC) of a fit, signed so that larger is better.

    A sample that a model leaves out counts as if the object could be anywhere.

    Args:
        fit: Fit to score.
        autocorrelation: Autocorrelation of the tracks' errors; that of the fit's residuals if not given.
        bias: Standard deviation of the autocorrelated errors of the tracks, pixels.
    """
    residuals = fit.linearization[0]
    settings = fit.evidence.settings.selection
    scale = residual_scale(residuals).clamp(min=settings.min_residual_scale)
    weight = torch.as_tensor(fit.problem.weight, dtype=scale.dtype)
    scale = torch.hypot(scale, bias * weight[weight > 0].median())
    valid = torch.isfinite(fit.problem.observed).any(1)
    numbers, count = fit.problem.observed.shape[1], int(valid.sum())
    cauchy = DEFAULT_SETTINGS.cauchy_scale
    squared_ratio = residuals[0].square().mean(1) / (cauchy * scale) ** 2
    explained = -numbers * float((torch.log1p(squared_ratio) * cauchy**2 + 2 * torch.log(scale))[valid].sum())
    sigma = 1 / torch.as_tensor(fit.problem.weight)
    # The weight is zero where one of two objects was not observed.
    log_sigma = torch.log(sigma.expand(len(valid), numbers)[valid])
    explained -= 2 * float(log_sigma[torch.isfinite(log_sigma)].sum())
    unexplained = (_mean_count(fit.evidence) - count) * numbers * _uniform_cost(fit.evidence)
    autocorrelation = fit.uncertainty.autocorrelation if autocorrelation is None else autocorrelation
    prior_cost = float(fit.problem.unknowns.prior_residuals(fit.z[None])[0].square().sum())
    complexity = len(fit.z) * math.log(max(count, 2)) + arbitrary_camera_cost(fit)
    return _effective_fraction(autocorrelation) * (explained - unexplained) - prior_cost - complexity


def path_score(
    errors: Float[np.ndarray, "samples 2"], parameters: int, evidence: Evidence, autocorrelation: float
) -> float:
    """Return the score of a path of one object, comparable with that of a fit: samples without an error lie anywhere.

    Args:
        errors: Distances of the observed positions from the path, in the unit of positions; NaN without one.
        parameters: Number of the path's parameters.
        evidence: Track of the object.
        autocorrelation: Autocorrelation of the tracks' errors.
    """
    observed = torch.from_numpy(errors[np.isfinite(errors).all(1)])
    settings, (track,) = evidence.settings.selection, evidence.tracks
    smallest = settings.min_residual_scale * float(np.median(track.sigma[track.observed]))
    scale = residual_scale(observed[None]).clamp(min=smallest)
    scale = torch.hypot(scale, torch.tensor(settings.bias_ratio * (track.radius or 0.0), dtype=scale.dtype))
    cauchy = DEFAULT_SETTINGS.cauchy_scale
    squared_ratio = observed.square().mean(1) / (cauchy * scale) ** 2
    explained = -2 * float((torch.log1p(squared_ratio) * cauchy**2 + 2 * torch.log(scale)).sum())
    unexplained = (_mean_count(evidence) - len(observed)) * 2 * _uniform_cost(evidence)
    complexity = parameters * math.log(max(len(observed), 2))
    return _effective_fraction(autocorrelation) * (explained - unexplained) - complexity


def image_score(leader: Track, evidence: Evidence, autocorrelation: float) -> float:
    """Return the score of an object that moves as an affine image of another one; shadows and reflections do.

    Args:
        leader: Track of the other object.
        evidence: Track of the object.
        autocorrelation: Autocorrelation of the tracks' errors.
    """
    errors = image_errors(leader, evidence.tracks[0])
    if errors is None:
        return -math.inf
    return path_score(errors, _IMAGE_PARAMETERS, evidence, autocorrelation)


def may_be_image(fit: Fit) -> bool:
    """Return whether an image of one of two objects is about as close to the other as the law of both is."""
    settings = fit.evidence.settings.selection
    autocorrelation = min(fit.uncertainty.autocorrelation, settings.max_autocorrelation)
    tracks = [track.window(fit.model.first, fit.model.end) for track in fit.evidence.tracks]
    for leader, follower in permutations(range(len(tracks)), 2):
        alone = replace(fit.evidence, tracks=[tracks[follower]])
        errors = fit.errors[:, 2 * follower : 2 * follower + 2]
        law_score = path_score(errors, _IMAGE_PARAMETERS, alone, autocorrelation)
        if image_score(tracks[leader], alone, autocorrelation) > law_score + 2 * math.log(settings.min_successor_odds):
            return True
    return False


def image_errors(leader: Track, follower: Track) -> Float[np.ndarray, "samples 2"] | None:
    """Return the distances of an object from an affine image of another one; None if it is no shadow or reflection.

    A shadow, or the image in a mirror beside or below the motion, moves along with its object, not against it.
    """
    common = leader.observed & follower.observed
    if common.sum() < 2 * _IMAGE_PARAMETERS:
        return None
    path, image = leader.positions[common] - leader.positions[common].mean(0), follower.positions[common]
    direction, _ = principal_direction(path)
    basis = np.column_stack([np.ones(len(path)), path])
    coefficients = robust_lstsq(basis, image)
    if float(direction @ coefficients[1:] @ direction) <= 0:
        return None
    errors = np.full(follower.positions.shape, np.nan)
    errors[common] = image - basis @ coefficients
    return errors


def max_relaxation_gain(fit: Fit, autocorrelation: float) -> float:
    """Return by how much the score of a fit could grow if its residuals were as small as the tracks' errors."""
    settings, evidence = fit.evidence.settings.selection, fit.evidence
    sigma = min(float(np.median(track.sigma[track.observed])) for track in evidence.tracks)
    bias = tracker_bias(fit)
    floor = math.hypot(settings.min_residual_scale * sigma, bias)
    scale = math.hypot(max(fit.noise, settings.min_residual_scale * sigma), bias)
    squares = fit.linearization[0][0].square().mean(1) / residual_scale(fit.linearization[0]) ** 2
    outliers = float(torch.log1p(squares / DEFAULT_SETTINGS.cauchy_scale**2).sum()) * DEFAULT_SETTINGS.cauchy_scale**2
    numbers = fit.problem.observed.shape[1]
    samples = int(torch.isfinite(fit.problem.observed).any(1).sum())
    gain_per_number = outliers + 2 * samples * math.log(max(scale / floor, 1.0))
    return _effective_fraction(autocorrelation) * numbers * gain_per_number


def reference_autocorrelation(fits: Collection[Fit], settings: SelectionSettings) -> float:
    """Return the autocorrelation of the tracks' errors: that of the closest fit to a large part of the samples."""
    min_length = settings.min_reference_fraction * max(fit.model.end - fit.model.first for fit in fits)
    long_fits = [fit for fit in fits if fit.model.end - fit.model.first >= min_length]
    closest = min(long_fits, key=lambda fit: fit.noise)
    return min(closest.uncertainty.autocorrelation, settings.max_autocorrelation)


def kind_odds(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the posterior odds of each kind against the best one, the best first; kinds are equally likely before."""
    best_score = max(scores.values())
    return {kind: math.exp((scores[kind] - best_score) / 2) for kind in sorted(scores, key=lambda name: -scores[name])}


def tracker_bias(fit: Fit) -> float:
    """Return the standard deviation of a tracker's autocorrelated errors, pixels.

    Shadows, strings, blur and the background shift the center of a detected object by a fraction of its size.
    """
    radii = [track.radius or 0.0 for track in fit.evidence.tracks]
    return fit.evidence.settings.selection.bias_ratio * max(radii)


def score_gain(fit: Fit) -> float:
    """Return the improvement of a fit's score over a uniform distribution of positions, comparable between objects."""
    return score(fit) - uniform_score(fit.evidence, fit.uncertainty.autocorrelation)


def uniform_score(evidence: Evidence, autocorrelation: float) -> float:
    """Return the score of objects that may be anywhere in their extent at any time."""
    numbers = _mean_count(evidence) * evidence.observed.shape[1]
    return -_effective_fraction(autocorrelation) * numbers * _uniform_cost(evidence)


def _effective_fraction(autocorrelation: float) -> float:
    """Return the number of independent samples that an autocorrelated sample is worth."""
    return (1 - autocorrelation) / (1 + autocorrelation)


def _mean_count(evidence: Evidence) -> float:
    """Return the mean number of observed samples of an object."""
    return int(torch.isfinite(evidence.observed).sum()) / 2 / len(evidence.tracks)


def _uniform_cost(evidence: Evidence) -> float:
    """Return the cost of an observed number that may be anywhere in the extent."""
    return 2 * math.log(max(evidence.extent, 1e-9) / 4)
