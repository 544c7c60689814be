"""Motion under a feedback policy: u = clip(u̅ + K (x ⊖ x̅))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import DtypeError, InputError, ShapeError, Trajectory


class Bounds(NamedTuple):
    """Bounds of the controls.

    Attributes:
        low: Smallest value of each control.
        high: Largest value of each control.
    """

    low: Float[Tensor, " nu"]
    high: Float[Tensor, " nu"]


# Smallest and largest controls, numbers or (nu,), or both as a tensor (nu, 2), as an engine's `control_range` has them.
ControlBounds = Bounds | tuple[Any, Any] | Tensor | None


def control_bounds(bounds: ControlBounds, nu: int, like: Tensor) -> Bounds:
    """Return the bounds of each control, in the dtype and on the device of a tensor.

    Args:
        bounds: Smallest and largest controls, numbers or (nu,), or both as a tensor (nu, 2); None for no bounds.
        nu: Number of controls.
        like: Tensor whose dtype and device the bounds get.

    Raises:
        InputError: The bounds are no pair, or in the wrong order.
        DtypeError: A bound is neither a number nor a tensor.
        ShapeError: A bound has the wrong shape.
    """
    limits = (-torch.inf, torch.inf) if bounds is None else bounds
    if isinstance(limits, Tensor) and limits.shape == (nu, 2):
        limits = tuple(limits.unbind(1))
    if not isinstance(limits, tuple | list) or len(limits) != 2:
        raise InputError(
            f"bounds: expected a pair (low, high) of numbers or ({nu},) tensors, or the ({nu}, 2) tensor of an "
            f"engine's control_range, got {bounds!r}"
        )
    lower, upper = (_control_bound(limit, nu, like) for limit in limits)
    if not bool((lower <= upper).all()):
        raise InputError(f"bounds: expected the lower ones first, got {lower.tolist()} and {upper.tolist()}")
    return Bounds(lower, upper)


def _control_bound(limit: Any, nu: int, like: Tensor) -> Tensor:
    try:
        values = torch.as_tensor(limit, dtype=like.dtype, device=like.device)
    except (TypeError, ValueError, RuntimeError):
        raise DtypeError(f"bounds: expected numbers or ({nu},) tensors, got {limit!r}") from None
    if values.shape not in ((), (1,), (nu,)):
        raise ShapeError(f"bounds: expected a number or shape ({nu},), got {tuple(values.shape)}")
    return values.expand(nu)


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


class FeedbackSearch(NamedTuple):
    """Changes of a feedback policy that are tried at once.

    Attributes:
        policy: Feedforward controls, their trajectory and feedback gains.
        bounds: Bounds of the controls.
        change: Change of the feedforward controls.
        step_sizes: Fractions of the change, one for each copy of a world.
    """

    policy: FeedbackPolicy
    bounds: Bounds
    change: Float[Tensor, "batch steps nu"]
    step_sizes: Float[Tensor, " step_sizes"]
