"""Iterative linear-quadratic regulation: controls that make the cost of an engine's motion small, all worlds at once.

Each round linearises the motion about the present trajectory, solves the linear-quadratic problem within the bounds
(`kernels/riccati.py`), and follows its policy. A world keeps the whole change where that lowers its cost by half of
what was promised, or the share of it that lowers it most. Where none does, the problem is damped. References: Li and
Todorov, Iterative linear quadratic regulator design for nonlinear biological movement systems, 2004; Tassa, Mansard
and Todorov, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from physvision.control.cost import Objective
from physvision.control.improvement import Improvement, improvement
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
        bounds: the least and the largest controls, numbers or (nu,), the same for one that is held; none if not given.
        rounds: at most so many are tried.
        tolerance: a world is finished once a round lowers its cost by less than this share of it.
        properties: as in `Engine.rollout`.

    Raises:
        InputError: the bounds are in the wrong order.
    """
    check_count("rounds", rounds)
    limits = bounded(engine, bounds, controls)
    controls = controls.clamp(limits.low, limits.high)
    known = None if properties is None else engine.checked(properties, state.batch)
    trajectory = engine.rollout(state, controls.shape[1], controls, known)
    best = _Found(controls, trajectory, cost.value(trajectory, controls))
    search = _Search(engine, cost, limits, known)
    # Numbers of each world are kept in NumPy, which is faster with so few.
    value = best.costs()
    rho = np.full(state.batch, _FIRST)
    going, costs = np.isfinite(value), [best.value]
    lowered = np.zeros(state.batch, dtype=np.int64)
    for _ in range(rounds):
        if not going.any():
            break
        residuals = cost.residuals(engine, best.trajectory, best.controls)
        damping = torch.from_numpy(rho).to(best.value.device)
        step = improvement(engine, best.trajectory, best.controls, residuals, limits, damping, known)
        promise, found = step.promise.cpu().numpy(), step.found.cpu().numpy()
        # Nothing to gain but rounding.
        going = going & ~(found & (-promise <= _ROUNDING * value))
        tried = search.along(best, step, value, promise, going & found)
        reached = tried.costs()
        better = going & found & (reached < value)
        finished = better & (value - reached <= tolerance * value)
        best = best.where(better, tried)
        value = best.costs()
        rho = np.where(better, np.maximum(rho / _FALL, _LEAST), rho * _GROWTH)
        lowered += better
        costs.append(best.value)
        going = going & ~finished & (rho <= _LARGEST)
    residuals = cost.residuals(engine, best.trajectory, best.controls)
    damping = best.value.new_zeros(state.batch)
    gains = improvement(engine, best.trajectory, best.controls, residuals, limits, damping, known).gains
    converged, used = (torch.from_numpy(each).to(damping.device) for each in (np.isfinite(value) & ~going, lowered))
    return best.plan(gains), Progress(best.value, converged, used, torch.stack(costs))


class _Found(NamedTuple):
    """Controls, where they lead, and what that costs."""

    controls: Tensor
    trajectory: Trajectory
    value: Tensor

    def plan(self, gains: Tensor) -> Plan:
        """These controls with gains."""
        return Plan(self.controls, self.trajectory, gains)

    def costs(self) -> NDArray[Any]:
        """The cost of each world, in NumPy."""
        return self.value.cpu().numpy()

    def rows(self, worlds: Tensor) -> _Found:
        """Those of some worlds."""
        path = self.trajectory
        chosen = Trajectory(path.q[worlds], path.v[worlds], None, path.dt)
        return _Found(self.controls[worlds], chosen, self.value[worlds])

    def where(self, better: NDArray[np.bool_], other: _Found) -> _Found:
        """In each world the other where that is better, these elsewhere."""
        if better.all():
            return other
        flags = torch.from_numpy(better).to(self.value.device)
        taken, path, its = flags[:, None, None], self.trajectory, other.trajectory
        q, v = torch.where(taken, its.q, path.q), torch.where(taken, its.v, path.v)
        controls = torch.where(taken, other.controls, self.controls)
        return _Found(controls, Trajectory(q, v, None, path.dt), torch.where(flags, other.value, self.value))

    def put(self, worlds: Tensor, other: _Found) -> None:
        """Let others take the place of some worlds."""
        path, its = self.trajectory, other.trajectory
        self.controls[worlds], self.value[worlds] = other.controls, other.value
        path.q[worlds], path.v[worlds] = its.q, its.v


class _Search:
    """Tries shares of changes of controls: the whole one first, or all at once while most rounds needed less."""

    def __init__(self, engine: Engine, cost: Objective, limits: Bounds, properties: Properties | None) -> None:
        self._engine, self._cost, self._limits, self._properties = engine, cost, limits, properties
        self._together = False

    def along(
        self,
        best: _Found,
        step: Improvement,
        value: NDArray[Any],
        promise: NDArray[Any],
        wanted: NDArray[np.bool_],
    ) -> _Found:
        """What the whole change leads to, or the best share of it where that keeps less than half of its promise."""
        plan = best.plan(step.gains)
        shares = (1.0, *SHARES) if self._together else (1.0,)
        whole, found = self._tried(plan, step.change, shares, self._properties)
        short = wanted & ~(value - whole >= -0.5 * promise)
        together, self._together = self._together, 2 * short.sum() > wanted.sum()
        if together or not short.any():
            return found
        rows = torch.from_numpy(short.nonzero()[0]).to(best.value.device)
        known = None if self._properties is None else self._properties.chosen(rows, self._engine.properties)
        some = best.rows(rows).plan(step.gains[rows])
        _, shorter = self._tried(some, step.change[rows], SHARES, known)
        kept = found.rows(rows)
        found.put(rows, kept.where(shorter.costs() < kept.costs(), shorter))
        return found

    def _tried(
        self, plan: Plan, change: Tensor, shares: tuple[float, ...], known: Properties | None
    ) -> tuple[NDArray[Any], _Found]:
        """The costs of the first share, and the best of all shares in each world."""
        start = plan.trajectory.state(0)
        along = _tensor(shares, change.dtype, change.device)
        path, used = self._engine.follow(start, plan, self._limits, change, along, known)
        found = _Found(used, path, self._cost.value(path, used))
        if len(shares) == 1:
            return found.costs(), found
        values = found.value.unflatten(0, (start.batch, len(shares)))
        rows = torch.arange(start.batch, device=values.device) * len(shares) + values.argmin(1)
        return values[:, 0].cpu().numpy(), found.rows(rows)


@cache
def _tensor(shares: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(shares, dtype=dtype, device=device)


def bounded(engine: Engine, bounds: Bounds | tuple[Any, Any] | None, like: Tensor) -> Bounds:
    """The bounds of each control; none where they are not given."""
    limits = (-torch.inf, torch.inf) if bounds is None else bounds
    low, high = (torch.as_tensor(each, dtype=like.dtype, device=like.device).expand(engine.nu) for each in limits)
    if not bool((low <= high).all()):
        raise InputError(f"bounds: expected the lower ones first, got {low.tolist()} and {high.tolist()}")
    return Bounds(low, high)
