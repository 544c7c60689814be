"""Physical parameters from what was fitted and what is known, with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation.autocorrelation import mixture_posterior
from physvision.identification.fitting import Fit
from physvision.identification.model import Case

_EDGE = 0.16  # px, to which the edge of a disc is placed
# Lengths, times and the like cannot be below zero, whatever a straight line through their deviation says.
_POSITIVE = ("length", "length_1", "length_2", "gravity", "speed", "acceleration", "stiffness", "period", "radius",
             "mass_ratio", "frequency")  # fmt: skip
Span = tuple[float, float]
_ANY_POSITIVE: Span = (0.0, math.inf)
_DRAWS, _FEWEST, _SWEEPS = 20_000, 200, 8
_BEGINNINGS = 33  # intervals of which the shortest is taken
# The possible values of what a clip may say nothing about.
_SPANS: dict[str, Span] = {"damping": (0.0, 1.0), "drag": (0.0, 0.2), "friction": (0.0, 1.0), "restitution": (0.0, 1.0)}


@dataclass(frozen=True)
class Parameter:
    """One physical parameter.

    Attributes:
        value: SI; None where it is not identifiable.
        unit: SI.
        interval_68: where it is with a probability of 68 %.
        interval_95: where it is with a probability of 95 %.
        identifiable: whether the clip says anything of it.
        reason: why it is not.
    """

    value: float | None
    unit: str
    interval_68: tuple[float, float] | None = None
    interval_95: tuple[float, float] | None = None
    identifiable: bool = True
    reason: str = ""


def derived(case: Case, fit: Fit) -> dict[str, Parameter]:
    """All parameters of a fit: what is known counts with its own deviation."""
    names = list(case.known)
    told = torch.tensor([case.known[name].value for name in names], dtype=torch.float64)
    sure = torch.tensor([deviation_of(name, case) for name in names], dtype=torch.float64)
    unknowns = fit.problem.unknowns

    def every(z: Tensor, told: Tensor) -> dict[str, Tensor | str]:
        return fit.model.parameters(unknowns.values(z[None]), dict(zip(names, told, strict=True)))

    kept = [name for name, value in every(fit.z, told).items() if isinstance(value, Tensor)]

    def numbers(z: Tensor, told: Tensor) -> Tensor:
        found = every(z, told)
        # One number more than there are parameters: of some motions nothing can be told without a scale.
        return torch.stack([z.new_zeros(()), *(torch.as_tensor(found[name]).reshape(()) for name in kept)])

    by_z, by_told = torch.autograd.functional.jacobian(numbers, (fit.z, told))
    by_z, by_told = by_z.detach()[1:], by_told.detach()[1:]
    random = torch.Generator().manual_seed(1)
    off = mixture_posterior(fit.problem, fit.z, linearization=fit.linear).sample(_DRAWS) @ by_z.T
    off += torch.randn(_DRAWS, len(names), generator=random, dtype=torch.float64) * sure @ by_told.T
    values = every(fit.z, told)
    spans = {name: fit.model.spans.get(name, _span(name)) for name in values}
    best = np.array([float(torch.as_tensor(values[name])) for name in kept])
    possible = _possible([spans[name] for name in kept], best, off.numpy())
    found = {}
    for name, value in values.items():
        unit = fit.model.units[name]
        if isinstance(value, str):
            found[name] = Parameter(None, unit, identifiable=False, reason=value)
        else:
            at = kept.index(name)
            found[name] = _judged(spans[name], float(best[at]), possible[:, at], unit)
    return found


def deviation_of(name: str, case: Case) -> float:
    """The deviation of what was told, as far as it can be compared with what was seen.

    A scale is never that of the plane of motion to more than a thousandth, nor is a disc seen as large as it is to more
    than a hundredth: a compressed film places its edge to about a sixth of a pixel.
    """
    known, least, track = case.known[name], {"scale": 1e-3, "radius": 1e-2}.get(name, 0.0), case.tracks[0]
    if name == "radius" and track.radius:
        least = max(least, max(_EDGE, float(np.median(track.sigma[track.observed]))) / track.radius)
    return max(known.deviation, least * known.value)


def _span(name: str) -> Span:
    """The possible values of a parameter of the kinds."""
    return _SPANS.get(name, _ANY_POSITIVE if name in _POSITIVE else (-math.inf, math.inf))


def _possible(
    spans: list[Span],
    best: Float[np.ndarray, " parameters"],
    off: Float[np.ndarray, "tries parameters"],
) -> Float[np.ndarray, "draws parameters"]:
    """Draws of all parameters together, `off` from the best, without those that are below what is possible.

    Damping and drag, say, do much the same: where a search makes one of them negative, the other comes out too large,
    and knowing that neither is negative tells of both. Where hardly any draws are possible, they are moved to the
    nearest values that are. Of what may be any positive number it is the logarithm that varies.
    """
    positive = np.array([span == _ANY_POSITIVE for span in spans], bool)
    grows = positive & (best > 0)
    least = np.where(positive, -np.inf, np.array([span[0] for span in spans]))
    fine = (best + off >= least).all(1)
    off = off[fine] if fine.sum() >= _FEWEST else _moved(off, least - best)
    return np.where(grows, best * np.exp((off / np.where(grows, best, 1.0)).clip(-50, 50)), best + off)


def _moved(
    off: Float[np.ndarray, "tries parameters"], least: Float[np.ndarray, " parameters"]
) -> Float[np.ndarray, "tries parameters"]:
    """Each draw moved to where none is below its least, nearest in the metric that the draws' own scatter gives.

    A number that is raised to its least takes the others with it as far as they go together: that is what a fit that
    keeps the bounds would find of tracks that scatter so.
    """
    covariance = np.atleast_2d(np.cov(off.T))
    for _ in range(_SWEEPS):
        for at in np.flatnonzero(np.isfinite(least) & (covariance.diagonal() > 0)):
            lacking = (least[at] - off[:, at]).clip(min=0)
            off = off + lacking[:, None] * (covariance[at] / covariance[at, at])
    return np.maximum(off, least)


def _judged(span: Span, value: float, draws: Float[np.ndarray, " draws"], unit: str) -> Parameter:
    """A parameter by its best value, or the middle of what is possible where that is not."""
    (likely_low, likely_high), (low, high) = (_interval(span, draws, share) for share in (0.68, 0.95))
    if span == _ANY_POSITIVE and not (value > 0 and high / max(low, 1e-300) < 4):
        return Parameter(None, unit, identifiable=False, reason="the motion hardly depends on it")
    if math.isfinite(span[1]) and min(high, span[1]) - max(low, span[0]) > 0.5 * (span[1] - span[0]):
        return Parameter(
            None, unit, identifiable=False, reason="the clip does not make its possible range half as wide"
        )
    best = value if low <= value <= high else float(np.median(draws))
    return Parameter(best, unit, (likely_low, likely_high), (low, high))


def _interval(span: Span, draws: Float[np.ndarray, " draws"], share: float) -> tuple[float, float]:
    """Where this share of the draws is.

    As many are left out below as above, unless the parameter has a bound: no drag, say, may be as likely as any, but
    would lie below each such interval. There it is the shortest one, which begins at the bound if that is as likely.
    """
    if not math.isfinite(span[1]):
        low, high = np.quantile(draws, [0.5 - share / 2, 0.5 + share / 2]).tolist()
        return low, high
    below = np.linspace(0.0, 1 - share, _BEGINNINGS)
    lows, highs = np.quantile(draws, below), np.quantile(draws, below + share)
    shortest = int((highs - lows).argmin())
    return float(lows[shortest]) if shortest else span[0], float(highs[shortest])
