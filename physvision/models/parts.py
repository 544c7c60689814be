"""What stands around an engine: an encoder that reads states in frames, and a decoder that draws them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from physvision.core import Coordinates, State, Trajectory
from physvision.physics.engine import Overrides


@dataclass(frozen=True)
class Observation:
    """What an encoder reads in consecutive frames. The last of everything belongs to the last frame.

    Attributes:
        positions: in every frame that the encoder can read by itself, at least in those that have a velocity.
        velocities: in every frame with enough frames before it.
        confidence: how sure the encoder is of each object in those frames, 0 to 1; None if it does not say.
    """

    positions: Float[Tensor, "batch times nq"]
    velocities: Float[Tensor, "batch windows nv"]
    confidence: Float[Tensor, "batch windows objects"] | None = None

    @property
    def trajectory(self) -> Trajectory:
        """The states in all frames that have a velocity."""
        return Trajectory(self.positions[:, -self.velocities.shape[1] :], self.velocities)

    @property
    def state(self) -> State:
        """The state in the last frame."""
        return State(self.positions[:, -1], self.velocities[:, -1])

    def to(self, dtype: torch.dtype) -> Observation:
        """The same observation in another precision."""
        sure = None if self.confidence is None else self.confidence.to(dtype)
        return Observation(self.positions.to(dtype), self.velocities.to(dtype), sure)


class Encoder(nn.Module):
    """Reads positions and velocities in consecutive frames. A subclass defines `observe`.

    Attributes:
        coordinates: what the positions are, where single frames are read; None for an encoder that says of a whole
            window where things are at its end.
    """

    coordinates: Coordinates | None = None

    def observe(self, frames: Shaped[Tensor, "batch times channels height width"]) -> Observation:
        """What is seen in consecutive frames, bytes or of brightness 0 to 1, at least as many as a velocity takes."""
        raise NotImplementedError

    def forward(self, frames: Shaped[Tensor, "batch times channels height width"]) -> State:
        """The state in the last of `frames`."""
        return self.observe(frames).state


class Decoder(nn.Module):
    """Draws states. A subclass defines `forward`; a camera that is bound to an engine has the same signature."""

    def forward(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch channels height width"]:
        """The frame of each state, brightness about 0 to 1.

        Args:
            state: what is drawn.
            properties: the engine's, which a camera draws; a network has learned what things look like.
        """
        raise NotImplementedError


def windows(
    frames: Shaped[Tensor, "batch times channels height width"], length: int
) -> Shaped[Tensor, "batch windows length channels height width"]:
    """All windows of `length` consecutive frames, for an encoder that can only read whole ones."""
    return frames.unfold(1, length, 1).movedim(-1, 2)
