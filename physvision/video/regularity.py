"""Whether frames are missing from a clip, or are there twice."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from physvision.core import Clip
from physvision.core.clip import frame_interval

# A frame whose squared difference from the one before is less than this part of its neighbours' is the same one again:
# coding changes a repeated frame by a few per cent of what a moving thing or a camera's noise does.
_SAME = 0.05
# So many frames before and after are its neighbours: one of 15 frames a second is there four times in a clip of 60.
_NEIGHBORS = 3


@dataclass(frozen=True)
class FrameTiming:
    """How regularly a clip's frames were taken.

    Attributes:
        step: seconds between most frames.
        dropped: how many frames are missing before each frame, by the times.
        duplicated: whether each frame shows the one before once more. Without any noise in the picture, frames in which
            a motion begins, ends or turns back look so too.
    """

    step: float
    dropped: Int[Tensor, " frames"]
    duplicated: Bool[Tensor, " frames"]


def frame_timing(clip: Clip) -> FrameTiming:
    """How regularly the frames of `clip` were taken, which must be two at least."""
    steps = clip.times.diff().double()
    step = frame_interval(steps)
    dropped = torch.cat([torch.zeros(1, dtype=torch.long), (steps / step).round().long().sub(1).clamp(min=0)])
    changes = torch.stack(
        [(after.short() - before.short()).float().square().mean() for before, after in pairwise(clip.frames)]
    )
    around = torch.nn.functional.max_pool1d(changes[None], 2 * _NEIGHBORS + 1, 1, _NEIGHBORS)[0]
    duplicated = torch.cat([torch.zeros(1, dtype=torch.bool), changes < _SAME * around])
    return FrameTiming(step, dropped, duplicated)
