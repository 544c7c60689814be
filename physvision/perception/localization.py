"""Where objects of known size are in their masks, however much else the masks hold.

The mean of a whole mask is drawn aside by every pixel that noise or the background adds far away. Here the place with
the most mask in an object's size is taken, over all frames at once, and the mean of what lies around it, around that
mean anew, in each frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from physvision.perception.object_crops import crop_patches

# How far from its centre an object's pixels are looked for, pixels beyond its radius, in each round: it may have moved
# from frame to frame, so the first is wide, and the last just holds a blurred edge.
_MARGINS = (5.0, 3.0, 1.5, 1.5)
_EDGE = 0.4  # px: how softly a window ends
_NOTHING = 0.05  # of an object's area: less is noise


@dataclass(frozen=True)
class ObjectPositions:
    """Where objects are in consecutive frames.

    Attributes:
        centers: x and y, pixels from the picture's corner; not meaningful where nothing is seen.
        confidence: the visible share of an object's area, 0 to 1.
    """

    centers: Float[Tensor, "batch frames objects 2"]
    confidence: Float[Tensor, "batch frames objects"]

    def motion(self) -> tuple[Float[Tensor, "batch objects 2"], Float[Tensor, "batch objects 2"]]:
        """Position at the last frame and displacement a frame: of a line through the centres, by their confidence.

        Where the last frame shows the whole object, the position is its centre there. One that is not seen at all has
        a position of NaN and does not move.
        """
        weights = self.confidence
        times = torch.arange(weights.shape[1], dtype=weights.dtype, device=weights.device)
        weights = weights[..., None] / weights.sum(1)[:, None, :, None]
        centers = torch.where(weights > 0, self.centers, 0.0)
        times = times[:, None, None]
        middle, time = (weights * centers).sum(1), (weights * times).sum(1)
        spread = (weights * (times - time[:, None]).square()).sum(1)
        slope = (weights * (times - time[:, None]) * centers).sum(1) / spread.clamp_min(1e-2)
        line = middle + (times[-1] - time) * slope
        last = self.confidence[:, -1, :, None]
        return torch.lerp(line, centers[:, -1], last), slope.nan_to_num(0.0)


def locate_objects(masks: Float[Tensor, "batch frames objects height width"], radius: float) -> ObjectPositions:
    """Find objects that move by less than about two radii over the frames.

    Args:
        masks: each object's share of each pixel.
        radius: of the objects, pixels.
    """
    batch, times, objects, _, width = masks.shape
    reach = 2 * round(radius) + 1
    everything = functional.avg_pool2d(masks.sum(1), reach, 1, reach // 2, count_include_pad=True)
    best = everything.flatten(2).argmax(-1)
    start = torch.stack([best % width, best // width], -1)
    side = 2 * math.ceil(radius + _MARGINS[0] + 1) + 1
    near = crop_patches(masks.transpose(1, 2), start, side)
    around = torch.arange(side, dtype=masks.dtype, device=masks.device) - side // 2
    x, y = around, around[:, None]
    center = masks.new_zeros(batch, objects, times, 2, 1, 1)
    area = masks.new_zeros(batch, objects, times)
    for margin in _MARGINS:
        distance = ((x - center[..., 0, :, :]).square() + (y - center[..., 1, :, :]).square()).sqrt()
        weights = near * torch.sigmoid((radius + margin - distance) / _EDGE)
        area = weights.sum((-1, -2))
        sums = torch.stack([(weights * x).sum((-1, -2)), (weights * y).sum((-1, -2))], -1)
        center = (sums / area.clamp_min(1e-6)[..., None])[..., None, None]
    confidence = (area / (math.pi * radius**2)).clamp(0, 1)
    confidence = torch.where(confidence > _NOTHING, confidence, 0.0)
    centers = center[..., 0, 0] + start[:, :, None] + 0.5
    return ObjectPositions(centers.transpose(1, 2), confidence.transpose(1, 2))
