"""Losses between predicted and observed frames."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import ShapeError
from physvision.core.checks import check_count, check_like, check_tensor

# The coarsest image is at least this high and wide.
COARSEST = 4
BINOMIAL = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)


def _difference(predicted: Tensor, target: Tensor) -> Tensor:
    check_like("target", check_tensor("target", target), "predicted", check_tensor("predicted", predicted))
    if predicted.shape != target.shape or predicted.dim() < 3:
        raise ShapeError(
            f"frames: expected two of the same shape (…, channels, height, width), got {tuple(predicted.shape)} and "
            f"{tuple(target.shape)}"
        )
    return predicted - target


def _halved(frames: Tensor) -> Tensor:
    """Blurred along the width by (1, 4, 6, 4, 1)/16, zero beyond the border, and every other column of that."""
    padded, columns = functional.pad(frames, (2, 2)), frames.shape[-1]
    slices = (padded[..., k : k + columns : 2] for k in range(len(BINOMIAL)))
    blurred = torch.zeros_like(padded[..., :columns:2])
    for weight, part in zip(BINOMIAL, slices, strict=True):
        blurred = blurred + weight * part
    return blurred


def mean_square(
    predicted: Float[Tensor, "*batch channels height width"], target: Float[Tensor, "..."]
) -> Float[Tensor, ""]:
    """The mean squared difference of two frames. Its gradient ends where two objects do not overlap any more."""
    return _difference(predicted, target).square().mean()


def multi_scale(
    predicted: Float[Tensor, "*batch channels height width"],
    target: Float[Tensor, "..."],
    scales: int | None = None,
) -> Float[Tensor, ""]:
    """The mean over `scales` of the mean squared difference of frames that are blurred and halved again and again.

    At a coarse scale objects overlap that do not at a fine one, so that they attract each other over half the image;
    the fine scales place them exactly. An object smaller than a pixel of scale s adds (1/4)ˢ of its part of scale 0 to
    the mean square there: scale s counts 4ˢ times, and all scales attract a small object alike.

    Args:
        predicted: Predicted frames.
        target: Observed frames of the same shape.
        scales: Number of scales; 1 for the mean square alone. By default, down to images of 4 × 4 pixels.
    """
    difference = _difference(predicted, target)
    max_scales = 1 + max(0, int(math.log2(max(1.0, min(difference.shape[-2:]) / COARSEST))))
    count = max_scales if scales is None else min(check_count("scales", scales), max_scales)
    total = difference.square().mean()
    for scale in range(1, count):
        difference = _halved(_halved(difference).transpose(-1, -2)).transpose(-1, -2)
        total = total + 4**scale * difference.square().mean()
    return total / count


class MultiScaleLoss(nn.Module):
    """`multi_scale` as a module."""

    def __init__(self, scales: int | None = None) -> None:
        super().__init__()
        self.scales = scales

    def forward(self, predicted: Tensor, target: Tensor) -> Tensor:
        """Compute `multi_scale` of two frames."""
        return multi_scale(predicted, target, self.scales)
