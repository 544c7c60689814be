"""Model-predictive control: plan over a horizon from the current state, act for one step, and plan again.

Each plan starts from the last one, shifted by a step. If no plan can be made, since the state is not finite or the
model fails, a world continues with its last good plan, and a warning says so.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from physvision.control.cost import Objective
from physvision.control.ilqr import ilqr
from physvision.core import ShapeError, State, Trajectory
from physvision.core.checks import check_count, check_shape
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.physics.feedback import Bounds, ControlBounds, control_bounds


class Decision(NamedTuple):
    """Control of a step, and the plan that it comes from.

    Attributes:
        control: Control of this step, within the bounds.
        replanned: If true, the plan was made in this step; otherwise it is the last good one.
        plan_age: Steps since the plan was made; the horizon or more if none is left, and the control is zero or the
            bound nearest to it.
        cost: Cost of the plan.
        predicted: Predicted trajectory of the plan.
    """

    control: Float[Tensor, "batch nu"]
    replanned: Bool[Tensor, " batch"]
    plan_age: Int[Tensor, " batch"]
    cost: Float[Tensor, " batch"]
    predicted: Trajectory


class Mpc:
    """A controller that plans by `ilqr` before each step.

    Use it where a model is known and a plan takes less time than a step. It assumes that states are observed in full.

    Attributes:
        properties: Overrides of the model's properties, which may be set between steps.
    """

    def __init__(
        self,
        engine: Engine,
        cost: Objective,
        horizon: int,
        bounds: ControlBounds = None,
        *,
        initial_controls: Float[Tensor, "batch steps nu"] | None = None,
        iterations: int = 8,
        tolerance: float = 1e-4,
        properties: Overrides = None,
    ) -> None:
        """Set up the controller.

        Args:
            engine: Model of the mechanism.
            cost: Cost function over the horizon.
            horizon: Steps of a plan.
            bounds: Bounds of the controls, as in `ilqr`.
            initial_controls: Initial controls of the first plan, as many as the horizon; zero if None.
            iterations: Largest number of iterations of `ilqr` for one plan.
            tolerance: Tolerance of `ilqr`.
            properties: Overrides of the model's properties, as in `Engine.rollout`.
        """
        if initial_controls is not None and initial_controls.shape[1] != check_count("horizon", horizon):
            raise ShapeError(f"initial_controls: expected controls of {horizon} steps, got {initial_controls.shape[1]}")
        self.engine, self.cost, self.horizon, self.bounds = engine, cost, horizon, bounds
        self.iterations, self.tolerance, self.properties = iterations, tolerance, properties
        self._initial_controls, self._warned = initial_controls, False
        self.reset()

    def reset(self) -> None:
        """Discard all plans, before a new episode."""
        self._controls: Tensor | None = None

    @torch.no_grad()
    def act(self, state: State) -> Decision:
        """Return the control of a step from the observed state; worlds of a batch are independent."""
        check_shape("state.q", state.q, (None, self.engine.nq))
        check_shape("state.v", state.v, (len(state.q), self.engine.nv))
        batch, like = state.batch, state.q
        lower, upper = limits = control_bounds(self.bounds, self.engine.nu, like)
        if self._controls is None:
            self._start_plan(state, limits)
        elif len(self._controls) != batch:
            raise ShapeError(f"state: expected {len(self._controls)} worlds as before, got {batch}; reset() first")
        assert self._controls is not None
        observed = (state.q.isfinite().all(1) & state.v.isfinite().all(1)).unsqueeze(1)
        # A state that is not finite is not planned from; the engine gets finite numbers all the same.
        default = self.engine.initial_state(batch, like.dtype)
        start = State(torch.where(observed, state.q, default.q), torch.where(observed, state.v, default.v))
        options = {"iterations": self.iterations, "tolerance": self.tolerance, "properties": self.properties}
        plan, result = ilqr(self.engine, start, self._controls, self.cost, limits, **options)
        replanned = observed[:, 0] & result.cost.isfinite() & plan.feedforward.isfinite().all(2).all(1)
        self._update_plan(replanned, plan.feedforward, plan.trajectory, result.cost)
        control, plan_age, cost = self._controls[:, 0].clone(), self._plan_age.clone(), self._cost.clone()
        self._notify(replanned, observed[:, 0])
        idle = torch.zeros_like(self._controls[:, :1]).clamp(lower, upper)
        self._controls = torch.cat([self._controls[:, 1:], idle], 1)
        return Decision(control, replanned, plan_age, cost, self._predicted)

    def _start_plan(self, state: State, limits: Bounds) -> None:
        """Set the plan before the first one: the initial controls, and a state that stays."""
        batch, like = state.batch, state.q
        zero, initial = like.new_zeros(batch, self.horizon, self.engine.nu), self._initial_controls
        self._controls = (zero if initial is None else initial.to(like).expand_as(zero)).clamp(*limits)
        self._plan_age = torch.full((batch,), self.horizon, device=like.device)
        self._cost = like.new_full((batch,), torch.inf)
        q, v = (value[:, None].repeat(1, self.horizon + 1, 1) for value in (like, state.v))
        self._predicted = Trajectory(q, v)

    def _update_plan(self, replanned: Tensor, controls: Tensor, path: Trajectory, cost: Tensor) -> None:
        """Take the new plan where there is one; elsewhere the last one is a step older."""
        assert self._controls is not None
        mask, old = replanned[:, None, None], self._predicted
        self._controls = torch.where(mask, controls, self._controls)
        q, v = torch.where(mask, path.q, old.q), torch.where(mask, path.v, old.v)
        self._predicted = Trajectory(q, v, None, self.engine.dt)
        self._cost = torch.where(replanned, cost, self._cost)
        self._plan_age = torch.where(replanned, 0, self._plan_age + 1)

    def _notify(self, replanned: Tensor, observed: Tensor) -> None:
        """Warn once if some worlds have no new plan."""
        if self._warned or bool(replanned.all()):
            return
        self._warned = True
        worlds = (~replanned).nonzero().flatten().tolist()
        reason = "the model failed on every plan" if bool(observed[worlds[0]]) else "its observed state is not finite"
        warnings.warn(
            f"{len(worlds)} of {len(replanned)} worlds have no new plan (world {worlds[0]}: {reason}). They continue "
            "with their last good plan, and with zero controls once that ends. See Decision.replanned and "
            "Decision.plan_age; a controller warns once.",
            RuntimeWarning,
            stacklevel=3,
        )
