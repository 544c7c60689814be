"""Gymnasium's CartPole with a continuous force, written out for a batch of worlds: no engine of ours takes part.

Equations: Florian, *Correct equations for the dynamics of the cart-pole system* (2007), without friction, for a cart of
1 kg and a uniform pole of 0.1 kg and 1 m. Method: explicit Euler of first order, steps of 0.02 s. Use it as an
independent simulator that a learned model is tested on.

| Action | Meaning | Unit | Bounds |
|---|---|---|---|
| 0 | force on the cart | 10 N | −1 … 1 |

| State | Meaning | Unit | Bounds |
|---|---|---|---|
| 0 | position of the cart | m | −2.4 … 2.4 until termination |
| 1 | velocity of the cart | m/s | unbounded |
| 2 | angle of the pole from upright | rad | −0.209 … 0.209 until termination |
| 3 | angular velocity of the pole | rad/s | unbounded |

Start: uniform within 0.05 of zero. Termination: beyond 2.4 m or 12°.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

DT, MAX_FORCE_N = 0.02, 10.0
CART_MASS, POLE_MASS, POLE_HALF_LENGTH = 1.0, 0.1, 0.5  # kg, kg, m
MAX_POSITION_M, MAX_ANGLE_RAD = 2.4, 12 * math.pi / 180


def reset(batch: int, generator: torch.Generator) -> Float[Tensor, "batch 4"]:
    """Draw the initial states of episodes."""
    return 0.1 * torch.rand(batch, 4, generator=generator, dtype=torch.float64) - 0.05


def step(state: Float[Tensor, "batch 4"], action: Float[Tensor, " batch"]) -> Float[Tensor, "batch 4"]:
    """Simulate one step; actions are clipped to their bounds."""
    _, velocity, angle, rate = state.unbind(1)
    sine, cosine, mass = angle.sin(), angle.cos(), CART_MASS + POLE_MASS
    force_term = (MAX_FORCE_N * action.clamp(-1, 1) + POLE_MASS * POLE_HALF_LENGTH * rate.square() * sine) / mass
    angular_acceleration = (9.8 * sine - cosine * force_term) / (
        POLE_HALF_LENGTH * (4 / 3 - POLE_MASS * cosine.square() / mass)
    )
    acceleration = force_term - POLE_MASS * POLE_HALF_LENGTH * angular_acceleration * cosine / mass
    changes = torch.stack([velocity, acceleration, rate, angular_acceleration], 1)
    return state + DT * changes


def is_terminal(state: Float[Tensor, "batch 4"]) -> Bool[Tensor, " batch"]:
    """Return true for terminal states."""
    return (state[:, 0].abs() > MAX_POSITION_M) | (state[:, 2].abs() > MAX_ANGLE_RAD)
