"""One motion for all that was seen: the state whose past, as an engine moves it, comes closest to it.

An encoder reads positions from single frames and a velocity from how frames change; each errs by itself. Of all motions
of the engine through the frames the one is sought that minimises

    Σ_k |q_k − q̂_k|² + |v_last − v̂_last|² / trust²

with the hat on what was read, by Gauss–Newton in the state at the first frame, each world of the batch a search of its
own.

The minimum has a derivative too. Where Jᵀ r = 0, a small change of what was read moves x by (JᵀJ)⁻¹ Jᵀ times it, but
for second derivatives times r, which is small where one motion fits. That is what one more iteration would do with J
held, so such an iteration is what gradients pass.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Coordinates, InputError, State
from physvision.estimation import MotionResidual, Setup, Unknown, Unknowns
from physvision.physics.engine import Engine

_ITERATIONS = 3


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
    # A sample holds positions and velocities; of those only the last were read.
    rates = torch.zeros_like(positions)
    read = torch.cat([positions, torch.cat([rates[:, :-1], velocity[:, None]], 1)], 2)
    weight = torch.zeros_like(read[0])
    weight[:, :count], weight[-1, count:] = 1.0, 1.0 / trust

    problem = MotionResidual(
        engine,
        Unknowns([Unknown("state", [0.0] * (2 * count))]),
        lambda values: Setup(State(*values["state"].split(count, 1))),
        engine.dt * torch.arange(steps + 1),
        read.detach(),
        lambda seen: torch.cat([seen.state.q, seen.state.v], 1),
        weight,
        difference=lambda off: torch.cat([coordinates.unwind(off[..., :count]), off[..., count:]], -1),
    )
    with torch.no_grad():
        slopes = coordinates.difference(positions[:, :-1], positions[:, 1:]) / engine.dt
        first = slopes[:, 0] if steps == 1 else 1.5 * slopes[:, 0] - 0.5 * slopes[:, 1]
        start = torch.cat([positions[:, 0], first], 1)
        for _ in range(_ITERATIONS):
            missed, derivative = problem.linearize(start)
            start = start - _least(derivative, missed)
        missed, derivative = problem.linearize(start)
        # Where the next step is finite, so is all that the derivative below is made of.
        following = _least(derivative, missed)
        still = torch.cat([positions[:, -1:].expand_as(positions), rates], 2)
        rest = weight * torch.cat([coordinates.unwind(still - read), (still - read)[..., count:]], 2)[..., : 2 * count]
        closer = missed.square().sum((1, 2)) < rest.square().sum((1, 2))
        found = closer & following.isfinite().all(1) & read.isfinite().flatten(1).all(1)
        last = problem.rollout(start).final
    # Zero, with the derivative of the minimum.
    change = _least(derivative[found], weight * (read - read.detach())[found])
    by_start = derivative[found][:, -1] / weight[-1, :, None]
    state = read[:, -1].clone()
    state[found] = torch.cat([last.q, last.v], 1)[found] + (by_start @ change.unsqueeze(-1)).squeeze(-1)
    return State(coordinates.unwind(state[:, :count]), state[:, count:])


def _least(
    matrix: Float[Tensor, "batch samples size unknowns"], vector: Float[Tensor, "batch samples size"]
) -> Float[Tensor, "batch unknowns"]:
    """The least-squares solution of matrix · x = vector; what is not finite stays so, world by world."""
    matrix, vector = matrix.flatten(1, 2), vector.flatten(1)
    return torch.linalg.solve_ex(matrix.mT @ matrix, (matrix.mT @ vector[..., None])[..., 0]).result
