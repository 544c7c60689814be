"""RAFT (Teed and Deng, 2020), torchvision's recurrent estimator of optical flow, on frames of any size."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.core.registry import register
from physvision.core.weights import read_state_dict
from physvision.perception.flow import FlowField, Frames

# RAFT's features have an eighth of the resolution, and its coarsest correlations an eighth of theirs: 2 × 2 of them at
# least.
_CELL, _MIN_SIDE = 8, 128


@register("physvision.perception.Raft")
class Raft(nn.Module):
    """RAFT with the weights of a file; frames that are too small for it are enlarged."""

    def __init__(self, weights: Path | None = None, large: bool = False, updates: int = 12) -> None:
        """Build the network of one size.

        Args:
            weights: File with the state dict of torchvision's `raft_small` or `raft_large`; random weights, of no use
                before they are replaced, if not given.
            large: If true, `raft_large`, with 5.3 million weights, otherwise `raft_small`, with one million.
            updates: Number of refinements of the flow.
        """
        # Half a second that no other estimator needs.
        from torchvision.models.optical_flow import raft_large, raft_small

        super().__init__()
        self.updates = check_count("updates", updates)
        self.network = (raft_large if large else raft_small)(weights=None, progress=False).eval()
        if weights is not None:
            state = read_state_dict(weights)
            own = self.network.state_dict()
            if {name: value.shape for name, value in state.items()} != {name: own[name].shape for name in own}:
                name = "raft_large" if large else "raft_small"
                raise InputError(f"weights: {weights} are not those of torchvision's {name}; check `large`")
            self.network.load_state_dict(state)

    def forward(self, first: Frames, second: Frames) -> FlowField:
        """Estimate the flow from `first` to `second`."""
        height, width = first.shape[-2:]
        scale = max(1.0, _MIN_SIDE / min(height, width))
        rows, columns = (_CELL * math.ceil(scale * side / _CELL) for side in (height, width))
        images = [
            2.0 * functional.interpolate(frame, (rows, columns), mode="bilinear", align_corners=False) - 1.0
            for frame in (first, second)
        ]
        flow = self.network(*images, num_flow_updates=self.updates)[-1]
        flow = functional.interpolate(flow, (height, width), mode="bilinear", align_corners=False)
        return flow * torch.tensor([width / columns, height / rows]).to(flow)[:, None, None]
