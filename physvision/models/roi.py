"""Crops of regions of interest (ROI) around objects: sampled by torchvision's ROI align, or cut by whole pixels."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from torchvision.ops import roi_align


def boxes_around(centers: Float[Tensor, "batch objects 2"], extent: float) -> Float[Tensor, "boxes 4"]:
    """Squares of side `extent` around points: left, top, right, bottom, px; those of one image after another."""
    return torch.cat([centers - 0.5 * extent, centers + 0.5 * extent], -1).flatten(0, 1)


def crop(
    images: Float[Tensor, "batch channels height width"], boxes: Float[Tensor, "boxes 4"], side: int, scale: float = 1.0
) -> Float[Tensor, "boxes channels side side"]:
    """Sample boxes of images bilinearly, equally many boxes of each image.

    Args:
        images: Images, pixel centers at whole numbers.
        boxes: Left, top, right, bottom of each box, px.
        side: Samples along each side.
        scale: Pixels of the image for each pixel of the boxes.
    """
    index = torch.arange(len(images)).to(boxes).repeat_interleave(len(boxes) // len(images))
    return roi_align(images, torch.cat([index[:, None], boxes], 1), side, scale, sampling_ratio=1)


def sample_points(boxes: Float[Tensor, "boxes 4"], side: int) -> Float[Tensor, "boxes samples 2"]:
    """Column and row of each sample that `crop` takes of boxes, row by row."""
    cells = (torch.arange(side).to(boxes) + 0.5) / side
    unit = torch.stack(torch.meshgrid(cells, cells, indexing="xy"), -1).flatten(0, 1)
    return boxes[:, None, :2] + unit * (boxes[:, None, 2:] - boxes[:, None, :2])


def samples_inside(
    boxes: Float[Tensor, "boxes 4"], side: int, size: tuple[int, int]
) -> Float[Tensor, "boxes side side"]:
    """Flag the samples of `crop` that lie on a picture of a height and width, by ones and zeros."""
    height, width = size
    columns, rows = sample_points(boxes, side).unflatten(1, (side, side)).unbind(-1)
    return ((columns >= -0.5) & (columns <= width - 0.5) & (rows >= -0.5) & (rows <= height - 0.5)).to(boxes)


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
