"""Motion under a plan that is held by feedback: u = clip(u̅ + K (x ⊖ x̅))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import State, Trajectory

if TYPE_CHECKING:
    from physvision.physics.engine import Engine, Overrides


class Bounds(NamedTuple):
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
def followed(
    engine: Engine,
    start: State,
    plan: Plan,
    bounds: Bounds,
    change: Float[Tensor, "batch steps nu"],
    shares: Float[Tensor, " shares"],
    properties: Overrides,
) -> tuple[Trajectory, Float[Tensor, "repeated steps nu"]]:
    """What `Engine.follow` returns, one step after the other."""
    count = len(shares)
    known = None if properties is None else engine.checked(properties, start.batch).repeat(count, engine.properties)
    plan, states, controls = plan.repeat(count), [start.repeat(count)], []
    changes = (shares[None, :, None, None] * change[:, None]).flatten(0, 1)
    for step in range(changes.shape[1]):
        controls.append(plan.control(engine, step, states[-1], bounds, changes[:, step]))
        states.append(engine.step(states[-1], controls[-1], known))
    q, v = torch.stack([each.q for each in states], 1), torch.stack([each.v for each in states], 1)
    return Trajectory(q, v, None, engine.dt), torch.stack(controls, 1)
