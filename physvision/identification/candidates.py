"""Fits of the candidate kinds of motion, and their comparison by Bayes' information criterion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch

from physvision.estimation.gauss_newton import residual_scale
from physvision.estimation.settings import DEFAULT_SETTINGS
from physvision.identification.fitting import Fit, fit_model, refit
from physvision.identification.kinds import KINDS, MotionKind
from physvision.identification.model import Evidence, MotionModel, UnsuitableError


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
    names = sorted((name for name in scores if best_score - scores[name] < tie_margin), key=lambda name: -scores[name])
    general = {kind for name in names if name in KINDS for kind in KINDS[name].special_case_of}
    return [name for name in names if name not in general]


def fit_candidates(evidence: Evidence, kinds: Mapping[str, MotionKind]) -> tuple[dict[str, Fit], dict[str, str]]:
    """Fit each kind of motion to every combination of as many objects as it involves.

    Args:
        evidence: Tracks of all candidate objects, the best observed one first.
        kinds: Candidate kinds by name.

    Returns:
        The best acceptable fit of each kind, and the reason for rejection of each kind without one.
    """
    fits: dict[str, Fit] = {}
    rejected: dict[str, str] = {}
    for name, kind in kinds.items():
        fit, reason = _best_object_fit(evidence, kind)
        if fit is not None:
            fits[name] = fit
        else:
            rejected[name] = reason
    return fits, rejected


def _best_object_fit(evidence: Evidence, kind: MotionKind) -> tuple[Fit | None, str]:
    """Return a kind's fit to the objects that it explains for the longest time, or the first reason for rejection.

    Of two combinations that are explained for about as long, one with a far larger gain is preferred: a spring, for
    example, moves in the same way as the mass attached to it, but its center is ill-defined.
    """
    settings = evidence.settings.selection
    object_sets = list(combinations(evidence.tracks, kind.objects))
    reasons = [] if object_sets else [f"{len(evidence.tracks)} object moves, {kind.objects} are needed"]
    selected: Fit | None = None
    max_length, max_gain = 0, 0.0
    for tracks in object_sets:
        selection = replace(evidence, tracks=tracks)
        try:
            fit = best_fit(selection, kind.candidate_models(selection))
        except UnsuitableError as error:
            reasons.append(str(error))
            continue
        length, fit_gain = fit.model.end - fit.model.first, gain(fit)
        if not is_acceptable(fit):
            reasons.append(f"its best fit has a residual of {fit.noise:.2g} {evidence.unit}")
        elif length > settings.length_lead * max_length or (
            settings.length_lead * length > max_length and fit_gain > settings.gain_lead * max_gain
        ):
            selected, max_length, max_gain = fit, length, fit_gain
    return selected, next(iter(reasons), "")


def best_fit(evidence: Evidence, models: Sequence[MotionModel]) -> Fit:
    """Return the fit with the best score among the models and their relaxations.

    Raises:
        UnsuitableError: The search of every model has diverged.
    """
    fits, reason = [], UnsuitableError("it has no model")
    for model in models:
        try:
            fits.append(fit_model(evidence, model))
        except UnsuitableError as error:
            reason = error
    if not fits:
        raise reason
    return _relax(max(fits, key=score))


def _relax(fit: Fit) -> Fit:
    """Replace a fit by that of the relaxation with the largest gain of the score, until none gains any.

    Relaxations are those of the model and, for tracks from a table, the same model with perspective and rolling shutter
    once the autocorrelation of the residuals suggests that the tracks were measured in a video.
    """
    while True:
        evidence = fit.evidence
        relaxations = [(evidence, model) for model in fit.model.relaxations]
        threshold = evidence.settings.selection.min_autocorrelation
        if not evidence.view.filmed and fit.uncertainty.autocorrelation > threshold:
            relaxations.append((replace(evidence, view=evidence.view.as_filmed()), fit.model))
        refits = []
        for relaxed_evidence, model in relaxations:
            try:
                refits.append(refit(relaxed_evidence, model, fit))
            except UnsuitableError:
                continue
        # Both fits are scored with the autocorrelation of the relaxed one, closer to that of the tracks' errors.
        pairs = [(candidate, candidate.uncertainty.autocorrelation) for candidate in refits]
        gains = [score(candidate, correlation) - score(fit, correlation) for candidate, correlation in pairs]
        if max(gains, default=0.0) <= 0:
            return fit
        fit = refits[gains.index(max(gains))]
