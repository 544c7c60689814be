"""Gradient descent for losses without residuals, or with a network learned beside physics."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from physvision.core.checks import check_count


def descend(
    loss: Callable[[], Tensor],
    optimizer: torch.optim.Optimizer,
    steps: int,
    *,
    final_lr_fraction: float | None = None,
    max_grad_norm: float | None = None,
    callback: Callable[[], bool | None] = lambda: None,
) -> None:
    """Minimize a loss with a torch optimizer.

    Args:
        loss: Function that evaluates the loss anew; a batch of independent searches is summed.
        optimizer: Optimizer of whatever the loss depends on, usually Adam. Its learning rates are restored at the end.
        steps: Number of optimizer steps.
        final_lr_fraction: Fraction of the learning rate that remains at the end of a cosine schedule; None for a
            constant rate.
        max_grad_norm: Norm to which the gradient is clipped; None for no clipping.
        callback: Function called after each step; returning True stops the descent.
    """
    check_count("steps", steps)
    rates = [group["lr"] for group in optimizer.param_groups]
    schedule = None
    if final_lr_fraction is not None:

        def lr_fraction(step: int) -> float:
            cosine = torch.cos(torch.tensor(torch.pi * step / steps)).item()
            return final_lr_fraction + (1 - final_lr_fraction) * (1 + cosine) / 2

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_fraction)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for _ in range(steps):
        optimizer.zero_grad()
        loss().sum().backward()
        if max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        if callback():
            break
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
