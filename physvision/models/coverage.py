"""A network that reads how much of each sample of a crop an object covers, whose centroid is the object's place.

A place that a vector of features encodes has to be learned anew for each fraction of a pixel; a centroid has it from
the samples' own places, so that few weights and few labels make it exact.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

_HIDDEN = 32
# Sharpness of the softplus that keeps coverage positive, and the coverage of a crop below which nothing is found.
_SHARPNESS, _MIN_TOTAL = 10.0, 1e-2


class CoverageNetwork(nn.Module):
    """Crops of one frame to the centroid of what their object covers, sample by sample."""

    def __init__(self, channels: int) -> None:
        """Build the two layers of the network.

        Args:
            channels: Channels of a crop: those of one frame, and the object's mask in it.
        """
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, _HIDDEN, 1), nn.LeakyReLU(0.1, inplace=True), nn.Conv2d(_HIDDEN, 1, 1)
        )

    def forward(
        self,
        crops: Float[Tensor, "objects channels side side"],
        inside: Float[Tensor, "objects side side"],
        extent: float,
    ) -> Float[Tensor, "objects 2"]:
        """Column and row of each object's centroid from the middle of its crop.

        Args:
            crops: Crops around the objects.
            inside: 1 where a crop shows the picture, 0 beyond its border, where nothing is covered.
            extent: Side of a crop, px.
        """
        coverage = inside * functional.softplus(self.layers(crops)[:, 0], _SHARPNESS)
        side = coverage.shape[-1]
        places = extent * ((torch.arange(side).to(coverage) + 0.5) / side - 0.5)
        total = coverage.sum((1, 2)) + _MIN_TOTAL
        return torch.stack([(coverage.sum(axis) * places).sum(1) / total for axis in (1, 2)], 1)
