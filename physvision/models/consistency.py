"""Maximum-likelihood state: the engine motion closest to positions observed in all frames.

An encoder reads positions from single frames and a velocity from their changes, with independent errors. Of all motions
of the engine, find the one that minimizes

    Σ_k |q_k − q̂_k|² + |v_last − v̂_last|² / trust²

with hats on observations, by Gauss–Newton in the state at the first frame, independently for each world.

The minimum is differentiated implicitly. Where Jᵀ r = 0, a small change of the observations moves x by (JᵀJ)⁻¹ Jᵀ times
it, up to second derivatives times r, which are small where one motion fits. One more iteration with constant J has the
same derivative, and is the one that autograd records.
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
    """Estimate the state at the last of consecutive frames from observations in all of them.

    Args:
        engine: Model of the motion; one step a frame.
        coordinates: Meaning of the positions: number of them, and which are angles.
        positions: Observed positions, two frames or more.
        velocity: Observed velocity at the last frame.
        trust: Velocity error, 1/s, as likely as a position error of one.

    Returns:
        The state; the observed one where the fitted motion is no closer to the observations than rest.
    """
    count, rates = coordinates.size, torch.zeros_like(positions)
    problem, start = motion_residual(engine, coordinates, positions, velocity, trust)
    # Of the velocities only the last one was observed; the weight of the others is zero.
    read, weight = torch.cat([positions, torch.cat([rates[:, :-1], velocity[:, None]], 1)], 2), problem.weight
    assert isinstance(weight, Tensor)
    with torch.no_grad():
        for _ in range(_ITERATIONS):
            missed, derivative = problem.linearize(start)
            start = start - _least_squares(derivative, missed)
        missed, derivative = problem.linearize(start)
        # A finite next step implies finite factors of the derivative below.
        following = _least_squares(derivative, missed)
        still = torch.cat([positions[:, -1:].expand_as(positions), rates], 2)
        rest = weight * torch.cat([coordinates.unwind(still - read), (still - read)[..., count:]], 2)[..., : 2 * count]
        closer = missed.square().sum((1, 2)) < rest.square().sum((1, 2))
        improved = closer & following.isfinite().all(1) & read.isfinite().flatten(1).all(1)
        final = problem.rollout(start).final
    # Its value is zero, its derivative that of the minimum.
    change = _least_squares(derivative[improved], weight * (read - read.detach())[improved])
    by_start = derivative[improved][:, -1] / weight[-1, :, None]
    state = read[:, -1].clone()
    state[improved] = torch.cat([final.q, final.v], 1)[improved] + (by_start @ change.unsqueeze(-1)).squeeze(-1)
    return State(coordinates.unwind(state[:, :count]), state[:, count:])


@torch.no_grad()
def motion_residual(
    engine: Engine,
    coordinates: Coordinates,
    positions: Float[Tensor, "batch times q"],
    velocity: Float[Tensor, "batch q"],
    trust: float,
) -> tuple[MotionResidual, Float[Tensor, "batch unknowns"]]:
    """Residuals of a motion against positions in all frames and the last velocity, and a first guess of its start.

    The arguments are those of `consistent_state`. The unknowns are q and v at the first frame; each sample has the
    errors of its positions, and then those of its velocities, which are zero but for the last.
    """
    count, steps = coordinates.size, positions.shape[1] - 1
    if steps < 1:
        raise InputError("consistency: one frame holds no motion; give two or more, or leave consistency out")
    read = torch.cat([positions, torch.zeros_like(positions)], 2)
    read[:, -1, count:] = velocity
    weight = torch.zeros_like(read[0])
    weight[:, :count], weight[-1, count:] = 1.0, 1.0 / trust
    problem = MotionResidual(
        engine,
        Unknowns([Unknown("state", [0.0] * (2 * count))]),
        lambda values: Setup(State(*values["state"].split(count, 1))),
        engine.dt * torch.arange(steps + 1),
        read,
        lambda setup: torch.cat([setup.state.q, setup.state.v], 1),
        weight,
        difference=lambda off: torch.cat([coordinates.unwind(off[..., :count]), off[..., count:]], -1),
    )
    slopes = coordinates.difference(positions[:, :-1], positions[:, 1:]) / engine.dt
    first = slopes[:, 0] if steps == 1 else 1.5 * slopes[:, 0] - 0.5 * slopes[:, 1]
    return problem, torch.cat([positions[:, 0], first], 1)


def _least_squares(
    matrix: Float[Tensor, "batch samples size unknowns"], vector: Float[Tensor, "batch samples size"]
) -> Float[Tensor, "batch unknowns"]:
    """Solve matrix · x = vector in the least-squares sense; non-finite worlds stay non-finite."""
    matrix, vector = matrix.flatten(1, 2), vector.flatten(1)
    return torch.linalg.solve_ex(matrix.mT @ matrix, (matrix.mT @ vector[..., None])[..., 0]).result
