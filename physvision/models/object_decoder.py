"""The decoder of objects: a network draws where each covers the picture, in its own colour."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import ShapeError, State
from physvision.models.parts import Decoder
from physvision.physics.engine import Overrides

# Waves across the picture by which a place is told to the network: it draws fine detail from fine waves.
_WAVES = (1, 2, 4, 8)
FEATURES = 2 + 4 * len(_WAVES)
_EMPTY = -4.0  # what the network starts from: next to nothing is covered


class ObjectDecoder(Decoder):
    """A state of discs to its frame, by one network for all objects.

    The network is given where an object is and says which share of each pixel it covers; the object's colour, which is
    learned, replaces so much of the background's.
    """

    def __init__(
        self,
        size: tuple[int, int],
        colors: Sequence[tuple[float, float, float]],
        network: nn.Module,
        background: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Put it together.

        Args:
            size: height and width of a frame, pixels.
            colors: red, green, blue of each object to begin with, 0 to 1.
            network: `FEATURES` numbers to a picture of one channel and of that size.
            background: red, green, blue behind the objects to begin with, 0 to 1.
        """
        super().__init__()
        self.size = tuple(size)
        # Three times as fast on a processor.
        self.network = network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.colors = nn.Parameter(torch.tensor([list(color) for color in colors], dtype=torch.float32))
        self.background = nn.Parameter(torch.tensor(list(background), dtype=torch.float32))

    def forward(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch 3 height width"]:
        """The frame of each state, brightness about 0 to 1."""
        objects = len(self.colors)
        if state.q.shape[1] != 3 * objects:
            raise ShapeError(f"state.q: expected x, y, angle of {objects} objects, got {state.q.shape[1]} positions")
        places = state.q.unflatten(1, (objects, 3))[..., :2]
        drawn = self.network(self._features(places).flatten(0, 1)).unflatten(0, (-1, objects))
        if drawn.shape[2:] != (1, *self.size):
            raise ShapeError(f"network: expected pictures of shape {(1, *self.size)}, got {tuple(drawn.shape[2:])}")
        cover = torch.sigmoid(drawn + _EMPTY)
        contrast = (self.colors - self.background)[None, :, :, None, None]
        return self.background[:, None, None] + (cover * contrast).sum(1)

    def _features(self, places: Float[Tensor, "batch objects 2"]) -> Float[Tensor, "batch objects features"]:
        """Places from −1 to 1, and the cosines and sines of waves of which so many halves lie across the picture."""
        height, width = self.size
        at = 2 * places / places.new_tensor([width, height]) - 1
        angles = torch.stack([math.pi * waves * at for waves in _WAVES], -1).flatten(2)
        return torch.cat([at, angles.cos(), angles.sin()], -1)
