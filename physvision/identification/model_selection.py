"""Comparison of fits by Bayes' information criterion."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch

from physvision.estimation.gauss_newton import residual_scale
from physvision.estimation.settings import DEFAULT_SETTINGS
from physvision.identification.fitting import Fit
from physvision.identification.kinds import KINDS
from physvision.identification.model import Evidence


def score(fit: Fit, autocorrelation: float | None = None) -> float:
    """Return Bayes' information criterion of a fit, larger is better.

    A sample that a model leaves out counts as if the object could be anywhere.

    Args:
        fit: Fit to score.
        autocorrelation: Autocorrelation of the tracks' errors; that of the fit's residuals if not given.
    """
    residuals = fit.linearization[0]
    settings = fit.evidence.settings.selection
    scale = residual_scale(residuals).clamp(min=settings.min_residual_scale)
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
    complexity = len(fit.z) * math.log(max(count, 2))
    return _effective_fraction(autocorrelation) * (explained - unexplained) - prior_cost - complexity


def gain(fit: Fit) -> float:
    """Return the improvement of a fit's score over a uniform distribution of positions, comparable between objects."""
    uniform = -_mean_count(fit.evidence) * fit.problem.observed.shape[1] * _uniform_cost(fit.evidence)
    return score(fit) - _effective_fraction(fit.uncertainty.autocorrelation) * uniform


def _effective_fraction(autocorrelation: float) -> float:
    """Return the number of independent samples that an autocorrelated sample is worth."""
    return (1 - autocorrelation) / (1 + autocorrelation)


def _mean_count(evidence: Evidence) -> float:
    """Return the mean number of observed samples of an object."""
    return int(torch.isfinite(evidence.observed).sum()) / 2 / len(evidence.tracks)


def _uniform_cost(evidence: Evidence) -> float:
    """Return the cost of an observed number that may be anywhere in the extent."""
    return 2 * math.log(max(evidence.extent, 1e-9) / 4)


def is_acceptable(fit: Fit) -> bool:
    """Return whether a fit explains the tracks within a small part of their extent or a few standard deviations."""
    settings, tracks = fit.evidence.settings.selection, fit.evidence.tracks
    sigma = max(float(np.median(track.sigma[track.observed])) for track in tracks)
    finite = all(bool(torch.isfinite(part).all()) for part in fit.linearization)
    limit = max(settings.max_error * fit.evidence.extent, settings.max_error_ratio * sigma)
    return finite and fit.noise < limit


def indistinguishable_kinds(scores: Mapping[str, float], tie_margin: float) -> list[str]:
    """Return the best kind first, then those within the margin, without generalizations of another one in the list."""
    best_score = max(scores.values())
    names = sorted(
        (name for name, value in scores.items() if best_score - value < tie_margin), key=lambda name: -scores[name]
    )
    general = {kind for name in names if name in KINDS for kind in KINDS[name].special_case_of}
    return [name for name in names if name not in general]
