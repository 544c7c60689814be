"""Signatures that a law forces on a track; a motion without them is of another kind, however close its fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from physvision.identification.fitting import Fit
from physvision.identification.impacts import find_bounces
from physvision.identification.initial_guesses import MAD_TO_STD, fit_polynomial, robust_lstsq
from physvision.identification.model import Evidence, MotionModel
from physvision.identification.scoring import path_score

_MAX_DEGREE = 5  # of the polynomials that stand for smooth motions
_IMPACT_PARAMETERS = 7  # of one object: its position at the impact, its velocities before and after, and what slows it


def contradiction(fit: Fit) -> str | None:
    """Return how the motion contradicts the law of a fitted kind; None if it does not."""
    reasons = (check(fit) for check in _CHECKS.get(fit.model.kind, ()))
    return next((reason for reason in reasons if reason), None) or window_contradiction(fit.evidence, fit.model)


def window_contradiction(evidence: Evidence, model: MotionModel) -> str | None:
    """Return how the motion contradicts a model's law in its stretch of the clip, whatever its fit; None if not."""
    if model.kind == "collision":
        return _does_not_approach(evidence, model) or _curves(evidence, model)
    return _explains_little(evidence, model) if model.kind in _PARTIAL_KINDS else None


def _explains_little(evidence: Evidence, model: MotionModel) -> str | None:
    """Check that a law that holds for a stretch of the track only explains a good part of the object's path."""
    fraction = explained_path(evidence, model)
    if fraction >= evidence.settings.signatures.min_explained_path:
        return None
    return f"it explains only {100 * fraction:.0f} % of the object's path"


def explained_path(evidence: Evidence, model: MotionModel) -> float:
    """Return the part of an object's path that lies in the stretch for which the model holds."""
    observed = evidence.observed.numpy()
    valid = np.flatnonzero(np.isfinite(observed).all(1))
    # Of every few samples one, so that noise does not lengthen the path.
    corners = valid[:: max(1, len(valid) // evidence.settings.signatures.path_corners)]
    steps = np.linalg.norm(np.diff(observed[corners], axis=0), axis=1)
    inside = (corners[1:] <= model.end) & (corners[:-1] >= model.first - 1)
    return float(steps[inside].sum() / max(steps.sum(), 1e-12))


def _sags(fit: Fit) -> str | None:
    """Check that a spring's mass does not swing: a pendulum's height has twice the frequency of its swing."""
    settings = fit.evidence.settings.signatures
    positions, noise = observed_samples(fit)
    heading = float(fit.values["heading"])
    along, across = np.array([np.cos(heading), np.sin(heading)]), np.array([-np.sin(heading), np.cos(heading)])
    distance, offset = (positions - positions.mean(0)) @ along, (positions - positions.mean(0)) @ across
    line = np.vander(distance, 2)
    bow = np.vander(distance, 3)
    line_residual, bow_residual = (
        offset - basis @ np.linalg.lstsq(basis, offset, rcond=None)[0] for basis in (line, bow)
    )
    sag = float(np.sqrt(max(line_residual.var() - bow_residual.var(), 0.0)))
    if sag < settings.min_sag_ratio * noise or bow_residual.var() > settings.max_unexplained_sag * line_residual.var():
        return None
    return "across its line it moves at twice the frequency of the oscillation, as a pendulum does"


def _hardly_swings(fit: Fit) -> str | None:
    """Check that a good part of an oscillation is observed."""
    settings = fit.evidence.settings.signatures
    period = 2 * np.pi / float(fit.values["restoring_coefficient"].clamp(min=1e-12).sqrt())
    if float(fit.problem.times[-1]) >= settings.min_periods[fit.model.kind] * period:
        return None
    return f"only {float(fit.problem.times[-1]) / period:.2g} of its period of {period:.3g} s is observed"


def _turns_suddenly(fit: Fit) -> str | None:
    """Check that a smooth law's object does not turn round suddenly, again and again, where its fit does not."""
    evidence, settings = fit.evidence, fit.evidence.settings
    observed, fitted = evidence.observed.numpy(), fit.positions(evidence.times).numpy()
    valid = np.isfinite(observed).all(1) & np.isfinite(fitted).all(1)
    times, noise = evidence.times.numpy()[valid], evidence.noise(np.flatnonzero(valid))
    if len(times) < settings.bounce.min_samples:
        return None
    # Few frames a swing make smooth turns look sudden as well, but then in the fit too.
    counts = [len(find_bounces(times, path[valid, 1], noise, settings.bounce)) for path in (observed, fitted)]
    if counts[0] - counts[1] < settings.signatures.max_impacts:
        return None
    return f"it turns round suddenly {counts[0]} times"


def _hardly_rebounds(fit: Fit) -> str | None:
    """Check that what bounces rises again by more than noise and settling; what only lands has shown no restitution."""
    evidence, settings = fit.evidence, fit.evidence.settings.signatures
    _, noise = observed_samples(fit)
    heights = fit.positions(evidence.times)[fit.model.first : fit.model.end, 1].numpy()
    heights = heights[np.isfinite(heights)]
    rises = np.diff(heights) < 0  # downwards is positive
    lowest = np.flatnonzero(~rises[:-1] & rises[1:]) + 1
    if not len(lowest):  # down a steep slope it does not rise
        return None
    rebound = max(float(heights[index] - heights[index:].min()) for index in lowest)
    limits = settings.min_bow_ratio * noise, settings.min_bow_size * (evidence.tracks[0].radius or 0.0)
    if rebound > max(*limits, settings.min_rebound * float(np.ptp(heights))):
        return None
    return f"it lands, and rises by no more than {rebound:.2g} {evidence.unit} again"


def _shows_no_impact(fit: Fit) -> str | None:
    """Check that the motion of both objects changes suddenly, where a smooth one of their own explains it worse.

    Of what passes a hand, or what is struck by something else, only one changes its motion, and of two that pass each
    other none does.
    """
    settings = fit.evidence.settings.selection
    autocorrelation = min(fit.uncertainty.autocorrelation, settings.max_autocorrelation)
    times = fit.problem.times.numpy()
    elapsed = 2 * times / times[-1] - 1
    pairs = zip(fit.evidence.tracks, np.split(fit.errors, 2, axis=1), strict=True)
    for number, (track, errors) in enumerate(pairs):
        alone = replace(fit.evidence, tracks=[track.window(fit.model.first, fit.model.end)])
        observed = np.isfinite(errors).all(1)
        path = fit.problem.observed.numpy()[observed, 2 * number : 2 * number + 2]
        smooth = []
        for degree in range(1, _MAX_DEGREE + 1):
            basis = np.vander(elapsed[observed], degree + 1)
            polynomial = basis @ robust_lstsq(basis, path)
            smooth.append(path_score(path - polynomial, 2 * (degree + 1), alone, autocorrelation))
        if path_score(errors, _IMPACT_PARAMETERS, alone, autocorrelation) - max(smooth) < settings.tie_margin:
            return f"the motion of {track.name} changes as smoothly as without an impact"
    return None


def _does_not_approach(evidence: Evidence, model: MotionModel) -> str | None:
    """Check that two objects that collide approach each other, and are as far apart at the impact as they are large."""
    settings, tracks = evidence.settings.signatures, evidence.tracks
    observed = evidence.observed.numpy()[model.first : model.end]
    distance = np.linalg.norm(observed[:, 2:] - observed[:, :2], axis=1)
    distance = distance[np.isfinite(distance)]
    closest = float(distance.min())
    if distance[0] - closest < settings.min_approach * max(float(np.ptp(distance)), 1e-12):
        return "the objects do not approach each other"
    if any(track.radius is None for track in tracks):
        return None
    size = sum(track.radius or 0.0 for track in tracks)
    if closest > settings.max_contact_ratio * size:
        return f"the objects stay {closest:.0f} {evidence.unit} apart, which is more than their size"
    return None


def _curves(evidence: Evidence, model: MotionModel) -> str | None:
    """Check that two objects move straight before and after they collide, as on a level table; a throw does not."""
    settings, tracks, window = evidence.settings.signatures, evidence.tracks, slice(model.first, model.end)
    times, observed = evidence.times.numpy()[window], evidence.observed.numpy()[window]
    distance = np.linalg.norm(observed[:, 2:] - observed[:, :2], axis=1)
    contact = int(np.nanargmin(distance))
    noise = evidence.noise(np.flatnonzero(np.isfinite(distance)) + model.first)
    for number, track in enumerate(tracks):
        min_bow = max(settings.min_bow_ratio * noise, settings.min_bow_size * (track.radius or 0.0))
        for side in (slice(max(contact - 1, 0)), slice(contact + 2, None)):
            path = observed[side, 2 * number : 2 * number + 2]
            valid = np.isfinite(path).all(1)
            if valid.sum() < settings.min_bow_samples:
                continue
            elapsed = times[side][valid] - times[side][valid][0]
            _, velocity, bend = fit_polynomial(elapsed, path[valid], 2)
            chord = velocity * elapsed[-1] + bend * elapsed[-1] ** 2
            length = max(float(np.linalg.norm(chord)), 1e-12)
            sideways = float(bend[0] * chord[1] - bend[1] * chord[0]) / length
            bow = abs(sideways) * elapsed[-1] ** 2 / 4
            if bow > max(min_bow, settings.max_bow * length):
                return f"the path of {track.name} is curved, which no impact explains"
    return None


def observed_samples(fit: Fit) -> tuple[Float[np.ndarray, "samples numbers"], float]:
    """Return the observed positions in the stretch of the fit, and their noise about it, pixels."""
    observed = fit.evidence.observed.numpy()[fit.model.first : fit.model.end]
    valid = np.isfinite(observed).all(1)
    noise = fit.evidence.noise(np.flatnonzero(valid) + fit.model.first)
    steps = np.diff(observed[valid], n=3, axis=0)
    # Third differences of white noise are √20 times as large.
    scatter = MAD_TO_STD * float(np.median(np.abs(steps))) / 20**0.5 if len(steps) else 0.0
    return fit.evidence.view.rectify(observed[valid]), max(noise, scatter)


_PARTIAL_KINDS = ("projectile", "fall", "slide", "roll")
_CHECKS: Mapping[str, tuple[Callable[[Fit], str | None], ...]] = {
    "spring": (_turns_suddenly, _hardly_swings, _sags),
    "pendulum": (_turns_suddenly, _hardly_swings),
    "circular": (_turns_suddenly,),
    "bounce": (_hardly_rebounds,),
    "collision": (_shows_no_impact,),
}
