"""Regularity of a clip: dropped and duplicated frames."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from physvision.core import Clip
from physvision.core.clip import frame_interval


@dataclass(frozen=True)
class RegularitySettings:
    """Tuning numbers of the detection of duplicated frames.

    Attributes:
        max_change: Squared change from the previous frame below which a frame is a duplicate, relative to the largest
            of its neighbors; coding changes a duplicate by a few percent. Raising it takes slow motion for duplicates.
        neighbors: Neighboring frames on each side; three, since a frame at 15 fps is there four times in a clip at 60.
    """

    max_change: float = 0.05
    neighbors: int = 3


DEFAULT_SETTINGS = RegularitySettings()


@dataclass(frozen=True)
class FrameTiming:
    """Timing of a clip's frames.

    Attributes:
        frame_interval: Usual time between frames, s.
        dropped: Number of frames missing before each frame, by the times.
        duplicated: Mask of the frames that repeat the previous one. Without noise, frames in which a motion begins,
            ends or reverses look alike.
    """

    frame_interval: float
    dropped: Int[Tensor, " frames"]
    duplicated: Bool[Tensor, " frames"]


def frame_timing(clip: Clip, settings: RegularitySettings = DEFAULT_SETTINGS) -> FrameTiming:
    """Measure the timing of a clip of at least two frames."""
    steps = clip.times.diff().double()
    interval = frame_interval(steps)
    dropped = torch.cat([torch.zeros(1, dtype=torch.long), (steps / interval).round().long().sub(1).clamp(min=0)])
    differences = (after.short() - before.short() for before, after in pairwise(clip.frames))
    changes = torch.stack([difference.float().square().mean() for difference in differences])
    side = settings.neighbors
    largest = torch.nn.functional.max_pool1d(changes[None], 2 * side + 1, 1, side)[0]
    duplicated = torch.cat([torch.zeros(1, dtype=torch.bool), changes < settings.max_change * largest])
    return FrameTiming(interval, dropped, duplicated)
