"""Samplers that decide which rank reads which samples, in which order, with labels in every batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from torch.utils.data import Dataset, DistributedSampler

from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.datasets.windows import Windows, random_stream


class ResumableSampler(DistributedSampler):
    """Distributed sampler whose next epoch can begin after samples that were read before an interruption.

    Attributes:
        skipped: Number of samples of this rank that the next iteration leaves out at its beginning.
    """

    skipped: int = 0

    @abstractmethod
    def indices(self) -> list[int]:
        """Indices of this rank's samples in this epoch, in the order in which they are read."""

    def __iter__(self) -> Iterator[int]:
        skipped, self.skipped = self.skipped, 0
        return iter(self.indices()[skipped:])


class EndlessSampler(ResumableSampler):
    """Sampler of an endless data set, whose length is that of an epoch: each epoch takes the next samples, in order."""

    def __init__(self, dataset: Dataset, rank: int = 0, ranks: int = 1) -> None:
        """Sample for one process of a training.

        Args:
            dataset: Data set that has samples beyond its length.
            rank: Number of this process.
            ranks: Number of processes.
        """
        super().__init__(dataset, num_replicas=ranks, rank=rank, shuffle=False)

    def indices(self) -> list[int]:
        """Every so many-th sample of this epoch, by the number of processes."""
        start = self.epoch * self.total_size
        return list(range(start + self.rank, start + self.total_size, self.num_replicas))


class ShardSampler(ResumableSampler):
    """Distributed sampler that deals out whole shards and stratifies every rank's epoch by labels.

    Shards are reassigned in every epoch, so that a rank opens and caches only its own files. All ranks draw equally
    many windows, the largest rank's number; shorter ranks repeat windows. With fewer shards than ranks, single windows
    are dealt out. Where some windows are labeled and others are not, shards
    are dealt out by their unlabeled windows, and every rank gets equally many labeled ones.

    In a shuffled epoch labeled windows lie at equal distances. So any number of consecutive windows, and with it every
    batch of whatever size, has the epoch's fraction of labeled windows, rounded down or up.
    """

    def __init__(
        self,
        windows: Windows,
        rank: int = 0,
        ranks: int = 1,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        """Sample windows for one process of a training.

        Args:
            windows: Windows of a data set.
            rank: Number of this process.
            ranks: Number of processes.
            shuffle: If true, draw another order in every epoch.
            seed: Seed of the order; all ranks have the same.
        """
        check_count("ranks", ranks)
        if windows.labels.batch_fraction == 1 and not windows.labeled.any():
            raise InputError(
                "labels.batch_fraction: 1 leaves nothing to learn from, as no sample is labeled; raise labels.fraction"
            )
        super().__init__(windows, num_replicas=ranks, rank=rank, shuffle=shuffle, seed=seed)
        self.windows = windows
        labels = windows.labeled
        mixed = bool(labels.any() and not labels.all())
        shards = [
            np.concatenate([np.asarray(windows.of_trial(shard.first + index)) for index in range(shard.trials)])
            for shard in windows.dataset.shards
        ]
        # The stratum of labeled windows is empty where all windows are alike.
        self._shards = [shard[~labels[shard]] if mixed else shard for shard in shards]
        self._labeled = np.flatnonzero(labels) if mixed else np.empty(0, int)
        self._shard_of_labeled = np.repeat(
            np.arange(len(shards)), [labels[shard].sum() if mixed else 0 for shard in shards]
        )
        remaining, labeled = ([len(part) for part in stratum] for stratum in self._deal(epoch=0))
        self._labeled_count = max(labeled)
        self._count = max(remaining) + self._labeled_count
        if mixed and shuffle:
            self._labeled_count = max(self._labeled_count, round(windows.labels.batch_fraction * self._count))

    def _deal(self, epoch: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Windows of each rank in this epoch: whole shards, and equal parts of the stratum of labeled windows."""
        ranks, sizes = self.num_replicas, np.array([len(shard) for shard in self._shards])
        if len(sizes) < ranks:
            windows = np.concatenate(self._shards)
            return [windows[rank::ranks] for rank in range(ranks)], [
                self._labeled[rank::ranks] for rank in range(ranks)
            ]
        # The largest shard goes first, each to the rank that has the fewest windows.
        order = random_stream(self.seed, "shards", epoch).permutation(len(sizes))
        owners, totals = np.empty(len(sizes), int), np.zeros(ranks, int)
        for shard in order[np.argsort(-sizes[order], kind="stable")]:
            owners[shard] = totals.argmin()
            totals[owners[shard]] += sizes[shard]
        remaining = [
            np.concatenate([self._shards[shard] for shard in np.flatnonzero(owners == rank)]) for rank in range(ranks)
        ]
        by_owner = np.argsort(owners[self._shard_of_labeled], kind="stable")
        return remaining, np.array_split(self._labeled[by_owner], ranks)

    def __len__(self) -> int:
        """Number of windows that this rank draws in an epoch."""
        return self._count

    def indices(self) -> list[int]:
        """Windows of this rank in this epoch, in the order in which they are read."""
        epoch = self.epoch if self.shuffle else 0
        remaining, labeled = (stratum[self.rank] for stratum in self._deal(epoch))
        # Of fewer labeled windows than ranks, every rank reads all.
        labeled = labeled if len(labeled) else self._labeled
        if self.shuffle:
            random = random_stream(self.seed, "order", epoch, self.rank)
            remaining, labeled = random.permutation(remaining), random.permutation(labeled)
            windows = self._interleave(remaining, labeled, int(random.integers(self._count)))
        else:
            windows = np.resize(np.sort(np.concatenate([remaining, labeled])), self._count)
        return windows.tolist()

    def _interleave(self, remaining: np.ndarray, labeled: np.ndarray, offset: int) -> np.ndarray:
        """All windows of an epoch, the labeled ones at equal distances.

        Positions ⌊(k n + offset) / m⌋ of m labeled among n windows are those of a balanced word: any two runs of equal
        length hold the same number of labeled windows, or differ by one.
        """
        windows, positions = np.empty(self._count, int), np.arange(self._labeled_count) * self._count + offset
        is_labeled = np.zeros(self._count, bool)
        is_labeled[positions // max(self._labeled_count, 1)] = True
        windows[is_labeled] = np.resize(labeled, self._labeled_count)
        windows[~is_labeled] = np.resize(remaining, self._count - self._labeled_count)
        return windows
