"""How sure one can be of what was found: from the slopes at the minimum, from resampled residuals, from refitted costs.

Residuals of neighbouring samples are alike: a tracker's errors last. With correlation ρ from one to the next, N samples
tell as much as N (1 − ρ)/(1 + ρ) independent ones, so deviations are √((1 + ρ)/(1 − ρ)) times those of Fisher's matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import DerivativeError
from physvision.estimation.gauss_newton import gauss_newton, normal_equations, residual_size, robust_weights
from physvision.estimation.residual import Linear, Residual
from physvision.estimation.unknowns import Unknowns

_MOST_ALIKE = 0.98  # correlation: more cannot be told from a trend


@dataclass(frozen=True)
class Uncertainty:
    """What is known of z at a minimum.

    Attributes:
        unknowns: what z stands for.
        z: at the minimum, (unknowns,).
        covariance: of z, correlated residuals accounted for.
        size: standard deviation of a residual, in units of what was expected of it.
        correlation: of a residual with the next.
        freedom: how many independent samples there are more than unknowns.
    """

    unknowns: Unknowns
    z: Float[Tensor, " unknowns"]
    covariance: Float[Tensor, "unknowns unknowns"]
    size: float
    correlation: float
    freedom: float

    @property
    def deviation(self) -> Float[Tensor, " unknowns"]:
        """Standard deviations of z."""
        return self.covariance.diagonal().clamp(min=0).sqrt()

    def interval(self, share: float) -> Float[Tensor, "unknowns 2"]:
        """Where each value is with this probability: Student's interval in z, so bounds are kept."""
        reach = student(0.5 + share / 2, self.freedom) * self.deviation
        return torch.stack([self.unknowns.flat(self.z - reach), self.unknowns.flat(self.z + reach)], -1)


def uncertainty(
    problem: Residual, z: Float[Tensor, " unknowns"], robust: bool = False, linear: Linear | None = None
) -> Uncertainty:
    """What the slopes at a minimum tell of z.

    Args:
        problem: what was fitted.
        z: at the minimum.
        robust: as in the fit.
        linear: the residuals there, and their derivatives, if they are known already.

    Raises:
        DerivativeError: these derivatives are not finite, or too large to be squared.
    """
    z = z.detach()[None]
    missed, slopes = problem.linearize(z) if linear is None else linear
    scale = residual_size(missed) if robust else None
    weights = robust_weights(missed, scale)[0]
    matrix = normal_equations(problem, z, missed, slopes, scale)[1][0]
    prior = torch.diag(problem.unknowns.known(z)[1][0].square())
    if not bool(matrix.isfinite().all()):
        raise DerivativeError(f"z: residuals have no derivatives at {z[0].tolist()} that can be squared")
    there = torch.isfinite(problem.seen).any(-1)
    there = there[0] if there.dim() > 1 else there
    count = int(torch.isfinite(problem.seen).sum()) / max(1, problem.seen[..., 0, 0].numel())
    # What is known beforehand takes no freedom from the residuals: unknowns count by what the data tell of them.
    told = float(torch.linalg.lstsq(matrix, matrix - prior, driver="gelsd").solution.trace())
    free = max(count - told, 1.0)
    variance = float((weights[:, None] * missed[0].square()).sum()) / float(weights.sum() / len(weights)) / free
    alike = correlation(missed[0], weights, there, told)
    longer = (1 + alike) / (1 - alike)
    # What was known beforehand has a deviation of its own, which residuals do not change.
    data = (matrix - prior) / max(variance * longer, 1e-300)
    covariance = inverse(data + prior)
    return Uncertainty(problem.unknowns, z[0], covariance, math.sqrt(variance), alike, max(count / longer - told, 1.0))


def correlation(missed: Tensor, weights: Tensor, there: Tensor, unknowns: float) -> float:
    """Of neighbouring residuals, at least zero; what a fit of so many unknowns took from it is given back."""
    known = missed[there] * weights[there].sqrt()[:, None]
    count, numbers = known.shape
    if count < 4:
        return 0.0
    square = float(known.square().sum())
    if square == 0:
        return 0.0
    raw = float((known[1:] * known[:-1]).sum()) / square
    # Of independent residuals, p of N degrees fitted away, neighbours correlate by about −p/N.
    alike = raw + (1 + abs(raw)) * unknowns / (numbers * count)
    return min(max(alike, 0.0), _MOST_ALIKE)


def bootstrap(
    problem: Residual, z: Float[Tensor, " unknowns"], block: int, draws: int = 100, seed: int = 0
) -> Float[Tensor, "draws unknowns"]:
    """Fits to residuals drawn anew, in blocks of so many neighbouring samples."""
    missed = problem.residual(z[None]).detach()[0]
    samples = len(missed)
    block = min(max(block, 1), samples)
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(0, samples, (draws, -(-samples // block)), generator=generator)
    drawn = ((starts[..., None] + torch.arange(block)) % samples).flatten(1)[:, :samples]
    # Each block keeps or changes its sign, so that a mean that is not zero does not last.
    signs = (2 * torch.randint(0, 2, starts.shape, generator=generator) - 1).repeat_interleave(block, 1)[:, :samples]
    others = problem.resampled(z[None], missed[drawn] * signs[..., None].to(missed))
    return gauss_newton(others, z.expand(draws, -1), iterations=15, tolerance=1e-6).z


def profile(
    problem: Residual,
    known: Uncertainty,
    unknown: int,
    share: float = 0.95,
    *,
    robust: bool = False,
    points: int = 6,
    reach: float = 2.0,
) -> tuple[float, float]:
    """The interval of one unknown outside of which no values of the others fit well enough.

    Args:
        problem: what was fitted.
        known: the uncertainty at the minimum; its size and correlation say what is well enough.
        unknown: its number.
        share: the probability of the interval.
        robust: as in the fit.
        points: refits on either side.
        reach: how far they go, in units of what the slopes tell.
    """
    quantile = student(0.5 + share / 2, known.freedom)
    deviation = known.deviation[unknown]
    shares = torch.linspace(0, reach * quantile, points + 1, dtype=known.z.dtype)
    offsets = torch.cat([-shares[1:].flip(0), shares])
    starts = known.z.repeat(len(offsets), 1)
    # Where the others go is linear in this one, to begin with.
    lead = known.covariance[:, unknown] / known.covariance[unknown, unknown]
    starts = starts + (offsets * deviation)[:, None] * lead
    held = torch.zeros(len(known.z), dtype=torch.bool)
    held[unknown] = True
    cost = gauss_newton(problem, starts, iterations=15, tolerance=1e-8, robust=robust, held=held).cost
    unit = known.size**2 * (1 + known.correlation) / (1 - known.correlation)
    rise = (2 * (cost - cost[points]) / unit).clamp(min=0).sqrt()
    label = problem.unknowns
    ends = []
    for side in (-1, 1):
        along = rise[points::side] if side > 0 else rise[: points + 1].flip(0)
        beyond = torch.nonzero(along >= quantile).flatten()
        if len(beyond):
            at = int(beyond[0])
            inside = float((quantile - along[at - 1]) / (along[at] - along[at - 1]))
            z = known.z[unknown] + side * deviation * (shares[at - 1] + inside * (shares[at] - shares[at - 1]))
        else:
            z = torch.tensor(math.inf * side, dtype=known.z.dtype)
        point = known.z.clone()
        point[unknown] = z
        ends.append(float(label.flat(point)[unknown]))
    return ends[0], ends[1]


def undetermined(known: Uncertainty, share: float = 0.5) -> list[str]:
    """Unknowns whose possible span the data do not make smaller by at least this share, at 95 %.

    One without a span must be known to about a sensible step.
    """
    low, high = (
        torch.cat([torch.full((each.size,), (each.span or (each.low, each.high))[end]) for each in known.unknowns])
        for end in (0, 1)
    )
    least, most = known.interval(0.95).unbind(1)
    wide = torch.minimum(most, high.to(most)) - torch.maximum(least, low.to(least))
    far = torch.where(torch.isfinite(high - low), wide > share * (high - low), known.deviation > 0.5)
    return [label for label, lost in zip(known.unknowns.labels, far.tolist(), strict=True) if lost]


def singular_directions(
    problem: Residual, z: Float[Tensor, " unknowns"], tolerance: float = 1e-6
) -> list[dict[str, float]]:
    """Combinations of unknowns that change nothing that is seen: the share of each unknown in them, by its label.

    A step of size one in z is a sensible step of every unknown, so their slopes can be compared as they are.
    """
    slopes = problem.linearize(z.detach()[None])[1]
    known = torch.diag(problem.unknowns.known(z.detach()[None])[1][0])
    _, sizes, directions = torch.linalg.svd(torch.cat([slopes[0].flatten(0, 1), known]), full_matrices=True)
    sizes = torch.cat([sizes, sizes.new_zeros(len(directions) - len(sizes))])
    labels = problem.unknowns.labels
    return [
        {label: value for label, value in zip(labels, direction.tolist(), strict=True) if abs(value) > 0.05}
        for size, direction in zip(sizes, directions, strict=True)
        if float(size) <= tolerance * float(sizes[0])
    ]


def student(probability: float, freedom: float) -> float:
    """The quantile of Student's distribution, by the expansion of Cornish and Fisher; 2 % off at 3 degrees."""
    x, n = NormalDist().inv_cdf(probability), max(freedom, 2.0)
    first = (x**3 + x) / 4
    second = (5 * x**5 + 16 * x**3 + 3 * x) / 96
    third = (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384
    return x + first / n + second / n**2 + third / n**3


def inverse(matrix: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    """The inverse; directions that nothing determines get a huge variance, not an error."""
    scale = matrix.diagonal(dim1=-2, dim2=-1).clamp(min=1e-300).sqrt()
    values, vectors = torch.linalg.eigh(matrix / scale[..., :, None] / scale[..., None, :])
    found = (vectors / values.clamp(min=1e-12)[..., None, :]) @ vectors.mT
    return found / scale[..., :, None] / scale[..., None, :]
