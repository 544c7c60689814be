"""Detection of gradients that are not finite, world by world, during a backward pass."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor


class GradientMonitor:
    """Records and removes non-finite gradients of tensors with one row a world.

    Attributes:
        nonfinite: Pairs of world and step whose gradient was not finite, in the order of the backward pass. Such rows
            are replaced by zeros, so that no other world is affected.
    """

    def __init__(self) -> None:
        self.nonfinite: list[tuple[int, int]] = []

    def attach(self, step: int, *tensors: Tensor) -> None:
        """Monitor the gradients of the tensors of a step."""
        for tensor in tensors:
            if tensor.requires_grad:
                tensor.register_hook(partial(self._check, step))

    def _check(self, step: int, gradient: Tensor) -> Tensor:
        bad = ~gradient.isfinite().all(1)
        if bool(bad.any()):
            pairs = [(world, step) for world in torch.nonzero(bad).flatten().tolist()]
            self.nonfinite += [pair for pair in pairs if pair not in self.nonfinite]
            gradient = torch.where(bad[:, None], 0.0, gradient)
        return gradient
