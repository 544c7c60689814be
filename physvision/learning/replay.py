"""What was seen, done and paid, in tensors that are made once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

Batch = dict[str, Tensor]


class Replay:
    """A ring of rows of several quantities; the newest takes the place of the oldest.

    Attributes:
        widths: how many numbers of each quantity; 0 for a single one.
        size: how many rows there are.
    """

    def __init__(
        self, capacity: int, widths: Mapping[str, int], dtypes: Mapping[str, torch.dtype] | None = None
    ) -> None:
        """Make room.

        Args:
            capacity: rows.
            widths: how many numbers of each quantity; 0 for a single one.
            dtypes: of quantities that are not in single precision.
        """
        self.capacity, self.widths, self.size, self._next = capacity, widths, 0, 0
        dtypes = dtypes or {}
        self._rows = {
            name: torch.empty((capacity, width) if width else (capacity,), dtype=dtypes.get(name, torch.float32))
            for name, width in widths.items()
        }

    def add(self, batch: Mapping[str, Tensor]) -> None:
        """Put rows in; of more than there is room for, the last ones."""
        count = len(next(iter(batch.values())))
        where = (self._next + torch.arange(count)[-self.capacity :]) % self.capacity
        for name, rows in self._rows.items():
            rows[where] = batch[name][-self.capacity :].to(rows.dtype)
        self._next = (self._next + count) % self.capacity
        self.size = min(self.size + count, self.capacity)

    def sample(self, count: int, generator: torch.Generator) -> Batch:
        """Rows drawn with replacement."""
        return self.take(self.draw(count, generator))

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Places of rows, drawn with replacement."""
        return torch.randint(self.size, (count,), generator=generator)

    def take(self, places: Tensor) -> Batch:
        """The rows at these places."""
        return {name: rows.index_select(0, places) for name, rows in self._rows.items()}

    def put(self, places: Tensor, batch: Mapping[str, Tensor]) -> None:
        """Have these rows at these places, where there were others."""
        for name, rows in self._rows.items():
            rows[places] = batch[name].to(rows.dtype)

    def all(self) -> Batch:
        """All rows there are, in no order once the ring is full."""
        return {name: rows[: self.size] for name, rows in self._rows.items()}

    def state_dict(self) -> dict[str, Any]:
        """The rows there are, and where the next one goes."""
        return {"rows": {name: rows.clone() for name, rows in self.all().items()}, "next": self._next}

    def load_state_dict(self, kept: dict[str, Any]) -> None:
        """Take the rows back."""
        self._next = kept["next"]
        for name, rows in kept["rows"].items():
            self.size = len(rows)
            self._rows[name][: self.size] = rows
