"""Gymnasium's CartPole with a continuous force, many worlds at once, written out: nothing of it is an engine of ours.

Florian's equations, *Correct equations for the dynamics of the cart-pole system* (2007), without friction: a cart of
1 kg, a uniform pole of 0.1 kg and 1 m, explicit Euler steps of 0.02 s. A world ends beyond 2.4 m or 12 degrees.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

DT, FORCE = 0.02, 10.0
CART, POLE, HALF = 1.0, 0.1, 0.5
FARTHEST, STEEPEST = 2.4, 12 * math.pi / 180


def begin(batch: int, generator: torch.Generator) -> Float[Tensor, "batch 4"]:
    """Starts, uniform within 0.05 of zero: place, its rate, angle from upright, its rate."""
    return 0.1 * torch.rand(batch, 4, generator=generator, dtype=torch.float64) - 0.05


def step(state: Float[Tensor, "batch 4"], action: Float[Tensor, " batch"]) -> Float[Tensor, "batch 4"]:
    """The state after one step under a share of the force, in [−1, 1]."""
    x, speed, angle, rate = state.unbind(1)
    sine, cosine, mass = angle.sin(), angle.cos(), CART + POLE
    pushed = (FORCE * action.clamp(-1, 1) + POLE * HALF * rate.square() * sine) / mass
    turning = (9.8 * sine - cosine * pushed) / (HALF * (4 / 3 - POLE * cosine.square() / mass))
    sliding = pushed - POLE * HALF * turning * cosine / mass
    return torch.stack([x + DT * speed, speed + DT * sliding, angle + DT * rate, rate + DT * turning], 1)


def lost(state: Float[Tensor, "batch 4"]) -> Bool[Tensor, " batch"]:
    """Whether the world has ended."""
    return (state[:, 0].abs() > FARTHEST) | (state[:, 2].abs() > STEEPEST)
