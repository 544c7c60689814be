"""Fits of the candidate kinds of motion, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import torch

from physvision.identification.camera_posterior import CameraFits
from physvision.identification.diagnostics import evaluate_holdout, expected_holdout_error
from physvision.identification.fitting import Fit, fit_model, max_noise, refit
from physvision.identification.kinds import KINDS, MotionKind
from physvision.identification.model import Evidence, MotionModel, UnsuitableError
from physvision.identification.scoring import (
    image_score,
    kind_odds,
    max_relaxation_gain,
    may_be_image,
    reference_autocorrelation,
    score,
    score_gain,
    tracker_bias,
    uniform_score,
)
from physvision.identification.signatures import contradiction, observed_samples, window_contradiction

TRACKING_END, FITTING_END = 0.4, 0.8  # fractions of the work at which tracking and fits are complete
# Kinds whose future a small error of their state may change at will.
_SENSITIVE_KINDS = ("double_pendulum", "collision", "bounce")


def kind_scores(candidates: Candidates) -> dict[str, float]:
    """Return the scores of the kinds for all moving objects together, under one model of the tracker's errors.

    How long the errors last, and how large they are at least, is a property of the tracks. If every kind were scored
    with the autocorrelation of its own residuals, a wrong kind, whose residuals are a smooth function of time, would
    count as if hardly anything had been measured. So the fit that is closest to most of the samples gives it for all.

    A kind that involves some of the objects leaves the others to whatever explains them best: a law of their own, that
    they are a shadow or a reflection of one that it involves, or nothing.

    Args:
        candidates: Fits of all kinds.
    """
    fits = candidates.fits
    settings = candidates.evidence.settings.selection
    autocorrelation = reference_autocorrelation(fits.values(), settings)
    uniform = {
        track.name: uniform_score(replace(candidates.evidence, tracks=[track]), autocorrelation)
        for track in candidates.evidence.tracks
    }
    object_scores = dict(uniform)
    for fit in candidates.object_fits:
        name = fit.evidence.tracks[0].name
        object_scores[name] = max(object_scores[name], score(fit, autocorrelation, tracker_bias(fit)))
    scores = {}
    for kind, fit in fits.items():
        fitted_names = {track.name for track in fit.evidence.tracks}
        scores[kind] = score(fit, autocorrelation, tracker_bias(fit))
        for track in candidates.evidence.tracks:
            if track.name not in fitted_names:
                alone = replace(candidates.evidence, tracks=[track])
                images = [image_score(leader, alone, autocorrelation) for leader in fit.evidence.tracks]
                scores[kind] += max(object_scores[track.name], *images)
    return scores


def is_acceptable(fit: Fit) -> bool:
    """Return whether a fit explains each track within a small part of its extent or a few standard deviations."""
    finite = all(bool(torch.isfinite(part).all()) for part in fit.linearization)
    if not finite or fit.noise >= max_noise(fit.evidence):
        return False
    objects = zip(fit.evidence.tracks, fit.object_noises, strict=True)
    # Of two objects, one that is followed closely must not hide that the other is missed.
    return len(fit.evidence.tracks) == 1 or all(
        noise < max_noise(replace(fit.evidence, tracks=[track])) for track, noise in objects
    )


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
        object_fits: All acceptable fits of kinds of one object, to every object; none where a law explains several.
    """

    evidence: Evidence
    fits: dict[str, Fit]
    rejected: dict[str, str]
    object_fits: list[Fit]


def fit_candidates(
    evidence: Evidence, kinds: Mapping[str, MotionKind], progress: Callable[[str, float], None] = lambda *_: None
) -> Candidates:
    """Fit each kind of motion to every combination of as many objects as it involves.

    If there are several kinds, those whose law the motion contradicts are rejected, however close their fit. Objects
    that meet, or that keep their distance, are no coincidence, though their law may hold for a moment only: where a law
    of several objects explains them, and predicts their last third, none of fewer objects is tried. But a shadow keeps
    its distance too: where one object may be an image of the other, laws of one object are tried beside.

    Args:
        evidence: Tracks of all candidate objects, the best observed one first.
        kinds: Candidate kinds by name.
        progress: Function that is called with the name of each stage and the fraction of the work before it.
    """
    acceptable: list[Fit] = []
    doubtful: list[Fit] = []
    rejected: dict[str, str] = {}
    objects = 0
    for objects in sorted({kind.objects for kind in kinds.values()}, reverse=True):
        fits: list[Fit] = []
        for name in [name for name, kind in kinds.items() if kind.objects == objects]:
            work = FITTING_END - TRACKING_END
            progress(f"fitting {name.replace('_', ' ')}", TRACKING_END + work * len(rejected) / len(kinds))
            kind_fits, reasons = _object_fits(evidence, kinds[name], check_law=len(kinds) > 1)
            fits += kind_fits
            rejected[name] = next(iter(reasons), "")
        acceptable = _acceptable_fits(fits, rejected, check_law=len(kinds) > 1)
        if objects > 1 and len(kinds) > 1:
            acceptable = _predicting_fits(acceptable, rejected)
            checked = [(fit, may_be_image(fit)) for fit in acceptable]
            doubtful += [fit for fit, is_image in checked if is_image]
            acceptable = [fit for fit, is_image in checked if not is_image]
        if acceptable:
            break
    selected = _select_fits(doubtful, rejected) | _select_fits(acceptable, rejected)
    fewer = f"it explains fewer than {objects} of the objects"
    reasons = {name: rejected.get(name, fewer) for name in kinds if name not in selected}
    return Candidates(evidence, selected, reasons, acceptable if objects == 1 else [])


def _acceptable_fits(fits: Sequence[Fit], rejected: dict[str, str], check_law: bool) -> list[Fit]:
    """Return the fits, relaxed, that are close and obey their law, and add to `rejected` why others do not.

    Args:
        fits: Fits of one number of objects.
        rejected: Reasons by the name of the kind.
        check_law: If true, what contradicts the law is not acceptable, however close.
    """
    acceptable = []
    for fit in _relax_contenders(fits):
        if not is_acceptable(fit):
            noise = max(fit.noise, *fit.object_noises)
            rejected[fit.model.kind] = f"its best fit has a residual of {noise:.2g} {fit.evidence.unit}"
        elif check_law and (reason := contradiction(fit)):
            rejected[fit.model.kind] = reason
        else:
            acceptable.append(fit)
    return acceptable


def _predicting_fits(fits: Sequence[Fit], rejected: dict[str, str]) -> list[Fit]:
    """Return the fits that predict their last third, and add to `rejected` by how much others miss it."""
    reasons = [prediction_failure(fit, check_determined=True) for fit in fits]
    predicting = [fit for fit, reason in zip(fits, reasons, strict=True) if reason is None]
    predicting_kinds = {fit.model.kind for fit in predicting}
    for fit, reason in zip(fits, reasons, strict=True):
        if reason is not None and fit.model.kind not in predicting_kinds:
            rejected[fit.model.kind] = reason
    return predicting


def _select_fits(fits: Sequence[Fit], rejected: dict[str, str]) -> dict[str, Fit]:
    """Return the fit of each kind to the objects that are compared, and add why others have none to `rejected`.

    Laws of one object are compared for the object that one of them explains best; a hand, for example, moves beside it,
    by a law or by none.
    """
    if not fits:
        return {}
    selected: dict[str, Fit] = {}
    best_tracks = max(fits, key=score_gain).evidence.tracks
    for name in dict.fromkeys(fit.model.kind for fit in fits):
        kind_fits = [fit for fit in fits if fit.model.kind == name]
        compared = [
            fit for fit in kind_fits if len(best_tracks) > 1 or fit.evidence.tracks[0].name == best_tracks[0].name
        ]
        if compared:
            selected[name] = _select_objects(compared)
        else:
            rejected[name] = f"it does not explain {best_tracks[0].name}"
    return selected


def _relax_contenders(fits: Sequence[Fit]) -> list[Fit]:
    """Relax all fits but those that no relaxation could bring near the best one of the same objects.

    A fit cannot come closer to the tracks than their errors, so that its score has an upper bound.
    """
    groups: dict[tuple[str, ...], list[Fit]] = {}
    for fit in fits:
        groups.setdefault(tuple(track.name for track in fit.evidence.tracks), []).append(fit)
    relaxed: dict[int, Fit] = {}
    for group in groups.values():
        settings = group[0].evidence.settings.selection
        autocorrelation = reference_autocorrelation(group, settings)
        max_gap, best_score = -2 * math.log(settings.min_successor_odds), -math.inf
        scores = [score(fit, autocorrelation, tracker_bias(fit)) for fit in group]
        for index in sorted(range(len(group)), key=lambda index: -scores[index]):
            fit, fit_score = group[index], scores[index]
            if fit_score + max_relaxation_gain(fit, autocorrelation) >= best_score - max_gap:
                fit = _relax(fit)
                fit_score = score(fit, autocorrelation, tracker_bias(fit))
            relaxed[id(group[index])], best_score = fit, max(best_score, fit_score)
    return [relaxed[id(fit)] for fit in fits]


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
    is_sensitive = fit.model.kind in _SENSITIVE_KINDS
    max_expected = settings.max_sensitive_holdout if is_sensitive else settings.max_expected_holdout
    if check_determined and not expected < max_expected * extent:
        return f"{miss}, and the first two thirds do not determine it"
    bias = tracker_bias(fit)
    if not is_sensitive:
        expected = expected_holdout_error(fit, max_noise=math.hypot(observed_samples(fit)[1], bias))
    expected = math.hypot(expected, 2**0.5 * bias)
    if holdout.error < settings.max_holdout_ratio * expected:
        return None
    return f"{miss}, where noise and sensitivity explain {expected:.2g} {unit}"


def _object_fits(evidence: Evidence, kind: MotionKind, check_law: bool) -> tuple[list[Fit], list[str]]:
    """Return a kind's fits to all combinations of objects, none relaxed, and reasons for rejection of the others."""
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
        if check_law and (reason := contradiction(fit)):
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
        length, fit_gain = fit.model.end - fit.model.first, score_gain(fit)
        if length > settings.length_lead * max_length or (
            settings.length_lead * length > max_length and fit_gain > settings.gain_lead * max_gain
        ):
            selected, max_length, max_gain = fit, length, fit_gain
    return selected


def best_fit(evidence: Evidence, models: Sequence[MotionModel]) -> Fit:
    """Return the fit with the best score among the models, before any is relaxed.

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
    autocorrelation = reference_autocorrelation(fits, evidence.settings.selection)
    return max(fits, key=lambda fit: score(fit, autocorrelation, tracker_bias(fit)))


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
            # People measure from close by, and from one side.
            view = replace(evidence.view, has_camera=True, arbitrary=True)
            relaxations.append((replace(evidence, view=view), fit.model))
        refits = []
        if not evidence.view.arbitrary and fit.uncertainty.autocorrelation > threshold and fit.other_camera is not None:
            refits.append(fit.other_camera)
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
    rival = fit.other_camera
    if rival is None:
        return CameraFits((fit,), (1.0,))
    arbitrary = rival if rival.evidence.view.arbitrary else fit
    autocorrelation = min(arbitrary.uncertainty.autocorrelation, fit.evidence.settings.selection.max_autocorrelation)
    bias = tracker_bias(fit)
    log_odds = (score(rival, autocorrelation, bias) - score(fit, autocorrelation, bias)) / 2
    probability = 1 / (1 + math.exp(-min(max(log_odds, -700.0), 700.0)))
    return CameraFits((fit, rival), (1 - probability, probability))
