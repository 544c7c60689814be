"""Objects in masks: their localization as discs of known radius, and crops around them as network input.

The centroid of a whole mask is biased by every pixel that noise or the background adds far away. For localization, the
position with the largest mask area within an object's size is found over all frames at once, and refined in each frame
by the centroid of a shrinking window around it. The network input of an object is three masked frames and two masked
flows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from physvision.core import ShapeError
from physvision.perception.settings import DEFAULT_SETTINGS

INPUT_FRAMES = 3
INPUT_CHANNELS = 3 * INPUT_FRAMES + 2 * (INPUT_FRAMES - 1)


def object_inputs(
    frames: Float[Tensor, "batch frames rgb height width"],
    masks: Float[Tensor, "batch frames objects height width"],
    flows: Float[Tensor, "batch flows xy height width"],
    centers: Int[Tensor, "batch objects 2"] | None = None,
    side: int | None = None,
    fill: float = 0.0,
) -> Float[Tensor, "batch objects 13 rows columns"]:
    """Stack the masked frames and flows of each object as input channels.

    Args:
        frames: Three consecutive frames, from 0 to 1.
        masks: Fraction of each pixel covered by each object, per frame.
        flows: Optical flow between consecutive frames, in pixels; each is masked by the frame that it starts from.
        centers: Column and row of the pixel around which each object is cropped, see `crop_patches`.
        side: Side of the square patches, in pixels; the whole image if None.
        fill: Channel value beyond the image border.
    """
    if frames.shape[1] != INPUT_FRAMES or masks.shape[1] != INPUT_FRAMES or flows.shape[1] != INPUT_FRAMES - 1:
        counts = [part.shape[1] for part in (frames, masks, flows)]
        raise ShapeError(f"expected 3 frames, 3 masks and 2 flows, got {counts}")
    masks = masks.transpose(1, 2)
    channels = torch.cat([frames.flatten(1, 2), flows.flatten(1, 2)], 1)
    channels = channels.unsqueeze(1).expand(-1, masks.shape[1], -1, -1, -1)
    if side is not None and centers is not None:
        masks, channels = crop_patches(masks, centers, side, 1.0), crop_patches(channels, centers, side, fill)
    mask_index = [frame for frame in range(INPUT_FRAMES) for _ in "rgb"]
    mask_index += [frame for frame in range(INPUT_FRAMES - 1) for _ in "xy"]
    return masks[:, :, mask_index] * channels


def crop_patches(
    images: Float[Tensor, "batch objects channels height width"],
    centers: Int[Tensor, "batch objects 2"],
    side: int,
    fill: float = 0.0,
) -> Float[Tensor, "batch objects channels side side"]:
    """Cut a square patch out of each object's image, without resampling.

    Args:
        images: One image for each object.
        centers: Column and row of the central pixel; of an even side, the pixel right below the center.
        side: Side of the patches, in pixels.
        fill: Value beyond the image border.
    """
    before, after = side // 2, side - side // 2
    padded = functional.pad(images, (before, after, before, after), value=fill)
    height, width = images.shape[-2:]
    offsets = torch.arange(side, device=images.device)
    rows = centers[..., 1].clamp(0, height - 1)[..., None] + offsets
    columns = centers[..., 0].clamp(0, width - 1)[..., None] + offsets
    channels = images.shape[2]
    rows = rows[:, :, None, :, None].expand(-1, -1, channels, -1, padded.shape[-1])
    columns = columns[:, :, None, None, :].expand(-1, -1, channels, side, -1)
    return padded.gather(3, rows).gather(4, columns)


_SETTINGS = DEFAULT_SETTINGS.segmentation


@dataclass(frozen=True)
class ObjectPositions:
    """Positions of objects in consecutive frames.

    Attributes:
        centers: Centers x and y, px from the upper left corner; arbitrary where an object is hidden.
        confidence: Visible fraction of each object's area.
    """

    centers: Float[Tensor, "batch frames objects 2"]
    confidence: Float[Tensor, "batch frames objects"]

    def motion(self) -> tuple[Float[Tensor, "batch objects 2"], Float[Tensor, "batch objects 2"]]:
        """Fit a line to the centers, weighted by confidence; return position at the last frame and step per frame.

        Where the last frame shows the whole object, the position is its center there. An object that is hidden in all
        frames has position NaN and step zero.
        """
        weights = self.confidence
        times = torch.arange(weights.shape[1], dtype=weights.dtype, device=weights.device)
        weights = weights[..., None] / weights.sum(1)[:, None, :, None]
        centers = torch.where(weights > 0, self.centers, 0.0)
        times = times[:, None, None]
        mean_center, mean_time = (weights * centers).sum(1), (weights * times).sum(1)
        variance = (weights * (times - mean_time[:, None]).square()).sum(1)
        slope = (weights * (times - mean_time[:, None]) * centers).sum(1) / variance.clamp_min(1e-2)
        extrapolated = mean_center + (times[-1] - mean_time) * slope
        position = torch.lerp(extrapolated, centers[:, -1], self.confidence[:, -1, :, None])
        return position, slope.nan_to_num(0.0)


def locate_objects(masks: Float[Tensor, "batch frames objects height width"], radius: float) -> ObjectPositions:
    """Locate discs that move by less than about two radii over the frames.

    Args:
        masks: Fraction of each pixel that each object covers.
        radius: Radius of the objects, px.
    """
    batch, times, objects, _, width = masks.shape
    window = 2 * round(radius) + 1
    area = functional.avg_pool2d(masks.sum(1), window, 1, window // 2, count_include_pad=True)
    index = area.flatten(2).argmax(-1)
    start = torch.stack([index % width, index // width], -1)
    side = 2 * math.ceil(radius + _SETTINGS.margins[0] + 1) + 1
    patches = crop_patches(masks.transpose(1, 2), start, side)
    x = torch.arange(side, dtype=masks.dtype, device=masks.device) - side // 2
    y = x[:, None]
    center = masks.new_zeros(batch, objects, times, 2, 1, 1)
    area = masks.new_zeros(batch, objects, times)
    for margin in _SETTINGS.margins:
        distance = ((x - center[..., 0, :, :]).square() + (y - center[..., 1, :, :]).square()).sqrt()
        weights = patches * torch.sigmoid((radius + margin - distance) / _SETTINGS.window_softness)
        area = weights.sum((-1, -2))
        sums = torch.stack([(weights * x).sum((-1, -2)), (weights * y).sum((-1, -2))], -1)
        center = (sums / area.clamp_min(1e-6)[..., None])[..., None, None]
    confidence = (area / (math.pi * radius**2)).clamp(0, 1)
    confidence = torch.where(confidence > _SETTINGS.min_visible_area, confidence, 0.0)
    centers = center[..., 0, 0] + start[:, :, None] + 0.5
    return ObjectPositions(centers.transpose(1, 2), confidence.transpose(1, 2))
