"""Parts of the encoder of links: prior ranges, a network of single frames, geometry of masks and directions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.camera.projection import Projection
from physvision.models.segmenting_encoder import CROP_CONTRAST, start_small
from physvision.models.tabletop import back_project

_IMAGES = len(CROP_CONTRAST)
# Images of a crop: contrast of a frame, the mask of the link and those of the others.
FRAME_CHANNELS = _IMAGES + 2
# Outputs of the network of single frames: angle and its deviation, length and its deviation, half width.
_FRAME_OUTPUTS = 5
# A centroid this near to the link's start, m, has no direction.
_MIN_ARM = 0.03


@dataclass(frozen=True)
class LinkSettings:
    """Ranges of a chain's properties before a clip is read, and the crops along its links.

    Attributes:
        length: Lowest and highest length of a link, m.
        mass: Lowest and highest mass of a link, kg.
        damping: Lowest and highest damping of a hinge, N m s/rad.
        half_width: Lowest and highest half width of the links, m.
        crop: Side of a crop, samples.
        crop_extent: Side of the same crop, m; it is centered on a link of middle length.
        context_step: Frames from one segmented frame of the context to the next, in training and in evaluation; more
            frames take longer and determine properties better.
    """

    length: tuple[float, float] = (0.6, 1.0)
    mass: tuple[float, float] = (0.5, 2.0)
    damping: tuple[float, float] = (0.0, 0.1)
    half_width: tuple[float, float] = (0.1, 0.18)
    crop: int = 32
    crop_extent: float = 1.6
    context_step: tuple[int, int] = (8, 1)


class FrameNetwork(nn.Module):
    """Small network on the crop along a link in one frame: corrections of its angle and length, and its width."""

    def __init__(self, side: int = 32, width: int = 16) -> None:
        """Build the layers of the network.

        Args:
            side: Side of a crop, samples.
            width: Channels of the first layer.
        """
        super().__init__()
        layers: list[nn.Module] = []
        for fan_in, fan_out in ((FRAME_CHANNELS, width), (width, 2 * width), (2 * width, 2 * width)):
            layers += [nn.Conv2d(fan_in, fan_out, 3, 2, 1), nn.GroupNorm(4, fan_out), nn.SiLU()]
        cells = 2 * width * math.ceil(side / 8) ** 2
        self.layers = nn.Sequential(
            *layers, nn.Flatten(), nn.Linear(cells, 64), nn.SiLU(), nn.Linear(64, _FRAME_OUTPUTS)
        )
        start_small(self)

    def forward(self, crops: Float[Tensor, "crops channels side side"]) -> Float[Tensor, "crops outputs"]:
        """Compute the outputs of each crop."""
        return self.layers(crops)


@dataclass(frozen=True)
class LinkFrames:
    """All frames that are segmented, and what is known of them.

    Attributes:
        images: Contrast of each frame.
        masks: Share of each cell that each link covers.
        centroids: Centroids of the masks on the plane of motion, m.
        poses: Pose of the camera.
        mirror: -1 for clips whose crops are mirrored, else 1.
        scale: Extent of the crops of single frames, in that of the settings.
    """

    images: Float[Tensor, "batch times channels height width"]
    masks: Float[Tensor, "batch times links rows columns"]
    centroids: Float[Tensor, "batch times links 2"]
    poses: Float[Tensor, "batch times 4 4"]
    mirror: Float[Tensor, " batch"]
    scale: Float[Tensor, " batch"]

    def at(self, indices: list[int]) -> LinkFrames:
        """Some of the frames alone."""
        images, masks, centroids, poses = (
            part[:, indices] for part in (self.images, self.masks, self.centroids, self.poses)
        )
        return LinkFrames(images, masks, centroids, poses, self.mirror, self.scale)


def mask_centroids(masks: Float[Tensor, "*batch rows columns"]) -> Float[Tensor, "*batch 2"]:
    """Column and row of the centroid of squared masks, in pixels of the frame; squares suppress what is unsure."""
    weight = masks.square()
    rows, columns = (2.0 * torch.arange(size).to(masks) + 0.5 for size in masks.shape[-2:])
    total = weight.sum((-1, -2)).clamp_min(1e-3)
    x, y = (weight * columns).sum((-1, -2)), (weight * rows[:, None]).sum((-1, -2))
    return torch.stack([x / total, y / total], -1)


def direction_of(arm: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
    """Angle of vectors against down, y pointing down; zero for those without direction."""
    known = arm.norm(dim=-1) > _MIN_ARM
    return torch.where(known, torch.atan2(-arm[..., 0], arm[..., 1]), 0.0)


def unit_vectors(angle: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch 2"]:
    """Unit vectors at angles against down, y pointing down."""
    return torch.stack([-angle.sin(), angle.cos()], -1)


def widened(span: tuple[float, float]) -> tuple[float, float]:
    """Range with half of its width more on either side, for links that are seen at another scale."""
    return 1.5 * span[0] - 0.5 * span[1], 1.5 * span[1] - 0.5 * span[0]


def limited(value: Tensor, limit: float) -> Tensor:
    """Bound values smoothly by a limit on either side."""
    return limit * torch.tanh(value / limit)


def sample_images(images: Tensor, grid: Tensor, padding: str = "zeros") -> Tensor:
    """Sample images bilinearly, zero outside unless `padding` is "border"."""
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode=padding, align_corners=False)


def cast_values(values: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Convert all values to a floating-point type."""
    return {name: value.to(dtype) for name, value in values.items()}


@torch.no_grad()
def plane_motion(
    flow: nn.Module, camera: Projection, frames: Tensor, poses: Float[Tensor, "batch frames 4 4"]
) -> Float[Tensor, "batch earlier 2 height width"]:
    """Motion on the plane of motion of each pixel of the last frame, from each earlier one, m a frame.

    Optical flow leads from a pixel of the last frame to its place in an earlier one. Both are mapped to the plane
    through the camera of their frame. Flow is that of the frames as they are: augmentation does not change what
    moves, and `CachedFlow` meets the same pairs again.

    Args:
        flow: Optical flow between two frames.
        camera: Camera of all frames, but for its pose.
        frames: Consecutive frames, oldest first, (batch, frames, 3, height, width).
        poses: Poses of the camera.
    """
    batch, earlier, (height, width) = len(frames), frames.shape[1] - 1, frames.shape[-2:]
    pairs = frames[:, -1:].expand(-1, earlier, -1, -1, -1), frames[:, :-1].flip(1)
    flows = flow(*(part.flatten(0, 1) for part in pairs)).permute(0, 2, 3, 1).flatten(1, 2)
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    pixels = torch.stack([columns, rows], -1).flatten(0, 1).to(flows)
    intrinsics, height_map = camera.to(flows).intrinsics, torch.zeros_like(flows[..., 0])
    now = back_project(pixels.expand(batch, -1, -1), intrinsics, poses[:, -1], height_map[:batch])
    sources = poses[:, :-1].flip(1).flatten(0, 1)
    before = back_project(pixels + flows, intrinsics, sources, height_map).unflatten(0, (batch, earlier))
    gaps = torch.arange(1, earlier + 1).to(flows)[:, None, None]
    return ((now[:, None] - before) / gaps).movedim(-1, 2).unflatten(-1, (height, width))
