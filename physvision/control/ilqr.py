"""Iterative linear-quadratic regulation: controls that make the cost of an engine's motion small, all worlds at once.

Each round linearises the motion about the present trajectory, solves the linear-quadratic problem within the bounds
(`kernels/riccati.py`), and follows its policy with shares of its change; a world keeps what lowers its cost most.
Where nothing does, the problem is damped. References: Li and Todorov, Iterative linear quadratic regulator design for
nonlinear biological movement systems, 2004; Tassa, Mansard and Todorov, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.control.cost import Cost
from physvision.control.feedback import Bounds, Plan, follow
from physvision.control.policy import improvement
from physvision.core import InputError, State, Trajectory
from physvision.core.checks import check_count
from physvision.physics import Engine
from physvision.physics.engine import Overrides

# Shares of a change that are tried together.
SHARES = (1.0, 0.6, 0.3, 0.1, 0.03)
# Damping of Q_uu: where it begins, by what it grows and falls, and beyond what nothing more is tried.
_FIRST, _GROWTH, _FALL, _LEAST, _LARGEST = 1e-6, 4.0, 3.0, 1e-12, 1e10
# A promise of less than this share of the cost is rounding.
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Progress:
    """How the search for controls went.

    Attributes:
        cost: of each world's controls.
        converged: whether the last round lowered it by less than the tolerance, or there was nothing to lower.
        rounds: how many lowered it.
        costs: before the first round, and after each.
    """

    cost: Float[Tensor, " batch"]
    converged: Bool[Tensor, " batch"]
    rounds: Int[Tensor, " batch"]
    costs: Float[Tensor, "rounds batch"]


@torch.no_grad()
def ilqr(
    engine: Engine,
    state: State,
    controls: Float[Tensor, "batch steps nu"],
    cost: Cost,
    bounds: Bounds | tuple[Any, Any] | None = None,
    *,
    rounds: int = 100,
    tolerance: float = 1e-6,
    properties: Overrides = None,
) -> tuple[Plan, Progress]:
    """Find controls that make the cost of the motion from `state` small, in each world.

    Args:
        engine: any that can be stepped.
        state: where each world starts.
        controls: to begin with; those outside the bounds are moved to them.
        cost: what is made small.
        bounds: the least and the largest controls, numbers or (nu,); none if not given.
        rounds: at most so many are tried.
        tolerance: a world is finished once a round lowers its cost by less than this share of it.
        properties: as in `Engine.rollout`.

    Raises:
        InputError: the bounds are in the wrong order, or leave nothing.
    """
    check_count("rounds", rounds)
    limits = _bounds(engine, bounds, controls)
    controls = controls.clamp(limits.low, limits.high)
    batch = state.batch
    trajectory = engine.rollout(state, controls.shape[1], controls, properties)
    value = cost.value(trajectory, controls)
    rho = torch.full_like(value, _FIRST, dtype=torch.float64)
    open_, costs = value.isfinite(), [value]
    lowered = torch.zeros(batch, dtype=torch.long, device=value.device)
    shares = torch.tensor(SHARES, dtype=controls.dtype, device=controls.device)
    known = None if properties is None else engine.checked(properties, batch).repeat(len(SHARES), engine.properties)
    for _ in range(rounds):
        if not bool(open_.any()):
            break
        change, gains, promise, found = improvement(engine, trajectory, controls, cost, limits, rho, properties)
        # Nothing to gain but rounding.
        open_ = open_ & ~(found & (-promise <= _ROUNDING * value))
        tried, used = follow(
            engine,
            state.repeat(len(SHARES)),
            Plan(controls, trajectory, gains).repeat(len(SHARES)),
            limits,
            (shares[None, :, None, None] * change[:, None]).flatten(0, 1),
            known,
        )
        values, best = cost.value(tried, used).unflatten(0, (batch, len(SHARES))).min(1)
        better = found & open_ & (values < value)
        row = torch.arange(batch, device=best.device) * len(SHARES) + best
        controls = torch.where(better[:, None, None], used[row], controls)
        trajectory = _chosen(better, tried, row, trajectory)
        rho = torch.where(better, (rho / _FALL).clamp_min(_LEAST), rho * _GROWTH)
        finished = better & (value - values <= tolerance * value)
        value = torch.where(better, values, value)
        lowered += better
        costs.append(value)
        open_ = open_ & ~finished & (rho <= _LARGEST)
    gains = improvement(engine, trajectory, controls, cost, limits, torch.zeros_like(rho), properties).gains
    converged = value.isfinite() & ~open_
    return Plan(controls, trajectory, gains), Progress(value, converged, lowered, torch.stack(costs))


def _chosen(better: Tensor, tried: Trajectory, row: Tensor, present: Trajectory) -> Trajectory:
    """Of each world the trajectory in its row of `tried` where that is better, the present one elsewhere."""
    taken = better[:, None, None]
    q, v = torch.where(taken, tried.q[row], present.q), torch.where(taken, tried.v[row], present.v)
    return Trajectory(q, v, None, present.dt)


def _bounds(engine: Engine, bounds: Bounds | tuple[Any, Any] | None, like: Tensor) -> Bounds:
    if isinstance(bounds, Bounds):
        bounds = bounds.low, bounds.high
    limits = (-torch.inf, torch.inf) if bounds is None else bounds
    low, high = (torch.as_tensor(each, dtype=like.dtype, device=like.device).expand(engine.nu) for each in limits)
    if not bool((low < high).all()):
        raise InputError(f"bounds: expected the lower ones first, got {low.tolist()} and {high.tolist()}")
    return Bounds(low, high)
