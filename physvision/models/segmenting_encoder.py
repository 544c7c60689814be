"""Encoder that segments frames: registered background, augmentation, and masks that hide objects from it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from physvision.camera.projection import Projection, seen_from
from physvision.core import ShapeError, brightness
from physvision.core.checks import check_count, check_positive
from physvision.models.interfaces import AppearanceCode, ClipContext, Encoder, Observation
from physvision.models.networks import output_layer
from physvision.models.roi import crop_patches
from physvision.models.segmentation import Instances, SegmentationNetwork
from physvision.models.track_fit import FittedMotion


def uncovered_median(
    images: Float[Tensor, "batch times channels height width"], covered: Bool[Tensor, "batch times 1 height width"]
) -> Float[Tensor, "batch channels height width"]:
    """Median over time of the pixels that are not covered; those that always are get the colors around them."""
    median = images.masked_fill(covered, torch.nan).nanmedian(1).values
    return filled(median.nan_to_num(), ~covered.all(1))


def filled(
    images: Float[Tensor, "batch channels height width"], known: Bool[Tensor, "batch 1 height width"]
) -> Float[Tensor, "batch channels height width"]:
    """Fill unknown pixels from coarser and coarser means of the known ones; zeros where no pixel is known."""
    if bool(known.all()) or min(images.shape[-2:]) < 2:
        return images * known
    weight = functional.avg_pool2d(known.to(images), 2, ceil_mode=True)
    coarse = functional.avg_pool2d(images * known, 2, ceil_mode=True) / weight.clamp_min(1e-6)
    surroundings = functional.interpolate(filled(coarse, weight > 0.0), images.shape[-2:], mode="bilinear")
    return torch.where(known, images, surroundings)


FRAMES = 3
# Channels of `contrast_channels` in a crop: brightness, magnitude of the difference and of the gradient.
CROP_CONTRAST = (0, 2, 3)
# Frames of the context that are segmented for tracks and background: every fourth one.
_CONTEXT_STEP = 4
# Frames of the context, at least, whose median is the background.
_BACKGROUND_FRAMES = 7
# Ranges of gain and offset of brightness that the encoder is trained with.
_GAINS, _OFFSETS = (0.7, 1.3), (-0.1, 0.1)
# Share of a cell from which it counts as covered by an object.
_COVERED = 0.2


@dataclass(frozen=True)
class Segmentation:
    """Intermediate results of the encoder, for losses and pictures.

    Attributes:
        logits: Logits of the segmentation network in the last frames.
        background: Median of the context.
        instances: Linked objects in the last frames, oldest first.
        motion: Motion of an engine that the looks are read at, for encoders that fit one.
    """

    logits: Float[Tensor, "batch frames outputs rows columns"]
    background: Float[Tensor, "batch 3 height width"]
    instances: list[Instances]
    motion: FittedMotion | None = None


class SegmentingEncoder(Encoder):
    """Encoder of the last three frames and a context, by a learned segmentation; subclasses define `encode`.

    Attributes:
        segmentation: Segmentation network.
        flow: Optical flow between two frames with fixed weights; None for none.
        camera: Camera with a `caster`; None for an upright view.
    """

    def __init__(
        self,
        slots: int,
        size: tuple[int, int],
        dt: float,
        segmentation: SegmentationNetwork,
        camera: nn.Module | None = None,
        codes: int = 12,
        flow: nn.Module | None = None,
    ) -> None:
        """Keep what all such encoders have.

        Args:
            slots: Largest number of objects.
            size: Height and width of a frame, px.
            dt: Time between two frames, s.
            segmentation: Segmentation network.
            camera: Camera with a `caster`, such as `BallCamera`; None for an upright view of the plane of motion.
            codes: Numbers of each object's appearance code, at least 3; all objects have at most 64. 0 for none.
            flow: Optical flow between two frames, see `perception.flow`; its weights stay fixed.
        """
        super().__init__()
        self.slots, self.size, self.dt = check_count("slots", slots), (size[0], size[1]), check_positive("dt", dt)
        self.segmentation, self.flow = segmentation, flow
        if flow is not None:
            flow.requires_grad_(False)
        self._camera: tuple[Projection, ...] = () if camera is None else (camera.caster.camera,)  # pyright: ignore
        self.camera, self.codes = camera, codes
        if codes:
            check_count("codes: numbers of all objects", 65 - slots * codes)
            self.look = nn.Sequential(
                *(nn.Conv2d(4, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.SiLU()),
                *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, codes - 3)),
            )

    def observe(
        self, frames: Shaped[Tensor, "batch times channels height width"], context: ClipContext | None = None
    ) -> Observation:
        """Estimate the state in the last of `frames`, and properties and looks of the clip."""
        return self.encode(frames, context)[0]

    def encode(
        self,
        frames: Shaped[Tensor, "batch times channels height width"],
        context: ClipContext | None = None,
        looks: bool = True,
    ) -> tuple[Observation, Segmentation]:
        """Estimate state and properties, and looks if `looks`, and return the segmentation that they are based on."""
        raise NotImplementedError

    def _find_recent(self, logits: Tensor) -> list[Instances]:
        """Find the objects of the last frames in logits of the segmentation."""
        raise NotImplementedError

    def segment(
        self, frames: Shaped[Tensor, "batch times channels height width"], context: ClipContext | None = None
    ) -> Segmentation:
        """Segment the last frames alone; objects are in no particular order."""
        background = self._context(frames, context or ClipContext())[1]
        images = self._augmented(brightness(frames[:, -FRAMES:]), background)
        with torch.autocast(frames.device.type, enabled=False):
            logits = self._segment(*images)
            return Segmentation(logits, background, self._find_recent(logits))

    def refined(self, observation: Observation, count: int, motion: FittedMotion | None = None) -> Observation:
        """Complete an observation by what follows from it, such as properties of a fitted motion.

        Args:
            observation: Observation that `encode` returns.
            count: Number of frames that it was given.
            motion: Motion that `encode` fitted, so that it is not fitted again.
        """
        return observation

    def context_frames(self, count: int) -> list[int]:
        """Frames before the last three, evenly, the first one included."""
        return list(range(0, count - FRAMES, _CONTEXT_STEP))

    def _context(self, frames: Tensor, context: ClipContext) -> tuple[list[int], Tensor]:
        """Choose frames before the last three, and compute the background from as many as the median needs."""
        if frames.shape[1] < FRAMES or frames.shape[2:] != (3, *self.size):
            raise ShapeError(
                f"frames: expected shape (batch, {FRAMES} or more, 3, {self.size[0]}, {self.size[1]}), got "
                f"{tuple(frames.shape)}; resize them"
            )
        indices = self.context_frames(frames.shape[1])
        return indices, self.registered_background(frames, self.background_frames(frames.shape[1]), context)

    def background_frames(self, count: int) -> list[int]:
        """Frames whose median is the background, evenly."""
        indices = self.context_frames(count)
        shown = indices[:: max(1, len(indices) // _BACKGROUND_FRAMES)]
        return [*shown, count - 1] if len(shown) < 2 else shown

    def registered_background(self, frames: Tensor, indices: list[int], context: ClipContext) -> Tensor:
        """Median of frames; where poses of the camera are known, as seen from its pose between the last frames."""
        if not self._camera or context.extrinsics is None:
            # The median of few frames needs no more precision than bytes have.
            return brightness(frames[:, indices].median(1).values)
        return self._registered(brightness(frames[:, indices]), indices, frames.shape[1], context).median(1).values

    def _registered(
        self,
        images: Float[Tensor, "batch times channels height width"],
        indices: list[int],
        count: int,
        context: ClipContext,
    ) -> Tensor:
        """Images of some of `count` frames as seen from the pose between the last ones, where poses are known."""
        if not self._camera or context.extrinsics is None:
            return images
        source, target = (
            context.extrinsics[:, indices],
            context.extrinsics[:, count - 2, None].expand(-1, len(indices), -1, -1),
        )
        moved = seen_from(images.flatten(0, 1), self._camera[0].intrinsics, source.flatten(0, 1), target.flatten(0, 1))
        return moved.unflatten(0, images.shape[:2])

    def _augmented(self, recent: Tensor, background: Tensor) -> tuple[Tensor, Tensor]:
        """The last frames and the background; in training as if the clip had other colors and light."""
        return recolored(recent, background) if self.training else (recent, background)

    def _segment(self, recent: Tensor, background: Tensor) -> Tensor:
        """Segment the last frames; in training as if the clip had another orientation."""
        images = [recent.flatten(0, 1), background.repeat_interleave(FRAMES, 0)]
        if not self.training:
            return self.segmentation(*images).unflatten(0, (-1, FRAMES))
        flipped = [axis for axis in (-2, -1) if bool(torch.rand(()) < 0.5)]
        turned = bool(torch.rand(()) < 0.5)
        images = [image.flip(flipped) for image in images]
        logits = self.segmentation(*(image.transpose(-1, -2) if turned else image for image in images))
        return (logits.transpose(-1, -2) if turned else logits).flip(flipped).unflatten(0, (-1, FRAMES))

    def _looks(
        self, frames: Tensor, times: list[int], linked: list[Instances], context: ClipContext
    ) -> AppearanceCode | None:
        """Code of each object, and the background behind all masks."""
        if not self.codes:
            return None
        pose = context.extrinsics
        return AppearanceCode(
            self._code(frames, times, linked),
            self._masked_background(frames, times, linked, frames.shape[1], context),
            background_extrinsics=None if pose is None else pose[:, frames.shape[1] - 2],
        )

    def _code(self, frames: Tensor, times: list[int], linked: list[Instances]) -> Tensor:
        """Code of each object from the last frame before those of the state."""
        index = max(0, len(linked) - FRAMES - 1)
        frame, instances = brightness(frames[:, times[index]]), linked[index]
        masks = functional.interpolate(instances.masks.detach(), self.size, mode="bilinear")
        weight = masks.sum((2, 3)).clamp_min(1e-3)
        colors = torch.einsum("bkhw,bchw->bkc", masks, frame) / weight[..., None]
        pixels = (instances.centroids.detach() + 0.5).floor().long()
        images = torch.cat([frame[:, None].expand(-1, self.slots, -1, -1, -1), masks[:, :, None]], 2)
        crops = crop_patches(images, pixels, 16, 0.0)
        learned = self.look(crops.flatten(0, 1)).unflatten(0, crops.shape[:2])
        code = torch.cat([colors, learned], -1)
        assert code[0].numel() <= 64
        return code.flatten(1)

    @torch.no_grad()
    def _masked_background(
        self, frames: Tensor, times: list[int], instances: list[Instances], end: int, context: ClipContext
    ) -> Tensor:
        """Background without the objects in frames at `times`, as seen from the pose of the frames before `end`."""
        covered = torch.stack([part.masks.sum(1) for part in instances], 1)
        # A cell beside a mask still shows part of the object or of its shadow.
        covered = functional.max_pool2d(covered, 3, 1, 1) > _COVERED
        covered = functional.interpolate(covered.float(), self.size, mode="nearest")[:, :, None]
        layers = torch.cat([brightness(frames[:, times]), covered], 2)
        images, covered = self._registered(layers, times, end, context).split([3, 1], 2)
        return uncovered_median(images, covered > 0.0)


def recolored(
    recent: Float[Tensor, "batch times 3 height width"], background: Float[Tensor, "batch 3 height width"]
) -> tuple[Tensor, Tensor]:
    """Frames and their background as if each clip had other colors and light, at random."""
    batch = len(recent)
    order = torch.rand(batch, 3).argsort(1).to(recent.device)[:, :, None, None]
    gain, offset = ((low + (high - low) * torch.rand(batch, 1, 1, 1)).to(recent) for low, high in (_GAINS, _OFFSETS))
    colored = gain[:, None] * recent.gather(2, order[:, None].expand_as(recent)) + offset[:, None]
    return colored, gain * background.gather(1, order.expand_as(background)) + offset


def start_small(network: nn.Module) -> None:
    """Draw the last layer of a network of corrections near zero, so that they begin with nearly none."""
    layer = output_layer(network)
    nn.init.normal_(layer.weight, std=1e-3)
    nn.init.zeros_(layer.bias)
