"""Losses of states, where their truth is known."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from physvision.core import Coordinates, Trajectory


def state_loss(
    found: Trajectory,
    true: Trajectory,
    coordinates: Coordinates,
    labeled: Bool[Tensor, " batch"] | None = None,
    *,
    velocity_weight: float = 1.0,
    position_scale: float = 1.0,
    velocity_scale: float = 1.0,
) -> Float[Tensor, ""]:
    """How far states are from the true ones: the mean over all samples, zero for those without labels.

    An error of a position counts as the square of its distance d over `position_scale`, one of a velocity as that of
    its amount over `velocity_scale`; where that is more than one, as Huber's loss does, which goes on in a straight
    line: a chaotic prediction that has lost its way, or a frame that is hard to read, must not drown the others. The
    distance of two angles is that of their points on the unit circle, which has no jump.

    Args:
        found: states of as many moments as `true` has.
        true: their truth; where it is not known it may be anything, NaN included.
        coordinates: what the positions are.
        labeled: samples whose truth is known; all if not given.
        velocity: weight of velocities beside positions.
        position_scale: an error of position of this size counts as one.
        velocity_scale: an error of velocity of this size counts as one.
    """
    q, v = found.q, found.v
    if labeled is not None:
        # NaN times zero is NaN: what is unknown is replaced before anything is computed.
        known = labeled[:, None, None]
        true = Trajectory(torch.where(known, true.q, q.detach()), torch.where(known, true.v, v.detach()))
    away, angles, straight = true.q - q, list(coordinates.angles), list(coordinates.straight)
    # The chord as 2 sin d/2, not the root of 2(1 − cos d), which rounds small angles away and has no slope at zero.
    distance = torch.cat([2 * torch.sin(0.5 * away[..., angles]), away[..., straight]], -1) / position_scale
    speed = (true.v - v) / velocity_scale
    return (_huber(distance) + velocity_weight * _huber(speed)).sum(-1).mean() / coordinates.size


def _huber(error: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
    """The square of an error below one, and a straight line beyond."""
    return 2 * functional.smooth_l1_loss(error, torch.zeros_like(error), reduction="none")
