"""Which kind of motion explains tracks best, and which others predict the same."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch

from physvision.estimation.gauss_newton import residual_scale
from physvision.identification.fitting import Fit
from physvision.identification.kinds import SIMPLER
from physvision.identification.model import Case

_SAME = 6.0  # difference of Bayes' criterion below which nobody should prefer one
_COARSE = 0.02  # of the extent: a fit that misses by more explains nothing


def score(case: Case, fit: Fit, correlation: float | None = None) -> float:
    """Bayes' criterion, larger is better, a sample that a model leaves out counted as if it were anywhere.

    Args:
        case: the tracks.
        fit: what is judged.
        correlation: of neighbouring errors of the tracks; that of what the fit leaves if not given.
    """
    missed, _ = fit.linear
    scale = residual_scale(missed).clamp(min=0.3)
    there = torch.isfinite(fit.problem.observed).any(1)
    numbers, count = fit.problem.observed.shape[1], int(there.sum())
    share = missed[0].square().mean(1) / (2.385 * scale) ** 2
    explained = -numbers * float((torch.log1p(share) * 2.385**2 + 2 * torch.log(scale))[there].sum())
    sigma = 1 / torch.as_tensor(fit.problem.weight)
    # Where one of two things was not seen its weight is zero.
    counted = torch.log(sigma.expand(len(there), numbers)[there])
    explained -= 2 * float(counted[torch.isfinite(counted)].sum())
    lost = (_seen(case) - count) * numbers * _anywhere(case)
    correlation = fit.known.autocorrelation if correlation is None else correlation
    known = float(fit.problem.unknowns.prior_residuals(fit.z[None])[0].square().sum())
    return _told_apart(correlation) * (explained - lost) - known - len(fit.z) * math.log(max(count, 2))


def gain(case: Case, fit: Fit) -> float:
    """By how much a fit explains more than that things are anywhere, which can be compared between different things."""
    nothing = -_seen(case) * fit.problem.observed.shape[1] * _anywhere(case)
    return score(case, fit) - _told_apart(fit.known.autocorrelation) * nothing


def _told_apart(correlation: float) -> float:
    """For how many samples each counts whose errors are like those of its neighbours."""
    return (1 - correlation) / (1 + correlation)


def _seen(case: Case) -> float:
    """How often each thing was seen."""
    return sum(int(torch.isfinite(case.seen(k)).all(1).sum()) for k in range(len(case.tracks))) / len(case.tracks)


def _anywhere(case: Case) -> float:
    """What a number that is seen costs if it may be anywhere."""
    return 2 * math.log(max(extent(case), 1e-9) / 4)


def extent(case: Case) -> float:
    """The diagonal of what everything seen fills, pixels."""
    return max(track.extent for track in case.tracks)


def explains(case: Case, fit: Fit) -> bool:
    """Whether a fit is one at all."""
    sigma = max(float(np.median(track.sigma[track.observed])) for track in case.tracks)
    finite = all(bool(torch.isfinite(part).all()) for part in fit.linear)
    return finite and fit.noise < max(_COARSE * extent(case), 6 * sigma)


def group(scores: Mapping[str, float]) -> list[str]:
    """The best kind, and others that nobody could tell from it, without those that only have more freedom."""
    best = max(scores.values())
    names = sorted((name for name, value in scores.items() if best - value < _SAME), key=lambda name: -scores[name])
    for simple, rich in SIMPLER:
        if simple in names and rich in names:
            names.remove(rich)
    return names
