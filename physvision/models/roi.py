"""Crops of regions of interest (ROI) around objects, by torchvision's ROI align."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
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
