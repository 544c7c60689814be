"""Encoders and decoders of fully connected layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.core import InputError, ShapeError, State, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.models.coordinates import Coordinates


def perceptron(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers of these sizes with a SiLU between each two."""
    layers: list[nn.Module] = []
    for wide, narrow in pairwise(sizes):
        layers += [nn.Linear(wide, narrow), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


class MlpEncoder(nn.Module):
    """Consecutive frames to the state at the last of them, by two hidden layers.

    All frames go through the same first layer, so its weights are as many as for one frame. Each frame gives a
    position; the velocity is their slope and a correction that the network adds. From one frame the
    velocity is the network's guess alone.
    """

    def __init__(
        self,
        frame: tuple[int, int, int],
        coordinates: Coordinates,
        dt: float,
        frames_in: int = 3,
        hidden: int = 256,
        pool: int = 1,
    ) -> None:
        """Build the network.

        Args:
            frame: channels, height and width of a frame.
            coordinates: what the positions are.
            dt: seconds between two frames.
            frames_in: frames that are given, one or more.
            hidden: width of each hidden layer.
            pool: squares of so many pixels a side are averaged before the first layer sees them.
        """
        super().__init__()
        self.frame, self.coordinates = tuple(frame), coordinates
        self.dt, self.frames_in = check_positive("dt", dt), check_count("frames_in", frames_in)
        self.pool = check_count("pool", pool)
        pixels = self.frame[0] * (self.frame[1] // pool) * (self.frame[2] // pool)
        self.pixels = nn.Sequential(nn.Linear(pixels, hidden), nn.SiLU())
        self.position = perceptron([hidden, hidden, coordinates.features])
        self.velocity = perceptron([frames_in * hidden, hidden, coordinates.size])

    def forward(self, frames: Float[Tensor, "batch times channels height width"]) -> State:
        """The state at the last of `frames`, whose brightness is 0 to 1."""
        if frames.shape[1:] != (self.frames_in, *self.frame):
            raise ShapeError(
                f"frames: expected shape (batch, {self.frames_in}, {', '.join(map(str, self.frame))}), "
                f"got {tuple(frames.shape)}"
            )
        return self.track(frames).final

    def track(self, frames: Float[Tensor, "batch times channels height width"]) -> Trajectory:
        """The states at all of `frames` but the first `frames_in` − 1, what is found in a frame being found once."""
        if self.pool > 1:
            frames = nn.functional.avg_pool2d(frames.flatten(0, 1), self.pool).unflatten(0, frames.shape[:2])
        hidden = self.pixels(frames.flatten(2))
        # Half precision pays in the wide layer; in the narrow ones its rounding would be a velocity of its own.
        with torch.autocast(frames.device.type, enabled=False):
            hidden = hidden.to(self.velocity[0].weight.dtype)
            q = self.coordinates.decode(self.position(hidden))
            v = self.velocity(hidden.unfold(1, self.frames_in, 1).transpose(2, 3).flatten(2))
            if self.frames_in > 1:
                v = v + self._slope(q)
        return Trajectory(q[:, self.frames_in - 1 :], v)

    def _slope(self, q: Float[Tensor, "batch times q"]) -> Float[Tensor, "batch windows q"]:
        """Rate at the last time of each window: exact for a parabola through three frames, for a line through two."""
        rates = self.coordinates.difference(q[:, :-1], q[:, 1:]) / self.dt
        last = rates[:, self.frames_in - 2 :]
        return last if self.frames_in == 2 else 1.5 * last - 0.5 * rates[:, self.frames_in - 3 : -1]


class MlpDecoder(nn.Module):
    """A state to its frame, by two hidden layers; velocities leave no trace in a frame."""

    def __init__(self, frame: tuple[int, int, int], coordinates: Coordinates, hidden: int = 256) -> None:
        """Build the network.

        Args:
            frame: channels, height and width of a frame.
            coordinates: what the positions are.
            hidden: width of each hidden layer.
        """
        super().__init__()
        self.frame, self.coordinates = tuple(frame), coordinates
        pixels = self.frame[0] * self.frame[1] * self.frame[2]
        self.network = perceptron([coordinates.features, hidden, hidden, pixels])

    def forward(self, state: State) -> Float[Tensor, "batch channels height width"]:
        """The frame of each state, brightness 0 to 1 and, where the network errs, a little beyond."""
        if state.q.shape[-1] != self.coordinates.size:
            raise InputError(f"state.q: expected {self.coordinates.size} positions, got {state.q.shape[-1]}")
        return self.network(self.coordinates.encode(state.q)).unflatten(-1, self.frame)
