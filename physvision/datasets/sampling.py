"""In which order windows are read, and by which of many processes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch.utils.data import DistributedSampler, Sampler

from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.datasets.windows import Windows


class ShardSampler(DistributedSampler):
    """Gives each rank whole shards, anew in every epoch, so that a rank opens and caches only its own files.

    All ranks get equally many windows: those of the smallest share if `drop_last`, otherwise those of the largest one,
    the others read some of their own again. With fewer shards than ranks single windows are dealt out instead.
    """

    def __init__(
        self,
        windows: Windows,
        rank: int = 0,
        ranks: int = 1,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        """Sample `windows` for process `rank` of `ranks`."""
        check_count("ranks", ranks)
        super().__init__(windows, num_replicas=ranks, rank=rank, shuffle=shuffle, seed=seed, drop_last=drop_last)
        self.windows = windows
        dataset = windows.dataset
        trials = [range(shard.first, shard.first + shard.trials) for shard in dataset.shards]
        self._shards = [np.concatenate([np.asarray(windows.of_trial(trial)) for trial in held]) for held in trials]
        counts = [len(share) for share in self._shares(np.random.default_rng(seed))]
        self._count = min(counts) if drop_last else max(counts)

    def _shares(self, random: np.random.Generator) -> list[np.ndarray]:
        """The windows of each rank: shards by falling size, each to the rank that has the fewest windows."""
        ranks = self.num_replicas
        if len(self._shards) < ranks:
            everything = np.arange(len(self.windows))
            return [everything[rank::ranks] for rank in range(ranks)]
        order = random.permutation(len(self._shards))
        order = order[np.argsort([-len(self._shards[shard]) for shard in order], kind="stable")]
        shares: list[list[np.ndarray]] = [[] for _ in range(ranks)]
        sizes = np.zeros(ranks, int)
        for shard in order:
            least = int(sizes.argmin())
            shares[least].append(self._shards[shard])
            sizes[least] += len(self._shards[shard])
        return [np.concatenate(share) for share in shares]

    def __len__(self) -> int:
        """Number of windows of this rank."""
        return self._count

    def __iter__(self) -> Iterator[int]:
        """The windows of this rank in this epoch."""
        epoch = self.epoch if self.shuffle else 0
        shares = self._shares(np.random.default_rng((self.seed, epoch)))
        share = np.sort(shares[self.rank])
        if self.shuffle:
            share = np.random.default_rng((self.seed, epoch, self.rank)).permutation(share)
        return iter(np.resize(share, self._count).tolist())


class LabeledSampler(Sampler[int]):
    """Labelled windows alone, each about equally often, anew in every epoch."""

    def __init__(self, windows: Windows, count: int, rank: int = 0, seed: int = 0) -> None:
        """Draw `count` windows an epoch from the labelled ones, for process `rank`."""
        self.labeled = np.flatnonzero(windows.labeled)
        if not len(self.labeled):
            raise InputError("label_fraction: no sample is labelled, so there is none to learn from")
        self.count, self.rank, self.seed, self.epoch = check_count("count", count), rank, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """What Lightning calls before each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Number of windows of an epoch."""
        return self.count

    def __iter__(self) -> Iterator[int]:
        """The windows of this epoch."""
        random = np.random.default_rng((self.seed, self.epoch, self.rank))
        rounds = -(-self.count // len(self.labeled))
        order = np.concatenate([random.permutation(self.labeled) for _ in range(rounds)])
        return iter(order[: self.count].tolist())
