"""Losses between predicted and observed frames, one value a sample, optionally balanced between figure and ground."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from kornia.metrics import ssim as ssim_map
from torch import Tensor
from torch.nn import functional

from physvision.core import ShapeError
from physvision.core.checks import check_count, check_like, check_tensor

# Smallest height and width of the coarsest image, in pixels.
MIN_COARSEST_SIZE = 4
BINOMIAL = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)
FrameLoss = Literal["l1", "l2", "huber", "ssim", "multi_scale"]
# Brightness error at which Huber's loss turns linear, and side of the window of SSIM, pixels.
_HUBER_DELTA, _SSIM_WINDOW = 0.1, 7
# Difference from the clip's median brightness above which a pixel is foreground.
_FOREGROUND = 0.08


def _difference(predicted: Tensor, target: Tensor) -> Tensor:
    check_like("target", check_tensor("target", target), "predicted", check_tensor("predicted", predicted))
    if predicted.shape != target.shape or predicted.dim() < 3:
        raise ShapeError(
            f"frames: expected two of the same shape (…, channels, height, width), got {tuple(predicted.shape)} and "
            f"{tuple(target.shape)}"
        )
    return predicted - target


def _halve(frames: Tensor) -> Tensor:
    """Blur along the width by (1, 4, 6, 4, 1)/16, zero beyond the border, and take every second column."""
    padded, columns = functional.pad(frames, (2, 2)), frames.shape[-1]
    slices = (padded[..., k : k + columns : 2] for k in range(len(BINOMIAL)))
    blurred = torch.zeros_like(padded[..., :columns:2])
    for weight, part in zip(BINOMIAL, slices, strict=True):
        blurred = blurred + weight * part
    return blurred


def mean_square(
    predicted: Float[Tensor, "*batch channels height width"], target: Float[Tensor, "..."]
) -> Float[Tensor, ""]:
    """Compute the mean squared difference of two frames, without a gradient between objects that do not intersect."""
    return _difference(predicted, target).square().mean()


def multi_scale(
    predicted: Float[Tensor, "*batch channels height width"],
    target: Float[Tensor, "..."],
    scales: int | None = None,
    finest: int = 0,
) -> Float[Tensor, ""]:
    """Compute the mean over `scales` of the mean squared difference of an image pyramid.

    At a coarse scale objects meet that do not at a fine one, so that they attract each other over half the image; the
    fine scales place them exactly. An object smaller than a pixel of scale s adds (1/4)ˢ of its part of scale 0 to the
    mean square there: scale s counts 4ˢ times, and all scales attract a small object equally.

    Args:
        predicted: Predicted frames.
        target: Observed frames of the same shape.
        scales: Number of scales; 1 for the mean square alone. By default, down to images of 4 × 4 pixels.
        finest: First scale that counts, 0 for that of the frames; a schedule from coarse to fine lowers it.
    """
    return _pyramid(_difference(predicted, target), scales, finest).mean()


def _pyramid(difference: Tensor, scales: int | None, finest: int) -> Float[Tensor, "*batch"]:
    """Mean over scales of the weighted mean square of each frame."""
    max_scales = 1 + max(0, int(math.log2(max(1.0, min(difference.shape[-2:]) / MIN_COARSEST_SIZE))))
    count = max_scales if scales is None else min(check_count("scales", scales), max_scales)
    first = min(check_count("finest", finest, minimum=0), count - 1)
    total = torch.zeros_like(difference[..., 0, 0, 0])
    for scale in range(count):
        if scale:
            difference = _halve(_halve(difference).transpose(-1, -2)).transpose(-1, -2)
        if scale >= first:
            total = total + 4**scale * difference.square().mean((-3, -2, -1))
    return total / (count - first)


def foreground_weights(
    target: Float[Tensor, "batch frames channels height width"], median: Float[Tensor, "batch channels height width"]
) -> Float[Tensor, "batch frames 1 height width"]:
    """Weights of pixels, with mean one, that give moving foreground and background half of the loss each.

    Args:
        target: Observed frames.
        median: Median of each clip over time, in which moving objects vanish.
    """
    figure = ((target - median[:, None]).abs().amax(2, keepdim=True) > _FOREGROUND).float()
    fraction = figure.mean((-2, -1), keepdim=True)
    balanced = 0.5 * figure / fraction.clamp_min(1e-6) + 0.5 * (1.0 - figure) / (1.0 - fraction).clamp_min(1e-6)
    return torch.where((fraction > 0) & (fraction < 1), balanced, 1.0)


def frame_losses(
    kind: FrameLoss,
    predicted: Float[Tensor, "batch frames channels height width"],
    target: Float[Tensor, "..."],
    weights: Float[Tensor, "batch frames 1 height width"] | None = None,
    finest: int = 0,
) -> Float[Tensor, " batch"]:
    """Loss of the frames of each sample, mean over frames, channels and pixels.

    Args:
        kind: "l1", "l2", "huber" (quadratic below a tenth of the range), "ssim" (½ (1 − SSIM)) or "multi_scale".
        predicted: Predicted frames, brightness about 0 to 1.
        target: Observed frames of the same shape.
        weights: Weight of each pixel, with mean one; not used by "multi_scale", whose coarse pixels mix figure and
            ground.
        finest: First scale of "multi_scale" that counts.
    """
    difference = _difference(predicted, target)
    if kind == "multi_scale":
        return _pyramid(difference, None, finest).mean(1)
    if kind == "ssim":
        similarity = ssim_map(predicted.flatten(0, 1), target.flatten(0, 1), _SSIM_WINDOW)
        error = 0.5 * (1.0 - similarity).unflatten(0, difference.shape[:2])
    elif kind == "huber":
        error = functional.huber_loss(predicted, target, reduction="none", delta=_HUBER_DELTA) / _HUBER_DELTA
    else:
        error = difference.abs() if kind == "l1" else difference.square()
    weighted = error if weights is None else error * weights
    return weighted.mean((1, 2, 3, 4))
