"""The policy that sees: each frame is encoded once and used in three decisions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d
from torch.utils.checkpoint import checkpoint

from physvision.control.policies import Policy
from physvision.core import InputError

SEEN = 3  # frames in a decision
_CHANGES = 5.0  # by which changes from frame to frame are multiplied


class FramePolicy(Policy):
    """Three convolutions a frame, the same for all frames, and three linear layers of what they make of three frames.

    Each convolution is 3 × 3, without padding, and followed by a rectifier and 2 × 2 max pooling; nothing has a
    constant added. The first linear layer is told of the newest frame, and of the two changes that led to it, enlarged:
    the same as the three frames, but the velocity need not be found as a small difference of large weights.

    The memory holds what was made of the two frames before, and whether there was any yet: at first the frame that is
    seen stands for them too.
    """

    def __init__(
        self,
        height: int = 96,
        width: int = 288,
        channels: int = 32,
        hidden: Sequence[int] = (32, 64),
        recompute: bool = False,
    ) -> None:
        """Set up the layers.

        Args:
            height: of a frame, pixels.
            width: of a frame, pixels.
            channels: of each convolution.
            hidden: widths of the two linear layers between.
            recompute: whether what is between layers of a frame is computed again for the gradient, not kept; it takes
                a third more time and, at 288 × 96, a fifth of the memory.
        """
        super().__init__()
        self.configuration = {"height": height, "width": width, "channels": channels, "hidden": list(hidden)}
        self.shape, self.recompute = (3, height, width), recompute
        for _ in range(3):
            height, width = (height - 2) // 2, (width - 2) // 2
        if height < 1 or width < 1:
            raise InputError(f"height, width: nothing is left of frames of {self.shape[1:]} after three convolutions")
        self.features = channels * height * width
        self.remembered = (SEEN - 1) * self.features + 1
        self.convolutions = nn.ModuleList(nn.Conv2d(n, channels, 3, bias=False) for n in (3, channels, channels))
        self.first = nn.Linear(SEEN * self.features, hidden[0], bias=False)
        self.second = nn.Linear(hidden[0], hidden[1], bias=False)
        self.output = nn.Linear(hidden[1], 1, bias=False)
        for name, weight in self.named_parameters():
            if not name.startswith("output"):
                # Rectified, what is passed on stays as large as what came in.
                nn.init.kaiming_normal_(weight, nonlinearity="relu")

    def encoded(self, frames: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch features"]:
        """What convolutions make of frames."""
        # With channels side by side in memory convolutions of so few pixels take less than half of the time.
        beside = torch.channels_last
        layer = frames.contiguous(memory_format=beside)
        for weight in self.convolutions.parameters():
            # The largest of rectified values is the rectified largest, of a quarter as many.
            layer = max_pool2d(conv2d(layer, weight.contiguous(memory_format=beside)), 2).relu()
        return layer.flatten(1)

    def forward(self, sensed: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs from frames (batch, 3 · height · width), and what is made of the last two of them."""
        frames = sensed.unflatten(1, self.shape)
        if self.recompute and torch.is_grad_enabled():
            new = checkpoint(self.encoded, frames, use_reentrant=False)
            assert isinstance(new, Tensor)
        else:
            new = self.encoded(frames)
        before, older, begun = memory.split([self.features, self.features, 1], 1)
        before, older = before.where(begun > 0, new), older.where(begun > 0, new)
        told = torch.cat([new, _CHANGES * (new - before), _CHANGES * (before - older)], 1)
        output = self.output(self.second(self.first(told).relu()).relu())
        return output, torch.cat([new, before, torch.ones_like(begun)], 1)
