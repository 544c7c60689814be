"""Named unknowns with bounds and priors, and their transformation to unconstrained numbers.

A search moves unconstrained numbers z. An unbounded unknown is z times its scale, a positive one the exponential of z,
and a bounded one a sigmoid of z between its bounds. A unit step of z is a reasonable step of every unknown, so that one
damping serves them all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from physvision.core import InputError, ShapeError

Values = Mapping[str, Tensor]
_MAX_LOG = 100.0  # logarithm of a positive unknown, so that no trial step overflows


@dataclass(frozen=True)
class Unknown:
    """One unknown quantity of a fit, a scalar or an array.

    Attributes:
        name: Name in values and reports.
        start: Initial guess; its shape is that of the unknown.
        low: Lower bound. With `high` infinite, the logarithm of the distance to it is searched.
        high: Upper bound; needs a finite lower one.
        scale: Reasonable step of an unbounded unknown, in its unit.
        std: Standard deviation of `start` where that is a measurement (a Gaussian prior), in the unknown's unit; None
            if it is only a guess.
        unit: SI unit, or pixels.
    """

    name: str
    start: float | Sequence[float] | Tensor
    low: float = -math.inf
    high: float = math.inf
    scale: float = 1.0
    std: float | None = None
    unit: str = ""
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        start = torch.as_tensor(self.start, dtype=torch.float64)
        object.__setattr__(self, "shape", tuple(start.shape))
        if not self.low < self.high or (math.isfinite(self.high) and not math.isfinite(self.low)):
            raise InputError(f"{self.name}: expected low < high, or only a lower one, got {self.low}, {self.high}")
        if not bool(((start > self.low) & (start < self.high)).all()):
            raise InputError(f"{self.name}: must start between {self.low:g} and {self.high:g}, got {start.tolist()}")

    @property
    def size(self) -> int:
        """Number of scalars in the unknown."""
        return math.prod(self.shape)

    def constrain(self, z: Tensor) -> Tensor:
        """Map unconstrained numbers to values within the bounds."""
        if math.isfinite(self.high):
            return self.low + (self.high - self.low) * torch.sigmoid(z)
        if math.isfinite(self.low):
            return self.low + torch.exp(z.clamp(-_MAX_LOG, _MAX_LOG))
        return self.scale * z

    def unconstrain(self, value: Tensor) -> Tensor:
        """Map values to unconstrained numbers; the inverse of `constrain`."""
        if math.isfinite(self.high):
            return torch.logit((value - self.low) / (self.high - self.low))
        if math.isfinite(self.low):
            return torch.log(value - self.low)
        return value / self.scale

    def derivative(self, z: Tensor) -> Tensor:
        """Return the derivative of the value by z."""
        if math.isfinite(self.high):
            fraction = torch.sigmoid(z)
            return (self.high - self.low) * fraction * (1 - fraction)
        return torch.exp(z) if math.isfinite(self.low) else torch.full_like(z, self.scale)


class Unknowns:
    """Several unknowns as one vector of unconstrained numbers z."""

    def __init__(self, unknowns: Sequence[Unknown]) -> None:
        names = [unknown.name for unknown in unknowns]
        if not names or len(set(names)) != len(names):
            raise InputError(f"unknowns: expected at least one, each with a unique name, got {names}")
        self._unknowns = tuple(unknowns)
        self._sizes = [unknown.size for unknown in unknowns]

    def __iter__(self) -> Iterator[Unknown]:
        return iter(self._unknowns)

    def start(self, batch: int = 1) -> Float[Tensor, "batch numbers"]:
        """Return the initial guesses as unconstrained numbers, repeated `batch` times."""
        return self.unconstrain({}).expand(batch, -1).clone()

    def unconstrain(self, values: Mapping[str, object]) -> Float[Tensor, "batch numbers"]:
        """Return the unconstrained numbers of values, which may have a leading batch dimension.

        Unknowns without a value have their initial guess.
        """
        parts = []
        for unknown in self:
            value = torch.as_tensor(values.get(unknown.name, unknown.start), dtype=torch.float64)
            if value.shape == unknown.shape:
                value = value.unsqueeze(0)
            if value.shape[1:] != unknown.shape:
                raise ShapeError(f"{unknown.name}: expected shape {unknown.shape}, perhaps batched, got {value.shape}")
            z = unknown.unconstrain(value)
            parts.append(z.flatten(1) if unknown.shape else z.unsqueeze(1))
        batch = max(part.shape[0] for part in parts)
        return torch.cat([part.expand(batch, -1) for part in parts], 1)

    def values(self, z: Float[Tensor, "batch numbers"]) -> dict[str, Tensor]:
        """Return the values of each unknown, (batch, …)."""
        parts = ((unknown, part.reshape(*z.shape[:-1], *unknown.shape)) for unknown, part in self.parts(z))
        return {unknown.name: unknown.constrain(part) for unknown, part in parts}

    def flat_values(self, z: Float[Tensor, "*batch numbers"]) -> Float[Tensor, "*batch numbers"]:
        """Return all values as one vector, in the order of z."""
        return torch.cat([unknown.constrain(part) for unknown, part in self.parts(z)], -1)

    def derivatives(self, z: Float[Tensor, "*batch numbers"]) -> Float[Tensor, "*batch numbers"]:
        """Return the derivative of each value by its z."""
        return torch.cat([unknown.derivative(part) for unknown, part in self.parts(z)], -1)

    def prior_residuals(self, z: Float[Tensor, "batch numbers"]) -> tuple[Tensor, Tensor]:
        """Return the priors' residuals (value − start) / std and their derivatives; zero without a prior."""
        residuals, derivatives = [], []
        for unknown, part in self.parts(z):
            residual, derivative = torch.zeros_like(part), torch.zeros_like(part)
            if unknown.std is not None:
                start = torch.as_tensor(unknown.start, dtype=z.dtype, device=z.device).reshape(-1)
                residual = (unknown.constrain(part) - start) / unknown.std
                derivative = unknown.derivative(part) / unknown.std
            residuals.append(residual)
            derivatives.append(derivative)
        return torch.cat(residuals, -1), torch.cat(derivatives, -1)

    def parts(self, z: Shaped[Tensor, "*batch numbers"]) -> Iterator[tuple[Unknown, Tensor]]:
        """Split numbers in the order of z, each unknown's beside it."""
        return zip(self._unknowns, z.split(self._sizes, -1), strict=True)
