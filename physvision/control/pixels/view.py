"""What the camera sees of the pendulum on its cart: procedural textures, and light that may vary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from physvision.camera import Camera, RayCaster, noise, stripes
from physvision.core import Box, Plane, Rectangle, State
from physvision.physics import Engine
from physvision.physics.engine import Overrides

# What is in the picture: from where, and how high, m and rad.
_EYE, _FIELD = (0.0, -2.4, 0.0), 0.4
_WALL, _RAIL = 0.35, (1.04, 0.02, 0.024)  # m behind the cart, and m
# Of the geometry of the scene: the cart and the pole. What does not move is drawn once.
_MOVING = (1, 2)
# Their colours. Textures finer than a pixel would leave their edges' gradients imprecise.
_COLORS = ((0.325, 0.525, 0.875), (0.875, 0.475, 0.15))
_FACE = ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, -1.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))


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
    """Frames of the cart's states: the wall and the rail are drawn once, the cart and the pole over them.

    Of boxes the face towards the camera is drawn alone: the others are slivers of a pixel at most.
    """

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
        self.bound = camera.bind(engine, _MOVING)
        faces = [Rectangle(each.shape.sizes[0], each.shape.sizes[2]) for each in self.bound.geometry]
        self.caster = RayCaster(camera, faces, background=self.backdrop)

    def forward(self, state: State, looks: Looks | None = None, properties: Overrides = None) -> Tensor:
        """Frames (batch, 3, height, width) of states, in one launch."""
        seen = self.bound.appearance(state, properties)
        colors, ground = [seen.poses.new_tensor(each) for each in _COLORS], self.backdrop.to(seen.poses)
        if looks is not None:
            stains = looks.stains.to(seen.poses)
            wall, parts = noises(looks.seed, ground.shape[-2], ground.shape[-1])
            ground = ground + stains[:, 0, None, None, None] * wall.to(ground)
            colors = [
                color + strength[:, None] * part.to(color)
                for color, strength, part in zip(colors, stains[:, 1:].unbind(1), parts, strict=True)
            ]
        # The face's own axes are x and y; on the box they are x and z.
        depth = seen.sizes[..., 1:2]
        poses = seen.poses @ seen.poses.new_tensor(_FACE)
        poses = torch.cat([poses[..., :3], poses[..., 3:] - 0.5 * depth[..., None] * seen.poses[..., 1:2]], -1)
        sizes = torch.stack([seen.sizes[..., 0], seen.sizes[..., 2], 0 * seen.sizes[..., 1]], -1)
        frames = self.caster(poses, colors, sizes=sizes, background=ground)
        return frames if looks is None else frames * looks.gains.to(frames)[:, :, None, None]


@cache
def noises(seed: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Smooth noise for the wall, as large as the frame, and colours for the cart and the pole."""
    return noise(3, (5, 13), height, width, seed), noise(3, (1, 2), 1, 2, seed + 1)[:, 0].T.contiguous()


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
