"""Textures: images that go around shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import interpolate

from physvision.core import InputError, ShapeError
from physvision.core.checks import check_count, check_like, check_tensor


def checker(
    first: Sequence[float], second: Sequence[float], squares: tuple[int, int] = (8, 8), resolution: int = 8
) -> Float[Tensor, "channels height width"]:
    """A chess board: `first` in its upper left corner.

    Args:
        first: a colour, one number a channel, in [0, 1].
        second: the other colour.
        squares: along the height and along the width.
        resolution: texels along the side of a square; the border between two squares is one texel wide.
    """
    if len(first) != len(second) or not len(first):
        raise InputError(f"checker: expected two colours of as many channels, got {first!r} and {second!r}")
    rows, columns = (check_count("squares", count) for count in squares)
    check_count("resolution", resolution)
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    odd = ((x + y) % 2).repeat_interleave(resolution, 0).repeat_interleave(resolution, 1)
    colors = torch.tensor([list(first), list(second)], dtype=torch.float32)
    return colors[odd].permute(2, 0, 1).contiguous()


def stripes(
    first: Sequence[float], second: Sequence[float], count: float, height: int, width: int, turn: float = 0.0
) -> Float[Tensor, "channels height width"]:
    """Colours that change from one to the other and back, `count` times, as a cosine does: a gradient everywhere.

    Args:
        first: a colour, one number a channel, in [0, 1]; that of the left border.
        second: the other colour.
        count: of periods over the texture.
        height: texels.
        width: texels.
        turn: by which the direction of change is turned from the width towards the height, radians.
    """
    y, x = ((torch.arange(check_count("size", size)) + 0.5) / size for size in (height, width))
    along = math.cos(turn) * x[None, :] + math.sin(turn) * y[:, None]
    share = 0.5 - 0.5 * torch.cos(2 * math.pi * count * along)
    one, other = (torch.tensor([float(value) for value in color])[:, None, None] for color in (first, second))
    return one + share * (other - one)


def noise(channels: int, cells: tuple[int, int], height: int, width: int, seed: int) -> Tensor:
    """A texture (channels, height, width) of smooth noise between −1 and 1: random values in cells, interpolated.

    Args:
        channels: of the texture.
        cells: with a value each, along the height and along the width.
        height: texels.
        width: texels.
        seed: of the values.
    """
    generator = torch.Generator().manual_seed(seed)
    values = 2 * torch.rand(1, channels, *cells, generator=generator) - 1
    return interpolate(values, (height, width), mode="bilinear", align_corners=True)[0]


def pack_textures(
    textures: Sequence[Tensor], batch: int, channels: int, like: Tensor
) -> tuple[Float[Tensor, "worlds channels texels"], tuple[tuple[int, int, int], ...]]:
    """All textures in one tensor, and where each begins with its height and width.

    Each is a colour (channels,), an image (channels, height, width), or one of either for every world of the batch. As
    long as all are shared by the worlds, the tensor holds them once and is expanded over the batch.
    """
    flat, places, at = [], [], 0
    for index, given in enumerate(textures):
        name = f"textures[{index}]"
        texture = check_like(name, check_tensor(name, given), "poses", like)
        if texture.dim() in (1, 2):
            texture = texture[..., None, None]
        if texture.dim() not in (3, 4) or texture.shape[-3] != channels or 0 in texture.shape:
            raise ShapeError(
                f"{name}: expected ({channels},), ({channels}, height, width) or one of these a world with the batch "
                f"of {batch} in front, got {tuple(given.shape)}; the number of channels is that of the background"
            )
        if texture.dim() == 4 and texture.shape[0] not in (1, batch):
            raise ShapeError(f"{name}: expected a batch of {batch} as poses has, got {tuple(given.shape)}")
        height, width = texture.shape[-2:]
        places.append((at, height, width))
        at += height * width
        flat.append(texture.reshape(-1 if texture.dim() == 4 else 1, channels, height * width))
    if not flat:
        return like.new_zeros(1, channels, 1).expand(batch, -1, -1), ()
    worlds = max(texture.shape[0] for texture in flat)
    if len(flat) == 1:
        return flat[0].expand(batch, -1, -1), tuple(places)
    packed = torch.cat([texture.expand(worlds, -1, -1) for texture in flat], 2)
    return packed.expand(batch, -1, -1), tuple(places)
