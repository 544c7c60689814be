"""The encoder of objects with known colors: segmentation and flow give a first estimate, a network refines it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from physvision.core import ShapeError, brightness
from physvision.core.checks import check_color, check_count, check_positive
from physvision.models.interfaces import Encoder, Observation, windows
from physvision.models.networks import zero_init_output
from physvision.perception.frame_corruption import FrameCorruption
from physvision.perception.object_crops import INPUT_FRAMES, ObjectPositions, locate_objects, object_inputs
from physvision.perception.segmentation import ColorFilters, track_masks

# Value of pixels beyond the image: no frame contains it, so the network can recognize walls.
_OUTSIDE = -1.0


@dataclass(frozen=True)
class PerceptionOutputs:
    """Segmentation, positions and optical flow of a window of frames.

    Attributes:
        frames: Frames that were segmented.
        masks: Share of each pixel that each object covers.
        places: Positions of the objects, from their masks.
        flows: Optical flow from each frame to the next, pixels.
    """

    frames: Float[Tensor, "batch frames 3 height width"]
    masks: Float[Tensor, "batch frames objects height width"]
    places: ObjectPositions
    flows: Float[Tensor, "batch flows 2 height width"]


@dataclass(frozen=True)
class ObjectViews:
    """Network inputs of each object, and the motion estimate that the network refines.

    Attributes:
        images: 13 channels of each object.
        position: Position at the last frame, pixels.
        step: Displacement a frame, pixels.
        confidence: Visible share of each object in each frame.
    """

    images: Float[Tensor, "batch objects 13 rows columns"]
    position: Float[Tensor, "batch objects 2"]
    step: Float[Tensor, "batch objects 2"]
    confidence: Float[Tensor, "batch frames objects"]


class ObjectEncoder(Encoder):
    """Reads the states of discs of known colors in windows of three consecutive frames.

    Perception has no weights that are trained here: color masks, optical flow, and a line through each object's three
    centers. The network takes each object's 13 channels and returns the error of the line's position and velocity; it
    starts at zero. All objects share one network.
    """

    colors: Tensor
    background: Tensor

    def __init__(
        self,
        size: tuple[int, int],
        dt: float,
        radius: float,
        colors: Sequence[tuple[float, float, float]],
        network: nn.Module,
        flow: nn.Module,
        background: tuple[float, float, float] = (0.0, 0.0, 0.0),
        counts: Sequence[int] | None = None,
        crop: int | None = None,
        disturbance: FrameCorruption | None = None,
    ) -> None:
        """Assemble perception and the refining network.

        Args:
            size: Height and width of a frame, pixels.
            dt: Seconds between two frames.
            radius: Radius of the objects, pixels.
            colors: Red, green, blue of each color, 0 to 1.
            network: Images of 13 channels to 4 numbers, pixels and pixels a frame.
            flow: Optical flow, see `perception.flow`; its weights stay fixed.
            background: Red, green, blue behind the objects, 0 to 1.
            counts: Number of objects of each color; one each if not given.
            crop: Side of the crop around each object, pixels; the whole frame if None.
            disturbance: Augmentation of the frames in training.
        """
        super().__init__()
        self.size, self.dt, self.radius = tuple(size), check_positive("dt", dt), check_positive("radius", radius)
        check_color("colors", *colors)
        self.counts = tuple(counts) if counts else (1,) * len(colors)
        self.crop = None if crop is None else check_count("crop", crop)
        self.register_buffer("colors", torch.tensor([list(color) for color in colors]), persistent=False)
        self.register_buffer("background", torch.tensor(list(background)).reshape(3, 1, 1), persistent=False)
        self.objects = sum(self.counts)
        self.network, self.flow, self.disturbance = network, flow, disturbance
        flow.requires_grad_(False)
        zero_init_output(network)

    @property
    def filters(self) -> ColorFilters:
        """Color filters of the objects."""
        return ColorFilters(self.colors, self.background, self.counts)

    def observe(  # pyright: ignore[reportIncompatibleMethodOverride]  no context of the clip is used
        self, frames: Shaped[Tensor, "batch times channels height width"]
    ) -> Observation:
        """Estimate the states at the end of all windows of three frames; the estimates are always finite.

        The confidence is the visible share of the object's area in the last frame, times that in the better one of the
        frames before, without which there is no velocity. Where the last frame does not show an object it is 0, and
        the position is extrapolated; where no frame does, the position is the image's center, at rest.
        """
        if frames.shape[1] < INPUT_FRAMES or frames.shape[2:] != (3, *self.size):
            raise ShapeError(
                f"frames: expected shape (batch, {INPUT_FRAMES} or more, 3, {self.size[0]}, {self.size[1]}), got "
                f"{tuple(frames.shape)}; resize them"
            )
        clips = windows(brightness(frames), INPUT_FRAMES)
        views = self.extract_views(clips.flatten(0, 1))
        corrections = self.network(views.images.flatten(0, 1)).unflatten(0, (-1, self.objects)).to(views.position.dtype)
        # An invisible object gets no correction.
        visible = (views.confidence.amax(1) > 0)[..., None]
        position = views.position + visible * corrections[..., :2]
        velocity = (views.step + visible * corrections[..., 2:]) / self.dt
        angle = torch.zeros_like(position[..., :1])
        positions, velocities = (torch.cat([values, angle], -1).flatten(1) for values in (position, velocity))
        confidence = views.confidence[:, -1] * views.confidence[:, :-1].amax(1)
        positions, velocities, confidence = (
            values.unflatten(0, clips.shape[:2]) for values in (positions, velocities, confidence)
        )
        return Observation(positions, velocities, confidence)

    @torch.no_grad()
    def extract_views(self, frames: Float[Tensor, "batch 3 channels height width"]) -> ObjectViews:
        """Crop the network's inputs of each object; without gradient, deterministic in evaluation mode."""
        outputs = self.run_perception(frames)
        position, step = outputs.places.motion()
        center = position.new_tensor([self.size[1] / 2, self.size[0] / 2])
        position = torch.where(position.isnan(), center, position)
        # All three frames and both flows of a sample are cropped at one place.
        pixels = position.floor().long()
        images = object_inputs(outputs.frames, outputs.masks, outputs.flows, pixels, self.crop, _OUTSIDE)
        return ObjectViews(images, position, step, outputs.places.confidence)

    def run_perception(self, frames: Float[Tensor, "batch 3 channels height width"]) -> PerceptionOutputs:
        """Compute masks, positions and flows; frames are augmented in training."""
        # Positions have an error of a hundredth of a pixel, below the resolution of half precision.
        with torch.autocast(frames.device.type, enabled=False):
            frames = frames.float()
            masks = self._masks(frames)
            if self.training and self.disturbance is not None:
                position = locate_objects(masks, self.radius).centers[:, -1]
                frames = self.disturbance(frames, masks.sum(2, keepdim=True), position)
                masks = self._masks(frames)
            places = locate_objects(masks, self.radius)
        flows = self.flow(frames[:, :-1].flatten(0, 1), frames[:, 1:].flatten(0, 1))
        return PerceptionOutputs(frames, masks, places, flows.unflatten(0, (-1, INPUT_FRAMES - 1)))

    def _masks(self, frames: Tensor) -> Tensor:
        """Segment the objects; those of one color are told apart by tracking."""
        masks = self.filters.masks(frames)
        if max(self.counts) == 1:
            return masks
        return torch.stack([track_masks(window, self.counts).masks for window in masks])
