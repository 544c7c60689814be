"""Loader of batches of windows that resumes in the middle of an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from physvision.datasets.sample import Sample
from physvision.datasets.sampling import ShardSampler


class ResumableLoader(DataLoader):
    """DataLoader of a `ShardSampler`'s windows; its state is the epoch and the number of batches yielded in it.

    Batches that were yielded before an interruption are not read again.
    """

    sampler: ShardSampler  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, sampler: ShardSampler, batch_size: int, **options: Any) -> None:
        """Load the sampler's windows; options are those of torch's `DataLoader`."""
        super().__init__(sampler.windows, batch_size, sampler=sampler, **options)
        self._num_yielded = 0
        self._resumed: dict[str, int] | None = None

    def state_dict(self) -> dict[str, int]:
        """Epoch and number of batches yielded in it."""
        return {"epoch": self.sampler.epoch, "batches": self._num_yielded}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Resume the next iteration from `state`, if it is of the same epoch."""
        self._resumed = dict(state)

    def __iter__(self) -> Iterator[Sample]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Yield the batches of this epoch."""
        resumed, self._resumed = self._resumed, None
        self._num_yielded = resumed["batches"] if resumed and resumed["epoch"] == self.sampler.epoch else 0
        assert self.batch_size is not None
        self.sampler.skipped = self._num_yielded * self.batch_size
        for batch in super().__iter__():
            self._num_yielded += 1
            yield batch
