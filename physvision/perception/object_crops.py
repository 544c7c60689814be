"""Network input for each object: three masked frames and two masked flows, cropped around the object."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from physvision.core import ShapeError

INPUT_FRAMES = 3
INPUT_CHANNELS = 3 * INPUT_FRAMES + 2 * (INPUT_FRAMES - 1)


def object_inputs(
    frames: Float[Tensor, "batch frames rgb height width"],
    masks: Float[Tensor, "batch frames objects height width"],
    flows: Float[Tensor, "batch flows xy height width"],
    centers: Int[Tensor, "batch objects 2"] | None = None,
    side: int | None = None,
    fill: float = 0.0,
) -> Float[Tensor, "batch objects 13 rows columns"]:
    """Stack the masked frames and flows of each object as input channels.

    Args:
        frames: Three consecutive frames, from 0 to 1.
        masks: Fraction of each pixel covered by each object, per frame.
        flows: Optical flow between consecutive frames, in pixels; each is masked by the frame that it starts from.
        centers: Column and row of the pixel around which each object is cropped, see `crop_patches`.
        side: Side of the square patches, in pixels; the whole image if None.
        fill: Channel value beyond the image border.
    """
    if frames.shape[1] != INPUT_FRAMES or masks.shape[1] != INPUT_FRAMES or flows.shape[1] != INPUT_FRAMES - 1:
        raise ShapeError(
            f"expected 3 frames, 3 masks and 2 flows, got {frames.shape[1]}, {masks.shape[1]} and {flows.shape[1]}"
        )
    masks = masks.transpose(1, 2)
    channels = torch.cat([frames.flatten(1, 2), flows.flatten(1, 2)], 1)
    channels = channels.unsqueeze(1).expand(-1, masks.shape[1], -1, -1, -1)
    if side is not None and centers is not None:
        masks, channels = crop_patches(masks, centers, side, 1.0), crop_patches(channels, centers, side, fill)
    mask_index = [frame for frame in range(INPUT_FRAMES) for _ in "rgb"]
    mask_index += [frame for frame in range(INPUT_FRAMES - 1) for _ in "xy"]
    return masks[:, :, mask_index] * channels


def crop_patches(
    images: Float[Tensor, "batch objects channels height width"],
    centers: Int[Tensor, "batch objects 2"],
    side: int,
    fill: float = 0.0,
) -> Float[Tensor, "batch objects channels side side"]:
    """Cut a square patch out of each object's image, without resampling.

    Args:
        images: One image for each object.
        centers: Column and row of the central pixel; of an even side, the pixel right below the center.
        side: Side of the patches, in pixels.
        fill: Value beyond the image border.
    """
    before, after = side // 2, side - side // 2
    padded = functional.pad(images, (before, after, before, after), value=fill)
    height, width = images.shape[-2:]
    offsets = torch.arange(side, device=images.device)
    rows = centers[..., 1].clamp(0, height - 1)[..., None] + offsets
    columns = centers[..., 0].clamp(0, width - 1)[..., None] + offsets
    channels = images.shape[2]
    rows = rows[:, :, None, :, None].expand(-1, -1, channels, -1, padded.shape[-1])
    columns = columns[:, :, None, None, :].expand(-1, -1, channels, side, -1)
    return padded.gather(3, rows).gather(4, columns)
