"""What an encoder is given of each object: three frames and two flows, everything else masked away."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import ShapeError

FRAMES = 3
CHANNELS = 3 * FRAMES + 2 * (FRAMES - 1)


def object_inputs(
    frames: Float[Tensor, "batch frames rgb height width"],
    masks: Float[Tensor, "batch frames objects height width"],
    flows: Float[Tensor, "batch flows xy height width"],
) -> Float[Tensor, "batch objects 13 height width"]:
    """Channels of each object: its part of each frame, then of each flow.

    Args:
        frames: three in a row, 0 to 1.
        masks: the object's share of each pixel of each frame.
        flows: from the first frame to the second and from the second to the third, pixels; each is masked by the frame
            that it leaves from.
    """
    if frames.shape[1] != FRAMES or masks.shape[1] != FRAMES or flows.shape[1] != FRAMES - 1:
        raise ShapeError(
            f"expected 3 frames, 3 masks and 2 flows, got {frames.shape[1]}, {masks.shape[1]} and {flows.shape[1]}"
        )
    by_object = masks.transpose(1, 2).unsqueeze(3)
    seen = by_object * frames.unsqueeze(1)
    moved = by_object[:, :, :-1] * flows.unsqueeze(1)
    return torch.cat([seen.flatten(2, 3), moved.flatten(2, 3)], 2)
