"""Losses between predicted and labeled states."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from physvision.core import Coordinates, Trajectory


def state_loss(
    predicted: Trajectory,
    true: Trajectory,
    coordinates: Coordinates,
    labeled: Bool[Tensor, " batch"] | None = None,
    *,
    velocity_weight: float = 1.0,
    position_scale: float = 1.0,
    velocity_scale: float = 1.0,
) -> Float[Tensor, ""]:
    """Compute the mean Huber-like error of states over all samples, zero for those without labels.

    Position errors are divided by `position_scale`, velocity errors by `velocity_scale`, and squared; above one they
    count linearly, as in Huber's loss, so that diverged predictions do not dominate. The distance of two angles is the
    chord between their points on the unit circle, which is continuous.

    Args:
        predicted: States at the same times as `true`.
        true: Labels; unlabeled samples may hold anything, NaN included.
        coordinates: Meaning of the positions: number of them, and which are angles.
        labeled: Samples with labels; all if not given.
        velocity_weight: Weight of velocity errors beside position errors.
        position_scale: Position error that counts as one.
        velocity_scale: Velocity error that counts as one.
    """
    q, v = predicted.q, predicted.v
    if labeled is not None:
        # NaN times zero is NaN, so unknown states are replaced first.
        mask = labeled[:, None, None]
        true = Trajectory(torch.where(mask, true.q, q.detach()), torch.where(mask, true.v, v.detach()))
    error, angles, straight = true.q - q, list(coordinates.angles), list(coordinates.straight)
    # The chord as 2 sin d/2, not the root of 2(1 − cos d), which rounds small angles away and has no slope at zero.
    distance = torch.cat([2 * torch.sin(0.5 * error[..., angles]), error[..., straight]], -1) / position_scale
    speed = (true.v - v) / velocity_scale
    return (_huber(distance) + velocity_weight * _huber(speed)).sum(-1).mean() / coordinates.size


def _huber(error: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
    """Compute the square of an error below one, and a straight line beyond."""
    return 2 * functional.smooth_l1_loss(error, torch.zeros_like(error), reduction="none")
