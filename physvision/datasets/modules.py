"""Lightning data module: `trainer.fit(model, datamodule=DataModule("data/billiards"))`."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from physvision.core import DataError
from physvision.core.checks import check_count
from physvision.datasets.dataset import Dataset
from physvision.datasets.folder import SPLITS
from physvision.datasets.loading import ResumableDataModule, ResumableLoader
from physvision.datasets.sample import Sample
from physvision.datasets.sampling import ShardSampler
from physvision.datasets.windows import ALL_LABELED, DEFAULT_SHAPE, LabelSettings, Windows, WindowShape


class DataModule(ResumableDataModule[Sample]):
    """Windows of a data set's splits, in batches.

    Batches are those of `Windows`. Frames stay bytes, a quarter of the size of floats; `brightness` converts them. In
    validation, test and prediction every sample is labeled.
    """

    def __init__(
        self,
        path: str,
        batch_size: int = 64,
        shape: WindowShape = DEFAULT_SHAPE,
        labels: LabelSettings = ALL_LABELED,
        given_properties: Sequence[str] = (),
        masks: bool = False,
        workers: int = 0,
        seed: int = 0,
        verify: bool = True,
        memory: bool = False,
    ) -> None:
        """Use the data set in the folder `path`.

        Args:
            path: Folder of the data set.
            batch_size: Number of samples of a batch and process.
            shape: Numbers of frames of a sample.
            labels: Choice of the labeled training trials, and their share of a batch.
            given_properties: Names of properties that samples without labels carry too, e.g. ["walls"].
            masks: If true, read the objects' masks.
            workers: Number of processes that load; 0 loads in the training process.
            seed: Seed of the order of the training samples.
            verify: If true, compare each shard with its checksum when it is first read.
            memory: If true, cache frames in memory, decompressed, once they are read.
        """
        super().__init__()
        check_count("batch_size", batch_size)
        check_count("workers", workers, minimum=0)
        self.path, self.batch_size, self.workers, self.seed, self.verify = path, batch_size, workers, seed, verify
        self.shape, self.labels, self.memory = shape, labels, memory
        self.given_properties, self.masks = tuple(given_properties), masks
        self._windows: dict[str, Windows] = {}

    def windows(self, split: str) -> Windows:
        """Windows of one split of the data set."""
        if split not in self._windows:
            dataset = Dataset(self.path, split, verify=self.verify, memory=self.memory)
            if len(dataset) == 0:
                raise DataError(
                    f"{self.path}: has no trials for {split}; generate it with at least 10 trials, or import a clip of "
                    "at least three trials (`import` with a smaller --trial_frames)"
                )
            labels = self.labels if split == "train" else ALL_LABELED
            self._windows[split] = Windows(dataset, self.shape, labels, self.given_properties, self.masks)
        return self._windows[split]

    @property
    def dt(self) -> float:
        """Time between two frames, s, once a split is open."""
        return next(iter(self._windows.values())).dataset.dt

    def setup(self, stage: str | None = None) -> None:
        """Open the splits that `stage` needs, so that a fault shows before anything runs."""
        needed = {"fit": ("train", "valid"), "validate": ("valid",), "test": ("test",)}
        for split in needed.get(stage or "", SPLITS):
            self.windows(split)

    def training_loader(self) -> ResumableLoader[Sample]:
        """Loader of the training split, shuffled; each process reads shards of its own."""
        return self._loader("train", shuffle=True)

    def val_dataloader(self) -> ResumableLoader[Sample]:
        """Loader of the validation split, in order."""
        return self._loader("valid", shuffle=False)

    def test_dataloader(self) -> ResumableLoader[Sample]:
        """Loader of the test split, in order."""
        return self._loader("test", shuffle=False)

    def _loader(self, split: str, shuffle: bool) -> ResumableLoader[Sample]:
        return ResumableLoader(
            ShardSampler(self.windows(split), *self._rank(), shuffle, self.seed),
            self.batch_size,
            num_workers=self.workers,
            persistent_workers=self.workers > 0,
            pin_memory=torch.cuda.is_available(),
        )

    def _rank(self) -> tuple[int, int]:
        """Rank of this process and number of processes, from Lightning or else torch.distributed."""
        if self.trainer is not None:
            return self.trainer.global_rank, self.trainer.world_size
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        return 0, 1
