"""Each kind of motion tried on each choice of things that it may be about, and tested on the last third."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Float

from physvision.core import DerivativeError
from physvision.estimation.uncertainty import uncertainty
from physvision.identification import comparison
from physvision.identification.fitting import Fit, fit, refit
from physvision.identification.identification import HeldOut
from physvision.identification.kinds import Propose
from physvision.identification.model import Case, Known, Model, UnsuitableError
from physvision.identification.view import View
from physvision.perception import Track

_FEWEST = 8  # samples for which a last third can be held out
_LONGER, _BETTER = 1.2, 3.0  # times as many samples, or times as much explained of them: a clear lead
_LEFT = 0.3  # correlation of what a fit leaves, from which on there may be more to see in it


def attempts(
    moving: list[Track],
    view: View,
    told: Mapping[str, Known],
    proposals: Mapping[str, tuple[Propose, int]],
    knocks: Float[np.ndarray, " onsets"],
) -> tuple[dict[str, tuple[Case, Fit]], dict[str, str]]:
    """The best fit of each kind over the objects that it might be about, and why others have none.

    Args:
        moving: what moves, the farthest first.
        view: of the camera.
        told: what is known.
        proposals: of each kind, what makes its models, and of how many objects.
        knocks: when the sound track knocks, s.
    """
    fits, refused = {}, {}
    for kind, (propose, count) in proposals.items():
        cases = [Case(chosen, view, told, knocks) for chosen in combinations(moving, count)]
        if not cases:
            refused[kind] = f"{len(moving)} thing moves, {count} are needed"
        # Of several things that which the kind explains longest is meant, or, of two as long, one that it explains
        # far better: a spring moves as its mass does, but nobody can say where its middle is.
        longest, most = 0, 0.0
        for tried in cases:
            try:
                case, found = _best(tried, propose(tried))
            except UnsuitableError as error:
                refused.setdefault(kind, str(error))
                continue
            held, gain = found.model.last - found.model.first, comparison.gain(case, found)
            if not comparison.explains(case, found):
                refused.setdefault(kind, f"its best fit misses by {found.noise:.2g} {case.unit}")
            elif held > _LONGER * longest or (_LONGER * held > longest and gain > _BETTER * most):
                fits[kind], longest, most = (case, found), held, gain
        if kind in fits:
            refused.pop(kind, None)
    return fits, refused


def _best(case: Case, models: Sequence[Model]) -> tuple[Case, Fit]:
    """The fit of the models of a kind that explains most, and the case as that sees it."""
    fits, reason = [], UnsuitableError("there is no model of it")
    for model in models:
        try:
            fits.append(fit(case, model))
        except UnsuitableError as error:
            reason = error
    if not fits:
        raise reason
    return _widened(case, max(fits, key=lambda each: comparison.score(case, each)))


def _refitted(case: Case, model: Model, found: Fit) -> Fit | None:
    """The fit of a model with more freedom, or none if its search runs away."""
    try:
        return refit(case, model, found)
    except UnsuitableError:
        return None


def _widened(case: Case, found: Fit) -> tuple[Case, Fit]:
    """A fit, or one with more freedom from where its search led, as long as that explains more of what is left.

    Tables are taken as if they were seen straight on and all at once, until what is left says that a camera saw them.
    """
    while True:
        ways = [(case, model) for model in found.model.wider]
        if not case.view.filmed and found.known.autocorrelation > _LEFT:
            ways.append((replace(case, view=case.view.by_camera()), found.model))
        further = [(seen, each) for seen, model in ways if (each := _refitted(seen, model, found)) is not None]
        gains = [
            comparison.score(seen, each, each.known.autocorrelation)
            - comparison.score(case, found, each.known.autocorrelation)
            for seen, each in further
        ]
        if max(gains, default=0.0) <= 0:
            return case, found
        case, found = further[gains.index(max(gains))]


def held_out(case: Case, found: Fit) -> HeldOut | None:
    """What the fit to the first two thirds of what the law holds for says of the last, compared with what was seen."""
    first, last = found.model.first, found.model.last
    if last - first < _FEWEST:
        return None
    places = found.without_end().places(case.times)
    seen = torch.cat([case.seen(k) for k in range(len(case.tracks))], 1)
    late = torch.arange(len(places)) >= first + found.cut
    late &= torch.arange(len(places)) < last
    places[~late] = torch.nan
    off = (places - seen)[late]
    square = off[torch.isfinite(off)].square()
    if not len(square):
        return None
    error = math.sqrt(float(square.mean()) * 2)
    return HeldOut(error, error / comparison.extent(case), places.numpy())


def expected_error(found: Fit) -> float:
    """By how much the fit to the first two thirds expects to miss the last, pixels: as far as it leaves that open.

    Of a motion that is sensitive to how it begins that may be more than the motion's extent; where a search for the
    first two thirds alone ran away, it is infinite.
    """
    early = found.without_end()
    try:
        covariance = uncertainty(early.problem, early.z, robust=True, linearization=early.linear).covariance
    except DerivativeError:
        return math.inf
    slopes = found.problem.linearize(early.z[None])[1][0] / torch.as_tensor(found.problem.weight)[..., None]
    late = slopes[found.cut :][torch.isfinite(found.problem.observed[found.cut :])]
    variance = torch.einsum("ni,ij,nj->n", late, covariance, late).mean()
    return math.sqrt(2 * (float(variance) + found.noise**2))
