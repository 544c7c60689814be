"""Fits of the candidate kinds of motion, and their comparison by the Bayesian information criterion."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import torch

from physvision.estimation.gauss_newton import residual_scale
from physvision.estimation.settings import DEFAULT_SETTINGS
from physvision.identification.camera_posterior import (
    CameraFits,
    arbitrary_camera,
    arbitrary_camera_cost,
    careful_camera,
)
from physvision.identification.diagnostics import evaluate_holdout, expected_holdout_error
from physvision.identification.fitting import Fit, fit_model, max_noise, refit
from physvision.identification.kinds import KINDS, MotionKind
from physvision.identification.model import Evidence, MotionModel, UnsuitableError
from physvision.identification.settings import SelectionSettings
from physvision.identification.signatures import contradiction, window_contradiction

TRACKING_END, FITTING_END = 0.4, 0.8  # fractions of the work at which tracking and fits are complete
# Kinds whose future a small error of their state may change at will.
_SENSITIVE_KINDS = ("double_pendulum", "collision", "bounce")


def score(fit: Fit, autocorrelation: float | None = None, bias: float = 0.0) -> float:
    """Return the Bayesian information criterion (BIC) of a fit, signed so that larger is better.

    A sample that a model leaves out counts as if the object could be anywhere.

    Args:
        fit: Fit to score.
        autocorrelation: Autocorrelation of the tracks' errors; that of the fit's residuals if not given.
        bias: Standard deviation of an error of the tracks that lasts, pixels.
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


def kind_scores(candidates: Candidates) -> dict[str, float]:
    """Return the scores of the kinds for all moving objects together, under one model of the tracker's errors.

    How long the errors last, and how large they are at least, is a property of the tracks. If every kind were scored
    with the autocorrelation of its own residuals, a wrong kind, whose residuals are a smooth function of time, would
    count as if hardly anything had been measured. So the fit that is closest to most of the samples gives it for all.

    A kind that involves some of the objects leaves the others to whatever explains them best, or to nothing.

    Args:
        candidates: Fits of all kinds.
    """
    fits = candidates.fits
    settings = candidates.evidence.settings.selection
    autocorrelation = _reference_autocorrelation(fits.values(), settings)
    uniform = {
        track.name: _uniform_score(replace(candidates.evidence, tracks=[track]), autocorrelation)
        for track in candidates.evidence.tracks
    }
    object_scores = dict(uniform)
    for fit in candidates.object_fits:
        name = fit.evidence.tracks[0].name
        object_scores[name] = max(object_scores[name], score(fit, autocorrelation, tracker_bias(fit)))
    scores = {}
    for kind, fit in fits.items():
        involved = {track.name for track in fit.evidence.tracks}
        rest = sum(value for name, value in object_scores.items() if name not in involved)
        scores[kind] = score(fit, autocorrelation, tracker_bias(fit)) + rest
    return scores


def _reference_autocorrelation(fits: Collection[Fit], settings: SelectionSettings) -> float:
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
    """Return the standard deviation of a tracker's errors that last, pixels.

    Shadows, strings, blur and the background shift the center of a detected object by a fraction of its size.
    """
    radii = [track.radius or 0.0 for track in fit.evidence.tracks]
    return fit.evidence.settings.selection.bias_ratio * max(radii)


def gain(fit: Fit) -> float:
    """Return the improvement of a fit's score over a uniform distribution of positions, comparable between objects."""
    return score(fit) - _uniform_score(fit.evidence, fit.uncertainty.autocorrelation)


def _uniform_score(evidence: Evidence, autocorrelation: float) -> float:
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


def is_acceptable(fit: Fit) -> bool:
    """Return whether a fit explains the tracks within a small part of their extent or a few standard deviations."""
    finite = all(bool(torch.isfinite(part).all()) for part in fit.linearization)
    return finite and fit.noise < max_noise(fit.evidence)


def indistinguishable_kinds(scores: Mapping[str, float], tie_margin: float) -> list[str]:
    """Return the best kind first, then those within the margin, without generalizations of another one in the list."""
    best_score = max(scores.values())
    names = sorted((name for name in scores if best_score - scores[name] < tie_margin), key=lambda name: -scores[name])
    general = {kind for name in names if name in KINDS for kind in KINDS[name].special_case_of}
    return [name for name in names if name not in general]


@dataclass(frozen=True)
class Candidates:
    """Fits of the candidate kinds to the moving objects.

    Attributes:
        evidence: Tracks of all candidate objects, the best observed one first.
        fits: Best acceptable fit of each kind.
        rejected: Reason for the rejection of each kind without one.
        object_fits: All acceptable fits of kinds of one object, to every object.
    """

    evidence: Evidence
    fits: dict[str, Fit]
    rejected: dict[str, str]
    object_fits: list[Fit]


def fit_candidates(
    evidence: Evidence, kinds: Mapping[str, MotionKind], progress: Callable[[str, float], None] = lambda *_: None
) -> Candidates:
    """Fit each kind of motion to every combination of as many objects as it involves.

    If there are several kinds, those whose law the motion contradicts are rejected, however close their fit.

    Args:
        evidence: Tracks of all candidate objects, the best observed one first.
        kinds: Candidate kinds by name.
        progress: Function that is called with the name of each stage and the fraction of the work before it.
    """
    candidates = Candidates(evidence, {}, {}, [])
    for number, (name, kind) in enumerate(kinds.items()):
        progress(f"fitting {name.replace('_', ' ')}", TRACKING_END + (FITTING_END - TRACKING_END) * number / len(kinds))
        fits, reasons = _object_fits(evidence, kind, check_law=len(kinds) > 1)
        if fits:
            candidates.fits[name] = _select_objects(fits)
        else:
            candidates.rejected[name] = next(iter(reasons), "")
        if kind.objects == 1:
            candidates.object_fits.extend(fits)
    # Objects that meet, or that keep their distance, are no coincidence, though their law may hold for a moment only.
    objects = max((len(fit.evidence.tracks) for fit in candidates.fits.values()), default=0)
    for name in [name for name, fit in candidates.fits.items() if len(fit.evidence.tracks) < objects]:
        candidates.rejected[name] = f"it explains fewer than {objects} of the objects"
        del candidates.fits[name]
    return candidates


def reject_unpredicted(candidates: Candidates) -> Candidates:
    """Reject kinds that do not predict their last third, from the best one on, until one does.

    If there are several kinds and none that is nearly as likely as the best one predicts it, all are rejected: the
    motion is none of those that are known. A single kind, which was given, is rejected for a gross miss only.

    Args:
        candidates: Fits of all kinds.
    """
    if not candidates.fits:
        return candidates
    settings = candidates.evidence.settings.selection
    if len(candidates.fits) + len(candidates.rejected) < 2:
        ((kind, fit),) = candidates.fits.items()
        holdout = evaluate_holdout(fit)
        is_gross = holdout is not None and holdout.relative_error > settings.max_single_miss
        if not is_gross or (reason := prediction_failure(fit, check_determined=False)) is None:
            return candidates
        return replace(candidates, fits={}, rejected={kind: reason})
    rejected = dict(candidates.rejected)
    for kind, odds in kind_odds(kind_scores(candidates)).items():
        if odds < settings.min_successor_odds:
            reason = "it is far less likely than one that is rejected"
        else:
            reason = prediction_failure(candidates.fits[kind], check_determined=True)
        if reason is None:
            fits = {name: fit for name, fit in candidates.fits.items() if name not in rejected}
            return replace(candidates, fits=fits, rejected=rejected)
        rejected = {kind: reason, **rejected}
    return replace(candidates, fits={}, rejected=rejected)


def prediction_failure(fit: Fit, check_determined: bool) -> str | None:
    """Return by how much a fit misses its last third, where noise, bias and sensitivity do not explain it.

    Args:
        fit: Fit of the whole motion.
        check_determined: If true, a miss is also returned where the first two thirds do not determine the last.
    """
    holdout, settings = evaluate_holdout(fit), fit.evidence.settings.selection
    if holdout is None or holdout.relative_error < settings.min_holdout_miss:
        return None
    expected, extent, unit = expected_holdout_error(fit), fit.evidence.extent, fit.evidence.unit
    miss = f"its last third, predicted from the first two, is missed by {holdout.error:.2g} {unit}"
    if (
        check_determined
        and fit.model.kind not in _SENSITIVE_KINDS
        and expected > settings.max_expected_holdout * extent
    ):
        return f"{miss}, and the first two thirds do not determine it"
    expected = math.hypot(expected, 2**0.5 * tracker_bias(fit))
    if holdout.error < settings.max_holdout_ratio * expected:
        return None
    return f"{miss}, where noise and sensitivity explain {expected:.2g} {unit}"


def _object_fits(evidence: Evidence, kind: MotionKind, check_law: bool) -> tuple[list[Fit], list[str]]:
    """Return a kind's acceptable fits to all combinations of objects, and the reasons for rejection of the others."""
    object_sets = list(combinations(evidence.tracks, kind.objects))
    fits, reasons = [], [] if object_sets else [f"{len(evidence.tracks)} object moves, {kind.objects} are needed"]
    for tracks in object_sets:
        selection = replace(evidence, tracks=tracks)
        try:
            models = kind.candidate_models(selection)
            contradictions = [window_contradiction(selection, model) for model in models] if check_law else []
            if contradictions and all(contradictions):
                raise UnsuitableError(contradictions[0] or "")
            fit = best_fit(selection, models)
        except UnsuitableError as error:
            reasons.append(str(error))
            continue
        if not is_acceptable(fit):
            reasons.append(f"its best fit has a residual of {fit.noise:.2g} {evidence.unit}")
        elif check_law and (reason := contradiction(fit)):
            reasons.append(reason)
        else:
            fits.append(fit)
    return fits, reasons


def _select_objects(fits: Sequence[Fit]) -> Fit:
    """Return the fit to the objects that a kind explains for the longest time.

    Of two combinations that are explained for about as long, one with a far larger gain is preferred: a spring, for
    example, moves in the same way as the mass attached to it, but its center is ill-defined.
    """
    selected, max_length, max_gain = fits[0], 0, 0.0
    for fit in fits:
        settings = fit.evidence.settings.selection
        length, fit_gain = fit.model.end - fit.model.first, gain(fit)
        if length > settings.length_lead * max_length or (
            settings.length_lead * length > max_length and fit_gain > settings.gain_lead * max_gain
        ):
            selected, max_length, max_gain = fit, length, fit_gain
    return selected


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
    autocorrelation = _reference_autocorrelation(fits, evidence.settings.selection)
    return _relax(max(fits, key=lambda fit: score(fit, autocorrelation, tracker_bias(fit))))


def _relax(fit: Fit) -> Fit:
    """Replace a fit by that of the relaxation with the largest gain of the score, until none gains any.

    Relaxations are those of the model and, for tracks from a table, the same model with perspective and rolling shutter
    once the autocorrelation of the residuals suggests that the tracks were measured in a video; for tracks in a
    picture, the same model with an arbitrary camera.
    """
    while True:
        evidence = fit.evidence
        relaxations = [(evidence, model) for model in fit.model.relaxations]
        threshold = evidence.settings.selection.min_autocorrelation
        if not evidence.view.has_camera and fit.uncertainty.autocorrelation > threshold:
            relaxations.append((replace(evidence, view=evidence.view.with_camera()), fit.model))
        if evidence.view.has_picture and not evidence.view.arbitrary and fit.uncertainty.autocorrelation > threshold:
            relaxations.append((replace(evidence, view=replace(evidence.view, arbitrary=True)), fit.model))
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


def compare_cameras(fit: Fit) -> CameraFits:
    """Fit a model with the other prior of the camera too, and return the probabilities of both."""
    rival = careful_camera(fit) if fit.evidence.view.arbitrary else arbitrary_camera(fit)
    if rival is None:
        return CameraFits((fit,), (1.0,))
    arbitrary = rival if rival.evidence.view.arbitrary else fit
    autocorrelation = min(arbitrary.uncertainty.autocorrelation, fit.evidence.settings.selection.max_autocorrelation)
    bias = tracker_bias(fit)
    log_odds = (score(rival, autocorrelation, bias) - score(fit, autocorrelation, bias)) / 2
    probability = 1 / (1 + math.exp(-min(max(log_odds, -700.0), 700.0)))
    return CameraFits((fit, rival), (1 - probability, probability))
