"""Textures, the images that cover shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import interpolate

from physvision.core import ShapeError
from physvision.core.checks import check_count, check_like, check_tensor


def stripes(
    first: Sequence[float], second: Sequence[float], count: float, height: int, width: int
) -> Float[Tensor, "channels height width"]:
    """Return cosine stripes between two colors, with a gradient everywhere.

    Args:
        first: First color, one number a channel, in [0, 1]; that of the left border.
        second: Second color.
        count: Number of periods over the texture.
        height: Height in texels.
        width: Width in texels.
    """
    along = ((torch.arange(check_count("width", width)) + 0.5) / width).expand(check_count("height", height), -1)
    weight = 0.5 - 0.5 * torch.cos(2 * math.pi * count * along)
    start, end = (torch.tensor([float(value) for value in color])[:, None, None] for color in (first, second))
    return start + weight * (end - start)


def noise(channels: int, cells: tuple[int, int], height: int, width: int, seed: int) -> Tensor:
    """Return smooth noise between −1 and 1, (channels, height, width): random values of cells, interpolated.

    Args:
        channels: Number of channels.
        cells: Numbers of cells along the height and along the width.
        height: Height in texels.
        width: Width in texels.
        seed: Seed of the random values.
    """
    generator = torch.Generator().manual_seed(seed)
    values = 2 * torch.rand(1, channels, *cells, generator=generator) - 1
    return interpolate(values, (height, width), mode="bilinear", align_corners=True)[0]


def pack_textures(
    textures: Sequence[Tensor], batch: int, channels: int, like: Tensor
) -> tuple[Float[Tensor, "worlds channels texels"], tuple[tuple[int, int, int], ...]]:
    """Return all textures in one tensor, and the first texel, height and width of each.

    A texture is a color (channels,), an image (channels, height, width), or one of either for every world of the batch.
    If the worlds share all textures, the tensor holds them once and is expanded over the batch.
    """
    flat, layout, at = [], [], 0
    for index, value in enumerate(textures):
        name = f"textures[{index}]"
        texture = check_like(name, check_tensor(name, value), "poses", like)
        if texture.dim() in (1, 2):
            texture = texture[..., None, None]
        if texture.dim() not in (3, 4) or texture.shape[-3] != channels or 0 in texture.shape:
            raise ShapeError(
                f"{name}: expected ({channels},), ({channels}, height, width) or one of these a world with the batch "
                f"of {batch} in front, got {tuple(value.shape)}; the number of channels is that of the background"
            )
        if texture.dim() == 4 and texture.shape[0] not in (1, batch):
            raise ShapeError(f"{name}: expected a batch of {batch} as poses has, got {tuple(value.shape)}")
        height, width = texture.shape[-2:]
        layout.append((at, height, width))
        at += height * width
        flat.append(texture.reshape(-1 if texture.dim() == 4 else 1, channels, height * width))
    if not flat:
        return like.new_zeros(1, channels, 1).expand(batch, -1, -1), ()
    worlds = max(texture.shape[0] for texture in flat)
    if len(flat) == 1:
        return flat[0].expand(batch, -1, -1), tuple(layout)
    packed = torch.cat([texture.expand(worlds, -1, -1) for texture in flat], 2)
    return packed.expand(batch, -1, -1), tuple(layout)
