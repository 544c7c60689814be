"""Model-predictive control: plan over a horizon from what is seen now, act for one step, and plan again from there.

Each plan starts from the last one, one step further. Where none can be made (what was seen is not a number, or the
model fails), a world goes on with its last good plan, and that is said.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.control.cost import Objective
from physvision.control.ilqr import bounded, ilqr
from physvision.core import ShapeError, State, Trajectory
from physvision.core.checks import check_count, check_shape
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.physics.feedback import Bounds


class Decision(NamedTuple):
    """What to do now, and what it rests on.

    Attributes:
        control: of this step, within the bounds.
        planned: whether it comes from a plan made now; otherwise from the last good one.
        age: steps since that plan was made; the horizon or more where there is none left, and the control is zero or
            what of the bounds is nearest to it.
        cost: of the plan.
        path: where the plan leads.
    """

    control: Float[Tensor, "batch nu"]
    planned: Bool[Tensor, " batch"]
    age: Int[Tensor, " batch"]
    cost: Float[Tensor, " batch"]
    path: Trajectory


class Mpc:
    """A controller that plans by `ilqr` before each step."""

    def __init__(
        self,
        engine: Engine,
        cost: Objective,
        horizon: int,
        bounds: tuple[Any, Any] | None = None,
        *,
        first: Float[Tensor, "batch steps nu"] | None = None,
        rounds: int = 8,
        tolerance: float = 1e-4,
        properties: Overrides = None,
    ) -> None:
        """Plan with a model of what is controlled.

        Args:
            engine: the model.
            cost: what is made small over the horizon.
            horizon: steps that a plan reaches ahead.
            bounds: of the controls, as in `ilqr`.
            first: controls that the first plan starts from, as many as the horizon; zero if not given.
            rounds: of `ilqr` for one plan.
            tolerance: of `ilqr`.
            properties: of the model, as in `Engine.rollout`; may be set between steps.
        """
        if first is not None and first.shape[1] != check_count("horizon", horizon):
            raise ShapeError(f"first: expected controls of {horizon} steps, got {first.shape[1]}")
        self.engine, self.cost, self.horizon, self.bounds = engine, cost, horizon, bounds
        self.rounds, self.tolerance, self.properties = rounds, tolerance, properties
        self._first, self._warned = first, False
        self.reset()

    def reset(self) -> None:
        """Forget all plans: the next step begins an episode."""
        self._controls: Tensor | None = None

    @torch.no_grad()
    def act(self, state: State) -> Decision:
        """The control for a step from what is seen now; worlds of a batch are controlled each on its own."""
        check_shape("state.q", state.q, (None, self.engine.nq))
        check_shape("state.v", state.v, (len(state.q), self.engine.nv))
        batch, like = state.batch, state.q
        low, high = limits = bounded(self.engine, self.bounds, like)
        if self._controls is None:
            self._begin(state, limits)
        elif len(self._controls) != batch:
            raise ShapeError(f"state: expected {len(self._controls)} worlds as before, got {batch}; reset() first")
        assert self._controls is not None
        seen = (state.q.isfinite().all(1) & state.v.isfinite().all(1)).unsqueeze(1)
        # What is not seen is not planned from; the engine gets numbers all the same.
        rest = self.engine.initial_state(batch, like.dtype)
        start = State(torch.where(seen, state.q, rest.q), torch.where(seen, state.v, rest.v))
        options = {"rounds": self.rounds, "tolerance": self.tolerance, "properties": self.properties}
        plan, progress = ilqr(self.engine, start, self._controls, self.cost, limits, **options)
        planned = seen[:, 0] & progress.cost.isfinite() & plan.controls.isfinite().all(2).all(1)
        self._keep(planned, plan.controls, plan.trajectory, progress.cost)
        decision = Decision(self._controls[:, 0].clone(), planned, self._age.clone(), self._cost.clone(), self._path)
        self._say(planned, seen[:, 0])
        idle = torch.zeros_like(self._controls[:, :1]).clamp(low, high)
        self._controls = torch.cat([self._controls[:, 1:], idle], 1)
        return decision

    def _begin(self, state: State, limits: Bounds) -> None:
        """The plan before the first one: the controls to begin with, and to stay."""
        batch, like = state.batch, state.q
        idle = like.new_zeros(batch, self.horizon, self.engine.nu)
        self._controls = (idle if self._first is None else self._first.to(like).expand_as(idle)).clamp(*limits)
        self._age = torch.full((batch,), self.horizon, device=like.device)
        self._cost = like.new_full((batch,), torch.inf)
        q, v = (each[:, None].repeat(1, self.horizon + 1, 1) for each in (like, state.v))
        self._path = Trajectory(q, v)

    def _keep(self, planned: Tensor, controls: Tensor, path: Trajectory, cost: Tensor) -> None:
        """The new plan where there is one; elsewhere the last one, a step older."""
        assert self._controls is not None
        taken, old = planned[:, None, None], self._path
        self._controls = torch.where(taken, controls, self._controls)
        q, v = torch.where(taken, path.q, old.q), torch.where(taken, path.v, old.v)
        self._path = Trajectory(q, v, None, self.engine.dt)
        self._cost = torch.where(planned, cost, self._cost)
        self._age = torch.where(planned, 0, self._age + 1)

    def _say(self, planned: Tensor, seen: Tensor) -> None:
        if self._warned or bool(planned.all()):
            return
        self._warned = True
        worlds = (~planned).nonzero().flatten().tolist()
        why = "the model failed on every plan" if bool(seen[worlds[0]]) else "what was seen of it is not finite"
        warnings.warn(
            f"{len(worlds)} of {len(planned)} worlds could not be planned for (world {worlds[0]}: {why}). They go on "
            "with their last good plan, and stand still once that ends. See Decision.planned and Decision.age; this is "
            "said once a controller.",
            RuntimeWarning,
            stacklevel=3,
        )
