"""Fit a hypothesis to tracks, and say how sure one can be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import DerivativeError
from physvision.estimation import (
    MotionResidual,
    Optimum,
    SampledState,
    Unknowns,
    fit_with_continuation,
    gauss_newton,
    geometric_horizons,
    horizon_continuation,
)
from physvision.estimation.residual import Linearization
from physvision.estimation.uncertainty import Uncertainty, uncertainty
from physvision.estimation.unknowns import Values
from physvision.identification.model import Case, Model, UnsuitableError
from physvision.identification.view import View

_READ = 2  # rounds in which the row that a thing is seen in and the moment when that is read are found
_FURTHER = 3.0  # times the fitted stretch: nobody wants to know where a thrown ball would be minutes later


@dataclass(frozen=True)
class Fit:
    """What was found of one hypothesis.

    Attributes:
        model: the hypothesis.
        problem: the residuals that were made small.
        z: the numbers found, (unknowns,).
        known: how sure they are.
        noise: the usual distance of a coordinate from the fitted motion, pixels.
        model_start: when the motion begins, s of the clip.
        early: where searches stood before any of the last third was fitted, (starts, unknowns).
        linear: the residuals there, and their derivatives.
        view: of the camera.
    """

    model: Model
    problem: MotionResidual
    z: Float[Tensor, " unknowns"]
    known: Uncertainty
    noise: float
    model_start: float
    early: Float[Tensor, "starts unknowns"]
    linear: Linearization
    view: View

    @property
    def cut(self) -> int:
        """The first sample of the last third of what was fitted."""
        return 2 * len(self.problem.times) // 3

    def without_end(self) -> Fit:
        """The fit to the first two thirds alone."""
        problem = self.problem.truncate(float(self.problem.times[self.cut - 1]))
        z, linear = _best(gauss_newton(problem, self.early, robust=True, tolerance=1e-6, patience=3))
        return replace(self, problem=problem, z=z, linear=linear)

    def places(self, times: Float[Tensor, " samples"]) -> Float[Tensor, "samples numbers"]:
        """Where the motion is seen at times of the clip, pixels; NaN before it begins and long after what was seen."""
        found = torch.full((len(times), self.problem.observed.shape[1]), torch.nan, dtype=torch.float64)
        shown = times.double() - self.model_start
        keep = (shown >= 0) & (shown <= _FURTHER * self.problem.times[-1])
        asked, where = shown[keep].unique(return_inverse=True)
        if len(asked):
            empty = torch.full((len(asked), found.shape[1]), torch.nan, dtype=torch.float64)
            problem = replace(self.problem, times=asked, observed=empty, delay=None, weight=1.0)
            for _ in range(_READ if self.problem.delay else 0):
                rows = self.view.rows(problem.predictions(self.z[None]).detach()[0])
                problem = replace(problem, delay=partial(_delay, self.view, rows))
            found[keep] = problem.predictions(self.z[None]).detach()[0][where]
        return found


def _delay(view: View, rows: Tensor, values: Values, sample: Tensor) -> Tensor:
    """By how much later than each sample's first row those were read in which things are seen, (worlds, things)."""
    return view.delay(values, rows[sample])


def problem_of(case: Case, model: Model) -> MotionResidual:
    """The residuals of a model: every seen coordinate against where the model says that it is seen."""
    window = slice(model.first, model.last)
    objects = len(case.tracks)
    seen = torch.cat([case.seen(k)[window] for k in range(objects)], 1)
    sigma = torch.cat(
        [torch.from_numpy(case.tracks[k].sigma.copy())[window, None].expand(-1, 2) for k in range(objects)], 1
    ).double()
    usual = sigma[torch.isfinite(sigma)].median()
    weight = 1 / sigma.clamp(min=float(0.5 * usual))
    times = case.times[window] - case.times[model.first]
    rows = case.view.rows(seen)

    def observe(seen: SampledState) -> Tensor:
        places = model.places(seen)
        return torch.cat([case.view.see(place, seen.values) for place in places.split(2, 1)], 1)

    return MotionResidual(
        model.engine,
        Unknowns([*model.unknowns, *case.view.unknowns(case.dt)]),
        model.setup,
        times,
        seen,
        observe,
        weight,
        delay=partial(_delay, case.view, rows) if case.view.filmed else None,
    )


def fit(case: Case, model: Model, keep: int = 3) -> Fit:
    """The best fit of a model from its starts."""
    problem = problem_of(case, model)
    start = problem.unknowns.unconstrain(
        {each.name: model.starts.get(each.name, each.start) for each in problem.unknowns}
    )
    span = float(problem.times[-1])
    horizons = [] if model.horizon is None else geometric_horizons(model.horizon, span)
    # The first two thirds are fitted for themselves as well, to be compared with the last.
    inside = [horizon for horizon in horizons if horizon <= 2 / 3 * span]
    early = horizon_continuation(problem.truncate(2 / 3 * span), inside, start, max_candidates=keep)
    early = horizon_continuation(problem, [2 / 3 * span] if inside else [], early, max_candidates=keep)
    found = fit_with_continuation(problem, horizons[len(inside) :], early, max_candidates=keep, tolerance=1e-5)
    return _settled(case, model, problem, *_best(found), early)


def refit(case: Case, model: Model, found: Fit) -> Fit:
    """The fit of a model with more freedom from where the search of another led."""
    problem = problem_of(case, model)

    def led(z: Tensor) -> Tensor:
        reached = found.problem.unknowns.values(z)
        return problem.unknowns.unconstrain(
            {each.name: reached.get(each.name, each.start) for each in problem.unknowns}
        )

    reached = gauss_newton(problem, led(found.z[None]), robust=True, tolerance=1e-8)
    return _settled(case, model, problem, *_best(reached), led(found.without_end().z[None]))


def _best(found: Optimum) -> tuple[Tensor, Linearization]:
    """The best of several searches, with the residuals there and their derivatives."""
    return found.best_z, found.best_linearization


def _settled(case: Case, model: Model, problem: MotionResidual, z: Tensor, linear: Linearization, early: Tensor) -> Fit:
    """The minimum near z where what is known beforehand is weighed against the noise as it is, and how sure it is.

    Raises:
        UnsuitableError: the search has run to where the motion has no derivative, as it may of what nothing explains.
    """
    try:
        known = uncertainty(problem, z, robust=True, linearization=linear)
        # It was weighed against noise as the tracker told it: now it is known what is left, and how long it lasts.
        larger = max(known.residual_std * math.sqrt((1 + known.autocorrelation) / (1 - known.autocorrelation)), 1.0)
        problem = replace(problem, weight=problem.weight / larger)
        linear = linear[0] / larger, linear[1] / larger
        z, linear = _best(gauss_newton(problem, z[None], robust=True, tolerance=1e-8, linearization=linear))
        known = uncertainty(problem, z, robust=True, linearization=linear)
    except DerivativeError as error:
        raise UnsuitableError("no such motion comes near the track") from error
    off = (linear[0][0] / torch.as_tensor(problem.weight))[torch.isfinite(problem.observed)]
    noise = float(1.4826 * off.abs().median())
    return Fit(model, problem, z, known, noise, float(case.times[model.first]), early, linear, case.view)
