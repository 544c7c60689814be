"""List of the contacts of a batch of states."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class ContactList:
    """Contacts of each world, and of each step of a trajectory, in order of separation, padded to the same number.

    Attributes:
        present: If true, the entry is a contact; padding has -1 for rows and zero for other values.
        first: Row of the first shape, toward which the normal points, in the engine's geometry.
        second: Row of the second shape in the engine's geometry.
        first_body: Row of the first shape's body in `poses`; -1 for the world.
        second_body: Row of the second shape's body in `poses`; -1 for the world.
        separation: Separation of the shapes, m; negative where they penetrate.
        point: Contact point in the world, m.
        normal: Unit normal from the second shape to the first, in the world.
        friction: Coefficient of friction of the pair.
        impulse: Impulse on the first shape over a step that starts at the state, in the world, N s; over `dt` it is the
            mean force.
    """

    present: Bool[Tensor, "*batch contacts"]
    first: Int[Tensor, "*batch contacts"]
    second: Int[Tensor, "*batch contacts"]
    first_body: Int[Tensor, "*batch contacts"]
    second_body: Int[Tensor, "*batch contacts"]
    separation: Float[Tensor, "*batch contacts"]
    point: Float[Tensor, "*batch contacts 3"]
    normal: Float[Tensor, "*batch contacts 3"]
    friction: Float[Tensor, "*batch contacts"]
    impulse: Float[Tensor, "*batch contacts 3"]

    def unflatten(self, *sizes: int) -> ContactList:
        """Split the batch into dimensions of these sizes."""
        return ContactList(**{entry.name: getattr(self, entry.name).unflatten(0, sizes) for entry in fields(self)})


def select_contacts(
    max_separation: float,
    rows: dict[str, Int[Tensor, " pairs"]],
    values: dict[str, Float[Tensor, "batch pairs ..."]],
) -> ContactList:
    """Select the pairs that are close or exchange an impulse.

    Args:
        max_separation: Largest separation of a pair that is listed, m.
        rows: Rows of the shapes and bodies of all pairs, which the worlds share.
        values: Values of all pairs by the names of `ContactList`.
    """
    separation = values["separation"]
    present = (separation <= max_separation) | (values["impulse"] != 0).any(-1)
    order = torch.where(present, separation, torch.inf).argsort(-1)
    present = present.gather(1, order)
    count = int(present.sum(-1).max()) if present.numel() else 0
    present, order = present[:, :count], order[:, :count]

    def select(value: Tensor, padding: int) -> Tensor:
        index = order.reshape(*order.shape, *[1] * (value.dim() - 2)).expand(*order.shape, *value.shape[2:])
        mask = present.reshape(*present.shape, *[1] * (value.dim() - 2))
        return torch.where(mask, value.gather(1, index), padding)

    return ContactList(
        present=present,
        **{name: select(value.expand(len(separation), -1), -1) for name, value in rows.items()},
        **{name: select(value, 0) for name, value in values.items()},
    )
