"""What an encoder is given of each object: three frames and two flows, everything else masked away."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.core import ShapeError
from physvision.perception.crops import crop

FRAMES = 3
CHANNELS = 3 * FRAMES + 2 * (FRAMES - 1)


def object_inputs(
    frames: Float[Tensor, "batch frames rgb height width"],
    masks: Float[Tensor, "batch frames objects height width"],
    flows: Float[Tensor, "batch flows xy height width"],
    centers: Int[Tensor, "batch objects 2"] | None = None,
    side: int | None = None,
    outside: float = 0.0,
) -> Float[Tensor, "batch objects 13 rows columns"]:
    """Channels of each object: its part of each frame, then of each flow.

    Args:
        frames: three in a row, 0 to 1.
        masks: the object's share of each pixel of each frame.
        flows: from the first frame to the second and from the second to the third, pixels; each is masked by the frame
            that it leaves from.
        centers: column and row of each object's pixel around which a piece is cut out, see `crop`, the same for all
            frames and flows.
        side: of the pieces, pixels; whole pictures if not given.
        outside: what the channels hold beyond the picture.
    """
    if frames.shape[1] != FRAMES or masks.shape[1] != FRAMES or flows.shape[1] != FRAMES - 1:
        raise ShapeError(
            f"expected 3 frames, 3 masks and 2 flows, got {frames.shape[1]}, {masks.shape[1]} and {flows.shape[1]}"
        )
    objects = masks.shape[2]
    own = masks.transpose(1, 2)
    everything = torch.cat([frames.flatten(1, 2), flows.flatten(1, 2)], 1).unsqueeze(1).expand(-1, objects, -1, -1, -1)
    if side is not None and centers is not None:
        own, everything = crop(own, centers, side, 1.0), crop(everything, centers, side, outside)
    weights = [frame for frame in range(FRAMES) for _ in "rgb"] + [frame for frame in range(FRAMES - 1) for _ in "xy"]
    return own[:, :, weights] * everything
