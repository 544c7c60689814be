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

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation.gauss_newton import residual_size, robust_weights
from physvision.estimation.residual import MotionResidual
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
        spread, directions = torch.linalg.eigh(self.covariances)
        roots = directions * spread.clamp(min=0).sqrt()[:, None]
        normal = torch.randn(count, roots.shape[-1], generator=generator, dtype=roots.dtype)
        found = torch.empty_like(normal)
        for number in range(len(roots)):
            found[which == number] = normal[which == number] @ roots[number].mT
        degrees = torch.full((count, 1), self.freedom / 2, dtype=roots.dtype)
        chi = 2 * torch._standard_gamma(degrees, generator=generator)
        return found * (self.freedom / chi).sqrt()


@dataclass(frozen=True)
class _Rows:
    """The weighted residuals of one thing, and what tells them apart; neighbours put together where there are many."""

    missed: Float[Tensor, "rows numbers"]
    slopes: Float[Tensor, "rows numbers unknowns"]
    apart: Float[Tensor, "rows rows"]
    away: Float[Tensor, "rows rows"]
    together: int

    def kernel(self, lasts: float, reach: float) -> tuple[Tensor, Tensor]:
        """Correlations of what lasts for `lasts` seconds, and of what reaches over `reach`."""
        time = torch.exp(-self.apart / lasts)
        return self.together * time, self.together * torch.exp(-((self.away / reach) ** 2) / 2)


def possibilities(problem: MotionResidual, z: Float[Tensor, " unknowns"], numbers: int = 2) -> Possibilities:
    """What residuals tell of z if errors may last.

    Args:
        problem: what was fitted, outliers held down.
        z: at the minimum.
        numbers: so many of those that are seen at a time are the place of one thing.
    """
    missed, slopes = problem.linearize(z.detach()[None])
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
    nothing = (0.0, times[0], 0.0, extent)
    tried = [nothing, *((amount, lasts, 0.0, extent) for amount in _AMOUNTS for lasts in times)]
    begun = (slope[0] * known[0], prior)
    judged = [_judged(things, begun, each) for each in tried]
    best = tried[max(range(len(tried)), key=lambda number: judged[number][0])]
    for amount in _AMOUNTS:
        for reach in _REACHES:
            for other in {nothing, best}:
                judged.append(_judged(things, begun, (*other[:2], amount, reach * extent)))
    odds = torch.tensor([likelihood for likelihood, _, _ in judged], dtype=torch.float64)
    shares = torch.exp(odds - odds.max())
    kept = torch.nonzero(shares > _LEAST).flatten()
    # What was held down as outliers leaves residuals that are too small.
    larger = len(weights) / float(weights.sum())
    matrix = sum((_products(thing.slopes) for thing in things), prior)
    ends = inverse(matrix)
    covariances = torch.stack([ends @ (larger * judged[int(at)][1] + prior) @ ends for at in kept])
    return Possibilities(shares[kept] / shares[kept].sum(), covariances, judged[int(odds.argmax())][2])


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


def _products(slopes: Tensor, between: Tensor | None = None) -> Tensor:
    """Jᵀ V J, of each number by itself; V is one if not given."""
    other = slopes if between is None else torch.einsum("rs,snu->rnu", between, slopes)
    return slopes.flatten(0, 1).mT @ other.flatten(0, 1)


def _judged(
    things: Sequence[_Rows], begun: tuple[Tensor, Tensor], idea: tuple[float, float, float, float]
) -> tuple[float, Tensor, float]:
    """The restricted likelihood of an idea of how errors last, Jᵀ Σ J under it, and the freedom left."""
    lasting, lasts, local, reach = idea
    pull, prior = begun
    size, square, determinant = 0, 0.0, 0.0
    unknowns = len(prior)
    between, along, spread = torch.zeros_like(prior), torch.zeros_like(pull), torch.zeros_like(prior)
    for thing in things:
        time, place = thing.kernel(lasts, reach)
        count, numbers = thing.missed.shape
        matrix = torch.eye(count, dtype=torch.float64) + lasting * time + local * place
        lower = torch.linalg.cholesky(matrix)
        whole = torch.cat([thing.missed[..., None], thing.slopes], 2).reshape(count, -1)
        white = torch.linalg.solve_triangular(lower, whole, upper=False).reshape(-1, 1 + unknowns)
        missed, slopes = white[:, 0], white[:, 1:]
        size += count * numbers
        square += float(missed.square().sum())
        determinant += 2 * numbers * float(lower.diagonal().log().sum())
        between, along = between + slopes.mT @ slopes, along + slopes.mT @ missed
        spread = spread + _products(thing.slopes, matrix)
    variance, told, left, step = square / size, 0.0, square, torch.zeros_like(pull)
    for _ in range(6):
        normal = between / variance + prior
        cover = inverse(normal)
        step = -cover @ (along / variance + pull)
        told = float((cover * between).sum()) / variance
        left = square + 2 * float(step @ along) + float(step @ between @ step)
        variance = max(left, 1e-12 * square + 1e-300) / max(size - told, 1.0)
    normal = between / variance + prior
    away = float(step @ prior @ step + 2 * step @ pull)
    scale = normal.diagonal().clamp(min=1e-300).sqrt()
    values = torch.linalg.eigvalsh(normal / scale[:, None] / scale).clamp(min=1e-12)
    volume = float(values.log().sum() + 2 * scale.log().sum())
    likelihood = -(size * math.log(variance) + determinant + volume + left / variance + away) / 2
    return likelihood, variance * spread, max(size - told, 1.0)
