"""Status of rollouts from what the kernels report of each world."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from physvision.core import Status


def rollout_status(failed: Tensor, underresolved: Tensor, error: Tensor) -> Status:
    """Status of a rollout without contact.

    Args:
        failed: First step at which a world stops being finite, −1 for none, (batch,).
        underresolved: First step that does not resolve the motion, −1 for none, (batch,).
        error: Largest integration error relative to the velocities, (batch,).
    """

    def make() -> Status:
        residual = torch.where(failed < 0, error, torch.inf)
        return Status(failed < 0, residual, torch.ones_like(failed), failed, first_underresolved_step=underresolved)

    return Status.deferred(make) if _is_known_negative(failed) and _is_known_negative(underresolved) else make()


def contact_status(steps: Tensor, worst: Tensor) -> Status:
    """Status of a rollout with contact.

    Args:
        steps: First failed step, then the columns `workspace.STEP_COLUMNS`, (batch, columns).
        worst: Columns `workspace.WORST_COLUMNS`, (batch, columns).
    """

    def make() -> Status:
        failed, grazing_step, fallback, regularized = steps.unbind(1)
        residual, penetration = worst.unbind(1)
        residual = torch.where(failed < 0, residual, torch.inf)
        details = {"first_grazing_step": grazing_step, "regularized_impacts": regularized, "penetration": penetration}
        return Status(failed < 0, residual, torch.ones_like(failed), failed, fallback, **details)

    return Status.deferred(make) if _is_known_negative(steps, 0) else make()


def _is_known_negative(steps: Tensor, *column: int) -> bool:
    """If true, no world names a step, known without waiting for a GPU."""
    if steps.is_cuda or is_functorch_wrapped_tensor(steps) or not len(steps):
        return False
    array = steps.numpy()[(slice(None), *column)]
    # Of few numbers Python finds the largest in a fifth of the time that numpy takes.
    return (max(array.tolist()) if len(array) < 32 else int(array.max())) < 0
