"""Gradient descent: where there is a loss but no residuals, or where a network is learned beside physics."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from physvision.core.checks import check_count


def descend(
    loss: Callable[[], Tensor],
    optimizer: torch.optim.Optimizer,
    updates: int,
    *,
    fade: float | None = None,
    clip: float | None = None,
    after: Callable[[], bool | None] = lambda: None,
) -> None:
    """Take steps down a loss.

    Args:
        loss: evaluated anew for each step; one of a batch of searches that share nothing is summed.
        optimizer: torch's, of whatever the loss depends on: Adam, in most cases.
        updates: how many steps.
        fade: the share of the rate that is left at the end of a cosine; None for a rate that stays.
        clip: the largest norm of the gradient; None for any.
        after: called after each step; True ends the descent.
    """
    check_count("updates", updates)
    rates = [group["lr"] for group in optimizer.param_groups]
    shrink = None
    if fade is not None:
        shrink = torch.optim.lr_scheduler.LambdaLR(
            optimizer,
            lambda update: fade + (1 - fade) * (1 + torch.cos(torch.tensor(torch.pi * update / updates)).item()) / 2,
        )
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    for _ in range(updates):
        optimizer.zero_grad()
        loss().sum().backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        if shrink is not None:
            shrink.step()
        if after():
            break
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
