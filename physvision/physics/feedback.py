"""Motion under a feedback policy: u = clip(u̅ + K (x ⊖ x̅))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from physvision.core import Trajectory


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
        self,
        step: int,
        displacement: Float[Tensor, "batch twice_nv"],
        bounds: Bounds,
        change: Float[Tensor, "batch nu"],
    ) -> Float[Tensor, "batch nu"]:
        """Control of a step within the bounds.

        Args:
            step: Number of the step.
            displacement: Displacement (q, then v) of the state from the trajectory.
            bounds: Bounds of the controls.
            change: Change of the feedforward control.
        """
        control = self.feedforward[:, step] + (self.gains[:, step] @ displacement[..., None])[..., 0]
        return (control + change).clamp(bounds.low, bounds.high)
