"""Residuals of predictions against observations, and their Jacobians.

Both kinds share two methods: `residual(z)`, which torch can differentiate, and `linearize(z)`, which returns residuals
and Jacobian. Residuals have shape (batch, samples, numbers). The batch holds several starts of one search, or separate
searches where `observed` has a batch dimension too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.estimation.unknowns import Unknowns, Values

Difference = Callable[[Tensor], Tensor]
Linearization = tuple[Tensor, Tensor]  # residuals and Jacobian, (batch, samples, numbers, unknowns)


class Residual(ABC):
    """Weighted differences between predictions from z and observations."""

    unknowns: Unknowns
    observed: Tensor
    weight: Tensor | float
    difference: Difference | None = None

    @abstractmethod
    def predictions(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """Return the predicted observations at z."""

    @abstractmethod
    def linearize(self, z: Float[Tensor, "batch unknowns"]) -> Linearization:
        """Return the residuals and their Jacobian, (batch, samples, numbers, unknowns)."""

    def residual(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """Return the weighted residuals at z; zero where the observation is NaN."""
        return self._weighted(self.predictions(z))

    def _weighted(self, predicted: Tensor) -> Tensor:
        """Return the weighted differences from the observations; zero where these are NaN."""
        valid = torch.isfinite(self.observed)
        error = predicted - torch.where(valid, self.observed, 0.0)
        error = error if self.difference is None else self.difference(error)
        weight = torch.as_tensor(self.weight, dtype=self.observed.dtype, device=self.observed.device)
        return torch.where(valid, weight * error, 0.0)


@dataclass(frozen=True)
class PointResidual(Residual):
    """Residuals of observations that depend on the unknowns alone, not on a simulated motion.

    Attributes:
        unknowns: Unknowns of the fit.
        predict: Function from values, (worlds, …), and each world's sample index to predictions, (worlds, numbers).
        observed: Observations, (samples, numbers), or with a leading batch dimension; NaN where missing.
        weight: Inverse standard deviation of the observations, broadcast against them.
    """

    unknowns: Unknowns
    predict: Callable[[Values, Int[Tensor, " worlds"]], Float[Tensor, "worlds numbers"]]
    observed: Tensor
    weight: Tensor | float = 1.0

    def predictions(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """Return the predicted observations at z."""
        return self._predict_worlds(z.repeat_interleave(self.observed.shape[-2], 0))

    def linearize(self, z: Float[Tensor, "batch unknowns"]) -> Linearization:
        """Return residuals and Jacobian: each sample in its own world, one backward pass for each observed number."""
        samples = self.observed.shape[-2]
        with torch.enable_grad():
            worlds = z.detach().repeat_interleave(samples, 0).requires_grad_()
            residuals = self._weighted(self._predict_worlds(worlds))
            sums = residuals.sum((0, 1))
            rows = [torch.autograd.grad(total, worlds, retain_graph=True)[0] for total in sums]
        return residuals.detach(), torch.stack(rows, 1).unflatten(0, (-1, samples))

    def _predict_worlds(self, worlds: Tensor) -> Tensor:
        samples = self.observed.shape[-2]
        index = torch.arange(samples, device=worlds.device).repeat(len(worlds) // samples)
        return self.predict(self.unknowns.values(worlds), index).unflatten(0, (-1, samples))
