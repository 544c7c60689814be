"""Loaders of batches that resume in the middle of an epoch, and the data module that keeps their position."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from lightning import LightningDataModule
from torch.utils.data import DataLoader

from physvision.datasets.sampling import ResumableSampler

Batch = TypeVar("Batch")


class ResumableLoader(DataLoader[Batch]):
    """DataLoader of a sampler's data set; its state is the epoch and the number of batches yielded in it.

    Batches that were yielded before an interruption are not read again.
    """

    sampler: ResumableSampler  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, sampler: ResumableSampler, batch_size: int | None, **options: Any) -> None:
        """Load the sampler's samples.

        Args:
            sampler: Sampler of a data set.
            batch_size: Number of samples of a batch; None if a sample is a batch.
            **options: Options of torch's `DataLoader`.
        """
        super().__init__(sampler.dataset, batch_size, sampler=sampler, **options)
        self._num_yielded = 0
        self._resumed: dict[str, int] | None = None

    def state_dict(self) -> dict[str, int]:
        """Epoch and number of batches yielded in it."""
        return {"epoch": self.sampler.epoch, "batches": self._num_yielded}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Resume the next iteration from `state`, if it is of the same epoch."""
        self._resumed = dict(state)

    def __iter__(self) -> Iterator[Batch]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Yield the batches of this epoch."""
        resumed, self._resumed = self._resumed, None
        self._num_yielded = resumed["batches"] if resumed and resumed["epoch"] == self.sampler.epoch else 0
        self.sampler.skipped = self._num_yielded * (self.batch_size or 1)
        for batch in super().__iter__():
            self._num_yielded += 1
            yield batch


class ResumableDataModule(LightningDataModule, Generic[Batch]):
    """Data module whose state, which checkpoints keep, is the position in the training samples."""

    def __init__(self) -> None:
        """Start at the first training sample."""
        super().__init__()
        self._training: ResumableLoader[Batch] | None = None
        self._position: dict[str, int] | None = None

    @abstractmethod
    def training_loader(self) -> ResumableLoader[Batch]:
        """Loader of the training samples."""

    def train_dataloader(self) -> ResumableLoader[Batch]:
        """Loader of the training samples, which begins where the run that is resumed was stopped."""
        self._training = self.training_loader()
        if self._position is not None:
            self._training.load_state_dict(self._position)
            self._position = None
        return self._training

    def state_dict(self) -> dict[str, Any]:
        """Position in the training samples, for a run that is resumed."""
        # Lightning restores the loader itself too late where the number of updates was asked for before.
        return {} if self._training is None else self._training.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume reading the training samples at a position."""
        if self._training is not None:
            self._training.load_state_dict(state_dict)
        else:
            self._position = state_dict
