"""The policy network on camera frames: each frame is encoded once and used in three decisions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d
from torch.utils.checkpoint import checkpoint

from physvision.control.policies import Policy
from physvision.core import InputError

CONTEXT_FRAMES = 3  # frames in a decision
DIFFERENCE_GAIN = 5.0  # factor of differences between successive frames' features


class FramePolicy(Policy):
    """Three convolutions on each frame, and three linear layers on the features of three frames.

    Each convolution is 3 × 3, without padding, followed by 2 × 2 max pooling and ReLU; no layer has a bias. The first
    linear layer gets the features of the newest frame and the two differences that led to it, amplified: the same
    information as the three frames, but the velocity need not be a small difference of large weights.

    The hidden state has the features of the two frames before, and whether there were any: at first the first frame
    takes their place.
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
            height: Height of a frame, in pixels.
            width: Width of a frame, in pixels.
            channels: Channels of each convolution.
            hidden: Sizes of the two hidden linear layers.
            recompute: If true, activations of the convolutions are recomputed in the backward pass (gradient
                checkpointing), which takes a third more time and, at 288 × 96, a fifth of the memory.
        """
        super().__init__()
        self.configuration = {"height": height, "width": width, "channels": channels, "hidden": list(hidden)}
        self.shape, self.recompute = (3, height, width), recompute
        for _ in range(3):
            height, width = (height - 2) // 2, (width - 2) // 2
        if height < 1 or width < 1:
            raise InputError(
                f"height, width: expected at least 22 pixels each for three convolutions, got {self.shape[1:]}"
            )
        self.features = channels * height * width
        self.hidden_size = (CONTEXT_FRAMES - 1) * self.features + 1
        self.convolutions = nn.ModuleList(nn.Conv2d(n, channels, 3, bias=False) for n in (3, channels, channels))
        self.first = nn.Linear(CONTEXT_FRAMES * self.features, hidden[0], bias=False)
        self.second = nn.Linear(hidden[0], hidden[1], bias=False)
        self.output = nn.Linear(hidden[1], 1, bias=False)
        for name, weight in self.named_parameters():
            if not name.startswith("output"):
                # With ReLU, activations keep the scale of the input.
                nn.init.kaiming_normal_(weight, nonlinearity="relu")

    def encode(self, frames: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch features"]:
        """Return the features of frames."""
        # With channels side by side in memory, convolutions of so few pixels take less than half of the time.
        memory_format = torch.channels_last
        layer = frames.contiguous(memory_format=memory_format)
        for weight in self.convolutions.parameters():
            # Max pooling and ReLU commute, and ReLU after pooling is a quarter of the work.
            layer = max_pool2d(conv2d(layer, weight.contiguous(memory_format=memory_format)), 2).relu()
        return layer.flatten(1)

    def forward(self, obs: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output for frames, (batch, 3 · height · width), and the features of the last two of them."""
        frames = obs.unflatten(1, self.shape)
        if self.recompute and torch.is_grad_enabled():
            new = checkpoint(self.encode, frames, use_reentrant=False)
            assert isinstance(new, Tensor)
        else:
            new = self.encode(frames)
        previous, older, has_previous = hidden.split([self.features, self.features, 1], 1)
        previous, older = previous.where(has_previous > 0, new), older.where(has_previous > 0, new)
        differences = DIFFERENCE_GAIN * (new - previous), DIFFERENCE_GAIN * (previous - older)
        output = self.output(self.second(self.first(torch.cat([new, *differences], 1)).relu()).relu())
        return output, torch.cat([new, previous, torch.ones_like(has_previous)], 1)
