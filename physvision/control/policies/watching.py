"""Gradients of single worlds that are no numbers: left out on the way back, and named."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor


class Watch:
    """Looks at the gradients of tensors with a row for each world while they are computed.

    Attributes:
        found: worlds and periods whose gradient was not finite, as they came up; such rows go on as zeros, so that no
            other world is touched.
    """

    def __init__(self) -> None:
        self.found: list[tuple[int, int]] = []

    def over(self, period: int, *tensors: Tensor) -> None:
        """Look at the gradients of these."""
        for each in tensors:
            if each.requires_grad:
                each.register_hook(partial(self._look, period))

    def _look(self, period: int, gradient: Tensor) -> Tensor:
        bad = ~gradient.isfinite().all(1)
        if bool(bad.any()):
            new = [(world, period) for world in torch.nonzero(bad).flatten().tolist()]
            self.found += [each for each in new if each not in self.found]
            gradient = torch.where(bad[:, None], 0.0, gradient)
        return gradient
