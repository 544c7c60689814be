"""What the camera sees of the pendulum on its cart: procedural textures, and light that may vary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.camera import Camera, RayCaster, noise, stripes
from physvision.core import Box, Plane, State
from physvision.physics import Engine
from physvision.physics.engine import Overrides

# What is in the picture: from where, and how high, m and rad.
_EYE, _FIELD = (0.0, -2.4, 0.0), 0.4
_WALL, _RAIL = 0.35, (1.04, 0.02, 0.024)  # m behind the cart, and m
# Of the geometry of the scene: the cart and the pole. What does not move is drawn once.
_MOVING = (1, 2)
_TEXELS = 24


@dataclass(frozen=True)
class Looks:
    """How worlds look other than the scene as it is.

    Attributes:
        gains: by which red, green and blue are multiplied.
        stains: strength of the noise laid over the wall, the cart and the pole.
        seed: of that noise, the same for all worlds.
    """

    gains: Float[Tensor, "batch 3"]
    stains: Float[Tensor, "batch 3"]
    seed: int = 11

    @classmethod
    def plain(cls, batch: int, like: Tensor) -> Looks:
        """The scene as it is."""
        return cls(like.new_ones(batch, 3), like.new_zeros(batch, 3))


class View(nn.Module):
    """Frames of the cart's states: the wall and the rail are drawn once, the cart and the pole over them."""

    backdrop: Tensor

    def __init__(self, engine: Engine, height: int, width: int) -> None:
        """Put a camera before an engine of the scene "cart".

        Args:
            engine: what is seen.
            height: of a frame, pixels.
            width: of a frame, pixels.
        """
        super().__init__()
        camera = Camera.pinhole(height, width, position=_EYE, target=(0.0, 0.0, 0.0), fov=_FIELD)
        self.register_buffer("backdrop", backdrop(camera), persistent=False)
        self.camera = camera.bind(engine, _MOVING, background=self.backdrop)

    def forward(self, state: State, looks: Looks | None = None, properties: Overrides = None) -> Tensor:
        """Frames (batch, 3, height, width) of states, in one launch."""
        seen = self.camera.appearance(state, properties)
        textures, ground = list(surfaces()), self.backdrop.to(seen.poses)
        if looks is not None:
            stains = looks.stains.to(seen.poses)[:, :, None, None, None]
            wall, *parts = noises(looks.seed, ground.shape[-2], ground.shape[-1])
            ground = ground + stains[:, 0] * wall.to(seen.poses)
            strengths = stains[:, 1:].to(wall).unbind(1)
            textures = [base + each * part for base, each, part in zip(textures, strengths, parts, strict=True)]
        textures = [texture.to(seen.poses) for texture in textures]
        frames = self.camera.caster(seen.poses, textures, sizes=seen.sizes, background=ground)
        return frames if looks is None else frames * looks.gains.to(frames)[:, :, None, None]


@cache
def surfaces() -> tuple[Tensor, Tensor]:
    """Textures of the cart and of the pole: stripes that are smooth, so that what is seen of them has gradients."""
    cart = stripes((0.15, 0.3, 0.75), (0.5, 0.75, 1.0), 2.0, _TEXELS, _TEXELS)
    pole = stripes((1.0, 0.85, 0.2), (0.75, 0.1, 0.1), 1.5, _TEXELS, _TEXELS, turn=1.5708)
    return cart, pole


@cache
def noises(seed: int, height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Smooth noise for the wall, as large as the frame, the cart and the pole."""
    wall = noise(3, (5, 13), height, width, seed)
    return wall, noise(3, (4, 4), _TEXELS, _TEXELS, seed + 1), noise(3, (6, 3), _TEXELS, _TEXELS, seed + 2)


@torch.no_grad()
def backdrop(camera: Camera) -> Float[Tensor, "3 height width"]:
    """The wall and the rail."""
    wall = torch.eye(4, dtype=torch.float64)
    wall[:3, :3] = torch.tensor([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    wall[1, 3] = _WALL
    rail = torch.eye(4, dtype=torch.float64)
    rail[1, 3] = 0.05
    paper = 0.55 + 0.15 * noise(3, (9, 9), 64, 64, 3).double()
    metal = stripes((0.3, 0.3, 0.33), (0.45, 0.45, 0.48), 8.0, 8, 64).double()
    caster = RayCaster(camera, [Plane((3.2, 3.2)), Box(_RAIL)], background=(0.5, 0.5, 0.5))
    return caster(torch.stack([wall, rail])[None], [paper, metal])[0].float()
