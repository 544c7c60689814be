"""Optimizer, schedule and clipping of parameter groups with their own rates and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.optim import Adam
from torch.optim.lr_scheduler import LambdaLR

Groups = Mapping[str, list[nn.Parameter]]


@dataclass(frozen=True)
class OptimizationSettings:
    """Learning rates of Adam and limits of the gradient, for the encoder, the other networks and the physics.

    Attributes:
        learning_rate: Peak learning rate of the networks, with linear warm-up and cosine decay.
        encoder_learning_rate: Peak learning rate of the encoder, if not that of all networks: deep rectified layers
            without normalization die at learning rates that a decoder needs.
        physics_learning_rate: Peak learning rate of physical parameters.
        max_grad_norm: Largest norm of the encoder's gradient, and of the other networks'; None for no limit.
        max_physics_grad_norm: Largest norm of the physical parameters' gradient; None for no limit.
        warmup_updates: Number of updates until the peak learning rates.
    """

    learning_rate: float = 1e-3
    encoder_learning_rate: float | None = None
    physics_learning_rate: float = 1e-2
    max_grad_norm: float | None = 10.0
    max_physics_grad_norm: float | None = 1.0
    warmup_updates: int = 100

    @property
    def peak_rates(self) -> dict[str, float]:
        """Peak learning rates by group of parameters."""
        encoder = self.learning_rate if self.encoder_learning_rate is None else self.encoder_learning_rate
        return {"encoder": encoder, "networks": self.learning_rate, "physics": self.physics_learning_rate}

    @property
    def max_norms(self) -> dict[str, float | None]:
        """Largest norms of the gradient by group of parameters."""
        return {"encoder": self.max_grad_norm, "networks": self.max_grad_norm, "physics": self.max_physics_grad_norm}


def adam(groups: Groups, rates: Mapping[str, float], warmup_updates: int, updates: int) -> OptimizerLRScheduler:
    """Adam with linear warm-up and cosine decay, with a peak learning rate for each group that is not empty."""
    filled = {name: parameters for name, parameters in groups.items() if parameters}
    optimizer = Adam([{"params": parameters, "lr": rates[name]} for name, parameters in filled.items()], fused=True)

    def factor(step: int) -> float:
        risen = min(1.0, (step + 1) / warmup_updates) if warmup_updates else 1.0
        return risen * 0.5 * (1 + math.cos(math.pi * min(1.0, step / updates)))

    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": LambdaLR(optimizer, factor), "interval": "step"}}


def clip_gradients(groups: Groups, limits: Mapping[str, float | None]) -> dict[str, Tensor]:
    """Clip each group apart, and return the norms of those that have a gradient.

    One group that has gone astray must not silence the others, nor now and then amplify them. Adam measures a gradient
    by its recent size: were the decoder's divided by the encoder's norm, it would be tiny for a hundred updates and
    fifty times as large in the next, which is the death of rectified layers.
    """
    norms = {}
    for name, parameters in groups.items():
        gradients = [p.grad for p in parameters if p.grad is not None]
        if not gradients:
            continue
        norms[name] = norm = nn.utils.get_total_norm(gradients)
        if not bool(torch.isfinite(norm)):
            # No direction of such a gradient is worth following.
            for parameter in parameters:
                parameter.grad = None
        elif (limit := limits[name]) is not None:
            nn.utils.clip_grads_with_norm_(parameters, limit, norm)
    return norms
