"""A network that reads how much of each sample of a crop an object covers, whose centroid is the object's place.

A place that a vector of features encodes has to be learned anew for each fraction of a pixel; a centroid has it from
the samples' own places, so that few weights and few labels make it exact.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

_HIDDEN = 16
# Sharpness of the softplus that keeps coverage positive, and the coverage of a crop below which nothing is found.
_SHARPNESS, _MIN_TOTAL = 10.0, 1e-2


class CoverageNetwork(nn.Module):
    """Crops of one frame to the centroid of what their object covers."""

    def __init__(self, channels: int) -> None:
        """Build two layers.

        Args:
            channels: Channels of a crop: those of one frame, and the object's mask in it.
        """
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, _HIDDEN, 3, padding=1), nn.LeakyReLU(0.1, inplace=True), nn.Conv2d(_HIDDEN, 1, 1)
        )

    def forward(self, crops: Float[Tensor, "objects channels side side"], extent: float) -> Float[Tensor, "objects 2"]:
        """Column and row of each object's centroid from the middle of its crop, whose side is `extent`."""
        coverage = functional.softplus(self.layers(crops)[:, 0], _SHARPNESS)
        side = coverage.shape[-1]
        places = extent * ((torch.arange(side).to(coverage) + 0.5) / side - 0.5)
        total = coverage.sum((1, 2)) + _MIN_TOTAL
        return torch.stack([(coverage.sum(axis) * places).sum(1) / total for axis in (1, 2)], 1)
