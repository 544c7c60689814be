"""Square pieces of pictures around whole pixels."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


def crop(
    pictures: Float[Tensor, "batch objects channels height width"],
    centers: Int[Tensor, "batch objects 2"],
    side: int,
    outside: float = 0.0,
) -> Float[Tensor, "batch objects channels side side"]:
    """A piece of each object's picture, not resampled, so that nothing of it is blurred.

    Args:
        pictures: one for each object.
        centers: column and row of the pixel that gets into the middle; of an even side, right below it.
        side: of the pieces, pixels.
        outside: what is beyond a picture's border.
    """
    before, after = side // 2, side - side // 2
    padded = functional.pad(pictures, (before, after, before, after), value=outside)
    height, width = pictures.shape[-2:]
    steps = torch.arange(side, device=pictures.device)
    rows = centers[..., 1].clamp(0, height - 1)[..., None] + steps
    columns = centers[..., 0].clamp(0, width - 1)[..., None] + steps
    channels = pictures.shape[2]
    rows = rows[:, :, None, :, None].expand(-1, -1, channels, -1, padded.shape[-1])
    columns = columns[:, :, None, None, :].expand(-1, -1, channels, side, -1)
    return padded.gather(3, rows).gather(4, columns)
