"""How sure one can be where errors last: those of a tracker, and what a model leaves out, are not new in each frame.

Residuals are taken as white noise, and an error that lasts for a while, and one that depends on the place where a thing
is seen (what is behind it, what hangs on it), which comes back with every period:

    Σ = σ² (1 + a exp(−|t − t'| / τ) + b exp(−|x − x'|² / 2 l²))

How large the lasting parts are, and how far they reach, is told by the residuals alone, and not exactly: each of many
possibilities counts by its restricted likelihood (Patterson and Thompson, 1971), which knows what a fit took from the
residuals. With J the weighted slopes, P what was known beforehand and A = Jᵀ J + P, the minimum then scatters by

    A⁻¹ (Jᵀ Σ J + P) A⁻¹
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation.gauss_newton import residual_size, robust_weights
from physvision.estimation.motion_residual import MotionResidual
from physvision.estimation.residual import Linear
from physvision.estimation.uncertainty import inverse

_ROWS = 240  # of more samples neighbours are put together: what lasts is longer than that
_LEAST = 1e-3  # of the likeliest possibility: less is left out
_AMOUNTS = (0.05, 0.15, 0.5, 1.5, 5.0, 15.0)  # variance of what lasts, of the white noise's
_REACHES = (0.03, 0.1, 0.3)  # distances over which places share an error, of the motion's extent


@dataclass(frozen=True)
class Possibilities:
    """What z may be, under each of several ideas of how errors last.

    Attributes:
        weights: how likely each is; they sum to one.
        covariances: of z under each.
        freedom: how many numbers were seen more than unknowns were told by them.
    """

    weights: Float[Tensor, " possibilities"]
    covariances: Float[Tensor, "possibilities unknowns unknowns"]
    freedom: float

    @property
    def covariance(self) -> Float[Tensor, "unknowns unknowns"]:
        """Of z, whatever is the case."""
        return torch.einsum("k,kij->ij", self.weights, self.covariances)

    def deviates(self, count: int, seed: int = 0) -> Float[Tensor, "count unknowns"]:
        """Draws of how far z is from the minimum."""
        generator = torch.Generator().manual_seed(seed)
        which = torch.multinomial(self.weights, count, replacement=True, generator=generator)
        # An unknown at its bound varies by any amount in z: on that scale rounding would drown the others.
        size = self.covariances.diagonal(dim1=1, dim2=2).clamp(min=1e-300).sqrt()
        spread, directions = torch.linalg.eigh(self.covariances / size[:, :, None] / size[:, None])
        roots = size[:, :, None] * directions * spread.clamp(min=0).sqrt()[:, None]
        normal = torch.randn(count, roots.shape[-1], generator=generator, dtype=roots.dtype)
        found = torch.empty_like(normal)
        for number in range(len(roots)):
            found[which == number] = normal[which == number] @ roots[number].mT
        degrees = torch.full((count, 1), self.freedom / 2, dtype=roots.dtype)
        chi = 2 * torch._standard_gamma(degrees, generator=generator)
        return found * (self.freedom / chi).sqrt()


class Idea(NamedTuple):
    """How errors may last.

    Attributes:
        lasting: variance of what lasts for a while, of the white noise's.
        lasts: for how long, s.
        local: variance of what depends on the place, of the white noise's.
        reach: over which distance it does, pixels.
    """

    lasting: float
    lasts: float
    local: float
    reach: float


@dataclass(frozen=True)
class _Rows:
    """The weighted residuals of one thing, and what tells them apart; neighbours put together where there are many."""

    missed: Float[Tensor, "rows numbers"]
    slopes: Float[Tensor, "rows numbers unknowns"]
    apart: Float[Tensor, "rows rows"]
    away: Float[Tensor, "rows rows"]
    together: int

    def covariances(self, ideas: Sequence[Idea]) -> Float[Tensor, "ideas rows rows"]:
        """Of what is missed under each idea, of the variance of its white noise."""
        # Many ideas share how long errors last, or how far they reach.
        times = {lasts: torch.exp(-self.apart / lasts) for lasts in {idea.lasts for idea in ideas}}
        reaches = {idea.reach for idea in ideas if idea.local}
        places = {reach: torch.exp(-((self.away / reach) ** 2) / 2) for reach in reaches}
        found = torch.stack([self.together * idea.lasting * times[idea.lasts] for idea in ideas])
        for number, idea in enumerate(ideas):
            if idea.local:
                found[number].add_(places[idea.reach], alpha=self.together * idea.local)
        found.diagonal(dim1=1, dim2=2).add_(1.0)
        return found


def possibilities(
    problem: MotionResidual, z: Float[Tensor, " unknowns"], numbers: int = 2, linear: Linear | None = None
) -> Possibilities:
    """What residuals tell of z if errors may last.

    Args:
        problem: what was fitted, outliers held down.
        z: at the minimum.
        numbers: so many of those that are seen at a time are the place of one thing.
        linear: the residuals there, and their derivatives, if they are known already.
    """
    missed, slopes = problem.linearize(z.detach()[None]) if linear is None else linear
    weights = robust_weights(missed, residual_size(missed))[0]
    known, slope = problem.unknowns.known(z.detach()[None])
    prior = torch.diag(slope[0].square())
    places = problem.predicted(z[None]).detach()[0]
    root = weights.sqrt()[:, None]
    things = [
        _rows(problem, first, numbers, (root * missed[0]), (root[..., None] * slopes[0]), places)
        for first in range(0, places.shape[1], numbers)
    ]
    things = [thing for thing in things if len(thing.missed)]
    span = float(problem.times[-1])
    step = float((problem.times[1:] - problem.times[:-1]).median()) if len(problem.times) > 1 else 1.0
    extent = float((places.amax(0) - places.amin(0)).norm())
    shortest, longest = 1.5 * step, max(span / 2, 3 * step)
    times = [shortest * (longest / shortest) ** (share / 4) for share in range(5)]
    nothing = Idea(0.0, times[0], 0.0, extent)
    tried = [nothing, *(Idea(amount, lasts, 0.0, extent) for amount in _AMOUNTS for lasts in times)]
    begun = (slope[0] * known[0], prior)
    judged = [_judged(things, begun, tried)]
    best = tried[int(judged[0].likelihoods.argmax())]
    others = [
        idea._replace(local=amount, reach=reach * extent)
        for amount in _AMOUNTS for reach in _REACHES for idea in dict.fromkeys((nothing, best))
    ]  # fmt: skip
    judged.append(_judged(things, begun, others))
    odds, variances, freedom = (torch.cat(parts) for parts in zip(*judged, strict=True))
    shares = torch.exp(odds - odds.max())
    kept = torch.nonzero(shares > _LEAST).flatten()
    spreads = variances[kept, None, None] * _spread(things, [[*tried, *others][number] for number in kept])
    # What was held down as outliers leaves residuals that are too small.
    larger = len(weights) / float(weights.sum())
    flat = [thing.slopes.flatten(0, 1) for thing in things]
    matrix = sum((slopes.mT @ slopes for slopes in flat), prior)
    size = matrix.diagonal().clamp(min=1e-300).sqrt()
    alike = size[:, None] * size
    ends = inverse(matrix / alike)
    covariances = ends @ ((larger * spreads + prior) / alike) @ ends / alike
    return Possibilities(shares[kept] / shares[kept].sum(), covariances, float(freedom[odds.argmax()]))


def _rows(problem: MotionResidual, first: int, numbers: int, missed: Tensor, slopes: Tensor, places: Tensor) -> _Rows:
    """The rows of the thing whose place these numbers are."""
    part = slice(first, first + numbers)
    there = torch.nonzero(torch.isfinite(problem.seen[:, part]).all(1)).flatten()
    together = max(1, math.ceil(len(there) / _ROWS))
    there = there[: len(there) // together * together].unflatten(0, (-1, together)) if len(there) else there[:, None]
    times, middles = problem.times[there].mean(1), places[there][..., part].mean(1)
    return _Rows(
        missed[there][..., part].sum(1) / math.sqrt(together),
        slopes[there][:, :, part].sum(1) / math.sqrt(together),
        (times[:, None] - times).abs(),
        torch.cdist(middles, middles),
        together,
    )


class _Judged(NamedTuple):
    """Ideas of how errors last: the restricted likelihood of each, the white noise's variance, and the freedom left."""

    likelihoods: Float[Tensor, " ideas"]
    variances: Float[Tensor, " ideas"]
    freedom: Float[Tensor, " ideas"]


def _judged(things: Sequence[_Rows], begun: tuple[Tensor, Tensor], ideas: Sequence[Idea]) -> _Judged:
    """All ideas at once."""
    pull, prior = begun
    unknowns, count = len(prior), len(ideas)
    size, square, determinant = 0, prior.new_zeros(count), prior.new_zeros(count)
    between = prior.new_zeros(count, unknowns, unknowns)
    along = prior.new_zeros(count, unknowns)
    for thing in things:
        rows, numbers = thing.missed.shape
        lower = torch.linalg.cholesky(thing.covariances(ideas))
        whole = torch.cat([thing.missed[..., None], thing.slopes], 2).flatten(1)
        white = torch.linalg.solve_triangular(lower, whole.expand(count, -1, -1), upper=False)
        missed, slopes = white.reshape(count, -1, 1 + unknowns).split([1, unknowns], 2)
        size += rows * numbers
        square = square + missed.square().sum((1, 2))
        determinant = determinant + 2 * numbers * lower.diagonal(dim1=1, dim2=2).log().sum(1)
        between, along = between + slopes.mT @ slopes, along + (slopes.mT @ missed).squeeze(2)
    variance, told, left, step = square / size, torch.zeros_like(square), square, torch.zeros_like(along)
    for _ in range(6):
        cover = inverse(between / variance[:, None, None] + prior)
        step = -(cover @ (along / variance[:, None] + pull)[..., None]).squeeze(2)
        told = (cover * between).sum((1, 2)) / variance
        left = square + 2 * (step * along).sum(1) + _squared(between, step)
        variance = left.maximum(1e-12 * square + 1e-300) / (size - told).clamp(min=1.0)
    normal = between / variance[:, None, None] + prior
    away = _squared(prior, step) + 2 * step @ pull
    scale = normal.diagonal(dim1=1, dim2=2).clamp(min=1e-300).sqrt()
    values = torch.linalg.eigvalsh(normal / scale[:, :, None] / scale[:, None]).clamp(min=1e-12)
    volume = values.log().sum(1) + 2 * scale.log().sum(1)
    likelihoods = -(size * variance.log() + determinant + volume + left / variance + away) / 2
    return _Judged(likelihoods, variance, (size - told).clamp(min=1.0))


def _spread(things: Sequence[_Rows], ideas: Sequence[Idea]) -> Float[Tensor, "ideas unknowns unknowns"]:
    """Jᵀ Σ J under each idea, of the variance of its white noise."""
    found = 0.0
    for thing in things:
        slopes = thing.slopes.flatten(1)
        beside = (thing.covariances(ideas) @ slopes).unflatten(2, thing.slopes.shape[1:]).flatten(1, 2)
        found = found + thing.slopes.flatten(0, 1).mT @ beside
    return torch.as_tensor(found)


def _squared(matrix: Tensor, vectors: Float[Tensor, "ideas unknowns"]) -> Float[Tensor, " ideas"]:
    """vᵀ M v of each."""
    return (vectors * (matrix @ vectors[..., None]).squeeze(2)).sum(1)
