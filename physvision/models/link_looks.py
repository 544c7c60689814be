"""Looks of a chain of links in given frames: textures in the axes of each link, background behind all, shadows.

Nothing here is learned and nothing depends on the frames to predict: textures are means over frames in the links' own
axes, the background is visible where no link is, and one offset and darkness describe the shadows of the whole clip.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from kornia.filters import gaussian_blur2d
from kornia.geometry import translate
from torch import Tensor
from torch.nn import functional

from physvision.camera.projection import Projection, seen_from
from physvision.core import brightness
from physvision.models.interfaces import AppearanceCode
from physvision.models.links import LinkFrames, sample_images, unit_vectors
from physvision.models.tabletop import project

# Rows across and columns along a link of its texture, which reaches this many half widths to the sides and beyond both
# ends: hinges are wider than links.
TEXTURE_SIZE, MARGIN = (8, 20), 1.3
# Standard deviation of a shadow's blur, pixels, and largest offset of the search, cells of 2 × 2 pixels.
SHADOW_BLUR, _MAX_OFFSET = 2.0, 3
# Largest darkness of a shadow, and the share of the best gain from which other offsets count.
_MAX_DARKNESS, _GAIN_SHARE = 0.8, 0.8
# Standard deviation of the blur that fills places which links always hide, pixels.
_FILL_BLUR = 4.0
# Share of a cell from which it counts as covered by a link.
_COVERED = 0.1


@torch.no_grad()
def clip_looks(
    camera: Projection, frames: Tensor, read: LinkFrames, chain: tuple[Tensor, Tensor, Tensor], code: Tensor
) -> AppearanceCode:
    """Read the looks of a clip in given frames.

    Args:
        camera: Camera of all frames, but for its pose.
        frames: Frames that are segmented, (batch, times, 3, height, width).
        read: Their masks and poses.
        chain: Directions of links in these frames (batch, times, links), lengths (batch, links), half width (batch,).
        code: Code of all links.
    """
    images, pose = brightness(frames), read.poses[:, -1]
    textures = unwrapped_textures(camera, images, read, chain)
    masks = functional.interpolate(read.masks.sum(2), frames.shape[-2:], mode="bilinear")
    stacked = torch.cat([images, masks[:, :, None]], 2)
    target = pose[:, None].expand_as(read.poses).flatten(0, 1)
    registered = seen_from(stacked.flatten(0, 1), camera.intrinsics, read.poses.flatten(0, 1), target)
    registered = registered.unflatten(0, stacked.shape[:2])
    shown, masks = registered[:, :, :3], registered[:, :, 3]
    # A cell beside a mask still shows part of the link.
    hidden = functional.max_pool2d(masks, 3, 1, 1) > _COVERED
    background = masked_median(shown, hidden)
    shadow = fitted_shadow(shown, background, masks, hidden)
    background = without_shadow(background, masks, hidden, shadow)
    return AppearanceCode(code, background, None, textures, shadow, pose)


def masked_median(images: Float[Tensor, "batch times 3 height width"], hidden: Tensor) -> Tensor:
    """Median over time of visible pixels.

    A pixel that is hidden at all times is likely to be hidden later, too, and likely to look like those around it: it
    gets the mean of its plain median and of visible ones around.
    """
    median = images.masked_fill(hidden[:, :, None], torch.nan).nanmedian(1).values
    known = (~hidden).any(1)[:, None]
    near, weight = (
        blurred(part.flatten(0, 1), _FILL_BLUR).unflatten(0, part.shape[:2])
        for part in (torch.where(known, median, 0.0), known.float())
    )
    return torch.where(known, median, 0.5 * (images.median(1).values + near / weight.clamp_min(1e-6)))


def unwrapped_textures(
    camera: Projection, images: Tensor, read: LinkFrames, chain: tuple[Tensor, Tensor, Tensor]
) -> Float[Tensor, "batch links 3 rows columns"]:
    """Mean picture of each link in its own axes over all frames, weighted by its mask."""
    angles, lengths, half_width = chain
    (rows, columns), (batch, times, links) = TEXTURE_SIZE, angles.shape
    margin = MARGIN * half_width[:, None, None]
    across, along = ((torch.arange(size).to(angles) + 0.5) / size for size in (rows, columns))
    unit = unit_vectors(angles)
    sideways = torch.stack([unit[..., 1], -unit[..., 0]], -1)
    ends = (lengths[:, None, :, None] * unit).cumsum(2)
    starts = torch.cat([torch.zeros_like(ends[:, :, :1]), ends[:, :, :-1]], 2)
    # Along from one margin before the start to one beyond the end, across from one margin to the other.
    u = (lengths[..., None] + 2.0 * margin) * along - margin
    v = margin[..., 0] * (2.0 * across - 1.0)
    points = (
        starts[..., None, None, :]
        + u[:, None, :, None, :, None] * unit[..., None, None, :]
        + v[:, None, None, :, None, None] * sideways[..., None, None, :]
    )
    flat = functional.pad(points.flatten(2, 4), (0, 1)).flatten(0, 1)
    pixels = project(flat, camera.to(flat).intrinsics, read.poses.flatten(0, 1))
    grid = (2.0 * pixels + 1.0) / pixels.new_tensor([images.shape[-1], images.shape[-2]]) - 1.0
    values, weights = (
        sample_images(part.flatten(0, 1), grid[:, None])[:, :, 0].reshape(batch, times, -1, links, rows, columns)
        for part in (images, read.masks)
    )
    # Each link is weighted by its own mask; a little everywhere, for what no mask covers.
    own = weights.diagonal(dim1=2, dim2=3).movedim(-1, 2).square() + 1e-3
    return ((values * own[:, :, None]).sum(1) / own.sum(1)[:, None]).transpose(1, 2)


def blurred(masks: Float[Tensor, "batch height width"], deviation: float) -> Tensor:
    """Blur masks by a Gaussian of a standard deviation in cells, zero outside."""
    side = 2 * max(1, round(2.5 * deviation)) + 1
    return gaussian_blur2d(masks[:, None], (side, side), (deviation, deviation), "constant")[:, 0]


def shifted(images: Float[Tensor, "batch height width"], shift: Float[Tensor, "batch 2"]) -> Tensor:
    """Move images by columns and rows of pixels, zero from outside."""
    return translate(images[:, None], shift)[:, 0]


def fitted_shadow(images: Tensor, background: Tensor, masks: Tensor, hidden: Tensor) -> Float[Tensor, "batch 3"]:
    """Offset and darkness of shadows, by least squares between darkness and moved, blurred masks.

    Only changes in time count, since the background holds the mean of the shadows.
    """
    dark = 1.0 - images.mean(2) / background.mean(1, keepdim=True).clamp_min(0.02)
    valid = 1.0 - functional.max_pool2d(hidden.float(), 2)
    dark, moved = functional.avg_pool2d(dark, 2).clamp(-1.0, 1.0), functional.avg_pool2d(masks, 2)
    moved = blurred(moved.flatten(0, 1), 0.5 * SHADOW_BLUR).unflatten(0, moved.shape[:2])
    moved = moved - moved.mean(1, keepdim=True)
    mean = (dark * valid).sum(1, keepdim=True) / valid.sum(1, keepdim=True).clamp_min(1.0)
    side = 2 * _MAX_OFFSET + 1
    candidates = functional.unfold(moved.flatten(0, 1)[:, None], side, padding=_MAX_OFFSET).unflatten(
        0, moved.shape[:2]
    )
    weight = valid.flatten(2)[..., None]
    together = (candidates @ (weight * (dark - mean).flatten(2)[..., None])).sum(1)[..., 0]
    alone = (candidates.square() @ weight).sum(1)[..., 0].clamp_min(1e-3)
    gain = together.clamp_min(0.0).square() / alone
    # A patch's upper left sample comes from there: the mask moved down and right. No lamp is so
    # low that a shadow falls farther than the largest offset.
    steps = 2.0 * (_MAX_OFFSET - torch.arange(side).to(gain))
    grid = torch.stack([steps.repeat(side), steps.repeat_interleave(side)], -1)
    gain = gain * (grid.norm(dim=-1) <= 2.0 * _MAX_OFFSET + 0.5)
    best = (gain - _GAIN_SHARE * gain.amax(1, keepdim=True)).clamp_min(0.0)
    fraction = best / best.sum(1, keepdim=True).clamp_min(1e-9)
    darkness = (fraction * together / alone).sum(1, keepdim=True).clamp(0.0, _MAX_DARKNESS)
    return torch.cat([fraction @ grid, darkness], 1)


def without_shadow(background: Tensor, masks: Tensor, hidden: Tensor, shadow: Tensor) -> Tensor:
    """Divide a background by the mean shade in the frames that show it."""
    times = masks.shape[1]
    shade = blurred(masks.flatten(0, 1), SHADOW_BLUR)
    shade = shifted(shade, shadow[:, :2].repeat_interleave(times, 0)).unflatten(0, masks.shape[:2])
    visible = (~hidden).float()
    mean = torch.where(visible.sum(1) > 0, (shade * visible).sum(1) / visible.sum(1).clamp_min(1.0), shade.mean(1))
    return background / (1.0 - shadow[:, 2, None, None, None] * mean[:, None]).clamp_min(0.3)
