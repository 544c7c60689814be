"""Motion under a feedback policy: u = clip(u̅ + K (x ⊖ x̅))."""

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
    """Bounds of the controls.

    Attributes:
        low: Smallest value of each control.
        high: Largest value of each control.
    """

    low: Float[Tensor, " nu"]
    high: Float[Tensor, " nu"]


@dataclass(frozen=True)
class FeedbackPolicy:
    """Feedforward controls along a trajectory, and the gains that correct them beside it.

    Attributes:
        feedforward: Controls of each step.
        trajectory: Trajectory along which they lead.
        gains: Change of each step's controls for displacements (q, then v) from the trajectory.
    """

    feedforward: Float[Tensor, "batch steps nu"]
    trajectory: Trajectory
    gains: Float[Tensor, "batch steps nu twice_nv"]

    def repeat(self, times: int) -> FeedbackPolicy:
        """Return copies of each world's policy, next to each other."""
        path = self.trajectory
        repeated = Trajectory(path.q.repeat_interleave(times, 0), path.v.repeat_interleave(times, 0), None, path.dt)
        feedforward, gains = (value.repeat_interleave(times, 0) for value in (self.feedforward, self.gains))
        return FeedbackPolicy(feedforward, repeated, gains)

    def control(
        self, engine: Engine, step: int, state: State, bounds: Bounds, change: Float[Tensor, "batch nu"] | None = None
    ) -> Float[Tensor, "batch nu"]:
        """Return the control of a step at a state, within the bounds; `change` is added to the feedforward control."""
        nominal = self.trajectory.state(step)
        displacement = torch.cat([engine.difference(nominal.q, state.q), state.v - nominal.v], 1)
        control = self.feedforward[:, step] + (self.gains[:, step] @ displacement[..., None])[..., 0]
        return (control if change is None else control + change).clamp(bounds.low, bounds.high)


@torch.no_grad()
def rollout_feedback(
    engine: Engine,
    start: State,
    policy: FeedbackPolicy,
    bounds: Bounds,
    change: Float[Tensor, "batch steps nu"],
    step_sizes: Float[Tensor, " step_sizes"],
    properties: Overrides,
) -> tuple[Trajectory, Float[Tensor, "repeated steps nu"]]:
    """Return the result of `Engine.rollout_feedback`, one step after the other."""
    count = len(step_sizes)
    overrides = None if properties is None else engine.checked(properties, start.batch).repeat(count, engine.properties)
    policy, states, controls = policy.repeat(count), [start.repeat(count)], []
    changes = (step_sizes[None, :, None, None] * change[:, None]).flatten(0, 1)
    for step in range(changes.shape[1]):
        controls.append(policy.control(engine, step, states[-1], bounds, changes[:, step]))
        states.append(engine.step(states[-1], controls[-1], overrides))
    q, v = torch.stack([state.q for state in states], 1), torch.stack([state.v for state in states], 1)
    return Trajectory(q, v, None, engine.dt), torch.stack(controls, 1)
