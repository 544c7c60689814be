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
from physvision.models.interfaces import AppearanceCode, Decoder, Encoder, Observation
from physvision.physics.engine import Overrides


def perceptron(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers of these sizes with a SiLU between each two."""
    layers: list[nn.Module] = []
    for wide, narrow in pairwise(sizes):
        layers += [nn.Linear(wide, narrow), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def output_layer(network: nn.Module) -> nn.Linear:
    """Last linear layer of a network, whose numbers come out."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)][-1]


def zero_init_output(network: nn.Module) -> None:
    """Zero the output layer of a network, so that training starts at a zero output."""
    for parameter in output_layer(network).parameters():
        nn.init.zeros_(parameter)


class MlpEncoder(Encoder):
    """Reads states in consecutive frames by two hidden layers.

    All frames share the first layer. The hidden units of the last frame give the position; with their first and second
    differences over the frames, the velocity. (The slope of three positions would amplify their errors: at 20 frames a
    second, 0.01 rad each become 0.5 rad/s.)

    The mirror image of a symmetric scene is valid too, with opposite signs of angles and velocities. The mean of both
    estimates cancels errors that are not symmetric.
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
        network: nn.Module | None = None,
    ) -> None:
        """Build the layers of the network.

        Args:
            frame: Channels, height and width of a frame.
            coordinates: Meaning of the positions: number of them, and which are angles.
            dt: Time between two frames, s.
            frames_in: Number of given frames, one or more.
            hidden: Width of each hidden layer.
            pool: Side of the squares that are averaged before the first layer, pixels.
            mirror: If true, average the estimates from frames and their mirror images in evaluation. Positions, which
                must be angles, and velocities change sign in a mirror; train with that symmetry.
            network: Frames, after pooling, to `hidden` numbers, such as a `VggEncoder`, in place of the first fully
                connected layer.
        """
        super().__init__()
        self.frame = tuple(frame)
        self.coordinates: Coordinates = coordinates  # pyright: ignore[reportIncompatibleVariableOverride]
        self.dt, self.frames_in = check_positive("dt", dt), check_count("frames_in", frames_in)
        self.pool, self.mirror = check_count("pool", pool), mirror
        if mirror:
            coordinates.check_mirror("mirror")
        pixels = self.frame[0] * (self.frame[1] // pool) * (self.frame[2] // pool)
        self.network = network
        self.pixels = nn.Sequential(nn.Linear(pixels, hidden), nn.SiLU()) if network is None else nn.SiLU()
        self.position = perceptron([hidden, hidden, coordinates.features])
        self.velocity = perceptron([frames_in * hidden, hidden, coordinates.size])

    def observe(  # pyright: ignore[reportIncompatibleMethodOverride]  no context of the clip is used
        self, frames: Shaped[Tensor, "batch times channels height width"]
    ) -> Observation:
        """Estimate positions in all of `frames`, and velocities from frame `frames_in` − 1 on.

        Each frame is encoded once, however many windows contain it.
        """
        if frames.shape[2:] != self.frame or frames.shape[1] < self.frames_in:
            raise ShapeError(
                f"frames: expected shape (batch, {self.frames_in} or more, {', '.join(map(str, self.frame))}), "
                f"got {tuple(frames.shape)}"
            )
        features, velocities = self._encode(frames)
        if self.mirror and not self.training:
            mirrored, back = self._encode(frames.flip(-1))
            features = 0.5 * (features + self.coordinates.mirrored(mirrored))
            velocities = 0.5 * (velocities - back)
        return Observation(self.coordinates.decode(features), velocities)

    def _encode(self, frames: Tensor) -> tuple[Float[Tensor, "batch times features"], Float[Tensor, "batch windows q"]]:
        """Compute position features, as `coordinates` encodes them, and velocities."""
        pooled = _pooled(frames, self.pool)
        if self.network is None:
            hidden = self.pixels(pooled.flatten(2))
        else:
            hidden = self.pixels(self.network(pooled.flatten(0, 1)).unflatten(0, pooled.shape[:2]))
        # Half precision pays in the wide layer; in the narrow ones its rounding would dominate the velocity.
        with torch.autocast(frames.device.type, enabled=False):
            hidden = hidden.to(self.velocity[0].weight.dtype)
            differences = [hidden]
            for _ in range(1, self.frames_in):
                differences.append(differences[-1].diff(dim=1))
            windows = differences[-1].shape[1]
            changes = torch.cat([difference[:, -windows:] for difference in differences], -1)
            return self.position(hidden), self.velocity(changes) / self.dt


def _pooled(frames: Shaped[Tensor, "*batch height width"], pool: int) -> Float[Tensor, "*batch h w"]:
    """Average squares of `pool` pixels a side, 0 to 1; a quarter of the time of `avg_pool2d` on a CPU."""
    height, width = (pool * (size // pool) for size in frames.shape[-2:])
    is_float = frames.is_floating_point()
    # Sums of bytes fit 15 bits up to squares of 11.
    sum_dtype = frames.dtype if is_float else torch.int16 if pool <= 11 else torch.int32
    rows = reduce(torch.add, [frames[..., start:height:pool, :width].to(sum_dtype) for start in range(pool)])
    total = reduce(torch.add, [rows[..., start::pool] for start in range(pool)])
    return total * (1.0 / (pool**2 if is_float else 255 * pool**2))


class MlpDecoder(Decoder):
    """Renders the frame of a state by two hidden layers; velocities do not affect it."""

    def __init__(self, frame: tuple[int, int, int], coordinates: Coordinates, hidden: int = 256) -> None:
        """Build the layers of the network.

        Args:
            frame: Channels, height and width of a frame.
            coordinates: Meaning of the positions: number of them, and which are angles.
            hidden: Width of each hidden layer.
        """
        super().__init__()
        self.frame, self.coordinates = tuple(frame), coordinates
        pixels = self.frame[0] * self.frame[1] * self.frame[2]
        self.network = perceptron([coordinates.features, hidden, hidden, pixels])

    def forward(
        self, state: State, properties: Overrides = None, appearance: AppearanceCode | None = None
    ) -> Float[Tensor, "batch channels height width"]:
        """Render the frame of each state, brightness about 0 to 1."""
        if state.q.shape[-1] != self.coordinates.size:
            raise InputError(f"state.q: expected {self.coordinates.size} positions, got {state.q.shape[-1]}")
        return self.network(self.coordinates.encode(state.q)).unflatten(-1, self.frame)
