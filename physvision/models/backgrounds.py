"""Background of a clip where objects rest: the median over time of what no mask covers, filled in from around."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional


def uncovered_median(
    images: Float[Tensor, "batch times channels height width"], covered: Bool[Tensor, "batch times 1 height width"]
) -> Float[Tensor, "batch channels height width"]:
    """Median over time of the pixels that are not covered; those that always are get the colors around them."""
    median = images.masked_fill(covered, torch.nan).nanmedian(1).values
    return filled(median.nan_to_num(), ~covered.all(1))


def filled(
    images: Float[Tensor, "batch channels height width"], known: Bool[Tensor, "batch 1 height width"]
) -> Float[Tensor, "batch channels height width"]:
    """Fill unknown pixels from coarser and coarser means of the known ones; zeros where no pixel is known."""
    if bool(known.all()) or min(images.shape[-2:]) < 2:
        return images * known
    weight = functional.avg_pool2d(known.to(images), 2, ceil_mode=True)
    coarse = functional.avg_pool2d(images * known, 2, ceil_mode=True) / weight.clamp_min(1e-6)
    surroundings = functional.interpolate(filled(coarse, weight > 0.0), images.shape[-2:], mode="bilinear")
    return torch.where(known, images, surroundings)
