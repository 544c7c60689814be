"""Pairs of frames with known optical flow: shapes, flat or textured, that move over a background, flat or textured.

A layer has a pose at each of two times. A pixel's colour is looked up where the pose puts it in the layer's own
picture, so both frames are exact resamplings of one scene, and the flow of the foremost layer at a pixel of the first
frame is where its pose carries that point. Backgrounds stand still or move; shapes turn and slide; what is hidden in
the second frame has a flow all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset


class FlowSample(NamedTuple):
    """Frames of 0 to 1, the displacement of each pixel of the first (x, y; pixels), and where a shape is in front."""

    first: Float[Tensor, "batch 3 height width"]
    second: Float[Tensor, "batch 3 height width"]
    flow: Float[Tensor, "batch 2 height width"]
    shapes: Float[Tensor, "batch 1 height width"]


@dataclass(frozen=True)
class SyntheticFlow:
    """How the pairs are drawn; every sample follows from its seed.

    Attributes:
        size: side of the frames, pixels.
        most_shapes: number of shapes in front of the background, 1 to this.
        radii: smallest and largest shapes, pixels.
        speed: largest displacement of a shape, pixels.
        background_speed: largest displacement of a moving background, pixels.
        turn: largest turn of a shape, rad.
        textured: share of the layers that have a texture.
        noise: largest standard deviation of a pixel's noise.
    """

    size: int = 64
    most_shapes: int = 6
    radii: tuple[float, float] = (2.0, 14.0)
    speed: float = 6.0
    background_speed: float = 3.0
    turn: float = 0.2
    textured: float = 0.6
    noise: float = 0.03

    def draw(self, batch: int, generator: torch.Generator) -> FlowSample:
        """`batch` pairs."""
        height = width = self.size
        y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
        pixels = torch.stack([x, y], -1).expand(batch, height, width, 2)
        frames = []
        background = self._layer(batch, generator, background=True)
        shapes = [self._layer(batch, generator, background=False) for _ in range(self.most_shapes)]
        count = torch.randint(1, self.most_shapes + 1, (batch,), generator=generator)
        flow = background.displacement(pixels)
        front = torch.zeros(batch, height, width)
        spread = self.noise * torch.rand(batch, 1, 1, 1, generator=generator) ** 2
        for time in (0, 1):
            frame = background.color(background.own(pixels, time))
            for index, shape in enumerate(shapes):
                own = shape.own(pixels, time)
                cover = shape.coverage(own) * (index < count)[:, None, None]
                frame = frame + cover[..., None] * (shape.color(own) - frame)
                if time == 0:
                    hit = cover > 0.5
                    flow = torch.where(hit[..., None], shape.displacement(pixels), flow)
                    front = torch.where(hit, 1.0, front)
            noisy = frame + spread * torch.randn(frame.shape, generator=generator)
            frames.append(noisy.clamp(0, 1).permute(0, 3, 1, 2))
        return FlowSample(frames[0], frames[1], flow.permute(0, 3, 1, 2), front.unsqueeze(1))

    def _layer(self, batch: int, generator: torch.Generator, background: bool) -> _Layer:
        def uniform(*shape: int) -> Tensor:
            return torch.rand(batch, *shape, generator=generator)

        size = self.size
        angle = 2 * math.pi * uniform(1)
        direction = torch.cat([angle.cos(), angle.sin()], 1)
        textured = uniform() < self.textured
        stretch = 1 + 0.6 * uniform() * (uniform() < 0.4)
        corners = torch.where(uniform() < 0.6, 2.0, 8.0)
        # What nobody could see does not move: a flat background, the turn of a flat disc. Small speeds and small shapes
        # are what the data sets hold, and what is hard: they are drawn more often.
        if background:
            moves = textured & (uniform() < 0.5)
            shift = self.background_speed * uniform(1) ** 2 * direction * moves[:, None]
            turn = 0.1 * self.turn * (2 * uniform() - 1) * moves
        else:
            turns = (uniform() < 0.5) & (textured | (stretch > 1) | (corners > 2))
            shift = self.speed * uniform(1) ** 1.5 * direction
            turn = self.turn * (2 * uniform() - 1) * turns
        radius = self.radii[0] * (self.radii[1] / self.radii[0]) ** uniform()
        contrast = 0.5 * (0.2 + 0.8 * uniform()) * textured
        flat = uniform(3, 1, 1)
        if background:
            # Tables are mostly dark and plain.
            flat = flat * uniform(1, 1, 1) * (uniform(1, 1, 1) < 0.7)
        picture = flat + contrast[:, None, None, None] * _textures(batch, generator)
        return _Layer(
            center=size * uniform(2),
            heading=2 * math.pi * uniform(),
            shift=shift,
            turn=turn,
            radii=torch.stack([radius * stretch, radius / stretch], 1),
            corners=corners,
            picture=picture.clamp(0, 1),
        )


@dataclass(frozen=True)
class _Layer:
    """A superellipse |x/a|ⁿ + |y/b|ⁿ ≤ 1 with a picture, at two poses; n = 2 is an ellipse, 8 almost a rectangle."""

    center: Tensor
    heading: Tensor
    shift: Tensor
    turn: Tensor
    radii: Tensor
    corners: Tensor
    picture: Tensor

    def own(self, pixels: Tensor, time: int) -> Tensor:
        """Points of a frame in the layer's axes."""
        center = self.center + time * self.shift
        return _rotated(pixels - center[:, None, None], -(self.heading + time * self.turn))

    def displacement(self, pixels: Tensor) -> Tensor:
        """Where the first pose's points go by the second."""
        away = pixels - self.center[:, None, None]
        return _rotated(away, self.turn) - away + self.shift[:, None, None]

    def coverage(self, own: Tensor) -> Tensor:
        """Share of the pixels that the shape covers, by its distance from the edge along the gradient."""
        power = self.corners[:, None, None, None]
        scaled = (own.abs() / self.radii[:, None, None]).clamp_min(1e-4)
        level = scaled.pow(power).sum(-1)
        radial = level.pow(1 / power[..., 0])
        slope = (scaled.pow(power - 1) / self.radii[:, None, None]).norm(dim=-1) * radial.pow(1 - power[..., 0])
        return (0.5 - (radial - 1) / slope).clamp(0, 1)

    def color(self, own: Tensor) -> Tensor:
        """Bilinear in the layer's picture, a texel a pixel, mirrored at its borders."""
        size = self.picture.shape[-1]
        grid = own * 2 / size
        found = functional.grid_sample(self.picture, grid, padding_mode="reflection", align_corners=False)
        return found.permute(0, 2, 3, 1)


def _rotated(points: Tensor, angle: Tensor) -> Tensor:
    cosine, sine = angle.cos()[:, None, None], angle.sin()[:, None, None]
    x, y = points.unbind(-1)
    return torch.stack([cosine * x - sine * y, sine * x + cosine * y], -1)


def _textures(batch: int, generator: torch.Generator, size: int = 96) -> Tensor:
    """Smooth noise of several scales with colours, about −1 to 1."""
    total = torch.zeros(batch, 3, size, size)
    for cells in (4, 12, 32):
        weight = torch.rand(batch, 1, 1, 1, generator=generator)
        gray = torch.rand(batch, 1, 1, 1, generator=generator)
        noise = torch.randn(batch, 3, cells, cells, generator=generator)
        noise = gray * noise + (1 - gray) * noise.mean(1, keepdim=True)
        spread = _spread(cells, size)
        total += weight * (spread @ noise @ spread.T)
    return total.clamp(-2, 2)


@cache
def _spread(cells: int, size: int) -> Tensor:
    """What bicubic interpolation multiplies each axis with; much faster than calling it."""
    each = torch.eye(cells)[:, None, :, None]
    return functional.interpolate(each, size=(size, 1), mode="bicubic", align_corners=False)[:, 0, :, 0].T


class FlowPairs(Dataset[FlowSample]):
    """Batches of pairs, each drawn from its own number and the seed when it is asked for."""

    def __init__(self, batches: int, batch: int = 8, seed: int = 0, recipe: SyntheticFlow | None = None) -> None:
        """Choose how many batches there are, of how many pairs, and how they are drawn."""
        self.batches, self.batch, self.seed, self.recipe = batches, batch, seed, recipe or SyntheticFlow()

    def __len__(self) -> int:
        return self.batches

    def __getitem__(self, index: int) -> FlowSample:
        if not 0 <= index < self.batches:
            raise IndexError(index)
        return self.recipe.draw(self.batch, torch.Generator().manual_seed(self.seed * 1_000_003 + index))
