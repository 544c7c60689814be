"""Optical flow that is computed once for each pair of frames, for training over many epochs."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core.checks import check_count


class CachedFlow(nn.Module):
    """Remembers the flow of pairs of frames that it has met, in half precision; the oldest are forgotten first.

    A pair is known by a hash of its pixels, so that nothing depends on the order of samples, and augmented frames are
    computed anew. The flow has no gradient.
    """

    def __init__(self, flow: nn.Module, max_pairs: int = 20_000) -> None:
        """Wrap an optical flow.

        Args:
            flow: Flow from two frames, see `perception.flow`; its weights stay fixed.
            max_pairs: Number of pairs that are kept; a pair of 64 × 64 pixels takes 16 KB.
        """
        super().__init__()
        self.flow, self.max_pairs = flow.requires_grad_(False), check_count("max_pairs", max_pairs)
        self._known: OrderedDict[bytes, Tensor] = OrderedDict()

    @torch.no_grad()
    def forward(
        self, first: Float[Tensor, "batch 3 height width"], second: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch 2 height width"]:
        """Estimate the displacement of each pixel of the first frames, in pixels."""
        pixels = torch.cat([first, second], 1).mul(255.0).round().byte().cpu().numpy()
        keys = [hashlib.blake2b(pair.tobytes(), digest_size=16).digest() for pair in pixels]
        missing = [row for row, key in enumerate(keys) if key not in self._known]
        if missing:
            for row, flow in zip(missing, self.flow(first[missing], second[missing]).half().cpu(), strict=True):
                self._known[keys[row]] = flow
        flows = torch.stack([self._known[key] for key in keys])
        while len(self._known) > self.max_pairs:
            self._known.popitem(last=False)
        return flows.to(first)
