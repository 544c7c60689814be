"""By how much what is predicted misses what was observed: the residuals that a fit makes small.

Both kinds have the same two methods: `residual(z)`, through which torch can differentiate, and `linearize(z)`, the
residuals with their derivatives by z. Their shape is (batch, samples, numbers), the batch being starts of one search,
or searches of their own where `seen` has a batch too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.estimation.unknowns import Unknowns, Values

Difference = Callable[[Tensor], Tensor]
Linear = tuple[Tensor, Tensor]  # residuals, and their derivatives, (batch, samples, numbers, unknowns)
Own = TypeVar("Own", bound="Residual")


class Residual(ABC):
    """Weighted differences between what is predicted from z and what was seen."""

    unknowns: Unknowns
    seen: Tensor
    weight: Tensor | float

    @abstractmethod
    def predicted(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """What is to be seen if z is the truth."""

    @abstractmethod
    def residual(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """The residuals; zero where nothing was seen."""

    @abstractmethod
    def linearize(self, z: Float[Tensor, "batch unknowns"]) -> Linear:
        """The residuals, and their derivatives, (batch, samples, numbers, unknowns)."""

    def resampled(self: Own, z: Float[Tensor, "one unknowns"], missed: Float[Tensor, "draws samples numbers"]) -> Own:
        """The same problem as if z were the truth and these the residuals; gaps stay."""
        off = missed / torch.as_tensor(self.weight, dtype=missed.dtype)
        seen = torch.where(torch.isfinite(self.seen), self.predicted(z).detach() - off, torch.nan)
        return replace(self, seen=seen)  # pyright: ignore[reportArgumentType]


def weighted_misses(predicted: Tensor, seen: Tensor, weight: Tensor, difference: Difference | None) -> Tensor:
    """Weighted differences; zero where `seen` is not a number."""
    there = torch.isfinite(seen)
    off = predicted - torch.where(there, seen, 0.0)
    off = off if difference is None else difference(off)
    return torch.where(there, weight * off, 0.0)


@dataclass(frozen=True)
class PointResidual(Residual):
    """Observations each of which depends on the unknowns alone, not on a motion.

    Attributes:
        unknowns: what is sought.
        predict: from values, (worlds, …), and the number of the sample that each world stands for, what is seen there,
            (worlds, numbers).
        seen: (samples, numbers), or with a batch in front; NaN where nothing was seen.
        weight: one over the standard deviation of what was seen, broadcast against it.
    """

    unknowns: Unknowns
    predict: Callable[[Values, Int[Tensor, " worlds"]], Float[Tensor, "worlds numbers"]]
    seen: Tensor
    weight: Tensor | float = 1.0

    def predicted(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """What is to be seen if z is the truth."""
        return self._predicted(z.repeat_interleave(self.seen.shape[-2], 0))

    def residual(self, z: Float[Tensor, "batch unknowns"]) -> Float[Tensor, "batch samples numbers"]:
        """The weighted differences."""
        return self._missed(self.predicted(z))

    def linearize(self, z: Float[Tensor, "batch unknowns"]) -> Linear:
        """Each sample in a world of its own: one backward pass for each number that is seen."""
        samples = self.seen.shape[-2]
        with torch.enable_grad():
            worlds = z.detach().repeat_interleave(samples, 0).requires_grad_()
            missed = self._missed(self._predicted(worlds))
            slopes = [
                torch.autograd.grad(missed[..., k].sum(), worlds, retain_graph=True)[0] for k in range(missed.shape[-1])
            ]
        return missed.detach(), torch.stack(slopes, 1).unflatten(0, (-1, samples))

    def _predicted(self, worlds: Tensor) -> Tensor:
        samples = self.seen.shape[-2]
        which = torch.arange(samples, device=worlds.device).repeat(len(worlds) // samples)
        return self.predict(self.unknowns.values(worlds), which).unflatten(0, (-1, samples))

    def _missed(self, predicted: Tensor) -> Tensor:
        return weighted_misses(predicted, self.seen, torch.as_tensor(self.weight, dtype=self.seen.dtype), None)
