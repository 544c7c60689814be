"""Encoders and decoders of fully connected layers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from physvision.core import Coordinates, InputError, ShapeError, State
from physvision.core.checks import check_count, check_positive
from physvision.models.interfaces import Decoder, Encoder, Observation
from physvision.physics.engine import Overrides


def perceptron(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers of these sizes with a SiLU between each two."""
    layers: list[nn.Module] = []
    for wide, narrow in pairwise(sizes):
        layers += [nn.Linear(wide, narrow), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


class MlpEncoder(Encoder):
    """Reads states in consecutive frames by two hidden layers.

    All frames go through the same first layer, so its weights are as many as for one frame. What it makes of the last
    frame gives the position; with how that changed, and how the change changed, the velocity. (The slope of three
    positions would be a first guess of it, but brings in the errors of all three, many times over: at 20 frames a
    second 0.01 rad each are 0.5 rad/s.)

    Some scenes are as true in a mirror, which turns the signs of all angles and velocities. Such a scene can be read
    there too, and the mean of both readings taken, in which errors cancel that are not mirrored themselves.
    """

    def __init__(
        self,
        frame: tuple[int, int, int],
        coordinates: Coordinates,
        dt: float,
        frames_in: int = 3,
        hidden: int = 256,
        pool: int = 1,
        mirror: bool = False,
    ) -> None:
        """Build the network.

        Args:
            frame: channels, height and width of a frame.
            coordinates: what the positions are.
            dt: seconds between two frames.
            frames_in: frames that are given, one or more.
            hidden: width of each hidden layer.
            pool: squares of so many pixels a side are averaged before the first layer sees them.
            mirror: other than in training, take the mean of what is read in the frames and in their mirror images, in
                which all positions, angles alone, and velocities change sign; train with that symmetry for it.
        """
        super().__init__()
        self.frame = tuple(frame)
        self.coordinates: Coordinates = coordinates  # pyright: ignore[reportIncompatibleVariableOverride]
        self.dt, self.frames_in = check_positive("dt", dt), check_count("frames_in", frames_in)
        self.pool, self.mirror = check_count("pool", pool), mirror
        if mirror:
            coordinates.check_mirror("mirror")
        pixels = self.frame[0] * (self.frame[1] // pool) * (self.frame[2] // pool)
        self.pixels = nn.Sequential(nn.Linear(pixels, hidden), nn.SiLU())
        self.position = perceptron([hidden, hidden, coordinates.features])
        self.velocity = perceptron([frames_in * hidden, hidden, coordinates.size])

    def observe(self, frames: Shaped[Tensor, "batch times channels height width"]) -> Observation:
        """Positions in all of `frames`, and velocities from the one on that has `frames_in` − 1 before it.

        What is found in a frame is found once, however many windows it is part of.
        """
        if frames.shape[2:] != self.frame or frames.shape[1] < self.frames_in:
            raise ShapeError(
                f"frames: expected shape (batch, {self.frames_in} or more, {', '.join(map(str, self.frame))}), "
                f"got {tuple(frames.shape)}"
            )
        features, velocities = self._look(frames)
        if self.mirror and not self.training:
            mirrored, back = self._look(frames.flip(-1))
            features = 0.5 * (features + self.coordinates.mirrored(mirrored))
            velocities = 0.5 * (velocities - back)
        return Observation(self.coordinates.decode(features), velocities)

    def _look(self, frames: Tensor) -> tuple[Float[Tensor, "batch times features"], Float[Tensor, "batch windows q"]]:
        """The same, with positions as `coordinates` encodes them."""
        hidden = self.pixels(_pooled(frames, self.pool).flatten(2))
        # Half precision pays in the wide layer; in the narrow ones its rounding would be a velocity of its own.
        with torch.autocast(frames.device.type, enabled=False):
            hidden = hidden.to(self.velocity[0].weight.dtype)
            differences = [hidden]
            for _ in range(1, self.frames_in):
                differences.append(differences[-1].diff(dim=1))
            windows = differences[-1].shape[1]
            changes = torch.cat([difference[:, -windows:] for difference in differences], -1)
            return self.position(hidden), self.velocity(changes) / self.dt


def _pooled(frames: Shaped[Tensor, "*batch height width"], pool: int) -> Float[Tensor, "*batch h w"]:
    """The mean brightness of squares of `pool` pixels a side; on a processor a quarter of `avg_pool2d`'s time."""
    height, width = (pool * (size // pool) for size in frames.shape[-2:])
    light = frames.is_floating_point()
    # Sums of bytes fit 15 bits up to squares of 11.
    exact = frames.dtype if light else torch.int16 if pool <= 11 else torch.int32
    rows = reduce(torch.add, [frames[..., start:height:pool, :width].to(exact) for start in range(pool)])
    total = reduce(torch.add, [rows[..., start::pool] for start in range(pool)])
    return total * (1.0 / (pool**2 if light else 255 * pool**2))


class MlpDecoder(Decoder):
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

    def forward(self, state: State, properties: Overrides = None) -> Float[Tensor, "batch channels height width"]:
        """The frame of each state, brightness 0 to 1 and, where the network errs, a little beyond."""
        if state.q.shape[-1] != self.coordinates.size:
            raise InputError(f"state.q: expected {self.coordinates.size} positions, got {state.q.shape[-1]}")
        return self.network(self.coordinates.encode(state.q)).unflatten(-1, self.frame)
