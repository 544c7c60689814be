"""Fits of the candidate kinds of motion to combinations of tracked objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from physvision.identification.fitting import Fit, fit_model, refit
from physvision.identification.kinds import MotionKind
from physvision.identification.model import Evidence, MotionModel, UnsuitableError
from physvision.identification.model_selection import gain, is_acceptable, score


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
        fit, reason = _best_choice(evidence, kind)
        if fit is not None:
            fits[name] = fit
        else:
            rejected[name] = reason
    return fits, rejected


def _best_choice(evidence: Evidence, kind: MotionKind) -> tuple[Fit | None, str]:
    """Return a kind's fit to the objects that it explains for the longest time, or the first reason for rejection.

    Of two combinations that are explained for about as long, one with a far larger gain is preferred: a spring, for
    example, moves in the same way as the mass attached to it, but its center is ill-defined.
    """
    settings = evidence.settings.selection
    choices = list(combinations(evidence.tracks, kind.objects))
    reasons = [] if choices else [f"{len(evidence.tracks)} object moves, {kind.objects} are needed"]
    selected: Fit | None = None
    max_length, max_gain = 0, 0.0
    for tracks in choices:
        choice = replace(evidence, tracks=tracks)
        try:
            fit = best_fit(choice, kind.candidate_models(choice))
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
    return _relaxed(max(fits, key=score))


def _relaxed(fit: Fit) -> Fit:
    """Relax a fit's model as long as that improves the score.

    Tracks from a table are modeled without perspective and rolling shutter at first. Both are added once the
    autocorrelation of the residuals suggests that the tracks were measured in a video.
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
        gains = [
            score(relaxed, relaxed.uncertainty.autocorrelation) - score(fit, relaxed.uncertainty.autocorrelation)
            for relaxed in refits
        ]
        if max(gains, default=0.0) <= 0:
            return fit
        fit = refits[gains.index(max(gains))]
