"""The contacts of states, as people read them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class ContactList:
    """What touches in each world, nearest first; padded to the same number for all.

    Attributes:
        present: where there is a contact; the rest is padding, with -1 for numbers and zero for the others.
        first: row in the engine's geometry of the shape that the normal points to.
        second: the same of the other shape.
        first_body: row of `poses`; -1 for the world.
        second_body: the same of the other shape's body.
        gap: how far they are apart, m; below zero where they overlap.
        point: where, in the world, m.
        normal: from the second shape to the first, in the world.
        friction: coefficient of the pair.
        impulse: what the first shape takes of the second over a step from here, in the world, N s.
    """

    present: Bool[Tensor, "batch contacts"]
    first: Int[Tensor, "batch contacts"]
    second: Int[Tensor, "batch contacts"]
    first_body: Int[Tensor, "batch contacts"]
    second_body: Int[Tensor, "batch contacts"]
    gap: Float[Tensor, "batch contacts"]
    point: Float[Tensor, "batch contacts 3"]
    normal: Float[Tensor, "batch contacts 3"]
    friction: Float[Tensor, "batch contacts"]
    impulse: Float[Tensor, "batch contacts 3"]


def nearest(
    within: float, rows: dict[str, Int[Tensor, " pairs"]], values: dict[str, Float[Tensor, "batch pairs ..."]]
) -> ContactList:
    """The pairs whose gap is at most `within`, or that push: their rows, which worlds share, and their values."""
    gap = values["gap"]
    present = (gap <= within) | (values["impulse"] != 0).any(-1)
    order = torch.where(present, gap, torch.inf).argsort(-1)
    present = present.gather(1, order)
    most = int(present.sum(-1).max()) if present.numel() else 0
    present, order = present[:, :most], order[:, :most]

    def chosen(value: Tensor, empty: int) -> Tensor:
        index = order.reshape(*order.shape, *[1] * (value.dim() - 2)).expand(*order.shape, *value.shape[2:])
        mask = present.reshape(*present.shape, *[1] * (value.dim() - 2))
        return torch.where(mask, value.gather(1, index), empty)

    return ContactList(
        present=present,
        **{name: chosen(value.expand(len(gap), -1), -1) for name, value in rows.items()},
        **{name: chosen(value, 0) for name, value in values.items()},
    )
