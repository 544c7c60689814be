"""Fit a hypothesis to tracks, and say how sure one can be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation import MotionResidual, Seen, Unknowns, doubling, fit_growing, gauss_newton
from physvision.estimation.uncertainty import Uncertainty, uncertainty
from physvision.identify.model import Case, Model

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
    """

    model: Model
    problem: MotionResidual
    z: Float[Tensor, " unknowns"]
    known: Uncertainty
    noise: float
    model_start: float

    def places(self, times: Float[Tensor, " samples"]) -> Float[Tensor, "samples numbers"]:
        """Where the motion is seen at times of the clip, pixels; NaN before it begins and long after what was seen."""
        found = torch.full((len(times), self.problem.seen.shape[1]), torch.nan, dtype=torch.float64)
        shown = times.double() - self.model_start
        keep = (shown >= 0) & (shown <= _FURTHER * self.problem.times[-1])
        asked, where = shown[keep].unique(return_inverse=True)
        if len(asked):
            empty = torch.full((len(asked), found.shape[1]), torch.nan, dtype=torch.float64)
            problem = replace(self.problem, times=asked, seen=empty, delay=None, weight=1.0)
            found[keep] = problem.predicted(self.z[None]).detach()[0][where]
        return found


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
    rows = seen[:, 1].nan_to_num(case.view.height / 2)

    def observe(seen: Seen) -> Tensor:
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
        delay=lambda values, sample: case.view.delay(values, rows[sample]),
    )


def fit(case: Case, model: Model, keep: int = 3) -> Fit:
    """The best fit of a model from its starts."""
    problem = problem_of(case, model)
    start = problem.unknowns.numbers({each.name: model.starts.get(each.name, each.start) for each in problem.unknowns})
    span = float(problem.times[-1])
    horizons = [] if model.horizon is None else doubling(model.horizon, span)
    found = fit_growing(problem, horizons, start, keep=keep)
    known = uncertainty(problem, found.z[found.best], robust=True)
    # What is known beforehand was weighed against noise as the tracker told it: now it is known what is left, and how
    # long it lasts.
    larger = known.size * math.sqrt((1 + known.correlation) / (1 - known.correlation))
    problem = replace(problem, weight=problem.weight / max(larger, 1.0))
    z = gauss_newton(problem, known.z[None], robust=True).z[0]
    return judged(case, model, problem, z)


def judged(case: Case, model: Model, problem: MotionResidual, z: Tensor) -> Fit:
    """A fit with its uncertainty."""
    known = uncertainty(problem, z, robust=True)
    missed = problem.residual(z[None]).detach()
    there = torch.isfinite(problem.seen)
    off = (missed[0] / torch.as_tensor(problem.weight))[there]
    noise = float(1.4826 * off.abs().median())
    return Fit(model, problem, z, known, noise, float(case.times[model.first]))
