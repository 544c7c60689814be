"""A decoder of links: the camera's layers are painted with textures of the clip, before its background and shadows."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.camera import BoundCamera
from physvision.core import State
from physvision.core.shapes import Appearance
from physvision.models.camera_decoder import CameraDecoder, image_rays, render_layers
from physvision.models.interfaces import AppearanceCode
from physvision.models.link_looks import MARGIN, SHADOW_BLUR, blurred, shifted
from physvision.models.links import sample_images
from physvision.physics.engine import Overrides

# Channels of the network's input beside codes: flat picture, background, coverage of links and hinges, place along and
# across the visible link, its direction, shade, and offset and darkness of shadows.
_PLAIN_CHANNELS = 3 + 3 + 2 + 2 + 2 + 1 + 3


class LinkDecoder(CameraDecoder):
    """Renders a chain of links as `CameraDecoder` does, with textures, round hinges and shadows in the flat picture.

    Textures are looked up at the place of each pixel in the axes of the link that it shows, so that the frame loss
    has a sharp gradient by the state. A network adds what the flat picture lacks, such as light and blur.
    """

    def __init__(
        self, camera: BoundCamera, network: nn.Module | None = None, codes: int = 12, hinge_radius: float = 1.2
    ) -> None:
        """Combine camera and network.

        Args:
            camera: Camera bound to a chain of capsules, such as `LinkCamera`.
            network: Images with `input_channels` to frames; None for the flat picture alone.
            codes: Numbers of a link's appearance code; the first three are its color.
            hinge_radius: Initial radius of the discs at the start of links, in half widths; it is learned.
        """
        super().__init__(camera, network, codes, layered=True)
        self.hinge_radius = nn.Parameter(torch.tensor(hinge_radius))

    @staticmethod
    def input_channels(codes: int = 12, channels: int = 3) -> int:
        """Count the channels of the network's input."""
        return _PLAIN_CHANNELS + codes

    def forward(
        self, state: State, properties: Overrides = None, appearance: AppearanceCode | None = None
    ) -> Float[Tensor, "batch channels height width"]:
        """Render the frame of each state, brightness about 0 to 1."""
        with torch.autocast(state.q.device.type, enabled=False):
            scene = self.camera.appearance(state, properties)
            looks = self._looks(scene, appearance)
            coverage = render_layers(self.camera.caster, scene, looks.extrinsics, self.layered).coverage
            place = self._places(scene, looks.extrinsics)
        radius, length = scene.sizes[..., 0, None, None], scene.sizes[..., 2, None, None]
        hinges = self._hinges(place, radius, coverage)
        shade = self._shade(coverage, hinges, looks)
        background = self._background(looks)
        flat = background * (1.0 - shade)
        margin = MARGIN * radius
        along = (place[:, :, 0] + margin) / (length + 2.0 * margin)
        across = 0.5 + 0.5 * place[:, :, 1] / margin
        grid = 2.0 * torch.stack([along, across], -1) - 1.0
        assert looks.textures is not None
        textures = sample_images(looks.textures.flatten(0, 1).to(grid), grid.flatten(0, 1), "border")
        textures = textures.unflatten(0, grid.shape[:2])
        flat = flat * (1.0 - coverage.sum(1, True)) + (coverage[:, :, None] * textures).sum(1)
        for link in range(self.shapes):
            flat = flat + hinges[:, link, None] * (textures[:, link] - flat)
        if self.network is None:
            return flat
        shown = torch.maximum(coverage, hinges)
        codes = looks.code.unflatten(1, (self.shapes, self.codes)).to(shown)
        down = -scene.poses[:, :, :2, 2]
        layers = [
            *(flat, background, coverage.sum(1, True), hinges.sum(1, True), shade),
            *(torch.einsum("bkhw,bkc->bchw", shown, part) for part in (codes, down)),
            torch.stack([(shown * (part.clamp(0.0, 1.0) - 0.5)).sum(1) for part in (along, across)], 1),
            self._shadow(looks)[:, :, None, None].expand(-1, -1, *flat.shape[2:]),
        ]
        return flat + self.network(torch.cat(layers, 1))

    def _looks(self, scene: Appearance, appearance: AppearanceCode | None) -> AppearanceCode:
        """Looks of each frame; codes of the scene where there is no clip, and plain colors where it has no textures."""
        batch, camera = len(scene.poses), self.camera.caster.camera
        if appearance is None:
            background = self.background[None, :, None, None].expand(batch, -1, camera.height, camera.width)
            appearance = AppearanceCode(self.shape_codes.flatten().expand(batch, -1), background)
        if appearance.extrinsics is None:
            appearance = replace(appearance, extrinsics=camera.extrinsics.to(scene.poses).expand(batch, 4, 4))
        if appearance.textures is None:
            colors = appearance.code.unflatten(1, (self.shapes, self.codes))[..., : self.channels]
            appearance = replace(appearance, textures=colors[..., None, None])
        return appearance

    def _places(self, scene: Appearance, extrinsics: Tensor | None) -> Float[Tensor, "batch shapes 2 height width"]:
        """Places of pixels on the plane of motion: along each link from its start, and across it, m."""
        camera = self.camera.caster.camera.to(scene.poses)
        assert extrinsics is not None
        local = extrinsics.to(scene.poses)[:, None] @ scene.poses
        rays = image_rays(camera) @ local[..., :3, :3]
        pinhole = -(local[..., :3, :3].mT @ local[..., :3, 3:])[..., None, :, 0]
        # The plane of motion is y = 0 in the axes of every link, whose start is at half its length along z.
        points = pinhole - (pinhole[..., 1:2] / rays[..., 1:2]) * rays
        along = 0.5 * scene.sizes[..., 2, None] - points[..., 2]
        return torch.stack([along, points[..., 0]], 2).unflatten(-1, (camera.height, camera.width))

    def _hinges(self, place: Tensor, radius: Tensor, coverage: Tensor) -> Tensor:
        """Visible share of each pixel in the disc at each link's start; later links are in front."""
        camera = self.camera.caster.camera
        pixel = float(camera.extrinsics[..., 2, 3].mean() / camera.intrinsics[0, 0])
        distance = (place.square().sum(2) + 1e-8).sqrt()
        discs = torch.sigmoid(4.0 * (self.hinge_radius * radius - distance) / pixel)
        later = coverage.flip(1).cumsum(1).flip(1) - coverage
        return discs * (1.0 - later.clamp(0.0, 1.0))

    def _shade(self, coverage: Tensor, hinges: Tensor, looks: AppearanceCode) -> Tensor:
        """Darkness of shadows in each pixel, 0 to 1."""
        if looks.shadow is None:
            return torch.zeros_like(coverage[:, :1])
        total = torch.maximum(coverage.sum(1), hinges.amax(1))
        soft = shifted(blurred(total, SHADOW_BLUR), looks.shadow[:, :2].to(total))
        return (looks.shadow[:, 2, None, None].to(total) * soft)[:, None]

    def _shadow(self, looks: AppearanceCode) -> Tensor:
        """Offset and darkness of shadows, about 0 to 1."""
        if looks.shadow is None:
            return looks.code.new_zeros(len(looks.code), 3)
        return looks.shadow / looks.shadow.new_tensor([5.0, 5.0, 1.0])
