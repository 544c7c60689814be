"""The encoder of a table: learned segmentation, optical flow and a VGG on crops; state, properties and looks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import brightness
from physvision.models.coverage import CoverageNetwork
from physvision.models.interfaces import ClipContext, Observation
from physvision.models.object_order import chained, ordered_by_color
from physvision.models.roi import boxes_around, crop, sample_points, samples_inside
from physvision.models.segmentation import (
    Instances,
    InstanceSettings,
    SegmentationNetwork,
    find_instances,
    link,
)
from physvision.models.segmenting_encoder import (
    FRAMES,
    Segmentation,
    SegmentingEncoder,
    start_small,
)
from physvision.models.table_crops import (
    COVERAGE_CHANNELS,
    COVERAGE_CONTRAST,
    CROP_EXTENT,
    CROP_OUTPUTS,
    MOTION_CHANNELS,
    BallCropSettings,
    crop_channels,
    decode,
)
from physvision.models.table_motion import TableMotion
from physvision.models.tabletop import back_project
from physvision.models.trial_properties import TrackPropertyHead, Tracks, radius_of

# Largest difference of a pixel's motion from the object's, px a frame: beyond it flow is wrong, or of other objects.
_MAX_MOTION = 3.0
# Standard deviation of the crops' displacement in training, px.
_PLACE_JITTER = 1.0


@dataclass(frozen=True)
class Reading:
    """Segmentation of a window and links over its frames, before the network on crops.

    Attributes:
        images: Channels of the last frames that crops have; in training of frames in other colors and light.
        clean: Image without balls as it is.
        logits: Logits of the segmentation network in the last frames.
        linked: Balls in all segmented frames, each in its slot.
        times: Indices of these frames.
        tracks: Positions of the balls on the table.
    """

    images: Float[Tensor, "batch channels height width"]
    clean: Float[Tensor, "batch 3 height width"]
    logits: Float[Tensor, "batch times outputs rows columns"]
    linked: list[Instances]
    times: list[int]
    tracks: Tracks

    def mask_crops(self, boxes: Float[Tensor, "boxes 4"], side: int) -> Float[Tensor, "boxes times side side"]:
        """Mask of each ball in the last frames, in its box."""
        masks = torch.stack([frame.masks for frame in self.linked[-FRAMES:]], 2).flatten(0, 1)
        return _crop_masks(masks, boxes, side)


def _crop_masks(
    masks: Float[Tensor, "batch channels rows columns"], boxes: Float[Tensor, "boxes 4"], side: int
) -> Float[Tensor, "boxes channels side side"]:
    """Sample boxes, px of the frame, of masks of half its resolution."""
    # The center of cell k of a mask is at pixel 2 k + ½.
    return crop(masks, boxes - 0.5, side, 0.5)


class TableEncoder(SegmentingEncoder):
    """Reads balls of unknown colors and radius on a table: state, properties of the trial, and looks.

    Segmentation is learned: a first look at the clip finds what to leave out of its background, a second one the balls,
    which are linked over time and keep one slot each. The state comes from the last three frames: a VGG reads the place
    of each ball, and what the slope of its centroids lacks, from crops of frames, masks and motion. With an engine, it
    is in evaluation that of the engine's motion closest to such states at all frames. Properties come from tracks over
    all given frames, the appearance code from a frame before the last three.
    Positions are those on the table's plane, through the camera of each frame where it is given.
    """

    def __init__(
        self,
        slots: int,
        size: tuple[int, int],
        dt: float,
        network: nn.Module,
        camera: nn.Module | None = None,
        properties: TrackPropertyHead | None = None,
        flow: nn.Module | None = None,
        crops: BallCropSettings | None = None,
        settings: InstanceSettings | None = None,
        motion: TableMotion | None = None,
    ) -> None:
        """Assemble segmentation, crops and heads.

        Args:
            slots: Largest number of balls.
            size: Height and width of a frame, px.
            dt: Time between two frames, s.
            network: Crops of 12 channels, 27 with `colors`, four more with optical flow, to 8 numbers: corrections of
                position (px) and velocity (px a frame), and logarithms of their standard deviations.
            camera: Camera with a `caster`, such as `BallCamera`; None for an upright view of the table's plane.
            properties: Estimates of properties from tracks; None where they are fixed.
            flow: Optical flow between two frames, see `perception.flow`; its weights stay fixed.
            crops: Crops around balls, and the codes of their looks.
            settings: Network and tuning numbers of instance segmentation.
            motion: Fit of an engine: in evaluation, state and properties are those of its motion that is closest to
                what windows at all given frames show.
        """
        crops, settings = crops or BallCropSettings(), settings or InstanceSettings()
        super().__init__(slots, size, dt, SegmentationNetwork(settings.width), camera, crops.codes, flow)
        self.crops, self.settings = crops, settings
        self.network, self.properties = network, properties
        self.coverage = CoverageNetwork(COVERAGE_CHANNELS) if self.crops.refine else None
        self.motion = motion
        start_small(network)

    def encode(
        self,
        frames: Shaped[Tensor, "batch times channels height width"],
        context: ClipContext | None = None,
        looks: bool = True,
        background: Tensor | None = None,
    ) -> tuple[Observation, Segmentation]:
        """Estimate state and properties, and looks if `looks`, and return the segmentation that they are based on.

        Args:
            frames: Consecutive frames.
            context: Known values of the clip.
            looks: If true, the appearance code is computed too.
            background: Image without balls; computed from some of the frames if not given.
        """
        context = context or ClipContext()
        reading = self.read(frames, context, background)
        with torch.autocast(frames.device.type, enabled=False):
            values, stds = self._properties(reading.tracks, context, self._present(reading.linked))
            centers = self._jittered(reading.linked[-1].centroids)
            boxes = boxes_around(centers.detach(), CROP_EXTENT)
            channels = [crop(reading.images, boxes, self.crops.side), reading.mask_crops(boxes, self.crops.side)]
            if self.flow is not None:
                channels.append(self.motion_crops(frames, boxes, self.crops.side, reading.tracks, context))
            crops = torch.cat(channels, 1)
            observation = self._state(crops, centers, reading, context)
            code = self._looks(frames, reading.times, reading.linked, context) if looks else None
        observation = replace(observation, properties=values or None, property_std=stds or None, appearance=code)
        return observation, Segmentation(reading.logits, reading.clean, reading.linked[-FRAMES:])

    def read(
        self,
        frames: Shaped[Tensor, "batch times channels height width"],
        context: ClipContext,
        background: Tensor | None = None,
    ) -> Reading:
        """Segment the last frames and some of the context, and link the balls.

        Args:
            frames: Consecutive frames.
            context: Known values of the clip.
            background: Image without balls; computed from some of the frames if not given.
        """
        indices = self.context_frames(frames.shape[1])
        if background is None:
            background = self._context(frames, context)[1]
        recent, behind = self._augmented(brightness(frames[:, -FRAMES:]), background)
        with torch.autocast(frames.device.type, enabled=False):
            images = crop_channels(recent, behind, self.crops.colors)
            logits = self._segment(recent, behind)
            times, segmented = self._segment_context(frames, indices, background)
            gaps = [float(later - earlier) for earlier, later in pairwise([*times, frames.shape[1] - FRAMES])]
            linked = link([*segmented, *self._find_recent(logits)], self.settings, [*gaps, *[1.0] * (FRAMES - 1)])
            linked[-FRAMES:] = self._refined(linked[-FRAMES:], images)
            times = [*times, *range(frames.shape[1] - FRAMES, frames.shape[1])]
            tracks = self._tracks(linked, times, frames.shape[1], context)
        return Reading(images, background, logits, linked, times, tracks)

    def _refined(self, instances: list[Instances], images: Tensor) -> list[Instances]:
        """Objects of the last frames at the centroids of what they cover in crops of full resolution."""
        if self.coverage is None:
            return instances
        images = images.unflatten(1, (FRAMES, -1)).flatten(0, 1)[:, list(COVERAGE_CONTRAST)]
        centers = torch.stack([frame.centroids for frame in instances], 1).detach()
        masks = torch.stack([frame.masks for frame in instances], 1).flatten(0, 2)[:, None]
        boxes = boxes_around(centers.flatten(0, 1), CROP_EXTENT)
        layers = crop(images, boxes, self.crops.side), _crop_masks(masks, boxes, self.crops.side)
        inside = samples_inside(boxes, self.crops.side, self.size)
        refined = centers + self.coverage(torch.cat(layers, 1), inside, CROP_EXTENT).reshape(centers.shape)
        return [replace(frame, centroids=places) for frame, places in zip(instances, refined.unbind(1), strict=True)]

    def observe(
        self, frames: Shaped[Tensor, "batch times channels height width"], context: ClipContext | None = None
    ) -> Observation:
        """Estimate the state in the last of `frames`, and properties and looks of the clip."""
        observation = self.encode(frames, context)[0]
        if self.training or self.motion is None:
            return observation
        context, ends = context or ClipContext(), self.motion.settings.ends(frames.shape[1], FRAMES)
        if len(ends) < 2:
            return observation
        earlier = self._read_windows(frames, ends[:-1], context)
        return self.motion(observation, earlier, ends, dict(context.properties or {}))

    def observe_window(
        self, frames: Shaped[Tensor, "batch times channels height width"], context: ClipContext | None = None
    ) -> Observation:
        """Estimate the state in the last of `frames` by the networks alone."""
        return self.encode(frames, context)[0]

    def _read_windows(self, frames: Tensor, ends: list[int], context: ClipContext) -> list[Observation]:
        """Observe windows of as many frames as the state needs, which end at the given frames."""
        windows = torch.stack([frames[:, end + 1 - FRAMES : end + 1] for end in ends])
        indices, _, balls = self._first_look(frames, context)
        poses = context.extrinsics
        if poses is None:
            background = self._masked_background(frames, indices, balls, frames.shape[1], context)
            backgrounds = background.repeat(len(ends), 1, 1, 1)
        else:
            backgrounds = torch.cat([self._masked_background(frames, indices, balls, end + 1, context) for end in ends])
            poses = torch.cat([poses[:, end + 1 - FRAMES : end + 1] for end in ends])
        known = {
            name: value.repeat(len(ends), *(1,) * (value.dim() - 1))
            for name, value in (context.properties or {}).items()
        }
        own = ClipContext(poses, known or None)
        observation = self.encode(windows.flatten(0, 1), own, looks=False, background=backgrounds)[0]
        return observation.split(len(frames))

    def linked(
        self, observation: Observation, earlier: Observation | None, colors: Float[Tensor, "slots 3"] | None = None
    ) -> Observation:
        """Give each ball the slot that it has in the window before, in the first ones that of its color."""
        linked = chained(observation, earlier, self.dt)
        if earlier is not None or colors is None or linked.appearance is None:
            return linked
        return ordered_by_color(linked, colors)

    def _context(self, frames: Tensor, context: ClipContext) -> tuple[list[int], Tensor]:
        """Choose frames before the last three, and compute the background behind the balls that a first look finds."""
        indices, median, balls = self._first_look(frames, context)
        if not indices:
            return indices, median
        return indices, self._masked_background(frames, indices, balls, frames.shape[1], context)

    def _first_look(self, frames: Tensor, context: ClipContext) -> tuple[list[int], Tensor, list[Instances]]:
        """Choose frames before the last three, and return them, their median, and the balls found before it."""
        indices, median = super()._context(frames, context)
        return indices, median, self._segment_context(frames, indices, median)[1]

    def _segment_context(
        self, frames: Tensor, indices: list[int], background: Tensor
    ) -> tuple[list[int], list[Instances]]:
        """Segment frames of the context, without gradient."""
        if not indices:
            return [], []
        with torch.no_grad():
            images = brightness(frames[:, indices])
            logits = self.segmentation(images.flatten(0, 1), background.repeat_interleave(len(indices), 0))
            logits = logits.unflatten(0, (-1, len(indices)))
            return indices, [self._find(logits[:, frame]) for frame in range(len(indices))]

    def _find(self, logits: Tensor) -> Instances:
        return find_instances(logits, self.slots, self.settings)

    def _find_recent(self, logits: Tensor) -> list[Instances]:
        return [self._find(logits[:, frame]) for frame in range(FRAMES)]

    def _present(self, linked: list[Instances]) -> Tensor:
        """Slots that hold an object: those with a clear peak in most of the last frames."""
        confidence = torch.stack([instances.confidence for instances in linked[-FRAMES:]], 1)
        return confidence.median(1).values > self.settings.min_confidence

    def _tracks(self, linked: list[Instances], times: list[int], count: int, context: ClipContext) -> Tracks:
        """Positions on the table in all segmented frames."""
        centroids = torch.stack([instances.centroids for instances in linked], 1)
        area = torch.stack([instances.area for instances in linked], 1)
        confidence = torch.stack([instances.confidence for instances in linked], 1)
        positions = self._on_table(centroids, radius_of(area).expand_as(area), context, times)
        seconds = self.dt * (torch.tensor(times, dtype=positions.dtype, device=positions.device) - (count - 1))
        known = (context.properties or {}).get("walls")
        height, width = self.size
        walls = positions.new_tensor([0.0, 0.0, width, height]).expand(len(positions), -1) if known is None else known
        return Tracks(positions, seconds, confidence, area, walls.to(positions))

    def _on_table(self, pixels: Tensor, radius: Tensor, context: ClipContext, times: list[int]) -> Tensor:
        """Map pixels (batch, times, slots, 2) to the table, at the height of the balls' centers."""
        if not self._camera:
            return pixels + 0.5
        camera = self._camera[0].to(pixels)
        poses = camera.extrinsics.expand(*pixels.shape[:2], 4, 4)
        if context.extrinsics is not None:
            poses = context.extrinsics[:, times].to(pixels)
        flat = back_project(pixels.flatten(0, 1), camera.intrinsics, poses.flatten(0, 1), -radius.flatten(0, 1))
        return flat.unflatten(0, pixels.shape[:2])

    def _properties(
        self, tracks: Tracks, context: ClipContext, present: Tensor
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        given = {name: value.to(tracks.positions) for name, value in (context.properties or {}).items()}
        if self.properties is None:
            return given, {}
        # Tracks come from perception; the gradient of positions is that of the state.
        detached = replace(tracks, positions=tracks.positions.detach(), area=tracks.area.detach())
        values, stds = self.properties(detached)
        return {**values, **given, "present": present.to(tracks.positions)}, stds

    def _jittered(self, centers: Tensor) -> Tensor:
        """Centers of crops; those of masks are displaced in training, so that the network learns to read places."""
        if not self.training or self.coverage is not None:
            return centers
        return centers + _PLACE_JITTER * torch.randn(centers.shape).to(centers)

    def _state(self, crops: Tensor, centers: Tensor, reading: Reading, context: ClipContext) -> Observation:
        """State in the last frame: center of the crop and slope, corrected by the network on crops.

        Centers that come from coverage are more exact than what the network would correct.
        """
        instances, tracks = reading.linked[-FRAMES:], reading.tracks
        corrections, stds = decode(self._correct(crops).unflatten(0, (-1, self.slots)))
        shift, rate = corrections.split(2, -1)
        place = (centers + shift if self.coverage is None else centers)[:, None]
        position = self._on_table(place, radius_of(tracks.area), context, [reading.times[-1]])[:, 0]
        velocity = (tracks.slope + rate) / self.dt
        still = torch.zeros_like(position[..., :1])
        q, v = (torch.cat([part, still], -1).flatten(1) for part in (position, velocity))
        q_std, v_std = (
            functional.pad(part, (0, 1)).flatten(1)[:, None] for part in (stds[..., :2], stds[..., 2:] / self.dt)
        )
        masks = torch.stack([frame.masks for frame in instances], 1)
        confidence = instances[-1].confidence[:, None]
        return Observation(
            q[:, None],
            v[:, None],
            confidence,
            masks=masks,
            position_std=q_std,
            velocity_std=v_std,
        )

    @torch.no_grad()
    def motion_crops(
        self, frames: Tensor, boxes: Tensor, side: int, tracks: Tracks, context: ClipContext
    ) -> Float[Tensor, "objects channels side side"]:
        """Motion on the table of each pixel around an object, less the object's own slope, px a frame.

        Optical flow leads from a pixel of the last frame to its place in an earlier one. Both places are mapped to the
        table through the camera of their frame, so that motion of the camera does not count. Flow is that of the frames
        as they are: augmentation does not change what moves, and `CachedFlow` meets the same pairs again.
        """
        assert self.flow is not None
        recent, count = brightness(frames[:, -FRAMES:]), frames.shape[1]
        batch, earlier = len(recent), FRAMES - 1
        pairs = recent[:, -1:].expand(-1, earlier, -1, -1, -1), recent[:, :-1].flip(1)
        flows = self.flow(*(part.flatten(0, 1) for part in pairs)).unflatten(0, (batch, -1)).flatten(1, 2)
        # (batch, earlier frames, objects × samples, 2), and the same of the points that flow leads away from.
        moves = crop(flows, boxes, side).unflatten(0, (batch, -1)).unflatten(2, (earlier, 2))
        moves = moves.permute(0, 2, 1, 4, 5, 3).flatten(2, 4)
        points = sample_points(boxes, side).unflatten(0, (batch, -1)).flatten(1, 2)[:, None]
        radius = radius_of(tracks.area).repeat_interleave(side**2, 2).expand(-1, FRAMES, -1)
        times = [count - 1 - gap for gap in range(FRAMES)]
        places = self._on_table(torch.cat([points, points + moves], 1), radius, context, times)
        gaps = torch.arange(1, FRAMES).to(boxes)[:, None, None]
        motion = ((places[:, :1] - places[:, 1:]) / gaps).unflatten(2, (self.slots, -1))
        motion = (motion - tracks.slope[:, None, :, None]).clamp(-_MAX_MOTION, _MAX_MOTION)
        return motion.permute(0, 2, 1, 4, 3).reshape(-1, MOTION_CHANNELS, side, side)

    def _correct(self, crops: Tensor) -> Float[Tensor, "objects outputs"]:
        """Outputs of the network on the crop of each object; in training as if the crops were mirrored at random."""
        if not self.training:
            return self.network(crops).float()
        flipped = [axis for axis in (-1, -2) if bool(torch.rand(()) < 0.5)]
        signs, channel_signs = torch.ones(CROP_OUTPUTS), torch.ones(crops.shape[1])
        for axis in flipped:
            signs[[-axis - 1, -axis + 1]] = -1.0
            if self.flow is not None:
                channel_signs[-axis - 1 - MOTION_CHANNELS :: 2] = -1.0
        crops = crops.flip(flipped) * channel_signs.to(crops)[:, None, None]
        return self.network(crops).float() * signs.to(crops)
