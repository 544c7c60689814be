"""Image corruptions for training: noise, blur, textured backgrounds, occlusion."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.core.registry import register

_TEXTURE_NODES = 6  # grid points of the background texture along each side


@register("physvision.perception.FrameCorruption")
class FrameCorruption(nn.Module):
    """Corrupt windows of consecutive frames, each sample by random severities.

    The draws follow torch's generator. Corruptions apply in evaluation mode too. With `fixed_severity`, every sample
    receives every corruption at its maximum.
    """

    def __init__(
        self,
        noise: float = 0.0,
        blur: float = 0.0,
        texture: float = 0.0,
        occlusion: float = 0.0,
        radius: float = 3.2,
        probability: float = 0.4,
        fixed_severity: bool = False,
    ) -> None:
        """Set the maximum severity of each corruption.

        Args:
            noise: Standard deviation of the pixel noise, drawn anew for every frame; 1 is full scale.
            blur: Standard deviation of the Gaussian blur, in pixels.
            texture: Contrast of the smooth background texture.
            occlusion: Radius of the gray occluding disc, in object radii.
            radius: Radius of the objects, in pixels.
            probability: Probability that a sample receives a given corruption.
            fixed_severity: If true, every sample receives every corruption at its maximum.
        """
        super().__init__()
        for name, value in {"noise": noise, "blur": blur, "texture": texture, "occlusion": occlusion}.items():
            if not 0 <= value < float("inf"):
                raise InputError(f"{name}: expected 0 or more, got {value}")
        self.noise, self.blur, self.texture, self.occlusion = noise, blur, texture, occlusion
        self.radius, self.probability, self.fixed_severity = radius, probability, fixed_severity

    def forward(
        self,
        frames: Float[Tensor, "batch times channels height width"],
        coverage: Float[Tensor, "batch times 1 height width"],
        positions: Float[Tensor, "batch objects 2"],
    ) -> Float[Tensor, "batch times channels height width"]:
        """Apply the corruptions to the frames.

        Args:
            frames: Frames from 0 to 1.
            coverage: Fraction of each pixel that is not background.
            positions: Object centers, in pixels; one random object is occluded.
        """
        if self.texture:
            texture = self._background_texture(frames)
            frames = frames + self._severity(self.texture, frames) * (1 - coverage) * texture
        if self.occlusion:
            frames = self._occlude(frames, positions)
        if self.blur:
            frames = self._blur(frames)
        if self.noise:
            severity = self._severity(self.noise, frames)
            is_noisy = severity.flatten() > 0
            frames = frames.clone()
            frames[is_noisy] += severity[is_noisy] * torch.randn_like(frames[is_noisy])
        return frames.clamp(0, 1)

    def _severity(self, maximum: float, frames: Tensor) -> Tensor:
        if self.fixed_severity:
            return frames.new_full((len(frames), 1, 1, 1, 1), maximum)
        fraction, draw = torch.rand(2, len(frames), 1, 1, 1, 1, device=frames.device)
        return maximum * fraction * (draw < self.probability)

    def _background_texture(self, frames: Tensor) -> Tensor:
        """Draw a smooth static texture from 0 to 1."""
        nodes = torch.rand(len(frames), frames.shape[2], _TEXTURE_NODES, _TEXTURE_NODES, device=frames.device)
        texture = functional.interpolate(nodes, size=frames.shape[-2:], mode="bilinear", align_corners=False)
        return texture.unsqueeze(1)

    def _occlude(self, frames: Tensor, positions: Tensor) -> Tensor:
        """Draw a gray disc over part of one object, at the same position in all frames."""
        batch, height, width = len(frames), *frames.shape[-2:]
        index = torch.randint(positions.shape[1], (batch,), device=frames.device)
        radius = self._severity(self.occlusion, frames).reshape(batch) * self.radius
        angle = 2 * torch.pi * torch.rand(batch, device=frames.device)
        # The edge of the disc passes through the object's center.
        offset = radius * torch.stack([angle.cos(), angle.sin()])
        x, y = positions[torch.arange(batch, device=frames.device), index].nan_to_num(0.0).T + offset
        columns = torch.arange(width, device=frames.device) + 0.5 - x[:, None]
        rows = torch.arange(height, device=frames.device) + 0.5 - y[:, None]
        distance = (columns[:, None].square() + rows[:, :, None].square()).sqrt()
        disc = (radius[:, None, None] - distance + 0.5).clamp(0, 1) * (radius > 0)[:, None, None]
        gray = torch.rand(batch, 1, 1, 1, 1, device=frames.device)
        return torch.lerp(frames, gray.expand_as(frames), disc[:, None, None])

    def _blur(self, frames: Tensor) -> Tensor:
        """Blur the selected samples by one common width."""
        if self.fixed_severity:
            return gaussian_blur(frames, self.blur)
        sigma = self.blur * float(torch.rand(()))
        is_blurred = torch.rand(len(frames), device=frames.device) < self.probability
        frames = frames.clone()
        frames[is_blurred] = gaussian_blur(frames[is_blurred], max(sigma, 1e-3))
        return frames


def gaussian_blur(frames: Float[Tensor, "*batch height width"], sigma: float) -> Float[Tensor, "*batch height width"]:
    """Convolve frames with a Gaussian of standard deviation `sigma`, in pixels, reflected at the border.

    A sum of shifted images is several times faster on a CPU than a convolution with a single channel.
    """
    kernel_radius = check_count("radius of the blur kernel", max(1, round(3 * sigma)))
    offsets = torch.arange(-kernel_radius, kernel_radius + 1, dtype=frames.dtype, device=frames.device)
    kernel = torch.exp(-0.5 * (offsets / sigma).square())
    taps = list(enumerate((kernel / kernel.sum()).tolist()))
    height, width = frames.shape[-2:]
    padded = functional.pad(frames.reshape(-1, 1, height, width), [kernel_radius] * 4, mode="reflect")
    rows = torch.stack([weight * padded[..., k : k + height, :] for k, weight in taps]).sum(0)
    blurred = torch.stack([weight * rows[..., k : k + width] for k, weight in taps]).sum(0)
    return blurred.reshape(frames.shape)
