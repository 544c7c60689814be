"""Motion under a plan that is held by feedback: u = clip(u̅ + K (x ⊖ x̅))."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.physics import Engine
from physvision.physics.engine import Overrides


@dataclass(frozen=True)
class Bounds:
    """The least and the largest value of each control, (nu,)."""

    low: Float[Tensor, " nu"]
    high: Float[Tensor, " nu"]


@dataclass(frozen=True)
class Plan:
    """Controls that lead along a trajectory, and how to correct them where the motion leaves it.

    Attributes:
        controls: of each step.
        trajectory: where they lead.
        gains: of each step, changes of the controls for displacements (q, then v) from the trajectory.
    """

    controls: Float[Tensor, "batch steps nu"]
    trajectory: Trajectory
    gains: Float[Tensor, "batch steps nu twice_nv"]

    def repeat(self, times: int) -> Plan:
        """The plan of each world `times` times, copies of one world next to each other."""
        path = self.trajectory
        repeated = Trajectory(path.q.repeat_interleave(times, 0), path.v.repeat_interleave(times, 0), None, path.dt)
        return Plan(self.controls.repeat_interleave(times, 0), repeated, self.gains.repeat_interleave(times, 0))

    def control(
        self, engine: Engine, step: int, state: State, bounds: Bounds, change: Float[Tensor, "batch nu"] | None = None
    ) -> Float[Tensor, "batch nu"]:
        """The control of a step from a state near the plan's, within the bounds; `change` is added to the plan's."""
        planned = self.trajectory.state(step)
        apart = torch.cat([engine.difference(planned.q, state.q), state.v - planned.v], 1)
        control = self.controls[:, step] + (self.gains[:, step] @ apart[..., None])[..., 0]
        return (control if change is None else control + change).clamp(bounds.low, bounds.high)


@torch.no_grad()
def follow(
    engine: Engine,
    start: State,
    plan: Plan,
    bounds: Bounds,
    changes: Float[Tensor, "batch steps nu"],
    properties: Overrides = None,
) -> tuple[Trajectory, Float[Tensor, "batch steps nu"]]:
    """The motion under a plan whose controls are changed, and the controls that it takes.

    Args:
        engine: whose motion it is.
        start: of each world.
        plan: what is followed.
        bounds: of the controls.
        changes: added to the plan's controls before feedback.
        properties: as in `Engine.rollout`.
    """
    states, controls = [start], []
    for step in range(changes.shape[1]):
        controls.append(plan.control(engine, step, states[-1], bounds, changes[:, step]))
        states.append(engine.step(states[-1], controls[-1], properties))
    q, v = torch.stack([each.q for each in states], 1), torch.stack([each.v for each in states], 1)
    return Trajectory(q, v, None, engine.dt), torch.stack(controls, 1)
