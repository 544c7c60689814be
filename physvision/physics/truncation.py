"""Rollouts in segments with no gradient from one to the next, computed in float64 for any dtype of the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from physvision.core import State


def truncated_rollout(
    run: Callable[[Tensor, Tensor, Tensor], Sequence[Any]],
    state: State,
    steps: int,
    controls: Tensor | None,
    nu: int,
    truncate: int | None,
) -> tuple[Tensor, Tensor, list[tuple[Tensor, ...]], list[int]]:
    """Simulate in segments, between which the gradient is cut.

    Args:
        run: Function from q, v and controls of a segment to all its q and v, the first included, and further results.
        state: Initial state.
        steps: Number of steps of the rollout.
        controls: Controls of all steps, (batch, steps, nu); None for zero.
        nu: Number of controls.
        truncate: Number of steps of a segment; None for a single segment.

    Returns:
        All q and v in the dtype of the state, the further results of each segment, and its first step.
    """
    length, dtype = truncate or steps, state.q.dtype
    q, v = state.q.double(), state.v.double()
    u = q.new_zeros(1, 1, nu).expand(state.batch, steps, nu) if controls is None else controls.double()
    positions, velocities, results, starts = [], [], [], list(range(0, steps, length))
    for start in starts:
        q, v, *result = run(q, v, u[:, start : start + length])
        first = 1 if positions else 0
        positions.append(q[:, first:])
        velocities.append(v[:, first:])
        results.append(tuple(result))
        q, v = q[:, -1].detach(), v[:, -1].detach()
    if len(starts) == 1:  # without a copy
        return positions[0].to(dtype), velocities[0].to(dtype), results, starts
    return torch.cat(positions, 1).to(dtype), torch.cat(velocities, 1).to(dtype), results, starts


def first_marked_step(starts: Sequence[int], marks: Sequence[Tensor]) -> Tensor:
    """First marked step of a rollout, −1 for none, from those of its segments, which count from their own starts."""
    first = marks[0]
    for start, step in zip(starts[1:], marks[1:], strict=True):
        first = torch.where((first < 0) & (step >= 0), step + start, first)
    return first.long()
