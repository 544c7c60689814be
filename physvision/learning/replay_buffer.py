"""Replay buffer of transitions, in tensors that are allocated once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

Batch = dict[str, Tensor]


class ReplayBuffer:
    """A ring buffer of rows with several fields; the newest row replaces the oldest.

    Attributes:
        capacity: Largest number of rows.
        field_sizes: Length of each field; 0 for scalars.
        size: Current number of rows.
    """

    def __init__(
        self, capacity: int, field_sizes: Mapping[str, int], dtypes: Mapping[str, torch.dtype] | None = None
    ) -> None:
        """Allocate memory for all rows.

        Args:
            capacity: Largest number of rows.
            field_sizes: Length of each field; 0 for scalars.
            dtypes: Data types of the fields that are not in single precision.
        """
        self.capacity, self.field_sizes, self.size, self._write_index = capacity, field_sizes, 0, 0
        dtypes = dtypes or {}
        self._fields = {
            name: torch.empty((capacity, size) if size else (capacity,), dtype=dtypes.get(name, torch.float32))
            for name, size in field_sizes.items()
        }

    def add(self, batch: Mapping[str, Tensor]) -> None:
        """Append rows; if they exceed the capacity, only the last ones remain."""
        num_rows = len(next(iter(batch.values())))
        indices = (self._write_index + torch.arange(num_rows)[-self.capacity :]) % self.capacity
        for name, rows in self._fields.items():
            rows[indices] = batch[name][-self.capacity :].to(rows.dtype)
        self._write_index = (self._write_index + num_rows) % self.capacity
        self.size = min(self.size + num_rows, self.capacity)

    def sample(self, num_rows: int, generator: torch.Generator) -> Batch:
        """Draw rows with replacement."""
        return self.gather(self.sample_indices(num_rows, generator))

    def sample_indices(self, num_rows: int, generator: torch.Generator) -> Tensor:
        """Draw indices of rows with replacement."""
        return torch.randint(self.size, (num_rows,), generator=generator)

    def gather(self, indices: Tensor) -> Batch:
        """Return the rows at these indices."""
        return {name: rows.index_select(0, indices) for name, rows in self._fields.items()}

    def overwrite(self, indices: Tensor, batch: Mapping[str, Tensor]) -> None:
        """Replace the rows at these indices."""
        for name, rows in self._fields.items():
            rows[indices] = batch[name].to(rows.dtype)

    def contents(self) -> Batch:
        """Return all rows; they are not in order of insertion once the buffer is full."""
        return {name: rows[: self.size] for name, rows in self._fields.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return all rows and the index of the next one."""
        rows = {name: values.clone() for name, values in self.contents().items()}
        return {"rows": rows, "write_index": self._write_index}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        self._write_index = state["write_index"]
        for name, rows in state["rows"].items():
            self.size = len(rows)
            self._fields[name][: self.size] = rows
