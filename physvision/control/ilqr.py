"""Iterative linear-quadratic regulation: controls that make the cost of an engine's motion small, all worlds at once.

Each round linearises the motion about the present trajectory, solves the linear-quadratic problem within the bounds
(`kernels/riccati.py`), and follows its policy. A world keeps the whole change where that lowers its cost by half of
what was promised, or the share of it that lowers it most. Where none does, the problem is damped. References: Li and
Todorov, Iterative linear quadratic regulator design for nonlinear biological movement systems, 2004; Tassa, Mansard
and Todorov, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.control.cost import Objective
from physvision.control.policy import Improvement, improvement
from physvision.core import InputError, State, Trajectory
from physvision.core.checks import check_count
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.physics.feedback import Bounds, Plan
from physvision.physics.properties import Properties

# Shorter changes that are tried together where the whole one keeps less than half of its promise.
SHARES = (0.6, 0.3, 0.1, 0.03)
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
    cost: Objective,
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
    limits = bounded(engine, bounds, controls)
    controls = controls.clamp(limits.low, limits.high)
    known = None if properties is None else engine.checked(properties, state.batch)
    trajectory = engine.rollout(state, controls.shape[1], controls, known)
    value = cost.value(trajectory, controls)
    search = _Search(engine, cost, limits, known)
    rho = torch.full_like(value, _FIRST, dtype=torch.float64)
    open_, costs = value.isfinite(), [value]
    lowered = torch.zeros(state.batch, dtype=torch.long, device=value.device)
    for _ in range(rounds):
        if not bool(open_.any()):
            break
        residuals = cost.residuals(engine, trajectory, controls)
        step = improvement(engine, trajectory, controls, residuals, limits, rho, known)
        # Nothing to gain but rounding.
        open_ = open_ & ~(step.found & (-step.promise <= _ROUNDING * value))
        tried = search.along(Plan(controls, trajectory, step.gains), step, value, open_ & step.found)
        better = open_ & step.found & (tried.value < value)
        finished = better & (value - tried.value <= tolerance * value)
        controls, trajectory, value = _Found(controls, trajectory, value).where(better, tried)
        rho = torch.where(better, (rho / _FALL).clamp_min(_LEAST), rho * _GROWTH)
        lowered += better
        costs.append(value)
        open_ = open_ & ~finished & (rho <= _LARGEST)
    residuals = cost.residuals(engine, trajectory, controls)
    gains = improvement(engine, trajectory, controls, residuals, limits, torch.zeros_like(rho), known).gains
    converged = value.isfinite() & ~open_
    return Plan(controls, trajectory, gains), Progress(value, converged, lowered, torch.stack(costs))


class _Found(NamedTuple):
    """Controls, where they lead, and what that costs."""

    controls: Tensor
    trajectory: Trajectory
    value: Tensor

    def where(self, better: Tensor, other: _Found) -> _Found:
        """In each world the other where that is better, these elsewhere."""
        if bool(better.all()):
            return other
        taken, path, its = better[:, None, None], self.trajectory, other.trajectory
        q, v = torch.where(taken, its.q, path.q), torch.where(taken, its.v, path.v)
        controls = torch.where(taken, other.controls, self.controls)
        return _Found(controls, Trajectory(q, v, None, path.dt), torch.where(better, other.value, self.value))


class _Search:
    """Tries shares of changes of controls: the whole one first, or all at once while most rounds needed less."""

    def __init__(self, engine: Engine, cost: Objective, limits: Bounds, properties: Properties | None) -> None:
        self._engine, self._cost, self._limits, self._properties = engine, cost, limits, properties
        self._together = False

    def along(self, plan: Plan, step: Improvement, value: Tensor, wanted: Tensor) -> _Found:
        """What the whole change leads to, or the best share of it where that keeps less than half of its promise."""
        start = plan.trajectory.state(0)
        if self._together:
            values, found = self._tried(start, plan, step.change, (1.0, *SHARES), self._properties)
            self._together = 2 * int((self._short(values[:, 0], step, value) & wanted).sum()) > int(wanted.sum())
            return found
        values, whole = self._tried(start, plan, step.change, (1.0,), self._properties)
        short = wanted & self._short(values[:, 0], step, value)
        rows = short.nonzero().flatten()
        self._together = 2 * len(rows) > int(wanted.sum())
        if not len(rows):
            return whole
        known = None if self._properties is None else self._properties.chosen(rows, self._engine.properties)
        some = Plan(plan.controls[rows], _rows_of(plan.trajectory, rows), plan.gains[rows])
        _, shorter = self._tried(State(start.q[rows], start.v[rows]), some, step.change[rows], SHARES, known)
        controls, path, values = whole
        best = _Found(controls[rows], _rows_of(path, rows), values[rows]).where(shorter.value < values[rows], shorter)
        controls[rows], path.q[rows], path.v[rows], values[rows] = (
            *(best.controls, best.trajectory.q, best.trajectory.v),
            best.value,
        )
        return whole

    def _short(self, values: Tensor, step: Improvement, value: Tensor) -> Tensor:
        """Where a change keeps less than half of its promise."""
        return ~(value - values >= -0.5 * step.promise)

    def _tried(
        self, start: State, plan: Plan, change: Tensor, shares: tuple[float, ...], known: Properties | None
    ) -> tuple[Tensor, _Found]:
        """The costs of all shares, (batch, shares), and the best of each world."""
        path, used = self._engine.follow(start, plan, self._limits, change, _shares(shares, change), known)
        values = self._cost.value(path, used)
        if len(shares) == 1:
            return values.unsqueeze(1), _Found(used, path, values)
        values = values.unflatten(0, (start.batch, len(shares)))
        least, best = values.min(1)
        row = torch.arange(start.batch, device=best.device) * len(shares) + best
        return values, _Found(used[row], _rows_of(path, row), least)


def _shares(shares: tuple[float, ...], like: Tensor) -> Tensor:
    return torch.tensor(shares, dtype=like.dtype, device=like.device)


def _rows_of(path: Trajectory, worlds: Tensor) -> Trajectory:
    return Trajectory(path.q[worlds], path.v[worlds], None, path.dt)


def bounded(engine: Engine, bounds: Bounds | tuple[Any, Any] | None, like: Tensor) -> Bounds:
    """The bounds of each control; none where they are not given."""
    limits = (-torch.inf, torch.inf) if bounds is None else bounds
    low, high = (torch.as_tensor(each, dtype=like.dtype, device=like.device).expand(engine.nu) for each in limits)
    if not bool((low < high).all()):
        raise InputError(f"bounds: expected the lower ones first, got {low.tolist()} and {high.tolist()}")
    return Bounds(low, high)
