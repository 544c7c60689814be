"""Controls that bring a motion to a target at its end: with the least effort in a given time, or in the least time.

The end is asked for by penalties that grow until it is within the target's tolerance, each problem starting from the
solution of the one before. The least time is sought over whole numbers of steps, by halving: a plan for more steps,
played faster, is where the search for fewer begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.cost import Goal
from physvision.control.ilqr import bounded, ilqr
from physvision.core import InputError, State
from physvision.core.checks import check_count
from physvision.physics import Engine
from physvision.physics.feedback import Plan

# Weight of the squares by which the target is missed: at first, by what it grows, and how often that in all.
_LEAST, _GROWTH, _LARGEST = 0.1, 10.0, 1e8
_ROUNDS, _TOLERANCE = 60, 1e-7
# Of the squares of controls where only the time counts, as a share of what full controls would cost: a tie-breaker.
_IDLE = 1e-6


@dataclass(frozen=True)
class Target:
    """Where a motion is to end.

    Attributes:
        features: of n states: (n, features).
        wanted: what they should be.
        tolerance: by which each may miss it.
    """

    features: Callable[[State], Tensor]
    wanted: Float[Tensor, " features"]
    tolerance: float = 1e-3

    def missed(self, state: State) -> Float[Tensor, " batch"]:
        """By how much each state misses it."""
        return (self.features(state) - self.wanted).abs().amax(1).nan_to_num(torch.inf)


@dataclass(frozen=True)
class Arrival:
    """Plans that end near a target.

    Attributes:
        plan: of each world.
        missed: by how much it misses the target.
        reached: whether that is within the tolerance.
        effort: the sum of its squared controls times the step, ∫ |u|² dt.
    """

    plan: Plan
    missed: Float[Tensor, " batch"]
    reached: Bool[Tensor, " batch"]
    effort: Float[Tensor, " batch"]

    @property
    def seconds(self) -> float:
        """How long the plans take."""
        return self.plan.controls.shape[1] * (self.plan.trajectory.dt or 1.0)

    def best(self) -> int:
        """The world that reaches the target with the least effort; the nearest where none does."""
        kept = torch.where(self.reached, self.effort, torch.inf)
        return int(kept.argmin() if bool(self.reached.any()) else self.missed.argmin())


def least_effort(
    engine: Engine,
    state: State,
    controls: Float[Tensor, "batch steps nu"],
    target: Target,
    bounds: tuple[Any, Any] | None = None,
) -> Arrival:
    """Reach the target after as many steps as there are controls with the least ∫ |u|² dt.

    Args:
        engine: what moves.
        state: where each world starts.
        controls: that the search begins with; it finds the least that is near.
        target: to end at.
        bounds: of the controls, as in `ilqr`.
    """
    low, high = bounded(engine, bounds, controls)
    largest = torch.maximum(low.abs(), high.abs()).square().sum().clamp(max=1.0)
    # First by any means: while the target counts little the least effort is to stay.
    found = _arrive(engine, state, controls, target, bounds, _IDLE / (float(largest) * controls.shape[1]), _LEAST)
    spent = found.effort[found.best()]
    # Now to miss it by a tenth costs as much as that.
    return _arrive(engine, state, found.plan.controls, target, bounds, engine.dt, 100 * float(spent) + _LEAST)


def least_time(
    engine: Engine,
    state: State,
    controls: Float[Tensor, "batch steps nu"],
    target: Target,
    bounds: tuple[Any, Any],
) -> Arrival:
    """Reach the target in as few steps as are found, at most as many as there are controls.

    Args:
        engine: what moves.
        state: one world, where it starts.
        controls: that searches begin with, side by side.
        target: to end at.
        bounds: of the controls.

    Raises:
        InputError: no search reaches the target in all the steps.
    """
    check_count("controls, steps", controls.shape[1])
    low, high = bounded(engine, bounds, controls)
    idle = _IDLE / float(torch.maximum(low.abs(), high.abs()).square().sum())
    starts = State(state.q.expand(len(controls), -1), state.v.expand(len(controls), -1))
    found = _arrive(engine, starts, controls, target, bounds, idle / controls.shape[1], _LEAST)
    if not bool(found.reached.any()):
        raise InputError(
            f"controls: no plan of {controls.shape[1]} steps reaches the target (the nearest misses it by "
            f"{float(found.missed.min()):.2g}); give more steps, wider bounds, or other controls to begin with"
        )
    short, long = 0, controls.shape[1]
    while long - short > 1:
        middle = (short + long) // 2
        begin = _resampled(found, middle)
        tried = _arrive(engine, starts, begin, target, bounds, idle / middle, _LEAST)
        if bool(tried.reached.any()):
            found, long = tried, middle
        else:
            short = middle
    return found


def _arrive(
    engine: Engine,
    state: State,
    controls: Tensor,
    target: Target,
    bounds: tuple[Any, Any] | None,
    effort: float,
    weight: float,
) -> Arrival:
    """Make effort · Σ |u|² small with growing penalties at the end, until every world is there or none is left."""
    none, largest = torch.zeros_like(target.wanted), weight * _LARGEST
    while True:
        goal = Goal(target.features, target.wanted, none, effort, none + weight)
        plan, _ = ilqr(engine, state, controls, goal, bounds, rounds=_ROUNDS, tolerance=_TOLERANCE)
        controls, missed = plan.controls, target.missed(plan.trajectory.final)
        there = missed <= target.tolerance
        weight *= _GROWTH
        if bool(there.all()) or weight > largest:
            return Arrival(plan, missed, there, engine.dt * controls.square().sum((1, 2)))


def _resampled(found: Arrival, steps: int) -> Tensor:
    """The controls of the plans played in so many steps; those that failed take the best one's place, a little off."""
    old = found.plan.controls
    taken = torch.where(found.reached, torch.arange(len(old)), found.best())
    rows = (torch.arange(steps, dtype=torch.float64) + 0.5) * (old.shape[1] / steps)
    return old[taken][:, rows.long().clamp(max=old.shape[1] - 1)]
