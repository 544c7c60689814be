"""Failures of worlds whose numbers a dtype does not resolve, and warnings of all failures."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from physvision.core import Status, Trajectory

_STACK_LEVEL = 5  # of the user's call of a rollout
_MAX_NAMED_WORLDS = 8


def is_known_negative(steps: Tensor, *column: int) -> bool:
    """If true, no world names a step, known without waiting for a GPU."""
    if steps.is_cuda or is_functorch_wrapped_tensor(steps) or not len(steps):
        return False
    array = steps.numpy()[(slice(None), *column)]
    # Of few numbers Python finds the largest in a fifth of the time that numpy takes.
    return (max(array.tolist()) if len(array) < 32 else int(array.max())) < 0


def mark_unresolved(trajectory: Trajectory) -> Trajectory:
    """Mark worlds as failed from the first state on that moves further in a step than its dtype resolves.

    A displacement of 1/ε, m or rad, is rounded to a whole unit. From there on the states are NaN, as after every
    failure. There is no waiting for a GPU.
    """
    v = trajectory.v.detach()
    if trajectory.dt is None or not v.numel() or is_functorch_wrapped_tensor(v):
        return trajectory
    limit = 1.0 / (torch.finfo(v.dtype).eps * trajectory.dt)
    if not v.is_cuda:
        array = v.numpy()
        # No sum of squares: threads of BLAS that share it may wait for each other a thousand times as long. NaN fails.
        if -limit < array.min() and array.max() < limit:
            return trajectory
    fast = v.abs().amax(-1) >= limit
    if not v.is_cuda and not bool(fast.any()):
        return trajectory
    assert trajectory.status is not None
    status = trajectory.status.with_failures(torch.where(fast.any(1), fast.int().argmax(1), -1))
    failed = status.first_failed_step.unsqueeze(1)
    over = ((failed >= 0) & (torch.arange(v.shape[1], device=v.device) >= failed)).unsqueeze(2)
    q, v = (torch.where(over, torch.nan, values) for values in (trajectory.q, trajectory.v))
    return Trajectory(q, v, status, trajectory.dt)


class FailureTexts(NamedTuple):
    """Texts for the warning of failed worlds.

    Attributes:
        cause: Cause of the failure of the first of them; empty if nothing better than the status is known.
        advice: Advice, with a space after it; may be empty.
    """

    cause: str = ""
    advice: str = ""


def warn_of_failures(status: Status, explain: Callable[[], FailureTexts]) -> bool:
    """Warn of failed worlds, otherwise of underresolved ones.

    Args:
        status: Status of a rollout on a CPU.
        explain: Function that explains the failures, if there are any.

    Returns:
        True if there was a warning.
    """
    # For so few numbers numpy takes a fifth of torch's time.
    if status.converged.numpy().all() and (status.first_underresolved_step.numpy() < 0).all():
        return False
    failed, worlds = status.failed(), status.converged.numel()
    underresolved = torch.nonzero(status.first_underresolved_step >= 0).flatten().tolist()
    if failed:
        names = ", ".join(map(str, failed[:_MAX_NAMED_WORLDS])) + (" …" if len(failed) > _MAX_NAMED_WORLDS else "")
        residual = float(status.residual[failed[0]])
        default = f"residual {residual:.3g}" if math.isfinite(residual) else "where its motion is no longer finite"
        cause, advice = explain()
        message = (
            f"{len(failed)} of {worlds} worlds failed (world {names}; first at step "
            f"{int(status.first_failed_step[failed[0]])}, {cause or default}). Other "
            f"worlds are not affected. {advice}See trajectory.status; an engine warns once."
        )
    elif underresolved:
        first = underresolved[0]
        message = (
            f"{len(underresolved)} of {worlds} worlds move too fast for the time step and do not conserve energy "
            f"(world {first} from step {int(status.first_underresolved_step[first])} on). Reduce dt or add "
            "substeps. See trajectory.status.first_underresolved_step; an engine warns once."
        )
    else:
        return False
    warnings.warn(message, RuntimeWarning, stacklevel=_STACK_LEVEL)
    return True
