"""Samples to learn from: all windows of a data set, with or without the states behind their frames."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset as TorchDataset

from physvision.core import InputError, Trajectory
from physvision.core.checks import check_count
from physvision.datasets.dataset import Dataset
from physvision.datasets.recipe import check_number
from physvision.datasets.sample import Sample


@dataclass(frozen=True)
class WindowShape:
    """Which frames make a sample.

    Attributes:
        frames_in: consecutive frames that are given.
        horizon: frames after them.
        stride: frames between the starts of neighbouring samples.
    """

    frames_in: int = 3
    horizon: int = 10
    stride: int = 1

    def __post_init__(self) -> None:
        for name in ("frames_in", "horizon", "stride"):
            check_count(name, getattr(self, name))

    @property
    def span(self) -> int:
        """Number of frames."""
        return self.frames_in + self.horizon


class Windows(TorchDataset):
    """All windows of a data set, read as a `Sample` with frames in bytes and states in float32.

    States of samples that are not labelled are NaN, so that nothing can learn from them by mistake.
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

    def __repr__(self) -> str:
        labels = f", {int(self.labeled.sum())} of them labelled" if self.states else ""
        return f"Windows({len(self)} of {self.shape.frames_in} + {self.shape.horizon} frames{labels}, {self.dataset!r})"

    def __getitem__(self, index: int) -> Sample:
        """One window, a batch of one."""
        return self.__getitems__([index])

    def __getitems__(self, indices: list[int]) -> Sample:
        """The windows `indices` as one batch."""
        places, span, data = [self.locate(int(index)) for index in indices], self.shape.span, self.dataset
        labeled = self.labeled[np.asarray(indices)]
        frames = np.empty((len(places), span, *data.frame_format.shape), np.uint8)
        states = {
            name: np.full((len(places), span, math.prod(data.fields[name].shape)), np.nan, np.float32)
            for name in (("q", "v") if self.states else ())
        }
        for row, (trial, start) in enumerate(places):
            frames[row] = data.frames(trial, start, start + span)
            for name, values in states.items() if labeled[row] else ():
                values[row] = data.field(name, trial, start, start + span).reshape(span, -1)
        known = {name: torch.from_numpy(values) for name, values in states.items()}
        trials, starts = zip(*places, strict=True)
        return Sample(
            frames=torch.from_numpy(frames).permute(0, 1, 4, 2, 3),
            trajectory=Trajectory(known["q"], known["v"], dt=data.dt) if self.states else None,
            given=self.shape.frames_in,
            labeled=torch.from_numpy(labeled),
            trial=torch.tensor(trials),
            start=torch.tensor(starts),
        )
