"""Physical parameters from what was fitted and what is known, with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from physvision.estimation.uncertainty import student
from physvision.identify.fitting import Fit
from physvision.identify.model import Case, Known

# Lengths, times and the like cannot be below zero, whatever a straight line through their deviation says.
_POSITIVE = ("length", "length_1", "length_2", "gravity", "speed", "acceleration", "stiffness", "period", "radius",
             "mass_ratio", "frequency")  # fmt: skip
_ANY_POSITIVE = (0.0, math.inf)
# The possible values of what a clip may say nothing about.
_SPANS = {"damping": (0.0, 1.0), "drag": (0.0, 0.2), "friction": (0.0, 1.0), "restitution": (0.0, 1.0)}


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
    sure = torch.tensor([_sure(name, case.known[name]) for name in names], dtype=torch.float64)
    unknowns = fit.problem.unknowns

    def every(z: Tensor, told: Tensor) -> dict[str, Tensor | str]:
        return fit.model.parameters(unknowns.values(z[None]), dict(zip(names, told, strict=True)))

    kept = [name for name, value in every(fit.z, told).items() if isinstance(value, Tensor)]

    def numbers(z: Tensor, told: Tensor) -> Tensor:
        found = every(z, told)
        # One number more than there are parameters: of some motions nothing can be told without a scale.
        return torch.stack([z.new_zeros(()), *(torch.as_tensor(found[name]).reshape(()) for name in kept)])

    by_z, by_told = torch.autograd.functional.jacobian(numbers, (fit.z, told))
    variance = torch.einsum("pi,ij,pj->p", by_z, fit.known.covariance, by_z) + (by_told * sure).square().sum(1)
    variances = dict(zip(kept, variance[1:], strict=True))
    found = {}
    for name, value in every(fit.z, told).items():
        unit = fit.model.units[name]
        if isinstance(value, str):
            found[name] = Parameter(None, unit, identifiable=False, reason=value)
            continue
        deviation = float(variances[name].clamp(min=0).sqrt())
        span = fit.model.spans.get(name, _span(name))
        found[name] = _judged(span, float(value), deviation, unit, fit.known.freedom)
    return found


def _sure(name: str, known: Known) -> float:
    """The deviation of what was told, as far as it can be compared with what was seen.

    A scale is never that of the plane of motion to more than a thousandth, nor a blurred disc's radius to a hundredth.
    """
    return max(known.deviation, {"scale": 1e-3, "radius": 1e-2}.get(name, 0.0) * known.value)


def _span(name: str) -> tuple[float, float]:
    """The possible values of a parameter of the kinds."""
    return _SPANS.get(name, _ANY_POSITIVE if name in _POSITIVE else (-math.inf, math.inf))


def _judged(span: tuple[float, float], value: float, deviation: float, unit: str, freedom: float) -> Parameter:
    value = max(value, span[0])
    likely = interval(span, value, deviation, 0.68, freedom)
    low, high = interval(span, value, deviation, 0.95, freedom)
    if span == _ANY_POSITIVE and not (value > 0 and high / max(low, 1e-300) < 4):
        return Parameter(None, unit, identifiable=False, reason="the motion hardly depends on it")
    if math.isfinite(span[1]) and min(high, span[1]) - max(low, span[0]) > 0.5 * (span[1] - span[0]):
        return Parameter(
            None, unit, identifiable=False, reason="the clip does not make its possible range half as wide"
        )
    return Parameter(value, unit, likely, (low, high))


def interval(
    span: tuple[float, float], value: float, deviation: float, share: float, freedom: float
) -> tuple[float, float]:
    """Student's interval; of the logarithm for what may be any positive number, else not below what is possible."""
    reach = student(0.5 + share / 2, freedom) * deviation
    if span == _ANY_POSITIVE and value > 0:
        factor = math.exp(min(reach / value, 50.0))
        return value / factor, value * factor
    return max(value - reach, span[0]), max(value + reach, span[0])
