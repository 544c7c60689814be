"""A decoder with a camera inside: ray casting gives geometry and its gradient, transposed convolutions give looks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from physvision.camera import BoundCamera, RayCaster
from physvision.camera.projection import Projection, seen_from
from physvision.core import InputError, State
from physvision.core.checks import check_color
from physvision.core.shapes import Appearance
from physvision.models.interfaces import AppearanceCode, Decoder
from physvision.models.vgg import init_weights, scaled_configuration
from physvision.physics.engine import Overrides

# Coverage below which a pixel shows the background, for the identity of pixels.
_VISIBLE = 0.5
# Share of its distance by which a shape is in front of the one before.
_LAYER_STEP = 0.05


@dataclass(frozen=True)
class CameraLayers:
    """Geometry that a camera sees at predicted states, differentiable in states and sizes.

    Attributes:
        coverage: Share of each pixel in which each shape is visible, 0 to 1.
        coordinates: Coordinates of each pixel in the frame of the visible shape, in units of its largest size, at the
            depth of its origin; weighted by coverage.
        depth: Depth of the visible shape's origin relative to the nearest and farthest one, weighted by coverage.
    """

    coverage: Float[Tensor, "batch shapes height width"]
    coordinates: Float[Tensor, "batch 3 height width"]
    depth: Float[Tensor, "batch 1 height width"]

    @property
    def ids(self) -> Int[Tensor, "batch height width"]:
        """Index of the shape that covers most of each pixel; −1 for the background."""
        highest, ids = self.coverage.max(1)
        return torch.where(highest >= _VISIBLE, ids, -1)


def in_front(scene: Appearance, extrinsics: Tensor) -> Appearance:
    """Move each shape toward the pinhole, in front of the one before; sizes shrink with distance, outlines stay.

    Shape k is scaled by 1 − 0.05 k about the pinhole. That separates shapes of one plane of motion, as far as they are
    thinner than a fortieth of their distance.

    Args:
        scene: Poses and sizes of the shapes.
        extrinsics: Pose of the camera in each world, (batch, 4, 4).
    """
    rotation, shift = extrinsics[..., :3, :3], extrinsics[..., :3, 3:]
    pinhole = -(rotation.mT @ shift)[..., None, :, 0]
    scale = (1.0 - _LAYER_STEP * torch.arange(scene.poses.shape[1]).to(scene.poses))[:, None]
    poses = scene.poses.clone()
    poses[..., :3, 3] = pinhole + scale * (scene.poses[..., :3, 3] - pinhole)
    return Appearance(poses, scene.sizes * scale)


def image_rays(camera: Projection) -> Float[Tensor, "pixels 3"]:
    """K⁻¹ (x, y, 1) of each pixel, row by row: its ray from a pinhole, in the camera's frame."""
    rows, columns = (torch.arange(size).to(camera.intrinsics) for size in (camera.height, camera.width))
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    return torch.stack([x, y, torch.ones_like(x)], -1).flatten(0, 1) @ torch.linalg.inv(camera.intrinsics).mT


def render_layers(
    caster: RayCaster, scene: Appearance, extrinsics: Tensor | None = None, layered: bool = False
) -> CameraLayers:
    """Render the layers of a scene.

    Args:
        caster: Camera and shapes.
        scene: Poses and sizes of the shapes.
        extrinsics: Pose of the camera in each world, (batch, 4, 4); the caster's own if not given.
        layered: If true, each shape is in front of the one before, see `in_front`.
    """
    camera = caster.camera.to(scene.poses)
    if extrinsics is not None:
        camera = replace(camera, extrinsics=extrinsics.to(scene.poses))
    if layered:
        scene = in_front(scene, camera.extrinsics.expand(len(scene.poses), 4, 4))
    coverage = caster.masks(scene.poses, sizes=scene.sizes, camera=None if extrinsics is None else camera)
    local = camera.extrinsics.reshape(-1, 1, 4, 4) @ scene.poses
    rays = image_rays(camera)
    origin, depth = local[..., None, :3, 3], local[..., 2, 3]
    # Offsets in the camera's frame at the depth of each origin; those of an orthographic camera do not depend on it.
    points = rays[..., :2] if camera.orthographic else rays[..., :2] * depth[..., None, None]
    offsets = functional.pad(points - origin[..., :2], (0, 1))
    extent = scene.sizes.amax(-1).clamp_min(1e-6)[..., None, None]
    own = (offsets @ local[..., :3, :3]) / extent
    visible = coverage.flatten(2)
    coordinates = torch.einsum("bkp,bkpc->bcp", visible, own.clamp(-1.5, 1.5))
    low, high = depth.amin(1, keepdim=True), depth.amax(1, keepdim=True)
    relative = (depth - low) / (high - low).clamp_min(1e-6)
    nearness = torch.einsum("bkp,bk->bp", visible, relative)[:, None]
    size = (camera.height, camera.width)
    return CameraLayers(coverage, coordinates.unflatten(2, size), nearness.unflatten(2, size))


class LayerNetwork(nn.Module):
    """Images to images of the same size by transposed convolutions, the mirror image of VGG-11.

    The coarsest map is a pooled image; after each upsampling the image, pooled to that resolution, is added through a
    1 × 1 convolution, so that detail need not pass through the coarse maps. The last layer starts at zero.
    """

    def __init__(self, inputs: int, channels: int = 3, width: float = 1.0) -> None:
        """Build the layers of the network.

        Args:
            inputs: Channels of an input image.
            channels: Channels of an output image.
            width: Factor of all inner channels; 1 for those of VGG-11.
        """
        super().__init__()
        configuration, _ = scaled_configuration(width)
        widths = [entry for entry in configuration if not isinstance(entry, str)]
        outputs = [*widths[:-1][::-1], widths[0]]
        self.entry = nn.Conv2d(inputs, widths[-1], 1)
        self.skips, self.stages = nn.ModuleList(), nn.ModuleList()
        fan_in, stage = widths[-1], nn.Sequential()
        for entry in configuration[::-1]:
            if entry == "M":
                self._close(stage)
                stage = nn.Sequential()
                self.skips.append(nn.Conv2d(inputs, fan_in, 1))
                continue
            fan_out = outputs.pop(0)
            stage.extend([nn.ConvTranspose2d(fan_in, fan_out, 3, padding=1), nn.ReLU(inplace=True)])
            fan_in = fan_out
        self._close(stage)
        self.output_layer = nn.Conv2d(fan_in, channels, 3, padding=1)
        init_weights(self)
        nn.init.zeros_(self.output_layer.weight)
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def _close(self, stage: nn.Sequential) -> None:
        if len(stage):
            self.stages.append(stage)

    def forward(self, images: Float[Tensor, "batch inputs height width"]) -> Float[Tensor, "batch channels h w"]:
        """Map each image to one of its size."""
        height, width = images.shape[-2:]
        images = images.contiguous(memory_format=torch.channels_last)
        sizes = [(max(1, height >> level), max(1, width >> level)) for level in range(len(self.skips), -1, -1)]
        features = self.entry(functional.adaptive_avg_pool2d(images, sizes[0]))
        for skip, stage, size in zip(self.skips, self.stages, sizes[1:], strict=True):
            features = functional.interpolate(features, size=size, mode="bilinear", align_corners=False)
            pooled = images if size == (height, width) else functional.adaptive_avg_pool2d(images, size)
            features = stage(features + skip(pooled))
        return self.output_layer(features)


class CameraDecoder(Decoder):
    """Renders a frame in two steps: a camera draws layers of the scene, a network paints them.

    Layers of all shapes are composed: colors and codes of the shapes, weighted by coverage, over the background, with
    coordinates and depth. The network adds what they lack, such as texture, highlights, shadows and blur; it starts at
    zero, at the flat picture of the camera. Colors, codes and background come from the appearance code of the clip, or
    are learned as those of the scene where a model has no such code.

    Attributes:
        mechanics: Mechanical engine whose bodies the camera shows.
    """

    def __init__(
        self,
        camera: BoundCamera,
        network: nn.Module | None = None,
        codes: int = 12,
        channels: int = 3,
        colors: tuple[tuple[float, ...], ...] | None = None,
        layered: bool = False,
    ) -> None:
        """Combine camera and network.

        Args:
            camera: Camera bound to the engine that moves the bodies.
            network: Images with `input_channels` to frames; None for the flat picture of the camera alone.
            codes: Numbers of an object's appearance code; the first `channels` of them are its color.
            channels: Channels of a frame.
            colors: Initial color of each shape, 0 to 1, for scenes without an appearance code.
            layered: If true, each shape is in front of the one before, as the links of a chain are.
        """
        super().__init__()
        if codes < channels:
            raise InputError(f"codes: expected at least {channels} numbers, an object's color, got {codes}")
        check_color("colors", *(colors or ()))
        self.camera, self.network, self.codes, self.channels = camera, network, codes, channels
        self.layered = layered
        self.mechanics = camera.mechanics
        self.shapes = len(camera.shapes)
        initial = torch.full((self.shapes, codes), 0.0)
        initial[:, :channels] = 0.5 if colors is None else torch.tensor(colors).reshape(self.shapes, channels)
        self.shape_codes = nn.Parameter(initial)
        self.background = nn.Parameter(torch.zeros(channels))

    @staticmethod
    def input_channels(codes: int = 12, channels: int = 3) -> int:
        """Count the channels of the network's input: background, coverage, codes, coordinates, depth."""
        return channels + 1 + codes + 3 + 1

    def layers(self, state: State, properties: Overrides = None, extrinsics: Tensor | None = None) -> CameraLayers:
        """Render the camera's layers of each state."""
        # Half precision does not resolve parts of a pixel.
        with torch.autocast(state.q.device.type, enabled=False):
            return render_layers(
                self.camera.caster, self.camera.appearance(state, properties), extrinsics, self.layered
            )

    def _background(self, appearance: AppearanceCode) -> Tensor:
        """Background as the camera sees it in each frame."""
        source, target = appearance.background_extrinsics, appearance.extrinsics
        if source is None or target is None:
            return appearance.background
        return seen_from(appearance.background, self.camera.caster.camera.intrinsics, source, target)

    def forward(
        self, state: State, properties: Overrides = None, appearance: AppearanceCode | None = None
    ) -> Float[Tensor, "batch channels height width"]:
        """Render the frame of each state, brightness about 0 to 1."""
        layers = self.layers(state, properties, None if appearance is None else appearance.extrinsics)
        coverage = layers.coverage
        batch, _, height, width = coverage.shape
        if appearance is None:
            codes = self.shape_codes.expand(batch, -1, -1)
            background = self.background[None, :, None, None].expand(batch, -1, height, width)
        else:
            codes = appearance.code.unflatten(1, (self.shapes, self.codes))
            background = self._background(appearance)
        painted = torch.einsum("bkhw,bkc->bchw", coverage, codes.to(coverage))
        total = coverage.sum(1, keepdim=True)
        flat = background * (1.0 - total) + painted[:, : self.channels]
        if self.network is None:
            return flat
        return flat + self.network(torch.cat([background, total, painted, layers.coordinates, layers.depth], 1))
