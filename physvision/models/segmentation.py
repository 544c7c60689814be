"""Learned segmentation: a small U-Net at half resolution, instances by their centers, identities in time."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional

from physvision.core.checks import check_count


@dataclass(frozen=True)
class InstanceSettings:
    """Network and tuning numbers of instance segmentation; lengths in pixels of the frame.

    Attributes:
        min_confidence: Least height of a center's peak for an object to count as present, 0 to 1. Raising it misses
            faint objects, lowering it adds ghosts. Default from the validation set of `tabletop`: 98 % of the balls,
            and a ghost among 15.
        reach: Distance from a center beyond which no pixel is of that object; 1.5 times the largest radius.
        softness: Width of the boundary between two objects.
        max_step: Largest plausible displacement between two frames; pairs beyond it cost as much as no match.
        width: Channels of the network at half resolution; more of them segment better and take longer.
    """

    min_confidence: float = 0.5
    reach: float = 9.0
    softness: float = 1.0
    max_step: float = 12.0
    width: int = 8


# Gains that bring the channels of `contrast_channels` to about one.
DIFFERENCE_GAIN, _GRADIENT_GAIN = 5.0, 3.0
CONTRAST_CHANNELS = 5
# Standard deviation of a center's peak in the target, cells of half resolution.
_PEAK_WIDTH = 0.8


def contrast_channels(
    frames: Float[Tensor, "batch 3 height width"], background: Float[Tensor, "batch 3 height width"]
) -> Float[Tensor, "batch 5 height width"]:
    """Describe frames without their hues, which say little about where an object of unknown colors is.

    The channels are brightness, its difference from the background, the magnitude of the difference of colors from the
    background, the magnitude of the gradient of colors, and saturation. From these a small network learns faster than
    from six channels of color: its first layer need not learn that any change of any color matters.
    """
    difference = frames - background
    magnitude = (difference.square().sum(1, True) + 1e-4).sqrt()
    across = functional.pad(frames[..., 2:] - frames[..., :-2], (1, 1, 0, 0))
    down = functional.pad(frames[..., 2:, :] - frames[..., :-2, :], (0, 0, 1, 1))
    gradient = (across.square().sum(1, True) + down.square().sum(1, True) + 1e-4).sqrt()
    return torch.cat(
        [
            2.0 * frames.mean(1, True) - 1.0,
            DIFFERENCE_GAIN * difference.mean(1, True),
            DIFFERENCE_GAIN * magnitude - 0.5,
            _GRADIENT_GAIN * gradient - 0.5,
            frames.amax(1, True) - frames.amin(1, True) - 0.3,
        ],
        1,
    )


class SegmentationNetwork(nn.Module):
    """U-Net at half resolution: logits of the foreground and of object centers in each cell of 2 × 2 pixels.

    Its input is the contrast of a frame with the clip's background, see `contrast_channels`, folded to half resolution.
    """

    # Additional weight of covered cells, which are rare, in the loss of each output.
    emphasis: tuple[float, ...] = (3.0, 30.0)

    def __init__(self, width: int = 8, levels: int = 3, outputs: int = 2, maps: int = 0) -> None:
        """Build the layers of the network.

        Args:
            width: Channels at half resolution, doubled at each coarser level.
            levels: Number of resolutions.
            outputs: Number of logits in each cell.
            maps: Channels beside the contrast.
        """
        super().__init__()
        check_count("levels", levels)
        widths = [check_count("width", width) * 2**level for level in range(levels)]
        self.entry = _block(4 * (CONTRAST_CHANNELS + maps), widths[0])
        self.down = nn.ModuleList(_block(fine, coarse) for fine, coarse in itertools.pairwise(widths))
        self.up = nn.ModuleList(_block(fine + coarse, fine) for fine, coarse in itertools.pairwise(widths))
        self.output_layer = nn.Conv2d(widths[0], check_count("outputs", outputs), 1)
        # Nothing is foreground at first.
        assert self.output_layer.bias is not None
        nn.init.constant_(self.output_layer.bias, -3.0)
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def forward(
        self, frames: Float[Tensor, "batch 3 height width"], background: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch outputs rows columns"]:
        """Compute the logits of all outputs, by default foreground and centers."""
        folded = functional.pixel_unshuffle(self.inputs(frames, background), 2)
        folded = folded.contiguous(memory_format=torch.channels_last)
        features = [self.entry(folded)]
        for block in self.down:
            features.append(block(functional.max_pool2d(features[-1], 2)))
        result = features.pop()
        for block in reversed(self.up):
            fine = features.pop()
            upsampled = functional.interpolate(result, size=fine.shape[-2:], mode="bilinear", align_corners=False)
            result = block(torch.cat([fine, upsampled], 1))
        return self.output_layer(result)

    def inputs(self, frames: Tensor, background: Tensor) -> Float[Tensor, "batch channels height width"]:
        """Images that the network reads."""
        return contrast_channels(frames, background)

    @staticmethod
    def targets(coverage: Float[Tensor, "batch slots height width"]) -> Float[Tensor, "batch outputs rows columns"]:
        """Outputs of a perfect network, given the coverage of each object in the frame."""
        return targets_of(coverage)


class LinkSegmentation(SegmentationNetwork):
    """U-Net at half resolution: logits of each link of a chain that is hinged in the middle of the frame."""

    def __init__(self, links: int = 2, width: int = 8, levels: int = 4) -> None:
        """Build the layers of the network.

        Args:
            links: Number of links.
            width: Channels at half resolution, doubled at each coarser level.
            levels: Number of resolutions.
        """
        super().__init__(width, levels, links, maps=1)
        self.emphasis = (3.0,) * links

    def inputs(self, frames: Tensor, background: Tensor) -> Float[Tensor, "batch channels height width"]:
        """Contrast, and the distance of each pixel from the hinge, which tells links apart."""
        height, width = frames.shape[-2:]
        x = torch.linspace(-1.0, 1.0, width, device=frames.device, dtype=frames.dtype)
        y = torch.linspace(-1.0, 1.0, height, device=frames.device, dtype=frames.dtype)
        distance = 2.0 * (x.square() + y[:, None].square()).sqrt() - 1.0
        return torch.cat([contrast_channels(frames, background), distance.expand(len(frames), 1, -1, -1)], 1)

    @staticmethod
    def targets(coverage: Float[Tensor, "batch slots height width"]) -> Float[Tensor, "batch outputs rows columns"]:
        """Visible share of each cell that each link covers."""
        return functional.avg_pool2d(coverage.detach().float(), 2)


def targets_of(coverage: Float[Tensor, "batch slots height width"]) -> Float[Tensor, "batch 2 rows columns"]:
    """Foreground and center map at half resolution, from the coverage of each object."""
    halved = functional.avg_pool2d(coverage.detach().float(), 2)
    rows, columns = halved.shape[-2:]
    y = torch.arange(rows, device=halved.device, dtype=halved.dtype)[:, None]
    x = torch.arange(columns, device=halved.device, dtype=halved.dtype)
    mass = halved.sum((2, 3)).clamp_min(1e-6)
    center_y, center_x = ((halved * at).sum((2, 3)) / mass for at in (y, x))
    # Peaks lie on cells, so that the highest value is one.
    squared = (y - center_y.round()[..., None, None]).square() + (x - center_x.round()[..., None, None]).square()
    visible = (mass > 0.5)[..., None, None]
    peaks = (torch.exp(-squared / (2.0 * _PEAK_WIDTH**2)) * visible).amax(1)
    return torch.stack([halved.sum(1).clamp(0.0, 1.0), peaks], 1)


def _block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.GroupNorm(min(4, outputs // 2), outputs),
        nn.SiLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.SiLU(inplace=True),
    )


@dataclass(frozen=True)
class Instances:
    """Objects that segmentation detects in frames, in no particular order.

    Attributes:
        centroids: Column and row of each object's mask, pixel centers at whole numbers; differentiable.
        confidence: Height of its center's peak, 0 to 1.
        masks: Share of each cell that the object covers.
        area: Area of its mask, px².
    """

    centroids: Float[Tensor, "batch slots 2"]
    confidence: Float[Tensor, "batch slots"]
    masks: Float[Tensor, "batch slots rows columns"]
    area: Float[Tensor, "batch slots"]

    def permuted(self, order: Int[Tensor, "batch slots"]) -> Instances:
        """Reorder the objects of each frame."""
        rows = torch.arange(len(order), device=order.device)[:, None]
        return Instances(*(value[rows, order] for value in (self.centroids, self.confidence, self.masks, self.area)))


def find_instances(logits: Float[Tensor, "batch 2 rows columns"], slots: int, settings: InstanceSettings) -> Instances:
    """Split the foreground into objects around the highest peaks of the center map."""
    rows, columns = logits.shape[-2:]
    heat = torch.sigmoid(logits[:, 1].detach().float())
    peaks = heat * (functional.max_pool2d(heat[:, None], 3, 1, 1)[:, 0] == heat)
    confidence, index = peaks.flatten(1).topk(slots, 1)
    # Cell (r, c) covers the pixels 2r and 2r + 1, whose middle is 2r + 0.5.
    y, x = 2.0 * (index // columns) + 0.5, 2.0 * (index % columns) + 0.5
    grid_y = 2.0 * torch.arange(rows, device=logits.device) + 0.5
    grid_x = 2.0 * torch.arange(columns, device=logits.device) + 0.5
    squared = (grid_y[:, None] - y[..., None, None]).square() + (grid_x - x[..., None, None]).square()
    near = squared.clamp_max(settings.reach**2)
    # Peaks of nothing own nothing.
    closeness = -near / (2.0 * settings.reach * settings.softness) + (confidence + 1e-6).log()[..., None, None]
    ownership = closeness.softmax(1) * (squared < settings.reach**2)
    masks = torch.sigmoid(logits[:, :1].float()) * ownership
    mass = masks.sum((2, 3))
    weight = mass.clamp_min(1e-3)
    centroids = torch.stack([(masks * grid_x).sum((2, 3)) / weight, (masks * grid_y[:, None]).sum((2, 3)) / weight], -1)
    centroids = torch.where((mass > 0.25)[..., None], centroids, torch.stack([x, y], -1))
    return Instances(centroids, confidence, masks, 4.0 * mass)


def match_order(
    reference: Float[Tensor, "batch slots numbers"],
    reference_weight: Float[Tensor, "batch slots"],
    positions: Float[Tensor, "batch slots numbers"],
    weight: Float[Tensor, "batch slots"],
    max_distance: float,
) -> Int[Tensor, "batch slots"]:
    """Assign positions, or colors, to reference slots at the least total distance (Hungarian algorithm).

    Args:
        reference: Expected position of each slot.
        reference_weight: Confidence in each slot, 0 to 1; empty slots have weight zero.
        positions: Positions to assign.
        weight: Confidence in each position, 0 to 1.
        max_distance: Distance at which a pair costs as much as none.

    Returns:
        For each slot, the index of its position.
    """
    distance = torch.cdist(reference.detach(), positions.detach()).clamp_max(max_distance) - max_distance
    cost = distance * reference_weight.detach()[:, :, None] * weight.detach()[:, None]
    # Among equals, the more confident first, so that leftovers do not take the place of objects.
    cost = cost - 1e-3 * weight.detach()[:, None] * reference_weight.detach()[:, :, None]
    orders = [linear_sum_assignment(matrix)[1] for matrix in np.nan_to_num(cost.cpu().double().numpy())]
    return torch.from_numpy(np.stack(orders)).to(reference.device)


def link(frames: list[Instances], settings: InstanceSettings, gaps: list[float]) -> list[Instances]:
    """Give objects one order in all frames: that of the last one, followed back in time.

    Args:
        frames: Detections in consecutive frames, oldest first.
        settings: Limits of plausible motion.
        gaps: Time from each frame to the next, frames; one fewer than frames.
    """
    linked, later = [frames[-1]], []
    for instances, gap in zip(frames[-2::-1], gaps[::-1], strict=True):
        expected = linked[0].centroids
        if later:
            # Constant velocity, from the two frames after.
            expected = expected + (linked[0].centroids - linked[1].centroids) * (gap / later[0])
        order = match_order(
            expected, linked[0].confidence, instances.centroids, instances.confidence, settings.max_step * gap
        )
        linked.insert(0, instances.permuted(order))
        later.insert(0, gap)
    return linked
