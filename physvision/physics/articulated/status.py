"""Status of rollouts from what the kernels report of each world."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from physvision.core import Status
from physvision.physics.failures import is_known_negative


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

    return Status.deferred(make) if is_known_negative(failed) and is_known_negative(underresolved) else make()


def contact_status(steps: Tensor, worst: Tensor, first_energy_gain: Callable[[], Tensor] | None = None) -> Status:
    """Status of a rollout with contact.

    Args:
        steps: First failed step, then the columns `workspace.STEP_COLUMNS`, (batch, columns).
        worst: Columns `workspace.WORST_COLUMNS`, (batch, columns).
        first_energy_gain: Function that returns the first step after which the energy has grown, -1 for none, (batch,).
    """

    def make() -> Status:
        failed, grazing_step, fallback, regularized = steps.unbind(1)
        residual, penetration = worst.unbind(1)
        residual = torch.where(failed < 0, residual, torch.inf)
        details = {"first_grazing_step": grazing_step, "regularized_impacts": regularized, "penetration": penetration}
        status = Status(failed < 0, residual, torch.ones_like(failed), failed, fallback, **details)
        if first_energy_gain is None or is_functorch_wrapped_tensor(steps):
            return status
        return status.with_energy_check(first_energy_gain)

    return Status.deferred(make) if is_known_negative(steps, 0) else make()
