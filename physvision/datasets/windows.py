"""Training samples: all windows of a data set, with or without the states behind their frames."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset as TorchDataset

from physvision.core import InputError, Trajectory
from physvision.core.checks import check_count
from physvision.datasets.dataset import Dataset
from physvision.datasets.recipe import check_number
from physvision.datasets.sample import IGNORE_INDEX, Sample

# `default_rng(0)` and `default_rng((0, 0))` are one stream: NumPy pads entropy with zeros. Spawn keys are not padded.
_STREAMS = {"labels": 1, "shards": 2, "order": 3, "augmentation": 4}


def random_stream(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """Random generator of `seed` that shares no numbers with those of other purposes or indices.

    Args:
        seed: Seed that the user chose.
        purpose: "labels", "shards", "order" or "augmentation".
        indices: Numbers that tell streams of one purpose apart, such as epoch and rank.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAMS[purpose], *indices)))


@dataclass(frozen=True)
class WindowShape:
    """Numbers of frames that make a sample.

    Attributes:
        frames_in: Number of consecutive frames that are given.
        horizon: Number of frames after them.
        stride: Number of frames between the starts of neighboring samples.
    """

    frames_in: int = 3
    horizon: int = 10
    stride: int = 1

    def __post_init__(self) -> None:
        for name in ("frames_in", "horizon", "stride"):
            check_count(name, getattr(self, name))

    @property
    def span(self) -> int:
        """Number of frames of a sample."""
        return self.frames_in + self.horizon


@dataclass(frozen=True)
class LabelSettings:
    """Choice of the trials whose samples carry states and properties.

    Attributes:
        fraction: Fraction of the trials that are labeled, 0 to 1. Trials of a smaller fraction are among those of a
            larger one.
        seed: Seed of the choice.
        batch_fraction: Least fraction of labeled samples in every shuffled batch, as far as it is a whole number.
            Labeled samples are repeated for it and unlabeled ones left out, so that an epoch keeps its length; with 1,
            only labeled samples remain.
    """

    fraction: float | int = 1.0
    seed: int = 0
    batch_fraction: float = 0.0

    def __post_init__(self) -> None:
        for name in ("fraction", "batch_fraction"):
            check_number(f"labels.{name}", getattr(self, name), 0, 1)


DEFAULT_SHAPE, ALL_LABELED = WindowShape(), LabelSettings()


class Windows(TorchDataset):
    """All windows of a data set, read as `Sample` with frames in bytes and states in float32.

    Trials are labeled or not as a whole. States of unlabeled samples are NaN, so that nothing can learn from them by
    mistake; likewise their properties, but for those that are given to all samples.
    """

    def __init__(
        self,
        dataset: Dataset,
        shape: WindowShape = DEFAULT_SHAPE,
        labels: LabelSettings = ALL_LABELED,
        given_properties: Sequence[str] = (),
        masks: bool = False,
    ) -> None:
        """Cut a data set into windows.

        Args:
            dataset: Source of frames and states.
            shape: Numbers of frames of a window.
            labels: Choice of the labeled trials.
            given_properties: Names of properties that samples without labels carry too.
            masks: If true, read the objects' masks.
        """
        self.dataset, self.shape, self.labels = dataset, shape, labels
        counts = np.array([(length - self.shape.span) // self.shape.stride + 1 for length in dataset.lengths()], int)
        counts = np.maximum(counts, 0)
        self._ends = np.cumsum(counts)
        if len(self) == 0:
            longest = max(dataset.lengths(), default=0)
            raise InputError(
                f"shape: windows of {self.shape.span} frames do not fit the trials of {dataset.split}, the longest of "
                f"which has {longest}; choose fewer frames or a smaller horizon"
            )
        self.states = {"q", "v"} <= set(dataset.fields)
        self._property_names = [name for name, field in dataset.fields.items() if field.per_trial]
        unknown = sorted(set(given_properties) - set(self._property_names))
        if unknown:
            raise InputError(
                f"given_properties: {dataset.name} has {', '.join(self._property_names) or 'no properties'}; "
                f"there is no {unknown[0]!r}"
            )
        if masks and "masks" not in dataset.fields:
            raise InputError(f"masks: {dataset.name} at {dataset.folder.path} was made without masks")
        self.given_properties, self.masks = frozenset(given_properties), masks
        self.labeled = np.repeat(self._labeled_trials(np.flatnonzero(counts)), counts)

    def _labeled_trials(self, trials: np.ndarray) -> np.ndarray:
        """Return a mask over all trials that is true for labeled ones, chosen among the trials that have windows."""
        mask, fraction = np.zeros(len(self.dataset), bool), self.labels.fraction
        count = round(fraction * len(trials)) if self.states else 0
        if self.states and fraction > 0 and count == 0:
            raise InputError(
                f"labels.fraction: {fraction:g} of the {len(trials)} trials of {self.dataset.split} is none; "
                f"use at least {1 / len(trials):.3g}, or 0 for no labels"
            )
        mask[random_stream(self.labels.seed, "labels").permutation(trials)[:count]] = True
        return mask

    def __len__(self) -> int:
        """Number of windows of all trials."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def locate(self, index: int) -> tuple[int, int]:
        """Trial and first frame of window `index`."""
        if not 0 <= index < len(self):
            raise InputError(f"index: expected 0 to {len(self) - 1}, got {index}")
        trial = int(np.searchsorted(self._ends, index, side="right"))
        return trial, (index - self.of_trial(trial).start) * self.shape.stride

    def of_trial(self, trial: int) -> range:
        """Indices of the windows of a trial."""
        return range(int(self._ends[trial - 1]) if trial else 0, int(self._ends[trial]))

    def __repr__(self) -> str:
        labels = f", {int(self.labeled.sum())} of them labeled" if self.states else ""
        return f"Windows({len(self)} of {self.shape.frames_in} + {self.shape.horizon} frames{labels}, {self.dataset!r})"

    def __getitem__(self, index: int) -> Sample:
        """One window as a batch of one."""
        return self.__getitems__([index])

    def __getitems__(self, indices: list[int]) -> Sample:
        """The windows `indices` as one batch."""
        locations, span, data = [self.locate(int(index)) for index in indices], self.shape.span, self.dataset
        labeled = self.labeled[np.asarray(indices)]
        frames = np.empty((len(locations), span, *data.frame_format.shape), np.uint8)
        states = {
            name: np.full((len(locations), span, math.prod(data.fields[name].shape)), np.nan, np.float32)
            for name in (("q", "v") if self.states else ())
        }
        for row, (trial, start) in enumerate(locations):
            frames[row] = data.frames(trial, start, start + span)
            for name, values in states.items() if labeled[row] else ():
                values[row] = data.field(name, trial, start, start + span).reshape(span, -1)
        states = {name: torch.from_numpy(values) for name, values in states.items()}
        trials, starts = zip(*locations, strict=True)
        return Sample(
            frames=torch.from_numpy(frames).permute(0, 1, 4, 2, 3),
            trajectory=Trajectory(states["q"], states["v"], dt=data.dt) if self.states else None,
            given=self.shape.frames_in,
            labeled=torch.from_numpy(labeled),
            trial=torch.tensor(trials),
            start=torch.tensor(starts),
            properties=self._properties(trials, labeled),
            extrinsics=self._per_frame("extrinsics", locations, np.float32) if "extrinsics" in data.fields else None,
            masks=self._per_frame("masks", locations, np.uint8, labeled) if self.masks else None,
        )

    def _properties(self, trials: Sequence[int], labeled: np.ndarray) -> dict[str, torch.Tensor] | None:
        """Properties of the trials, NaN in those without labels unless given."""
        if not self._property_names:
            return None
        rows = [self.dataset.properties(trial) for trial in trials]
        properties = {}
        for name in self._property_names:
            values = np.array([row[name] for row in rows], np.float32)
            if name not in self.given_properties:
                values[~labeled] = np.nan
            properties[name] = torch.from_numpy(values)
        return properties

    def _per_frame(
        self, name: str, locations: list[tuple[int, int]], dtype: type[np.generic], labeled: np.ndarray | None = None
    ) -> torch.Tensor:
        """Field of every frame, `IGNORE_INDEX` in samples that are not `labeled`."""
        span = self.shape.span
        values = np.full((len(locations), span, *self.dataset.fields[name].shape), IGNORE_INDEX, dtype)
        for row, (trial, start) in enumerate(locations):
            if labeled is None or labeled[row]:
                values[row] = self.dataset.field(name, trial, start, start + span)
        return torch.from_numpy(values)
