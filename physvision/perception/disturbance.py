"""What spoils frames: noise, blur, a background that nobody knew, something in the way."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import InputError
from physvision.core.checks import check_count
from physvision.core.registry import register

_NODES = 6  # of the background's pattern along each side


@register("physvision.perception.Disturbance")
class Disturbance(nn.Module):
    """Spoils consecutive frames, each sample in its own way; in evaluation too, if called.

    What is drawn follows from torch's generator. A value is the largest there is, and each sample has a random share
    of each, often none; with `fixed` every sample has all of it.
    """

    def __init__(
        self,
        noise: float = 0.0,
        blur: float = 0.0,
        texture: float = 0.0,
        cover: float = 0.0,
        radius: float = 3.2,
        share: float = 0.4,
        fixed: bool = False,
    ) -> None:
        """Choose how much.

        Args:
            noise: standard deviation of every pixel's noise, new in every frame; 1 is full scale.
            blur: standard deviation of the blur, pixels.
            texture: contrast of a smooth pattern behind what moves.
            cover: how much of an object a disc of a random gray can hide: it is so many radii wide.
            radius: of the objects, pixels.
            share: of the samples, that has each of these.
            fixed: everything at its largest, in every sample.
        """
        super().__init__()
        for name, value in {"noise": noise, "blur": blur, "texture": texture, "cover": cover}.items():
            if not 0 <= value < float("inf"):
                raise InputError(f"{name}: expected 0 or more, got {value}")
        self.noise, self.blur, self.texture, self.cover = noise, blur, texture, cover
        self.radius, self.share, self.fixed = radius, share, fixed

    def forward(
        self,
        frames: Float[Tensor, "batch times channels height width"],
        coverage: Float[Tensor, "batch times 1 height width"],
        places: Float[Tensor, "batch objects 2"],
    ) -> Float[Tensor, "batch times channels height width"]:
        """The frames, spoilt.

        Args:
            frames: 0 to 1.
            coverage: the share of each pixel that is not background.
            places: where objects are, pixels: one of them, picked at random, gets hidden.
        """
        if self.texture:
            pattern = self._pattern(frames)
            frames = frames + self._amount(self.texture, frames) * (1 - coverage) * pattern
        if self.cover:
            frames = self._covered(frames, places)
        if self.blur:
            frames = self._blurred(frames)
        if self.noise:
            amount = self._amount(self.noise, frames)
            noisy = amount.flatten() > 0
            frames = frames.clone()
            frames[noisy] += amount[noisy] * torch.randn_like(frames[noisy])
        return frames.clamp(0, 1)

    def _amount(self, most: float, frames: Tensor) -> Tensor:
        if self.fixed:
            return frames.new_full((len(frames), 1, 1, 1, 1), most)
        amount, chosen = torch.rand(2, len(frames), 1, 1, 1, 1, device=frames.device)
        return most * amount * (chosen < self.share)

    def _pattern(self, frames: Tensor) -> Tensor:
        """Smooth, 0 to 1, and still."""
        nodes = torch.rand(len(frames), frames.shape[2], _NODES, _NODES, device=frames.device)
        wide = functional.interpolate(nodes, size=frames.shape[-2:], mode="bilinear", align_corners=False)
        return wide.unsqueeze(1)

    def _covered(self, frames: Tensor, places: Tensor) -> Tensor:
        """A disc near an object, the same in all frames."""
        batch, height, width = len(frames), *frames.shape[-2:]
        chosen = torch.randint(places.shape[1], (batch,), device=frames.device)
        reach = self._amount(self.cover, frames).reshape(batch) * self.radius
        angle = 2 * torch.pi * torch.rand(batch, device=frames.device)
        # Its edge reaches to about the object's middle.
        away = reach * torch.stack([angle.cos(), angle.sin()])
        x, y = places[torch.arange(batch, device=frames.device), chosen].nan_to_num(0.0).T + away
        columns = torch.arange(width, device=frames.device) + 0.5 - x[:, None]
        rows = torch.arange(height, device=frames.device) + 0.5 - y[:, None]
        distance = (columns[:, None].square() + rows[:, :, None].square()).sqrt()
        disc = (reach[:, None, None] - distance + 0.5).clamp(0, 1) * (reach > 0)[:, None, None]
        gray = torch.rand(batch, 1, 1, 1, 1, device=frames.device)
        return torch.lerp(frames, gray.expand_as(frames), disc[:, None, None])

    def _blurred(self, frames: Tensor) -> Tensor:
        """Gauss's, of one width for all samples that have it."""
        if self.fixed:
            return blur(frames, self.blur)
        width = self.blur * float(torch.rand(()))
        chosen = torch.rand(len(frames), device=frames.device) < self.share
        frames = frames.clone()
        frames[chosen] = blur(frames[chosen], max(width, 1e-3))
        return frames


def blur(frames: Float[Tensor, "*batch height width"], deviation: float) -> Float[Tensor, "*batch height width"]:
    """Frames convolved with Gauss's function of this standard deviation, pixels; mirrored at the border."""
    reach = check_count("blur's reach", max(1, round(3 * deviation)))
    at = torch.arange(-reach, reach + 1, dtype=frames.dtype, device=frames.device)
    weights = torch.exp(-0.5 * (at / deviation).square())
    weights = weights / weights.sum()
    height, width = frames.shape[-2:]
    flat = functional.pad(frames.reshape(-1, 1, height, width), (reach, reach, reach, reach), mode="reflect")
    # A sum of shifted pictures is much faster than a convolution of one channel.
    shifts = list(enumerate(weights.tolist()))
    rows = torch.stack([weight * flat[..., k : k + height, :] for k, weight in shifts]).sum(0)
    both = torch.stack([weight * rows[..., k : k + width] for k, weight in shifts]).sum(0)
    return both.reshape(frames.shape)
