"""Point-to-point control: reach a target at the end of a motion with minimum effort or in minimum time.

The target is imposed by penalties that grow until it is reached within its tolerance, each problem starting from the
solution before. The minimum time is sought over whole numbers of steps, by bisection: a plan for more steps, played
faster, is the initial guess for fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.cost import Goal
from physvision.control.ilqr import ilqr
from physvision.core import InputError, State
from physvision.core.checks import check_count
from physvision.physics import Engine
from physvision.physics.feedback import ControlBounds, FeedbackPolicy, control_bounds


@dataclass(frozen=True)
class PointToPointSettings:
    """Settings of the penalty method, without units. Defaults were tuned on the swing-up tasks.

    Attributes:
        initial_penalty: Initial weight of the squared error at the end; a larger one reaches the target sooner, with
            more effort.
        penalty_growth: Factor of the weight from problem to problem; a larger one takes fewer and harder problems.
        max_penalty_ratio: Largest weight relative to the initial one; a larger one tries longer.
        iterations: Largest number of iLQR iterations for one weight.
        tolerance: Tolerance of iLQR for one weight.
        tie_breaker: Weight of squared controls where only the time counts, relative to the cost of full controls; a
            larger one is smoother and slower.
    """

    initial_penalty: float = 0.1
    penalty_growth: float = 10.0
    max_penalty_ratio: float = 1e8
    iterations: int = 60
    tolerance: float = 1e-7
    tie_breaker: float = 1e-6


_SETTINGS = PointToPointSettings()


@dataclass(frozen=True)
class Target:
    """A target for the final state of a motion.

    Attributes:
        features: Features (n, features) of n states.
        value: Target value of each feature.
        tolerance: Largest error of a feature, in its unit.
    """

    features: Callable[[State], Tensor]
    value: Float[Tensor, " features"]
    tolerance: float = 1e-3

    def error(self, state: State) -> Float[Tensor, " batch"]:
        """Return the largest error of a feature of each state."""
        return (self.features(state) - self.value).abs().amax(1).nan_to_num(torch.inf)


@dataclass(frozen=True)
class PointToPointPlan:
    """Plans that end near a target.

    Attributes:
        policy: Controls with feedback gains of each world.
        error: Largest error of a feature at the end.
        reached: If true, the error is within the tolerance.
        effort: Integral of the squared controls, ∫ |u|² dt.
    """

    policy: FeedbackPolicy
    error: Float[Tensor, " batch"]
    reached: Bool[Tensor, " batch"]
    effort: Float[Tensor, " batch"]

    @property
    def seconds(self) -> float:
        """Duration of the plans, in s."""
        return self.policy.feedforward.shape[1] * (self.policy.trajectory.dt or 1.0)

    def best(self) -> int:
        """Return the world that reaches the target with the least effort, or comes nearest if none reaches it."""
        effort = torch.where(self.reached, self.effort, torch.inf)
        return int(effort.argmin() if bool(self.reached.any()) else self.error.argmin())


def minimum_effort(
    engine: Engine,
    state: State,
    controls: Float[Tensor, "batch steps nu"],
    target: Target,
    bounds: ControlBounds = None,
    settings: PointToPointSettings = _SETTINGS,
) -> PointToPointPlan:
    """Reach the target after as many steps as there are controls, with minimum ∫ |u|² dt.

    Method: iLQR with a growing penalty on the final error; it finds a local minimum.

    Args:
        engine: Engine of the mechanism.
        state: Initial state of each world.
        controls: Initial controls of the search.
        target: Target of the final state.
        bounds: Bounds of the controls, as in `ilqr`.
        settings: Settings of the penalty method.
    """
    lower, upper = control_bounds(bounds, engine.nu, controls)
    max_squared_control = torch.maximum(lower.abs(), upper.abs()).square().sum().clamp(max=1.0)
    # First with a negligible control cost: with a small penalty, minimum effort would be not to move.
    tie_breaker = settings.tie_breaker / (float(max_squared_control) * controls.shape[1])
    plan = _minimize(engine, state, controls, target, bounds, tie_breaker, settings.initial_penalty, settings)
    effort = float(plan.effort[plan.best()])
    # With this penalty an error of 0.1 costs as much as that effort.
    penalty = 100 * effort + settings.initial_penalty
    return _minimize(engine, state, plan.policy.feedforward, target, bounds, engine.dt, penalty, settings)


def minimum_time(
    engine: Engine,
    state: State,
    controls: Float[Tensor, "batch steps nu"],
    target: Target,
    bounds: ControlBounds,
    settings: PointToPointSettings = _SETTINGS,
) -> PointToPointPlan:
    """Reach the target in as few steps as possible, at most as many as there are controls.

    Method: bisection over the number of steps, iLQR with a growing penalty on the final error for each.

    Args:
        engine: Engine of the mechanism.
        state: Initial state of one world.
        controls: Initial controls of searches, side by side.
        target: Target of the final state.
        bounds: Bounds of the controls.
        settings: Settings of the penalty method.

    Raises:
        InputError: No search reaches the target in all the steps.
    """
    check_count("controls, steps", controls.shape[1])
    lower, upper = control_bounds(bounds, engine.nu, controls)
    tie_breaker = settings.tie_breaker / float(torch.maximum(lower.abs(), upper.abs()).square().sum())
    starts = State(state.q.expand(len(controls), -1), state.v.expand(len(controls), -1))
    penalty, weight = settings.initial_penalty, tie_breaker / controls.shape[1]
    best = _minimize(engine, starts, controls, target, bounds, weight, penalty, settings)
    if not bool(best.reached.any()):
        raise InputError(
            f"controls: no plan of {controls.shape[1]} steps reaches the target (the nearest misses it by "
            f"{float(best.error.min()):.2g}); give more steps, wider bounds, or other initial controls"
        )
    short, long = 0, controls.shape[1]
    while long - short > 1:
        middle = (short + long) // 2
        initial = _resampled(best, middle)
        plan = _minimize(engine, starts, initial, target, bounds, tie_breaker / middle, penalty, settings)
        if bool(plan.reached.any()):
            best, long = plan, middle
        else:
            short = middle
    return best


def _minimize(
    engine: Engine,
    state: State,
    controls: Tensor,
    target: Target,
    bounds: ControlBounds,
    control_weight: float,
    penalty: float,
    settings: PointToPointSettings,
) -> PointToPointPlan:
    """Minimize control_weight · Σ |u|² with growing penalties, until every world is at the target or none are left."""
    zero, max_penalty = torch.zeros_like(target.value), penalty * settings.max_penalty_ratio
    iterations, tolerance = settings.iterations, settings.tolerance
    while True:
        goal = Goal(target.features, target.value, zero, control_weight, zero + penalty)
        policy, _ = ilqr(engine, state, controls, goal, bounds, iterations=iterations, tolerance=tolerance)
        controls, error = policy.feedforward, target.error(policy.trajectory.final)
        reached = error <= target.tolerance
        penalty *= settings.penalty_growth
        if bool(reached.all()) or penalty > max_penalty:
            return PointToPointPlan(policy, error, reached, engine.dt * controls.square().sum((1, 2)))


def _resampled(plan: PointToPointPlan, steps: int) -> Tensor:
    """Return the controls of the plans resampled to a number of steps; those of failed plans are the best ones."""
    controls = plan.policy.feedforward
    worlds = torch.where(plan.reached, torch.arange(len(controls)), plan.best())
    rows = (torch.arange(steps, dtype=torch.float64) + 0.5) * (controls.shape[1] / steps)
    return controls[worlds][:, rows.long().clamp(max=controls.shape[1] - 1)]
