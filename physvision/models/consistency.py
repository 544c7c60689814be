"""One motion for all that was seen: the state whose past, as an engine moves it, comes closest to it.

An encoder reads positions from single frames and a velocity from how frames change; each errs by itself. Of all motions
of the engine through the frames the one is sought that minimises

    Σ_k |q_k − q̂_k|² + |v_last − v̂_last|² / trust²

with the hat on what was read, by Gauss–Newton in the state at the first frame: x ← x + (JᵀJ)⁻¹ Jᵀ r, r being the
weighted differences and J their derivative. J is had by moving each number of x a little in worlds of their own, which
any engine can do and which costs one rollout over the few steps between the frames.

The minimum has a derivative too. Where Jᵀ r = 0, a small change of what was read moves x by (JᵀJ)⁻¹ Jᵀ times it, but
for second derivatives times r, which is small where one motion fits. That is what one more iteration would do with J
held, so such an iteration is what gradients pass.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Coordinates, InputError, State
from physvision.physics.engine import Engine

_ITERATIONS = 3
_MOVE = 1e-3  # of each number of the state, for derivatives


def consistent_state(
    engine: Engine,
    coordinates: Coordinates,
    positions: Float[Tensor, "batch times q"],
    velocity: Float[Tensor, "batch q"],
    trust: float,
) -> State:
    """The state at the last of some consecutive moments, from what was read of each.

    Args:
        engine: how things move; a step of it leads from moment to moment.
        coordinates: what the positions are; velocities are their rates.
        positions: read at each moment, two or more.
        velocity: read at the last one.
        trust: an error of velocity of this size, in 1/s, is as likely as one of position of size one.

    Returns:
        the state, which is the read one where no motion was found that comes closer to what was read than rest does.
    """
    count, steps = coordinates.size, positions.shape[1] - 1
    if steps < 1:
        raise InputError("consistency: one frame holds no motion; give two or more, or leave consistency out")
    read = torch.cat([positions, velocity[:, None]], 1)
    weight = torch.ones(steps + 2, 1, dtype=read.dtype, device=read.device)
    weight[-1] = 1.0 / trust
    moves = _MOVE * torch.eye(2 * count, dtype=read.dtype, device=read.device)

    def passed(start: Tensor) -> tuple[Tensor, Tensor]:
        """What is passed on the way from `start`, in the order of `read`, and its derivative."""
        worlds = torch.cat([start[:, None], start[:, None] + moves], 1).flatten(0, 1)
        motion = engine.rollout(State(worlds[:, :count], worlds[:, count:]), steps)
        seen = torch.cat([motion.q, motion.v[:, -1:]], 1).unflatten(0, (-1, 1 + 2 * count))
        return seen[:, 0], (seen[:, 1:] - seen[:, :1]).movedim(1, -1) / _MOVE

    def missed(seen: Tensor) -> Tensor:
        """By how much what is passed misses what was read, weighted."""
        away = read.detach() - seen
        return weight * torch.cat([coordinates.unwind(away[:, :-1]), away[:, -1:]], 1)

    with torch.no_grad():
        slopes = coordinates.difference(positions[:, :-1], positions[:, 1:]) / engine.dt
        first = slopes[:, 0] if steps == 1 else 1.5 * slopes[:, 0] - 0.5 * slopes[:, 1]
        start = torch.cat([positions[:, 0], first], 1)
        seen, derivative = passed(start)
        for _ in range(_ITERATIONS):
            start = start + _least(weight[..., None] * derivative, missed(seen))
            seen, derivative = passed(start)
        # Where the next step is finite, so is all that the derivative below is made of.
        following = _least(weight[..., None] * derivative, missed(seen))
        still = torch.cat([positions[:, -1:].expand_as(positions), torch.zeros_like(velocity)[:, None]], 1)
        closer = missed(seen).square().sum((1, 2)) < missed(still).square().sum((1, 2))
        found = closer & following.isfinite().all(1)
        seen, derivative = seen[found], derivative[found]
    # Zero, with the derivative of the minimum.
    change = _least(weight[..., None] * derivative, weight * (read - read.detach())[found])
    state = read[:, -2:].clone()
    state[found] = seen[:, -2:] + (derivative[:, -2:] @ change[:, None, :, None])[..., 0]
    return State(coordinates.unwind(state[:, 0]), state[:, 1])


def _least(
    matrix: Float[Tensor, "batch rows size unknowns"], vector: Float[Tensor, "batch rows size"]
) -> Float[Tensor, "batch unknowns"]:
    """The least-squares solution of matrix · x = vector; what is not finite stays so, world by world."""
    matrix, vector = matrix.flatten(1, 2), vector.flatten(1)
    return torch.linalg.solve_ex(matrix.mT @ matrix, (matrix.mT @ vector[..., None])[..., 0]).result
