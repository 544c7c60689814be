"""Channels of the crops around balls that a network reads, and the numbers that it returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.models.segmentation import CONTRAST_CHANNELS, DIFFERENCE_GAIN, contrast_channels
from physvision.models.segmenting_encoder import CROP_CONTRAST, FRAMES

CROP_CHANNELS = (len(CROP_CONTRAST) + 1) * FRAMES
# With colors, a crop has all contrast channels, and the difference of each color from the background.
COLOR_CROP_CHANNELS = (CONTRAST_CHANNELS + 3 + 1) * FRAMES
# With `refine`, centroids follow from those channels of one frame that look at single pixels, all but the gradient, so
# that the border of the picture changes nothing, and from the object's mask.
COVERAGE_CONTRAST = (0, 1, 2, 4, 5, 6, 7)
COVERAGE_CHANNELS = len(COVERAGE_CONTRAST) + 1
# With optical flow, a crop also has the motion on the table from each earlier frame to the last one.
MOTION_CHANNELS = 2 * (FRAMES - 1)
CROP_OUTPUTS = 8
# Side of the crop around each ball, px of the frame.
CROP_EXTENT = 20.0
# Largest correction, px and px a frame.
_MAX_CORRECTION = 4.0
# Standard deviations of position (px) and velocity (px a frame) before training, and limits of what is added to their
# logarithms.
_INITIAL_STD = (1.0, 0.5)
_LOG_STD = (-5.0, 2.0)


@dataclass(frozen=True)
class BallCropSettings:
    """Crops of 20 px around balls that the state is read from, and the codes of their looks.

    Attributes:
        side: Number of samples along each side. VGG-11 halves it five times, so that 64 leave it 2 × 2 cells.
        colors: If true, crops have saturation and the difference of each color from the background, too: the dark side
            of a ball differs from its shadow in these alone.
        refine: If true, a `CoverageNetwork` replaces the centroids of the masks, which have half the resolution. It
            needs colors.
        codes: Numbers of each ball's appearance code, at least 3; all balls have at most 64. 0 for none.
    """

    side: int = 32
    colors: bool = False
    refine: bool = False
    codes: int = 12

    def __post_init__(self) -> None:
        check_count("side", self.side)
        if self.refine and not self.colors:
            raise InputError("crops: refine needs colors, got refine=True with colors=False; set both")


def crop_channels(
    recent: Float[Tensor, "batch times 3 height width"],
    background: Float[Tensor, "batch 3 height width"],
    colors: bool,
) -> Float[Tensor, "batch channels height width"]:
    """Channels of the last frames that the network on crops reads, those of one frame after another."""
    frames, behind = recent.flatten(0, 1), background.repeat_interleave(recent.shape[1], 0)
    channels = contrast_channels(frames, behind)
    if colors:
        channels = torch.cat([channels, DIFFERENCE_GAIN * (frames - behind)], 1)
    else:
        channels = channels[:, list(CROP_CONTRAST)]
    return channels.unflatten(0, (len(recent), -1)).flatten(1, 2)


def decode(
    outputs: Float[Tensor, "*batch outputs"],
) -> tuple[Float[Tensor, "*batch 4"], Float[Tensor, "*batch 4"]]:
    """Corrections of position (px) and velocity (px a frame) by a network, and their standard deviations."""
    corrections = _MAX_CORRECTION * torch.tanh(outputs[..., :4] / _MAX_CORRECTION)
    initial = outputs.new_tensor(_INITIAL_STD).repeat_interleave(2)
    return corrections, initial * outputs[..., 4:].clamp(*_LOG_STD).exp()
