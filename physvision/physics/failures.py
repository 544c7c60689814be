"""Warnings of worlds that fail, or whose motion a time step does not resolve."""

from __future__ import annotations

import warnings

import torch

from physvision.core import Status

_STACK_LEVEL = 5  # of the user's call of a rollout
_MAX_NAMED_WORLDS = 8


def warn_of_failures(status: Status, advice: str) -> bool:
    """Warn of failed worlds, otherwise of underresolved ones.

    Args:
        status: Status of a rollout on a CPU.
        advice: Advice for failed worlds, with a space after it; may be empty.

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
        message = (
            f"{len(failed)} of {worlds} worlds failed (world {names}; first at step "
            f"{int(status.first_failed_step[failed[0]])}, residual {float(status.residual[failed[0]]):.3g}). Other "
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
