"""Textures: images that go around shapes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

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
