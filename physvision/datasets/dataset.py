"""Random access to the frames and states of a data set, from many processes at once."""

from __future__ import annotations

import bisect
import os

import numpy as np
import torch
from jaxtyping import UInt8

from physvision.core import Clip, DataError, InputError, Trajectory
from physvision.core.serialization import build_dataclass
from physvision.datasets.folder import SPLITS, DataFolder
from physvision.datasets.recipe import Field, FrameFormat
from physvision.datasets.shards import CACHED_GROUPS, RecentGroups, ShardReader


class Dataset:
    """Trials of one split of a data set.

    Shards are opened and checked when they are first needed; a copy of the object in another process opens its own.

    Attributes:
        name: Name of the generator, e.g. "billiards".
        split: "train", "valid" or "test".
        recipe: Values that the data set was made from.
        frame_format: Size and rate of the frames.
        fields: Descriptions of the values stored beside every frame, by name.
        shards: Files that hold the trials.
    """

    def __init__(
        self, path: str | os.PathLike[str], split: str = "train", *, verify: bool = True, memory: bool = False
    ) -> None:
        """Open one split of a data set.

        Args:
            path: Folder of the data set.
            split: "train", "valid" or "test".
            verify: If true, compare each shard with its checksum when it is first read.
            memory: If true, cache everything that was read in memory, decompressed.

        Raises:
            FileError: There is no data set.
            DataError: The data set is not complete, or of another format.
        """
        if split not in SPLITS:
            raise InputError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
        self.folder, self.split, self._verify, self._memory = DataFolder(path), split, verify, memory
        description = self.folder.description()
        self.name: str = description["name"]
        self.recipe: dict = description["recipe"]
        try:
            self.frame_format = build_dataclass(FrameFormat, description["frame_format"], "frame_format")
            self.fields = {name: build_dataclass(Field, entry, name) for name, entry in description["fields"].items()}
        except InputError as error:
            raise DataError(f"{path}: cannot be read as a data set ({error})") from error
        self.shards = [shard for shard in self.folder.shards() if shard.split == split]
        checksums = self.folder.checksums()
        missing = [shard.file for shard in self.shards if shard.file not in checksums]
        if missing:
            raise DataError(
                f"{path}: not complete, {len(missing)} of {len(self.shards)} shards of {split} are missing "
                f"({missing[0]} first); go on with: physvision repair {path}"
            )
        self._firsts = [shard.first for shard in self.shards]
        self._readers: dict[int, ShardReader] = {}
        self._properties: dict[int, dict[str, np.ndarray]] = {}
        self._recent = self._empty_cache()
        self._process = os.getpid()

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_readers": {}, "_recent": self._empty_cache()}

    def __repr__(self) -> str:
        frames, frame_format = sum(shard.trials * shard.frames for shard in self.shards), self.frame_format
        size = f"{frame_format.width} x {frame_format.height} x {frame_format.channels} at {frame_format.fps:g} fps"
        return (
            f"Dataset({self.name}, {self.split}: {len(self)} trials, {frames} frames of {size}, "
            f"fields {', '.join(self.fields) or 'none'}, in {self.folder.path})"
        )

    def _empty_cache(self) -> RecentGroups:
        return RecentGroups(capacity=None if self._memory else CACHED_GROUPS)

    def __len__(self) -> int:
        """Number of trials of the split."""
        return self.shards[-1].first + self.shards[-1].trials if self.shards else 0

    @property
    def fps(self) -> float:
        """Frame rate, frames per second."""
        return self.frame_format.fps

    @property
    def dt(self) -> float:
        """Time between two frames, s."""
        return 1.0 / self.frame_format.fps

    def lengths(self) -> list[int]:
        """Number of frames of each trial."""
        return [shard.frames for shard in self.shards for _ in range(shard.trials)]

    def shard_of(self, trial: int) -> int:
        """Number of the shard that holds `trial`."""
        if not 0 <= trial < len(self):
            raise InputError(f"trial: expected 0 to {len(self) - 1} in {self.split}, got {trial}")
        return bisect.bisect_right(self._firsts, trial) - 1

    def _reader(self, number: int) -> ShardReader:
        if self._process != os.getpid():
            # A forked process opens the files anew: it must not share the libraries' locks with its parent.
            self._readers, self._recent, self._process = {}, self._empty_cache(), os.getpid()
        if number not in self._readers:
            shard = self.shards[number]
            if self._verify:
                self.folder.check(shard)
            path = self.folder.path / shard.file
            self._readers[number] = ShardReader(path, self.frame_format, self.fields, shard.frames, self._recent)
        return self._readers[number]

    def _locate(self, trial: int, start: int, stop: int | None) -> tuple[ShardReader, int, int, int]:
        number = self.shard_of(trial)
        shard = self.shards[number]
        stop = shard.frames if stop is None else stop
        if not 0 <= start < stop <= shard.frames:
            raise InputError(f"start, stop: expected 0 <= start < stop <= {shard.frames}, got {start} and {stop}")
        return self._reader(number), trial - shard.first, start, stop

    def frames(
        self, trial: int, start: int = 0, stop: int | None = None
    ) -> UInt8[np.ndarray, "frames height width channels"]:
        """Frames `start` to `stop` (excluded; the end if None) of `trial`."""
        reader, *location = self._locate(trial, start, stop)
        return reader.read("frames", *location)

    def field(self, name: str, trial: int, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Field `name` of the frames `start` to `stop` of `trial`, (frames, …)."""
        if name not in self.fields:
            raise InputError(
                f"name: {self.name} stores {', '.join(self.fields) or 'frames alone'}; there is no {name!r}"
            )
        reader, *location = self._locate(trial, start, stop)
        return reader.read(name, *location)

    def properties(self, trial: int) -> dict[str, np.ndarray]:
        """Properties of `trial` by name, float64: all fields that are the same in every frame."""
        if trial not in self._properties:
            self._properties[trial] = {
                name: self.field(name, trial, 0, 1)[0] for name, field in self.fields.items() if field.per_trial
            }
        return self._properties[trial]

    def clip(self, trial: int, start: int = 0, stop: int | None = None) -> Clip:
        """Frames `start` to `stop` of `trial` as a clip; its times begin with the trial."""
        frames = torch.from_numpy(self.frames(trial, start, stop))
        times = (start + torch.arange(len(frames), dtype=torch.float64)) * self.dt
        return Clip(frames, times, f"{self.folder.path}, {self.split} trial {trial}")

    def trajectory(self, trial: int, start: int = 0, stop: int | None = None) -> Trajectory:
        """True states at the frames `start` to `stop` of `trial`, a batch of one in float64."""
        q, v = (self.field(name, trial, start, stop) for name in ("q", "v"))
        q, v = (torch.from_numpy(values.reshape(1, len(values), -1)) for values in (q, v))
        return Trajectory(q, v, dt=self.dt)
