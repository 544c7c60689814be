"""In which order windows are read, and by which of many processes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch.utils.data import DistributedSampler

from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.datasets.recipe import check_number
from physvision.datasets.windows import Windows


class ShardSampler(DistributedSampler):
    """Gives each rank whole shards, anew in every epoch, so that a rank opens and caches only its own files.

    All ranks get equally many windows: those of the smallest share if `drop_last`, otherwise those of the largest one,
    the others read some of their own again. With fewer shards than ranks single windows are dealt out instead.

    Where labels are rare, a batch holds few of them or none, and what they teach is noise: `labeled_share` makes them
    come back within an epoch, whose length stays.
    """

    def __init__(
        self,
        windows: Windows,
        rank: int = 0,
        ranks: int = 1,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        labeled_share: float = 0.0,
    ) -> None:
        """Sample `windows` for process `rank` of `ranks`; of a shuffled epoch at least `labeled_share` has labels."""
        check_count("ranks", ranks)
        check_number("labeled_share", labeled_share, 0, 1)
        if labeled_share == 1 and not windows.labeled.any():
            raise InputError(
                "labeled_share: 1 leaves nothing to learn from, since no sample is labelled; raise label_fraction"
            )
        self.labeled_share = labeled_share
        super().__init__(windows, num_replicas=ranks, rank=rank, shuffle=shuffle, seed=seed, drop_last=drop_last)
        self.windows = windows
        # Of the next round, so many windows at its beginning were read before an interruption.
        self.skipped = 0
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

    def _with_labels(self, share: np.ndarray) -> np.ndarray:
        """As many windows, the last of those without labels replaced by labelled ones over again."""
        known = self.windows.labeled[share]
        wanted = round(self.labeled_share * len(share))
        if not known.any() or known.sum() >= wanted:
            return share
        return np.concatenate([np.resize(share[known], wanted), share[~known][: len(share) - wanted]])

    def __len__(self) -> int:
        """Number of windows of this rank."""
        return self._count

    def __iter__(self) -> Iterator[int]:
        """The windows of this rank in this epoch."""
        epoch = self.epoch if self.shuffle else 0
        shares = self._shares(np.random.default_rng((self.seed, epoch)))
        share = np.sort(shares[self.rank])
        if self.shuffle:
            random = np.random.default_rng((self.seed, epoch, self.rank))
            share = random.permutation(share)
            if self.labeled_share:
                share = random.permutation(self._with_labels(share))
        skipped, self.skipped = self.skipped, 0
        return iter(np.resize(share, self._count)[skipped:].tolist())
