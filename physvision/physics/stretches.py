"""A motion in stretches with no gradient from one to the next, computed in float64 whatever comes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from physvision.core import State


def in_stretches(
    run: Callable[[Tensor, Tensor, Tensor], Sequence[Any]],
    state: State,
    steps: int,
    controls: Tensor | None,
    nu: int,
    truncate: int | None,
) -> tuple[Tensor, Tensor, list[tuple[Tensor, ...]], list[int]]:
    """All q and v in the state's dtype; what else each stretch found; and the step that each starts at.

    Args:
        run: from q, v and controls of a stretch, all its q and v, the first included, and what else it finds.
        state: where the motion starts.
        steps: of the whole motion.
        controls: of all steps; zeros if not given.
        nu: number of controls.
        truncate: steps of a stretch; the whole motion is one if not given.
    """
    length, dtype = truncate or steps, state.q.dtype
    q, v = state.q.double(), state.v.double()
    u = q.new_zeros(state.batch, steps, nu) if controls is None else controls.double()
    places, rates, found, starts = [], [], [], list(range(0, steps, length))
    for start in starts:
        q, v, *more = run(q, v, u[:, start : start + length])
        first = 1 if places else 0
        places.append(q[:, first:])
        rates.append(v[:, first:])
        found.append(tuple(more))
        q, v = q[:, -1].detach(), v[:, -1].detach()
    if len(starts) == 1:  # without a copy
        return places[0].to(dtype), rates[0].to(dtype), found, starts
    return torch.cat(places, 1).to(dtype), torch.cat(rates, 1).to(dtype), found, starts


def first_step(starts: Sequence[int], named: Sequence[Tensor]) -> Tensor:
    """The first step of the motion that a stretch names, where they count from their own starts; −1 where none does."""
    first = torch.full_like(named[0], -1)
    for start, step in zip(starts, named, strict=True):
        first = torch.where((first < 0) & (step >= 0), step + start, first)
    return first.long()
