"""One batch to learn from: pieces of trials, whole in time, with the states behind the frames where they are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils.data._utils.collate import default_collate_fn_map

from physvision.core import Trajectory


@dataclass(frozen=True)
class Sample:
    """A batch of pieces of trials.

    Attributes:
        frames: consecutive ones, bytes or of brightness 0 to 1.
        trajectory: the true states at the same moments, NaN in samples without labels; None where nobody knows any.
        given: so many of the frames are for an encoder to see, the others are to be predicted.
        labeled: whether the states of a sample are known.
        trial: number of the trial that a sample is a piece of.
        start: its first frame in that trial.
    """

    frames: Shaped[Tensor, "batch times channels height width"]
    trajectory: Trajectory | None
    given: int
    labeled: Bool[Tensor, " batch"]
    trial: Int[Tensor, " batch"]
    start: Int[Tensor, " batch"]

    @property
    def batch(self) -> int:
        """Number of samples."""
        return len(self.frames)

    @property
    def horizon(self) -> int:
        """Number of frames after the last one given."""
        return self.frames.shape[1] - self.given

    @property
    def seen(self) -> Shaped[Tensor, "batch given channels height width"]:
        """The frames given."""
        return self.frames[:, : self.given]

    @property
    def ahead(self) -> Trajectory | None:
        """The true states from the last frame given on."""
        return None if self.trajectory is None else self.trajectory[self.given - 1 :]

    def frames_at(self, steps: Sequence[int]) -> Shaped[Tensor, "batch steps channels height width"]:
        """The frames so many steps after the last one given, 0 being that one itself."""
        return self.frames[:, [self.given - 1 + step for step in steps]]

    def __getitem__(self, rows: int | slice | Sequence[int]) -> Sample:
        """Some of the samples, a batch of one for a single number."""
        if isinstance(rows, int):
            if not -self.batch <= rows < self.batch:
                raise IndexError(f"sample {rows} of {self.batch}")
            rows = [rows]
        return self._each(lambda part: part[rows])

    def to(self, *args: Any, **kwargs: Any) -> Sample:
        """The same batch on another device; arguments as in `torch.Tensor.to`."""
        return self._each(lambda part: part.to(*args, **kwargs))

    def pin_memory(self) -> Sample:
        """The same batch where a GPU can fetch it by itself."""
        return self._each(Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> Sample:
        return pytree.tree_map(change, self)


def join(samples: Sequence[Sample]) -> Sample:
    """One batch of several."""
    parts, structures = zip(*(pytree.tree_flatten(sample) for sample in samples), strict=True)
    return pytree.tree_unflatten([torch.cat(tensors) for tensors in zip(*parts, strict=True)], structures[0])


def _collate(samples: Sample | Sequence[Sample], *, collate_fn_map: Any = None) -> Sample:
    """What a DataLoader makes of what it was given; a whole batch stays as it is."""
    return samples if isinstance(samples, Sample) else join(samples)


pytree.register_pytree_node(
    Sample,
    lambda whole: ([whole.frames, whole.trajectory, whole.labeled, whole.trial, whole.start], whole.given),
    lambda parts, given: _made(list(parts), given),
    serialized_type_name="physvision.datasets.Sample",
)
default_collate_fn_map[Sample] = _collate


def _made(parts: list[Any], given: Any) -> Sample:
    frames, trajectory, labeled, trial, start = parts
    return Sample(frames, trajectory, given, labeled, trial, start)
