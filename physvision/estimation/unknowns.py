"""What is sought, by name: where each unknown may lie, where the search starts, what is known of it beforehand.

A search moves plain numbers z without bounds. An unknown says how they become values: a free one is z times its scale,
a positive one the exponential of z, a bounded one a sigmoid of z between its bounds. A step of size one in z is a
sensible step of any unknown, so that one search fits all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError, ShapeError

Values = Mapping[str, Tensor]
_LARGEST = 100.0  # logarithm of a positive unknown, so that no trial of a search overflows


@dataclass(frozen=True)
class Unknown:
    """One quantity that is sought: a number, or an array of numbers of one kind.

    Attributes:
        name: what it is called in values and reports.
        start: where the search begins; its shape is that of the unknown.
        low: it stays above; with `high` infinite and `low` zero it is positive, and sought by its logarithm.
        high: it stays below.
        scale: a sensible step of a free unknown; of others it follows from the bounds.
        deviation: standard deviation of `start` where that is itself a measurement, in the unknown's unit; None if it
            is only a guess.
        unit: SI.
        span: the values that are possible at all, by which it is judged whether data tell anything of it; the bounds
            if not given.
    """

    name: str
    start: float | Sequence[float] | Tensor
    low: float = -math.inf
    high: float = math.inf
    scale: float = 1.0
    deviation: float | None = None
    unit: str = ""
    span: tuple[float, float] | None = None
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        start = torch.as_tensor(self.start, dtype=torch.float64)
        object.__setattr__(self, "shape", tuple(start.shape))
        if not self.low < self.high or (math.isfinite(self.high) and not math.isfinite(self.low)):
            raise InputError(
                f"{self.name}: expected bounds low < high, or only a lower one, got {self.low}, {self.high}"
            )
        if not bool(((start > self.low) & (start < self.high)).all()):
            raise InputError(f"{self.name}: must start between {self.low:g} and {self.high:g}, got {start.tolist()}")

    @property
    def size(self) -> int:
        """How many numbers it is."""
        return math.prod(self.shape)

    def value(self, z: Tensor) -> Tensor:
        """The values that z stands for."""
        if math.isfinite(self.high):
            return self.low + (self.high - self.low) * torch.sigmoid(z)
        if math.isfinite(self.low):
            return self.low + torch.exp(z.clamp(-_LARGEST, _LARGEST))
        return self.scale * z

    def number(self, value: Tensor) -> Tensor:
        """The z that stands for `value`; the inverse of `value`."""
        if math.isfinite(self.high):
            return torch.logit((value - self.low) / (self.high - self.low))
        if math.isfinite(self.low):
            return torch.log(value - self.low)
        return value / self.scale

    def slope(self, z: Tensor) -> Tensor:
        """The derivative of the value by z."""
        if math.isfinite(self.high):
            share = torch.sigmoid(z)
            return (self.high - self.low) * share * (1 - share)
        return torch.exp(z) if math.isfinite(self.low) else torch.full_like(z, self.scale)


class Unknowns:
    """Several unknowns as one vector z."""

    def __init__(self, unknowns: Sequence[Unknown]) -> None:
        names = [unknown.name for unknown in unknowns]
        if not names or len(set(names)) != len(names):
            raise InputError(f"unknowns: expected some, each with a name of its own, got {names}")
        self.list = tuple(unknowns)
        self.sizes = [unknown.size for unknown in unknowns]
        self.size = sum(self.sizes)

    def __iter__(self) -> Iterator[Unknown]:
        return iter(self.list)

    @property
    def labels(self) -> list[str]:
        """A name for each number of z."""
        return [
            each.name if not each.shape else f"{each.name}[{k}]" for each in self.list for k in range(max(each.size, 0))
        ]

    def start(self, batch: int = 1) -> Float[Tensor, "batch numbers"]:
        """Where the search begins, `batch` times."""
        return self.numbers({each.name: each.start for each in self.list}).expand(batch, -1).clone()

    def numbers(self, values: Mapping[str, object]) -> Float[Tensor, "batch numbers"]:
        """The z of these values, each with or without a dimension for the batch."""
        parts = []
        for each in self.list:
            value = torch.as_tensor(values[each.name], dtype=torch.float64)
            if value.shape == each.shape:
                value = value.unsqueeze(0)
            if value.shape[1:] != each.shape:
                raise ShapeError(f"{each.name}: expected shape {each.shape} or one more in front, got {value.shape}")
            parts.append(each.number(value).flatten(1) if each.shape else each.number(value).unsqueeze(1))
        batch = max(part.shape[0] for part in parts)
        return torch.cat([part.expand(batch, -1) for part in parts], 1)

    def values(self, z: Float[Tensor, "batch numbers"]) -> dict[str, Tensor]:
        """The values of each unknown, (batch, …)."""
        parts = z.split(self.sizes, -1)
        return {
            each.name: each.value(part.reshape(*z.shape[:-1], *each.shape))
            for each, part in zip(self.list, parts, strict=True)
        }

    def flat(self, z: Float[Tensor, "*batch numbers"]) -> Float[Tensor, "*batch numbers"]:
        """All values as one vector, in the order of z."""
        return torch.cat([each.value(part) for each, part in zip(self.list, z.split(self.sizes, -1), strict=True)], -1)

    def slopes(self, z: Float[Tensor, "*batch numbers"]) -> Float[Tensor, "*batch numbers"]:
        """The derivative of each value by its z."""
        return torch.cat([each.slope(part) for each, part in zip(self.list, z.split(self.sizes, -1), strict=True)], -1)

    def known(self, z: Float[Tensor, "batch numbers"]) -> tuple[Tensor, Tensor]:
        """What is known beforehand, as residuals and their slopes: (value − start) / deviation, 0 where nothing is."""
        missed, slopes, at = torch.zeros_like(z), torch.zeros_like(z), 0
        for each in self.list:
            part = slice(at, at + each.size)
            at += each.size
            if each.deviation is not None:
                start = torch.as_tensor(each.start, dtype=z.dtype, device=z.device).reshape(-1)
                missed[..., part] = (each.value(z[..., part]) - start) / each.deviation
                slopes[..., part] = each.slope(z[..., part]) / each.deviation
        return missed, slopes
