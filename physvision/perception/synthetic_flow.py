"""Synthetic pairs of frames with known optical flow: plain or textured shapes that move over a background.

Each layer has a pose at each of two times. The inverse pose maps a pixel to the layer's own image, where its color is
looked up, so both frames are exact resamplings of one scene. The flow at a pixel of the first frame is the displacement
of the foremost layer there. Backgrounds are static or move; shapes translate and rotate. Pixels that are occluded in
the second frame have a flow as well.
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
    """Batch of frame pairs from 0 to 1, with the flow (x, y), px, and masks of shapes, both of the first frame.

    One mask may hold all shapes, or each its own.
    """

    first: Float[Tensor, "batch 3 height width"]
    second: Float[Tensor, "batch 3 height width"]
    flow: Float[Tensor, "batch 2 height width"]
    shapes: Float[Tensor, "batch shapes height width"]


@dataclass(frozen=True)
class SyntheticFlow:
    """Distribution of synthetic frame pairs.

    Attributes:
        size: Side of the frames, px.
        max_shapes: Largest number of shapes in front of the background; the smallest number is one.
        radius_range: Smallest and largest radius of the shapes, px.
        max_speed: Largest displacement of a shape, px.
        max_background_speed: Largest displacement of a moving background, px.
        max_rotation: Largest rotation of a shape, rad.
        textured_fraction: Fraction of the layers, background included, that have a texture.
        max_noise: Largest standard deviation of the pixel noise, as a fraction of full scale.
    """

    size: int = 64
    max_shapes: int = 6
    radius_range: tuple[float, float] = (2.0, 14.0)
    max_speed: float = 6.0
    max_background_speed: float = 3.0
    max_rotation: float = 0.2
    textured_fraction: float = 0.6
    max_noise: float = 0.03

    def draw(self, batch: int, generator: torch.Generator) -> FlowSample:
        """Draw a batch of frame pairs."""
        height = width = self.size
        y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
        pixels = torch.stack([x, y], -1).expand(batch, height, width, 2)
        frames = []
        background = self._draw_layer(batch, generator, is_background=True)
        shapes = [self._draw_layer(batch, generator, is_background=False) for _ in range(self.max_shapes)]
        count = torch.randint(1, self.max_shapes + 1, (batch,), generator=generator)
        flow = background.displacement(pixels)
        mask = torch.zeros(batch, height, width)
        noise = self.max_noise * torch.rand(batch, 1, 1, 1, generator=generator) ** 2
        for time in (0, 1):
            frame = background.color(background.to_local(pixels, time))
            for index, shape in enumerate(shapes):
                local = shape.to_local(pixels, time)
                coverage = shape.coverage(local) * (index < count)[:, None, None]
                frame = frame + coverage[..., None] * (shape.color(local) - frame)
                if time == 0:
                    visible = coverage > 0.5
                    flow = torch.where(visible[..., None], shape.displacement(pixels), flow)
                    mask = torch.where(visible, 1.0, mask)
            frame = frame + noise * torch.randn(frame.shape, generator=generator)
            frames.append(frame.clamp(0, 1).permute(0, 3, 1, 2))
        return FlowSample(frames[0], frames[1], flow.permute(0, 3, 1, 2), mask.unsqueeze(1))

    def _draw_layer(self, batch: int, generator: torch.Generator, is_background: bool) -> _Layer:
        def uniform(*shape: int) -> Tensor:
            return torch.rand(batch, *shape, generator=generator)

        size = self.size
        angle = 2 * math.pi * uniform(1)
        direction = torch.cat([angle.cos(), angle.sin()], 1)
        is_textured = uniform() < self.textured_fraction
        elongation = 1 + 0.6 * uniform() * (uniform() < 0.4)
        exponent = torch.where(uniform() < 0.6, 2.0, 8.0)
        # No invisible motion is drawn, such as that of a plain background or the rotation of a plain disc. Small speeds
        # and small shapes are frequent in the data sets and hard to estimate, so they are drawn more often.
        if is_background:
            is_moving = is_textured & (uniform() < 0.5)
            shift = self.max_background_speed * uniform(1) ** 2 * direction * is_moving[:, None]
            rotation = 0.1 * self.max_rotation * (2 * uniform() - 1) * is_moving
        else:
            is_rotating = (uniform() < 0.5) & (is_textured | (elongation > 1) | (exponent > 2))
            shift = self.max_speed * uniform(1) ** 1.5 * direction
            rotation = self.max_rotation * (2 * uniform() - 1) * is_rotating
        min_radius, max_radius = self.radius_range
        radius = min_radius * (max_radius / min_radius) ** uniform()
        contrast = 0.5 * (0.2 + 0.8 * uniform()) * is_textured
        color = uniform(3, 1, 1)
        if is_background:
            # Most tabletops are dark and plain, so backgrounds are darkened, and some are black.
            color = color * uniform(1, 1, 1) * (uniform(1, 1, 1) < 0.7)
        image = color + contrast[:, None, None, None] * _draw_textures(batch, generator)
        return _Layer(
            center=size * uniform(2),
            heading=2 * math.pi * uniform(),
            shift=shift,
            rotation=rotation,
            radii=torch.stack([radius * elongation, radius / elongation], 1),
            exponent=exponent,
            image=image.clamp(0, 1),
        )


@dataclass(frozen=True)
class _Layer:
    """Superellipse |x/a|ⁿ + |y/b|ⁿ ≤ 1 with an image, at two poses; n = 2 is an ellipse, n = 8 almost a rectangle.

    Attributes:
        center: Center in the first frame, px, (batch, 2).
        heading: Rotation angle in the first frame, rad, (batch,).
        shift: Displacement of the center between the frames, px, (batch, 2).
        rotation: Rotation between the frames, rad, (batch,).
        radii: Half-axes a and b, px, (batch, 2).
        exponent: Exponent n of the superellipse, (batch,).
        image: Image of the layer, one texel per pixel, (batch, 3, height, width).
    """

    center: Tensor
    heading: Tensor
    shift: Tensor
    rotation: Tensor
    radii: Tensor
    exponent: Tensor
    image: Tensor

    def to_local(self, pixels: Tensor, time: int) -> Tensor:
        """Transform points of the first (time 0) or second (time 1) frame to the layer's coordinates."""
        center = self.center + time * self.shift
        return _rotate(pixels - center[:, None, None], -(self.heading + time * self.rotation))

    def displacement(self, pixels: Tensor) -> Tensor:
        """Return the displacement of points from the first to the second frame, px."""
        offset = pixels - self.center[:, None, None]
        return _rotate(offset, self.rotation) - offset + self.shift[:, None, None]

    def coverage(self, local: Tensor) -> Tensor:
        """Return the fraction of each pixel that the shape covers, by a first-order distance from its edge."""
        exponent = self.exponent[:, None, None, None]
        scaled = (local.abs() / self.radii[:, None, None]).clamp_min(1e-4)
        superellipse = scaled.pow(exponent).sum(-1)
        scaled_distance = superellipse.pow(1 / exponent[..., 0])
        gradient = (scaled.pow(exponent - 1) / self.radii[:, None, None]).norm(dim=-1)
        gradient = gradient * scaled_distance.pow(1 - exponent[..., 0])
        return (0.5 - (scaled_distance - 1) / gradient).clamp(0, 1)

    def color(self, local: Tensor) -> Tensor:
        """Return the color at points of the layer, interpolated bilinearly in its image, reflected at the border."""
        grid = local * 2 / self.image.shape[-1]
        colors = functional.grid_sample(self.image, grid, padding_mode="reflection", align_corners=False)
        return colors.permute(0, 2, 3, 1)


def _rotate(points: Tensor, angle: Tensor) -> Tensor:
    cosine, sine = angle.cos()[:, None, None], angle.sin()[:, None, None]
    x, y = points.unbind(-1)
    return torch.stack([cosine * x - sine * y, sine * x + cosine * y], -1)


def _draw_textures(batch: int, generator: torch.Generator, size: int = 96) -> Tensor:
    """Draw smooth colored noise of several scales, values of about −1 to 1."""
    texture = torch.zeros(batch, 3, size, size)
    for cells in (4, 12, 32):
        weight = torch.rand(batch, 1, 1, 1, generator=generator)
        saturation = torch.rand(batch, 1, 1, 1, generator=generator)
        noise = torch.randn(batch, 3, cells, cells, generator=generator)
        noise = saturation * noise + (1 - saturation) * noise.mean(1, keepdim=True)
        matrix = _bicubic_matrix(cells, size)
        texture += weight * (matrix @ noise @ matrix.T)
    return texture.clamp(-2, 2)


@cache
def _bicubic_matrix(cells: int, size: int) -> Tensor:
    """Return the matrix of bicubic interpolation along one axis; its product is much faster than `interpolate`."""
    unit_vectors = torch.eye(cells)[:, None, :, None]
    return functional.interpolate(unit_vectors, size=(size, 1), mode="bicubic", align_corners=False)[:, 0, :, 0].T


class FlowPairs(Dataset[FlowSample]):
    """Endless data set of batches of synthetic frame pairs, drawn on access from the seed and the batch's index.

    Its length is that of an epoch; later indices are of later epochs.
    """

    def __init__(self, batches: int, batch: int, seed: int) -> None:
        """Set the size and the seed of the data set.

        Args:
            batches: Number of batches an epoch.
            batch: Number of pairs per batch.
            seed: Seed of all batches.
        """
        self.batches, self.batch, self.seed, self.recipe = batches, batch, seed, SyntheticFlow()

    def __len__(self) -> int:
        return self.batches

    def __getitem__(self, index: int) -> FlowSample:
        epoch, number = divmod(index, self.batches)
        seed = (self.seed + 2 * epoch) * 1_000_003 + number  # epochs of even seeds share none with odd seeds
        return self.recipe.draw(self.batch, torch.Generator().manual_seed(seed))
