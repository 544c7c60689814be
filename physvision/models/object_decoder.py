"""A decoder of discs: one network renders the coverage of each object, which is painted in the object's color."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import ShapeError, State
from physvision.core.checks import check_color
from physvision.models.interfaces import AppearanceCode, Decoder
from physvision.physics.engine import Overrides

# Half waves across the image that encode a position; fine detail needs fine waves.
_HALF_WAVES = (1, 2, 4, 8)
FEATURES = 2 + 4 * len(_HALF_WAVES)
_INITIAL_LOGIT = -4.0  # almost nothing is covered at first


class ObjectDecoder(Decoder):
    """A state of discs to its frame, by one network for all objects.

    The network maps an object's position to its coverage of each pixel; the object's color, which is learned, replaces
    that share of the background's.
    """

    def __init__(
        self,
        size: tuple[int, int],
        colors: Sequence[tuple[float, float, float]],
        network: nn.Module,
        background: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Assemble network, colors and background.

        Args:
            size: Height and width of a frame, pixels.
            colors: Initial red, green, blue of each object, 0 to 1.
            network: `FEATURES` numbers to an image of one channel and of that size.
            background: Initial red, green, blue behind the objects, 0 to 1.
        """
        super().__init__()
        self.size = tuple(size)
        # Three times as fast on a CPU.
        self.network = network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        check_color("colors", *colors)
        self.colors = nn.Parameter(torch.tensor([list(color) for color in colors], dtype=torch.float32))
        self.background = nn.Parameter(torch.tensor(list(background), dtype=torch.float32))

    def forward(
        self, state: State, properties: Overrides = None, appearance: AppearanceCode | None = None
    ) -> Float[Tensor, "batch 3 height width"]:
        """Render the frame of each state, brightness about 0 to 1."""
        objects = len(self.colors)
        if state.q.shape[1] != 3 * objects:
            raise ShapeError(f"state.q: expected x, y, angle of {objects} objects, got {state.q.shape[1]} positions")
        positions = state.q.unflatten(1, (objects, 3))[..., :2]
        logits = self.network(self._features(positions).flatten(0, 1)).unflatten(0, (-1, objects))
        if logits.shape[2:] != (1, *self.size):
            raise ShapeError(f"network: expected images of shape {(1, *self.size)}, got {tuple(logits.shape[2:])}")
        coverage = torch.sigmoid(logits + _INITIAL_LOGIT)
        contrast = (self.colors - self.background)[None, :, :, None, None]
        return self.background[:, None, None] + (coverage * contrast).sum(1)

    def _features(self, positions: Float[Tensor, "batch objects 2"]) -> Float[Tensor, "batch objects features"]:
        """Encode positions: from −1 to 1, then cosines and sines of `_HALF_WAVES` half waves across the image."""
        height, width = self.size
        scaled = 2 * positions / positions.new_tensor([width, height]) - 1
        angles = torch.stack([math.pi * count * scaled for count in _HALF_WAVES], -1).flatten(2)
        return torch.cat([scaled, angles.cos(), angles.sin()], -1)
