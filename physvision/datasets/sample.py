"""Typed batch of windows of trials: frames, and the states and properties behind them where they are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped, UInt8
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils.data._utils.collate import default_collate_fn_map

from physvision.core import Trajectory

# Mask of samples without labels: the value that segmentation losses ignore by convention.
IGNORE_INDEX = 255


@dataclass(frozen=True)
class Sample:
    """A batch of windows of trials.

    Attributes:
        frames: Consecutive frames, in bytes or as brightness from 0 to 1.
        trajectory: True states at the times of the frames, NaN in samples without labels; None if no sample has any.
        given: Number of frames that an encoder may see; the others are to be predicted.
        labeled: If true, states and properties of the sample are known.
        trial: Number of the trial that a sample is cut from.
        start: First frame of the sample in that trial.
        properties: Properties of each trial by name, (batch, …), NaN in samples without labels unless they are given
            to all; None if the data set knows none.
        extrinsics: Pose of the camera in each frame, from the world to the camera's frame; known of all samples. None
            if the data set has no pose.
        masks: Number of the object that each pixel shows, from 1 on, 0 for the background and 255 in samples without
            labels; None if not requested.
    """

    frames: Shaped[Tensor, "batch times channels height width"]
    trajectory: Trajectory | None
    given: int
    labeled: Bool[Tensor, " batch"]
    trial: Int[Tensor, " batch"]
    start: Int[Tensor, " batch"]
    properties: dict[str, Shaped[Tensor, "batch *shape"]] | None = None
    extrinsics: Float[Tensor, "batch times 4 4"] | None = None
    masks: UInt8[Tensor, "batch times height width"] | None = None

    @property
    def batch(self) -> int:
        """Number of samples in the batch."""
        return len(self.frames)

    @property
    def horizon(self) -> int:
        """Number of frames after the last one given."""
        return self.frames.shape[1] - self.given

    @property
    def observed(self) -> Shaped[Tensor, "batch given channels height width"]:
        """Frames that are given to the encoder."""
        return self.frames[:, : self.given]

    @property
    def ahead(self) -> Trajectory | None:
        """True states from the last given frame on."""
        return None if self.trajectory is None else self.trajectory[self.given - 1 :]

    def frames_at(self, steps: Sequence[int]) -> Shaped[Tensor, "batch steps channels height width"]:
        """Frames that are `steps` after the last given one; step 0 is that one itself."""
        return self.frames[:, [self.given - 1 + step for step in steps]]

    def __getitem__(self, rows: int | slice | Sequence[int]) -> Sample:
        """Selected samples of the batch; a single number gives a batch of one."""
        if isinstance(rows, int):
            if not -self.batch <= rows < self.batch:
                raise IndexError(f"sample {rows} of {self.batch}")
            rows = [rows]
        return self._map(lambda tensor: tensor[rows])

    def to(self, *args: Any, **kwargs: Any) -> Sample:
        """Copy of the batch on another device or in another dtype; arguments as in `torch.Tensor.to`."""
        return self._map(lambda tensor: tensor.to(*args, **kwargs))

    def pin_memory(self) -> Sample:
        """Copy of the batch in page-locked memory, from which a GPU can fetch it."""
        return self._map(Tensor.pin_memory)

    def _map(self, change: Callable[[Tensor], Tensor]) -> Sample:
        return pytree.tree_map(change, self)


def join(samples: Sequence[Sample]) -> Sample:
    """Concatenate several batches into one."""
    leaves, structures = zip(*(pytree.tree_flatten(sample) for sample in samples), strict=True)
    return pytree.tree_unflatten([torch.cat(tensors) for tensors in zip(*leaves, strict=True)], structures[0])


def _collate(samples: Sample | Sequence[Sample], *, collate_fn_map: Any = None) -> Sample:
    """Collate function of DataLoader; a whole batch stays as it is."""
    return samples if isinstance(samples, Sample) else join(samples)


def _flatten(sample: Sample) -> tuple[list[Any], Any]:
    """Tensors of a sample, and what rebuilds it. None is left out: to torch it is a leaf like a tensor."""
    values = {field.name: getattr(sample, field.name) for field in fields(sample) if field.name != "given"}
    present = {name: value for name, value in values.items() if value is not None}
    return list(present.values()), (tuple(present), sample.given)


def _unflatten(values: Any, context: Any) -> Sample:
    names, given = context
    present = dict(zip(names, values, strict=True))
    return Sample(trajectory=present.pop("trajectory", None), given=given, **present)


pytree.register_pytree_node(Sample, _flatten, _unflatten, serialized_type_name="physvision.datasets.Sample")
default_collate_fn_map[Sample] = _collate
