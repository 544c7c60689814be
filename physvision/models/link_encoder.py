"""The encoder of a chain of links: learned segmentation, flow, and networks on crops along each link."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import Coordinates, brightness
from physvision.models.interfaces import ClipContext, Observation
from physvision.models.link_looks import clip_looks
from physvision.models.link_motion import fitted_motion, last_middle
from physvision.models.links import (
    FRAME_CHANNELS,
    FrameNetwork,
    LinkFrames,
    LinkSettings,
    cast_values,
    direction_of,
    limited,
    mask_centroids,
    plane_motion,
    sample_images,
    unit_vectors,
    widened,
)
from physvision.models.pendulum import swing_leaves
from physvision.models.segmentation import Instances, LinkSegmentation, contrast_channels
from physvision.models.segmenting_encoder import CROP_CONTRAST, FRAMES, Segmentation, SegmentingEncoder, start_small
from physvision.models.tabletop import back_project, project
from physvision.models.track_fit import FittedMotion, TrackFit
from physvision.models.trial_properties import UNIFORM_STD, scaled
from physvision.physics.engine import Engine

# With optical flow, a crop of the last frame also has the motion from each earlier one.
MOTION_CHANNELS = 2 * (FRAMES - 1)
LINK_CHANNELS = FRAME_CHANNELS * FRAMES + MOTION_CHANNELS
LINK_OUTPUTS = 4
# Largest corrections of an angle, rad, and of an angular velocity, rad/s.
_MAX_TURN, _MAX_RATE = 0.8, 6.0
# Standard deviations of angles (rad) and angular velocities (rad/s) before training, and the range of their logarithms.
_INITIAL_STD = (0.1, 1.0)
_LOG_STD = (-3.5, 2.5)
# Errors that crops are placed with in training, rad and m: networks learn to correct them.
_ANGLE_JITTER, _PLACE_JITTER = 0.12, 0.04
# Largest logarithm of the scale of crops in training: few labels have few lengths, and this gives the network others.
_SCALE_RANGE = 0.25
# Largest difference of a pixel's motion from the link's, m a frame.
_MAX_MOTION = 0.2
# Frames from one to the next of those whose median is the background: links hide a place for long.
_BACKGROUND_STEP = 3


class LinkEncoder(SegmentingEncoder):
    """Reads a chain of links of unknown looks, hinged in the middle of the frame: state, properties, and looks.

    Segmentation is learned, with one mask for each link. In every segmented frame the direction from a link's start to
    the centroid of its mask gives an angle, which a small network corrects on a crop along the link; the same network
    reads lengths and half width. In the last three frames a VGG corrects angle and angular velocity on crops with
    masks and the motion of pixels. Links come one after another: the end of one is the start of the next.

    Masses and damping are those of the engine's motion that is closest to the angles in all frames, see `refined`.
    """

    def __init__(
        self,
        links: int,
        size: tuple[int, int],
        dt: float,
        network: nn.Module,
        camera: nn.Module,
        engine: Engine,
        flow: nn.Module,
        codes: int = 12,
        width: int = 8,
        settings: LinkSettings | None = None,
    ) -> None:
        """Assemble segmentation, crops and networks.

        Args:
            links: Number of links.
            size: Height and width of a frame, px.
            dt: Time between two frames, s.
            network: Crops of 19 channels to 4 numbers: corrections of angle (rad) and angular velocity (rad/s), and
                logarithms of their standard deviations.
            camera: Camera with a `caster`, such as `LinkCamera`.
            engine: Engine whose motion gives masses and damping, such as `swing`; not trained.
            flow: Optical flow between two frames, see `perception.flow`; its weights stay fixed.
            codes: Numbers of each link's appearance code, at least 3; all links have at most 64. 0 for none.
            width: Channels of the segmentation network.
            settings: Prior ranges and sizes of crops.
        """
        super().__init__(links, size, dt, LinkSegmentation(links, width), camera, codes, flow)
        self.settings = settings or LinkSettings()
        self.network, self.frame_network = network, FrameNetwork(self.settings.crop)
        self.angles = Coordinates(links, tuple(range(links)))
        # In a tuple, so that it is not a submodule: the model trains and saves its own engine.
        self._fit = (TrackFit(engine, self.angles, swing_leaves, points=last_middle),)
        start_small(network)

    def encode(
        self,
        frames: Shaped[Tensor, "batch times channels height width"],
        context: ClipContext | None = None,
        looks: bool = True,
    ) -> tuple[Observation, Segmentation]:
        """Estimate state and properties, and looks if `looks`, and return the segmentation that they are based on."""
        context, count = context or ClipContext(), frames.shape[1]
        indices, background = self._context(frames, context)
        times = self.read_times(count)
        recent = brightness(frames[:, -FRAMES:])
        augmented, augmented_background = self._augmented(recent, background)
        with torch.autocast(frames.device.type, enabled=False):
            logits = self._segment(augmented, augmented_background)
            read = self._read(frames, indices, background, (augmented, augmented_background, logits), context, times)
            angles, angle_std, lengths, properties = self._follow(read)
            assert self.flow is not None
            flows = plane_motion(self.flow, self._camera[0], recent, read.poses[:, -FRAMES:])
            observation = self._state(read, angles, angle_std, lengths, flows)
            values, stds = properties
            instances = self._find_recent(torch.logit(read.masks, 1e-6))
        observation = replace(observation, properties=values, property_std=stds)
        if not looks or not self.codes:
            return observation, Segmentation(logits, background, instances[-FRAMES:])
        motion = self.fitted(observation, count, read.centroids[:, :, -1])
        # Of the last three frames one is enough, they look alike.
        selection = [*range(len(times) - FRAMES), len(times) - 1]
        chain = (
            motion.positions[:, selection].cumsum(-1).float(),
            motion.properties["length"].float(),
            values["half_width"],
        )
        code = self._code(frames, times, instances)
        appearance = clip_looks(
            self._camera[0], frames[:, [times[index] for index in selection]], read.at(selection), chain, code
        )
        segmentation = Segmentation(logits, background, instances[-FRAMES:], motion)
        return replace(observation, appearance=appearance), segmentation

    def read_times(self, count: int) -> list[int]:
        """Indices of the frames that are segmented: some of the context, and the last three."""
        return [*self.context_frames(count), *range(count - FRAMES, count)]

    def background_frames(self, count: int) -> list[int]:
        """Frames whose median is the background, evenly."""
        return list(range(0, count, _BACKGROUND_STEP))

    def context_frames(self, count: int) -> list[int]:
        """Frames before the last three that are segmented, evenly."""
        return list(range(0, count - FRAMES, self.settings.context_step[0 if self.training else 1]))

    def fitted(self, observation: Observation, count: int, centroids: Tensor | None = None) -> FittedMotion:
        """Fit the engine's motion to an observation of `count` frames, see `fitted_motion`."""
        return fitted_motion(self.fit, observation, self.read_times(count), count, self.training, centroids)

    def refined(self, observation: Observation, count: int, motion: FittedMotion | None = None) -> Observation:
        """Complete an observation of `count` frames by the engine's motion closest to the angles in all of them.

        Properties become the most likely ones. In evaluation the state is that of the same motion at the last frame;
        in training it stays that of the network, to which the losses of frames flow.
        """
        fitted = motion or self.fitted(observation, count)
        dtype, own = observation.positions.dtype, dict(observation.properties or {})
        values = cast_values(fitted.properties, dtype)
        # Frames show lengths, so that their losses teach the network that reads them.
        values["length"] = values["length"] + (own["length"] - own["length"].detach())
        stds = cast_values(fitted.property_std, dtype)
        changes: dict[str, Any] = {
            "properties": {**own, **values},
            "property_std": {**(observation.property_std or {}), **stds},
        }
        if not self.training:
            present = fitted.state.q[:, None].to(dtype)
            changes["positions"] = torch.cat([observation.positions[:, :-1], present], 1)
            changes["velocities"] = fitted.state.v[:, None].to(dtype)
        return replace(observation, **changes)

    @property
    def fit(self) -> TrackFit:
        """Fit of the engine's motion to directions of links."""
        return self._fit[0]

    def observe(
        self, frames: Shaped[Tensor, "batch times channels height width"], context: ClipContext | None = None
    ) -> Observation:
        """Estimate the state in the last of `frames`, and properties and looks of the clip."""
        observation, segmentation = self.encode(frames, context)
        return self.refined(observation, frames.shape[1], segmentation.motion)

    def _read(
        self,
        frames: Tensor,
        indices: list[int],
        background: Tensor,
        recent: tuple[Tensor, Tensor, Tensor],
        context: ClipContext,
        times: list[int],
    ) -> LinkFrames:
        """Segment the context without gradient, and put it before the last frames."""
        augmented, augmented_background, logits = recent
        images = contrast_channels(augmented.flatten(0, 1), augmented_background.repeat_interleave(FRAMES, 0))
        images = images[:, list(CROP_CONTRAST)].unflatten(0, (-1, FRAMES))
        masks = torch.sigmoid(logits.float())
        if indices:
            with torch.no_grad():
                earlier = brightness(frames[:, indices]).flatten(0, 1)
                repeated = background.repeat_interleave(len(indices), 0)
                context_masks = torch.sigmoid(self.segmentation(earlier, repeated).float())
                context_images = contrast_channels(earlier, repeated)[:, list(CROP_CONTRAST)]
            shape = (-1, len(indices))
            images = torch.cat([context_images.unflatten(0, shape), images], 1)
            masks = torch.cat([context_masks.unflatten(0, shape), masks], 1)
        camera = self._camera[0].to(images)
        poses = camera.extrinsics.expand(*images.shape[:2], 4, 4)
        if context.extrinsics is not None:
            poses = context.extrinsics[:, times].to(images)
        mirror = scale = torch.ones(len(images)).to(images)
        if self.training:
            mirror = 1.0 - 2.0 * (torch.rand(len(images)) < 0.5).to(images)
            scale = (_SCALE_RANGE * (2.0 * torch.rand(len(images)) - 1.0)).exp().to(images)
        return LinkFrames(images, masks, self.on_plane(masks, poses), poses, mirror, scale)

    def on_plane(
        self, masks: Float[Tensor, "batch times links rows columns"], poses: Float[Tensor, "batch times 4 4"]
    ) -> Float[Tensor, "batch times links 2"]:
        """Centroids of masks on the plane of motion, m, given the pose of the camera in each frame."""
        camera, pixels = self._camera[0].to(masks), mask_centroids(masks).flatten(0, 1)
        flat = back_project(pixels, camera.intrinsics, poses.flatten(0, 1), torch.zeros_like(pixels[..., 0]))
        return flat.unflatten(0, masks.shape[:2])

    def _follow(self, read: LinkFrames) -> tuple[Tensor, Tensor, Tensor, tuple[dict[str, Tensor], dict[str, Tensor]]]:
        """Follow the chain from the hinge on: direction of each link in all frames with deviation, and lengths."""
        settings = self.settings
        start = torch.zeros_like(read.centroids[:, :, 0])
        directions, stds, lengths, length_stds, widths = ([] for _ in range(5))
        for link in range(self.slots):
            guess = direction_of(read.centroids[:, :, link] - start).detach()
            placed, place = self._jittered(guess, start.detach())
            crops = self._frame_crops(read, link, place, placed)
            outputs = self.frame_network(crops.flatten(0, 1)).float().unflatten(0, placed.shape)
            turn = read.mirror[:, None] * limited(outputs[..., 0], _MAX_TURN)
            weight = (-outputs[..., 3].clamp(*_LOG_STD)).softmax(1)
            length, length_std = scaled(
                (weight * outputs[..., 2]).sum(1), (weight * outputs[..., 3]).sum(1), widened(settings.length)
            )
            length, length_std = read.scale * length, read.scale * length_std
            directions.append(placed + turn)
            stds.append(_INITIAL_STD[0] * outputs[..., 1].clamp(*_LOG_STD).exp())
            lengths.append(length)
            length_stds.append(length_std)
            widths.append((weight * outputs[..., 4]).sum(1))
            start = start + length[:, None, None] * unit_vectors(directions[-1])
        angles, length, length_std = (torch.stack(part, -1) for part in (directions, lengths, length_stds))
        width, width_std = scaled(
            torch.stack(widths, -1).mean(-1), torch.zeros_like(length[:, 0]), widened(settings.half_width)
        )
        width = read.scale * width
        values = {"length": length, "half_width": width}
        properties_std = {"length": length_std, "half_width": width_std}
        for name, prior in (("mass", settings.mass), ("joint_damping", settings.damping)):
            values[name] = torch.full_like(length, 0.5 * (prior[0] + prior[1]))
            properties_std[name] = torch.full_like(length, UNIFORM_STD * (prior[1] - prior[0]))
        return angles, torch.stack(stds, -1), length, (values, properties_std)

    def _jittered(self, angles: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        if not self.training:
            return angles, places
        return (
            angles + _ANGLE_JITTER * torch.randn(angles.shape).to(angles),
            places + _PLACE_JITTER * torch.randn(places.shape).to(places),
        )

    def _frame_crops(self, read: LinkFrames, link: int, start: Tensor, angle: Tensor) -> Tensor:
        """Crops along a link in every frame: contrast, its mask and those of the others, (batch, times, …)."""
        grid = self._grid(read, start, angle)
        own = read.masks[:, :, link : link + 1]
        others = read.masks.sum(2, keepdim=True) - own
        masks = torch.cat([own, others], 2)
        sampled = [sample_images(part.flatten(0, 1), grid.flatten(0, 1)) for part in (read.images, masks)]
        return torch.cat(sampled, 1).unflatten(0, angle.shape)

    def _points(self, read: LinkFrames, start: Tensor, angle: Tensor) -> Float[Tensor, "batch times samples 2"]:
        """Points of the plane of motion that a crop samples, m; rows across the link, columns along it."""
        settings = self.settings
        cells = settings.crop_extent * ((torch.arange(settings.crop).to(start) + 0.5) / settings.crop - 0.5)
        along, across = torch.meshgrid(cells + 0.25 * sum(settings.length), cells, indexing="xy")
        along, across = (read.scale[:, None, None] * part.flatten() for part in (along, across))
        unit = unit_vectors(angle)[..., None, :]
        sideways = torch.stack([unit[..., 1], -unit[..., 0]], -1) * read.mirror[:, None, None, None]
        return start[..., None, :] + along[..., None] * unit + across[..., None] * sideways

    def _grid(self, read: LinkFrames, start: Tensor, angle: Tensor) -> Float[Tensor, "batch times crop crop 2"]:
        """Places of a crop's samples in the frames, in the units of `grid_sample`."""
        points = functional.pad(self._points(read, start, angle), (0, 1)).flatten(0, 1)
        camera = self._camera[0].to(points)
        pixels = project(points, camera.intrinsics, read.poses[:, -angle.shape[1] :].flatten(0, 1))
        side = self.settings.crop
        normalized = (2.0 * pixels + 1.0) / pixels.new_tensor([self.size[1], self.size[0]]) - 1.0
        return normalized.unflatten(0, angle.shape).unflatten(2, (side, side))

    def _state(
        self, read: LinkFrames, angles: Tensor, angle_std: Tensor, lengths: Tensor, motion: Tensor
    ) -> Observation:
        """State in the last frame: direction and slope of each link, corrected by the network on crops."""
        # Motion and corrections of the state are read at the scale of the settings.
        read = replace(read, scale=torch.ones_like(read.scale))
        recent = read.at(list(range(-FRAMES, 0)))
        slopes = self._slope(angles)
        start, corrected, rates, stds = torch.zeros_like(read.centroids[:, -1, 0]), [], [], []
        for link in range(self.slots):
            placed, place = self._jittered(angles[:, -1, link].detach(), start.detach())
            repeated = place[:, None].expand(-1, FRAMES, -1), placed[:, None].expand(-1, FRAMES)
            crops = self._frame_crops(recent, link, *repeated).flatten(1, 2)
            moves = self._residual_motion(
                read, motion, (place, placed), slopes[:, : link + 1], (angles[:, -1], lengths), link
            )
            outputs = self.network(torch.cat([crops, moves], 1)).float()
            turn, rate = (read.mirror * limited(outputs[:, k], limit) for k, limit in ((0, _MAX_TURN), (1, _MAX_RATE)))
            corrected.append(placed + turn)
            rates.append(slopes[:, link] + rate)
            stds.append(outputs.new_tensor(_INITIAL_STD) * outputs[:, 2:].clamp(*_LOG_STD).exp())
            start = start + lengths[:, link, None].detach() * unit_vectors(corrected[-1])
        present, rate, std = torch.stack(corrected, -1), torch.stack(rates, -1), torch.stack(stds, 1)
        directions = torch.cat([angles[:, :-1], present[:, None]], 1)
        zeros = torch.zeros_like(directions[..., :1])
        confidence = read.masks[:, -1:].amax((-1, -2))
        return Observation(
            self.angles.unwind(directions.diff(dim=-1, prepend=zeros)),
            rate.diff(dim=-1, prepend=zeros[:, -1])[:, None],
            confidence,
            masks=read.masks[:, -FRAMES:],
            position_std=torch.cat([angle_std[:, :-1], std[:, None, :, 0]], 1),
            velocity_std=std[:, None, :, 1],
        )

    def _slope(self, angles: Tensor) -> Float[Tensor, "batch links"]:
        """Mean angular velocity from the last frame but two to the last one, rad/s."""
        turned = angles[:, -1] - angles[:, -FRAMES]
        return torch.remainder(turned + math.pi, 2.0 * math.pi).sub(math.pi) / ((FRAMES - 1) * self.dt)

    @torch.no_grad()
    def _residual_motion(
        self,
        read: LinkFrames,
        motion: Tensor,
        place: tuple[Tensor, Tensor],
        slopes: Tensor,
        chain: tuple[Tensor, Tensor],
        link: int,
    ) -> Float[Tensor, "batch channels crop crop"]:
        """Motion in a crop less that of a rigid link that turns by the slopes, along and across the link."""
        start, angle = (part[:, None] for part in place)
        side = self.settings.crop
        sampled = (
            sample_images(motion.flatten(1, 2), self._grid(read, start, angle)[:, 0]).flatten(2).unflatten(1, (-1, 2))
        )
        unit = unit_vectors(angle)
        points = self._points(read, start, angle) - start[..., None, :]
        # A turn moves a point at (x, y) from its hinge by (-y, x) where y points down and angles go from down to −x.
        rigid = slopes[:, link, None, None, None] * torch.stack([-points[..., 1], points[..., 0]], -1)
        directions, lengths = chain
        for before in range(link):
            end = lengths[:, before, None] * unit_vectors(directions[:, before])
            rigid = rigid + (slopes[:, before, None] * torch.stack([-end[:, 1], end[:, 0]], -1))[:, None, None]
        moved = sampled.movedim(2, 3) - self.dt * rigid
        along = (moved * unit[..., None, :]).sum(-1)
        across = (moved * torch.stack([unit[..., 1], -unit[..., 0]], -1)[..., None, :]).sum(-1) * read.mirror[
            :, None, None
        ]
        residual = torch.stack([along, across], 2).clamp(-_MAX_MOTION, _MAX_MOTION) / _MAX_MOTION
        return residual.flatten(1, 2).unflatten(-1, (side, side))

    def _find_recent(self, logits: Tensor) -> list[Instances]:
        masks = torch.sigmoid(logits.float())
        parts = mask_centroids(masks), masks.amax((-1, -2)), masks, 4.0 * masks.sum((-1, -2))
        return [Instances(*(part[:, time] for part in parts)) for time in range(masks.shape[1])]
