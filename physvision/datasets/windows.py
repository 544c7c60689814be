"""Samples to learn from: some frames in, frames some time later out, with or without the states behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.datasets.dataset import Dataset
from physvision.datasets.recipe import check_number


@dataclass(frozen=True)
class WindowShape:
    """Which frames make a sample.

    Attributes:
        frames_in: consecutive frames that are given.
        horizon: the last target comes this many frames after the last one given.
        frames_out: consecutive targets, the last of them at the horizon.
        stride: frames between the starts of neighbouring samples.
    """

    frames_in: int = 3
    horizon: int = 10
    frames_out: int = 1
    stride: int = 1

    def __post_init__(self) -> None:
        for name in ("frames_in", "horizon", "frames_out", "stride"):
            check_count(name, getattr(self, name))
        if self.frames_out > self.horizon:
            raise InputError(f"frames_out: expected at most the horizon of {self.horizon}, got {self.frames_out}")

    @property
    def span(self) -> int:
        """Frames from the first one given to the last target."""
        return self.frames_in + self.horizon

    @property
    def target_start(self) -> int:
        """The first target, counted from the first frame given."""
        return self.span - self.frames_out


class Windows(TorchDataset):
    """All windows of a data set, as batches of tensors.

    A batch is a dictionary: `frames` (batch, frames_in, channels, height, width) and `target_frames` (batch,
    frames_out, …) in uint8; `trial`, `start` and `labeled` (batch,); and where the data set keeps states `q` (batch,
    frames_in, nq), `v`, `target_q` (batch, frames_out, nq) and `target_v` in float32. States of samples that are not
    labelled are NaN, so that nothing can learn from them by mistake.
    """

    def __init__(
        self, dataset: Dataset, shape: WindowShape | None = None, label_fraction: float | int = 1.0, label_seed: int = 0
    ) -> None:
        """Cut `dataset` into windows.

        Args:
            dataset: where frames and states come from.
            shape: of the windows.
            label_fraction: share of the samples that carry states, 0 to 1. Which ones follows from `label_seed`; those
                of a smaller share are among those of a larger one.
            label_seed: of that choice.
        """
        check_number("label_fraction", label_fraction, 0, 1)
        self.dataset, self.shape = dataset, shape or WindowShape()
        counts = np.array([(length - self.shape.span) // self.shape.stride + 1 for length in dataset.lengths()], int)
        self._ends = np.cumsum(np.maximum(counts, 0))
        if len(self) == 0:
            longest = max(dataset.lengths(), default=0)
            raise InputError(
                f"shape: windows of {self.shape.span} frames do not fit the trials of {dataset.split}, the longest of "
                f"which has {longest}; choose fewer frames or a smaller horizon"
            )
        self.states = {"q", "v"} <= set(dataset.fields)
        labels = round(label_fraction * len(self)) if self.states else 0
        self.labeled = np.zeros(len(self), bool)
        self.labeled[np.random.default_rng(label_seed).permutation(len(self))[:labels]] = True

    def __len__(self) -> int:
        """Number of windows."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def locate(self, index: int) -> tuple[int, int]:
        """Trial and first frame of window `index`."""
        if not 0 <= index < len(self):
            raise InputError(f"index: expected 0 to {len(self) - 1}, got {index}")
        trial = int(np.searchsorted(self._ends, index, side="right"))
        before = int(self._ends[trial - 1]) if trial else 0
        return trial, (index - before) * self.shape.stride

    def of_trial(self, trial: int) -> range:
        """The windows of a trial."""
        return range(int(self._ends[trial - 1]) if trial else 0, int(self._ends[trial]))

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        """One window, without the batch dimension."""
        return {name: values[0] for name, values in self.__getitems__([index]).items()}

    def __getitems__(self, indices: list[int]) -> dict[str, Tensor]:
        """The windows `indices` as one batch."""
        places = [self.locate(int(index)) for index in indices]
        labeled = self.labeled[np.asarray(indices)]
        arrays = self._empty(len(places))
        shape = self.shape
        for row, (trial, start) in enumerate(places):
            # The parts of one window lie in the same few groups of frames, which are decompressed once.
            for prefix, low, high in (("", 0, shape.frames_in), ("target_", shape.target_start, shape.span)):
                arrays[f"{prefix}frames"][row] = self.dataset.frames(trial, start + low, start + high)
                if self.states and labeled[row]:
                    for name in ("q", "v"):
                        values = arrays[f"{prefix}{name}"]
                        known = self.dataset.field(name, trial, start + low, start + high)
                        values[row] = known.reshape(values.shape[1:])
        batch = {name: torch.from_numpy(values) for name, values in arrays.items()}
        for name in ("frames", "target_frames"):
            batch[name] = batch[name].permute(0, 1, 4, 2, 3)
        trials, starts = zip(*places, strict=True)
        return {
            **batch,
            "trial": torch.tensor(trials),
            "start": torch.tensor(starts),
            "labeled": torch.from_numpy(labeled),
        }

    def _empty(self, count: int) -> dict[str, np.ndarray]:
        """Where the parts of a batch go."""
        arrays = {}
        for prefix, times in (("", self.shape.frames_in), ("target_", self.shape.frames_out)):
            arrays[f"{prefix}frames"] = np.empty((count, times, *self.dataset.frame_format.shape), np.uint8)
            if self.states:
                for name in ("q", "v"):
                    size = math.prod(self.dataset.fields[name].shape)
                    arrays[f"{prefix}{name}"] = np.full((count, times, size), np.nan, np.float32)
        return arrays
